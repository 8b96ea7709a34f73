//! The rows of the paper, each with its measurement or its judgement: here those of single messages
//! and of synth-N.

use super::bench::{
    BETWEEN, BUFFERED, Bench, Column, GROUPS, WORDS, in_cycles, slower_synth, synth,
};
use super::costs::Costs;
use crate::reproduce::measure::Failure;
use crate::reproduce::report::Experiment;
use crate::time::Span;

pub(super) type Number = Result<f64, Failure>;
pub(super) type Judged = Result<(bool, String), Failure>;

/// Above the sum of a handler and the buffered path all of synth-N buffers little (T-255).
const THRESHOLD: u64 = 522;
/// Below this, N decides.
const BELOW: u64 = 435;
/// A small part of the messages.
pub(super) const SMALL: f64 = 0.02;

/// The experiment by which a row is measured.
pub(super) fn of(id: &str) -> Option<Experiment<Bench>> {
    use Experiment::{Figures, Judged};
    Some(match id {
        "T-113" => Figures(&[|bench| slope(bench, Column::Soft, |costs| costs.send)]),
        "T-114" => Figures(&[
            |bench| slope(bench, Column::Soft, |costs| costs.interrupt),
            |bench| slope(bench, Column::Hard, |costs| costs.polling),
        ]),
        "T-115" => Figures(&[
            |bench| null(bench, Column::Kernel, |costs| costs.send),
            |bench| null(bench, Column::Hard, |costs| costs.send),
            |bench| null(bench, Column::Soft, |costs| costs.send),
            |bench| null(bench, Column::Kernel, |costs| costs.interrupt),
            |bench| null(bench, Column::Hard, |costs| costs.interrupt),
            |bench| null(bench, Column::Soft, |costs| costs.interrupt),
            |bench| null(bench, Column::Kernel, |costs| costs.polling),
            |bench| null(bench, Column::Hard, |costs| costs.polling),
        ]),
        "T-116" => Figures(&[
            |bench| null(bench, Column::Kernel, |costs| costs.entry),
            |bench| null(bench, Column::Hard, |costs| costs.entry),
            |bench| null(bench, Column::Soft, |costs| costs.entry),
        ]),
        "T-120" => Judged(comparable),
        "T-156" => Figures(&[
            |bench| null(bench, Column::Soft, |costs| costs.insertion),
            |bench| null(bench, Column::Soft, |costs| costs.extraction),
            |bench| null(bench, Column::Soft, buffered_path),
            |bench| {
                let direct = null(bench, Column::Hard, |costs| costs.interrupt)?;
                Ok(null(bench, Column::Soft, buffered_path)? / direct)
            },
        ]),
        "T-157" => Figures(&[|bench| slope(bench, Column::Soft, |costs| costs.extraction)]),
        "T-159" => Figures(&[|bench| null(bench, Column::Soft, |costs| costs.insertion_with_page)]),
        "T-160" => Figures(&[|bench| words(bench, Column::Soft, |costs| costs.insertion)]),
        "T-237" => Figures(&[
            |bench| ratio(bench, Column::Hard, Column::Kernel),
            |bench| ratio(bench, Column::Soft, Column::Kernel),
        ]),
        "T-243" => Figures(&[
            |bench| words(bench, Column::Hard, |costs| costs.send),
            |bench| words(bench, Column::Hard, |costs| costs.interrupt),
            |bench| words(bench, Column::Hard, |costs| costs.polling),
            |bench| words(bench, Column::Hard, buffered_path),
        ]),
        "T-214" => Judged(small_above),
        "T-215" => Judged(ordered_below),
        "T-219" => Judged(ten_is_flat),
        "T-220" => Figures(&[|bench| knee(bench, 1), |bench| knee(bench, 2)]),
        "T-222" => Judged(large_beyond),
        _ => return None,
    })
}

/// A message without words.
fn null(bench: &Bench, column: Column, cost: fn(Costs) -> Span) -> Number {
    Ok(in_cycles(cost(bench.cost(column, false)?)))
}

/// A message of fourteen.
fn words(bench: &Bench, column: Column, cost: fn(Costs) -> Span) -> Number {
    Ok(in_cycles(cost(bench.cost(column, true)?)))
}

fn slope(bench: &Bench, column: Column, cost: fn(Costs) -> Span) -> Number {
    Ok((words(bench, column, cost)? - null(bench, column, cost)?) / WORDS)
}

fn buffered_path(costs: Costs) -> Span {
    costs.insertion + costs.extraction
}

