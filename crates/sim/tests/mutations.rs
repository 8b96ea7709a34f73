//! Every deliberate bug of the engine is found by comparing it with the reference model; and nothing is found without one.
//!
//! Run by itself, with the feature `mutations`: `cargo test -p hamlyn-sim --features mutations --test mutations`.

mod driver;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn_engine::mutation::{self, Level, Mutation};

/// Histories that are tried at most.
const SEEDS: u64 = 400;
const EVENTS: u64 = 1_500;

/// The first history in which something is wrong: its seed and what it was; a panic counts, as an assertion of the engine's
/// own has then seen it.
fn hunt() -> Option<(u64, String)> {
    (0..SEEDS).find_map(
        |seed| match catch_unwind(AssertUnwindSafe(|| driver::run(seed, EVENTS))) {
            Ok(Ok(_)) => None,
            Ok(Err(found)) => Some((
                seed,
                format!("event {} ({}): {}", found.event, found.act, found.violation),
            )),
            Err(_) => Some((seed, "an assertion failed".to_owned())),
        },
    )
}

/// One test, as only one bug can be switched on in a process.
#[test]
fn every_mutation_of_the_engine_is_found() {
    assert_eq!(hunt(), None, "the engine has a bug without any mutation");
    // Assertions of the engine's own are expected to fail here; one line says so below.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for &bug in Mutation::ALL {
        if bug.level() != Level::Engine {
            continue;
        }
        mutation::switch(Some(bug));
        let found = hunt();
        mutation::switch(None);
        match found {
            Some((seed, what)) => println!("{:24} seed {seed:3} {what}", bug.name()),
            None => missed.push(bug.name()),
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(missed, Vec::<&str>::new(), "not found");
}
