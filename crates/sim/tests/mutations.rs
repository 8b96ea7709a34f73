//! Every deliberate bug is found by comparing what runs with the reference model; and nothing is found without one.
//!
//! Run by itself, with its feature: `cargo test -p hamlyn-sim --features mutations --test mutations`.

mod driver;
mod library;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn_engine::mutation::{self, Level, Mutation};

/// Histories that are tried at most, and events of each.
const SEEDS: u64 = 400;
const EVENTS: u64 = 1_500;
const LIBRARY_SEEDS: u64 = 40;
const LIBRARY_STEPS: u64 = 1_500;

/// What is wrong in the history of a seed, if anything is. A panic counts: an assertion of what runs has seen it first.
fn judge(level: Level, seed: u64) -> Option<String> {
    let run = || match level {
        Level::Engine => match driver::run(seed, EVENTS) {
            Ok(_) => None,
            Err(found) => Some((found.event, found.act, found.violation)),
        },
        Level::Library => match library::run(&mut library::interface(), seed, LIBRARY_STEPS) {
            Ok(_) => None,
            Err(found) => Some((found.step, found.act, found.violation)),
        },
        // The test `wakeups` has them.
        Level::World => None,
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(None) => None,
        Ok(Some((event, act, violation))) => Some(format!("event {event} ({act}): {violation}")),
        Err(_) => Some("an assertion failed".to_owned()),
    }
}

/// The first history in which something is wrong: its seed, and what it was.
fn hunt(level: Level) -> Option<(u64, String)> {
    let seeds = match level {
        Level::Engine => SEEDS,
        Level::Library => LIBRARY_SEEDS,
        Level::World => 0,
    };
    (0..seeds).find_map(|seed| Some((seed, judge(level, seed)?)))
}

/// One test, as only one bug can be switched on in a process.
#[test]
fn every_mutation_is_found() {
    for level in [Level::Engine, Level::Library] {
        assert_eq!(hunt(level), None, "a bug without any mutation");
    }
    // Assertions may fail here; a line says so.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for &bug in Mutation::ALL
        .iter()
        .filter(|bug| bug.level() != Level::World)
    {
        mutation::switch(Some(bug));
        let found = hunt(bug.level());
        mutation::switch(None);
        match found {
            Some((seed, what)) => println!("{:24} seed {seed:3} {what}", bug.name()),
            None => missed.push(bug.name()),
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(missed, Vec::<&str>::new(), "not found");
}
