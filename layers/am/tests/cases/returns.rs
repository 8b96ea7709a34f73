//! Each reason for which a message comes back, by a program that causes exactly it: once, with its
//! operation, arguments and data.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hamlyn::Wait;
use hamlyn_am::{Endpoint, Operation, Reason, Tag};

use crate::player::{LONG, Player};
use crate::{Host, World};

const TAG: Tag = Tag::new(7);
const ASK: u8 = 3;
const ANSWER: u8 = 4;
const PUT: u8 = 7;
const MEDIUM: u8 = 8;

/// A message that came back.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Back {
    operation: Operation,
    reason: Reason,
    handler: u8,
    arguments: Vec<u32>,
    data: Vec<u8>,
    offset: u64,
}

type Backs = Rc<RefCell<Vec<Back>>>;

fn collect(endpoint: &mut Endpoint<Host>) -> Backs {
    let backs = Backs::default();
    let seen = Rc::clone(&backs);
    let keep = move |back: &hamlyn_am::Returned<'_>| {
        seen.borrow_mut().push(Back {
            operation: back.operation,
            reason: back.reason,
            handler: back.handler,
            arguments: back.arguments.to_vec(),
            data: back.data.to_vec(),
            offset: back.offset,
        });
    };
    endpoint.on_returned(keep).unwrap();
    backs
}

fn back(operation: Operation, reason: Reason, handler: u8, arguments: &[u32]) -> Back {
    Back {
        operation,
        reason,
        handler,
        arguments: arguments.to_vec(),
        data: Vec::new(),
        offset: 0,
    }
}

/// Serves until something came back; all that did.
fn take(player: &Player<'_>, endpoint: &Endpoint<Host>, backs: &Backs) -> Vec<Back> {
    player.serve_until("what comes back", || !backs.borrow().is_empty());
    let outstanding = || endpoint.outstanding().unwrap();
    player.serve_until("all ends", || outstanding() == 0);
    std::mem::take(&mut *backs.borrow_mut())
}

pub(crate) fn each_reason_comes_with_its_message(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.new_segment(1000)?;
        endpoint.on_short(ASK, |_, _| Ok(()))?;
        endpoint.on_medium(MEDIUM, |_, _, _| Ok(()))?;
        endpoint.on_bulk(PUT, |_, _, _| Ok(()))?;
        if player.number == 0 {
            let bare = player.endpoint("bare", TAG);
            drop(player.endpoint("gone", TAG));
            player.finish()?;
            drop(bare);
            return Ok(());
        }
        let backs = collect(&mut endpoint);
        let data: Vec<u8> = (0..200).collect();
        let with_data = |operation, reason, handler, offset| Back {
            data: data.clone(),
            offset,
            ..back(operation, reason, handler, &[1, 2])
        };
        let to = player.map(&endpoint, 0, "server", TAG);

        // The tag.
        for tag in [Tag::new(8), Tag::Any] {
            let wrong = player.map(&endpoint, 0, "server", tag);
            endpoint.request(&wrong, ASK, &[1, 2, 3], LONG)?;
            // One wait: that the message was refused wakes it.
            assert_eq!(player.bundle.serve(LONG)?, 1);
            let expected = back(Operation::Request, Reason::BadTag, ASK, &[1, 2, 3]);
            assert_eq!(take(player, &endpoint, &backs), [expected]);
        }
        // The endpoint, which has gone. The rest of the node is there.
        let gone = player.map(&endpoint, 0, "gone", TAG);
        endpoint.request_medium(&gone, MEDIUM, &data, &[1, 2], LONG)?;
        let expected = with_data(Operation::RequestMedium, Reason::BadEndpoint, MEDIUM, 0);
        assert_eq!(take(player, &endpoint, &backs), [expected]);
        // The handler: none, and one for another kind of message.
        for handler in [99, MEDIUM] {
            endpoint.request(&to, handler, &[], LONG)?;
            let expected = back(Operation::Request, Reason::BadHandler, handler, &[]);
            assert_eq!(take(player, &endpoint, &backs), [expected]);
        }
        endpoint.transfer(&to, ASK, 0, &data, &[1, 2], LONG)?;
        let expected = with_data(Operation::Transfer, Reason::BadHandler, ASK, 0);
        assert_eq!(take(player, &endpoint, &backs), [expected]);
        // Offset and length.
        for (offset, reason) in [
            (1001, Reason::BadOffset),
            (u64::MAX, Reason::BadOffset),
            (801, Reason::BadLength),
        ] {
            endpoint.transfer(&to, PUT, offset, &data, &[1, 2], LONG)?;
            let expected = with_data(Operation::Transfer, reason, PUT, offset);
            assert_eq!(take(player, &endpoint, &backs), [expected]);
        }
        // A transfer of many parts that does not fit comes back once, whole.
        let long = vec![3; 100_000];
        endpoint.transfer(&to, PUT, 1, &long, &[5], LONG)?;
        let came = take(player, &endpoint, &backs);
        assert_eq!(came.len(), 1);
        assert_eq!(came[0].reason, Reason::BadLength);
        assert_eq!((came[0].data.len(), came[0].offset), (100_000, 1));
        assert_eq!(came[0].arguments, [5]);
        // The same of a get, and of an endpoint without a segment.
        endpoint.get(&to, PUT, 900..1100, 0, &[6], LONG)?;
        let expected = Back {
            offset: 900,
            ..back(Operation::Get, Reason::BadLength, PUT, &[6])
        };
        assert_eq!(take(player, &endpoint, &backs), [expected]);
        let bare = player.map(&endpoint, 0, "bare", TAG);
        endpoint.get(&bare, PUT, 0..10, 0, &[], LONG)?;
        let expected = back(Operation::Get, Reason::BadOffset, PUT, &[]);
        assert_eq!(take(player, &endpoint, &backs), [expected]);
        // Nothing was harmed.
        endpoint.request(&to, ASK, &[], LONG)?;
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("the credit", || outstanding() == 0);
        assert!(backs.borrow().is_empty());
        player.finish()
    });
}

