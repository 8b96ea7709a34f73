//! The report: for every row of the paper what it says, what was measured here, and how the two agree.

use super::bench::{Bench, Curve};
use super::entries;
use super::measure::Failure;
use crate::machine::named::{NAMED, Named};
use crate::machine::{Component, Parameters};

/// A figure is reached if it deviates by so much at most, in percent.
pub const WITHIN_PERCENT: f64 = 5.0;

/// What kind of row it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The paper gives a number.
    Number,
    /// The paper carries out an experiment, or draws one.
    Experiment,
    /// The paper claims something.
    Claim,
    /// A relation between the paper's numbers that a model should satisfy.
    Derived,
}

/// Where a figure of ours comes from, and so what its agreement with the paper's is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Input: one of the machine's parameters. The agreement says only that the parameter is in force.
    Input,
    /// Calibrated: parameters were chosen to give it, as the paper has one number for several steps. The agreement says that
    /// the parameters can be reconciled with each other.
    Calibrated,
    /// Predicted: no parameter was chosen by it.
    Predicted,
}

/// A number of the paper, and how it is measured here.
pub struct Figure {
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What the paper says.
    pub paper: f64,
    /// Where ours comes from.
    pub origin: Origin,
    /// Measures it.
    pub measure: fn(&Bench) -> Result<f64, Failure>,
}

/// How a row is dealt with.
#[derive(Clone, Copy)]
pub enum Treatment {
    /// By numbers.
    Figures(&'static [Figure]),
    /// An experiment supports or contradicts it; it says with which figures.
    Judged(fn(&Bench) -> Result<(bool, String), Failure>),
    /// It is shown elsewhere in this project; the remark says where.
    Elsewhere,
    /// Somebody else's figure or judgement, quoted.
    Cited,
    /// It cannot be measured here; the remark says why.
    NotMeasurable,
    /// An experiment that is carried out here; the remark says which curves show it.
    CarriedOut,
}

/// A row of the paper.
pub struct Row {
    /// Its identifier.
    pub id: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Where in the paper it stands.
    pub source: &'static str,
    /// What the paper says, in our words.
    pub says: &'static str,
    /// How it is dealt with.
    pub treatment: Treatment,
    /// What must be said of it, if its measurement does not say it.
    pub remark: &'static str,
}

/// What became of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every number is reached.
    Reached,
    /// A number is not reached; the remark says why.
    NotReached,
    /// The claim is supported by measurement.
    Supported,
    /// The claim is contradicted by measurement.
    Contradicted,
    /// The experiment is carried out.
    CarriedOut,
    /// Shown elsewhere in this project.
    ShownElsewhere,
    /// Quoted, and not measured.
    Cited,
    /// It cannot be measured here.
    NotMeasurable,
}

/// A number beside ours.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Comparison {
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The paper's.
    pub paper: f64,
    /// Ours.
    pub ours: f64,
    /// By how much ours deviates, in percent of the paper's.
    pub deviation_percent: f64,
    /// Whether that is little enough.
    pub is_within: bool,
    /// Where ours comes from.
    pub origin: Origin,
}

/// An entry of the report.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Entry {
    /// The row's identifier.
    pub id: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Where in the paper it stands.
    pub source: &'static str,
    /// What the paper says.
    pub says: &'static str,
    /// What became of it.
    pub verdict: Verdict,
    /// Its numbers.
    pub figures: Vec<Comparison>,
    /// What must be said of it.
    pub remark: String,
}

/// A place where the paper contradicts itself or is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Reading {
    /// Where.
    pub place: &'static str,
    /// What it says there.
    pub says: &'static str,
    /// What is followed here.
    pub follows: &'static str,
    /// Whose rows that concerns.
    pub rows: &'static str,
}

/// A parameter of the machine that was measured.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Parameter {
    /// What it is.
    pub name: &'static str,
    /// What it was set to.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The rows that it comes from.
    pub source: &'static str,
}

/// A row of Table 4, in microseconds.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Table4Row {
    /// The component.
    pub component: &'static str,
    /// The paper's: raw, tagged.
    pub paper_us: (f64, f64),
    /// Ours: raw, tagged.
    pub ours_us: (f64, f64),
}

/// A plot.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Plot {
    /// Its name, fit for a file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What its points' first numbers are.
    pub across: &'static str,
    /// What its points' second numbers are.
    pub unit: &'static str,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Report {
    /// Deviations up to this count as reached, in percent.
    pub within_percent: f64,
    /// The machine.
    pub parameters: Vec<Parameter>,
    /// Where the paper contradicts itself, and what is followed.
    pub readings: Vec<Reading>,
    /// Table 4.
    pub table4: Vec<Table4Row>,
    /// The rows of the paper, and after them the derived checks.
    pub entries: Vec<Entry>,
    /// Figures 7 to 10.
    pub plots: Vec<Plot>,
}

