//! The twelve programs of Table 2 under Proc and NP, on 16 nodes of the CS-2 and 8 of the Paragon
//! (`Split-C 5.4`).
//!
//! Each program does what it is named for with data of its own, by the operations of [`node`], and
//! what comes out is compared with a serial run. What an element of it takes to compute is a number
//! of `papers/split-c-programs.toml`: chosen so that the time under Proc comes out, or that of the
//! same program with bulk transfers. So the time under NP is a prediction. Runs are small: times
//! are multiplied by how many more elements the paper's problem has on each node.

mod fish;
mod matrix;
mod node;
mod ray_tracing;
mod sorting;
mod transform;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

pub(super) use node::Node;

use super::Machines;
use super::end::End;
use super::table::Bench;
use super::versions::{VERSIONS, Version};
use crate::machine::number::{Count, Number, Time, numbers};
use crate::reproduce::measure::Failure;
use crate::reproduce::parallel::side_by_side;
use crate::reproduce::primitive::{PartOf, Primitive};
use crate::reproduce::report::BarChart;
use crate::reproduce::rows::Paper;
use crate::time::Span;

/// What runs are made of.
const RUNS: &str = include_str!("../../../../papers/split-c-programs.toml");
/// What each program of a run shares.
const SHARED_BYTES: u64 = 1 << 20;
/// Names of processors.
const NAMES: [&str; 16] = [
    "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14",
    "p15",
];

/// A machine of Table 2: its name there, its nodes, and its versions by their names in Table 1.
pub(super) const MACHINES: [(&str, usize, [&str; 2]); 2] = [
    ("Meiko", 16, ["Meiko-Proc", "Meiko-NP"]),
    ("Paragon", 8, ["Paragon-Proc", "Paragon-NP"]),
];

/// How much a processor has to do.
pub(super) struct Size {
    /// Elements of each processor, as the program counts them.
    pub(super) elements: usize,
    /// Passes over them, of a radix sort; otherwise none.
    pub(super) passes: u32,
}

/// A program: what each processor does and what it has in the end, and whether all of that is as in
/// a serial run.
struct Program {
    name: &'static str,
    run: fn(&mut Node<'_>, &Size) -> Vec<u64>,
    is_right: fn(&Size, &[Vec<u64>]) -> bool,
}

/// In the order of Table 2.
static PROGRAMS: [Program; 12] = [
    program("radix", sorting::radix, sorting::is_sorted_input),
    program("sample", sorting::sample, sorting::is_sorted_input),
    program("p-ray", ray_tracing::p_ray, ray_tracing::is_image),
    program("sampleb", sorting::sampleb, sorting::is_sorted_input),
    program("radixb", sorting::radixb, sorting::is_sorted_input),
    program("bitonic", sorting::bitonic, sorting::is_sorted_input),
    program("fftb", transform::fftb, transform::is_transform),
    program("cannon", matrix::cannon, matrix::is_cannon_product),
    program("mm", matrix::mm, matrix::is_mm_product),
    program("fft", transform::fft, transform::is_transform),
    program("shell", sorting::shell, sorting::is_sorted_input),
    program("wator", fish::wator, fish::is_serial),
];

const fn program(
    name: &'static str,
    run: fn(&mut Node<'_>, &Size) -> Vec<u64>,
    is_right: fn(&Size, &[Vec<u64>]) -> bool,
) -> Program {
    Program {
        name,
        run,
        is_right,
    }
}

/// Programs with bulk transfers: they have few messages, and so are soon simulated.
const QUICK: [&str; 5] = ["sampleb", "radixb", "bitonic", "fftb", "cannon"];

/// Names of the programs, in the order of Table 2.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|program| program.name)
}

/// How each program's result is judged.
#[cfg(test)]
pub(super) fn checks() -> impl Iterator<Item = fn(&Size, &[Vec<u64>]) -> bool> {
    PROGRAMS.iter().map(|program| program.is_right)
}

/// A program's run on a machine, as it stands in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    program: String,
    machine: String,
    /// Elements of each processor here.
    elements: Count,
    /// How many times as much the paper's problem has on each node.
    times: Count,
    #[serde(default)]
    passes: Count,
    /// What one takes to compute.
    element: Option<Time>,
    /// The program of which one takes as long.
    element_of: Option<String>,
}

/// What the program of polling granularity takes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Polling {
    turn: Time,
    poll: Time,
}

