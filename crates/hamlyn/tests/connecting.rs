//! Threads that share a manager connect side by side, and use it meanwhile.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{LONG, StopOnDrop, namespace, until};
use hamlyn::error::ConnectError;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::host::{Address, ConnectError as Reach, RefusedBecause, Supply};
use hamlyn::loans::PublisherOptions;
use hamlyn::service::ServiceOptions;
use hamlyn::stream::StreamOptions;
use hamlyn::{Manager, ManagerOptions, Strategy, Wait};

type Shared = Manager<ProcessHost<AnyThread>>;

fn open(host: Options, namespace: &str, strategy: Strategy) -> Shared {
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_shared(host.in_namespace(namespace), options).unwrap()
}

/// Nothing is bound until the manager of the thread that waits for it was used by another thread.
#[test]
fn a_thread_that_connects_lets_others_use_the_manager() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let alice = open(Options::named("alice"), &namespace, strategy);
        let bob = open(Options::default(), &namespace, strategy);
        std::thread::scope(|scope| {
            let connecting = scope.spawn(|| bob.connect_tagged_write("alice/late", LONG));
            until("the question", || {
                let counters = alice.session().host().rendezvous_counters();
                (counters.not_offered > 0).then_some(())
            });
            assert_eq!(bob.next_event(Wait::Poll), Ok(None));
            let mut tags = alice.bind_tagged_write("late", 64, 16).unwrap();
            let sender = connecting.join().unwrap().unwrap();
            sender.send(0, &[], 7, LONG).unwrap();
            assert_eq!(tags.get_tag(LONG), Ok(Some(7)));
        });
    }
}

/// The same of a thread that asks: nothing is offered until another thread has used the manager
/// that it asks with.
#[test]
fn a_thread_that_asks_lets_others_use_the_manager() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let alice = open(Options::named("alice"), &namespace, strategy);
        let bob = open(Options::default(), &namespace, strategy);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| bob.ask(Address::Name("alice"), "late", LONG));
            until("the question", || {
                let counters = alice.session().host().rendezvous_counters();
                (counters.not_offered > 0).then_some(())
            });
            assert_eq!(bob.next_event(Wait::Poll), Ok(None));
            (alice.session().offer("late", Supply::Always, b"here")).unwrap();
            assert_eq!(asking.join().unwrap().unwrap(), b"here");
        });
        let nothing = bob.ask(Address::Name("alice"), "never", Wait::millis(20));
        assert!(nothing.is_err(), "{nothing:?}");
    }
}

/// All of them to each of several peers at once: one link to each, and to the interface itself.
#[test]
fn threads_connect_side_by_side() {
    const THREADS: usize = 6;
    const PEERS: usize = 4;
    const ROUNDS: usize = 10;
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let me = open(Options::named("me"), &namespace, strategy);
        let named = |peer: usize| match peer {
            PEERS => "me".to_owned(),
            peer => format!("peer{peer}"),
        };
        let peers: Vec<_> = (0..PEERS)
            .map(|peer| open(Options::named(&named(peer)), &namespace, strategy))
            .collect();
        let mut boards: Vec<_> = (peers.iter().chain([&me]))
            .map(|peer| peer.bind_tagged_write("board", 64, 4096).unwrap())
            .collect();
        for _ in 0..ROUNDS {
            let begin = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (me, begin, named) = (&me, &begin, &named);
                    scope.spawn(move || {
                        begin.wait();
                        for peer in 0..=PEERS {
                            let to = format!("{}/board", named((peer + thread) % (PEERS + 1)));
                            let sender = me.connect_tagged_write(&to, LONG).unwrap();
                            sender.send(0, &[], 7, LONG).unwrap();
                        }
                    });
                }
            });
            assert_eq!(me.session().peers().count(), PEERS + 1);
            for board in &mut boards {
                for _ in 0..THREADS {
                    assert_eq!(board.get_tag(LONG), Ok(Some(7)));
                }
            }
            let links: Vec<_> = me.session().peers().map(|(link, _)| link).collect();
            for link in links {
                me.session().disconnect(link);
            }
        }
    }
}

/// Connects in ever longer attempts, of which most end between the question and the link.
fn connected_in_the_end<E>(connect: impl Fn(Wait) -> Result<E, ConnectError>) -> E {
    let waits_us = (0..).map(|attempt| 10 * attempt);
    let attempts = waits_us.map(|wait_us| connect(Wait::For(Duration::from_micros(wait_us))));
    let no_time = |error: &ConnectError| {
        matches!(
            error,
            ConnectError::Reach(
                Reach::Stalled { .. }
                    | Reach::Absent { .. }
                    | Reach::Refused {
                        reason: RefusedBecause::BUSY,
                        ..
                    }
            )
        )
    };
    for attempt in attempts {
        match attempt {
            Err(error) if no_time(&error) => {}
            result => return result.unwrap(),
        }
    }
    unreachable!("there are attempts without end");
}

