//! Beyond the paper: its experiments on a host pair of today, and the saturation of networks that
//! it argues about and could not measure (`Hamlyn 1` and `6.1`).
//!
//! [`mod@pair`] carries out Table 4 and Figures 7 to 10 on an assumed machine
//! ([`crate::machine::Machine::pair_of_today`]); [`saturation`] loads the paper's crossbars with 8,
//! 64 and 1,024 hosts until they take no more. Neither has a number of the paper to be compared
//! with; what they say about its claims stands in the entries of [`super::hamlyn::report`].

pub mod pair;
pub mod saturation;

pub use pair::{Pair, pair};
pub use saturation::{Extent, Gain, Setting, Sweep};

use super::report::Plot;

/// All of it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Beyond {
    /// The paper's experiments on a host pair of today.
    pub pair: Pair,
    /// What each fabric took, load by load.
    pub saturation: Vec<Sweep>,
    /// How much more it took with adaptive routing.
    pub gains: Vec<Gain>,
    /// Figures 7 to 10 of the pair, and the saturation.
    pub plots: Vec<Plot>,
}

impl Beyond {
    /// Puts together what was measured. Sweeps may come in any order of their settings.
    pub fn new(pair: Pair, pair_plots: Vec<Plot>, mut sweeps: Vec<Sweep>) -> Self {
        sweeps.sort_by_key(|sweep| sweep.setting.place());
        let gains = saturation::gains(&sweeps);
        let mut plots = pair_plots;
        plots.extend(saturation::plots(&sweeps));
        Self {
            pair,
            saturation: sweeps,
            gains,
            plots,
        }
    }
}

#[cfg(test)]
mod tests;
