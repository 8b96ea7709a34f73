//! What the machines' files say is in force, nothing of it is idle, and the document says what
//! comes out.

use std::sync::LazyLock;

use super::table::Measure;
use super::*;
use crate::reproduce::Verdict;
use crate::reproduce::report::{Entry, FigureVerdict};

static EVALUATION: LazyLock<Evaluation> =
    LazyLock::new(|| Evaluation::of(&machines(), &Runs::of_file(), false).unwrap());
static REPORT: LazyLock<Report> =
    LazyLock::new(|| EVALUATION.report(&machines(), &Runs::of_file()).unwrap());

/// Figures of Table 2: two for each program and machine.
const OF_PROGRAMS: usize = 48;

#[test]
fn the_table_is_whole_and_predicts_more_than_it_was_calibrated_by() {
    let headline = &REPORT.headline;
    assert_eq!(headline.defects, Vec::<String>::new());
    let figures = REPORT.entries.iter().flat_map(|entry| &entry.figures);
    assert_eq!(figures.count(), 150 + PEAKS.len() + OF_PROGRAMS);
    let predicted = headline.predicted_hit + headline.predicted_missed;
    assert!(predicted > headline.calibrated_figures, "{headline:?}");
    let median = headline.median_deviation_predicted.unwrap();
    assert!(median <= 15.0, "{median}");
}

#[test]
fn what_was_calibrated_comes_out() {
    for entry in &REPORT.entries {
        for figure in &entry.figures {
            let is_choice = figure.verdict == FigureVerdict::Calibrated;
            assert!(!is_choice || figure.is_within, "{}: {figure:?}", entry.id);
        }
    }
}

/// What does not follow from our numbers, as the document says. Each belongs to the rows of the
/// text or of the arithmetic.
const BROKEN: [&str; 6] = ["G-218", "G-296", "G-301", "G-310", "G-311", "G-312"];

/// Claims of the rows from `first` to `last` hold, but for those that are known not to.
fn hold(first: &str, last: &str) {
    let claims = REPORT
        .entries
        .iter()
        .filter(|entry| entry.figures.is_empty());
    let mut count = 0;
    for claim in claims.filter(|claim| (first..=last).contains(&&*claim.id)) {
        count += 1;
        let (id, remark) = (&claim.id, &claim.remark);
        let holds = claim.verdict == Verdict::Supported;
        assert_eq!(holds, !BROKEN.contains(&&**id), "{id}: {remark}");
    }
    let listed = claims::all().filter(|(id, _)| (first..=last).contains(id));
    assert_eq!(count, listed.count());
    assert!(count > 0);
}

#[test]
fn what_the_text_concludes_of_round_trips_follows_from_our_numbers() {
    hold("G-182", "G-190");
}

#[test]
fn what_the_text_concludes_of_reads_and_writes_follows_from_our_numbers() {
    hold("G-191", "G-195");
}

#[test]
fn what_the_text_concludes_of_overheads_follows_from_our_numbers() {
    hold("G-196", "G-205");
}

#[test]
fn what_the_text_concludes_of_gaps_follows_from_our_numbers() {
    hold("G-206", "G-215");
}

#[test]
fn what_the_text_concludes_of_exchange_follows_from_our_numbers() {
    hold("G-216", "G-227");
}

#[test]
fn what_the_text_concludes_of_bandwidths_follows_from_our_numbers() {
    hold("G-228", "G-238");
}

#[test]
fn what_the_text_concludes_of_polling_follows_from_our_numbers() {
    for id in ["G-244", "G-245", "G-246", "G-247", "G-329"] {
        let entry = REPORT.entry(id).unwrap();
        assert_eq!(entry.verdict, Verdict::Supported, "{id}: {}", entry.remark);
    }
}

