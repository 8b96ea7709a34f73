//! Every deliberate bug of the transport is found by the checker of random histories or by a single rule; and nothing is
//! found without one.
//!
//! It runs in the copy of the tree that has the planted bugs: `make mutations`.

mod host;
mod hunt;
mod transport_world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn_engine::mutation::Level;
use transport_world::{Plan, World, directed};

/// Histories that are tried at most.
const SEEDS: u64 = 300;

/// What is wrong, if anything is. A panic counts: an assertion of what runs has seen it first.
fn hunt() -> Option<String> {
    let violation = |run: &dyn Fn() -> Result<(), String>| match catch_unwind(AssertUnwindSafe(run))
    {
        Ok(checked) => checked.err(),
        Err(_) => Some("an assertion failed".to_owned()),
    };
    let random = (0..SEEDS).find_map(|seed| {
        let wrong = violation(&|| World::run(Plan::of_seed(seed)).map(|_| ()))?;
        Some(format!("seed {seed}: {wrong}"))
    });
    random.or_else(|| {
        directed::ALL
            .iter()
            .find_map(|(rule, check)| Some(format!("{rule}: {}", violation(check)?)))
    })
}

#[test]
fn every_mutation_is_found() {
    assert_eq!(hunt(), None, "a bug without any mutation");
    hunt::all_are_found(|bug| bug.level() == Level::Transport, |_| hunt());
}
