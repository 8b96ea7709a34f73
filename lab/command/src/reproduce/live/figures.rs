//! The figures of the live experiment: those of single runs, and medians of them.

use anyhow::{Context, Result};
use hamlyn_cli::processors::median;
use hamlyn_sim::reproduce::Plot;
use serde::Serialize;

use super::program::Program;

/// The schedule of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turns {
    /// It has the processors for itself.
    Alone,
    /// It takes turns with null, out of step by so many thousandths of a quantum.
    Skewed(u32),
}

/// A job to be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Setting {
    pub(super) turns: Turns,
    pub(super) has_few_cells: bool,
}

/// One run of a program: all of its processes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) program: String,
    /// Nothing: alone.
    pub(super) skew_percent: Option<f64>,
    pub(super) has_few_cells: bool,
    pub(super) seed: u64,
    /// The launcher's word of how well its turns were kept.
    pub(super) turns: Option<String>,
    /// From the first beginning to the last end.
    pub(super) run_time_ms: f64,
    pub(super) messages: u64,
    /// Handled after a stop, until none was left.
    pub(super) after_stop_percent: f64,
    /// That went through the memory which receivers lend.
    pub(super) logged_percent: f64,
    pub(super) stops: u64,
    pub(super) episodes: u64,
    /// The most pages of one direction.
    pub(super) pages_most: u64,
}

/// Medians of all runs of a setting, but of pages the most.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    pub(super) skew_percent: f64,
    pub(super) run_time_ms: f64,
    /// By the median of runs in step, with rings as usual.
    pub(super) run_time_ratio: f64,
    pub(super) after_stop_percent: f64,
    pub(super) logged_percent: f64,
    pub(super) episodes: f64,
    pub(super) pages_most: u64,
}

/// The figures of a program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfProgram {
    pub(super) program: String,
    pub(super) messages: u64,
    pub(super) alone_ms: f64,
    /// With rings as usual, by skew.
    pub(super) by_skew: Vec<Point>,
    /// With rings of few cells.
    pub(super) few_cells: Vec<Point>,
}

/// Everything.
#[derive(Debug, Serialize)]
pub(crate) struct Live {
    /// So that nobody takes them for the model's.
    pub(super) figures_of: &'static str,
    pub(super) processor: String,
    pub(super) processors: usize,
    pub(super) procs: u32,
    pub(super) quantum_ms: u32,
    pub(super) cycle_ns: f64,
    pub(super) cells_few: u32,
    pub(super) trials: usize,
    /// Programs that wanted to run before it began, on average over a minute.
    pub(super) load_before: f64,
    pub(super) programs: Vec<OfProgram>,
    pub(super) runs: Vec<Run>,
    #[serde(skip)]
    pub(crate) plots: Vec<Plot>,
}

/// The figures of a program.
pub(super) fn of_program(
    program: Program,
    settings: &[Setting],
    runs: &[(Program, Setting, Run)],
) -> Result<OfProgram> {
    let of = |setting: Setting| {
        let all = runs.iter();
        let all = all.filter(move |(of, in_setting, _)| (*of, *in_setting) == (program, setting));
        all.map(|(_, _, run)| run)
    };
    let middle = |setting, figure: fn(&Run) -> f64| median(of(setting).map(figure).collect());
    let run_time = |turns| {
        let setting = Setting {
            turns,
            has_few_cells: false,
        };
        middle(setting, |run| run.run_time_ms)
    };
    let in_step_ms = run_time(Turns::Skewed(0));
    let (mut by_skew, mut few_cells) = (Vec::new(), Vec::new());
    for &setting in settings {
        let Turns::Skewed(skew) = setting.turns else {
            continue;
        };
        let run_time_ms = middle(setting, |run| run.run_time_ms);
        let point = Point {
            skew_percent: f64::from(skew) / 10.0,
            run_time_ms,
            run_time_ratio: run_time_ms / in_step_ms,
            after_stop_percent: middle(setting, |run| run.after_stop_percent),
            logged_percent: middle(setting, |run| run.logged_percent),
            episodes: middle(setting, |run| run.episodes as f64),
            pages_most: of(setting).map(|run| run.pages_most).max().unwrap_or(0),
        };
        match setting.has_few_cells {
            true => few_cells.push(point),
            false => by_skew.push(point),
        }
    }
    let first = runs.iter().find(|(of, ..)| *of == program);
    let (_, _, first) = first.context("a program without runs")?;
    Ok(OfProgram {
        program: program.name(),
        messages: first.messages,
        alone_ms: run_time(Turns::Alone),
        by_skew,
        few_cells,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Medians of the runs of a setting, beside those in step with rings as usual.
    #[test]
    fn figures_are_of_their_own_setting() {
        let program = Program::Barrier(1);
        let of = |turns, has_few_cells| Setting {
            turns,
            has_few_cells,
        };
        let settings = [
            of(Turns::Alone, false),
            of(Turns::Skewed(0), false),
            of(Turns::Skewed(500), false),
            of(Turns::Skewed(500), true),
        ];
        let mut runs = Vec::new();
        for (at, &setting) in settings.iter().enumerate() {
            // Out of order, and of another program besides.
            for (factor, of) in [
                (3.0, program),
                (1.0, program),
                (2.0, program),
                (9.0, Program::Enum(1)),
            ] {
                let figure = factor * 10_f64.powi(at as i32);
                let run = Run {
                    program: of.name(),
                    skew_percent: None,
                    has_few_cells: setting.has_few_cells,
                    seed: 1,
                    turns: None,
                    run_time_ms: figure,
                    messages: 7,
                    after_stop_percent: figure,
                    logged_percent: figure,
                    stops: 1,
                    episodes: figure as u64,
                    pages_most: figure as u64,
                };
                runs.push((of, setting, run));
            }
        }
        let of = of_program(program, &settings, &runs).unwrap();
        assert_eq!((of.alone_ms, of.messages), (2.0, 7));
        let figures = |points: &[Point]| {
            let figures = points.iter();
            let figures = figures.map(|point| {
                let medians = [
                    point.after_stop_percent,
                    point.logged_percent,
                    point.episodes,
                ];
                assert_eq!(medians, [point.run_time_ms; 3]);
                (point.skew_percent, point.run_time_ratio, point.pages_most)
            });
            figures.collect::<Vec<_>>()
        };
        assert_eq!(figures(&of.by_skew), [(0.0, 1.0, 30), (50.0, 10.0, 300)]);
        assert_eq!(figures(&of.few_cells), [(50.0, 100.0, 3_000)]);
    }
}
