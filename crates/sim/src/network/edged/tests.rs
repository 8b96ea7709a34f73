use proptest::prelude::*;

use super::super::part::{Cut, WhenFull};
use super::super::tests::{drive, drive_with, frame, ns, resume};
use super::super::{Fabric, Loss, Mesh, Routing, Topology};
use super::*;
use crate::time::Span;

fn edged(outbound: &[Part], inbound: &[Part], seed: u64) -> Edged<u64, Fabric<u64>> {
    let mut random = Random::new(seed);
    let topology = Topology::folded_clos(3, 2, 2, 1).unwrap();
    let fabric = Fabric::new(&topology, Routing::Adaptive, &mut random).unwrap();
    Edged::new(fabric, outbound, inbound, &mut random).unwrap()
}

fn buffer(limit_bytes: u64) -> Part {
    let when_full = WhenFull::Refuse;
    Part::Buffer {
        limit_bytes,
        when_full,
    }
}

#[test]
fn delays_at_the_edges_add_up() {
    let (out, into) = (Span::from_ns(300), Span::from_ns(40));
    let sends = vec![(ns(0), frame(0, 0, 5, 100))];
    let plain = drive(&mut edged(&[], &[], 1), sends.clone()).arrivals(5);
    let slow = drive(
        &mut edged(&[Part::delay(out)], &[Part::delay(into)], 1),
        sends,
    )
    .arrivals(5);
    assert_eq!(slow[0].0.since(plain[0].0), out + into);
}

#[test]
fn a_host_that_takes_nothing_stops_senders_through_all_buffers() {
    let mut network = edged(&[buffer(500)], &[buffer(500)], 1);
    let sends: Vec<_> = (0..40)
        .map(|at| (ns(0), frame(at, at as u32 % 2, 5, 250)))
        .collect();
    network.set_receiving(ns(0), HostId(5), false);
    let outcome = drive_with(&mut network, sends, [resume(ns(1_000_000), 5)].into());
    assert_eq!(outcome.stuck, 0);
    let arrivals = outcome.arrivals(5);
    assert_eq!(arrivals.len(), 40);
    assert!(arrivals.iter().all(|(at, _)| *at >= ns(1_000_000)));
    let late = outcome
        .taken
        .values()
        .filter(|at| **at >= ns(1_000_000))
        .count();
    assert!(
        late >= 20,
        "only what fits is taken before: {late} came later"
    );
}

#[test]
fn a_partition_at_the_edge_takes_what_it_should() {
    let cut = |one: &[u32], other: &[u32]| Cut {
        from_ps: 0,
        until_ps: 1_000_000_000,
        one: one.iter().copied().map(HostId).collect(),
        other: other.iter().copied().map(HostId).collect(),
    };
    let cuts = vec![cut(&[0, 1], &[2, 3, 4, 5])];
    let mut network = edged(&[Part::Partition { cuts }], &[], 1);
    let sends = [(0, 1), (0, 2), (3, 1), (3, 5)].into_iter().zip(0..);
    let sends = sends.map(|((from, to), at)| (ns(at), frame(at, from, to, 100)));
    let again = [(0, 2), (3, 1)].into_iter().zip(4..);
    let again = again.map(|((from, to), at)| (ns(1_000_000 + at), frame(at, from, to, 100)));
    let outcome = drive(&mut network, sends.chain(again).collect());
    assert_eq!(outcome.lost(), [(1, Loss::Partition), (2, Loss::Partition)]);
    assert_eq!(
        outcome.counts().into_keys().collect::<Vec<_>>(),
        [0, 3, 4, 5]
    );
}

#[test]
fn what_the_network_can_never_take_is_refused_at_the_edge() {
    let mut network = edged(&[buffer(500)], &[], 1);
    let (_, refusal) = network.send(ns(0), frame(0, 0, 6, 1)).unwrap_err();
    assert_eq!(refusal, Refusal::NoHost);
    assert_eq!(network.next(), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_has_a_fate_through_nested_networks(
        sends in prop::collection::vec((0..3_000u64, 0..6u32, 0..6u32, 1..600u32), 1..150),
        seed in any::<u64>(),
    ) {
        let outbound = [
            buffer(1_000),
            Part::Jitter { up_to_ps: 900_000 },
            Part::Lose { per_million: 50_000, run_frames: 1 },
        ];
        let inbound = [
            Part::Duplicate { per_million: 50_000 },
            Part::Reorder { per_million: 100_000, up_to_ps: 9_000_000 },
            buffer(700),
            Part::Bandwidth { ps_per_byte: 15_000 },
        ];
        let mut now = 0;
        let sends: Vec<_> = sends.into_iter().enumerate().map(|(number, (step, from, to, bytes))| {
            now += step;
            (ns(now), frame(number as u64, from, to, bytes))
        }).collect();
        // Edges around edges around a fabric, of which the outer ones need not know.
        let nested = || {
            let inner: Box<dyn Network<u64>> = Box::new(edged(&outbound, &inbound, seed));
            Edged::new(inner, &[Part::delay(Span::from_ns(5))], &[buffer(600)], &mut Random::new(seed)).unwrap()
        };
        let outcome = drive(&mut nested(), sends.clone());
        prop_assert_eq!(outcome.stuck, 0);
        let counts = outcome.counts();
        let lost = outcome.lost();
        for number in 0..sends.len() as u64 {
            let lost = lost.iter().filter(|lost| lost.0 == number).count() as u32;
            let came = counts.get(&number).copied().unwrap_or(0);
            prop_assert!(lost + came == 1 || lost == 0 && came == 2);
        }
        prop_assert_eq!(outcome, drive(&mut nested(), sends));
    }

    #[test]
    fn edges_go_around_a_mesh_as_well(count in 1..60u64, seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mesh = Mesh::new(3, &[Part::delay(Span::from_ns(9))], &mut random).unwrap();
        let wire = [buffer(300), Part::Bandwidth { ps_per_byte: 1_000 }];
        let mut network = Edged::new(mesh, &wire, &wire, &mut random).unwrap();
        // Two send to one, so its inbound wire is what limits.
        let sends = (0..count).map(|at| (ns(0), frame(at, at as u32 % 2, 2, 100))).collect();
        let outcome = drive(&mut network, sends);
        let arrivals = outcome.arrivals(2);
        prop_assert_eq!(arrivals.len() as u64, count);
        for pair in arrivals.windows(2) {
            prop_assert!(pair[1].0.since(pair[0].0) >= Span::from_ns(100));
        }
        prop_assert_eq!(arrivals[arrivals.len() - 1].0, ns(109 + count * 100));
    }
}