impl Report {
    /// How many entries have that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.verdict == verdict)
            .count()
    }

    /// The entry of that identifier.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

/// Measures the machine and reports.
pub fn report(machine: &Parameters) -> Result<Report, Failure> {
    let bench = Bench::new(machine)?;
    let mut entries = Vec::new();
    for row in entries::all() {
        entries.push(enter(&row, &bench)?);
    }
    Ok(Report {
        within_percent: WITHIN_PERCENT,
        parameters: parameters(NAMED, machine),
        readings: entries::readings(),
        table4: table4(&bench),
        entries,
        plots: plots(&bench)?,
    })
}

/// What those parameters of a machine are.
pub(super) fn parameters(list: &[Named], machine: &Parameters) -> Vec<Parameter> {
    let parameter = |named: &Named| Parameter {
        name: named.name,
        value: named.value(machine),
        unit: named.unit(),
        source: named.source,
    };
    list.iter().map(parameter).collect()
}

/// Figures 7 to 10.
pub(super) fn plots(bench: &Bench) -> Result<Vec<Plot>, Failure> {
    let plot = |name: &str, title: &str, unit, curves| Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        across: "bytes of data",
        unit,
        curves,
    };
    Ok(vec![
        plot(
            "figure-7",
            "Latency by message size, 256-byte packets",
            "µs",
            bench.figure7()?,
        ),
        plot(
            "figure-8",
            "Latency by message size, 4 KB packets",
            "µs",
            bench.figure8()?,
        ),
        plot(
            "figure-9",
            "Bandwidth by message size",
            "MB/s",
            bench.figure9.clone(),
        ),
        plot(
            "figure-10",
            "Loopback bandwidth by message size",
            "MB/s",
            bench.figure10.clone(),
        ),
    ])
}

fn table4(bench: &Bench) -> Vec<Table4Row> {
    let row = |component, name, raw, tagged| Table4Row {
        component: name,
        paper_us: (raw, tagged),
        ours_us: bench.row(component),
    };
    let total = |one_way: &super::measure::OneWay| one_way.times.total().as_us_f64();
    vec![
        row(Component::Dma, "DMA", 3.3, 3.3),
        row(Component::Lanai, "LANai", 6.7, 6.7),
        row(Component::Switch, "Switch", 0.5, 0.5),
        row(Component::HostWrites, "Host I/O writes", 1.4, 1.4),
        row(Component::HostSoftware, "Host protocol software", 0.8, 2.2),
        Table4Row {
            component: "Total",
            paper_us: (12.7, 14.1),
            ours_us: (total(&bench.raw), total(&bench.tagged)),
        },
    ]
}

fn enter(row: &Row, bench: &Bench) -> Result<Entry, Failure> {
    let mut figures = Vec::new();
    let mut remark = row.remark.to_owned();
    let verdict = match row.treatment {
        Treatment::Figures(list) => {
            for figure in list {
                figures.push(compare(figure, (figure.measure)(bench)?));
            }
            if figures.iter().all(|figure| figure.is_within) {
                Verdict::Reached
            } else {
                Verdict::NotReached
            }
        }
        Treatment::Judged(judge) => {
            let holds;
            (holds, remark) = judge(bench)?;
            if holds {
                Verdict::Supported
            } else {
                Verdict::Contradicted
            }
        }
        Treatment::Elsewhere => Verdict::ShownElsewhere,
        Treatment::Cited => Verdict::Cited,
        Treatment::NotMeasurable => Verdict::NotMeasurable,
        Treatment::CarriedOut => Verdict::CarriedOut,
    };
    Ok(Entry {
        id: row.id,
        kind: row.kind,
        source: row.source,
        says: row.says,
        verdict,
        figures,
        remark,
    })
}

fn compare(figure: &Figure, ours: f64) -> Comparison {
    // So that what is printed does not depend on the last bit of a sum.
    let rounded = (ours * 1e6).round() / 1e6;
    let deviation = if figure.paper == 0.0 {
        rounded * 100.0
    } else {
        (rounded - figure.paper) / figure.paper * 100.0
    };
    Comparison {
        what: figure.what,
        unit: figure.unit,
        paper: figure.paper,
        ours: rounded,
        deviation_percent: (deviation * 100.0).round() / 100.0,
        is_within: deviation.abs() <= WITHIN_PERCENT,
        origin: figure.origin,
    }
}
