//! A node that sends anything: no panic, and nothing grows without bound.

use super::network::{Network, Random};
use crate::context::Mode;
use crate::id::{NodeSet, RegionId};
use crate::message::{Kind, Message};

const NODES: usize = 4;

/// A message as it may come of a peer: all of its fields are valid, and none needs to make sense.
fn any_message(random: &mut Random) -> (Message, Vec<u8>) {
    let small = |random: &mut Random| random.below(NODES as u64) as u32;
    let kind = Kind::ALL[random.below(Kind::ALL.len() as u64) as usize];
    let region = RegionId {
        home: small(random),
        index: random.below(3) as u32,
    };
    // Numbers of requests that are under way are small.
    let number = random.below(200) as u32;
    let mut message = Message::new(kind, region, number).of(small(random), 0);
    message.other = match random.below(3) {
        0 => 0,
        1 => random.below(300) as u32,
        _ => u32::MAX - random.below(3) as u32,
    };
    message.nodes = (0..random.below(3))
        .map(|_| small(random))
        .collect::<NodeSet>();
    let bytes = vec![7; [0, 24, 100, 2000][random.below(4) as usize]];
    (message, bytes)
}

#[test]
fn nothing_that_a_node_sends_harms_the_machine() {
    for seed in 0..60 {
        let mut random = Random(seed * 31 + 7);
        let mut network = Network::new(NODES, 1, 24);
        let mut regions = Vec::new();
        for node in 0..NODES {
            for _ in 0..2 {
                regions.push(network.machines[node].create(100).unwrap());
            }
        }
        for _ in 0..3_000 {
            // Node 0 is hostile, and may be lost at last.
            let node = 1 + random.below(NODES as u64 - 1) as usize;
            let region = regions[random.below(regions.len() as u64) as usize];
            let mode = if random.is_one_in(2) {
                Mode::Shared
            } else {
                Mode::Exclusive
            };
            let (message, bytes) = any_message(&mut random);
            let choice = random.below(14);
            // Any of these may fail; none may panic.
            network.call(node, |machine, out| match choice {
                0 => machine.map(region, out),
                1 => drop(machine.start(region, mode, out)),
                2 | 3 => drop(machine.end(region, mode, out)),
                4 => machine.unmap(region, out),
                5 => drop(machine.flush(region, out)),
                6 => machine.cancel(region, out),
                7 if seed % 3 == 0 => machine.destroy(region, out),
                _ => machine.receive(0, &message, &bytes, out),
            });
            if choice == 8 && seed % 5 == 0 && random.is_one_in(500) {
                network.call(node, |machine, out| machine.on_lost(0, out));
            }
            for _ in 0..2 {
                let first = random.below((NODES * NODES) as u64) as usize;
                network.deliver(first, &[true, false, false, false]);
            }
        }
        for machine in &network.machines[1..] {
            for copy in machine.copies.values() {
                let waiting = copy.directory.as_ref().map_or(0, |it| it.waiting());
                assert!(waiting <= NODES, "a node waits once");
            }
            assert!(machine.copies.len() <= 12, "nothing but what was mapped");
        }
    }
}

/// Others are not believed words that are the holder's of a copy, or the next one's.
#[test]
fn a_node_cannot_speak_for_another_one() {
    let mut network = Network::new(NODES, 8, 1 << 16);
    let region = network.machines[0].create(8).unwrap();
    for node in [1, 2] {
        network.call(node, |machine, out| machine.map(region, out));
        network.deliver_all();
    }
    let begin = |network: &mut Network, node: usize, mode| {
        let started = network.call(node, |machine, out| machine.start(region, mode, out));
        started.unwrap();
        network.deliver_all();
    };
    // Node 3 knows all numbers, and says so in place of nodes 1 and 2.
    let forge = |network: &mut Network| {
        for number in 1..10 {
            for kind in [Kind::Flush, Kind::Back, Kind::Have, Kind::Drop, Kind::Stuck] {
                let message = Message::new(kind, region, number);
                network.call(0, |machine, out| machine.receive(3, &message, &[0; 8], out));
            }
        }
        network.deliver_all();
    };
    begin(&mut network, 1, Mode::Exclusive);
    let memory = network.machines[1].memory(region).unwrap().0;
    memory.borrow_mut().as_mut_slice().fill(9);
    forge(&mut network);
    begin(&mut network, 2, Mode::Exclusive);
    forge(&mut network);
    begin(&mut network, 0, Mode::Shared);
    assert_eq!(network.machines[0].is_granted(region), Ok(false));
    for node in [1, 2] {
        assert_eq!(
            network.machines[node].is_granted(region),
            Ok(true),
            "{node}"
        );
        let ended = network.call(node, |machine, out| {
            machine.end(region, Mode::Exclusive, out)
        });
        ended.unwrap();
        forge(&mut network);
        network.deliver_all();
    }
    assert_eq!(network.machines[0].is_granted(region), Ok(true));
    let memory = network.machines[0].memory(region).unwrap().0;
    assert_eq!(memory.borrow().as_slice(), [9; 8]);
}
