//! The rows of the paper, each with its measurement or its judgement.

use super::bench::{
    BETWEEN, BUFFERED, Bench, Column, GROUPS, Outcome, Program, SKEWS, Setting, Sharing, TRIALS,
    WORDS, in_cycles, slower_synth, synth,
};
use super::costs::Costs;
use crate::reproduce::measure::Failure;
use crate::reproduce::report::Experiment;
use crate::time::Span;

type Number = Result<f64, Failure>;
type Judged = Result<(bool, String), Failure>;

/// Above the sum of a handler and the buffered path all of synth-N buffers little (T-255).
const THRESHOLD: u64 = 522;
/// Below this, N decides.
const BELOW: u64 = 435;
/// A small part of the messages.
const SMALL: f64 = 0.02;
/// Extra cycles of a message that is buffered, on the machine as measured: 180 + 52 - 115.
const EXTRA: f64 = 117.0;

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
        "T-TAB6.cycles.Barrier" => Figures(&[|bench| barriers(bench, |alone| alone.elapsed)]),
        "T-TAB6.cycles.Enum" => Figures(&[|bench| puzzle(bench, |alone| alone.elapsed)]),
        "T-TAB6.messages" => Figures(&[
            |bench| barriers(bench, |alone| alone.messages as f64),
            |bench| puzzle(bench, |alone| alone.messages as f64),
        ]),
        "T-TAB6.T_betw" => Figures(&[
            |bench| barriers(bench, Outcome::between),
            |bench| puzzle(bench, Outcome::between),
        ]),
        "T-TAB6.T_hand" => Figures(&[
            |bench| barriers(bench, |alone| alone.handler),
            |bench| puzzle(bench, |alone| alone.handler),
        ]),
        "T-246" => Figures(&[
            |bench| barriers(bench, |alone| 100.0 * alone.handler / alone.between()),
            |bench| puzzle(bench, |alone| 100.0 * alone.handler / alone.between()),
        ]),
        "T-248" => Figures(&[
            |bench| dearer(bench, 0, Sharing::Alone),
            |bench| dearer(bench, 1, Sharing::Alone),
        ]),
        "T-249" => Figures(&[
            |bench| dearer(bench, 0, Sharing::AllBuffered),
            |bench| dearer(bench, 1, Sharing::AllBuffered),
        ]),
        "T-192" => Judged(small_and_gentle),
        "T-193" => Figures(&[|bench| by_skew(bench, 0)]),
        "T-194" => Figures(&[|bench| by_skew(bench, 1)]),
        "T-196" => Judged(few_pages),
        "T-199" => Figures(&[|bench| shared(bench, 0), |bench| shared(bench, 1)]),
        "T-200" => Judged(mostly_skew),
        "T-202" => Judged(only_buffering),
        "T-203" => Judged(least_and_most),
        "T-204" => Judged(soon_empty),
        "T-214" => Judged(small_above),
        "T-215" => Judged(ordered_below),
        "T-219" => Judged(ten_is_flat),
        "T-220" => Figures(&[|bench| knee(bench, 1), |bench| knee(bench, 2)]),
        "T-222" => Judged(large_beyond),
        "T-253" => Figures(&[
            |bench| bench.slowdown(bench.extent.programs()[0], 10),
            |bench| bench.slowdown(bench.extent.programs()[0], 100),
            |bench| bench.slowdown(bench.extent.programs()[0], 200),
            |bench| bench.slowdown(bench.extent.programs()[0], 500),
        ]),
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

fn alone(bench: &Bench, program: Program) -> Result<&Outcome, Failure> {
    bench.outcome(Setting::new(program, Sharing::Alone, TRIALS[0]))
}

fn barriers(bench: &Bench, number: fn(&Outcome) -> f64) -> Number {
    Ok(number(alone(bench, bench.extent.barriers())?))
}

fn puzzle(bench: &Bench, number: fn(&Outcome) -> f64) -> Number {
    Ok(number(alone(bench, bench.extent.puzzle())?))
}

/// By how much protection makes a program longer, in percent; or buffering of all its messages.
fn dearer(bench: &Bench, program: usize, sharing: Sharing) -> Number {
    let program = bench.extent.programs()[program];
    let cost = |column, sharing| {
        let setting = Setting::new(program, sharing, TRIALS[0]);
        let outcome = bench.outcome(Setting { column, ..setting });
        outcome.map(|outcome| outcome.cost)
    };
    let (from, to) = match sharing {
        Sharing::AllBuffered => (
            cost(Column::Hard, Sharing::Alone)?,
            cost(Column::Hard, sharing)?,
        ),
        _ => (cost(Column::Kernel, sharing)?, cost(Column::Hard, sharing)?),
    };
    Ok(100.0 * (to / from - 1.0))
}

/// The part that is buffered with a skew of 20 %, by that with 10 %.
fn by_skew(bench: &Bench, program: usize) -> Number {
    let program = bench.extent.programs()[program];
    Ok(bench.buffered(program, 200)? / bench.buffered(program, 100)?)
}

