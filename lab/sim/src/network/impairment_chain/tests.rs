use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::HostId;
use super::super::impairment::{Cut, Schedule};
use super::super::tests::{frame, ns};
use super::*;

/// What came out and when, what was lost, and when each was taken.
#[derive(Default, PartialEq, Debug)]
struct Outcome {
    out: Vec<(Time, Frame<u64>)>,
    lost: Vec<(u64, Loss)>,
    taken: BTreeMap<u64, Time>,
    /// The most bytes that each impairment held.
    most_bytes: Vec<u64>,
}

fn impairment_chain(impairments: &[Impairment], seed: u64) -> ImpairmentChain<u64> {
    ImpairmentChain::new(impairments, &mut Random::new(seed)).unwrap()
}

/// Offers frames in order, each at its instant or as soon as it is taken.
fn run(
    impairment_chain: &mut ImpairmentChain<u64>,
    mut offers: VecDeque<(Time, Frame<u64>)>,
) -> Outcome {
    let mut outcome = Outcome {
        most_bytes: vec![0; impairment_chain.stages.len()],
        ..Outcome::default()
    };
    let mut now = Time::ZERO;
    loop {
        while let Some(frame) = impairment_chain.take(now) {
            outcome.out.push((now, frame));
        }
        while let Some((at, frame)) = offers.pop_front() {
            let number = frame.number;
            if at <= now {
                match impairment_chain.offer(now, frame) {
                    Ok(()) => {
                        outcome.taken.insert(number, now);
                        while let Some(frame) = impairment_chain.take(now) {
                            outcome.out.push((now, frame));
                        }
                        continue;
                    }
                    Err(frame) => offers.push_front((at, frame)),
                }
            } else {
                offers.push_front((at, frame));
            }
            break;
        }
        outcome.lost.extend(impairment_chain.take_lost());
        for (most, stage) in outcome.most_bytes.iter_mut().zip(&impairment_chain.stages) {
            *most = stage.held_bytes.max(*most);
        }
        let offer = offers.front().map(|(at, _)| *at).filter(|at| *at > now);
        let Some(next) = offer.into_iter().chain(impairment_chain.next()).min() else {
            assert!(offers.is_empty(), "{} frames are stuck", offers.len());
            assert!(
                impairment_chain
                    .stages
                    .iter()
                    .all(|stage| stage.held_bytes == 0)
            );
            return outcome;
        };
        assert!(next > now);
        now = next;
    }
}

fn burst(count: u64, bytes: u32) -> VecDeque<(Time, Frame<u64>)> {
    (0..count)
        .map(|number| (ns(0), frame(number, 0, 1, bytes)))
        .collect()
}

fn numbers(outcome: &Outcome) -> Vec<u64> {
    outcome.out.iter().map(|(_, frame)| frame.number).collect()
}

fn any_impairment() -> impl Strategy<Value = Impairment> {
    let when_down = prop_oneof![Just(WhenDown::Hold), Just(WhenDown::Lose)];
    let when_full = prop_oneof![Just(WhenFull::Refuse), Just(WhenFull::Drop)];
    prop_oneof![
        (0..50_000u64).prop_map(|delay_ps| Impairment::Delay { delay_ps }),
        (0..50_000u64).prop_map(|up_to_ps| Impairment::Jitter { up_to_ps }),
        (1..200u64).prop_map(|ps_per_byte| Impairment::Bandwidth { ps_per_byte }),
        (0..500_000u32, 1..50_000u64).prop_map(|(per_million, up_to_ps)| Impairment::Reorder {
            per_million,
            up_to_ps
        }),
        (0..300_000u32, 1..4u32).prop_map(|(per_million, run_frames)| Impairment::Lose {
            per_million,
            run_frames
        }),
        (0..500_000u32).prop_map(|per_million| Impairment::Duplicate { per_million }),
        (0..500_000u32).prop_map(|per_million| Impairment::Damage { per_million }),
        (100..1_000u64, when_full).prop_map(|(limit_bytes, when_full)| Impairment::Buffer {
            limit_bytes,
            when_full
        }),
        (0..40_000u64, 1..40_000u64).prop_map(|(from_ps, span)| Impairment::Partition {
            cuts: vec![Cut {
                from_ps,
                until_ps: from_ps + span,
                one: vec![HostId(0)],
                other: vec![HostId(1)],
            }]
        }),
        (1..20_000u64, 1..20_000u64, when_down).prop_map(|(up_ps, down_ps, when_down)| {
            let schedule = Schedule::Random { up_ps, down_ps };
            Impairment::ComeAndGo {
                schedule,
                when_down,
            }
        }),
    ]
}

