//! The comparison of five machines (`Split-C 5`): Tables 1 and 2, on the machines' files, with the
//! library as it is.
//!
//! The paper has ten versions of the language: a machine, and who carries out what is asked of a
//! node (`versions`). A program's end of an experiment (`end`) has the operations of the language:
//! by messages whose handlers run in the target's program, or by one-sided operations of the
//! interface. `table` measures what Table 1 lists as the paper does, `bulk` long transfers,
//! `polling` how often a program must poll that computes, and `programs` the twelve programs of
//! Table 2. `claims` and `program_claims` ask of what was measured what the text concludes from its
//! own numbers, and `arithmetic` what those numbers have in common.

mod arithmetic;
mod bulk;
mod claims;
mod end;
mod polling;
mod program_claims;
mod programs;
mod said;
mod shared_memory;
mod table;
mod versions;

use std::collections::BTreeMap;

use super::measure::Failure;
use super::report::{Experiment, Report};
use super::rows::Paper;
use crate::machine::Machine;
use crate::machine::number::Number;

pub use bulk::{Bandwidths, Transfer};
pub use polling::{Attention, Granularities};
pub use programs::{Runs, Times};
pub use table::{Cell, Measured};
pub use versions::{MACHINES, VERSIONS, Version};

/// The paper's rows.
const PAPER: &str = include_str!("../../../papers/global-address.toml");

/// Machines under their names, so that a test can change a number of one.
pub type Machines = BTreeMap<&'static str, Machine>;

/// The machines, as their files say.
pub fn machines() -> Machines {
    let named = |&name| (name, Machine::named(name).expect("a machine of the list"));
    MACHINES.iter().map(named).collect()
}

/// Measures all versions, and reports on the rows of the paper; if quick, of its programs on those
/// with bulk transfers only, and on nothing that the text concludes of programs.
pub fn report(is_quick: bool) -> Result<Report, Failure> {
    let (machines, runs) = (machines(), Runs::of_file());
    Evaluation::of(&machines, &runs, is_quick)?.report(&machines, &runs)
}

/// All that was measured.
struct Evaluation {
    table: Measured,
    bulk: Bandwidths,
    polling: Granularities,
    programs: Times,
    is_quick: bool,
}

impl Evaluation {
    fn of(machines: &Machines, runs: &Runs, is_quick: bool) -> Result<Self, Failure> {
        Ok(Self {
            table: Measured::all(machines)?,
            bulk: Bandwidths::all(machines)?,
            polling: Granularities::all(machines, runs)?,
            programs: runs.times(machines, is_quick)?,
            is_quick,
        })
    }

    fn report(&self, machines: &Machines, runs: &Runs) -> Result<Report, Failure> {
        let mut paper = Paper::parse(PAPER).expect("a file that is in the program");
        if self.is_quick {
            paper.row.retain(|row| self.has_run(&row.id));
        }
        let mut numbers: Vec<Number> = machines.values().flat_map(Machine::numbers).collect();
        numbers.extend(runs.numbers());
        let experiment = |id: &str| {
            Some(match claims::of(id) {
                Some(judge) => Experiment::Judged(judge),
                None => Experiment::Named(number),
            })
        };
        let title = "CM-5, CS-2, Paragon, T3D and NOW".to_owned();
        let mut report = Report::on(&paper, title, numbers, self, experiment)?;
        report.plots = self.bulk.plots();
        report.plots.extend(self.polling.plots());
        report.bars = programs::bars(&self.programs, &paper);
        Ok(report)
    }

    /// That a row is not about programs of which some were left out.
    fn has_run(&self, id: &str) -> bool {
        match id.starts_with("G-TAB2.") {
            true => self.programs.named(id).is_some(),
            false => program_claims::CLAIMS.iter().all(|(claim, _)| *claim != id),
        }
    }
}

/// A number of the paper, by its row's identifier: a cell of Table 1 or 2, or the bandwidth of long
/// transfers.
fn number(bench: &Evaluation, id: &str) -> Result<f64, Failure> {
    let of_bulk = PEAKS.iter().find(|(row, _)| *row == id);
    let found = match of_bulk {
        Some((_, version)) => bench.bulk.peak(Transfer::Store, version),
        None => Cell::named(id)
            .map(|cell| bench.table.of(cell))
            .or_else(|| bench.programs.named(id)),
    };
    found.ok_or_else(|| Failure::Unmatched { id: id.to_owned() })
}

/// Rows that print the bandwidth of long transfers, and of which version.
const PEAKS: [(&str, &str); 4] = [
    ("G-230", "Meiko-NP"),
    ("G-231", "Meiko-Proc"),
    ("G-233", "Paragon-NP"),
    ("G-235", "CM5"),
];

#[cfg(test)]
mod tests;
