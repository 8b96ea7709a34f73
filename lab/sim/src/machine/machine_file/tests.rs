//! A machine's file is read as it stands, and refused if it says what nobody reads.

use super::*;

const PAPER: &str = include_str!("../../../machines/hamlyn.toml");

#[test]
fn transactions_are_powers_of_two_of_whole_words() {
    let machine = Machine::hamlyn();
    let list = |bytes| -> Vec<_> { machine.bus().unwrap().transactions(bytes).collect() };
    assert_eq!(list(0), []);
    assert_eq!(list(1), [(1, 4)]);
    // The paper's example (H-318).
    assert_eq!(list(28), [(1, 16), (1, 8), (1, 4)]);
    assert_eq!(list(32), [(1, 32)]);
    assert_eq!(list(101), [(3, 32), (1, 8)]);
    for bytes in 0..200 {
        let sum: u64 = list(bytes).iter().map(|(count, size)| count * size).sum();
        assert_eq!(sum, bytes.div_ceil(4) * 4);
    }
}

#[test]
fn transactions_of_any_length_are_as_few_as_can_be() {
    let machine = Machine::pair_of_today();
    let list = |bytes| -> Vec<_> { machine.bus().unwrap().transactions(bytes).collect() };
    assert_eq!(list(0), []);
    assert_eq!(list(26), [(1, 28)]);
    assert_eq!(list(512), [(2, 256)]);
    assert_eq!(list(801), [(3, 256), (1, 36)]);
}

#[test]
fn eight_stores_for_sixteen_bytes() {
    let machine = Machine::hamlyn();
    assert_eq!(machine.stores(0, 16), machine.store() * 8);
}

#[test]
fn what_is_not_known_is_refused() {
    let with = |from: &str, to: &str| {
        assert!(PAPER.contains(from), "{from}");
        Machine::parse(&PAPER.replacen(from, to, 1))
    };
    assert!(with("", "").is_ok());
    for (from, to) in [
        ("[store]", "[stores]"),
        ("notified = [", "announced = ["),
        ("{ dma = \"out\" }", "{ dma = \"around\" }"),
        ("{ dma = \"out\" }", "{ waits = true }"),
        ("bytes = 4, given = \"H-281: 32 bits wide\"", "bytes = 4"),
    ] {
        let error = with(from, to).unwrap_err();
        assert!(matches!(error, MachineError::Malformed(_)), "{error}");
    }
    let lost = with(
        "[{ on = \"interface\", ns = 3000",
        "[{ on = \"board\", ns = 3000",
    );
    let name = "board".to_owned();
    assert_eq!(lost.unwrap_err(), MachineError::NoSuchResource { name });
}

#[test]
fn a_changed_number_changes_the_machine_and_nothing_else() {
    let machine = Machine::hamlyn();
    let slower = machine.with("store.span", |ns| ns * 2.0).unwrap();
    assert_eq!(slower.store(), machine.store() * 2);
    assert_eq!(slower.wire(100), machine.wire(100));
    let path = "store.spam".to_owned();
    let error = machine.with(&path, |ns| ns).unwrap_err();
    assert_eq!(error, MachineError::NoSuchNumber { path });
}