/// What is offered to one peer alone is not lost with an attempt that had no time to connect.
#[test]
fn an_attempt_without_time_takes_nothing_from_the_next() {
    for strategy in Strategy::ALL.into_iter().cycle().take(20) {
        let namespace = namespace();
        let alice = open(Options::named("alice"), &namespace, strategy);
        let opened = || open(Options::default(), &namespace, strategy);
        let mut records = alice.bind_stream("log", StreamOptions::default()).unwrap();
        let for_one = ServiceOptions {
            clients: 1,
            ..ServiceOptions::default()
        };
        let service = alice.bind_service("echo", for_one).unwrap();
        let for_one = PublisherOptions {
            readers: 1,
            ..PublisherOptions::default()
        };
        let publisher = alice.bind_publisher("news", for_one).unwrap();

        let bob = opened();
        let mut sender = connected_in_the_end(|wait| bob.connect_stream("alice/log", wait));
        sender.send(b"first", LONG).unwrap();
        assert_eq!(&*records.recv(LONG).unwrap().unwrap(), b"first");
        let bob = opened();
        let client = connected_in_the_end(|wait| bob.connect_service("alice/echo", wait));
        let bob = opened();
        let reader = connected_in_the_end(|wait| bob.connect_subscriber("alice/news", wait));
        drop((client, service, reader, publisher));
    }
}

/// A peer that asks for the seed of a stream, and ends without a word, keeps nobody out.
#[test]
fn a_stream_whose_asker_does_not_come_is_offered_again() {
    // The larger one needs its room twice for a moment.
    for (strategy, ahead) in [(Strategy::Proc, false), (Strategy::Np, true)] {
        let namespace = namespace();
        let alice = open(Options::named("alice"), &namespace, strategy);
        let options = StreamOptions {
            ahead,
            ..StreamOptions::default()
        };
        let mut log = alice.bind_stream("log", options).unwrap();
        let asker = open(Options::default(), &namespace, Strategy::Proc);
        let seed = asker.ask(Address::Name("alice"), "log", LONG).unwrap();
        assert!(!seed.is_empty());
        drop(asker);
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let bob = open(Options::default(), &namespace, Strategy::Proc);
                let mut sender = until("another offer", || {
                    match bob.connect_stream("alice/log", LONG) {
                        Ok(sender) => Some(sender),
                        Err(ConnectError::Taken { .. }) => None,
                        Err(error) => panic!("{error}"),
                    }
                });
                sender.send(b"came", LONG).unwrap();
                sender.close(LONG).unwrap();
            });
            let record = log.recv(LONG).unwrap().map(|record| record.to_vec());
            assert_eq!(record.as_deref(), Some(&b"came"[..]));
            sending.join().unwrap();
        });
    }
}

/// Whoever turns a peer away at once has it hear so at once, though a network processor may tell of
/// the end of the link before of the link.
#[test]
fn a_peer_that_is_turned_away_hears_so_at_once() {
    const ATTEMPTS: u32 = 200;
    /// For so long a processor is waited for that tells nothing.
    const IN_VAIN: Duration = Duration::from_millis(500);
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let done = AtomicBool::new(false);
        let client = open(Options::default(), &namespace, strategy);
        let server = open(Options::named("server"), &namespace, Strategy::Proc);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let server = server;
                while !done.load(Ordering::Relaxed) {
                    let mut session = server.session();
                    session.poll();
                    let links: Vec<_> = session.peers().map(|(link, _)| link).collect();
                    links.into_iter().for_each(|link| session.disconnect(link));
                    drop(session);
                    std::thread::yield_now();
                }
            });
            let _stopper = StopOnDrop(&done);
            let mut in_vain = 0;
            for _ in 0..ATTEMPTS {
                let begun = Instant::now();
                let connected = client.session().connect(Address::Name("server"), LONG);
                let is_gone = matches!(connected, Err(Reach::Gone { .. }));
                assert!(connected.is_ok() || is_gone, "{connected:?}");
                in_vain += u32::from(begun.elapsed() >= IN_VAIN);
            }
            // One in ten or more, before; a loaded machine may be as slow once.
            assert!(in_vain <= 2, "{strategy:?}: {in_vain}");
        });
    }
}
