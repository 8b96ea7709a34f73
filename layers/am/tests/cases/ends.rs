//! Ends of endpoints and waits while something is under way: each wait here is long, so that one
//! which is not woken is found.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_am::{Events, Name, Operation, Reason, Tag};

use crate::World;
use crate::player::LONG;

const TAG: Tag = Tag::new(7);
const ASK: u8 = 3;
const ANSWER: u8 = 4;
const ASK_LONG: u8 = 5;
const PUT: u8 = 7;

/// Requests in the queue of an endpoint that is dropped come back, as those do that come later.
pub(crate) fn what_waits_for_a_dropped_endpoint_comes_back(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let apart = player.node.bundle()?;
            let mut doomed = apart.endpoint()?;
            doomed.set_tag(TAG)?;
            doomed.on_short(ASK, |_, _| panic!("nobody polls it"))?;
            player.node.publish("doomed", &doomed.name()?)?;
            assert!(apart.wait(Events::NotEmpty, LONG)?);
            drop(doomed);
            return player.finish();
        }
        let backs = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&backs);
        endpoint.on_returned(move |back| {
            assert_eq!(back.reason, Reason::BadEndpoint);
            seen.borrow_mut()
                .push((back.handler, back.arguments.to_vec(), back.data.len()));
        })?;
        let to = player.map(&endpoint, 0, "doomed", TAG);
        for number in 0..5 {
            endpoint.request(&to, ASK, &[number], Wait::Poll)?;
        }
        endpoint.request_medium(&to, ASK_LONG, &[1; 500], &[5], LONG)?;
        player.serve_until("what comes back", || backs.borrow().len() == 6);
        backs.borrow_mut().sort();
        let mut expected: Vec<_> = (0..5).map(|number| (ASK, vec![number], 0)).collect();
        expected.push((ASK_LONG, vec![5], 500));
        assert_eq!(*backs.borrow(), expected);
        assert_eq!(endpoint.outstanding()?, 0);
        player.finish()
    });
}

/// Transfers whose replies are rejected are over, and more follow than there are at a time.
pub(crate) fn a_transfer_ends_though_its_reply_is_rejected(mut world: World) {
    world.options.medium_bytes_max = 128;
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.new_segment(1000)?;
        endpoint.on_bulk(PUT, |call, _, _| call.reply(99, &[]))?;
        if player.number == 0 {
            let rejected = Rc::new(Cell::new(0));
            let counted = Rc::clone(&rejected);
            endpoint.on_returned(move |_| counted.set(counted.get() + 1))?;
            player.serve_until("all rejections", || rejected.get() == 70);
            return player.finish();
        }
        let to = player.map(&endpoint, 0, "server", TAG);
        for _ in 0..70 {
            endpoint.transfer(&to, PUT, 0, &[7; 300], &[], LONG)?;
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all ends", || outstanding() == 0);
        player.finish()
    });
}

/// The handler of a get is a message that a wait has waited for, also if its data were found by
/// somebody else.
pub(crate) fn a_get_ends_a_wait(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.new_segment(1000)?;
        if player.number == 0 {
            return player.finish();
        }
        let gets = Rc::new(Cell::new(0));
        let counted = Rc::clone(&gets);
        endpoint.on_bulk(PUT, move |_, _, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        for round in 1..=3 {
            endpoint.get(&to, PUT, 0..500, 0, &[], LONG)?;
            assert!(player.bundle.wait(Events::NotEmpty, LONG)?);
            player.serve_until("the bytes", || gets.get() == round);
        }
        player.finish()
    });
}

/// A get that is whole comes back if its segment goes before its handler has run: that never has a
/// range of a segment that is no more.
pub(crate) fn a_get_ends_with_its_segment(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.new_segment(1000)?;
        if player.number == 0 {
            return player.finish();
        }
        let (gets, backs) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let counted = Rc::clone(&gets);
        endpoint.on_bulk(PUT, move |_, _, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let seen = Rc::clone(&backs);
        endpoint.on_returned(move |back| seen.borrow_mut().push((back.operation, back.reason)))?;
        let to = player.map(&endpoint, 0, "server", TAG);
        for (round, length) in [0, 500, 1000].into_iter().enumerate() {
            endpoint.get(&to, PUT, 0..length, 0, &[], LONG)?;
            assert!(player.bundle.wait(Events::NotEmpty, LONG)?);
            match round % 2 {
                0 => endpoint.set_segment(None)?,
                _ => drop(endpoint.new_segment(100)?),
            }
            player.serve_until("its end", || gets.get() + backs.borrow().len() > round);
            endpoint.new_segment(1000)?;
        }
        assert_eq!(gets.get(), 0);
        assert_eq!(*backs.borrow(), [(Operation::Get, Reason::BadOffset); 3]);
        player.finish()
    });
}

