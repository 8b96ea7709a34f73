//! Event loops of others: [`Manager::prepare_sleep`] in every strategy, alone and among threads.

mod support;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hamlyn::host::Host;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::{AnyThread, Sharing};
use hamlyn::{Manager, ManagerOptions, Message, Strategy, Wait, datagram, tagged_write};
use rustix::event::{Timespec, epoll};
use support::{LONG, TIMEOUT, namespace, open, open_shared, thread_cpu};

fn options(namespace: &str, spin_ns: u64) -> Options {
    let mut options = Options::default().in_namespace(namespace);
    options.spin_ns = Some(spin_ns);
    options
}

fn driven(strategy: Strategy) -> ManagerOptions {
    ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    }
}

/// An `epoll` of a program, with a manager in it.
struct Loop(OwnedFd);

impl Loop {
    fn over(manager: &impl AsFd, how: epoll::EventFlags) -> Self {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        epoll::add(&set, manager, epoll::EventData::new_u64(0), how).unwrap();
        Self(set)
    }

    /// Whether anything woke it.
    fn wait(&self, span: Option<Duration>) -> bool {
        let span = Timespec::try_from(span.unwrap_or(TIMEOUT)).unwrap();
        let mut events = Vec::with_capacity(4);
        let room = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&self.0, room, Some(&span)).unwrap();
        !events.is_empty()
    }

    /// Asks until there is something, and sleeps in between. How often it slept.
    fn until<H: Host, R>(
        &self,
        manager: &mut Manager<H>,
        mut ask: impl FnMut() -> Option<R>,
    ) -> (R, u32) {
        let mut slept = 0;
        let begun = Instant::now();
        loop {
            if let Some(found) = ask() {
                return (found, slept);
            }
            assert!(begun.elapsed() < TIMEOUT, "it did not come");
            if let Some(sleep) = manager.prepare_sleep(Wait::Forever).unwrap() {
                let span = sleep.timeout();
                let is_rung = self.wait(span);
                if span != Some(Duration::ZERO) {
                    slept += 1;
                    assert!(is_rung || span.is_some(), "nothing woke the loop");
                }
            }
        }
    }
}

/// Both sides wait in an epoll for every message, and never poll before: a ring that is lost stops
/// both.
#[test]
fn loops_that_answer_each_other_lose_no_ring() {
    const ROUNDS: u64 = 300;
    for (strategy, how) in Strategy::ALL.into_iter().flat_map(|strategy| {
        [
            epoll::EventFlags::IN,
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        ]
        .map(|how| (strategy, how))
    }) {
        let namespace = namespace();
        let tickets = [const { std::sync::OnceLock::new() }; 2];
        std::thread::scope(|scope| {
            for me in 0..2 {
                let (namespace, tickets) = (&namespace, &tickets);
                scope.spawn(move || {
                    let options = options(namespace, 0);
                    let mut manager = hamlyn::open_with(options, driven(strategy)).unwrap();
                    let mut tags = tagged_write::Receiver::new(&manager, 64, 64).unwrap();
                    tickets[me].set(tags.ticket()).unwrap();
                    let theirs = tickets[1 - me].wait();
                    let sender = tagged_write::Sender::grow(&manager, theirs, LONG).unwrap();
                    let events = Loop::over(&manager, how);
                    let mut slept = 0;
                    for round in 0..ROUNDS {
                        if me == 0 {
                            sender.send(0, &[], round, LONG).unwrap();
                        }
                        let (tag, times) =
                            events.until(&mut manager, || tags.get_tag(Wait::Poll).unwrap());
                        assert_eq!(tag, round);
                        slept += times;
                        if me == 1 {
                            if round % 8 == 0 {
                                std::thread::sleep(Duration::from_micros(200));
                            }
                            sender.send(0, &[], round, LONG).unwrap();
                        }
                    }
                    manager.flush(LONG).unwrap();
                    assert!(me == 1 || slept > 0, "{strategy:?}: it never slept");
                });
            }
        });
    }
}

