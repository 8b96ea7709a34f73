//! Messages, replies and credits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_am::{ARGUMENTS_MAX, Blocked, Deferred, Error, Events, Incoming, Tag};

use crate::World;
use crate::player::LONG;

const TAG: Tag = Tag::new(7);
/// Handlers of these cases.
const ASK: u8 = 3;
const ANSWER: u8 = 4;
const ASK_LONG: u8 = 5;
const ANSWER_LONG: u8 = 6;
const PUT: u8 = 7;
const GOT: u8 = 255;

pub(crate) fn requests_are_answered(world: World) {
    const REQUESTS: u32 = 200;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.on_short(ASK, |call, arguments| {
            call.reply(ANSWER, &[arguments[0] + arguments[1]])
        })?;
        if player.number == 0 {
            return player.finish();
        }
        let sums = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&sums);
        endpoint.on_short(ANSWER, move |_, arguments| {
            seen.borrow_mut().push(arguments[0]);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        for number in 0..REQUESTS {
            endpoint.request(&to, ASK, &[number, 1000], LONG)?;
        }
        player.serve_until("all answers", || sums.borrow().len() == REQUESTS as usize);
        let mut sums = sums.borrow().clone();
        sums.sort();
        assert_eq!(sums, (1000..1000 + REQUESTS).collect::<Vec<_>>());
        assert_eq!(endpoint.outstanding()?, 0);
        player.finish()
    });
}

/// Every number of arguments, with data of lengths about each limit, there and back.
pub(crate) fn every_form_arrives_whole(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let segment = endpoint.new_segment(64 << 10)?;
        endpoint.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        endpoint.on_medium(ASK_LONG, |call, data, arguments| {
            call.reply_medium(ANSWER_LONG, data, arguments)
        })?;
        let source = segment.clone();
        endpoint.on_bulk(PUT, move |call, range, arguments| {
            let mut data = vec![0; (range.end - range.start) as usize];
            source.read_at(range.start, &mut data).unwrap();
            call.reply_bulk(PUT + 1, range.start + 3, &data, arguments)
        })?;
        if player.number == 0 {
            return player.finish();
        }
        let last = Rc::new(RefCell::new((Vec::new(), Vec::new())));
        let seen = Rc::clone(&last);
        endpoint.on_short(ANSWER, move |_, arguments| {
            *seen.borrow_mut() = (arguments.to_vec(), Vec::new());
            Ok(())
        })?;
        let seen = Rc::clone(&last);
        endpoint.on_medium(ANSWER_LONG, move |_, data, arguments| {
            *seen.borrow_mut() = (arguments.to_vec(), data.to_vec());
            Ok(())
        })?;
        let (seen, own) = (Rc::clone(&last), segment.clone());
        endpoint.on_bulk(PUT + 1, move |_, range, arguments| {
            assert_eq!(range.start, 103);
            let mut data = vec![0; (range.end - range.start) as usize];
            own.read_at(range.start, &mut data).unwrap();
            *seen.borrow_mut() = (arguments.to_vec(), data);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let most = endpoint.medium_bytes_max(&to)?;
        let lengths = [0, 1, 7, 8, 63, 64, 200, 1000, 1064, 4096, most];
        for count in 0..=ARGUMENTS_MAX {
            let arguments: Vec<u32> = (0..count as u32).map(|at| at * 77 + 1).collect();
            let length = lengths[count % lengths.len()].min(most);
            let data: Vec<u8> = (0..length).map(|at| (at * 31 + count) as u8).collect();
            let nobody = vec![u32::MAX; 17];
            for form in 0..3 {
                last.borrow_mut().0.clone_from(&nobody);
                match form {
                    0 => endpoint.request(&to, ASK, &arguments, LONG)?,
                    1 => endpoint.request_medium(&to, ASK_LONG, &data, &arguments, LONG)?,
                    _ => endpoint.transfer(&to, PUT, 100, &data, &arguments, LONG)?,
                }
                player.serve_until("the answer", || last.borrow().0 != nobody);
                let (found, bytes) = last.borrow().clone();
                assert_eq!(found, arguments, "form {form}");
                let expected = if form == 0 { &[][..] } else { &data };
                assert!(bytes == expected, "form {form} of {length} bytes");
            }
        }
        // It may have grown: packets of another host do while their path is probed.
        let too_long = vec![0; endpoint.medium_bytes_max(&to)? + 1];
        let refused = endpoint.request_medium(&to, ASK_LONG, &too_long, &[], LONG);
        assert!(matches!(refused, Err(Error::TooLong { .. })), "{refused:?}");
        player.finish()
    });
}

