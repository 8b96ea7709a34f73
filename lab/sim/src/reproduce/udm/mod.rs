//! *Exploiting Two-Case Delivery for Fast Protected Messaging*: Tables 4 to 6 and Figures 7 to 10,
//! by programs of the layer of User Direct Messaging (`layers/udm`) on the paper's machine.
//!
//! No figure of the paper is fed in but those that the machines' files say they were given or
//! calibrated on. [`fugu`] runs a program on the machine's nodes, [`regions`] those on CRL; [`costs`]
//! sends single messages, [`mod@bench`] has the settings, each of which is a world of its own, and
//! `claims` and `programs` judge rows.

pub mod bench;
mod claims;
pub mod costs;
pub mod fugu;
mod plots;
mod programs;
pub mod regions;

use crate::reproduce::measure::Failure;
use crate::reproduce::report::Report;
use crate::reproduce::rows::Paper;

pub use bench::{Bench, Extent, Machines};

/// The paper's rows.
const PAPER: &str = include_str!("../../../papers/two-case-delivery.toml");

/// Sets the measurements beside the paper's rows.
pub fn report(machines: &Machines, bench: &Bench) -> Result<Report, Failure> {
    let mut report = report_of(machines, bench, |_| true)?;
    report.plots = plots::of(bench)?;
    Ok(report)
}

/// The same of some rows only, without plots.
fn report_of(
    machines: &Machines,
    bench: &Bench,
    is_asked: impl Fn(&str) -> bool,
) -> Result<Report, Failure> {
    let mut paper = Paper::parse(PAPER).expect("a file that is in the program");
    paper.row.retain(|row| is_asked(&row.id));
    // Numbers that both machines have count once.
    let mut numbers = machines.soft.numbers();
    let hard = machines.hard.numbers().into_iter();
    let others = hard.filter(|number| !numbers.contains(number));
    let others: Vec<_> = others.collect();
    numbers.extend(others);
    let title = machines.soft.title().to_owned();
    let experiment = |id: &str| claims::of(id).or_else(|| programs::of(id));
    Report::on(&paper, title, numbers, bench, experiment)
}

#[cfg(test)]
mod tests;