/// Waits until somebody is linked.
fn linked<H: Host>(manager: &Manager<H>) {
    support::until("the link", || {
        manager.session().poll();
        manager.session().peers().next().map(drop)
    });
}

#[test]
fn a_loop_sleeps_as_long_as_it_is_told_and_costs_nothing_meanwhile() {
    let mut manager = open(&namespace());
    let events = Loop::over(&manager, epoll::EventFlags::IN);
    while manager.prepare_sleep(Wait::Poll).unwrap().is_none() {}
    // No time, no sleep.
    let sleep = manager.prepare_sleep(Wait::Poll).unwrap().unwrap();
    assert_eq!(sleep.timeout(), Some(Duration::ZERO));
    drop(sleep);
    let before = thread_cpu();
    let span = Duration::from_millis(200);
    let begun = Instant::now();
    let mut left = span;
    while !left.is_zero() {
        let sleep = manager.prepare_sleep(Wait::For(left)).unwrap().unwrap();
        let most = sleep.timeout().unwrap();
        assert!(most <= left, "{most:?} of {left:?}");
        assert!(!events.wait(Some(most)), "nobody rang");
        drop(sleep);
        left = span.saturating_sub(begun.elapsed());
    }
    let used = thread_cpu() - before;
    assert!(used < Duration::from_millis(20), "{used:?} of {span:?}");
    let sleep = manager.prepare_sleep(Wait::Forever).unwrap().unwrap();
    assert_eq!(sleep.timeout(), None);
}

/// What an end point finds for another one, and what another thread's call takes, ends a sleep that
/// was prepared before.
#[test]
fn a_sleep_that_was_prepared_before_something_happened_has_no_time() {
    let namespace = namespace();
    let mut here = open(&namespace);
    let there = open(&namespace);
    let mut tags = tagged_write::Receiver::new(&here, 64, 64).unwrap();
    let mut inbox = datagram::Receiver::new(&here, 64).unwrap();
    inbox.ready();
    let outbox = datagram::Sender::grow(&there, &inbox.ticket(), LONG).unwrap();
    let events = Loop::over(&here, epoll::EventFlags::IN);
    linked(&here);
    while here.prepare_sleep(Wait::Poll).unwrap().is_none() {}
    let sleep = here.prepare_sleep(Wait::Forever).unwrap().unwrap();
    assert_eq!(sleep.timeout(), None);
    outbox.send(b"news", LONG).unwrap();
    // It is for the inbox.
    assert_eq!(tags.get_tag(Wait::Poll), Ok(None));
    assert_eq!(sleep.timeout(), Some(Duration::ZERO));
    assert!(events.wait(None), "it is rung for");
    drop(sleep);
    assert!(here.prepare_sleep(Wait::Forever).unwrap().is_none());
    assert_eq!(inbox.recv(Wait::Poll).unwrap().unwrap(), b"news");
    // A call that blocks in between leaves the sleep as it is.
    while here.prepare_sleep(Wait::Poll).unwrap().is_none() {}
    let sleep = here.prepare_sleep(Wait::Forever).unwrap().unwrap();
    assert_eq!(tags.get_tag(Wait::millis(5)), Ok(None));
    inbox.ready();
    outbox.send(b"more", LONG).unwrap();
    assert!(events.wait(sleep.timeout()), "it is rung for");
}

#[test]
fn a_loop_that_is_never_idle_looks_at_other_things_too() {
    let namespace = namespace();
    let mut here = open(&namespace);
    let there = open(&namespace);
    let mut tags = tagged_write::Receiver::new(&here, 64, 64).unwrap();
    let sender = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
    let mut in_a_row = 0;
    let looked = (0..1_000).any(|tag| {
        sender.send(0, &[], tag, LONG).unwrap();
        let sleep = here.prepare_sleep(Wait::Forever).unwrap();
        in_a_row += 1;
        match &sleep {
            None => assert_eq!(tags.get_tag(LONG), Ok(Some(tag))),
            Some(sleep) => assert_eq!(sleep.timeout(), Some(Duration::ZERO)),
        }
        sleep.is_some()
    });
    assert!(looked && in_a_row <= 65, "{in_a_row}");
}