/// What the text concludes of programs follows from our numbers, but for what
/// `docs/reproduce-splitc.md` says of these.
#[test]
fn what_the_text_concludes_of_programs_is_judged() {
    let verdicts = |wanted: Verdict| -> Vec<&str> {
        let listed = program_claims::CLAIMS.iter().map(|(id, _)| *id);
        listed
            .filter(|id| REPORT.entry(id).unwrap().verdict == wanted)
            .collect()
    };
    let contradicted = [
        "G-262", "G-263", "G-268", "G-270", "G-275", "G-276", "G-319",
    ];
    assert_eq!(verdicts(Verdict::Contradicted), contradicted);
    let supported = verdicts(Verdict::Supported).len();
    assert_eq!(supported + contradicted.len(), program_claims::CLAIMS.len());
}

/// Each program that computes what another one does, or how long an element of it takes, is in the
/// file; and each time is in force.
#[test]
fn every_time_of_an_element_has_a_part() {
    let (machines, mut runs) = (machines(), Runs::of_file());
    // A quarter of the elements shows as well what one of them takes.
    for number in runs.numbers() {
        if number.path.ends_with(".elements") {
            runs = runs.with(&number.path, |value| value / 4.0).unwrap();
        }
    }
    let cells: Vec<_> = programs::MACHINES
        .iter()
        .flat_map(|(machine, ..)| programs::names().map(move |program| (program, *machine)))
        .collect();
    let mut elements = 0;
    for number in runs.numbers() {
        if !number.path.ends_with(".element") {
            continue;
        }
        elements += 1;
        let changed = runs.with(&number.path, |value| value * 1.5).unwrap();
        let (program, machine) = cells
            .iter()
            .find(|(program, machine)| number.source.contains(&format!("{program}.{machine}.")))
            .unwrap_or_else(|| panic!("{}: {}", number.path, number.source));
        let seconds = |runs: &Runs| runs.seconds(&machines, program, machine, 0).unwrap();
        let (before, after) = (seconds(&runs), seconds(&changed));
        assert!(after > 1.1 * before, "{}: {before} {after}", number.path);
    }
    assert_eq!(elements, 18);
}

#[test]
fn polls_and_turns_of_the_file_have_a_part() {
    let (machines, runs) = (machines(), Runs::of_file());
    let of = |runs: &Runs| Granularities::of_grains(&machines, runs, &[500]).unwrap();
    let before = of(&runs);
    for path in ["polling.turn", "polling.poll"] {
        let changed = runs.with(path, |value| value * 2.0).unwrap();
        assert_ne!(of(&changed), before, "{path}");
    }
}

/// A quick report has what the whole one says of the same rows, and no row of what was left out.
#[test]
fn a_quick_report_is_a_part_of_the_whole_one() {
    let quick = Evaluation {
        table: EVALUATION.table.clone(),
        bulk: EVALUATION.bulk.clone(),
        polling: EVALUATION.polling.clone(),
        programs: EVALUATION.programs.quick(),
        is_quick: true,
    };
    let quick = quick.report(&machines(), &Runs::of_file()).unwrap();
    for entry in &quick.entries {
        assert_eq!(Some(entry), REPORT.entry(&entry.id));
    }
    assert_eq!(quick.headline.defects, Vec::<String>::new());
    let of_program = |entry: &&Entry| entry.id.starts_with("G-TAB2.");
    assert_eq!(quick.entries.iter().filter(of_program).count(), 2 * 2 * 5);
    let left_out = OF_PROGRAMS - 2 * 2 * 5 + program_claims::CLAIMS.len();
    assert_eq!(quick.entries.len() + left_out, REPORT.entries.len());
    for (quick, whole) in quick.bars.iter().zip(&REPORT.bars) {
        assert_eq!((quick.groups.len(), whole.groups.len()), (5, 12));
        assert!(
            quick
                .groups
                .iter()
                .all(|group| whole.groups.contains(group))
        );
    }
}

/// A program whose result is wrong is an error, and is not timed.
#[test]
fn a_wrong_result_is_found() {
    let size = programs::Size {
        elements: 8,
        passes: 0,
    };
    let blocks = vec![vec![0; 8], vec![1; 8]];
    for is_right in programs::checks() {
        assert!(!is_right(&size, &blocks));
    }
}

