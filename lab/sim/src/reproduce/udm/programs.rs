//! The rows of programs: Table 6, Figures 7 and 8.

use super::bench::{Bench, Column, Outcome, Program, SKEWS, Setting, Sharing, TRIALS};
use super::claims::{Judged, Number, SMALL};
use crate::reproduce::report::Experiment;

/// Extra cycles of a message that is buffered, on the machine as measured: 180 + 52 - 115.
const EXTRA: f64 = 117.0;
/// Cycles of a slice (T-178).
const SLICE: f64 = 5e5;
/// Nodes of the programs (T-178).
const NODES: f64 = 8.0;

// The programs at their places in `Extent::named`.
const BARRIER: usize = 0;
const ENUM: usize = 1;
const LU: usize = 2;
const WATER: usize = 3;
const BARNES: usize = 4;

/// The experiment by which a row is measured.
pub(super) fn of(id: &str) -> Option<Experiment<Bench>> {
    use Experiment::{Figures, Judged};
    Some(match id {
        "T-TAB6.cycles.Barrier" => Figures(&[|bench| table_6(bench, BARRIER, cycles)]),
        "T-TAB6.cycles.Enum" => Figures(&[|bench| table_6(bench, ENUM, cycles)]),
        "T-TAB6.cycles.LU" => Figures(&[|bench| table_6(bench, LU, cycles)]),
        "T-TAB6.cycles.Water" => Figures(&[|bench| table_6(bench, WATER, cycles)]),
        "T-TAB6.cycles.Barnes" => Figures(&[|bench| table_6(bench, BARNES, cycles)]),
        "T-TAB6.handler.Barnes" => Figures(&[|bench| table_6(bench, BARNES, handler)]),
        "T-TAB6.messages" => Figures(&[
            |bench| table_6(bench, BARRIER, messages),
            |bench| table_6(bench, ENUM, messages),
            |bench| table_6(bench, LU, messages),
            |bench| table_6(bench, WATER, messages),
            |bench| table_6(bench, BARNES, messages),
        ]),
        "T-TAB6.T_betw" => Figures(&[
            |bench| table_6(bench, BARRIER, Outcome::between),
            |bench| table_6(bench, ENUM, Outcome::between),
            |bench| table_6(bench, LU, Outcome::between),
            |bench| table_6(bench, WATER, Outcome::between),
            |bench| table_6(bench, BARNES, Outcome::between),
        ]),
        "T-TAB6.T_hand" => Figures(&[
            |bench| table_6(bench, BARRIER, handler),
            |bench| table_6(bench, ENUM, handler),
            |bench| table_6(bench, LU, handler),
            |bench| table_6(bench, WATER, handler),
        ]),
        "T-221" => Figures(&[
            |bench| table_6(bench, BARRIER, Outcome::between),
            |bench| table_6(bench, LU, Outcome::between),
        ]),
        "T-246" => Figures(&[
            |bench| table_6(bench, BARRIER, percent_in_handlers),
            |bench| table_6(bench, ENUM, percent_in_handlers),
            |bench| table_6(bench, LU, percent_in_handlers),
            |bench| table_6(bench, WATER, percent_in_handlers),
            |bench| table_6(bench, BARNES, percent_in_handlers),
        ]),
        "T-248" => Figures(&[
            |bench| dearer(bench, BARRIER, Sharing::Alone),
            |bench| dearer(bench, ENUM, Sharing::Alone),
            |bench| dearer(bench, LU, Sharing::Alone),
            |bench| dearer(bench, WATER, Sharing::Alone),
            |bench| dearer(bench, BARNES, Sharing::Alone),
        ]),
        "T-249" => Figures(&[
            |bench| dearer(bench, BARRIER, Sharing::AllBuffered),
            |bench| dearer(bench, ENUM, Sharing::AllBuffered),
            |bench| dearer(bench, LU, Sharing::AllBuffered),
            |bench| dearer(bench, WATER, Sharing::AllBuffered),
            |bench| dearer(bench, BARNES, Sharing::AllBuffered),
        ]),
        "T-252" => Figures(&[
            |bench| table_6(bench, BARRIER, slices),
            |bench| table_6(bench, ENUM, slices),
            |bench| table_6(bench, LU, slices),
            |bench| table_6(bench, WATER, slices),
            |bench| table_6(bench, BARNES, slices),
        ]),
        "T-254" => Judged(ordered),
        "T-192" => Judged(small_and_gentle),
        "T-193" => Figures(&[
            |bench| by_skew(bench, BARRIER),
            |bench| by_skew(bench, LU),
            |bench| by_skew(bench, WATER),
            |bench| by_skew(bench, BARNES),
        ]),
        "T-194" => Figures(&[|bench| by_skew(bench, ENUM)]),
        "T-196" => Judged(few_pages),
        "T-199" => Figures(&[
            |bench| shared(bench, BARRIER),
            |bench| shared(bench, ENUM),
            |bench| shared(bench, LU),
            |bench| shared(bench, WATER),
            |bench| shared(bench, BARNES),
        ]),
        "T-200" => Judged(mostly_skew),
        "T-202" => Judged(only_buffering),
        "T-203" => Judged(least_and_most),
        "T-204" => Judged(soon_empty),
        "T-253" => Figures(&[
            |bench| bench.slowdown(program(bench, BARRIER), 10),
            |bench| bench.slowdown(program(bench, BARRIER), 100),
            |bench| bench.slowdown(program(bench, BARRIER), 200),
            |bench| bench.slowdown(program(bench, BARRIER), 500),
        ]),
        _ => return None,
    })
}