/// Answers that the requester had no room for are sent again by a server that sleeps.
pub(crate) fn a_server_that_sleeps_sends_answers_again(mut world: World) {
    world.options.reply_queue_bytes = 1024;
    world.options.medium_bytes_max = 256;
    world.run(3, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let asked = Rc::new(Cell::new(0));
        let counted = Rc::clone(&asked);
        endpoint.on_short(ASK, move |call, arguments| {
            counted.set(counted.get() + 1);
            call.reply_medium(ANSWER, &[1; 200], arguments)
        })?;
        if player.number == 0 {
            player.serve_until("the last request", || asked.get() == 17);
            assert!(player.node.statistics()?.sent_again > 0);
            return player.finish();
        }
        if player.number == 2 {
            player.bundle.serve(Wait::millis(100))?;
            player.node.publish("late", &endpoint.name()?)?;
            return player.finish();
        }
        let answers = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&answers);
        endpoint.on_medium(ANSWER, move |_, _, arguments| {
            seen.borrow_mut().push(arguments[0]);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        for number in 0..16 {
            endpoint.request(&to, ASK, &[number], Wait::Poll)?;
        }
        // Their server goes to sleep. A flush moves packets, and nobody takes the answers.
        player.look_up(2, "late");
        player.node.flush(LONG)?;
        player.serve_until("all answers", || answers.borrow().len() == 16);
        endpoint.request(&to, ASK, &[16], LONG)?;
        player.serve_until("the last answer", || answers.borrow().len() == 17);
        answers.borrow_mut().sort();
        assert_eq!(*answers.borrow(), (0..17).collect::<Vec<_>>());
        player.finish()
    });
}

/// Replies that wait for a bundle free what they hold when their endpoint is dropped, and when
/// their handler panics.
pub(crate) fn replies_that_wait_hold_nothing_after_their_end(world: World) {
    world.run(1, &|player| {
        let mut server = player.endpoint("server", TAG);
        server.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        let apart = player.node.bundle()?;
        let client = || {
            let mut client = apart.endpoint().unwrap();
            client
                .on_short(ANSWER, |_, _| {
                    std::panic::resume_unwind(Box::new("on purpose"))
                })
                .unwrap();
            let to = client.map(&server.name().unwrap(), TAG, LONG).unwrap();
            client.request(&to, ASK, &[1], LONG).unwrap();
            player.serve_until("the request", || {
                apart.wait(Events::NotEmpty, Wait::Poll).unwrap()
            });
            client
        };
        // More than there are records.
        for _ in 0..40 {
            drop(client());
        }
        for _ in 0..40 {
            let client = client();
            let poll = || apart.poll().map(drop);
            let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll));
            assert!(polled.is_err());
            player.bundle.poll()?;
            assert_eq!(client.outstanding()?, 0);
        }
        player.finish()
    });
}

/// A name that lies about where answers go is believed until the peer says it itself.
pub(crate) fn a_peer_says_itself_where_answers_go(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("endpoint", TAG);
        endpoint.on_short(ASK, |call, arguments| match arguments[0] {
            // By a credit.
            0 => Ok(()),
            _ => call.reply(ANSWER, arguments),
        })?;
        let answers = Rc::new(Cell::new(0));
        let counted = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |_, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        if player.number == 0 {
            let mut bytes = player.look_up(1, "endpoint").to_bytes();
            bytes[44] ^= 1;
            endpoint.map(&Name::from_bytes(&bytes).unwrap(), TAG, LONG)?;
            player.node.publish("mapped", &endpoint.name()?)?;
            return player.finish();
        }
        let to = player.map(&endpoint, 0, "mapped", TAG);
        for round in 0..3 {
            endpoint.request(&to, ASK, &[round], LONG)?;
            let outstanding = || endpoint.outstanding().unwrap();
            player.serve_until("the answer", || outstanding() == 0);
        }
        assert_eq!(answers.get(), 2);
        player.finish()
    });
}

/// Requests that come back use up no stamps: the next one is not taken for the last that came.
pub(crate) fn a_request_is_new_after_127_that_came_back(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        if player.number == 0 {
            player.finish()?;
            assert_eq!(player.node.statistics()?.violations, 0);
            return Ok(());
        }
        let (answers, backs) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |_, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        let counted = Rc::clone(&backs);
        endpoint.on_returned(move |back| {
            assert_eq!(back.reason, Reason::BadTag);
            counted.set(counted.get() + 1);
        })?;
        let to = player.map(&endpoint, 0, "server", TAG);
        let wrong = player.map(&endpoint, 0, "server", Tag::new(8));
        for round in 1..=2 {
            endpoint.request(&to, ASK, &[], LONG)?;
            player.serve_until("the answer", || answers.get() == round);
            for _ in 0..127 {
                endpoint.request(&wrong, ASK, &[], LONG)?;
                let outstanding = || endpoint.outstanding().unwrap();
                player.serve_until("the return", || outstanding() == 0);
            }
            player.serve_until("all returns", || backs.get() == 127 * round);
        }
        player.finish()
    });
}

