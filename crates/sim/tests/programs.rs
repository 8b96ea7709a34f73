//! Programs written for the library run in the world as they are, and a seed decides all that happens.

use std::sync::Mutex;

use hamlyn::{ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait};
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
            let mut manager = hamlyn_sim::host::open(Some(name), options(strategy)).unwrap();
            let terminus = manager.terminus();
            let interface = manager.interface_mut();
            let area = interface.allocate(4096).unwrap();
            let mut queue = interface.open_queue(64).unwrap();
            let slot = interface
                .open_slot(NewSlot::new(&area).queue(&queue))
                .unwrap();
            let ticket = slot.fast_ticket(0, 4096).unwrap();
            interface
                .offer("ticket", hamlyn::host::Supply::Always, &ticket.to_bytes())
                .unwrap();
            let bytes = interface
                .ask(hamlyn::host::Address::Name(peer), "ticket", Wait::Forever)
                .unwrap();
            let ticket = Ticket::from_bytes(&bytes).unwrap();
            let target = interface.target(&ticket, Wait::Forever).unwrap();
            for round in 0..ROUNDS {
                let send = |interface: &mut hamlyn::Interface<_>| {
                    let message = Message::new(&[7; 16]).word(round);
                    interface
                        .send_msg(terminus, &target, &message, Wait::Forever)
                        .unwrap();
                };
                if begins {
                    send(interface);
                }
                let notification = interface.rcv_block(&mut queue, Wait::Forever).unwrap();
                assert_eq!(notification.unwrap().word, round);
                *heard.lock().unwrap() += 1;
                if !begins {
                    send(interface);
                }
            }
            interface.flush(Wait::Forever).unwrap();
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
        let mut manager = hamlyn_sim::host::open(None, ManagerOptions::default()).unwrap();
        let mut queue = manager.interface_mut().open_queue(4).unwrap();
        let _ = manager.interface_mut().rcv_block(&mut queue, Wait::Forever);
    });
    let outcome = world.run(Time::NEVER);
    assert_eq!(
        outcome.failures,
        ["sleeper: waits, and nothing can wake it"]
    );
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    world.process(node, "wrong", || panic!("that was wrong"));
    assert_eq!(world.run(Time::NEVER).failures, ["wrong: that was wrong"]);
}