/// The data of a medium are the caller's again when the call returns: whatever is written there then,
/// the message arrives, is sent again and comes back as it was. At each length at which it is kept
/// in another way.
pub(crate) fn mediums_are_kept_as_they_were(mut world: World) {
    world.options.medium_bytes_max = 64 << 10;
    world.options.queue_bytes = 4 << 20;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let echo = |call: &mut hamlyn_am::Call<'_>, data: &[u8], arguments: &[u32]| {
            call.reply_medium(ANSWER, data, arguments)
        };
        endpoint.on_medium(MEDIUM, echo)?;
        let came = Backs::default();
        let seen = Rc::clone(&came);
        endpoint.on_medium(ANSWER, move |_, data, arguments| {
            seen.borrow_mut().push(Back {
                data: data.to_vec(),
                ..back(Operation::Reply, Reason::BadTag, ANSWER, arguments)
            });
            Ok(())
        })?;
        if player.number == 0 {
            let mut any = player.endpoint("any", Tag::Any);
            any.on_medium(MEDIUM, echo)?;
            return player.finish();
        }
        let backs = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        let most = endpoint.medium_bytes_max(&to)?;
        // A record holds 128 bytes, with the word and two arguments, and memory of its own a longer
        // message, here also of about 8 KiB. A first message has an introduction of 32 bytes.
        let around = |bytes: usize| [bytes - 1, bytes, bytes + 1];
        let bounds = [112 - 32, 112, 8192 - 16 - 32, 8192 - 16];
        let mut lengths = [&[0, 1, most - 1, most][..], &bounds.map(around).concat()].concat();
        lengths.retain(|&length| length <= most);
        for (number, &length) in (1_u32..).zip(&lengths) {
            let arguments = [number, length as u32];
            let data: Vec<u8> = (0..length).map(|at| (at as u32 ^ number) as u8).collect();
            let send = |over| {
                let mut lent = data.clone();
                let sent = endpoint.request_medium(over, MEDIUM, &lent, &arguments, LONG);
                lent.fill(0xff);
                sent
            };
            // It arrives, at once or when it is sent again with the key of any tag.
            let any = player.map(&endpoint, 0, "any", TAG);
            for over in [&to, &any] {
                send(over)?;
                player.serve_until("the reply", || !came.borrow().is_empty());
                let expected = Back {
                    data: data.clone(),
                    ..back(Operation::Reply, Reason::BadTag, ANSWER, &arguments)
                };
                assert_eq!(std::mem::take(&mut *came.borrow_mut()), [expected]);
            }
            endpoint.unmap(any)?;
            // It comes back, refused with both keys.
            let wrong = player.map(&endpoint, 0, "server", Tag::new(8));
            send(&wrong)?;
            let expected = Back {
                data: data.clone(),
                ..back(Operation::RequestMedium, Reason::BadTag, MEDIUM, &arguments)
            };
            assert_eq!(take(player, &endpoint, &backs), [expected]);
            endpoint.unmap(wrong)?;
        }
        player.finish()
    });
}

