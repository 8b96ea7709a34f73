//! Tasks that wait for managers: many on one, cancelled, out of time, and with peers that die.

use std::process::id;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::stream::{self, StreamOptions};
use hamlyn::{
    Manager, ManagerOptions, NewPort, ReceiveError, SendError, Source, Strategy, Wait, tagged_write,
};
use hamlyn_tokio::{spawn, spawn_local, until};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(20);
const LONG: Wait = Wait::For(TIMEOUT);

fn options() -> Options {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Options::default().in_namespace(&format!("tokio{}-{number}", id()))
}

/// How long managers poll before they sleep: not at all, as long as usual, and for longer than any
/// test waits.
const SPINS_NS: [u64; 3] = [0, 20_000, 2_000_000];

fn worlds() -> impl Iterator<Item = (Options, ManagerOptions)> {
    let all = Strategy::ALL.into_iter();
    all.flat_map(|strategy| SPINS_NS.map(|spin_ns| (strategy, spin_ns)))
        .map(|(strategy, spin_ns)| {
            let mut host = options();
            host.spin_ns = Some(spin_ns);
            let manager = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            (host, manager)
        })
}

/// Runs a program of one thread, which must end.
fn run(program: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { timeout(TIMEOUT, program).await.expect("it did not end") };
    LocalSet::new().block_on(&runtime, limited);
}

fn threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Waits in turn for the receiver, and for anything.
async fn tag<H: hamlyn::Host>(
    manager: &Manager<H>,
    tags: &mut tagged_write::Receiver<H>,
    round: u64,
) -> Result<u64, ReceiveError> {
    match round % 3 {
        0 => until(manager, || tags.get_tag(Wait::Poll)).await,
        _ => Ok(tags.recv_async().await?.tag),
    }
}

/// Both ends of a conversation in one thread: each task waits for the other one's tag.
#[test]
fn many_tasks_of_one_thread_share_a_manager() {
    const TASKS: u64 = 20;
    const ROUNDS: u64 = 50;
    for (host, options) in worlds() {
        run(async {
            let here = hamlyn::open_with(host.clone(), options).unwrap();
            let there = hamlyn::open_with(host, options).unwrap();
            let _driven = [spawn_local(&here).unwrap(), spawn_local(&there).unwrap()];
            let mut tasks = JoinSet::new();
            for _ in 0..TASKS {
                let ends = [&here, &there]
                    .map(|manager| tagged_write::Receiver::new(manager, 64, 16).unwrap());
                let to = [&there, &here];
                let senders: Vec<_> = (0..2)
                    .map(|end| {
                        tagged_write::Sender::grow(to[end], &ends[end].ticket(), LONG).unwrap()
                    })
                    .collect();
                let managers = [here.clone(), there.clone()];
                for (end, mut receiver) in ends.into_iter().enumerate() {
                    let (manager, sender) = (managers[end].clone(), senders[1 - end].clone());
                    tasks.spawn_local(async move {
                        for round in 0..ROUNDS {
                            if end == 0 {
                                sender.send(0, &[], round, Wait::Poll).unwrap();
                            }
                            assert_eq!(tag(&manager, &mut receiver, round).await, Ok(round));
                            if end == 1 {
                                sender.send(0, &[], round, Wait::Poll).unwrap();
                            }
                        }
                    });
                }
            }
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap();
            }
        });
    }
}

#[test]
fn tasks_of_several_threads_share_a_manager() {
    const TASKS: u64 = 8;
    const ROUNDS: u64 = 100;
    for (host, options) in worlds() {
        let open = || hamlyn::open_shared(host.clone(), options).unwrap();
        let (here, there): (Manager<ProcessHost<AnyThread>>, _) = (open(), open());
        let program = async {
            let _driven = [spawn(&here).unwrap(), spawn(&there).unwrap()];
            let mut tasks = JoinSet::new();
            for _ in 0..TASKS {
                let mut mine = tagged_write::Receiver::new(&here, 64, 16).unwrap();
                let mut theirs = tagged_write::Receiver::new(&there, 64, 16).unwrap();
                let ask = tagged_write::Sender::grow(&here, &theirs.ticket(), LONG).unwrap();
                let answer = tagged_write::Sender::grow(&there, &mine.ticket(), LONG).unwrap();
                let (here, there) = (here.clone(), there.clone());
                tasks.spawn(async move {
                    for round in 0..ROUNDS {
                        ask.send(0, &[], round, Wait::Poll).unwrap();
                        assert_eq!(tag(&here, &mut mine, round).await, Ok(round));
                    }
                });
                tasks.spawn(async move {
                    for round in 0..ROUNDS {
                        assert_eq!(tag(&there, &mut theirs, round).await, Ok(round));
                        answer.send(0, &[], round, Wait::Poll).unwrap();
                    }
                });
            }
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap();
            }
        };
        let limited = async { timeout(TIMEOUT, program).await };
        let ended = threads().block_on(limited);
        assert!(
            ended.is_ok(),
            "{options:?} {:?}: it did not end",
            host.spin_ns
        );
    }
}

