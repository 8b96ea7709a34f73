//! Waiting: deadlines, wake-ups, event loops of others, and what a sleeper costs.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hamlyn::engine::terminus::Completion;
use hamlyn::host::HostError;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{
    Manager, ManagerOptions, Message, NewSlot, SendError, Wait, datagram, service, stream,
    tagged_write,
};
use rustix::event::{PollFd, PollFlags, Timespec, epoll};
use support::{LONG, namespace, open, open_shared, thread_cpu, until};

/// A call that waits.
type Waiting<'a> = &'a mut dyn FnMut(&Manager<ProcessHost>);

#[test]
fn a_wait_ends_at_its_deadline_and_not_before() {
    let mut manager = open(&namespace());
    let mut queue = manager.session().open_queue(16).unwrap();
    let mut tags = tagged_write::Receiver::new(&manager, 64, 16).unwrap();
    let mut inbox = datagram::Receiver::new(&manager, 64).unwrap();
    inbox.ready();
    let options = stream::StreamOptions::default();
    let mut stream = stream::Receiver::new(&manager, options).unwrap();
    for millis in [0, 1, 20] {
        let wait = Wait::millis(millis);
        let waits: [Waiting<'_>; 4] = [
            &mut |manager| {
                let found = manager.session().rcv_block(&mut queue, wait).unwrap();
                assert_eq!(found, None);
            },
            &mut |_| {
                assert_eq!(tags.get_tag(wait), Ok(None));
                assert_eq!(tags.get_specific_tag(1, wait), Ok(None));
            },
            &mut |_| assert!(inbox.recv(wait).unwrap().is_none()),
            &mut |_| assert!(stream.recv(wait).unwrap().is_none()),
        ];
        for act in waits {
            let begun = Instant::now();
            act(&mut manager);
            let elapsed = begun.elapsed();
            assert!(
                elapsed >= Duration::from_millis(millis),
                "{elapsed:?} of {millis} ms"
            );
            assert!(
                elapsed < Duration::from_secs(5),
                "{elapsed:?} of {millis} ms"
            );
        }
    }
    let begun = Instant::now();
    manager.wait(Wait::millis(5)).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(5));
    // A wait for longer than any clock runs is a wait.
    let long = Wait::For(Duration::MAX);
    let ticket = tags.ticket();
    let sender = tagged_write::Sender::grow(&manager, &ticket, long).unwrap();
    sender.send(0, &[], 1, long).unwrap();
    assert_eq!(tags.get_tag(long), Ok(Some(1)));
}

#[test]
fn a_sleeper_is_woken_by_each_message() {
    const ROUNDS: u64 = 300;
    let namespace = namespace();
    // Without polling first, every wait sleeps.
    let sleepy = || {
        let mut options = Options::default().in_namespace(&namespace);
        options.spin_ns = Some(0);
        hamlyn::open_with(options, ManagerOptions::default()).unwrap()
    };
    let here = sleepy();
    let mut receiver = tagged_write::Receiver::new(&here, 64, 16).unwrap();
    let ticket = receiver.ticket();
    std::thread::scope(|scope| {
        let sleepy = &sleepy;
        scope.spawn(move || {
            let there = sleepy();
            let mut answers = tagged_write::Receiver::new(&there, 64, 16).unwrap();
            let sender = tagged_write::Sender::grow(&there, &ticket, LONG).unwrap();
            for round in 0..ROUNDS {
                let answer = answers.ticket().to_bytes();
                sender.send(0, &answer, round, LONG).unwrap();
                assert_eq!(answers.get_tag(Wait::Forever), Ok(Some(round)));
            }
        });
        let mut back = None;
        for round in 0..ROUNDS {
            assert_eq!(receiver.get_tag(Wait::Forever), Ok(Some(round)));
            let sender = back.get_or_insert_with(|| {
                let mut bytes = [0; 52];
                receiver.area().read_at(0, &mut bytes).unwrap();
                let ticket = hamlyn::Ticket::from_bytes(&bytes).unwrap();
                tagged_write::Sender::grow(&here, &ticket, LONG).unwrap()
            });
            sender.send(0, &[], round, LONG).unwrap();
        }
    });
}

