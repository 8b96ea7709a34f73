//! A row for each number, experiment and claim of the paper, and for the relations between its numbers: `rows.tsv` has what is
//! said of it, and the modules here measure it.
//!
//! Identifiers are those of `docs/papers.md`; `D-01` to `D-14` are relations that a model of the prototype should satisfy. Where
//! the paper contradicts itself, the remark names the reading that is followed.

mod aims;
mod architecture;
mod bulk;
mod comparisons;
mod derived;
mod short;

use super::bench::Bench;
use super::measure::Failure;
use super::report::{Figure, Kind, Origin, Reading, Row, Treatment};

/// All rows, in the paper's order.
pub fn all() -> impl Iterator<Item = Row> {
    lines(include_str!("rows.tsv")).map(row)
}

/// Where the paper contradicts itself, and what is followed.
pub fn readings() -> Vec<Reading> {
    let reading = |[place, says, follows, rows]: [_; 4]| Reading {
        place,
        says,
        follows,
        rows,
    };
    lines(include_str!("readings.tsv")).map(reading).collect()
}

/// The cells of each line of a table; those left out at a line's end are empty.
fn lines<const CELLS: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; CELLS]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut cells = line.split('\t');
        std::array::from_fn(|_| cells.next().unwrap_or(""))
    })
}

fn row([id, kind, treatment, source, says, remark]: [&'static str; 6]) -> Row {
    Row {
        id,
        kind: match kind {
            "number" => Kind::Number,
            "experiment" => Kind::Experiment,
            "claim" => Kind::Claim,
            "derived" => Kind::Derived,
            other => panic!("{id}: no kind of row is called {other}"),
        },
        source,
        says,
        treatment: match treatment {
            "measured" => measure(id),
            "elsewhere" => Treatment::Elsewhere,
            "cited" => Treatment::Cited,
            "not-measurable" => Treatment::NotMeasurable,
            "carried-out" => Treatment::CarriedOut,
            other => panic!("{id}: no treatment is called {other}"),
        },
        remark,
    }
}

/// How that row is measured.
fn measure(id: &str) -> Treatment {
    let mut measures = measures();
    let measure = measures.find(|(of, _)| *of == id);
    measure
        .unwrap_or_else(|| panic!("{id}: nothing measures it"))
        .1
}

/// The rows that are measured.
pub(super) fn measures() -> impl Iterator<Item = (&'static str, Treatment)> {
    [
        aims::MEASURES,
        architecture::MEASURES,
        short::MEASURES,
        bulk::MEASURES,
        comparisons::MEASURES,
        derived::MEASURES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

type Measure = fn(&Bench) -> Result<f64, Failure>;
type Judge = fn(&Bench) -> Result<(bool, String), Failure>;

/// A number that comes out.
const fn measured(what: &'static str, unit: &'static str, paper: f64, measure: Measure) -> Figure {
    figure(what, unit, paper, Origin::Predicted, measure)
}

/// A number by which parameters were chosen.
const fn calibrated(
    what: &'static str,
    unit: &'static str,
    paper: f64,
    measure: Measure,
) -> Figure {
    figure(what, unit, paper, Origin::Calibrated, measure)
}

/// A number that went in, measured nevertheless.
const fn given(what: &'static str, unit: &'static str, paper: f64, measure: Measure) -> Figure {
    figure(what, unit, paper, Origin::Input, measure)
}

const fn figure(
    what: &'static str,
    unit: &'static str,
    paper: f64,
    origin: Origin,
    measure: Measure,
) -> Figure {
    Figure {
        what,
        unit,
        paper,
        origin,
        measure,
    }
}

/// A row of numbers.
const fn figures(id: &'static str, figures: &'static [Figure]) -> (&'static str, Treatment) {
    (id, Treatment::Figures(figures))
}

/// A row that an experiment supports or contradicts.
const fn judged(id: &'static str, judge: Judge) -> (&'static str, Treatment) {
    (id, Treatment::Judged(judge))
}

/// Nanoseconds a byte of the sender's I/O bus, between packets of 256 and of 4096 bytes.
fn out_slope(bench: &Bench) -> f64 {
    slope(bench.small.sending_bus, bench.large.sending_bus)
}

/// The same of the link.
fn wire_slope(bench: &Bench) -> f64 {
    slope(bench.small.link, bench.large.link)
}

/// The same of the receiver's I/O bus.
fn in_slope(bench: &Bench) -> f64 {
    slope(bench.small.receiving_bus, bench.large.receiving_bus)
}

fn slope(small_us: f64, large_us: f64) -> f64 {
    use super::bench::{LARGE, SMALL};
    (large_us - small_us) * 1e3 / (LARGE - SMALL) as f64
}

/// MB/s of a slope in nanoseconds a byte.
fn mb_per_s(ns_per_byte: f64) -> f64 {
    1e3 / ns_per_byte
}
