//! A row for each number, experiment and claim of the paper, and for the relations between its numbers.
//!
//! Identifiers are those of `docs/papers.md`; `D-01` to `D-14` are relations that a model of the prototype should satisfy. Where
//! the paper contradicts itself, the remark names the reading that is followed.

mod aims;
mod architecture;
mod bulk;
mod comparisons;
mod derived;
mod readings;
mod short;

use super::bench::Bench;
use super::measure::Failure;
use super::report::{Figure, Kind, Origin, Reading, Row, Treatment};

/// All rows, in the paper's order.
pub fn all() -> impl Iterator<Item = &'static Row> {
    [
        aims::ROWS,
        architecture::ROWS,
        short::ROWS,
        bulk::ROWS,
        comparisons::ROWS,
        derived::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// Where the paper contradicts itself, and what is followed.
pub fn readings() -> &'static [Reading] {
    readings::READINGS
}

type Measure = fn(&Bench) -> Result<f64, Failure>;
type Judge = fn(&Bench) -> Result<(bool, String), Failure>;

/// A number that comes out.
const fn measured(what: &'static str, unit: &'static str, paper: f64, measure: Measure) -> Figure {
    figure(what, unit, paper, Origin::Emergent, measure)
}

/// A number by which parameters were chosen.
const fn fitted(what: &'static str, unit: &'static str, paper: f64, measure: Measure) -> Figure {
    figure(what, unit, paper, Origin::Fitted, measure)
}

/// A number that went in, measured nevertheless.
const fn given(what: &'static str, unit: &'static str, paper: f64, measure: Measure) -> Figure {
    figure(what, unit, paper, Origin::Parameter, measure)
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

/// A row, however it is treated.
const fn row(
    id: &'static str,
    kind: Kind,
    source: &'static str,
    says: &'static str,
    treatment: Treatment,
) -> Row {
    Row {
        id,
        kind,
        source,
        says,
        treatment,
    }
}

const fn number(
    id: &'static str,
    source: &'static str,
    says: &'static str,
    figures: &'static [Figure],
    remark: &'static str,
) -> Row {
    row(
        id,
        Kind::Number,
        source,
        says,
        Treatment::Figures(figures, remark),
    )
}

const fn judged(
    id: &'static str,
    kind: Kind,
    source: &'static str,
    says: &'static str,
    judge: Judge,
) -> Row {
    row(id, kind, source, says, Treatment::Judged(judge))
}

const fn elsewhere(
    id: &'static str,
    kind: Kind,
    source: &'static str,
    says: &'static str,
    remark: &'static str,
) -> Row {
    row(id, kind, source, says, Treatment::Elsewhere(remark))
}

const fn cited(
    id: &'static str,
    kind: Kind,
    source: &'static str,
    says: &'static str,
    remark: &'static str,
) -> Row {
    row(id, kind, source, says, Treatment::Cited(remark))
}

const fn not_measurable(
    id: &'static str,
    kind: Kind,
    source: &'static str,
    says: &'static str,
    remark: &'static str,
) -> Row {
    row(id, kind, source, says, Treatment::NotMeasurable(remark))
}

const fn carried_out(
    id: &'static str,
    source: &'static str,
    says: &'static str,
    remark: &'static str,
) -> Row {
    row(
        id,
        Kind::Experiment,
        source,
        says,
        Treatment::CarriedOut(remark),
    )
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
