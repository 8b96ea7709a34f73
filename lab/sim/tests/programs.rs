//! Programs written for the library run in the world as they are, and a seed decides all that
//! happens.

use std::sync::Mutex;

use hamlyn::{ManagerOptions, Message, NewSlot, SendError, Strategy, Ticket, Wait, datagram};
use hamlyn_sim::network::{Fabric, Impairment, Mesh, Routing, Topology};
use hamlyn_sim::random::Random;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Outcome, Path, Settings, Simulation};

const ROUNDS: u64 = 500;

fn options(strategy: Strategy) -> ManagerOptions {
    ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    }
}

/// Two programs that send a word to and fro.
fn ping_pong(settings: Settings, strategy: Strategy) -> Outcome {
    let heard = Mutex::new(0_u64);
    let mut world = Simulation::new(settings);
    let (one, other) = (world.node(2), world.node(2));
    for (node, name, peer, begins) in [(one, "ping", "pong", true), (other, "pong", "ping", false)]
    {
        let heard = &heard;
        world.process(node, name, move || {
            let manager = hamlyn_sim::host::open(Some(name), options(strategy)).unwrap();
            let terminus = manager.terminus();
            let area = manager.session().allocate(4096).unwrap();
            let mut queue = manager.session().open_queue(64).unwrap();
            let slot = manager
                .session()
                .open_slot(NewSlot::new(&area).queue(&queue))
                .unwrap();
            let ticket = slot.fast_ticket(0, 4096).unwrap();
            manager
                .session()
                .offer("ticket", hamlyn::host::Supply::Always, &ticket.to_bytes())
                .unwrap();
            let bytes = manager
                .session()
                .ask(hamlyn::host::Address::Name(peer), "ticket", Wait::Forever)
                .unwrap();
            let ticket = Ticket::from_bytes(&bytes).unwrap();
            let target = manager.session().target(&ticket, Wait::Forever).unwrap();
            for round in 0..ROUNDS {
                let send = || {
                    let message = Message::new(&[7; 16]).word(round);
                    manager
                        .session()
                        .send_msg(terminus, &target, &message, Wait::Forever)
                        .unwrap();
                };
                if begins {
                    send();
                }
                let notification = manager
                    .session()
                    .rcv_block(&mut queue, Wait::Forever)
                    .unwrap();
                assert_eq!(notification.unwrap().word, round);
                *heard.lock().unwrap() += 1;
                if !begins {
                    send();
                }
            }
            manager.session().flush(Wait::Forever).unwrap();
            // The end of a peer interrupts waits.
            world::pause(Span::from_us(100));
        });
    }
    let outcome = world.run(Time::from_ns(10_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert_eq!(*heard.lock().unwrap(), 2 * ROUNDS);
    outcome
}

fn jittery(seed: u64) -> Settings {
    let default = Settings::default();
    Settings {
        seed,
        records: true,
        far: Path {
            jitter: Span::from_us(5),
            ..default.far
        },
        ..default
    }
}

#[test]
fn blocking_calls_run_unchanged_with_every_strategy() {
    for strategy in Strategy::ALL {
        let outcome = ping_pong(Settings::default(), strategy);
        // There and back takes the way twice, at least.
        let least = Settings::default().far.delay * 2 * ROUNDS;
        assert!(outcome.at.since(Time::ZERO) > least, "{strategy:?}");
    }
}

#[test]
fn a_seed_has_one_history() {
    let (first, again) = (
        ping_pong(jittery(3), Strategy::Inject),
        ping_pong(jittery(3), Strategy::Inject),
    );
    assert!(first.trace.lines().count() as u64 > 2 * ROUNDS);
    assert_eq!(first, again);
    assert_ne!(first.sum, ping_pong(jittery(4), Strategy::Inject).sum);
}

#[test]
fn programs_that_fail_or_wait_for_nothing_are_named() {
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    world.process(node, "sleeper", || {
        let manager = hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap();
        let mut queue = manager.session().open_queue(4).unwrap();
        let _ = manager.session().rcv_block(&mut queue, Wait::Forever);
    });
    let outcome = world.run(Time::NEVER);
    assert_eq!(
        outcome.failures,
        ["sleeper: waits, and nothing can wake it"]
    );
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    world.process(node, "wrong", || panic!("that was wrong"));
    let failures = world.run(Time::NEVER).failures;
    assert!(
        failures[0].starts_with("wrong: that was wrong"),
        "{failures:?}"
    );
}

/// The failure of a world with that program.
fn failure_of(program: impl FnOnce() + Send) -> String {
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    world.process(node, "endless", program);
    let failures = world.run(Time::NEVER).failures;
    assert_eq!(failures.len(), 1, "{failures:?}");
    failures.into_iter().next().unwrap()
}

/// Or a run of many seeds would stand still at one, and say nothing of it.
#[test]
fn a_program_that_never_waits_is_caught() {
    let looks = failure_of(|| {
        loop {
            std::hint::black_box(world::now());
        }
    });
    assert!(looks.starts_with("endless: it has done"), "{looks}");
    let pauses = failure_of(|| {
        loop {
            world::pause(Span::ZERO);
        }
    });
    assert!(pauses.starts_with("endless: it has done"), "{pauses}");
    // It waits, and no time passes.
    let computes = failure_of(|| {
        loop {
            world::compute(Span::ZERO);
        }
    });
    assert!(computes.contains("no time passes"), "{computes}");
    assert!(computes.contains("endless"), "{computes}");
}

#[test]
fn failures_say_where_their_panics_were() {
    world::remember_panic_places(true);
    let line = line!() + 1;
    let failure = failure_of(|| panic!("that was wrong"));
    let place = format!("endless: that was wrong (at lab/sim/tests/programs.rs:{line}:");
    assert!(failure.starts_with(&place), "{failure}");
}

/// Or one seed would end a run of many, and be lost.
#[test]
fn a_panic_outside_of_programs_ends_its_world_only() {
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    world.process(node, "waits", || world::pause(Span::from_us(10)));
    world.at(Time::ZERO + Span::from_us(5), || panic!("that was wrong"));
    let outcome = world.run(Time::NEVER);
    let first = outcome.failures.first().map(String::as_str);
    let first = first.unwrap_or_default();
    assert!(
        first.starts_with("outside of programs: that was wrong"),
        "{first}"
    );
    assert_eq!(outcome.at, Time::ZERO + Span::from_us(5));
    // The thread is free for another.
    let world = Simulation::new(Settings::default());
    assert_eq!(world.run(Time::NEVER).failures, Vec::<String>::new());
}

/// A sender that floods a receiver on another node over a network of these parts: how many messages
/// came, how the sender's last call ended, and the outcome.
fn flood(parts: &[Impairment], seed: u64) -> (u64, Result<(), SendError>, Outcome) {
    let (came, ended) = (Mutex::new(0), Mutex::new(Ok(())));
    let settings = Settings {
        seed,
        records: true,
        ..Settings::default()
    };
    let mut world = Simulation::new(settings);
    let (one, other) = (world.node(1), world.node(1));
    let network = Mesh::new(2, parts, &mut Random::new(seed)).unwrap();
    world.set_network(Box::new(network), TIMEOUT);
    world.process(one, "receiver", || {
        let manager = hamlyn_sim::host::open(Some("r"), options(Strategy::Proc)).unwrap();
        let mut receiver = datagram::Receiver::new(&manager, 256).unwrap();
        let always = hamlyn::host::Supply::Always;
        let mut seen = std::collections::BTreeSet::new();
        receiver.ready();
        let ticket = receiver.ticket().to_bytes();
        manager.session().offer("ticket", always, &ticket).unwrap();
        loop {
            match receiver.recv(Wait::millis(20)) {
                Ok(Some(datagram)) => {
                    let number = u64::from_le_bytes((*datagram).try_into().unwrap());
                    assert!(seen.insert(number), "{number} came twice");
                    *came.lock().unwrap() += 1;
                    drop(datagram);
                    let done = format!("done/{number}");
                    manager.session().offer(&done, always, &[1]).unwrap();
                }
                Ok(None) => break,
                Err(_) => {}
            }
        }
    });
    world.process(other, "sender", || {
        let manager = hamlyn_sim::host::open(None, options(Strategy::Proc)).unwrap();
        let to = hamlyn::host::Address::Name("r");
        let bytes = manager.session().ask(to, "ticket", Wait::Forever).unwrap();
        let ticket = Ticket::from_bytes(&bytes).unwrap();
        let sender = datagram::Sender::grow(&manager, &ticket, Wait::Forever).unwrap();
        for number in 0..ROUNDS {
            let data = number.to_le_bytes();
            let result = sender.send(&data, Wait::Forever);
            if let Err(error) = result {
                *ended.lock().unwrap() = Err(error);
                break;
            }
            let done = format!("done/{number}");
            if manager.session().ask(to, &done, Wait::millis(15)).is_err() {
                // It did not come: the next call says why.
                continue;
            }
        }
        let _ = manager.session().flush(Wait::millis(10));
        world::pause(Span::from_us(100_000));
    });
    let outcome = world.run(Time::from_ns(100_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new(), "seed {seed}");
    let (came, ended) = (came.into_inner().unwrap(), ended.into_inner().unwrap());
    (came, ended, outcome)
}

const TIMEOUT: Span = Span::from_us(20_000);

const WAY: Impairment = Impairment::Delay {
    delay_ps: 2_000_000,
};

/// Whether a frame came that had come before.
fn has_come_twice(trace: &str) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    let mut came = trace.lines().filter(|line| line.ends_with(" comes"));
    came.any(|line| {
        let frame = line
            .split("frame ")
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        frame.is_some_and(|frame| !seen.insert(frame))
    })
}

#[test]
fn a_network_that_overtakes_and_doubles_is_not_noticed() {
    let parts = [
        WAY,
        Impairment::Reorder {
            per_million: 300_000,
            up_to_ps: 20_000_000,
        },
        Impairment::Duplicate {
            per_million: 300_000,
        },
    ];
    for seed in 0..5 {
        let (came, ended, outcome) = flood(&parts, seed);
        assert_eq!((came, ended), (ROUNDS, Ok(())));
        assert!(has_come_twice(&outcome.trace));
        assert_eq!(flood(&parts, seed).2, outcome);
    }
}

#[test]
fn a_network_that_loses_and_damages_is_not_noticed() {
    for part in [
        Impairment::Lose {
            per_million: 200_000,
            run_frames: 1,
        },
        Impairment::Damage {
            per_million: 200_000,
        },
    ] {
        for seed in 0..5 {
            let (came, ended, outcome) = flood(&[WAY, part.clone()], seed);
            assert_eq!((came, ended), (ROUNDS, Ok(())));
            let happened = match part {
                Impairment::Lose { .. } => "lost by chance",
                _ => "is damaged",
            };
            assert!(outcome.trace.contains(happened));
            assert_eq!(flood(&[WAY, part.clone()], seed).2, outcome);
        }
    }
}

#[test]
fn thousands_of_interfaces_live_in_one_world() {
    const SENDERS: u64 = 2_000;
    let heard = Mutex::new(std::collections::BTreeSet::new());
    let mut world = Simulation::new(Settings::default());
    let hub = world.node(1);
    world.process(hub, "hub", || {
        let manager = hamlyn_sim::host::open(Some("hub"), options(Strategy::Proc)).unwrap();
        let area = manager.session().allocate(16).unwrap();
        let mut queue = manager.session().open_queue(4096).unwrap();
        let slot = NewSlot::new(&area).queue(&queue);
        let slot = manager.session().open_slot(slot).unwrap();
        let ticket = slot.fast_ticket(0, 16).unwrap().to_bytes();
        let always = hamlyn::host::Supply::Always;
        manager.session().offer("ticket", always, &ticket).unwrap();
        while heard.lock().unwrap().len() < SENDERS as usize {
            // The end of a peer interrupts the wait.
            if let Ok(Some(came)) = manager.session().rcv_block(&mut queue, Wait::Forever) {
                assert!(heard.lock().unwrap().insert(came.word));
            }
        }
    });
    for number in 0..SENDERS {
        let node = world.node(1);
        world.process(node, &format!("sender {number}"), move || {
            let manager = hamlyn_sim::host::open(None, options(Strategy::Proc)).unwrap();
            let terminus = manager.terminus();
            let hub = hamlyn::host::Address::Name("hub");
            let bytes = manager.session().ask(hub, "ticket", Wait::Forever).unwrap();
            let ticket = Ticket::from_bytes(&bytes).unwrap();
            let target = manager.session().target(&ticket, Wait::Forever).unwrap();
            let message = Message::new(&[1; 16]).word(number);
            manager
                .session()
                .send_msg(terminus, &target, &message, Wait::Forever)
                .unwrap();
            manager.session().flush(Wait::Forever).unwrap();
        });
    }
    let outcome = world.run(Time::NEVER);
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert_eq!(heard.into_inner().unwrap().len() as u64, SENDERS);
}

/// Every process sends messages of many packets to every other, over crossbars with wormhole
/// switching.
fn all_to_all(routing: Routing) -> Outcome {
    const PROCESSES: usize = 8;
    const LENGTH: usize = 5_000;
    let topology = Topology::fat_tree(4, 2).unwrap();
    assert!(topology.host_count() >= PROCESSES);
    let fabric = Fabric::new(&topology, routing, &mut Random::new(1)).unwrap();
    let came = Mutex::new(0);
    let mut world = Simulation::new(Settings {
        packet_payload_bytes: 256,
        ..Settings::default()
    });
    let nodes: Vec<_> = (0..topology.host_count()).map(|_| world.node(1)).collect();
    world.set_network(Box::new(fabric), Span::from_us(100_000));
    for (process, &node) in nodes.iter().enumerate().take(PROCESSES) {
        let came = &came;
        world.process(node, &format!("process {process}"), move || {
            let name = |process: usize| format!("p{process}");
            let manager =
                hamlyn_sim::host::open(Some(&name(process)), options(Strategy::Proc)).unwrap();
            let terminus = manager.terminus();
            let area = manager
                .session()
                .allocate((PROCESSES * LENGTH) as u64)
                .unwrap();
            let mut queue = manager.session().open_queue(64).unwrap();
            let new = NewSlot::new(&area).queue(&queue).entries(PROCESSES);
            let slot = manager.session().open_slot(new).unwrap();
            for other in 0..PROCESSES {
                let from = (other * LENGTH) as u64;
                let ticket = slot.ticket(other as u16, from, LENGTH as u64).unwrap();
                let always = hamlyn::host::Supply::Always;
                let item = format!("for-{other}");
                manager
                    .session()
                    .offer(&item, always, &ticket.to_bytes())
                    .unwrap();
            }
            for other in (0..PROCESSES).map(|step| (process + step) % PROCESSES) {
                let to = name(other);
                let to = hamlyn::host::Address::Name(&to);
                let item = format!("for-{process}");
                let bytes = manager.session().ask(to, &item, Wait::Forever).unwrap();
                let ticket = Ticket::from_bytes(&bytes).unwrap();
                let target = manager.session().target(&ticket, Wait::Forever).unwrap();
                let data: Vec<_> = (0..LENGTH).map(|at| (at * 7 + process) as u8).collect();
                manager
                    .session()
                    .send_msg(terminus, &target, &Message::new(&data), Wait::Forever)
                    .unwrap();
            }
            for _ in 0..PROCESSES {
                let found = manager
                    .session()
                    .rcv_block(&mut queue, Wait::Forever)
                    .unwrap();
                let from = usize::from(found.unwrap().metadata_index);
                let mut data = vec![0; LENGTH];
                area.read_at((from * LENGTH) as u64, &mut data).unwrap();
                assert!((0..LENGTH).all(|at| data[at] == (at * 7 + from) as u8));
                *came.lock().unwrap() += 1;
            }
            manager.session().flush(Wait::Forever).unwrap();
            world::pause(Span::from_us(10_000));
        });
    }
    let outcome = world.run(Time::NEVER);
    assert_eq!(outcome.failures, Vec::<String>::new(), "{routing:?}");
    assert_eq!(came.into_inner().unwrap(), PROCESSES * PROCESSES);
    outcome
}

#[test]
fn messages_of_many_packets_cross_switches_by_any_route() {
    for routing in Routing::ALL {
        assert_eq!(all_to_all(routing), all_to_all(routing));
    }
}
