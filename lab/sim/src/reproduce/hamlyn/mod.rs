//! The Hamlyn paper: how its rows are measured on its machine (`Hamlyn 4`).
//!
//! `papers/hamlyn.toml` has what the paper says, `machines/hamlyn.toml` the machine. Where the
//! paper contradicts itself, a row's remark names the reading that is followed.

mod aims;
mod architecture;
pub mod bench;
mod bulk;
mod comparisons;
mod derived;
mod short;

use super::measure::{Failure, OneWay};
use super::report::{self, Anchor, Measure, Plot, Report, TableRow};
use super::rows::Paper;
use crate::machine::step::Direction;
use crate::machine::{Component, Machine};
use crate::time::Span;
use bench::Bench;
use hamlyn_engine::point::Point;

type Experiment = report::Experiment<Bench>;

/// Measures that machine and reports on the paper's rows.
pub fn report(machine: &Machine) -> Result<Report, Failure> {
    let bench = Bench::new(machine)?;
    let experiment = |id: &str| {
        let mut all = experiments();
        all.find(|(of, _)| *of == id)
            .map(|(_, experiment)| experiment)
    };
    let report = Report::new(&Paper::hamlyn(), machine, &bench, experiment)?;
    Ok(Report {
        table4: table4(&bench),
        plots: plots(&bench)?,
        ..report
    })
}

/// The rows that are measured.
pub(super) fn experiments() -> impl Iterator<Item = (&'static str, Experiment)> {
    [
        aims::EXPERIMENTS,
        architecture::EXPERIMENTS,
        short::EXPERIMENTS,
        bulk::EXPERIMENTS,
        comparisons::EXPERIMENTS,
        derived::EXPERIMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Figures 7 to 10, with the values that the paper prints.
pub(super) fn plots(bench: &Bench) -> Result<Vec<Plot>, Failure> {
    let plot = |name: &str, title: &str, unit, curves, anchors: &[(&'static str, f64, f64)]| Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        across: "bytes of data",
        unit,
        curves,
        anchors: anchors
            .iter()
            .map(|&(id, across, up)| Anchor {
                id,
                point: (across, up),
            })
            .collect(),
    };
    Ok(vec![
        plot(
            "figure-7",
            "Latency by message size, 256-byte packets",
            "µs",
            bench.figure7()?,
            // Without data (H-308); with 4 bytes of metadata 7.7 µs more (H-319).
            &[("H-308", 0.0, 17.4), ("H-319", 0.0, 25.1)],
        ),
        plot(
            "figure-8",
            "Latency by message size, 4 KB packets",
            "µs",
            bench.figure8()?,
            &[("H-308", 0.0, 17.4)],
        ),
        plot(
            "figure-9",
            "Bandwidth by message size",
            "MB/s",
            bench.figure9.clone(),
            &[("H-342", 40_960.0, 20.0), ("H-346", 40_960.0, 28.0)],
        ),
        plot(
            "figure-10",
            "Loopback bandwidth by message size",
            "MB/s",
            bench.figure10.clone(),
            &[("H-354", 40_960.0, 22.0)],
        ),
    ])
}

fn table4(bench: &Bench) -> Vec<TableRow> {
    let row = |component, name, raw, tagged| TableRow {
        component: name,
        paper_us: (raw, tagged),
        ours_us: bench.row(component),
    };
    let total = |one_way: &OneWay| one_way.times.total().as_us_f64();
    vec![
        row(Component::Dma, "DMA", 3.3, 3.3),
        row(Component::Lanai, "LANai", 6.7, 6.7),
        row(Component::Switch, "Switch", 0.5, 0.5),
        row(Component::HostWrites, "Host I/O writes", 1.4, 1.4),
        row(Component::HostSoftware, "Host protocol software", 0.8, 2.2),
        TableRow {
            component: "Total",
            paper_us: (12.7, 14.1),
            ours_us: (total(&bench.raw), total(&bench.tagged)),
        },
    ]
}

/// A row of numbers.
const fn figures(
    id: &'static str,
    measures: &'static [Measure<Bench>],
) -> (&'static str, Experiment) {
    (id, Experiment::Figures(measures))
}

/// A row that an experiment supports or contradicts.
const fn judged(
    id: &'static str,
    judge: fn(&Bench) -> Result<(bool, String), Failure>,
) -> (&'static str, Experiment) {
    (id, Experiment::Judged(judge))
}

/// MB/s of the bus in transactions of the largest size.
fn bus_limit(bench: &Bench, direction: Direction) -> f64 {
    let bus = bench.machine.bus();
    bus.map_or(0.0, |bus| bus.limit_mb_per_s(direction))
}

/// Transactions that so many bytes take.
fn transactions(bench: &Bench, length_bytes: u64) -> f64 {
    let bus = bench.machine.bus().into_iter();
    let all = bus.flat_map(|bus| bus.transactions(length_bytes));
    all.map(|(count, _)| count).sum::<u64>() as f64
}

/// What writing a packet accumulator takes of the receiver's bus.
fn update(bench: &Bench) -> Span {
    let steps = bench.machine.steps("interface", Point::AccumulatorWritten);
    steps.iter().fold(Span::ZERO, |sum, step| sum + step.span)
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
    use bench::{LARGE, SMALL};
    (large_us - small_us) * 1e3 / (LARGE - SMALL) as f64
}

/// MB/s of a slope in nanoseconds a byte.
fn mb_per_s(ns_per_byte: f64) -> f64 {
    1e3 / ns_per_byte
}

#[cfg(test)]
pub(super) mod tests;