/// A program of Figures 7 and 8.
fn program(bench: &Bench, place: usize) -> Program {
    bench.extent.named()[place].1
}

/// A program of Table 6, alone.
fn table_6(bench: &Bench, place: usize, number: fn(&Outcome) -> f64) -> Number {
    let program = match place {
        BARRIER => bench.extent.barriers(),
        ENUM => bench.extent.puzzle(),
        place => program(bench, place),
    };
    let setting = Setting::new(program, Sharing::Alone, TRIALS[0]);
    Ok(number(bench.outcome(setting)?))
}

fn cycles(alone: &Outcome) -> f64 {
    alone.elapsed
}

fn messages(alone: &Outcome) -> f64 {
    alone.messages as f64
}

fn handler(alone: &Outcome) -> f64 {
    alone.handler
}

fn percent_in_handlers(alone: &Outcome) -> f64 {
    100.0 * alone.handler / alone.between()
}

fn slices(alone: &Outcome) -> f64 {
    alone.elapsed / SLICE
}

/// By how much protection makes a program longer, in percent; or buffering of all its messages.
fn dearer(bench: &Bench, place: usize, sharing: Sharing) -> Number {
    let program = program(bench, place);
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

/// The orders of the five programs in Table 6.
fn ordered(bench: &Bench) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    type NumberOf = fn(&Outcome) -> f64;
    let orders: [(&str, NumberOf, [usize; 5]); 3] = [
        (
            "T_betw",
            Outcome::between,
            [BARRIER, ENUM, BARNES, WATER, LU],
        ),
        ("messages", messages, [LU, WATER, BARNES, BARRIER, ENUM]),
        ("T_hand", handler, [BARRIER, ENUM, BARNES, WATER, LU]),
    ];
    for (name, number, order) in orders {
        let mut numbers = Vec::new();
        for place in order {
            numbers.push(table_6(bench, place, number)?);
        }
        holds &= numbers.is_sorted();
        let of_programs = order.iter().zip(&numbers);
        let of_programs: Vec<String> = of_programs
            .map(|(place, number)| format!("{} {number:.0}", bench.extent.named()[*place].0))
            .collect();
        said.push(format!("{name}: {}", of_programs.join(", ")));
    }
    Ok((holds, said.join("; ")))
}

