//! A first look at the machine of a paper whose layer is to come, with the library as it is.
//!
//! Two-case delivery: a null message, taken by polling and after an interrupt. The comparison of
//! five machines is [`super::split_c`], and Active Messages are [`super::am2`].

use std::sync::LazyLock;

use hamlyn::Strategy;

use super::gang::{Gang, Program};
use super::measure::Failure;
use super::primitive::{Primitive, Waiting};
use super::report::{Experiment, Measure, Report};
use super::rows::Paper;
use crate::machine::Machine;
use crate::time::Span;

/// The machines, and the files of what their papers say.
const MACHINES: [(&str, &str); 1] = [("fugu", include_str!("../../papers/two-case-delivery.toml"))];

/// Measures all machines.
pub fn reports() -> Result<Vec<Report>, Failure> {
    MACHINES
        .iter()
        .map(|(name, _)| report(&machine(name)))
        .collect()
}

/// The machine of that name, whose file is in the program.
fn machine(name: &str) -> Machine {
    Machine::named(name).expect("a machine of the list")
}

/// Measures a machine, and reports on the rows of its paper that are about it.
pub fn report(machine: &Machine) -> Result<Report, Failure> {
    report_of(machine, |_| true)
}

/// The same of some rows only.
fn report_of(machine: &Machine, is_asked: impl Fn(&str) -> bool) -> Result<Report, Failure> {
    let mut of_it = MACHINES.iter().filter(|(name, _)| *name == machine.name());
    let text = of_it.next().map_or("", |(_, text)| text);
    let mut paper = Paper::parse(text).expect("a file that is in the program");
    paper
        .row
        .retain(|row| row.machine.as_deref() == Some(machine.name()) && is_asked(&row.id));
    let experiment = |id: &str| {
        let mut all = EXPERIMENTS.iter();
        all.find(|(of, _)| *of == id)
            .map(|(_, experiment)| *experiment)
    };
    Report::new(&paper, machine, machine, experiment)
}

type Row = (&'static str, Experiment<Machine>);

/// A row of numbers.
const fn figures(id: &'static str, measures: &'static [Measure<Machine>]) -> Row {
    (id, Experiment::Figures(measures))
}

/// A row of one number.
macro_rules! one {
    ($id:literal, $measure:expr) => {
        figures($id, &[$measure])
    };
}

fn cycles(span: Span) -> f64 {
    span.as_us_f64() * 1e3
}

fn with(machine: &Machine, strategy: Strategy) -> Primitive {
    Primitive::new(machine, strategy)
}

fn proc(machine: &Machine) -> Primitive {
    with(machine, Strategy::Proc)
}

fn null(machine: &Machine, words: usize) -> Primitive {
    Primitive {
        data_bytes: words * 4,
        ..proc(machine)
    }
}

/// From the arrival of a message for a program that sleeps until it has it. The client, which asks
/// after a while, polls.
fn by_interrupt(machine: &Machine, words: usize) -> Result<f64, Failure> {
    let polling = null(machine, words);
    let sleeping = Primitive {
        waiting: Waiting::Sleeps,
        ..polling.clone()
    };
    let longer = sleeping.rare_round_trip()? - polling.rare_round_trip()?;
    Ok(cycles(polling.taking()? + longer))
}

/// Cycles between a node's messages (T-TAB6), less what sending and taking one costs (T-115).
fn barrier(machine: &Machine) -> Gang {
    Gang {
        machine: machine.clone(),
        program: Program::Barrier,
        between: Span::from_ns(615 - 7 - 9),
    }
}

fn scatter(machine: &Machine) -> Gang {
    Gang {
        machine: machine.clone(),
        program: Program::Scatter,
        between: Span::from_ns(953 - 7 - 9),
    }
}

/// How much longer a program takes with that skew than without.
fn slowdown(gang: &Gang, skew: f64) -> Result<f64, Failure> {
    Ok(gang.shared(0.0)?.rate / gang.shared(skew)?.rate)
}

/// How many times as many messages come out of turn with 20 % skew as with 10 %.
fn out_of_turn(gang: &Gang) -> Result<f64, Failure> {
    Ok(gang.shared(0.2)?.out_of_turn / gang.shared(0.1)?.out_of_turn)
}

static EXPERIMENTS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    vec![
        figures(
            "T-115",
            &[
                |m| Ok(cycles(null(m, 0).flow(1)?.overhead)),
                |m| Ok(cycles(null(m, 0).taking()?)),
                |m| by_interrupt(m, 0),
            ],
        ),
        figures(
            "T-243",
            &[
                |m| Ok(cycles(null(m, 14).flow(1)?.overhead)),
                |m| Ok(cycles(null(m, 14).taking()?)),
                |m| by_interrupt(m, 14),
            ],
        ),
        one!("T-199", |m| {
            let gang = barrier(m);
            Ok(gang.alone()?.rate / gang.shared(0.0)?.rate)
        }),
        one!("T-193", |m| out_of_turn(&barrier(m))),
        one!("T-194", |m| out_of_turn(&scatter(m))),
        figures(
            "T-253",
            &[
                |m| slowdown(&barrier(m), 0.01),
                |m| slowdown(&barrier(m), 0.1),
                |m| slowdown(&barrier(m), 0.2),
                |m| slowdown(&barrier(m), 0.5),
            ],
        ),
    ]
});

#[cfg(test)]
mod tests;