#[test]
fn a_sleeper_costs_no_processor_time() {
    let manager = open(&namespace());
    let mut receiver = tagged_write::Receiver::new(&manager, 64, 16).unwrap();
    let mut queue = manager.session().open_queue(16).unwrap();
    let before = thread_cpu();
    assert_eq!(receiver.get_tag(Wait::millis(200)), Ok(None));
    manager
        .session()
        .rcv_block(&mut queue, Wait::millis(200))
        .unwrap();
    manager.wait(Wait::millis(200)).unwrap();
    let used = thread_cpu() - before;
    // It polls for some microseconds before it sleeps.
    assert!(used < Duration::from_millis(20), "{used:?} of 600 ms");
}

/// The loop of an application that waits for other things as well.
#[test]
fn an_event_loop_of_others_wakes_up() {
    const ROUNDS: u64 = 200;
    let namespace = namespace();
    let here = open(&namespace);
    let mut receiver = tagged_write::Receiver::new(&here, 64, 256).unwrap();
    let mut inbox = datagram::Receiver::new(&here, 64).unwrap();
    inbox.ready();
    let (ticket, inbox_ticket) = (receiver.ticket(), inbox.ticket());
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let descriptor = here.session().descriptor().unwrap().try_clone_to_owned();
    let descriptor = descriptor.unwrap();
    let data = epoll::EventData::new_u64(0);
    epoll::add(&watch, &descriptor, data, epoll::EventFlags::IN).unwrap();
    let slept = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let (namespace, slept) = (&namespace, &slept);
        scope.spawn(move || {
            let there = open(namespace);
            let sender = tagged_write::Sender::grow(&there, &ticket, LONG).unwrap();
            let outbox = datagram::Sender::grow(&there, &inbox_ticket, LONG).unwrap();
            until("the loop's first sleep", || {
                (slept.load(Ordering::Relaxed) > 0).then_some(())
            });
            for tag in 0..ROUNDS {
                // In bursts, with pauses in which the loop falls asleep.
                if tag % 10 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                sender.send(0, &[], tag, LONG).unwrap();
            }
            outbox.send(b"end", LONG).unwrap();
        });
        let mut next = 0;
        let begun = Instant::now();
        'all: loop {
            assert!(begun.elapsed() < support::TIMEOUT, "after {next} tags");
            let before = here.session().activity();
            while let Some(tag) = receiver.get_tag(Wait::Poll).unwrap() {
                assert_eq!(tag, next);
                next += 1;
            }
            if let Some(datagram) = inbox.recv(Wait::Poll).unwrap() {
                assert_eq!(datagram, b"end");
                break 'all;
            }
            here.session().prepare_wait();
            here.session().poll();
            if here.session().activity() == before {
                slept.fetch_add(1, Ordering::Relaxed);
                // It is readable when epoll says so, and epoll when poll says so.
                let timeout = Timespec {
                    tv_sec: 10,
                    tv_nsec: 0,
                };
                let mut polled = [PollFd::new(&watch, PollFlags::IN)];
                let ready = rustix::event::poll(&mut polled, Some(&timeout)).unwrap();
                assert_eq!(ready, 1, "nothing woke the loop after {next} tags");
            }
            here.session().end_wait();
        }
        while let Some(tag) = receiver.get_tag(Wait::Poll).unwrap() {
            assert_eq!(tag, next);
            next += 1;
        }
        assert_eq!(next, ROUNDS);
    });
}

/// Nobody is read while both write, unless writing reads (`Hamlyn 2.8`).
#[test]
fn long_sends_of_both_sides_to_each_other_end() {
    const BYTES: usize = 48 << 20;
    let namespace = namespace();
    let tickets = std::sync::Mutex::new([None; 2]);
    let both = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for me in 0..2_usize {
            let (namespace, tickets, both) = (&namespace, &tickets, &both);
            scope.spawn(move || {
                let manager = open(namespace);
                let area = manager.session().allocate(BYTES as u64).unwrap();
                let mut queue = manager.session().open_queue(16).unwrap();
                let new = NewSlot::new(&area).entries(1).queue(&queue);
                let slot = manager.session().open_slot(new).unwrap();
                let ticket = slot.ticket(0, 0, BYTES as u64).unwrap();
                tickets.lock().unwrap()[me] = Some(ticket);
                both.wait();
                let other = tickets.lock().unwrap()[1 - me].unwrap();
                let target = manager.session().target(&other, LONG).unwrap();
                let data = vec![me as u8 + 1; BYTES];
                let terminus = manager.terminus();
                manager
                    .session()
                    .send_msg(terminus, &target, &Message::new(&data), LONG)
                    .unwrap();
                assert!(
                    manager
                        .session()
                        .rcv_block(&mut queue, LONG)
                        .unwrap()
                        .is_some()
                );
                let mut got = vec![0; BYTES];
                area.read_at(0, &mut got).unwrap();
                assert!(got.iter().all(|&byte| byte == 2 - me as u8));
                both.wait();
            });
        }
    });
}