/// An endpoint that nobody polls, while its node polls another: its queue is full, its senders try
/// again, and give up when they were told to.
pub(crate) fn congestion_ends(mut world: World) {
    world.options.queue_bytes = 1024;
    world.options.medium_bytes_max = 256;
    world.options.congestion = Duration::from_millis(50);
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let apart = player.node.bundle()?;
            let mut unpolled = apart.endpoint()?;
            unpolled.set_tag(TAG)?;
            let count = Rc::new(Cell::new(0));
            let counted = Rc::clone(&count);
            unpolled.on_short(ASK, move |_, _| {
                counted.set(counted.get() + 1);
                Ok(())
            })?;
            player.node.publish("unpolled", &unpolled.name()?)?;
            let told = Rc::new(Cell::new(0));
            let seen = Rc::clone(&told);
            endpoint.on_short(ANSWER, move |_, arguments| {
                seen.set(arguments[0]);
                Ok(())
            })?;
            player.serve_until("what came back there", || told.get() > 0);
            // Those that were not refused are there, and no more.
            while apart.poll()? > 0 {}
            assert_eq!(count.get() + told.get(), 16);
            return player.finish();
        }
        let backs = collect(&mut endpoint);
        let unpolled = player.map(&endpoint, 0, "unpolled", TAG);
        let server = player.map(&endpoint, 0, "server", TAG);
        for number in 0..16 {
            endpoint.request(&unpolled, ASK, &[number], Wait::Poll)?;
        }
        // Half of the queue, 512 bytes, of which the introduced messages take 64 each.
        player.serve_until("what comes back", || backs.borrow().len() == 8);
        for back in &*backs.borrow() {
            assert_eq!(back.reason, Reason::Congestion);
            assert_eq!(
                (back.operation, back.arguments.len()),
                (Operation::Request, 1)
            );
        }
        let mut numbers: Vec<u32> = backs
            .borrow()
            .iter()
            .map(|back| back.arguments[0])
            .collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), 8, "each once");
        assert!(player.node.statistics()?.sent_again > 0);
        endpoint.request(&server, ANSWER, &[8], LONG)?;
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all ends", || outstanding() == 0);
        assert_eq!(backs.borrow().len(), 8);
        player.finish()
    });
}

