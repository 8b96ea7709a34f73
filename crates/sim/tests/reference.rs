//! The engine and the reference model agree on random histories.

mod driver;

use driver::Figures;

const SEEDS: u64 = 300;
const EVENTS: u64 = 1_500;

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
