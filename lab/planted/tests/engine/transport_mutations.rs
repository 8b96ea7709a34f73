//! Every deliberate bug of the transport is found by the checker of random histories or by a single rule; and nothing is
//! found without one.
//!
//! It runs in the copy of the tree that has the planted bugs: `make mutations`.

mod host;
mod transport_world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn_engine::mutation::{self, Level, Mutation};
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
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    let of_ours = |bug: &&Mutation| bug.level() == Level::Transport;
    for &bug in Mutation::ALL.iter().filter(of_ours) {
        mutation::switch(Some(bug));
        let found = hunt();
        mutation::switch(None);
        match found {
            Some(what) => println!("{:24} {}", bug.name(), &what[..what.len().min(150)]),
            None => missed.push(bug.name()),
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(missed, Vec::<&str>::new(), "not found");
}
