//! Programs of the library on machines: the points that the library's code passes take the time
//! that a machine's file says.

use hamlyn::Strategy;
use hamlyn_sim::machine::{Machine, PointName};
use hamlyn_sim::reproduce::primitive::Primitive;
use hamlyn_sim::time::Span;

/// What a message of so many bytes takes from a program to another.
fn one_way(machine: &Machine, strategy: Strategy, data_bytes: usize) -> Span {
    let primitive = Primitive {
        data_bytes,
        ..Primitive::new(machine, strategy)
    };
    primitive.one_way().unwrap()
}

/// As near as that to what the paper says, in percent.
fn within(percent: f64, ours: Span, paper_us: f64) {
    let off = (ours.as_us_f64() - paper_us).abs() / paper_us * 100.0;
    assert!(off <= percent, "{ours:?} instead of {paper_us} µs");
}

/// Where the engine works on the board, as in the paper, a program's message takes what Table 4
/// has: the engine alone on the machine and the library on it agree.
#[test]
fn programs_with_a_network_processor_take_what_table_4_says() {
    let ours = one_way(&Machine::hamlyn(), Strategy::Np, 16);
    within(5.0, ours, 12.7);
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

/// The transport's own work: frames that only answer, and timers.
#[test]
fn what_the_transport_does_takes_time() {
    const FILE: &str = include_str!("../machines/now-virtual-networks.toml");
    let takes = |steps: &str| {
        let text = FILE.replace("[at.interface]\n", &format!("[at.interface]\n{steps}\n"));
        let machine = Machine::parse(&text).unwrap();
        let primitive = Primitive::new(&machine, Strategy::Np);
        primitive.rare_round_trip().unwrap()
    };
    // So much that the board is not done with it when the next message comes, a while later.
    let step = |point: &str| {
        format!("{point} = [{{ on = \"interface\", ns = 6000000, assumed = \"for this test\" }}]")
    };
    let before = takes("");
    for point in ["answer_made", "timer_set"] {
        let after = takes(&step(point));
        assert!(after > before, "{point}: {after:?} and {before:?}");
    }
}

/// A server with many clients over a network serves them by turns, so each waits for one service of
/// all others. A client whose link was polled seldom, as nothing came over it for a while, once
/// waited for many.
#[test]
fn a_server_over_a_network_serves_all_its_clients_alike() {
    let machine = Machine::named("now-virtual-networks").unwrap();
    let primitive = Primitive::new(&machine, Strategy::Np);
    let each = |clients: usize| {
        let round_trip = primitive.round_trip_with(clients).unwrap();
        round_trip.as_us_f64() / clients as f64
    };
    let (few, many) = (each(8), each(24));
    assert!(
        (many - few).abs() < few * 0.02,
        "{few} and {many} µs a client"
    );
}