/// A request whose handler does not reply is answered all the same, by credits of several at once.
pub(crate) fn credits_come_back(world: World) {
    const REQUESTS: u32 = 500;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&count);
        endpoint.on_short(ASK, move |_, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        if player.number == 0 {
            player.serve_until("all requests", || count.get() == REQUESTS);
            let statistics = player.node.statistics()?;
            assert_eq!(statistics.empty_replies, u64::from(REQUESTS));
            assert_eq!(statistics.replies_sent, 0);
            return player.finish();
        }
        let to = player.map(&endpoint, 0, "server", TAG);
        for _ in 0..REQUESTS {
            // Nobody replies, so only credits make it so.
            assert!(player.bundle.wait(Events::CanSend(to), LONG)?);
            endpoint.request(&to, ASK, &[], Wait::Poll)?;
            assert!(endpoint.outstanding()? <= 16);
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all credits", || outstanding() == 0);
        player.finish()
    });
}

/// Without credit a request that may not wait is not sent.
pub(crate) fn credits_bound_what_is_outstanding(mut world: World) {
    world.options.credits = 4;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let kept = Rc::new(RefCell::new(Vec::<Deferred>::new()));
        let deferred = Rc::clone(&kept);
        endpoint.on_short(ASK, move |call, _| {
            deferred.borrow_mut().push(call.defer()?);
            assert!(call.reply(ANSWER, &[]).is_err(), "it was deferred");
            Ok(())
        })?;
        if player.number == 0 {
            player.serve_until("four requests", || kept.borrow().len() == 4);
            // In another order than they came; one by dropping it.
            let mut kept = kept.borrow_mut();
            endpoint.reply(kept.remove(2), ANSWER, &[2])?;
            endpoint.reply_medium(kept.remove(0), ANSWER_LONG, &[7; 100], &[0])?;
            drop(kept.remove(0));
            endpoint.reply(kept.remove(0), ANSWER, &[3])?;
            drop(kept);
            return player.finish();
        }
        let answers = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |call, arguments| {
            assert!(!call.is_request() && call.reply(ANSWER, &[]).is_err());
            seen.borrow_mut().push(arguments[0]);
            Ok(())
        })?;
        let seen = Rc::clone(&answers);
        endpoint.on_medium(ANSWER_LONG, move |_, data, arguments| {
            assert_eq!(data, [7; 100]);
            seen.borrow_mut().push(arguments[0]);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        for _ in 0..4 {
            endpoint.request(&to, ASK, &[], Wait::Poll)?;
        }
        let blocked = endpoint.request(&to, ASK, &[], Wait::Poll);
        assert_eq!(blocked, Err(Error::WouldBlock(Blocked::Credit)));
        assert_eq!(endpoint.outstanding()?, 4);
        assert!(player.bundle.wait(Events::CanSend(to), LONG)?);
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all answers", || outstanding() == 0);
        answers.borrow_mut().sort();
        assert_eq!(*answers.borrow(), [0, 2, 3]);
        player.finish()
    });
}

/// Transfers of many parts, and gets of as many.
pub(crate) fn transfers_and_gets_are_whole(world: World) {
    const LENGTH: u64 = 300_000;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let segment = endpoint.new_segment(LENGTH + 10)?;
        let parts = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&parts);
        endpoint.on_bulk(PUT, move |call, range, arguments| {
            seen.borrow_mut().push((range, arguments.to_vec()));
            call.reply(ANSWER, arguments)
        })?;
        if player.number == 0 {
            player.serve_until("the transfer", || !parts.borrow().is_empty());
            assert_eq!(*parts.borrow(), [(5..LENGTH + 5, vec![1, 2, 3])]);
            return player.finish();
        }
        let (answers, gets) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let seen = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |_, _| {
            seen.set(seen.get() + 1);
            Ok(())
        })?;
        let seen = Rc::clone(&gets);
        endpoint.on_bulk(GOT, move |call, range, arguments| {
            assert!(!call.is_request());
            assert_eq!((range, arguments), (10..LENGTH + 10, &[9][..]));
            seen.set(seen.get() + 1);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let data: Vec<u8> = (0..LENGTH).map(|at| (at * at / 7) as u8).collect();
        endpoint.transfer(&to, PUT, 5, &data, &[1, 2, 3], LONG)?;
        player.serve_until("the answer", || answers.get() == 1);
        endpoint.get(&to, GOT, 5..LENGTH + 5, 10, &[9], LONG)?;
        player.serve_until("the bytes", || gets.get() == 1);
        let mut found = vec![0; LENGTH as usize];
        segment.read_at(10, &mut found).unwrap();
        assert!(found == data);
        // One of nothing says whether its place is good.
        endpoint.on_bulk(GOT, {
            let gets = Rc::clone(&gets);
            move |_, range, _| {
                assert_eq!(range, 0..0);
                gets.set(gets.get() + 1);
                Ok(())
            }
        })?;
        endpoint.get(&to, GOT, 7..7, 0, &[], LONG)?;
        player.serve_until("nothing", || gets.get() == 2);
        assert_eq!(endpoint.outstanding()?, 0);
        player.finish()
    });
}