#[test]
fn what_the_cells_have_in_common_is_found_in_our_numbers() {
    hold("G-293", "G-314");
}

#[test]
fn every_number_of_every_machine_has_a_part() {
    let all = machines();
    for name in MACHINES {
        let versions = || (0..VERSIONS.len()).filter(|&at| VERSIONS[at].machine == name);
        let bulk = |machines: &Machines| -> Vec<Bandwidths> {
            versions()
                .map(|at| Bandwidths::of_version(machines, at).unwrap())
                .collect()
        };
        let before = bulk(&all);
        for number in all[name].numbers() {
            let machine = all[name].with(&number.path, |value| value * 2.0 + 1.0);
            let mut changed = all.clone();
            changed.insert(name, machine.unwrap());
            let measured = |machines: &Machines, cell: Cell| {
                let cells = std::iter::once(cell);
                Measured::of_cells(machines, cells).unwrap().of(cell)
            };
            // The cell that it was calibrated on; single operations, in which most numbers show;
            // and then all.
            let is_sign = |letter: char| matches!(letter, ' ' | ',' | ':');
            let named = number.source.split(is_sign).filter_map(Cell::named);
            let single = |cell: &Cell| matches!(cell.measure, Measure::Latency | Measure::Overhead);
            let of_machine = |cell: &Cell| VERSIONS[cell.version].machine == name;
            let mut cells = named
                .chain(Cell::all().filter(single))
                .chain(Cell::all())
                .filter(of_machine);
            // What long transfers take shows in nothing else.
            let is_of_bulk = number.path.contains("data_fetched") || number.path.ends_with(".each");
            let shows = match is_of_bulk {
                true => bulk(&changed) != before,
                false => cells.any(|cell| measured(&changed, cell) != EVALUATION.table.of(cell)),
            };
            assert!(shows, "{name}: {}", number.path);
        }
    }
}

/// `docs/reproduce-splitc.md` lists all figures.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../../docs/reproduce-splitc.md");
    for line in lines(&REPORT) {
        assert!(document.contains(&line), "missing: {line}");
    }
}

/// The lines of the document's tables: the rows of Tables 1 and 2, the paper's number and ours in
/// each column; the claims.
fn lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let rows: Vec<&str> = report
        .entries
        .iter()
        .filter_map(|entry| entry.id.strip_prefix("G-TAB1.")?.strip_suffix(".CM5"))
        .collect();
    for row in rows {
        let mut line = format!("| {row} |");
        for version in &VERSIONS {
            let entry = report
                .entry(&format!("G-TAB1.{row}.{}", version.name))
                .unwrap();
            let figure = &entry.figures[0];
            let mark = match figure.verdict {
                FigureVerdict::Calibrated => " =",
                FigureVerdict::PredictedMissed => " !",
                _ => "",
            };
            line += &format!(" {} {:.2}{mark} |", figure.paper, figure.ours);
        }
        lines.push(line);
    }
    for program in programs::names() {
        let mut line = format!("| {program} |");
        for (machine, ..) in programs::MACHINES {
            for strategy in ["Proc", "NP"] {
                let id = format!("G-TAB2.{program}.{machine}.{strategy}");
                let figure = &report.entry(&id).unwrap().figures[0];
                let (digits, mark) = match figure.verdict {
                    FigureVerdict::Calibrated => (1, " ="),
                    FigureVerdict::PredictedMissed => (3, " !"),
                    _ => (3, ""),
                };
                let digits = if strategy == "Proc" { 1 } else { digits };
                line += &format!(" {} {:.digits$}{mark} |", figure.paper, figure.ours);
            }
        }
        lines.push(line);
    }
    for claim in report
        .entries
        .iter()
        .filter(|entry| entry.figures.is_empty())
    {
        lines.push(format!(
            "| {} | {} | {} |",
            claim.id, claim.says, claim.remark
        ));
    }
    lines
}