/// The part that is buffered with a skew of 20 %, by that with 10 %.
fn by_skew(bench: &Bench, place: usize) -> Number {
    let program = program(bench, place);
    Ok(bench.buffered(program, 200)? / bench.buffered(program, 100)?)
}

/// A skew of 10 % makes a window of that part at either end, in which enum sends on.
const ENUM_SMALL: f64 = 0.1;

fn small_and_gentle(bench: &Bench) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    for (place, (name, program)) in bench.extent.named().into_iter().enumerate() {
        let mut parts = Vec::new();
        for skew in SKEWS {
            parts.push(bench.buffered(program, skew)?);
        }
        let most = if place == ENUM { ENUM_SMALL } else { SMALL };
        holds &= parts[3] <= most && parts.windows(2).all(|two| two[1] >= 0.8 * two[0]);
        let percent: Vec<String> = parts
            .iter()
            .map(|part| format!("{:.2}", part * 100.0))
            .collect();
        said.push(format!("{name} {}", percent.join(", ")));
    }
    Ok((
        holds,
        format!(
            "percent with skews of 0, 1, 5, 10, 20, 30, 50 %: {}",
            said.join("; ")
        ),
    ))
}

fn few_pages(bench: &Bench) -> Judged {
    let mut most = 0;
    for (_, program) in bench.extent.named() {
        for skew in SKEWS {
            for &seed in bench.extent.trials() {
                let setting = Setting::new(program, Sharing::Skewed(skew), seed);
                most = most.max(bench.outcome(setting)?.pages_max);
            }
        }
    }
    Ok((
        most < 7,
        format!("{most} pages of a node at most, in any run of the five programs"),
    ))
}

/// Both jobs' slices, by the time of the program alone.
fn shared(bench: &Bench, place: usize) -> Number {
    let program = program(bench, place);
    let in_step = bench.skewed(program, 0, |outcome| outcome.cost)?;
    let alone = |seed| Setting::new(program, Sharing::Alone, seed);
    let jobs = 2.0;
    Ok(jobs * in_step / bench.average(alone, |outcome| outcome.cost)?)
}

fn mostly_skew(bench: &Bench) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    for place in [BARRIER, LU, WATER, BARNES] {
        let (name, program) = bench.extent.named()[place];
        let slower = bench.slowdown(program, 200)? - 1.0;
        let in_step = bench.skewed(program, 0, |outcome| outcome.cost)?;
        let extra = bench.skewed(program, 200, |outcome| {
            EXTRA * outcome.buffered * outcome.messages as f64 / NODES
        })?;
        let part = extra / in_step / slower;
        holds &= part < 0.1;
        let (slower, part) = (slower * 100.0, part * 100.0);
        said.push(format!(
            "{name} {slower:.1} % longer, of which buffering is {part:.1} %"
        ));
    }
    Ok((holds, format!("skew 20 %: {}", said.join("; "))))
}

fn only_buffering(bench: &Bench) -> Judged {
    let program = program(bench, ENUM);
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
    let mut holds = true;
    let mut said = Vec::new();
    for skew in SKEWS.into_iter().filter(|&skew| skew >= 50) {
        let slower = |place| bench.slowdown(program(bench, place), skew);
        let (least, most) = (slower(ENUM)?, slower(BARRIER)?);
        let between = [slower(WATER)?, slower(BARNES)?, slower(LU)?];
        holds &= between.iter().all(|one| least < *one && *one < most);
        let [water, barnes, lu] = between;
        said.push(format!(
            "{} %: {least:.3}, {water:.3}, {barnes:.3}, {lu:.3}, {most:.3}",
            skew / 10
        ));
    }
    Ok((
        holds,
        format!("enum, Water, Barnes, LU and barrier: {}", said.join("; ")),
    ))
}

fn soon_empty(bench: &Bench) -> Judged {
    let mut holds = true;
    let mut said = Vec::new();
    for (name, program) in bench.extent.named() {
        // Slices of a node, at the average of the cost.
        let number = |outcome: &Outcome| outcome.episodes as f64 / NODES / (outcome.cost / SLICE);
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
