//! The paper's experiments on a host pair of today, beside the paper's machine.

use crate::machine::PointName;
use crate::machine::number::Number;
use crate::machine::{Component, Machine, Protocol};
use crate::reproduce::hamlyn::bench::{Bench, LARGE, RECOMMENDED, SMALL, us};
use crate::reproduce::hamlyn::plots;
use crate::reproduce::measure::{Failure, Shape, flow};
use crate::reproduce::report::Plot;

/// A machine that is measured.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Named {
    /// What it is called.
    pub name: &'static str,
    /// How it differs from the one before.
    pub what: &'static str,
}

/// What one machine after the other has for the same thing.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Row {
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// A value for each machine.
    pub values: Vec<f64>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Pair {
    /// The machines, in the order of the values.
    pub machines: Vec<Named>,
    /// Parameters of the host pair of today, and where each is from.
    pub parameters: Vec<Number>,
    /// Table 4, the library's tagged remote write: microseconds.
    pub table4: Vec<Row>,
    /// Single figures.
    pub figures: Vec<Row>,
}

/// The machines, each with its name and how it differs from the one before.
fn machines() -> [(&'static str, &'static str, Machine); 3] {
    // The paper's board has no room for accumulators (H-134).
    let kept = Machine::pair_of_today()
        .free_of_dma(&[PointName::AccumulatorRead, PointName::AccumulatorWritten]);
    [
        ("1996", "the paper's machine", Machine::hamlyn()),
        (
            "today",
            "3 GHz, PCIe 4.0 x16, 100 Gbit/s; packet accumulators in host memory, as in the paper",
            Machine::pair_of_today(),
        ),
        (
            "today, kept",
            "the same, but the board keeps the packet accumulators",
            kept,
        ),
    ]
}

type Measure = fn(&Bench) -> Result<f64, Failure>;

const FIGURES: &[(&str, &str, Measure)] = &[
    ("16 bytes, raw, one way", "µs", |b| Ok(us(b.raw.span))),
    ("16 bytes, library, one way", "µs", |b| {
        Ok(us(b.tagged.span))
    }),
    ("16 bytes, library, there and back", "µs", |b| {
        Ok(us(b.tagged.round_trip))
    }),
    ("normal message without data", "µs", |b| b.single(0, 0)),
    ("4 bytes of metadata add", "µs", |b| {
        Ok(b.single(32, 4)? - b.single(32, 0)?)
    }),
    ("a second packet of 1 byte adds", "µs", |b| b.jump(1)),
    ("the receiver sleeps", "µs", Bench::asleep),
    ("to itself, 4 bytes", "µs", |b| b.to_itself(4)),
    ("a wrong key is found out in", "µs", |b| {
        Ok(us(b.refused.receiving_lanai))
    }),
    ("short messages one way, library", "million/s", |b| {
        Ok(1.0 / us(short_flow(b)?.span))
    }),
    ("both processors, per short message", "µs", |b| {
        Ok(us(b.tagged.processors))
    }),
    ("whole packets of 4 KB", "ns/byte", |b| Ok(b.slopes.mean)),
    ("256-byte packets, 40 KB messages", "MB/s", |b| {
        Ok(b.largest(&b.figure9, SMALL))
    }),
    ("1 KB packets, 40 KB messages", "MB/s", |b| {
        Ok(b.largest(&b.figure9, RECOMMENDED))
    }),
    ("4 KB packets, 40 KB messages", "MB/s", |b| {
        Ok(b.largest(&b.figure9, LARGE))
    }),
    ("the same in loopback", "MB/s", |b| {
        Ok(b.largest(&b.figure10, LARGE))
    }),
    ("4 KB packets, by the slope", "MB/s", |b| {
        Ok(1e3 / b.slopes.mean)
    }),
    ("a 4 KB packet: sender's board and bus", "µs", |b| {
        Ok(b.large.send)
    }),
    ("a 4 KB packet: receiver's board and bus", "µs", |b| {
        Ok(b.large.receive)
    }),
    ("a 4 KB packet: link", "µs", |b| Ok(b.large.link)),
    ("without a control program, 16 bytes, raw", "µs", |b| {
        Ok(b.hardware()?.0)
    }),
    (
        "without a control program, 4 KB packets, by the slope",
        "MB/s",
        |b| Ok(b.hardware()?.1),
    ),
];

const COMPONENTS: [(&str, Component); 7] = [
    ("DMA and wire", Component::Dma),
    ("Interface processor", Component::Lanai),
    ("Switch", Component::Switch),
    ("Host I/O writes", Component::HostWrites),
    ("Host protocol software", Component::HostSoftware),
    ("Crossing bus and cable", Component::Crossing),
    ("Waiting", Component::Waiting),
];

fn short_flow(bench: &Bench) -> Result<crate::reproduce::measure::Flow, Failure> {
    flow(&bench.machine, &Shape::short(Protocol::Tagged), 1_000, true)
}

/// So that what is printed does not depend on the last bit of a sum.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Measures the paper's machine and a host pair of today, and draws Figures 7 to 10 for the latter.
pub fn pair() -> Result<(Pair, Vec<Plot>), Failure> {
    let mut benches = Vec::new();
    for (_, _, machine) in machines() {
        benches.push(Bench::new(&machine)?);
    }
    let of_each = |measure: &dyn Fn(&Bench) -> Result<f64, Failure>| {
        benches
            .iter()
            .map(|bench| measure(bench).map(rounded))
            .collect::<Result<Vec<_>, _>>()
    };
    let mut figures = Vec::with_capacity(FIGURES.len());
    for &(what, unit, measure) in FIGURES {
        let values = of_each(&measure)?;
        figures.push(Row { what, unit, values });
    }
    let mut table4 = Vec::with_capacity(COMPONENTS.len() + 1);
    for (what, component) in COMPONENTS {
        let values = of_each(&|bench| Ok(us(bench.tagged.times.of(component))))?;
        table4.push(Row {
            what,
            unit: "µs",
            values,
        });
    }
    let values = of_each(&|bench| Ok(us(bench.tagged.times.total())))?;
    table4.push(Row {
        what: "Total",
        unit: "µs",
        values,
    });
    let mut drawn = Vec::new();
    for (bench, name) in benches.iter().zip(["", "today-", "kept-"]).skip(1) {
        for plot in plots(bench)? {
            drawn.push(Plot {
                name: format!("{name}{}", plot.name),
                title: format!("{} (assumed machine of today)", plot.title),
                ..plot
            });
        }
    }
    let pair = Pair {
        machines: machines()
            .iter()
            .map(|(name, what, _)| Named { name, what })
            .collect(),
        parameters: Machine::pair_of_today().numbers(),
        table4,
        figures,
    };
    Ok((pair, drawn))
}