fn any_offers() -> impl Strategy<Value = VecDeque<(Time, Frame<u64>)>> {
    prop::collection::vec((0..3_000u64, 1..100u32), 1..60).prop_map(|steps| {
        let mut now = Time::ZERO;
        let mut offers = VecDeque::new();
        for (number, (ps, bytes)) in steps.into_iter().enumerate() {
            now += Span::from_ps(ps);
            offers.push_back((now, frame(number as u64, 0, 1, bytes)));
        }
        offers
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_comes_once_unless_an_impairment_says_otherwise(
        impairments in prop::collection::vec(any_impairment(), 0..7),
        offers in any_offers(),
        seed in any::<u64>(),
    ) {
        let lengths: Vec<u64> = offers.iter().map(|(_, frame)| frame.bytes.into()).collect();
        let outcome = run(&mut impairment_chain(&impairments, seed), offers.clone());
        let is = |test: fn(&Impairment) -> bool| impairments.iter().any(test);
        let can_double = is(|impairment| matches!(impairment, Impairment::Duplicate { .. }));
        let can_lose = is(|impairment| matches!(
            impairment,
            Impairment::Lose { .. } | Impairment::Partition { .. } | Impairment::ComeAndGo { .. } | Impairment::Buffer { .. }
        ));
        let mut fates = vec![0; lengths.len()];
        for number in numbers(&outcome).into_iter().chain(outcome.lost.iter().map(|lost| lost.0)) {
            fates[number as usize] += 1;
        }
        prop_assert_eq!(outcome.taken.len(), fates.len());
        prop_assert!(fates.iter().all(|&fate| fate == 1 || fate > 1 && can_double), "{:?}", fates);
        prop_assert!(can_lose || outcome.lost.is_empty());
        if !is(|impairment| matches!(impairment, Impairment::Reorder { .. })) {
            prop_assert!(numbers(&outcome).is_sorted());
        }
        // Never earlier than all delays and all wires take.
        for (at, frame) in &outcome.out {
            let least: u64 = impairments.iter().map(|impairment| match impairment {
                Impairment::Delay { delay_ps } => *delay_ps,
                Impairment::Bandwidth { ps_per_byte } => ps_per_byte * u64::from(frame.bytes),
                _ => 0,
            }).sum();
            prop_assert!(at.since(outcome.taken[&frame.number]) >= Span::from_ps(least));
            let is_same = frame.payload == frame.number;
            prop_assert!(is_same || frame.damaged, "noise leaves a mark");
        }
        for (most, impairment) in outcome.most_bytes.iter().zip(&impairments) {
            if let Impairment::Buffer { limit_bytes, .. } = impairment {
                prop_assert!(most <= limit_bytes);
            }
        }
        let again = run(&mut impairment_chain(&impairments, seed), offers);
        prop_assert_eq!(outcome, again, "the same seed is the same history");
    }

    #[test]
    fn a_wire_never_carries_more_than_its_rate(
        before in prop::collection::vec(any_impairment(), 0..4),
        ps_per_byte in 1..2_000u64,
        offers in any_offers(),
        seed in any::<u64>(),
    ) {
        let impairments = before.into_iter().chain([Impairment::Bandwidth { ps_per_byte }]);
        let outcome = run(&mut impairment_chain(&impairments.collect::<Vec<_>>(), seed), offers);
        for pair in outcome.out.windows(2) {
            let bytes = u64::from(pair[1].1.bytes);
            prop_assert!(pair[1].0.since(pair[0].0) >= Span::from_ps(ps_per_byte * bytes));
        }
    }
}

#[test]
fn a_burst_leaves_a_wire_one_after_the_other_and_a_full_buffer_refuses() {
    let impairments = [
        Impairment::Buffer {
            limit_bytes: 300,
            when_full: WhenFull::Refuse,
        },
        Impairment::Bandwidth {
            ps_per_byte: 10_000,
        },
        Impairment::delay(Span::from_ns(7)),
    ];
    let outcome = run(&mut impairment_chain(&impairments, 1), burst(6, 100));
    let at: Vec<u64> = outcome.out.iter().map(|(at, _)| at.as_ns()).collect();
    assert_eq!(at, [1_007, 2_007, 3_007, 4_007, 5_007, 6_007]);
    // One on the wire and three in the buffer; the others follow as it empties.
    let taken: Vec<u64> = outcome.taken.values().map(|at| at.as_ns()).collect();
    assert_eq!(taken, [0, 0, 0, 0, 1_000, 2_000]);
    assert_eq!(outcome.most_bytes[0], 300);
}

#[test]
fn a_buffer_that_drops_drops_what_comes_last() {
    let impairments = [
        Impairment::Buffer {
            limit_bytes: 300,
            when_full: WhenFull::Drop,
        },
        Impairment::Bandwidth {
            ps_per_byte: 10_000,
        },
    ];
    let outcome = run(&mut impairment_chain(&impairments, 1), burst(6, 100));
    assert_eq!(numbers(&outcome), [0, 1, 2, 3]);
    assert_eq!(outcome.lost, [(4, Loss::Overflow), (5, Loss::Overflow)]);
    let long = run(&mut impairment_chain(&impairments[..1], 1), burst(1, 1_000));
    assert_eq!(numbers(&long), [0], "an empty buffer has room for anything");
}

#[test]
fn a_partition_stops_everything_and_heals() {
    let cut = Cut {
        from_ps: 10_000,
        until_ps: 20_000,
        one: vec![HostId(0), HostId(3)],
        other: vec![HostId(1)],
    };
    let mut impairment_chain = impairment_chain(&[Impairment::Partition { cuts: vec![cut] }], 1);
    let offers = (0..40).map(|at| {
        let (from, to) = [(0, 1), (1, 3), (0, 3), (2, 1)][at as usize % 4];
        (ns(at), frame(at, from, to, 1))
    });
    let outcome = run(&mut impairment_chain, offers.collect());
    let apart = |at: u64| (10..20).contains(&at) && at % 4 < 2;
    let lost: Vec<_> = (0..40)
        .filter(|&at| apart(at))
        .map(|at| (at, Loss::Partition))
        .collect();
    assert_eq!(outcome.lost, lost);
    assert_eq!(numbers(&outcome).len() + lost.len(), 40);
}

#[test]
fn a_link_that_is_down_loses_or_holds() {
    let come_and_go = |when_down| Impairment::ComeAndGo {
        schedule: Schedule::At(vec![5_000, 9_000, 12_000]),
        when_down,
    };
    let offers: VecDeque<_> = (0..12).map(|at| (ns(at), frame(at, 0, 1, 1))).collect();
    let outcome = run(
        &mut impairment_chain(&[come_and_go(WhenDown::Lose)], 1),
        offers.clone(),
    );
    assert_eq!(numbers(&outcome), [0, 1, 2, 3, 4, 9, 10, 11]);
    assert!(outcome.lost.iter().all(|&(_, why)| why == Loss::Down));
    let outcome = run(
        &mut impairment_chain(&[come_and_go(WhenDown::Hold)], 1),
        offers,
    );
    let at: Vec<u64> = outcome.out.iter().map(|(at, _)| at.as_ns()).collect();
    assert_eq!(at, [0, 1, 2, 3, 4, 9, 9, 9, 9, 9, 10, 11]);
    // Down for good: there is nothing to wait for.
    let mut down = impairment_chain(&[come_and_go(WhenDown::Hold)], 1);
    assert!(down.offer(ns(12), frame(0, 0, 1, 1)).is_err() && down.next().is_none());
}

#[test]
fn random_impairments_do_what_they_say_about_as_often_as_they_say() {
    let spread = |count: u64| (0..count).map(|at| (ns(at), frame(at, 0, 1, 1))).collect();
    let impairment = Impairment::Reorder {
        per_million: 200_000,
        up_to_ps: 10_000,
    };
    let outcome = run(&mut impairment_chain(&[impairment], 3), spread(1_000));
    let late = numbers(&outcome)
        .windows(2)
        .filter(|pair| pair[0] > pair[1])
        .count();
    assert!((100..300).contains(&late), "{late}");
    for (at, frame) in &outcome.out {
        assert!(at.since(ns(frame.number)) <= Span::from_ns(10));
    }
    let per_million = 100_000;
    let outcome = run(
        &mut impairment_chain(&[Impairment::Duplicate { per_million }], 3),
        spread(1_000),
    );
    assert!(
        (1_050..1_150).contains(&outcome.out.len()),
        "{}",
        outcome.out.len()
    );
    let outcome = run(
        &mut impairment_chain(&[Impairment::Damage { per_million }], 3),
        spread(1_000),
    );
    let damaged = outcome.out.iter().filter(|(_, frame)| frame.damaged);
    assert!(
        damaged
            .clone()
            .all(|(_, frame)| frame.payload != frame.number)
    );
    assert!((50..150).contains(&damaged.count()));
    let impairment = Impairment::Lose {
        per_million: 10_000,
        run_frames: 5,
    };
    let outcome = run(&mut impairment_chain(&[impairment], 3), spread(10_000));
    assert!(
        (300..700).contains(&outcome.lost.len()),
        "{}",
        outcome.lost.len()
    );
    let runs = outcome.lost.chunks_exact(5);
    assert!(
        runs.into_iter().all(|run| run[4].0 - run[0].0 == 4),
        "in a row"
    );
    let impairment = Impairment::Jitter { up_to_ps: 10_000 };
    let outcome = run(&mut impairment_chain(&[impairment], 3), spread(1_000));
    assert!(numbers(&outcome).is_sorted());
    let most = outcome
        .out
        .iter()
        .map(|(at, frame)| at.since(ns(frame.number)).as_ns())
        .max();
    assert!(most >= Some(9), "{most:?}");
}

#[test]
fn seeds_differ_and_impairments_do_not_disturb_each_other() {
    let lose = Impairment::Lose {
        per_million: 300_000,
        run_frames: 1,
    };
    let lost = |impairments: &[Impairment], seed| {
        run(&mut impairment_chain(impairments, seed), burst(100, 1)).lost
    };
    let one = std::slice::from_ref(&lose);
    assert_ne!(lost(one, 1), lost(one, 2));
    let jitter = Impairment::Jitter { up_to_ps: 9 };
    assert_eq!(lost(one, 1), lost(&[lose.clone(), jitter], 1));
}

#[test]
fn impairments_that_make_no_sense_are_refused_by_their_place() {
    let error = |impairment| {
        let impairments = [Impairment::delay(Span::ZERO), impairment];
        ImpairmentChain::<u64>::new(&impairments, &mut Random::new(1))
            .err()
            .unwrap()
    };
    assert_eq!(
        error(Impairment::Bandwidth { ps_per_byte: 0 }),
        ImpairmentError::NoRate { at: 1 }
    );
    let per_million = 1_000_001;
    assert_eq!(
        error(Impairment::Damage { per_million }).to_string(),
        "impairment 1: 1000001 of a million is more than all: at most 1000000"
    );
    let impairment = Impairment::Lose {
        per_million: 1,
        run_frames: 0,
    };
    assert_eq!(error(impairment), ImpairmentError::NoRun { at: 1 });
    let impairment = Impairment::Reorder {
        per_million: 1,
        up_to_ps: 0,
    };
    assert_eq!(error(impairment), ImpairmentError::NoReordering { at: 1 });
    let random = |up_ps, down_ps| Schedule::Random { up_ps, down_ps };
    for schedule in [
        Schedule::At(vec![2, 2]),
        random(0, 1),
        random(1, 0),
        random(1, u64::MAX),
    ] {
        let when_down = WhenDown::Lose;
        let impairment = Impairment::ComeAndGo {
            schedule,
            when_down,
        };
        assert_eq!(error(impairment), ImpairmentError::Schedule { at: 1 });
    }
}

#[test]
fn impairments_can_be_written_in_a_file() {
    #[derive(serde::Deserialize)]
    struct File {
        impairments: Vec<Impairment>,
    }
    let text = r#"
        impairments = [
            { impairment = "delay", delay_ps = 5 },
            { impairment = "buffer", limit_bytes = 100, when_full = "drop" },
            { impairment = "come_and_go", schedule = { random = { up_ps = 1, down_ps = 2 } }, when_down = "hold" },
            { impairment = "partition", cuts = [{ from_ps = 1, until_ps = 2, one = [0], other = [1, 2] }] },
        ]"#;
    let file: File = toml::from_str(text).unwrap();
    assert_eq!(file.impairments.len(), 4);
    assert_eq!(file.impairments[0], Impairment::Delay { delay_ps: 5 });
    assert!(
        toml::from_str::<File>("impairments = [{ impairment = \"delay\", delay_ns = 5 }]").is_err()
    );
}