/// Each task takes a message from a port of its own, answers, and waits until its answer is in its
/// place.
#[test]
fn tasks_wait_for_ports_and_completions_of_their_own() {
    const TASKS: u64 = 12;
    const ROUNDS: u64 = 60;
    for (host, options) in worlds() {
        let here = hamlyn::open_shared(host.clone(), options).unwrap();
        let there = hamlyn::open_shared(host.clone(), options).unwrap();
        let mut answers = there.session().open_port(NewPort::new()).unwrap();
        let to = answers.ticket();
        let has_ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&has_ended);
        let program = async {
            let _driven = spawn(&here).unwrap();
            let mut tasks = JoinSet::new();
            let mut tickets = Vec::new();
            for number in 0..TASKS {
                let (here, to) = (here.clone(), here.session().target(&to, LONG).unwrap());
                let mut port = here.session().open_port(NewPort::new()).unwrap();
                let ends = here.session().open_completions(1).unwrap();
                tickets.push(port.ticket());
                tasks.spawn(async move {
                    for round in 0..ROUNDS {
                        here.ready(Source::Port(&port)).await.unwrap();
                        {
                            let mut session = here.session();
                            let message = session.next_message(&mut port).unwrap().unwrap();
                            assert_eq!(message.word(0), round);
                            message.dispose();
                            let answer = number.to_le_bytes();
                            session.send_message(&to, 0, &answer, LONG).unwrap();
                            session.track_fence(&ends, to.link(), round).unwrap();
                        }
                        here.ready(Source::Completions(&ends)).await.unwrap();
                        let ended = here.session().next_completion(&ends).unwrap();
                        assert_eq!((ended.context, ended.result), (round, Ok(0)));
                    }
                });
            }
            let asking = std::thread::spawn(move || {
                let targets: Vec<_> = tickets
                    .iter()
                    .map(|ticket| there.session().target(ticket, LONG).unwrap())
                    .collect();
                for round in 0..ROUNDS {
                    for to in &targets {
                        let mut session = there.session();
                        session
                            .send_message(to, 0, &round.to_le_bytes(), LONG)
                            .unwrap();
                    }
                    for _ in 0..TASKS {
                        let mut session = there.session();
                        let handled = session
                            .await_messages(&mut answers, 1, LONG, |_, _| {})
                            .unwrap();
                        assert_eq!(handled, 1);
                    }
                }
                // The last fences are answered meanwhile.
                while !is_over.load(Ordering::Relaxed) {
                    there.wait(Wait::millis(1)).unwrap();
                }
            });
            while let Some(ended) = tasks.join_next().await {
                ended.unwrap();
            }
            has_ended.store(true, Ordering::Relaxed);
            asking.join().unwrap();
        };
        let limited = async { timeout(TIMEOUT, program).await };
        let ended = threads().block_on(limited);
        assert!(
            ended.is_ok(),
            "{options:?} {:?}: it did not end",
            host.spin_ns
        );
    }
}

/// A wait that is given up takes nothing with it, whenever that is.
#[test]
fn a_wait_that_is_cancelled_loses_nothing() {
    run(async {
        let host = options();
        let here = hamlyn::open_with(host.clone(), ManagerOptions::default()).unwrap();
        let _driven = spawn_local(&here).unwrap();
        let mut tags = tagged_write::Receiver::new(&here, 64, 1_024).unwrap();
        let ticket = tags.ticket();
        assert!(
            timeout(Duration::ZERO, tag(&here, &mut tags, 1))
                .await
                .is_err()
        );
        let sending = std::thread::spawn(move || {
            let there = hamlyn::open_shared(host, ManagerOptions::default()).unwrap();
            let sender = tagged_write::Sender::grow(&there, &ticket, LONG).unwrap();
            for tag in 0..500 {
                if tag % 8 == 0 {
                    std::thread::sleep(Duration::from_micros(300));
                }
                sender.send(0, &[], tag, LONG).unwrap();
            }
            there
        });
        let (mut next, mut tries) = (0, 0);
        while next < 500 {
            // Now and then for no time, and for about as long as it takes.
            tries += 1;
            let span = Duration::from_micros(tries % 5 * 100);
            if let Ok(tag) = timeout(span, tag(&here, &mut tags, tries)).await {
                assert_eq!(tag, Ok(next));
                next += 1;
            }
        }
        sending.join().unwrap();
    });
}

