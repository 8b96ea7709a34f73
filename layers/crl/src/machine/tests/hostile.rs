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
