//! The number of messages of each kind that each operation takes.

use super::network::{Network, Random};
use crate::context::Mode;
use crate::error::CrlError;
use crate::id::RegionId;
use crate::message::Kind;

/// An operation of a node, and the messages that it takes.
type Line = (usize, Mode, &'static [(Kind, usize)]);

/// Nodes that have all mapped one region of node 0.
fn mapped(nodes: usize) -> (Network, RegionId) {
    let mut network = Network::new(nodes, 8, 1 << 16);
    let region = network.machines[0].create(100).unwrap();
    for node in 0..nodes {
        network.call(node, |machine, out| machine.map(region, out));
        network.deliver_all();
        assert_eq!(network.machines[node].answer(), Some(Ok(())));
    }
    let expected = counted(&[(Kind::Map, nodes - 1), (Kind::Mapped, nodes - 1)]);
    assert_eq!(sent(&mut network), expected);
    (network, region)
}

/// Messages of all nodes since this was last asked.
fn sent(network: &mut Network) -> Vec<(Kind, u64)> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let machines = network.machines.iter_mut();
        let count = machines
            .map(|it| std::mem::take(&mut it.sent[*kind as usize]))
            .sum();
        if count > 0 {
            all.push((*kind, count));
        }
    }
    all
}

fn counted(expected: &[(Kind, usize)]) -> Vec<(Kind, u64)> {
    let counts = expected.iter().map(|(kind, count)| (*kind, *count as u64));
    counts.collect()
}

fn begin(network: &mut Network, node: usize, region: RegionId, mode: Mode) {
    let started = network.call(node, |machine, out| machine.start(region, mode, out));
    started.unwrap();
    network.deliver_all();
}

fn end(network: &mut Network, node: usize, region: RegionId, mode: Mode) {
    let ended = network.call(node, |machine, out| machine.end(region, mode, out));
    ended.unwrap();
    network.deliver_all();
}

fn is_granted(network: &mut Network, node: usize, region: RegionId) -> bool {
    network.machines[node].is_granted(region).unwrap()
}

fn whole(network: &mut Network, node: usize, region: RegionId, mode: Mode) {
    begin(network, node, region, mode);
    assert!(is_granted(network, node, region));
    end(network, node, region, mode);
}

fn flush(network: &mut Network, node: usize, region: RegionId) {
    let flushed = network.call(node, |machine, out| machine.flush(region, out));
    flushed.unwrap();
    network.deliver_all();
}

#[test]
fn operations_take_the_fewest_messages() {
    use Kind::*;
    let (read, write) = (Mode::Shared, Mode::Exclusive);
    let (mut network, region) = mapped(4);
    // Before each line: all that the lines above have done.
    let table: &[Line] = &[
        (0, write, &[]),
        (0, read, &[]),
        (1, read, &[(Read, 1), (Shared, 1)]),
        (1, read, &[]),
        (2, read, &[(Read, 1), (Shared, 1)]),
        (0, read, &[]),
        // It has the bytes.
        (
            1,
            write,
            &[(Write, 1), (Grant, 1), (Invalidate, 1), (Acknowledge, 1)],
        ),
        (1, write, &[]),
        // The bytes go from node 1 to node 2, and not through the home.
        (
            2,
            write,
            &[(Write, 1), (Exclusive, 1), (Pass, 1), (Have, 1)],
        ),
        (3, read, &[(Read, 1), (Shared, 1), (Fetch, 1), (Back, 1)]),
        (1, read, &[(Read, 1), (Shared, 1)]),
        (0, write, &[(Invalidate, 3), (Acknowledge, 3)]),
        (3, write, &[(Write, 1), (Exclusive, 1)]),
        (0, read, &[(Fetch, 1), (Back, 1)]),
        (3, write, &[(Write, 1), (Grant, 1)]),
        (0, write, &[(Recall, 1), (Flush, 1)]),
    ];
    for (line, (node, mode, expected)) in table.iter().enumerate() {
        whole(&mut network, *node, region, *mode);
        assert_eq!(sent(&mut network), counted(expected), "line {line}");
    }
    // To give a copy up takes one message, and saves two.
    whole(&mut network, 2, region, write);
    sent(&mut network);
    flush(&mut network, 2, region);
    whole(&mut network, 3, region, read);
    flush(&mut network, 3, region);
    whole(&mut network, 0, region, write);
    let expected = counted(&[(Read, 1), (Shared, 1), (Flush, 1), (Drop, 1)]);
    assert_eq!(sent(&mut network), expected);
}