/// A queue that is full for a while loses nothing.
pub(crate) fn a_full_queue_loses_nothing(mut world: World) {
    world.options.queue_bytes = 1024;
    world.options.medium_bytes_max = 256;
    world.run(3, &|player| {
        const REQUESTS: u32 = 150;
        let mut endpoint = player.endpoint("server", TAG);
        let seen = Rc::new(RefCell::new(vec![0; 2 * REQUESTS as usize]));
        let counts = Rc::clone(&seen);
        endpoint.on_short(ASK, move |_, arguments| {
            counts.borrow_mut()[arguments[0] as usize] += 1;
            Ok(())
        })?;
        if player.number == 0 {
            let apart = player.node.bundle()?;
            apart.adopt(&endpoint)?;
            let total = || seen.borrow().iter().sum::<u32>();
            player.look_until("all requests", || {
                // Now and then.
                if player.node.statistics().unwrap().requests_taken % 7 != 6 {
                    let _ = apart.poll().unwrap();
                }
                let _ = apart.poll().unwrap();
                total() == 2 * REQUESTS
            });
            assert!(seen.borrow().iter().all(|&count| count == 1));
            return player.finish();
        }
        let backs = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        for number in 0..REQUESTS {
            let number = (player.number as u32 - 1) * REQUESTS + number;
            endpoint.request(&to, ASK, &[number], LONG)?;
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all credits", || outstanding() == 0);
        assert!(backs.borrow().is_empty());
        player.finish()
    });
}

/// Requests that are outstanding at a node that ends come back, and later ones are errors.
pub(crate) fn the_end_of_a_peer_returns_what_it_has(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let kept = Rc::new(RefCell::new(Vec::new()));
            let deferred = Rc::clone(&kept);
            endpoint.on_short(ASK, move |call, _| {
                deferred.borrow_mut().push(call.defer()?);
                Ok(())
            })?;
            player.serve_until("requests", || kept.borrow().len() == 3);
            // They are never answered.
            let kept = std::mem::take(&mut *kept.borrow_mut());
            kept.into_iter().for_each(std::mem::forget);
            player.leave();
            return Ok(());
        }
        let backs = collect(&mut endpoint);
        let to = player.map(&endpoint, 0, "server", TAG);
        for number in 0..3 {
            endpoint.request(&to, ASK, &[number], LONG)?;
        }
        assert_eq!(endpoint.link_end(&to)?, None);
        player.serve_until("what comes back", || backs.borrow().len() == 3);
        let outstanding = || endpoint.outstanding().unwrap();
        assert_eq!(outstanding(), 0);
        let mut numbers: Vec<u32> = backs
            .borrow()
            .iter()
            .map(|back| back.arguments[0])
            .collect();
        numbers.sort();
        assert_eq!(numbers, [0, 1, 2]);
        for back in &*backs.borrow() {
            assert_eq!(back.reason, Reason::Unreachable);
        }
        assert!(endpoint.link_end(&to)?.is_some());
        let refused = endpoint.request(&to, ASK, &[], LONG);
        assert!(
            matches!(refused, Err(hamlyn_am::Error::PeerLost(_))),
            "{refused:?}"
        );
        player.leave();
        Ok(())
    });
}

/// A reply that the requester does not want comes back to the replier, and the credit is free.
pub(crate) fn rejected_replies_come_back_to_the_replier(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.on_short(ASK, |call, arguments| match arguments[0] {
            0 => call.reply(99, &[1]),
            1 => call.reply_medium(ANSWER, &[5; 300], &[2]),
            2 => call.reply_bulk(PUT, 990, &[6; 20], &[3]),
            _ => call.reply(ANSWER, &[4]),
        })?;
        let backs = collect(&mut endpoint);
        if player.number == 0 {
            player.serve_until("three rejections", || backs.borrow().len() == 3);
            let rejected = |reason, handler, arguments: &[u32], data: &[u8], offset| Back {
                data: data.to_vec(),
                offset,
                ..back(Operation::Reply, reason, handler, arguments)
            };
            let mut backs = backs.borrow().clone();
            backs.sort_by_key(|back| back.arguments[0]);
            assert_eq!(
                backs,
                [
                    rejected(Reason::BadHandler, 99, &[1], &[], 0),
                    rejected(Reason::BadHandler, ANSWER, &[2], &[5; 300], 0),
                    rejected(Reason::BadLength, PUT, &[3], &[6; 20], 990),
                ]
            );
            assert_eq!(player.node.statistics()?.replies_rejected, 3);
            return player.finish();
        }
        endpoint.new_segment(1000)?;
        let good = Rc::new(Cell::new(0));
        let counted = Rc::clone(&good);
        endpoint.on_short(ANSWER, move |_, arguments| {
            assert_eq!(arguments, [4]);
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        endpoint.on_bulk(PUT, |_, _, _| panic!("it does not fit"))?;
        let to = player.map(&endpoint, 0, "server", TAG);
        for which in 0..4 {
            endpoint.request(&to, ASK, &[which], LONG)?;
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all ends", || outstanding() == 0);
        player.serve_until("the good one", || good.get() == 1);
        // The records are used again.
        for _ in 0..100 {
            endpoint.request(&to, ASK, &[4], LONG)?;
        }
        player.serve_until("the other ones", || good.get() == 101);
        assert!(backs.borrow().is_empty(), "the requester is told nothing");
        player.finish()
    });
}
