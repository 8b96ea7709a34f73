use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::routing::tests::any_network;
use super::super::saturation::paper_fabric;
use super::super::tests::{self, Outcome, drive, drive_with, frame, ns, resume};
use super::super::topology::{PAPER_PS_PER_BYTE, PAPER_SWITCH_LATENCY};
use super::*;
use crate::time::Span;

mod bytes;

type Act<'a> = tests::Act<'a, Fabric<u64>>;

fn fabric(topology: &Topology, routing: Routing, seed: u64) -> Fabric<u64> {
    Fabric::new(topology, routing, &mut Random::new(seed)).unwrap()
}

fn act<'a>(at: Time, act: impl FnOnce(&mut Fabric<u64>, Time) + 'a) -> Act<'a> {
    (at, Box::new(act))
}

fn take_nothing(fabric: &mut Fabric<u64>, host: u32) {
    fabric.set_receiving(ns(0), HostId(host), false);
}

fn span(topology: &Topology, bytes: u32) -> Span {
    let outcome = drive(
        &mut fabric(topology, Routing::Pair, 1),
        vec![(ns(0), frame(0, 0, 1, bytes))],
    );
    outcome.arrivals(1)[0].0.since(Time::ZERO)
}

#[test]
fn an_idle_way_takes_what_the_paper_adds_up() {
    for switches in 1..6 {
        for bytes in [1, 32, 256, 4096] {
            let wire = Span::from_ps(PAPER_PS_PER_BYTE) * u64::from(bytes);
            let hops = PAPER_SWITCH_LATENCY * u64::from(switches);
            let line = Topology::line(switches).buffers(4096);
            assert_eq!(
                span(&line, bytes),
                hops + wire,
                "each byte is on all cables at once"
            );
            let line = line.switching(Switching::StoreAndForward);
            let wires = wire * (u64::from(switches) + 1);
            assert_eq!(
                span(&line, bytes),
                hops + wires,
                "one cable after the other"
            );
        }
    }
    // Every cable with a length of its own, and one that is slow.
    let mut line = Topology::line(3);
    for (cable, delay_ns) in line.cables.iter_mut().zip([10, 20, 30, 40]) {
        cable.delay = Span::from_ns(delay_ns);
    }
    line.cables[2].ps_per_byte = 30_000;
    assert_eq!(span(&line, 100), Span::from_ns(1_500 + 100 + 3_000));
}

#[test]
fn worms_follow_each_other_without_a_gap() {
    let sends = (0..20).map(|at| (ns(0), frame(at, 0, 1, 256))).collect();
    let outcome = drive(&mut fabric(&Topology::line(3), Routing::Pair, 1), sends);
    let at: Vec<u64> = outcome
        .arrivals(1)
        .iter()
        .map(|(at, _)| at.as_ns())
        .collect();
    assert_eq!(
        at,
        (1..=20).map(|at| 1_500 + at * 3_200).collect::<Vec<_>>()
    );
}

/// Hosts 0 and 1 at one switch, 2 and 3 at the next.
fn pair_of_switches(buffer_bytes: u64) -> Topology {
    let mut topology = Topology::folded_clos(2, 2, 1, 1).unwrap();
    topology = topology.buffers(buffer_bytes);
    topology
}

