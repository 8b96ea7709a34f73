//! Programs of the library on machines: the points that the library's code passes take the time that a machine's file says.

use std::sync::Mutex;

use hamlyn::host::{Address, Supply};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Strategy, Ticket, Wait};
use hamlyn_sim::host::SimHost;
use hamlyn_sim::machine::{Machine, PointName};
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Settings, Simulation};

const ROUNDS: u64 = 20;
const AREA_BYTES: u64 = 65_536;

/// One of two programs: offers its ticket, takes the other's.
fn exchange(manager: &Manager<SimHost>, peer: &str, ticket: &Ticket) -> Ticket {
    manager
        .interface()
        .offer("ticket", Supply::Always, &ticket.to_bytes())
        .unwrap();
    let bytes = manager
        .interface()
        .ask(Address::Name(peer), "ticket", Wait::Forever)
        .unwrap();
    Ticket::from_bytes(&bytes).unwrap()
}

/// Two programs send each other messages of so many bytes by turns, in fast mode: what one way takes, on average.
fn one_way(machine: &Machine, strategy: Strategy, data_bytes: usize) -> Span {
    let taken = Mutex::new(Span::ZERO);
    let mut world = Simulation::new(Settings {
        // The paper's applications poll (H-287).
        spin: Span::from_us(10_000),
        ..Settings::default()
    });
    world.set_machine(machine.clone());
    for (at, (name, peer)) in [("ping", "pong"), ("pong", "ping")].into_iter().enumerate() {
        let node = world.node(2);
        let taken = &taken;
        world.process(node, name, move || {
            let options = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            let manager = hamlyn_sim::host::open(Some(name), options).unwrap();
            let area = manager.interface().allocate(AREA_BYTES).unwrap();
            let mut queue = manager.interface().open_queue(64).unwrap();
            let slot = NewSlot::new(&area).queue(&queue).entries(1);
            let slot = manager.interface().open_slot(slot).unwrap();
            let theirs = exchange(&manager, peer, &slot.fast_ticket(0, AREA_BYTES).unwrap());
            let target = manager.interface().target(&theirs, Wait::Forever).unwrap();
            let data = vec![at as u8; data_bytes];
            let send = |round| {
                let message = Message::new(&data).word(round);
                let terminus = manager.terminus();
                manager
                    .interface()
                    .send_msg(terminus, &target, &message, Wait::Forever)
                    .unwrap();
            };
            // What is made ready takes a while; then both wait for the first message.
            world::pause(Span::from_us(10_000));
            let began = world::now();
            for round in 0..ROUNDS {
                if at == 0 {
                    send(round);
                }
                let came = manager
                    .interface()
                    .rcv_block(&mut queue, Wait::Forever)
                    .unwrap();
                assert_eq!(came.unwrap().word, round);
                if at == 1 {
                    send(round);
                }
            }
            if at == 0 {
                *taken.lock().unwrap() = world::now().since(began);
            }
            manager.interface().flush(Wait::Forever).unwrap();
            world::pause(Span::from_us(10_000));
        });
    }
    let outcome = world.run(Time::from_ns(10_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
    Span::from_ps(taken.into_inner().unwrap().as_ps() / (2 * ROUNDS))
}

/// As near as that to what the paper says, in percent.
fn within(percent: f64, ours: Span, paper_us: f64) {
    let off = (ours.as_us_f64() - paper_us).abs() / paper_us * 100.0;
    assert!(off <= percent, "{ours:?} instead of {paper_us} µs");
}

/// Where the engine works on the board, as in the paper, a program's message takes what Table 4 has for everything but the
/// host's software: the engine alone on the machine and the library on it agree.
#[test]
fn programs_with_a_network_processor_take_what_table_4_says() {
    let ours = one_way(&Machine::hamlyn(), Strategy::Np, 16);
    within(10.0, ours, 12.7 - 0.8);
}

#[test]
fn each_strategy_takes_the_time_of_who_does_the_work() {
    let machine = Machine::hamlyn();
    let takes = |strategy| one_way(&machine, strategy, 16);
    let [proc, np, inject, receive] = Strategy::ALL.map(takes);
    // The file says nothing of what the host's processor takes for the board's work.
    assert!(proc < inject && inject < np, "{proc:?} {inject:?} {np:?}");
    assert_eq!(
        receive, proc,
        "an application that polls receives by itself"
    );
}

#[test]
fn what_a_point_takes_is_in_what_programs_take() {
    let machine = Machine::hamlyn();
    let takes = |machine: &Machine| one_way(machine, Strategy::Np, 16).as_us_f64();
    let paper = takes(&machine);
    let quicker = takes(&machine.without("interface", PointName::SlotRead));
    assert!((paper - quicker - 3.0).abs() < 0.2, "{paper} and {quicker}");
    let slower = machine.with("link.switch", |ns| ns + 4_500.0).unwrap();
    assert!((takes(&slower) - paper - 4.5).abs() < 0.2);
    // What a message does not pass costs it nothing.
    let other = machine.with("at.interface.entry_read.0", |ns| ns * 10.0);
    assert_eq!(takes(&other.unwrap()), paper);
}

#[test]
fn the_same_twice() {
    let machine = Machine::hamlyn();
    for strategy in Strategy::ALL {
        let takes = || one_way(&machine, strategy, 100);
        assert_eq!(takes(), takes());
    }
}