fn ratio(bench: &Bench, one: Column, other: Column) -> Number {
    let interrupt = |column| null(bench, column, |costs| costs.interrupt);
    Ok(interrupt(one)? / interrupt(other)?)
}

fn comparable(bench: &Bench) -> Judged {
    let part = |cost| {
        Ok::<f64, Failure>(null(bench, Column::Hard, cost)? / null(bench, Column::Kernel, cost)?)
    };
    let (interrupt, polling, send) = (
        part(|costs| costs.interrupt)?,
        part(|costs| costs.polling)?,
        part(|costs| costs.send)?,
    );
    Ok((
        interrupt < 2.0 && polling == 1.0 && send == 1.0,
        format!(
            "protected by unprotected: interrupt {interrupt:.2}, polling {polling:.2}, send {send:.2}"
        ),
    ))
}

/// The part that is buffered in Figure 9.
pub(super) fn of_figure_9(bench: &Bench, group: u32, between: u64) -> Number {
    bench.average(
        |seed| synth(group, between, seed),
        |outcome| outcome.buffered,
    )
}

/// The same of Figure 10.
pub(super) fn of_figure_10(bench: &Bench, group: u32, buffered: u64) -> Number {
    bench.average(
        |seed| slower_synth(group, buffered, seed),
        |outcome| outcome.buffered,
    )
}

fn percent(parts: &[f64]) -> String {
    let said: Vec<String> = parts
        .iter()
        .map(|part| format!("{:.1}", part * 100.0))
        .collect();
    said.join("/")
}

fn at_between(bench: &Bench, between: u64) -> Result<[f64; 3], Failure> {
    let [ten, hundred, thousand] = GROUPS.map(|group| of_figure_9(bench, group, between));
    Ok([ten?, hundred?, thousand?])
}

/// Judges the parts of Figure 9 at those intervals.
fn of_intervals(
    bench: &Bench,
    is_wanted: impl Fn(u64) -> bool,
    is_as_said: impl Fn(&[f64; 3]) -> bool,
) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    for between in BETWEEN.into_iter().filter(|&between| is_wanted(between)) {
        let parts = at_between(bench, between)?;
        holds &= is_as_said(&parts);
        said.push(format!("{between}: {}", percent(&parts)));
    }
    Ok((
        holds,
        format!(
            "percent of synth-10/100/1000 by T_betw: {}",
            said.join("; ")
        ),
    ))
}

fn small_above(bench: &Bench) -> Judged {
    of_intervals(
        bench,
        |between| between >= THRESHOLD,
        |parts| parts.iter().all(|part| *part < SMALL),
    )
}

fn ordered_below(bench: &Bench) -> Judged {
    of_intervals(
        bench,
        |between| between < BELOW,
        |parts| parts[0] < parts[1] && parts[1] < parts[2],
    )
}

fn figure_10(bench: &Bench, group: usize) -> Result<Vec<f64>, Failure> {
    let points = BUFFERED.into_iter();
    points
        .map(|buffered| of_figure_10(bench, GROUPS[group], buffered))
        .collect()
}

fn ten_is_flat(bench: &Bench) -> Judged {
    let parts = figure_10(bench, 0)?;
    let most = parts.iter().copied().fold(0.0, f64::max);
    Ok((
        most < 0.05,
        format!("percent of synth-10 by cost: {}", percent(&parts)),
    ))
}

/// The cost of the buffered path from which on synth-N buffers three times as much as with the
/// paper's, between points by a line.
fn knee(bench: &Bench, group: usize) -> Number {
    let parts = figure_10(bench, group)?;
    let limit = 3.0 * parts[0];
    let beyond = parts.iter().position(|part| *part > limit);
    let Some(at) = beyond.filter(|at| *at > 0) else {
        return Ok(f64::from(u32::MAX));
    };
    let (low, high) = (BUFFERED[at - 1] as f64, BUFFERED[at] as f64);
    let way = (limit - parts[at - 1]) / (parts[at] - parts[at - 1]);
    Ok(low + way * (high - low))
}

fn large_beyond(bench: &Bench) -> Judged {
    let (hundred, thousand) = (figure_10(bench, 1)?, figure_10(bench, 2)?);
    let last = BUFFERED.len() - 1;
    Ok((
        hundred[0] < SMALL && thousand[0] < SMALL && thousand[last] > 0.2 && hundred[last] > 0.1,
        format!(
            "percent of synth-100 by cost: {}; of synth-1000: {}",
            percent(&hundred),
            percent(&thousand)
        ),
    ))
}