#[test]
fn the_death_of_a_peer_ends_a_sleep() {
    let namespace = namespace();
    let mut here = open(&namespace);
    let tags = tagged_write::Receiver::new(&here, 64, 64).unwrap();
    let there = open(&namespace);
    let sender = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
    sender.send(0, &[], 1, LONG).unwrap();
    let events = Loop::over(&here, epoll::EventFlags::IN);
    linked(&here);
    let watched = here.clone();
    let is_lost = || watched.session().peers().next().is_none();
    std::thread::scope(|scope| {
        drop(sender);
        let there = there.detach().unwrap();
        while here.prepare_sleep(Wait::Poll).unwrap().is_none() {}
        let sleep = here.prepare_sleep(Wait::Forever).unwrap().unwrap();
        assert_eq!(sleep.timeout(), None);
        scope.spawn(move || drop(there));
        assert!(events.wait(None), "nothing woke the loop");
        drop(sleep);
        events.until(&mut here, || is_lost().then_some(()));
    });
}

/// Two loops, and two threads that block, over one manager; each has messages of its own, and any
/// may take them off the link.
#[test]
fn loops_and_blocking_calls_of_several_threads_share_a_manager() {
    const TAGS: u64 = 400;
    for (strategy, spin_ns) in Strategy::ALL
        .into_iter()
        .flat_map(|strategy| [0, 20_000].map(|spin_ns| (strategy, spin_ns)))
    {
        let namespace = namespace();
        let options = options(&namespace, spin_ns);
        let manager: Manager<ProcessHost<AnyThread>> =
            hamlyn::open_shared(options, driven(strategy)).unwrap();
        let there = open_shared(&namespace);
        let taken = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let mut tags = tagged_write::Receiver::new(&manager, 64, 1_024).unwrap();
                let sender = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
                let mut handle = manager.clone();
                let there = there.clone();
                let taken = &taken;
                scope.spawn(move || {
                    let events = Loop::over(&handle, epoll::EventFlags::IN);
                    for tag in 0..TAGS {
                        let found = if number < 2 {
                            events
                                .until(&mut handle, || tags.get_tag(Wait::Poll).unwrap())
                                .0
                        } else {
                            let found = tags.get_tag(LONG).unwrap();
                            found.unwrap_or_else(|| {
                                panic!("nothing woke it: {strategy:?}, {spin_ns} ns")
                            })
                        };
                        assert_eq!(found, tag, "{strategy:?}");
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                });
                scope.spawn(move || {
                    let mut random = support::Random::new(number);
                    for tag in 0..TAGS {
                        // Sometimes all of them fall asleep.
                        if random.below(16) == 0 {
                            std::thread::sleep(Duration::from_micros(random.below(500)));
                        }
                        sender.send(0, &[], tag, LONG).unwrap();
                    }
                    // What found no room waits for a call of this side.
                    there.flush(LONG).unwrap();
                });
            }
        });
        assert_eq!(taken.load(Ordering::Relaxed), 4 * TAGS);
        there.flush(LONG).unwrap();
    }
}