#[test]
fn a_worm_that_is_stopped_holds_what_is_behind_it() {
    let sends = || {
        vec![
            (ns(0), frame(0, 0, 2, 2_000)),
            (ns(10), frame(1, 1, 3, 100)),
        ]
    };
    let free = drive(
        &mut fabric(&pair_of_switches(256), Routing::Pair, 1),
        sends(),
    );
    let late = ns(1_000_000);
    // With small buffers the packet for host 2 keeps the only way to host 3.
    let mut small = fabric(&pair_of_switches(256), Routing::Pair, 1);
    take_nothing(&mut small, 2);
    let outcome = drive_with(&mut small, sends(), [resume(late, 2)].into());
    assert!(outcome.arrivals(3)[0].0 > late);
    assert!(free.arrivals(3)[0].0 < ns(50_000));
    // With large ones it is out of the way, but what is behind it in the same input still waits.
    let mut large = fabric(&pair_of_switches(4_096), Routing::Pair, 1);
    take_nothing(&mut large, 2);
    let outcome = drive_with(&mut large, sends(), [resume(late, 2)].into());
    assert!(outcome.arrivals(3)[0].0 > late, "head-of-line blocking");
    // And what comes from elsewhere does not.
    let mut large = fabric(&pair_of_switches(4_096), Routing::Pair, 1);
    take_nothing(&mut large, 2);
    let others = vec![
        (ns(0), frame(0, 0, 2, 2_000)),
        (ns(9_000), frame(1, 2, 3, 100)),
    ];
    let outcome = drive_with(&mut large, others, [resume(late, 2)].into());
    assert!(outcome.arrivals(3)[0].0 < ns(20_000));
}

#[test]
fn inputs_have_turns() {
    // Seven hosts send to one, each as much as it can.
    let sends = (0..700).map(|at| (ns(0), frame(at, 1 + at as u32 % 7, 0, 100)));
    let outcome = drive(
        &mut fabric(&Topology::single_switch(8), Routing::Pair, 1),
        sends.collect(),
    );
    let from: Vec<u64> = outcome
        .arrivals(0)
        .iter()
        .map(|(_, number)| number % 7)
        .collect();
    assert_eq!(from.len(), 700);
    for turns in from.chunks_exact(7) {
        let mut turns = turns.to_vec();
        turns.sort_unstable();
        assert_eq!(turns, [0, 1, 2, 3, 4, 5, 6]);
    }
    // The output is never idle: 100 bytes at 12.5 ns.
    let (last, _) = outcome.arrivals(0)[699];
    assert_eq!(last, ns(500 + 700 * 1_250));
}

#[test]
fn a_sender_chooses_ports() {
    let mut fabric = fabric(&Topology::single_switch(4), Routing::Adaptive, 1);
    let mut send = |number, to, ports: &[u16]| {
        fabric
            .send_along(ns(number * 100_000), frame(number, 0, to, 10), ports)
            .unwrap();
        let mut events = Vec::new();
        while let Some(next) = fabric.next() {
            fabric.advance(next, &mut |event| events.push(event));
        }
        assert_eq!(events.len(), 1);
        events.remove(0)
    };
    // Wherever the ports lead, and not where the frame says.
    assert!(matches!(
        send(1, 3, &[2]),
        Event::Delivered {
            host: HostId(2),
            ..
        }
    ));
    assert!(matches!(
        send(2, 3, &[0]),
        Event::Delivered {
            host: HostId(0),
            ..
        }
    ));
    for (number, ports) in [(3, &[][..]), (4, &[7]), (5, &[99]), (6, &[1, 1])] {
        let reason = Loss::Astray;
        let at = ns(number * 100_000);
        assert_eq!(send(number, 1, ports), Event::Lost { at, number, reason });
    }
    let (_, refusal) = fabric
        .send_along(ns(0), frame(9, 4, 0, 1), &[])
        .unwrap_err();
    assert_eq!(refusal, Refusal::NoHost);
}

#[test]
fn a_host_without_power_has_its_frames_discarded() {
    let mut fabric = fabric(&pair_of_switches(256), Routing::Pair, 1);
    take_nothing(&mut fabric, 2);
    let off = act(ns(100_000), |fabric, now| {
        fabric.set_power(now, HostId(2), false)
    });
    let on = act(ns(200_000), |fabric, now| {
        fabric.set_power(now, HostId(2), true);
        fabric.set_receiving(now, HostId(2), true);
    });
    let sends = vec![
        (ns(0), frame(0, 0, 2, 2_000)),
        (ns(10), frame(1, 1, 3, 100)),
        (ns(150_000), frame(2, 0, 2, 100)),
        (ns(250_000), frame(3, 0, 2, 100)),
    ];
    let outcome = drive_with(&mut fabric, sends, [off, on].into());
    assert_eq!(outcome.lost(), [(0, Loss::HostOff), (2, Loss::HostOff)]);
    assert!(
        outcome.arrivals(3)[0].0 < ns(150_000),
        "what was behind it goes on"
    );
    assert_eq!(outcome.arrivals(2).len(), 1);
}