/// What is outstanding over a translation that is unmapped ends as it would have, and its number is
/// free then.
pub(crate) fn a_translation_may_go_under_traffic(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        endpoint.on_short(ASK, |call, arguments| call.reply(ANSWER, arguments))?;
        if player.number == 0 {
            return player.finish();
        }
        let answers = Rc::new(Cell::new(0));
        let counted = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |_, _| {
            counted.set(counted.get() + 1);
            Ok(())
        })?;
        for round in 1..=20 {
            let tag = if round % 2 == 0 { TAG } else { Tag::new(8) };
            let to = player.map(&endpoint, 0, "server", tag);
            for _ in 0..10 {
                endpoint.request(&to, ASK, &[], LONG)?;
            }
            endpoint.unmap(to)?;
            assert!(endpoint.request(&to, ASK, &[], LONG).is_err());
            let outstanding = || endpoint.outstanding().unwrap();
            player.serve_until("all ends", || outstanding() == 0);
            assert_eq!(answers.get(), round / 2 * 10);
        }
        player.finish()
    });
}

/// A reply that was put aside for its bundle is a reply, though its link ends before the
/// bundle is polled.
pub(crate) fn an_answer_that_waits_survives_the_end_of_its_link(world: World) {
    world.run(2, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let asked = Rc::new(Cell::new(false));
            let seen = Rc::clone(&asked);
            endpoint.on_short(ASK, move |call, arguments| {
                seen.set(true);
                call.reply(ANSWER, arguments)
            })?;
            player.serve_until("a request", || asked.get());
            assert!(player.node.flush(LONG)?);
            player.leave();
            return Ok(());
        }
        let (answers, backs) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (answer, back) = (Rc::clone(&answers), Rc::clone(&backs));
        endpoint.on_short(ANSWER, move |_, arguments| {
            answer.set(answer.get() + arguments[0]);
            Ok(())
        })?;
        endpoint.on_returned(move |_| back.set(back.get() + 1))?;
        let to = player.map(&endpoint, 0, "server", TAG);
        endpoint.request(&to, ASK, &[5], LONG)?;
        // It polls another bundle, and looks.
        let other = player.node.bundle()?;
        let mut looks = 0;
        while endpoint.link_end(&to)?.is_none() {
            other.serve(Wait::millis(1))?;
            player.bundle.wait(Events::NotEmpty, Wait::Poll)?;
            looks += 1;
            assert!(looks < 60_000, "the link does not end");
        }
        for _ in 0..10 {
            other.serve(Wait::millis(1))?;
        }
        player.bundle.poll()?;
        player.bundle.poll()?;
        assert_eq!((answers.get(), backs.get()), (5, 0));
        assert_eq!(endpoint.outstanding()?, 0);
        player.leave();
        Ok(())
    });
}

/// All peers together had sent more than a poll takes.
pub(crate) fn a_request_to_a_peer_that_is_gone_comes_back_after_all_of_the_peer(world: World) {
    const PEERS: usize = 6;
    const SENT: u32 = 16;
    const HOLD: u8 = 8;
    world.run(1 + PEERS, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        if player.number == 0 {
            let taken = Rc::new(RefCell::new([0; PEERS]));
            let had = Rc::clone(&taken);
            endpoint.on_short(ASK, move |_, arguments| {
                had.borrow_mut()[arguments[0] as usize] += 1;
                Ok(())
            })?;
            let (backs, had) = (Rc::new(Cell::new(0)), Rc::clone(&taken));
            let back = Rc::clone(&backs);
            endpoint.on_returned(move |returned| {
                let peer = returned.arguments[0] as usize;
                assert_eq!(returned.reason, Reason::Unreachable);
                assert_eq!(had.borrow()[peer], SENT, "of peer {peer}");
                back.set(back.get() + 1);
            })?;
            let to: Vec<_> = (1..=PEERS)
                .map(|peer| player.map(&endpoint, peer, "server", TAG))
                .collect();
            for (peer, to) in (0..).zip(&to) {
                endpoint.request(to, HOLD, &[peer], LONG)?;
            }
            // Its messages wait.
            let other = player.node.bundle()?;
            let mut looks = 0;
            for to in &to {
                while !endpoint.is_drained(to)? {
                    other.serve(Wait::millis(1))?;
                    looks += 1;
                    assert!(looks < 60_000, "the link does not end");
                }
            }
            player.serve_until("all that comes back", || backs.get() == PEERS);
            assert_eq!(endpoint.outstanding()?, 0);
            player.leave();
            return Ok(());
        }
        let held = Rc::new(RefCell::new(None));
        let hold = Rc::clone(&held);
        endpoint.on_short(HOLD, move |call, _| {
            *hold.borrow_mut() = Some(call.defer()?);
            Ok(())
        })?;
        player.serve_until("a request", || held.borrow().is_some());
        let to = player.map(&endpoint, 0, "server", TAG);
        for _ in 0..SENT {
            endpoint.request(&to, ASK, &[player.number as u32 - 1], LONG)?;
        }
        assert!(player.node.flush(LONG)?);
        player.leave();
        // The request is never answered: its link ends first.
        std::mem::forget(held.take());
        Ok(())
    });
}