/// While one sleeps, another looks so often and finds so little that links are looked at more
/// seldom. Their peers ring all the same.
#[test]
fn looks_beside_a_sleep_leave_it_to_be_rung_for() {
    const PEERS: usize = 20;
    const LOOKS: u32 = 5_000;
    let namespace = namespace();
    let manager = open_shared(&namespace);
    let mut tags = tagged_write::Receiver::new(&manager, 64, 64).unwrap();
    let ticket = tags.ticket();
    let peers: Vec<_> = (0..PEERS).map(|_| open(&namespace)).collect();
    let grow = |peer| tagged_write::Sender::grow(peer, &ticket, LONG).unwrap();
    let senders: Vec<_> = peers.iter().map(grow).collect();
    let events = Loop::over(&manager, epoll::EventFlags::IN);
    for sender in &senders {
        // Each link is looked at often when the sleep begins.
        for sender in &senders {
            sender.send(0, &[], 1, LONG).unwrap();
            assert_eq!(tags.get_tag(LONG), Ok(Some(1)));
        }
        let mut handle = manager.clone();
        let sleep = loop {
            match handle.prepare_sleep(Wait::Forever).unwrap() {
                Some(sleep) if sleep.timeout() != Some(Duration::ZERO) => break sleep,
                _ => {}
            }
        };
        for _ in 0..LOOKS {
            manager.session().poll();
        }
        sender.send(0, &[], 2, LONG).unwrap();
        assert!(events.wait(None), "nobody rang");
        drop(sleep);
        assert_eq!(tags.get_tag(LONG), Ok(Some(2)));
    }
}

/// A loop that does not return from its sleep keeps nobody else from theirs.
#[test]
fn a_sleep_that_is_kept_too_long_holds_up_no_other_thread() {
    let namespace = namespace();
    let mut manager = open_shared(&namespace);
    let there = open(&namespace);
    let mut tags = tagged_write::Receiver::new(&manager, 64, 64).unwrap();
    let sender = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
    fn asleep<S: Sharing>(
        manager: &mut Manager<ProcessHost<S>>,
    ) -> hamlyn::Sleep<'_, ProcessHost<S>> {
        while manager.prepare_sleep(Wait::Poll).unwrap().is_none() {}
        manager.prepare_sleep(Wait::Forever).unwrap().unwrap()
    }
    linked(&manager);
    let sleep = asleep(&mut manager);
    assert_eq!(sleep.timeout(), None);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for tag in 0..50 {
                assert_eq!(tags.get_tag(LONG), Ok(Some(tag)));
            }
            assert_eq!(tags.get_tag(Wait::millis(3)), Ok(None));
        });
        for tag in 0..50 {
            sender.send(0, &[], tag, LONG).unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    assert_eq!(sleep.timeout(), Some(Duration::ZERO));
}

/// Room is rung for only if it was waited for when the sleep was announced, so a sender that finds
/// none later ends it.
#[test]
fn a_sender_that_finds_no_room_while_a_loop_sleeps_is_woken() {
    for (strategy, waits) in Strategy::ALL
        .into_iter()
        .flat_map(|strategy| [LONG, Wait::Poll].map(|wait| (strategy, wait)))
    {
        let namespace = namespace();
        let mut manager = hamlyn::open_shared(options(&namespace, 0), driven(strategy)).unwrap();
        let there = open(&namespace);
        let mut tags = tagged_write::Receiver::new(&there, 64, 1 << 16).unwrap();
        let sender = tagged_write::Sender::grow(&manager, &tags.ticket(), LONG).unwrap();
        let is_done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (looped, is_done) = (manager.clone(), &is_done);
            scope.spawn(move || {
                let events = Loop::over(&manager, epoll::EventFlags::IN);
                events.until(&mut manager, || {
                    (is_done.load(Ordering::Acquire) == 1).then_some(())
                });
            });
            let sending = scope.spawn(move || {
                // The loop sleeps by now, most of the time.
                std::thread::sleep(Duration::from_millis(2));
                let send = |tag| sender.send(0, &[7; 64], tag, waits).is_ok();
                let sent = (0..20_000).take_while(|&tag| send(tag)).count() as u64;
                assert!(
                    sent == 20_000 || waits == Wait::Poll,
                    "{strategy:?}: {sent}"
                );
                sent
            });
            std::thread::sleep(Duration::from_millis(5));
            let mut taken = 0;
            let mut take = |wait| {
                let tag = tags.get_tag(wait).unwrap();
                assert!(tag.is_none_or(|tag| tag == taken), "{tag:?} after {taken}");
                taken += u64::from(tag.is_some());
                taken
            };
            while !sending.is_finished() {
                take(Wait::millis(1));
            }
            // What was queued is sent by the loop: nobody else is in a call.
            let sent = sending.join().unwrap();
            let mut before = take(Wait::Poll);
            while before < sent {
                let after = take(LONG);
                assert!(after > before, "{strategy:?}: {after} of {sent} were sent");
                before = after;
            }
            // Any call of it wakes the loop.
            is_done.store(1, Ordering::Release);
            let answers = tagged_write::Receiver::new(&looped, 64, 16).unwrap();
            let back = tagged_write::Sender::grow(&there, &answers.ticket(), LONG).unwrap();
            back.send(0, &[], 1, LONG).unwrap();
        });
    }
}