#[test]
fn cables_go_down_and_adaptive_routing_goes_around_them() {
    let topology = Topology::folded_clos(2, 2, 2, 1).unwrap();
    // Cables of leaf 0: two hosts, then one to each spine.
    let run = |routing| {
        let mut fabric = fabric(&topology, routing, 1);
        let down = act(ns(1_000), |fabric, _| fabric.set_cable(2, false));
        let up = act(ns(1_000_000), |fabric, _| fabric.set_cable(2, true));
        let sends = (0..40).map(|at| (ns(at * 50_000), frame(at, 0, 2 + at as u32 % 2, 100)));
        drive_with(&mut fabric, sends.collect(), [down, up].into())
    };
    let adaptive = run(Routing::Adaptive);
    assert_eq!(
        (adaptive.lost(), adaptive.counts().len()),
        (vec![(0, Loss::Down)], 39)
    );
    let single = run(Routing::Destination);
    assert!(
        single
            .lost()
            .iter()
            .all(|(number, why)| *number < 20 && *why == Loss::Down)
    );
    assert_eq!(single.lost().len(), 10, "one of two hosts is not reached");
    assert_eq!(single.counts().len(), 30);
}

#[test]
fn cables_lose_and_damage_as_they_are_told() {
    let mut topology = Topology::single_switch(2);
    topology.cables[0].loses_per_million = 100_000;
    topology.cables[1].damages_per_million = 100_000;
    let sends = (0..2_000).map(|at| (ns(0), frame(at, 0, 1, 10))).collect();
    let outcome = drive(&mut fabric(&topology, Routing::Pair, 1), sends);
    let lost = outcome.lost();
    assert!((100..300).contains(&lost.len()) && lost.iter().all(|lost| lost.1 == Loss::Chance));
    assert_eq!(outcome.counts().len() + lost.len(), 2_000);
    let damaged: Vec<_> = outcome
        .delivered()
        .filter(|(_, frame)| frame.damaged)
        .collect();
    assert!((100..300).contains(&damaged.len()));
    assert!(
        damaged
            .iter()
            .all(|(_, frame)| frame.payload != frame.number)
    );
}

#[test]
fn what_cannot_go_is_refused() {
    let refusal = |topology: &Topology, from, to, bytes| {
        let sent = fabric(topology, Routing::Pair, 1).send(ns(0), frame(7, from, to, bytes));
        sent.err().map(|(frame, refusal)| (frame.number, refusal))
    };
    let line = Topology::line(2).buffers(100);
    assert_eq!(refusal(&line, 0, 2, 1), Some((7, Refusal::NoHost)));
    assert_eq!(refusal(&line, 0, 1, 101), None);
    let stored = line.switching(Switching::StoreAndForward);
    assert_eq!(refusal(&stored, 0, 1, 101), Some((7, Refusal::TooLong)));
    assert_eq!(refusal(&stored, 0, 1, 100), None);
    let mut apart = Topology::line(2);
    apart.cables.pop();
    assert_eq!(refusal(&apart, 0, 1, 1), Some((7, Refusal::NoWay)));
    assert_eq!(refusal(&apart, 0, 0, 1), None, "to itself by its switch");
    // Two hosts on one cable, and two on another.
    let mut pairs = Topology::default();
    for at in 0..4 {
        let name = format!("h{at}");
        pairs.hosts.push(super::super::topology::Host { name });
    }
    pairs.connect(End::Host(0), End::Host(1));
    pairs.connect(End::Host(2), End::Host(3));
    assert_eq!(refusal(&pairs, 0, 2, 1), Some((7, Refusal::NoWay)));
    assert_eq!(span(&pairs, 80), Span::from_us(1));
}

