//! What the machines' files say is in force, nothing of it is idle, and the document says what comes out.

use super::*;
use crate::reproduce::report::FigureVerdict;

static REPORTS: LazyLock<Vec<Report>> = LazyLock::new(|| reports().unwrap());

fn ours(of: &Report) -> Vec<f64> {
    let figures = of.entries.iter().flat_map(|entry| &entry.figures);
    figures.map(|figure| figure.ours).collect()
}

#[test]
fn what_was_given_or_calibrated_comes_out() {
    for report in REPORTS.iter() {
        for entry in &report.entries {
            for figure in &entry.figures {
                let is_choice = matches!(
                    figure.verdict,
                    FigureVerdict::Input | FigureVerdict::Calibrated
                );
                assert!(!is_choice || figure.is_within, "{}: {figure:?}", entry.id);
            }
        }
        assert_eq!(
            report.headline.defects,
            Vec::<String>::new(),
            "{}",
            report.machine
        );
    }
}

#[test]
fn every_number_of_every_machine_has_a_part() {
    for (name, _) in MACHINES {
        let machine = machine(name);
        let before = ours(&report(&machine).unwrap());
        for number in machine.numbers() {
            let changed = machine
                .with(&number.path, |value| value * 2.0 + 1.0)
                .unwrap();
            let after = ours(&report(&changed).unwrap());
            assert_ne!(after, before, "{name}: {}", number.path);
        }
    }
}

/// `docs/reproduce-first-look.md` lists all figures.
#[test]
fn the_document_says_what_is() {
    let document = include_str!("../../../../../docs/reproduce-first-look.md");
    let says = |line: &str| assert!(document.contains(line), "missing: {line}");
    for report in REPORTS.iter() {
        let headline = &report.headline;
        says(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            report.machine,
            headline.calibrated,
            headline.independent,
            headline.inputs,
            headline.predicted_hit,
            headline.predicted_missed,
        ));
        for entry in &report.entries {
            for figure in &entry.figures {
                let verdict = match figure.verdict {
                    FigureVerdict::Input => "input",
                    FigureVerdict::Calibrated => "calibrated",
                    FigureVerdict::PredictedHit => "hit",
                    FigureVerdict::PredictedMissed => "missed",
                    FigureVerdict::Repeated => "repeated",
                };
                says(&format!(
                    "| {} | {} | {} {} | {:.2} | {verdict} |\n",
                    entry.id, figure.what, figure.paper, figure.unit, figure.ours
                ));
            }
        }
    }
}
