//! Every deliberate bug of the overflow log is found by histories of its two ends or by a single rule; and nothing is found
//! without one.
//!
//! It runs in the copy of the tree that has the planted bugs: `make mutations`.

mod hunt;
mod log_ends;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn_engine::mutation::Level;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Histories that are tried at most.
const CASES: u32 = 128;

/// What is wrong, if anything is. A panic counts: an assertion of what runs has seen it first.
fn hunt() -> Option<String> {
    let config = Config {
        cases: CASES,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..Config::default()
    };
    let mut histories = TestRunner::new_with_rng(config, TestRunner::deterministic().new_rng());
    let history = (log_ends::steps(), 4..6_u32, any::<bool>());
    let random = histories.run(&history, |(steps, shift, patient)| {
        log_ends::check(steps, shift, patient)
    });
    if let Err(found) = random {
        return Some(found.to_string());
    }
    let broken = log_ends::RULES
        .iter()
        .find(|(_, rule)| catch_unwind(AssertUnwindSafe(rule)).is_err());
    broken.map(|(rule, _)| (*rule).to_owned())
}

#[test]
fn every_mutation_is_found() {
    assert_eq!(hunt(), None, "a bug without any mutation");
    hunt::all_are_found(|bug| bug.level() == Level::Ring, |_| hunt());
}