/// Bursts: each host sends as much as it can.
fn full_load(hosts: u32, count: u64, seed: u64) -> Vec<(Time, Frame<u64>)> {
    let mut random = Random::new(seed);
    let mut any = || random.below(hosts.into()) as u32;
    let mut lengths = Random::new(seed ^ 1);
    let send = |at| {
        (
            ns(0),
            frame(
                at,
                at as u32 % hosts,
                any(),
                1 + lengths.below(1_500) as u32,
            ),
        )
    };
    (0..count).map(send).collect()
}

fn check(outcome: &Outcome, count: u64, keeps_order: bool) {
    assert_eq!(outcome.stuck, 0);
    let counts = outcome.counts();
    assert_eq!(counts.len() as u64, count);
    assert!(counts.values().all(|&count| count == 1));
    let mut latest = BTreeMap::new();
    let mut is_ordered = true;
    for (_, frame) in outcome.delivered() {
        let last = latest.insert((frame.from, frame.to), frame.number);
        is_ordered &= last.is_none_or(|last| last < frame.number);
    }
    assert!(is_ordered || !keeps_order);
}

#[test]
fn nothing_deadlocks_under_full_load() {
    let mut modern = Topology::fat_tree(8, 2).unwrap();
    modern
        .cables
        .iter_mut()
        .for_each(|cable| cable.ps_per_byte = 1_000);
    modern = modern.buffers(600);
    let all = [
        Topology::single_switch(20),
        paper_fabric(8).unwrap(),
        paper_fabric(64).unwrap().buffers(40),
        Topology::folded_clos(4, 6, 2, 2).unwrap(),
        modern,
    ];
    for topology in all {
        for routing in Routing::ALL {
            let stored = topology
                .clone()
                .buffers(2_000)
                .switching(Switching::StoreAndForward);
            for topology in [&topology, &stored] {
                let sends = full_load(topology.host_count() as u32, 1_000, 3);
                let mut fabric = fabric(topology, routing, 5);
                let outcome = drive(&mut fabric, sends);
                check(&outcome, 1_000, routing.keeps_order());
                assert_eq!(fabric.frames(), 0);
            }
        }
    }
}

#[test]
fn many_ways_reorder_and_one_does_not() {
    let topology = paper_fabric(64).unwrap();
    let late = |routing| {
        let sends = full_load(64, 3_000, 9).into_iter();
        // Few pairs, so that there is something to reorder.
        let sends = sends.map(|(at, mut frame)| {
            frame.to = HostId((frame.from.0 + 17) % 64);
            (at, frame)
        });
        let outcome = drive(&mut fabric(&topology, routing, 5), sends.collect());
        let mut latest = BTreeMap::new();
        let late = outcome.delivered().filter(|(_, frame)| {
            let last = latest.insert(frame.from, frame.number);
            last.is_some_and(|last| last > frame.number)
        });
        late.count()
    };
    for routing in Routing::ALL {
        assert_eq!(late(routing) == 0, routing.keeps_order(), "{routing:?}");
    }
}

#[test]
fn a_seed_is_a_history() {
    let run = |routing, seed| {
        let topology = paper_fabric(64).unwrap();
        drive(
            &mut fabric(&topology, routing, seed),
            full_load(64, 1_000, 9),
        )
    };
    for routing in Routing::ALL {
        assert_eq!(run(routing, 1), run(routing, 1));
    }
    assert_ne!(run(Routing::Spray, 1), run(Routing::Spray, 2));
}