/// Percent of the messages that are buffered, by skew.
fn parts(bench: &Bench, program: Program) -> Result<(Vec<f64>, String), Failure> {
    let mut parts = Vec::new();
    for skew in SKEWS {
        parts.push(bench.buffered(program, skew)?);
    }
    let said: Vec<String> = parts
        .iter()
        .map(|part| format!("{:.2}", part * 100.0))
        .collect();
    Ok((parts, said.join(", ")))
}

fn small_and_gentle(bench: &Bench) -> Judged {
    let [barrier, puzzle] = bench.extent.programs();
    let (of_barrier, said_of_barrier) = parts(bench, barrier)?;
    let (of_puzzle, said_of_puzzle) = parts(bench, puzzle)?;
    // A skew of 10 % makes a window of that part at either end.
    let is_small = of_barrier[3] <= SMALL && of_puzzle[3] <= 0.1;
    let rises = |parts: &[f64]| parts.windows(2).all(|two| two[1] >= 0.8 * two[0]);
    Ok((
        is_small && rises(&of_barrier) && rises(&of_puzzle),
        format!(
            "percent with skews of 0, 1, 5, 10, 20, 30, 50 %: barrier {said_of_barrier}; enum {said_of_puzzle}"
        ),
    ))
}

fn few_pages(bench: &Bench) -> Judged {
    let mut most = 0;
    for program in bench.extent.programs() {
        for skew in SKEWS {
            for &seed in bench.extent.trials() {
                let setting = Setting::new(program, Sharing::Skewed(skew), seed);
                most = most.max(bench.outcome(setting)?.pages_max);
            }
        }
    }
    Ok((
        most < 7,
        format!("{most} pages of a node at most, in any run of barrier and enum"),
    ))
}

/// Both jobs' slices, by the time of the program alone.
fn shared(bench: &Bench, program: usize) -> Number {
    let program = bench.extent.programs()[program];
    let in_step = bench.skewed(program, 0, |outcome| outcome.cost)?;
    let alone = |seed| Setting::new(program, Sharing::Alone, seed);
    let jobs = 2.0;
    Ok(jobs * in_step / bench.average(alone, |outcome| outcome.cost)?)
}

fn mostly_skew(bench: &Bench) -> Judged {
    let program = bench.extent.programs()[0];
    let slower = bench.slowdown(program, 200)? - 1.0;
    let in_step = bench.skewed(program, 0, |outcome| outcome.cost)?;
    let extra = bench.skewed(program, 200, |outcome| {
        EXTRA * outcome.buffered * outcome.messages as f64 / 8.0
    })?;
    let part = extra / in_step / slower;
    Ok((
        part < 0.1,
        format!(
            "barrier, skew 20 %: {:.0} % longer, of which buffering is {:.1} %",
            slower * 100.0,
            part * 100.0
        ),
    ))
}

fn only_buffering(bench: &Bench) -> Judged {
    let program = bench.extent.programs()[1];
    let mut holds = true;
    let mut said = Vec::new();
    for skew in [100, 200, 300] {
        let (slower, part) = (
            bench.slowdown(program, skew)?,
            bench.buffered(program, skew)?,
        );
        let expected = 1.0 + 0.152 * part;
        holds &= (slower / expected - 1.0).abs() <= 0.03;
        said.push(format!("{} %: {slower:.3} and {expected:.3}", skew / 10));
    }
    Ok((
        holds,
        format!(
            "slowdown of enum, and what buffering would explain, with skews of {}",
            said.join("; ")
        ),
    ))
}

fn least_and_most(bench: &Bench) -> Judged {
    let [barrier, puzzle] = bench.extent.programs();
    let mut holds = true;
    let mut said = Vec::new();
    for skew in SKEWS.into_iter().filter(|&skew| skew >= 50) {
        let (of_puzzle, of_barrier) = (
            bench.slowdown(puzzle, skew)?,
            bench.slowdown(barrier, skew)?,
        );
        holds &= of_puzzle < of_barrier;
        said.push(format!(
            "{} %: {of_puzzle:.2} and {of_barrier:.2}",
            skew / 10
        ));
    }
    Ok((
        holds,
        format!(
            "enum and barrier, without the programs on CRL between them: {}",
            said.join("; ")
        ),
    ))
}

fn soon_empty(bench: &Bench) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    for (name, program) in ["barrier", "enum"].into_iter().zip(bench.extent.programs()) {
        // Slices of a node, at the average of the cost.
        let number = |outcome: &Outcome| outcome.episodes as f64 / 8.0 / (outcome.cost / 5e5);
        let episodes = bench.skewed(program, 200, number)?;
        holds &= episodes < 2.0;
        said.push(format!("{name} {episodes:.2}"));
    }
    Ok((
        holds,
        format!(
            "episodes of a node in each of its slices, skew 20 %: {}",
            said.join(", ")
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
