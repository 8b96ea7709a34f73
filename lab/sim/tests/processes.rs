//! What befalls the processes of a world: they share processors, are stopped, killed, begun again;
//! and peers hear of it.

use std::sync::Mutex;

use hamlyn::engine::slot::Rights;
use hamlyn::host::{Address, Supply};
use hamlyn::one_sided::{InitiatorOptions, OperationError};
use hamlyn::{ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait};
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Settings, Simulation};

fn nothing_failed(world: Simulation<'_>) -> Time {
    let outcome = world.run(Time::from_ns(1_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
    outcome.at
}

#[test]
fn programs_that_compute_share_the_processors_of_their_node() {
    let at = |processors| {
        let mut world = Simulation::new(Settings::default());
        let node = world.node(processors);
        for number in 0..6 {
            world.process(node, &format!("{number}"), || {
                for _ in 0..10 {
                    world::compute(Span::from_us(7));
                }
            });
        }
        nothing_failed(world).since(Time::ZERO)
    };
    let work = Span::from_us(7) * 60;
    assert_eq!(at(1), work);
    assert_eq!(at(2) * 2, work);
    assert_eq!(at(6) * 6, work);
    assert_eq!(at(60) * 6, work);
}

#[test]
fn a_stopped_process_does_nothing_until_it_may_go_on() {
    let ticks = Mutex::new(Vec::new());
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    let process = world.process(node, "clock", || {
        for _ in 0..10 {
            world::pause(Span::from_us(10));
            ticks.lock().unwrap().push(world::now().as_ns() / 1_000);
        }
    });
    world.at(Time::from_ns(35_000), move || world::stop(process));
    world.at(Time::from_ns(300_500), move || world::resume(process));
    nothing_failed(world);
    let ticks = ticks.into_inner().unwrap();
    assert_eq!(ticks[..3], [10, 20, 30]);
    assert_eq!(ticks[3..5], [300, 310]);
}

/// Two programs that exchange messages for as long as both live, with any strategy; the second one
/// is killed, and begun again under its name.
#[test]
fn a_killed_peer_is_reported_and_may_come_again() {
    for strategy in Strategy::ALL {
        let options = ManagerOptions {
            strategy,
            ..ManagerOptions::default()
        };
        let lives = Mutex::new(0);
        let mut world = Simulation::new(Settings::default());
        let (one, other) = (world.node(2), world.node(2));
        let served = move || {
            let manager = hamlyn_sim::host::open(Some("server"), options).unwrap();
            let area = manager.session().allocate(64).unwrap();
            let mut queue = manager.session().open_queue(64).unwrap();
            let slot = NewSlot::new(&area).queue(&queue);
            let slot = manager.session().open_slot(slot).unwrap();
            let ticket = slot.fast_ticket(0, 64).unwrap().to_bytes();
            manager
                .session()
                .offer("ticket", Supply::Always, &ticket)
                .unwrap();
            loop {
                let _ = manager.session().rcv_block(&mut queue, Wait::Forever);
            }
        };
        let first = world.process(other, "server", served);
        world.process(one, "client", || {
            let manager = hamlyn_sim::host::open(None, options).unwrap();
            let terminus = manager.terminus();
            let mut before = None;
            for life in 0..2 {
                let server = Address::Name("server");
                let bytes = manager
                    .session()
                    .ask(server, "ticket", Wait::Forever)
                    .unwrap();
                let ticket = Ticket::from_bytes(&bytes).unwrap();
                assert_ne!(before.replace(ticket.destination), Some(ticket.destination));
                let target = manager.session().target(&ticket, Wait::Forever).unwrap();
                let message = Message::new(&[1; 16]);
                let error = loop {
                    world::pause(Span::from_us(3));
                    let sent =
                        manager
                            .session()
                            .send_msg(terminus, &target, &message, Wait::Forever);
                    if let Err(error) = sent {
                        break error;
                    }
                };
                assert!(error.to_string().contains("process ended"), "{error}");
                // The ticket of the dead one is good for nothing, for ever.
                assert!(manager.session().target(&ticket, Wait::millis(1)).is_err());
                *lives.lock().unwrap() = life + 1;
            }
        });
        world.at(Time::from_ns(400_000), move || {
            world::kill(first);
            let second = world::begin_process(other, "server", served);
            world::after(Span::from_us(500), move || world::kill(second));
        });
        nothing_failed(world);
        assert_eq!(*lives.lock().unwrap(), 2, "{strategy:?}");
    }
}

/// An operation of more requests than may be under way at a time, begun without a time limit: the
/// end of its target ends it.
#[test]
fn a_long_operation_ends_with_its_target() {
    let settings = Settings {
        link_packets: 256,
        ..Settings::default()
    };
    let mut world = Simulation::new(settings);
    let node = world.node(2);
    let bytes = 1 << 20;
    let owner = world.process(node, "owner", move || {
        let manager = hamlyn_sim::host::open(Some("owner"), ManagerOptions::default()).unwrap();
        let area = manager.session().allocate(bytes).unwrap();
        let slot = NewSlot::new(&area).rights(Rights::ALL);
        let ticket = manager.session().open_slot(slot).unwrap();
        let ticket = ticket.fast_ticket(0, bytes).unwrap();
        manager
            .session()
            .offer("ticket", Supply::Always, &ticket.to_bytes())
            .unwrap();
        world::compute(Span::from_us(10_000));
    });
    world.process(node, "asker", move || {
        let manager = hamlyn_sim::host::open(Some("asker"), ManagerOptions::default()).unwrap();
        let to = Address::Name("owner");
        let ticket = manager.session().ask(to, "ticket", Wait::Forever).unwrap();
        let ticket = Ticket::from_bytes(&ticket).unwrap();
        let target = manager.session().target(&ticket, Wait::Forever).unwrap();
        let options = InitiatorOptions {
            landing_bytes: bytes,
        };
        let mut interface = manager.session();
        let mut asker = interface.open_initiator(target, options).unwrap();
        let begun = interface.begin_read(&mut asker, 0, 0, bytes, Wait::Forever);
        assert!(
            matches!(begun, Err(OperationError::PeerLost(_))),
            "{begun:?}"
        );
    });
    world.at(Time::from_ns(5_000_000), move || world::kill(owner));
    nothing_failed(world);
}

#[test]
fn a_world_in_which_programs_wake_each_other_for_ever_fails() {
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    world.process(node, "restless", || {
        loop {
            world::pause(Span::from_ns(100));
        }
    });
    world.limit_events(1_000);
    let failures = world.run(Time::NEVER).failures;
    assert!(
        failures[0].contains("more than 1000 events"),
        "{failures:?}"
    );
}