/// A sleep is announced to the peers of that time, so a new one has to end it.
#[test]
fn a_peer_that_is_connected_to_while_a_loop_sleeps_wakes_it() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let mut manager = hamlyn::open_shared(options(&namespace, 0), driven(strategy)).unwrap();
        let mut tags = tagged_write::Receiver::new(&manager, 64, 16).unwrap();
        let there = open(&namespace);
        let mut theirs = tagged_write::Receiver::new(&there, 64, 16).unwrap();
        let events = Loop::over(&manager, epoll::EventFlags::IN);
        while manager.prepare_sleep(Wait::Poll).unwrap().is_none() {}
        let other = manager.clone();
        let sleep = manager.prepare_sleep(Wait::Forever).unwrap().unwrap();
        // Only the sleeper may take what comes over the new link.
        let sender = tagged_write::Sender::grow(&other, &theirs.ticket(), LONG).unwrap();
        assert!(events.wait(sleep.timeout()), "{strategy:?}: not woken");
        drop(sleep);
        sender.send(0, &[], 1, LONG).unwrap();
        assert_eq!(theirs.get_tag(LONG), Ok(Some(1)));
        let back = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
        back.send(0, &[], 2, LONG).unwrap();
        events.until(&mut manager, || tags.get_tag(Wait::Poll).unwrap());
    }
}

/// Tasks of one thread share its manager: what one of them does may be what another one waits for,
/// while their loop sleeps.
#[test]
fn what_a_task_does_itself_ends_the_sleep_of_its_loop() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let there = open(&namespace);
        let tags = tagged_write::Receiver::new(&there, 64, 64).unwrap();
        let mut manager = hamlyn::open_with(options(&namespace, 0), driven(strategy)).unwrap();
        let target = manager.session().target(&tags.ticket(), LONG).unwrap();
        let completions = manager.session().open_completions(4).unwrap();
        let events = Loop::over(&manager, epoll::EventFlags::IN);
        let mut asleep = |act: &dyn Fn(&mut hamlyn::Session<'_, ProcessHost>)| {
            let other = manager.clone();
            support::until("a sleep", || {
                let sleep = manager.prepare_sleep(LONG).unwrap()?;
                (sleep.timeout() != Some(Duration::ZERO)).then_some(())?;
                // Something that is left over from before ends this one.
                (!events.wait(Some(Duration::ZERO))).then_some(())?;
                act(&mut other.session());
                assert!(events.wait(None), "nothing woke the loop: {strategy:?}");
                drop(sleep);
                Some(())
            });
        };
        asleep(&|session| {
            let message = Message::new(&[]).word(1);
            let terminus = session.terminus();
            let sent = session.try_send(terminus, &target, &message).unwrap();
            session.track_send(&completions, sent.unwrap(), 7).unwrap();
        });
        asleep(&|session| session.disconnect(target.link()));
    }
}
