use proptest::prelude::*;

use super::super::Loss;
use super::super::impairment::WhenFull;
use super::super::tests::{Outcome, drive, drive_with, frame, ns, resume};
use super::*;
use crate::time::Span;

fn mesh(hosts: u32, impairments: &[Impairment], seed: u64) -> Mesh<u64> {
    Mesh::new(hosts, impairments, &mut Random::new(seed)).unwrap()
}

fn wire() -> Vec<Impairment> {
    let when_full = WhenFull::Refuse;
    let limit_bytes = 200;
    vec![
        Impairment::Buffer {
            limit_bytes,
            when_full,
        },
        Impairment::Bandwidth { ps_per_byte: 1_000 },
        Impairment::delay(Span::from_ns(50)),
    ]
}

#[test]
fn a_refused_sender_hears_when_there_is_room() {
    let sends = (0..10).map(|at| (ns(0), frame(at, 0, 1, 100))).collect();
    let outcome = drive(&mut mesh(2, &wire(), 1), sends);
    assert_eq!(outcome.stuck, 0);
    let at: Vec<u64> = outcome
        .arrivals(1)
        .iter()
        .map(|(at, _)| at.as_ns())
        .collect();
    assert_eq!(at, (1..=10).map(|at| at * 100 + 50).collect::<Vec<_>>());
    let rooms = outcome
        .events
        .iter()
        .filter(|event| matches!(event, Event::Room { .. }));
    assert_eq!(rooms.count(), 7, "three were taken at once");
}

#[test]
fn strangers_are_refused() {
    let mut mesh = mesh(2, &[], 1);
    for (from, to) in [(0, 2), (2, 0)] {
        let (back, refusal) = mesh.send(ns(0), frame(7, from, to, 1)).unwrap_err();
        assert_eq!((back.number, refusal), (7, Refusal::NoHost));
    }
    assert_eq!(mesh.next(), None);
}

#[test]
fn a_host_that_takes_nothing_stops_its_senders_and_then_gets_everything() {
    let sends = (0..10)
        .map(|at| (ns(at * 10), frame(at, 0, 1, 100)))
        .collect();
    let mut mesh = mesh(2, &wire(), 1);
    mesh.set_receiving(ns(0), HostId(1), false);
    let outcome = drive_with(&mut mesh, sends, [resume(ns(5_000), 1)].into());
    assert_eq!(outcome.stuck, 0);
    let arrivals = outcome.arrivals(1);
    assert_eq!(arrivals.len(), 10);
    assert!(arrivals.iter().all(|(at, _)| *at >= ns(5_000)));
    assert!(
        outcome.taken[&9] >= ns(5_000),
        "the last one had no room before"
    );
}

#[test]
fn a_frame_that_may_not_leave_its_pipe_is_no_event() {
    let mut mesh = mesh(2, &[Impairment::delay(Span::from_ns(9))], 1);
    mesh.set_receiving(ns(0), HostId(1), false);
    mesh.send(ns(0), frame(0, 0, 1, 100)).unwrap();
    mesh.advance(ns(9), &mut |event| panic!("{event:?}"));
    assert_eq!(mesh.next(), None);
}

#[test]
fn one_pair_may_have_other_parts() {
    let mut mesh = mesh(3, &[], 1);
    let lose_all = Impairment::Lose {
        per_million: 1_000_000,
        run_frames: 1,
    };
    mesh.set_impairments(HostId(0), HostId(1), &[lose_all])
        .unwrap();
    let sends = vec![
        (ns(0), frame(0, 0, 1, 1)),
        (ns(0), frame(1, 0, 2, 1)),
        (ns(0), frame(2, 1, 0, 1)),
    ];
    let outcome = drive(&mut mesh, sends);
    assert_eq!(outcome.lost(), [(0, Loss::Chance)]);
    assert_eq!(outcome.counts().into_keys().collect::<Vec<_>>(), [1, 2]);
    assert!(
        mesh.set_impairments(
            HostId(0),
            HostId(1),
            &[Impairment::Bandwidth { ps_per_byte: 0 }]
        )
        .is_err()
    );
}

fn noisy() -> Vec<Impairment> {
    let mut impairments = wire();
    impairments.push(Impairment::Lose {
        per_million: 100_000,
        run_frames: 2,
    });
    impairments.push(Impairment::Reorder {
        per_million: 100_000,
        up_to_ps: 400_000,
    });
    impairments.push(Impairment::Duplicate {
        per_million: 100_000,
    });
    impairments
}

/// What became of the frames of one pair.
fn of_pair(outcome: &Outcome, from: u32, to: u32) -> Vec<(Time, u64)> {
    outcome
        .delivered()
        .filter(|(_, frame)| (frame.from.0, frame.to.0) == (from, to))
        .map(|(at, frame)| (at, frame.number))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_has_a_fate_and_pairs_do_not_know_of_each_other(
        sends in prop::collection::vec((0..200u64, 0..4u32, 0..4u32, 1..150u32), 1..120),
        seed in any::<u64>(),
    ) {
        let mut now = 0;
        let sends: Vec<_> = sends.into_iter().enumerate().map(|(number, (step, from, to, bytes))| {
            now += step;
            (ns(now), frame(number as u64, from, to, bytes))
        }).collect();
        let outcome = drive(&mut mesh(4, &noisy(), seed), sends.clone());
        prop_assert_eq!(outcome.stuck, 0);
        let counts = outcome.counts();
        for number in 0..sends.len() as u64 {
            let lost = outcome.lost().iter().filter(|lost| lost.0 == number).count() as u32;
            let came = counts.get(&number).copied().unwrap_or(0);
            prop_assert!(lost + came == 1 || lost == 0 && came == 2);
        }
        prop_assert_eq!(&outcome, &drive(&mut mesh(4, &noisy(), seed), sends.clone()));
        // The same frames of one pair, taken at the same instants, without all others.
        let alone = sends.into_iter().filter(|(_, frame)| (frame.from.0, frame.to.0) == (1, 2));
        let alone = alone.map(|(_, frame)| (outcome.taken[&frame.number], frame)).collect();
        let alone = drive(&mut mesh(4, &noisy(), seed), alone);
        prop_assert_eq!(of_pair(&alone, 1, 2), of_pair(&outcome, 1, 2));
    }
}