impl Polling {
    /// For how long a processor computes in its turn.
    pub(super) fn turn(&self) -> Span {
        self.turn.0
    }

    /// What a poll takes that finds nothing.
    pub(super) fn poll(&self) -> Span {
        self.poll.0
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub struct Runs {
    table: toml::Value,
    file: RunsFile,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunsFile {
    polling: Polling,
    run: Vec<Run>,
}

impl Runs {
    /// The runs, as the file says.
    pub fn of_file() -> Self {
        let table = toml::Value::Table(RUNS.parse().expect("a file that is in the program"));
        Self::of(table).expect("a file that is in the program")
    }

    fn of(table: toml::Value) -> Result<Self, toml::de::Error> {
        let file = table.clone().try_into()?;
        Ok(Self { table, file })
    }

    /// Their numbers, each with where it is from.
    pub fn numbers(&self) -> Vec<Number> {
        numbers(&self.table)
    }

    /// The same runs with another number at that path.
    #[cfg(test)]
    pub(super) fn with(&self, path: &str, to: impl FnOnce(f64) -> f64) -> Option<Self> {
        let mut table = self.table.clone();
        crate::machine::number::change(&mut table, path, to).then_some(())?;
        Self::of(table).ok()
    }

    /// Of the program of polling granularity.
    pub(super) fn polling(&self) -> &Polling {
        &self.file.polling
    }

    fn find(&self, program: &str, machine: &str) -> Option<&Run> {
        let mut runs = self.file.run.iter();
        runs.find(|run| run.program == program && run.machine == machine)
    }

    /// What an element of a program takes on a machine.
    fn element(&self, run: &Run) -> Option<Span> {
        let of = match &run.element_of {
            Some(other) => self.find(other, &run.machine)?.element,
            None => run.element,
        };
        Some(of?.0)
    }

    /// Every program, or those that are soon simulated, under both strategies.
    pub(super) fn times(&self, machines: &Machines, is_quick: bool) -> Result<Times, Failure> {
        let wanted = || names().filter(|name| !is_quick || QUICK.contains(name));
        let each: Vec<_> = MACHINES
            .iter()
            .flat_map(|(machine, ..)| wanted().map(|program| (program, *machine)))
            .flat_map(|(program, machine)| [0, 1].map(|strategy| (program, machine, strategy)))
            .collect();
        let seconds = side_by_side(&each, |&(program, machine, strategy)| {
            self.seconds(machines, program, machine, strategy)
        })?;
        Ok(Times(each.into_iter().zip(seconds).collect()))
    }

    /// What a program takes on a machine under Proc (0) or NP (1), as long as the paper's problem.
    pub(super) fn seconds(
        &self,
        machines: &Machines,
        program: &str,
        machine: &str,
        strategy: usize,
    ) -> Result<f64, Failure> {
        let unmatched = || Failure::Unmatched {
            id: format!("{program} on {machine}"),
        };
        let run = self.find(program, machine).ok_or_else(unmatched)?;
        let element = self.element(run).ok_or_else(unmatched)?;
        let mut programs = PROGRAMS.iter();
        let program = programs
            .find(|one| one.name == program)
            .ok_or_else(unmatched)?;
        let mut known = MACHINES.iter();
        let (_, procs, versions) = known
            .find(|(name, ..)| *name == machine)
            .ok_or_else(unmatched)?;
        let size = Size {
            elements: run.elements.0 as usize,
            passes: run.passes.0 as u32,
        };
        let version = version(versions[strategy]).ok_or_else(unmatched)?;
        let bench = Bench {
            version,
            machine: &machines[version.machine],
        };
        let took = bench.program(program, &size, *procs, element)?;
        Ok(took.as_us_f64() * run.times.0 as f64 / 1e6)
    }
}

/// The version of that name in Table 1.
pub(super) fn version(name: &str) -> Option<Version> {
    let mut versions = VERSIONS.iter();
    versions.find(|version| version.name == name).copied()
}

/// What programs took, in seconds, as long as the paper's problems: by program, machine, and
/// strategy (Proc, NP).
#[derive(Clone, PartialEq, Debug)]
pub struct Times(BTreeMap<(&'static str, &'static str, usize), f64>);

impl Times {
    /// Of a program on a machine under Proc and under NP.
    pub fn of(&self, program: &str, machine: &str) -> Option<(f64, f64)> {
        let mut all = self.0.iter();
        let of = |&(&(name, on, _), _): &(&(&'static str, &'static str, usize), &f64)| {
            name == program && on == machine
        };
        let (proc, np) = (all.find(of)?, all.next()?);
        Some((*proc.1, *np.1))
    }

    /// As if these had been measured quickly.
    #[cfg(test)]
    pub(super) fn quick(&self) -> Self {
        let all = self.0.iter().filter(|((name, ..), _)| QUICK.contains(name));
        Self(all.map(|(run, seconds)| (*run, *seconds)).collect())
    }

    /// NP's time divided by Proc's.
    pub fn ratio(&self, program: &str, machine: &str) -> Option<f64> {
        let (proc, np) = self.of(program, machine)?;
        Some(np / proc)
    }

    /// A number of Table 2, by its row: `G-TAB2.radix.Meiko.Proc` in seconds,
    /// `G-TAB2.radix.Meiko.NP` as a part of that.
    pub fn named(&self, id: &str) -> Option<f64> {
        let mut parts = id.strip_prefix("G-TAB2.")?.splitn(3, '.');
        let (program, machine) = (parts.next()?, parts.next()?);
        match parts.next()? {
            "Proc" => Some(self.of(program, machine)?.0),
            "NP" => self.ratio(program, machine),
            _ => None,
        }
    }
}

/// Figures 9 and 10: NP's times as parts of Proc's, ours beside the paper's.
pub(super) fn bars(times: &Times, paper: &Paper) -> Vec<BarChart> {
    let chart = |machine: &str, name: &str, title: &str| {
        let printed = |program: &str| {
            let id = format!("G-TAB2.{program}.{machine}.NP");
            let row = paper.row.iter().find(|row| row.id == id)?;
            Some(row.figures.first()?.paper)
        };
        let group = |program| {
            let ours = times.ratio(program, machine)?;
            let heights = std::iter::once(ours).chain(printed(program));
            Some((program, heights.collect()))
        };
        BarChart {
            name: name.to_owned(),
            title: title.to_owned(),
            unit: "time under NP / under Proc",
            series: vec!["ours", "the paper"],
            groups: names().filter_map(group).collect(),
        }
    };
    vec![
        chart(
            "Meiko",
            "splitc-programs-cs2",
            "Programs on 16 nodes of a CS-2 (Figure 9)",
        ),
        chart(
            "Paragon",
            "splitc-programs-paragon",
            "Programs on 8 nodes of a Paragon (Figure 10)",
        ),
    ]
}

impl Bench<'_> {
    /// Runs a program on so many nodes.
    fn program(
        &self,
        program: &Program,
        size: &Size,
        procs: usize,
        element: Span,
    ) -> Result<Span, Failure> {
        let act = |node: &mut Node<'_>| (program.run)(node, size);
        let (took, results) = self.nodes(procs, element, SHARED_BYTES, act)?;
        if (program.is_right)(size, &results) {
            return Ok(took);
        }
        let (name, version) = (program.name, self.version.name);
        Err(Failure::World(format!(
            "{name} in the version {version}: the result differs from that of a serial run"
        )))
    }

    /// Has so many processors do something: what the timed part took, and what each came to.
    pub(super) fn nodes(
        &self,
        procs: usize,
        element: Span,
        shared_bytes: u64,
        act: impl Fn(&mut Node<'_>) -> Vec<u64> + Send + Sync,
    ) -> Result<(Span, Vec<Vec<u64>>), Failure> {
        let names = &NAMES[..procs];
        let ended = Mutex::new(BTreeMap::new());
        let (ends, act) = (&ended, &act);
        let parts = names.iter().enumerate().map(|(rank, name)| {
            let part: PartOf<'_, End> = (
                *name,
                Box::new(move |end: &mut End| {
                    end.meet(rank as u32, names);
                    let mut node = Node::new(end, rank, procs, element);
                    let result = act(&mut node);
                    let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
                    ends.insert(rank, (node.took(), result));
                }),
            );
            part
        });
        let open = |manager| End::open_with(manager, self.machine, self.version, shared_bytes);
        let primitive = Primitive::new(self.machine, self.version.strategy);
        primitive.run_ends(open, parts.collect())?;
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let took = ended.values().map(|(took, _)| *took).max();
        let results = ended.into_values().map(|(_, result)| result);
        Ok((took.unwrap_or(Span::ZERO), results.collect()))
    }
}