fn any_topology() -> impl Strategy<Value = Topology> {
    let rates = prop::collection::vec(1..4u64, 64);
    let shape = (0..4u8, 1..4u16, 1..4u16);
    (shape, rates, any::<bool>(), 1..300u64, any::<bool>()).prop_map(
        |((kind, one, other), rates, are_equal, buffer_bytes, is_stored)| {
            let mut topology = match kind {
                0 => Topology::single_switch(one * 3),
                1 => Topology::line(one),
                2 => Topology::folded_clos(one, other, 2, 1).unwrap(),
                _ => Topology::fat_tree(2, other.into()).unwrap(),
            };
            topology = topology.buffers(if is_stored { 500 } else { 80 + buffer_bytes });
            for (cable, rate) in topology.cables.iter_mut().zip(rates.iter().cycle()) {
                cable.ps_per_byte = if are_equal { 12_500 } else { 12_500 * rate };
            }
            match is_stored {
                true => topology.switching(Switching::StoreAndForward),
                false => topology,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_comes_once_and_not_too_early(
        topology in any_topology(),
        sends in prop::collection::vec((0..20_000u64, any::<u32>(), any::<u32>(), 1..500u32), 1..100),
        routing in prop::sample::select(Routing::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let hosts = topology.host_count() as u32;
        let mut now = 0;
        let sends: Vec<_> = sends.into_iter().enumerate().map(|(number, (step, from, to, bytes))| {
            now += step;
            (ns(now), frame(number as u64, from % hosts, to % hosts, bytes))
        }).collect();
        let mut fabric = fabric(&topology, routing, seed);
        let outcome = drive(&mut fabric, sends.clone());
        check(&outcome, sends.len() as u64, routing.keeps_order());
        prop_assert_eq!(fabric.frames(), 0);
        for (at, frame) in outcome.delivered() {
            let least = PAPER_SWITCH_LATENCY + Span::from_ps(12_500) * u64::from(frame.bytes);
            prop_assert!(at.since(outcome.taken[&frame.number]) >= least);
        }
        // A host's cable carries one byte after the other.
        for host in 0..hosts {
            let rate = fabric.channels[fabric.hosts[host as usize].into as usize].ps_per_byte;
            let lengths: BTreeMap<_, _> =
                outcome.delivered().map(|(_, frame)| (frame.number, frame.bytes)).collect();
            for pair in outcome.arrivals(host).windows(2) {
                let bytes = u64::from(lengths[&pair[1].1]);
                prop_assert!(pair[1].0.since(pair[0].0) >= Span::from_ps(rate) * bytes);
            }
        }
        // Nothing is left behind in any channel.
        for channel in &fabric.channels {
            prop_assert!(channel.user.is_none() && channel.occupants.is_empty());
            prop_assert_eq!(channel.reserved_bytes, 0);
            prop_assert!(channel.waiting.is_empty());
        }
    }

    #[test]
    fn no_network_deadlocks_whatever_its_circles(
        topology in any_network(),
        routing in prop::sample::select(Routing::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let topology = topology.buffers(40);
        let sends = full_load(topology.host_count() as u32, 80, seed);
        let outcome = drive(&mut fabric(&topology, routing, seed), sends);
        check(&outcome, 80, routing.keeps_order());
    }

    #[test]
    fn whatever_breaks_each_frame_comes_or_is_lost(
        breaks in prop::collection::vec((0..400_000u64, 1..200_000u64, any::<u32>(), 0..3u8), 0..12),
        routing in prop::sample::select(Routing::ALL.to_vec()),
        seed in any::<u64>(),
    ) {
        let topology = Topology::folded_clos(3, 3, 2, 1).unwrap();
        let (hosts, cables) = (9, topology.cables.len() as u32);
        let mut others: Vec<Act<'_>> = Vec::new();
        for (from, span, which, kind) in breaks {
            for (at, is_well) in [(from, false), (from + span, true)] {
                others.push(act(ns(at), move |fabric, now| match kind {
                    0 => fabric.set_cable((which % cables) as usize, is_well),
                    1 => fabric.set_power(now, HostId(which % hosts), is_well),
                    _ => fabric.set_receiving(now, HostId(which % hosts), is_well),
                }));
            }
        }
        others.sort_by_key(|(at, _)| *at);
        let mut fabric = fabric(&topology, routing, seed);
        let outcome = drive_with(&mut fabric, full_load(hosts, 150, seed), others.into());
        prop_assert_eq!((outcome.stuck, fabric.frames()), (0, 0));
        let mut fates = outcome.counts();
        for (number, why) in outcome.lost() {
            prop_assert!(why == Loss::Down || why == Loss::HostOff);
            *fates.entry(number).or_default() += 1;
        }
        prop_assert_eq!(fates.len(), 150);
        prop_assert!(fates.values().all(|&fates| fates == 1));
    }
}
