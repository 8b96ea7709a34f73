//! What the machines' files say is in force, nothing of it is idle, and the document says what comes out.

use std::sync::LazyLock;

use super::*;
use crate::reproduce::report::FigureVerdict;

static REPORT: LazyLock<Report> = LazyLock::new(|| report().unwrap());

#[test]
fn the_table_is_whole_and_predicts_more_than_it_was_calibrated_by() {
    let headline = &REPORT.headline;
    assert_eq!(headline.defects, Vec::<String>::new());
    let figures = REPORT.entries.iter().flat_map(|entry| &entry.figures);
    assert_eq!(figures.count(), 150);
    let predicted = headline.predicted_hit + headline.predicted_missed;
    assert_eq!(predicted + headline.calibrated_figures, 150);
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

#[test]
fn what_the_text_concludes_follows_from_our_numbers() {
    let claims = REPORT
        .entries
        .iter()
        .filter(|entry| entry.figures.is_empty());
    let mut count = 0;
    for claim in claims {
        count += 1;
        let verdict = claim.verdict;
        let (id, remark) = (&claim.id, &claim.remark);
        assert_eq!(
            verdict,
            crate::reproduce::Verdict::Supported,
            "{id}: {remark}"
        );
    }
    assert_eq!(count, claims::CLAIMS.len());
}

#[test]
fn every_number_of_every_machine_has_a_part() {
    for name in MACHINES {
        // Single operations first: most numbers show in them, and flows take their time.
        let cells = |is_asked: &dyn Fn(&Cell) -> bool| -> Vec<Cell> {
            let of_it = |cell: &Cell| VERSIONS[cell.version].machine == name && is_asked(cell);
            Cell::all().filter(of_it).collect()
        };
        let is_single = |cell: &Cell| {
            matches!(
                cell.measure,
                table::Measure::Latency | table::Measure::Overhead
            )
        };
        let (single, flows) = (cells(&is_single), cells(&|cell| !is_single(cell)));
        let all = machines();
        let measured = |machines: &Machines, cells: &[Cell]| {
            Measured::of_cells(machines, cells.iter().copied()).unwrap()
        };
        let before = (measured(&all, &single), measured(&all, &flows));
        for number in all[name].numbers() {
            let mut changed = all.clone();
            let machine = all[name].with(&number.path, |value| value * 2.0 + 1.0);
            changed.insert(name, machine.unwrap());
            let shows = measured(&changed, &single) != before.0
                || flows.iter().any(|&cell| {
                    let now = measured(&changed, &[cell]);
                    now.of(cell) != before.1.of(cell)
                });
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

/// The lines of the document's tables: the rows of Table 1, the paper's number and ours in each column; the claims.
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

#[test]
fn zz_show() {
    for line in lines(&REPORT) { println!("LINE {line}"); }
    for entry in &REPORT.entries { for f in &entry.figures { if entry.id.contains("TAB1") { println!("CELLJ {} {} {} {:?}", entry.id, f.paper, f.ours, f.verdict);} else { println!("BULK {} {} {}", entry.id, f.paper, f.ours);} } }
    println!("HEAD {:?}", REPORT.headline);
    for p in &REPORT.plots { for c in &p.curves { println!("PLOT {} {} {:?}", p.name, c.label, c.points); } }
}