/// A handler learns who asks, and can map that.
pub(crate) fn a_source_can_be_mapped(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let (sources, calls) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(0)));
        let seen = Rc::clone(&sources);
        endpoint.on_short(ASK, move |call, _| {
            seen.borrow_mut().push(call.source());
            Ok(())
        })?;
        let called = Rc::clone(&calls);
        endpoint.on_short(ANSWER, move |call, _| {
            assert!(call.is_request());
            called.set(called.get() + 1);
            Ok(())
        })?;
        if player.number == 0 {
            player.serve_until("requests", || sources.borrow().len() == 40);
            let name = sources.borrow()[0].unwrap();
            assert!(sources.borrow().iter().all(|source| *source == Some(name)));
            let back = endpoint.map(&name, TAG, LONG)?;
            assert_eq!(endpoint.mapped(&back)?, (name, TAG));
            endpoint.request(&back, ANSWER, &[], LONG)?;
            return player.finish();
        }
        let to = player.map(&endpoint, 0, "server", TAG);
        for _ in 0..40 {
            endpoint.request(&to, ASK, &[], LONG)?;
        }
        player.serve_until("a request", || calls.get() == 1);
        player.finish()
    });
}

/// Replies run in the poll of their own bundle, also after their endpoint has moved.
pub(crate) fn bundles_are_polled_apart(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        if player.number == 0 {
            return player.finish();
        }
        let count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&count);
        endpoint.on_short(ANSWER, move |_, arguments| {
            assert_eq!(arguments[0], counted.get());
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let name = endpoint.name()?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let other = player.node.bundle()?;
        for round in 0..6 {
            // It is of one bundle, and the other one is polled while the answer comes.
            let (own, polled) = match round % 2 {
                0 => (&player.bundle, &other),
                _ => (&other, &player.bundle),
            };
            own.adopt(&endpoint)?;
            endpoint.request(&to, ASK, &[round], Wait::Poll)?;
            assert!(own.wait(Events::NotEmpty, LONG)?, "an answer is there");
            assert_eq!(polled.poll()?, 0);
            assert_eq!(count.get(), round);
            if round == 3 {
                // A reply that waits moves, too.
                polled.adopt(&endpoint)?;
                assert_eq!((own.poll()?, polled.poll()?), (0, 1));
            } else {
                assert_eq!(own.poll()?, 1);
            }
            assert_eq!(count.get(), round + 1);
            assert_eq!(endpoint.name()?, name);
        }
        player.bundle.adopt(&endpoint)?;
        player.finish()
    });
}