#[test]
fn a_timeout_ends_a_wait_and_costs_nobody_else_theirs() {
    run(async {
        let host = options();
        let here = hamlyn::open_with(host.clone(), ManagerOptions::default()).unwrap();
        let there = hamlyn::open_with(host, ManagerOptions::default()).unwrap();
        let _driven = spawn_local(&here).unwrap();
        let mut silent = tagged_write::Receiver::new(&here, 64, 16).unwrap();
        let mut tags = tagged_write::Receiver::new(&here, 64, 16).unwrap();
        let sender = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
        let handle = here.clone();
        let waiting = tokio::task::spawn_local(async move { tag(&handle, &mut tags, 1).await });
        let begun = tokio::time::Instant::now();
        let span = Duration::from_millis(20);
        assert!(timeout(span, tag(&here, &mut silent, 1)).await.is_err());
        assert!(begun.elapsed() >= span);
        sender.send(0, &[], 3, Wait::Poll).unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(3));
    });
}

/// A receive that is bound to a peer ends with it; one that is not waits on.
#[test]
fn a_peer_that_dies_ends_the_waits_that_are_bound_to_it() {
    run(async {
        let host = options();
        let here = hamlyn::open_with(host.clone(), ManagerOptions::default()).unwrap();
        let _driven = spawn_local(&here).unwrap();
        let mut records = stream::Receiver::new(&here, StreamOptions::default()).unwrap();
        let mut tags = tagged_write::Receiver::new(&here, 64, 16).unwrap();
        let (seed, ticket) = (records.make_seed(), tags.ticket());
        let dying = std::thread::spawn(move || {
            let there = hamlyn::open_with(host, ManagerOptions::default()).unwrap();
            let mut sender = stream::Sender::grow(&there, &seed, LONG).unwrap();
            let tags = tagged_write::Sender::grow(&there, &ticket, LONG).unwrap();
            sender.send(b"last words", LONG).unwrap();
            sender.flush(LONG).unwrap();
            tags.send(0, &[], 9, LONG).unwrap();
            there.flush(LONG).unwrap();
            // Without a word from the end points.
            let links: Vec<_> = there.session().peers().map(|(link, _)| link).collect();
            links
                .into_iter()
                .for_each(|link| there.session().disconnect(link));
        });
        let handle = here.clone();
        let mut take = async || {
            until(&handle, || {
                let record = records.recv(Wait::Poll)?;
                Ok(record.map(|record| record.to_vec()))
            })
            .await
        };
        assert_eq!(take().await, Ok(b"last words".to_vec()));
        assert_eq!(tag(&here, &mut tags, 1).await, Ok(9));
        let ended = take().await;
        assert!(matches!(ended, Err(ReceiveError::PeerLost(_))), "{ended:?}");
        assert!(
            timeout(Duration::from_millis(20), tag(&here, &mut tags, 1))
                .await
                .is_err()
        );
        dying.join().unwrap();
    });
}

/// A sender waits for room as a receiver does for messages.
#[test]
fn a_sender_without_room_waits_for_it() {
    const TAGS: u64 = 20_000;
    run(async {
        let host = options();
        let here = hamlyn::open_with(host.clone(), ManagerOptions::default()).unwrap();
        let _driven = spawn_local(&here).unwrap();
        let there = hamlyn::open_shared(host, ManagerOptions::default()).unwrap();
        let mut tags = tagged_write::Receiver::new(&there, 64, 1 << 16).unwrap();
        let sender = tagged_write::Sender::grow(&here, &tags.ticket(), LONG).unwrap();
        let taking = std::thread::spawn(move || {
            for tag in 0..TAGS {
                if tag % 5_000 == 0 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                assert_eq!(tags.get_tag(LONG), Ok(Some(tag)));
            }
            there
        });
        let mut waits = 0;
        for tag in 0..TAGS {
            let send = || match sender.send(0, &[7; 64], tag, Wait::Poll) {
                Ok(_) => Ok(Some(())),
                Err(SendError::WouldBlock { .. }) => {
                    waits += 1;
                    Ok(None)
                }
                Err(error) => Err(error),
            };
            until(&here, send).await.unwrap();
        }
        // What is queued still goes.
        let done = || Ok::<_, SendError>(here.flush(Wait::Poll)?.then_some(()));
        until(&here, done).await.unwrap();
        tokio::task::spawn_blocking(|| taking.join().unwrap())
            .await
            .unwrap();
        assert!(waits > 0, "it always had room");
    });
}