/// A sender that sleeps for want of room in the ring is woken when the room comes back.
#[test]
fn a_sender_asleep_for_want_of_room_is_woken() {
    for messages in [300, 3_000, 20_000_u64] {
        let namespace = namespace();
        let here = open(&namespace);
        let mut receiver = tagged_write::Receiver::new(&here, 64, 1 << 16).unwrap();
        let ticket = receiver.ticket();
        std::thread::scope(|scope| {
            let namespace = &namespace;
            let sender = scope.spawn(move || {
                let mut options = Options::default().in_namespace(namespace);
                options.spin_ns = Some(0);
                let there = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
                let sender = tagged_write::Sender::grow(&there, &ticket, LONG).unwrap();
                let mut last = None;
                for tag in 0..messages {
                    last = Some(sender.send(0, &[7; 64], tag, LONG).unwrap());
                }
                // The wait for the rest of the queue sleeps, too.
                assert_eq!(
                    there.session().drain(last.unwrap(), LONG),
                    Ok(Completion::Sent)
                );
                there.session().poll();
            });
            // Let it fill everything and sleep; then take all of it.
            std::thread::sleep(Duration::from_millis(5));
            for expected in 0..messages {
                assert_eq!(receiver.get_tag(LONG), Ok(Some(expected)));
            }
            sender.join().unwrap();
        });
    }
}

/// A stream's sender that sleeps for want of credit is woken by the release.
#[test]
fn a_sender_asleep_for_want_of_credit_is_woken() {
    let namespace = namespace();
    let here = open(&namespace);
    let options = stream::StreamOptions {
        pieces: 2,
        piece_bytes: 64,
        limit_bytes: 128,
        ahead: false,
    };
    let mut receiver = stream::Receiver::new(&here, options).unwrap();
    let seed = receiver.make_seed();
    std::thread::scope(|scope| {
        let namespace = &namespace;
        scope.spawn(move || {
            let mut options = Options::default().in_namespace(namespace);
            options.spin_ns = Some(0);
            let there = hamlyn::open_with(options, ManagerOptions::default()).unwrap();
            let mut sender = stream::Sender::grow(&there, &seed, LONG).unwrap();
            for number in 0..200_u8 {
                sender.send(&[number; 64], Wait::Forever).unwrap();
            }
            sender.close(LONG).unwrap();
        });
        for number in 0..200_u8 {
            let record = receiver.recv(LONG).unwrap().unwrap();
            assert_eq!(*record, [number; 64]);
            if number % 16 == 0 {
                std::thread::sleep(Duration::from_micros(300));
            }
        }
    });
}

/// What cannot be sent in time is not sent in part without saying so.
#[test]
fn a_long_send_that_is_out_of_time_says_how_much_was_sent() {
    let namespace = namespace();
    let here = open_shared(&namespace);
    let there = open(&namespace);
    let area = there.session().allocate(64 << 20).unwrap();
    let mut queue = there.session().open_queue(16).unwrap();
    let new = NewSlot::new(&area).entries(1).queue(&queue);
    let slot = there.session().open_slot(new).unwrap();
    let ticket = slot.ticket(0, 0, 64 << 20).unwrap();
    let target = here.session().target(&ticket, LONG).unwrap();
    let data = vec![1; 64 << 20];
    let terminus = here.terminus();
    let begun = Instant::now();
    let message = Message::new(&data);
    let sent = here
        .session()
        .send_msg(terminus, &target, &message, Wait::millis(20));
    let error = sent.unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(5));
    let SendError::Cut { sent_bytes, .. } = error else {
        panic!("{error}")
    };
    assert!(sent_bytes > 0 && sent_bytes < 64 << 20);
    assert!(error.to_string().contains("re-arm"), "{error}");
    // The receiver is not notified; it forgets the part, and the next message is whole.
    assert_eq!(
        there.session().rcv_block(&mut queue, Wait::millis(20)),
        Ok(None)
    );
    slot.metadata()
        .unwrap()
        .entry(0)
        .unwrap()
        .reset_accumulator();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let data = vec![2; 1 << 20];
            let message = Message::new(&data);
            here.session()
                .send_msg(terminus, &target, &message, LONG)
                .unwrap();
        });
        let found = there.session().rcv_block(&mut queue, LONG).unwrap();
        assert!(found.is_some());
    });
    let mut got = vec![0; 1 << 20];
    area.read_at(0, &mut got).unwrap();
    assert!(got.iter().all(|&byte| byte == 2));
}

