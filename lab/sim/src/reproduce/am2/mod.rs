//! *Virtual network transport protocols for Myrinet*: Figures 5 to 11 and Table 1, by programs of
//! the layer of Active Messages (`layers/am`) on the paper's cluster.
//!
//! No figure of the paper is fed in but those that the machine's file says it was given or
//! calibrated on. [`mod@bench`] has the settings, each of which is a world of its own; [`load`],
//! [`log_p`] and [`exchange`] are the programs; `claims` judges the rows.

pub mod bench;
mod claims;
pub mod cluster;
pub mod exchange;
pub mod load;
pub mod log_p;
mod plots;

use crate::machine::Machine;
use crate::reproduce::measure::Failure;
use crate::reproduce::report::Report;
use crate::reproduce::rows::Paper;

pub use bench::{Bench, Extent};

/// The paper's rows.
const PAPER: &str = include_str!("../../../papers/virtual-networks.toml");

/// The paper's machine.
pub fn machine() -> Machine {
    Machine::named("now-virtual-networks").expect("a file that is in the program")
}

/// Sets the measurements beside the paper's rows.
pub fn report(machine: &Machine, bench: &Bench) -> Result<Report, Failure> {
    let paper = Paper::parse(PAPER).expect("a file that is in the program");
    let mut report = Report::new(&paper, machine, bench, claims::of)?;
    report.plots = plots::of(bench);
    Ok(report)
}

#[cfg(test)]
mod tests;
