//! A program and its network processor do not keep each other awake while nothing can go.

use hamlyn::engine::slot::Rights;
use hamlyn::error::SendError;
use hamlyn::host::{Address, Supply};
use hamlyn::one_sided::InitiatorOptions;
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Strategy, Target, Ticket, Wait};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Outcome, Settings, Simulation};

/// Events of a wait in which nothing happens but its beginning and its end, and of what leads to
/// it.
const QUIET_EVENTS: u64 = 2_000;
const COMPUTES: Span = Span::from_us(20_000);

fn open(name: &str, strategy: Strategy) -> Manager<SimHost> {
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn_sim::host::open(Some(name), options).unwrap()
}

/// Offers a ticket for so many bytes of new memory.
fn offer(manager: &Manager<SimHost>, bytes: u64) {
    let mut interface = manager.session();
    let area = interface.allocate(bytes).unwrap();
    let slot = interface
        .open_slot(NewSlot::new(&area).rights(Rights::ALL))
        .unwrap();
    let ticket = slot.fast_ticket(0, bytes).unwrap();
    interface
        .offer("ticket", Supply::Always, &ticket.to_bytes())
        .unwrap();
}

fn target(manager: &Manager<SimHost>, name: &str) -> Target {
    let bytes = manager
        .session()
        .ask(Address::Name(name), "ticket", Wait::Forever)
        .unwrap();
    let ticket = Ticket::from_bytes(&bytes).unwrap();
    manager.session().target(&ticket, Wait::Forever).unwrap()
}

fn run(mut world: Simulation<'_>) -> Outcome {
    world.limit_events(10 * QUIET_EVENTS);
    let outcome = world.run(Time::NEVER);
    assert_eq!(outcome.failures, Vec::<String>::new());
    outcome
}

/// The other asks for more than its link takes, and computes: answers wait for room, and their
/// owner for a message.
#[test]
fn answers_without_room_keep_nobody_awake() {
    for strategy in Strategy::ALL {
        let settings = Settings {
            link_packets: 4,
            ..Settings::default()
        };
        let mut world = Simulation::new(settings);
        let node = world.node(4);
        world.process(node, "owner", move || {
            let manager = open("owner", strategy);
            offer(&manager, 4096);
            let mut queue = manager.session().open_queue(16).unwrap();
            let came = manager
                .session()
                .rcv_block(&mut queue, Wait::millis(30))
                .unwrap();
            assert_eq!(came, None);
            world::pause(Span::from_us(1_000));
        });
        world.process(node, "asker", move || {
            let manager = open("asker", Strategy::Proc);
            let target = target(&manager, "owner");
            let options = InitiatorOptions::default();
            let mut asker = manager.session().open_initiator(target, options).unwrap();
            for turn in 0..24 {
                let asked =
                    manager
                        .session()
                        .begin_read(&mut asker, 0, 64 * turn, 64, Wait::millis(1));
                if asked.is_err() {
                    break;
                }
            }
            world::compute(COMPUTES);
            let _ = manager.session().finish_all(&mut asker, Wait::millis(5));
        });
        let events = run(world).events;
        assert!(events < QUIET_EVENTS, "{strategy:?}: {events} events");
    }
}

/// The receiver computes: the queue is full, or the message is too long for it, and its sender
/// waits for room.
#[test]
fn messages_without_room_keep_nobody_awake() {
    for strategy in Strategy::ALL {
        for bytes in [16, 12_000] {
            let settings = Settings {
                link_packets: 4,
                ..Settings::default()
            };
            let mut world = Simulation::new(settings);
            let node = world.node(4);
            world.process(node, "taker", move || {
                let manager = open("taker", Strategy::Proc);
                offer(&manager, 65_536);
                world::compute(COMPUTES);
            });
            world.process(node, "sender", move || {
                let manager = open("sender", strategy);
                let target = target(&manager, "taker");
                let data = vec![1; bytes];
                let message = Message::new(&data);
                let terminus = manager.terminus();
                let send = || {
                    let mut interface = manager.session();
                    interface.send_msg(terminus, &target, &message, Wait::millis(15))
                };
                // As many as the queue holds, and the last waits in vain.
                let refused = loop {
                    if let Err(error) = send() {
                        break error;
                    }
                };
                let is_late = matches!(
                    refused,
                    SendError::WouldBlock { .. } | SendError::Cut { .. }
                );
                assert!(is_late, "{refused:?}");
            });
            let events = run(world).events;
            assert!(
                events < QUIET_EVENTS,
                "{strategy:?}, {bytes} bytes: {events} events"
            );
        }
    }
}

/// A peer that dies as it is linked: whoever waits for the link waits in vain, and quietly.
#[test]
fn a_link_that_ended_before_it_was_told_of_keeps_nobody_awake() {
    for strategy in Strategy::ALL {
        for at in (0..200).map(|step| Time::from_ns(20_000 + 400 * step)) {
            let mut world = Simulation::new(Settings::default());
            let node = world.node(4);
            let peer = world.process(node, "peer", move || {
                let manager = open("peer", Strategy::Proc);
                let _ = manager.wait(Wait::Forever);
            });
            world.process(node, "asker", move || {
                let manager = open("asker", strategy);
                let _ = manager.connect_datagram("peer/none", Wait::millis(2));
                let to = Address::Name("peer");
                let _ = manager.session().connect(to, Wait::millis(400));
            });
            world.at(at, move || world::kill(peer));
            let events = world.run(Time::NEVER).events;
            assert!(
                events < QUIET_EVENTS,
                "{strategy:?}, {at:?}: {events} events"
            );
        }
    }
}
