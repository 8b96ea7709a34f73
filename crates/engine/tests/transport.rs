//! The transport against a bad network (issue 5; `virtual-networks` 4.4): whatever is lost,
//! doubled, late, cut, unloaded or restarted, each packet is delivered once or comes back once, and
//! everything comes to an end.

use crate::transport_world::{Plan, World};
use hamlyn_engine::transport::CloseReason;
use proptest::prelude::*;

#[test]
fn each_packet_is_delivered_or_returned_once_in_histories_of_fixed_seeds() {
    let (mut delivered, mut returned) = (0, 0);
    let mut suspended = (0, 0);
    for seed in 0..400 {
        match World::run(Plan::of_seed(seed)) {
            Ok(world) => {
                delivered += world.checker.delivered;
                returned += world.checker.returned;
                suspended.0 += world.suspended.0;
                suspended.1 += world.suspended.1;
            }
            Err(wrong) => panic!("seed {seed}: {wrong}\n{:?}", Plan::of_seed(seed)),
        }
    }
    // Plans in which nothing happens would be no test.
    assert!(delivered > 100_000, "{delivered}");
    assert!(returned > 1_000, "{returned}");
    println!("delivered {delivered} returned {returned} suspended {suspended:?}");
    assert!(suspended.0 > 300 && suspended.1 > 100, "{suspended:?}");
}

/// The network dies for good: an end that waits for something is told, and gets everything back.
#[test]
fn silence_for_ever_closes_the_end_that_waits() {
    let (mut no_answer, mut returned) = (0, 0);
    for seed in 0..60 {
        match World::run_into_silence(Plan::of_seed(seed)) {
            Ok(world) => {
                returned += world.checker.returned;
                let verdicts = world.ends.iter().filter_map(|end| end.association.as_ref());
                no_answer += verdicts
                    .filter(|association| association.close_reason() == Some(CloseReason::NoAnswer))
                    .count();
            }
            Err(wrong) => panic!("seed {seed}: {wrong}\n{:?}", Plan::of_seed(seed)),
        }
    }
    assert!(no_answer > 30, "{no_answer}");
    assert!(returned > 3_000, "{returned}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_packet_is_delivered_or_returned_once(
        seed in 0_u64..1 << 40,
        loss in 0_u32..201,
        duplicates in 0_u32..200,
        slow in 0_u32..300,
        cuts in 0_u32..60,
        suspensions in 0_u32..60,
        restarts in 0_u32..20,
        events in 1_u32..250,
    ) {
        let plan = Plan { loss, duplicates, slow, cuts, suspensions, restarts, events, ..Plan::of_seed(seed) };
        if let Err(wrong) = World::run(plan) {
            prop_assert!(false, "{}", wrong);
        }
    }
}