/// An event loop is told for how long to wait at most: here until memory that a burst needed can be
/// given back.
#[test]
fn an_event_loop_is_told_when_to_look_though_nothing_comes() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut receiver = tagged_write::Receiver::new(&here, 64, 16).unwrap();
    let sender = tagged_write::Sender::grow(&there, &receiver.ticket(), LONG).unwrap();
    let longest_wait = |manager: &Manager<ProcessHost>| {
        let span = manager.session().prepare_wait();
        manager.session().poll();
        manager.session().end_wait();
        span
    };
    assert_eq!(longest_wait(&there), None, "nothing is to be done");
    let mut sent = 0;
    while sender.send(0, &[], sent, Wait::Poll).is_ok() {
        sent += 1;
    }
    for tag in 0..sent {
        assert_eq!(receiver.get_tag(LONG), Ok(Some(tag)));
        there.session().poll();
    }
    assert_eq!(there.session().flush(LONG), Ok(true));
    let span = longest_wait(&there).expect("memory can be given back");
    assert!(span <= Duration::from_secs(1), "{span:?}");
    let begun = Instant::now();
    while let Some(span) = longest_wait(&there) {
        assert!(begun.elapsed() < support::TIMEOUT);
        std::thread::sleep(span);
    }
}

/// Once for each time that it was asked for; in a call that blocks, and in an event loop.
#[test]
fn waits_look_again_in_time_though_nothing_happens() {
    const SPAN: Duration = Duration::from_millis(10);
    let mut manager = open(&namespace());
    let mut session = manager.session();
    let mut next = Instant::now() + SPAN;
    let mut times = 0;
    let found = session.wait_for(Wait::Forever, |session| {
        session.poll();
        let now = Instant::now();
        if now >= next {
            times += 1;
            next = now + SPAN;
        }
        // As a protocol with a time-out does: whenever it looks.
        session.look_within(next - now);
        Ok::<_, HostError>((times == 3).then_some(times))
    });
    assert_eq!(found, Ok(Some(3)));
    drop(session);
    // The look that was asked for last is still due.
    manager.session().look_within(Duration::from_secs(3600));
    let due = until("what is due", || {
        let sleep = manager.prepare_sleep(Wait::Forever).unwrap()?;
        let span = sleep.timeout().unwrap();
        std::thread::sleep(span);
        (span > Duration::ZERO).then_some(span)
    });
    assert!(due <= SPAN, "{due:?}");
    let news = manager.prepare_sleep(Wait::Forever).unwrap();
    assert!(news.is_none(), "{:?}", news.map(|sleep| sleep.timeout()));
}

/// An event loop that asks them and then sleeps sees in time that somebody asked and did not come.
#[test]
fn end_points_with_time_outs_have_event_loops_look_again() {
    let sleeps_for = |ask: &mut dyn FnMut(&Manager<ProcessHost>)| {
        let mut manager = open(&namespace());
        ask(&manager);
        until("a sleep", || {
            let sleep = manager.prepare_sleep(Wait::Forever).unwrap()?;
            Some(sleep.timeout())
        })
    };
    let mut service = None;
    let of_service = sleeps_for(&mut |manager| {
        let options = service::ServiceOptions::default();
        let service = service.insert(manager.bind_service("service", options).unwrap());
        assert!(service.next(Wait::Poll).unwrap().is_none());
    });
    let mut log = None;
    let of_stream = sleeps_for(&mut |manager| {
        let options = stream::StreamOptions::default();
        let log = log.insert(manager.bind_stream("log", options).unwrap());
        assert!(log.recv(Wait::Poll).unwrap().is_none());
    });
    // Well before the ten seconds are over that whoever asked has.
    for span in [of_service, of_stream] {
        assert!(
            span.is_some_and(|span| span <= Duration::from_secs(5)),
            "{span:?}"
        );
    }
}