/// A request from a node to itself.
pub(crate) fn a_node_talks_to_itself(world: World) {
    world.run(1, &|player| {
        let mut server = player.endpoint("server", TAG);
        let mut client = player.bundle.endpoint()?;
        server.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        let count = Rc::new(Cell::new(0));
        let counted = Rc::clone(&count);
        client.on_short(ANSWER, move |_, arguments| {
            assert_eq!(arguments, [counted.get()]);
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let to = client.map(&server.name()?, TAG, LONG)?;
        for number in 0..100 {
            client.request(&to, ASK, &[number], LONG)?;
            player.serve_until("the answer", || count.get() == number + 1);
        }
        player.finish()
    });
}

/// With `Tag::Any` every tag is right; and a tag that changes refuses what came with the old one.
pub(crate) fn tags_may_change(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", Tag::Any);
        endpoint.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        if player.number == 0 {
            let mut last = 0;
            for round in 1..=40_u64 {
                // Between any, one, and none.
                let tag = match round % 3 {
                    0 => Tag::Any,
                    1 => Tag::new(1),
                    _ => Tag::None,
                };
                endpoint.set_tag(tag)?;
                assert_eq!(endpoint.tag()?, tag);
                player.bundle.serve(Wait::millis(1))?;
                last = round;
            }
            assert_eq!(last, 40);
            endpoint.set_tag(Tag::Any)?;
            return player.finish();
        }
        let (answered, returned) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&answered);
        endpoint.on_short(ANSWER, move |_, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let counted = Rc::clone(&returned);
        endpoint.on_returned(move |back| {
            assert_eq!(back.reason, hamlyn_am::Reason::BadTag);
            counted.set(counted.get() + 1);
        })?;
        let to = [1, 2].map(|tag| player.map(&endpoint, 0, "server", Tag::new(tag)));
        let mut sent = 0;
        for round in 0..400 {
            endpoint.request(&to[round % 2], ASK, &[], LONG)?;
            sent += 1;
        }
        player.serve_until("all ends", || answered.get() + returned.get() == sent);
        // At last every tag is right; the server has finished.
        player.bundle.poll()?;
        assert_eq!(endpoint.outstanding()?, 0);
        player.finish()
    });
}

/// One handler takes short, medium and bulk messages and gets, and knows which it has. The name of a
/// replier is that of the translation.
pub(crate) fn handlers_of_any_kind_take_each(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let segment = endpoint.new_segment(1 << 10)?;
        let source = segment.clone();
        endpoint.on_any(ASK, move |call, incoming, arguments| {
            assert!(call.source().is_some());
            match incoming {
                Incoming::Short => call.reply(ANSWER, arguments),
                Incoming::Medium(data) => call.reply_medium(ANSWER, data, arguments),
                Incoming::Bulk(range) => {
                    let mut data = vec![0; (range.end - range.start) as usize];
                    source.read_at(range.start, &mut data).unwrap();
                    call.reply_bulk(ANSWER, 512, &data, arguments)
                }
            }
        })?;
        if player.number == 0 {
            return player.finish();
        }
        let kinds = Rc::new(RefCell::new(Vec::new()));
        let to = player.map(&endpoint, 0, "server", TAG);
        let (server, _) = endpoint.mapped(&to)?;
        let (seen, place) = (Rc::clone(&kinds), segment.clone());
        endpoint.on_any(ANSWER, move |call, incoming, arguments| {
            assert_eq!(call.source(), Some(server));
            let kind = match incoming {
                Incoming::Short => 1,
                Incoming::Medium(data) => {
                    assert_eq!(data, b"medium");
                    2
                }
                Incoming::Bulk(range) => {
                    let mut data = [0; 4];
                    place.read_at(range.start, &mut data).unwrap();
                    assert_eq!((range, &data), (512..516, b"bulk"));
                    3
                }
            };
            assert_eq!(arguments, [kind]);
            seen.borrow_mut().push(kind);
            Ok(())
        })?;
        endpoint.request(&to, ASK, &[1], LONG)?;
        endpoint.request_medium(&to, ASK, b"medium", &[2], LONG)?;
        endpoint.transfer(&to, ASK, 100, b"bulk", &[3], LONG)?;
        player.serve_until("each kind", || kinds.borrow().len() == 3);
        // A get runs the handler at the requester, as a bulk message.
        endpoint.get(&to, ANSWER, 100..104, 512, &[3], LONG)?;
        player.serve_until("the get", || kinds.borrow().len() == 4);
        kinds.borrow_mut().sort();
        assert_eq!(*kinds.borrow(), [1, 2, 3, 3]);
        // It is replaced by one of a single kind, and others come back.
        let returned = Rc::new(Cell::new(0));
        let count = Rc::clone(&returned);
        endpoint.on_returned(move |_| count.set(count.get() + 1))?;
        endpoint.clear_handler(ANSWER)?;
        endpoint.request(&to, ASK, &[1], LONG)?;
        player.serve_until("the reply's rejection", || {
            endpoint.outstanding().is_ok_and(|count| count == 0)
        });
        assert_eq!((kinds.borrow().len(), returned.get()), (4, 0));
        player.finish()
    });
}