/// The program has the bytes meanwhile.
#[test]
fn a_region_is_mapped_while_its_home_writes() {
    let mut network = Network::new(2, 8, 1 << 16);
    let region = network.machines[0].create(100).unwrap();
    begin(&mut network, 0, region, Mode::Exclusive);
    let memory = network.machines[0].memory(region).unwrap().0;
    let bytes = memory.borrow_mut();
    network.call(1, |machine, out| machine.map(region, out));
    network.deliver_all();
    assert_eq!(network.machines[1].answer(), Some(Ok(())));
    begin(&mut network, 1, region, Mode::Shared);
    assert!(!is_granted(&mut network, 1, region));
    drop(bytes);
    end(&mut network, 0, region, Mode::Exclusive);
    assert!(is_granted(&mut network, 1, region));
}

#[test]
fn a_copy_stays_after_it_is_unmapped() {
    let (mut network, region) = mapped(2);
    whole(&mut network, 1, region, Mode::Shared);
    sent(&mut network);
    for _ in 0..3 {
        network.call(1, |machine, out| machine.unmap(region, out));
        network.call(1, |machine, out| machine.map(region, out));
        assert_eq!(network.machines[1].answer(), Some(Ok(())));
        whole(&mut network, 1, region, Mode::Shared);
    }
    assert_eq!(sent(&mut network), []);
}

#[test]
fn a_node_that_reads_need_not_wait_for_a_writer_to_read_again() {
    for node in [0, 1] {
        let (mut network, region) = mapped(3);
        begin(&mut network, node, region, Mode::Shared);
        begin(&mut network, 2, region, Mode::Exclusive);
        begin(&mut network, node, region, Mode::Shared);
        assert!(is_granted(&mut network, node, region));
        end(&mut network, node, region, Mode::Shared);
        assert!(!is_granted(&mut network, 2, region));
        end(&mut network, node, region, Mode::Shared);
        assert!(is_granted(&mut network, 2, region));
    }
}

#[test]
fn a_waiting_writer_is_not_passed_by_new_readers() {
    let (mut network, region) = mapped(3);
    begin(&mut network, 1, region, Mode::Shared);
    begin(&mut network, 2, region, Mode::Exclusive);
    begin(&mut network, 0, region, Mode::Shared);
    assert!(!is_granted(&mut network, 0, region));
    end(&mut network, 1, region, Mode::Shared);
    assert!(is_granted(&mut network, 2, region));
    end(&mut network, 2, region, Mode::Exclusive);
    assert!(is_granted(&mut network, 0, region));
}

/// The node that is to pass its copy hears last that the other one is lost.
#[test]
fn a_copy_that_is_not_passed_yet_is_recalled() {
    let (mut network, region) = mapped(3);
    begin(&mut network, 1, region, Mode::Exclusive);
    begin(&mut network, 2, region, Mode::Exclusive);
    network.kill(2, &mut Random(1));
    let is_stalled = [false, true, false];
    while network.deliver(0, &is_stalled) {}
    // It ends before it hears of the loss, but after it is told to give the copy home.
    while network.deliver_from(0, 1) {}
    end(&mut network, 1, region, Mode::Exclusive);
    whole(&mut network, 0, region, Mode::Shared);
}

#[test]
fn a_writer_that_is_killed_while_it_waits_loses_nothing() {
    let (mut network, region) = mapped(3);
    begin(&mut network, 1, region, Mode::Exclusive);
    begin(&mut network, 2, region, Mode::Exclusive);
    network.kill(2, &mut Random(1));
    network.deliver_all();
    end(&mut network, 1, region, Mode::Exclusive);
    assert!(network.may_be_lost.is_empty());
    whole(&mut network, 0, region, Mode::Exclusive);
    // One that has it takes it along.
    begin(&mut network, 1, region, Mode::Exclusive);
    begin(&mut network, 0, region, Mode::Shared);
    network.kill(1, &mut Random(1));
    network.deliver_all();
    let lost = CrlError::Lost { region, node: 1 };
    assert_eq!(network.machines[0].is_granted(region), Err(lost));
}
