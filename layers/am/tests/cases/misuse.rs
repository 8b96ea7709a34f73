//! Misuse is an error, and harms nothing.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_am::{CallError, Error, Name, NameError, Node, NodeOptions, Tag};

use crate::player::LONG;
use crate::{Host, World};

const TAG: Tag = Tag::new(7);
const ASK: u8 = 3;

pub(crate) fn misuse_is_an_error(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        // Calls of a handler that has smuggled things in.
        let smuggled = Rc::new(RefCell::new(None));
        let errors = Rc::new(RefCell::new(Vec::new()));
        let (inside, seen) = (Rc::clone(&smuggled), Rc::clone(&errors));
        endpoint.on_short(ASK, move |call, _| {
            let mut inside = inside.borrow_mut();
            if let Some((node, bundle, other)) = inside.take() {
                let (node, bundle): (Node<Host>, hamlyn_am::Bundle<Host>) = (node, bundle);
                let other: hamlyn_am::Endpoint<Host> = other;
                let mut seen = seen.borrow_mut();
                seen.push(bundle.poll().err());
                seen.push(bundle.serve(LONG).err());
                seen.push(node.statistics().err());
                seen.push(other.name().err());
                seen.push(node.bundle().err());
                // Dropped here, where a handler runs.
                drop(other);
            }
            assert_eq!(call.reply(0, &[]), Err(CallError::ReservedHandler));
            let count = 17;
            assert_eq!(
                call.reply(ASK, &[0; 17]),
                Err(CallError::TooManyArguments { count })
            );
            let long = vec![0; 1 << 20];
            let refused = call.reply_medium(ASK, &long, &[]);
            assert!(matches!(refused, Err(CallError::TooLong { .. })));
            call.reply(ASK + 1, &[1])?;
            assert_eq!(call.reply(ASK + 1, &[2]), Err(CallError::AlreadyReplied));
            assert_eq!(call.defer().err(), Some(CallError::AlreadyReplied));
            Err(CallError::Failed("on purpose"))
        })?;
        if player.number == 0 {
            let other = player.endpoint("other", TAG);
            let own = player.node.clone();
            *smuggled.borrow_mut() = Some((own, player.node.bundle()?, other));
            let mut failed = false;
            for _ in 0..4000 {
                match player.bundle.serve(Wait::millis(5)) {
                    Ok(_) => {}
                    Err(Error::Handler(CallError::Failed("on purpose"))) => {
                        failed = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            assert!(failed, "the poll tells the error of its handler");
            let expected = vec![Some(Error::InHandler); 5];
            assert_eq!(*errors.borrow(), expected);
            return player.finish();
        }
        let replies = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&replies);
        endpoint.on_short(ASK + 1, move |call, arguments| {
            assert_eq!(call.reply(ASK, &[]), Err(CallError::NotARequest));
            assert_eq!(call.defer().err(), Some(CallError::NotARequest));
            seen.borrow_mut().extend(arguments.to_vec());
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let other = player.endpoint("other", TAG);

        assert_eq!(
            endpoint.request(&to, 0, &[], LONG),
            Err(Error::ReservedHandler)
        );
        assert_eq!(endpoint.clear_handler(0), Err(Error::ReservedHandler));
        let count = 17;
        let refused = endpoint.request(&to, ASK, &[0; 17], LONG);
        assert_eq!(refused, Err(Error::TooManyArguments { count }));
        let refused = endpoint.transfer(&to, ASK, 0, &[], &[0; 17], LONG);
        assert_eq!(refused, Err(Error::TooManyArguments { count }));
        let refused = other.request(&to, ASK, &[], LONG);
        assert!(
            matches!(refused, Err(Error::NotMapped { .. })),
            "{refused:?}"
        );
        let unmapped = player.map(&endpoint, 0, "server", TAG);
        endpoint.unmap(unmapped)?;
        for refused in [
            endpoint.unmap(unmapped),
            endpoint.request(&unmapped, ASK, &[], LONG),
            endpoint.mapped(&unmapped).map(drop),
        ] {
            assert!(
                matches!(refused, Err(Error::NotMapped { .. })),
                "{refused:?}"
            );
        }
        // Its number is used again, by another translation.
        let again = player.map(&endpoint, 0, "server", TAG);
        assert!(endpoint.mapped(&again).is_ok() && endpoint.mapped(&unmapped).is_err());
        let name = endpoint.name()?;
        assert_eq!(endpoint.map(&name, Tag::None, LONG), Err(Error::NoTag));
        let refused = endpoint.get(&to, ASK, 0..10, 0, &[], LONG);
        assert!(
            matches!(refused, Err(Error::OutsideSegment { .. })),
            "{refused:?}"
        );
        let area = endpoint.new_segment(4096)?;
        let refused = endpoint.set_segment(Some((area, 1 << 40)));
        assert!(
            matches!(refused, Err(Error::OutsideSegment { .. })),
            "{refused:?}"
        );
        let cut = Name::from_bytes(&name.to_bytes()[1..]);
        assert_eq!(cut, Err(NameError::Length { length_bytes: 51 }));
        assert!(!format!("{name:?}").contains("secret"));
        // After all of that.
        endpoint.request(&to, ASK, &[], LONG)?;
        player.serve_until("the reply", || *replies.borrow() == [1]);
        player.finish()
    });
}

/// A translation of a node is none of another one, and a bundle's number is used again when it and
/// all its endpoints are gone, in either order.
pub(crate) fn nodes_and_bundles_are_told_apart(world: World) {
    world.run(1, &|player| {
        let map = |endpoint: &hamlyn_am::Endpoint<Host>| {
            let name = endpoint.name().unwrap();
            endpoint.map(&name, TAG, LONG).unwrap()
        };
        let own = player.bundle.endpoint()?;
        let to = map(&own);
        let other = player.another(NodeOptions::default())?;
        let first = other.bundle()?;
        let endpoint = first.endpoint()?;
        map(&endpoint);
        let refused = endpoint.request(&to, ASK, &[], Wait::Poll);
        assert!(
            matches!(refused, Err(Error::NotMapped { .. })),
            "{refused:?}"
        );
        let number = format!("{first:?}");
        drop(first);
        let second = other.bundle()?;
        assert_ne!(format!("{second:?}"), number, "its endpoint is in it");
        drop(endpoint);
        assert_eq!(format!("{:?}", other.bundle()?), number);
        player.finish()
    });
}

/// A handler that panics has had its message: the request is answered, and others follow.
pub(crate) fn a_handler_may_panic(world: World) {
    world.run(1, &|player| {
        let mut server = player.endpoint("server", TAG);
        let mut client = player.bundle.endpoint()?;
        let (asked, answered) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&asked);
        server.on_short(ASK, move |call, arguments| {
            counted.set(counted.get() + 1);
            if arguments[0] == 1 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            call.reply(ASK + 1, arguments)
        })?;
        let counted = Rc::clone(&answered);
        client.on_short(ASK + 1, move |_, arguments| {
            counted.set(counted.get() + 1);
            if arguments[0] == 2 {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
            Ok(())
        })?;
        let to = client.map(&server.name()?, TAG, LONG)?;
        for which in 0..4 {
            client.request(&to, ASK, &[which], Wait::Poll)?;
        }
        let serve = || player.bundle.serve(Wait::millis(5)).map(drop);
        let mut panics = 0;
        for _ in 0..4000 {
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(serve)) {
                Ok(served) => served?,
                Err(_) => panics += 1,
            }
            if client.outstanding()? == 0 {
                break;
            }
        }
        assert_eq!((panics, asked.get(), answered.get()), (2, 4, 3));
        assert_eq!(client.outstanding()?, 0);
        player.finish()
    });
}

pub(crate) fn options_that_cannot_be_are_named(world: World) {
    let good = world.options;
    let bad = [
        NodeOptions { credits: 0, ..good },
        NodeOptions {
            credits: 32,
            ..good
        },
        NodeOptions { frames: 0, ..good },
        NodeOptions { visit: 0, ..good },
        NodeOptions {
            queue_bytes: 64,
            ..good
        },
        NodeOptions {
            reply_queue_bytes: 64,
            ..good
        },
    ];
    for options in [NodeOptions::paper(), good] {
        let world = World { options, ..world };
        world.run(1, &|player| {
            assert_eq!(player.node.options()?, options);
            player.finish()
        });
    }
    world.run(1, &|player| {
        for options in bad {
            let refused = player.another(options);
            assert!(matches!(refused, Err(Error::Setting { .. })), "{refused:?}");
        }
        player.finish()
    });
}
