//! Scenarios alone, for `cargo run -p xtask -- mutants`: it ends at the first in which something is wrong.

use hamlyn_sim::scenario::{Plan, run};

const SEEDS_VARIABLE: &str = "HAMLYN_MUTANT_SEEDS";
/// Seeds that `make test` does not try.
const FIRST_SEED: u64 = 1_000_000;

#[test]
fn nothing_goes_wrong() {
    let seeds = std::env::var(SEEDS_VARIABLE).map_or(100, |text| text.parse().expect("a number"));
    for seed in FIRST_SEED..FIRST_SEED + seeds {
        let outcome = run(&Plan::of_seed(seed), false);
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
    }
}
