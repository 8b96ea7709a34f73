//! The engine and the reference model agree on random histories, and so do the library's protocols.

mod driver;
mod library;

use driver::Figures;

const SEEDS: u64 = 400;
const EVENTS: u64 = 1_500;
const LIBRARY_SEEDS: u64 = 40;
const LIBRARY_STEPS: u64 = 3_000;

#[test]
fn the_engine_keeps_what_the_model_promises() {
    let mut all = Figures::default();
    for seed in 0..SEEDS {
        let figures = driver::run(seed, EVENTS)
            .unwrap_or_else(|found| panic!("seed {seed}: {found:?}: {}", found.violation));
        all.add(&figures);
    }
    println!("{all:?}");
    // Histories in which nothing happens would agree as well.
    assert!(all.are_lively(), "{all:?}");
}

#[test]
fn the_library_keeps_what_the_model_promises() {
    let mut all = library::Figures::default();
    for seed in 0..LIBRARY_SEEDS {
        let manager = library::interface();
        let figures = library::run(&manager, seed, LIBRARY_STEPS)
            .unwrap_or_else(|found| panic!("seed {seed}: {found:?}: {}", found.violation));
        all.add(&figures);
    }
    println!("{all:?}");
    assert!(all.are_lively(), "{all:?}");
}

#[test]
fn a_seed_is_one_history() {
    let told = |seed| format!("{:?}", driver::run(seed, EVENTS));
    assert_eq!(told(7), told(7));
    assert_ne!(told(7), told(8));
}
