//! What the machines' files say is in force, nothing of it is idle, and the document says what
//! comes out.

use super::*;
use crate::machine::MachineError;
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
    for (name, text) in MACHINES {
        let machine = machine(name);
        let row = |of: &Machine, id: &str| ours(&report_of(of, |asked| asked == id).unwrap());
        // Single messages first: most numbers show in them, and programs of many take their time.
        let mut ids: Vec<String> = Paper::parse(text)
            .unwrap()
            .row
            .into_iter()
            .filter(|row| row.machine.as_deref() == Some(name))
            .map(|row| row.id)
            .collect();
        ids.sort_by_key(|id| OF_MANY.contains(&id.as_str()));

        let before: Vec<_> = ids.iter().map(|id| row(&machine, id)).collect();
        for number in machine.numbers() {
            let has_part = match machine.with(&number.path, |value| value * 2.0 + 1.0) {
                Ok(changed) => ids
                    .iter()
                    .zip(&before)
                    .any(|(id, before)| row(&changed, id) != *before),
                // A network that cannot be built so.
                Err(error) => matches!(error, MachineError::Network(_)),
            };

            assert!(has_part, "{name}: {}", number.path);
        }
    }
}

/// Rows that many messages are sent for.
const OF_MANY: [&str; 4] = ["T-193", "T-194", "T-199", "T-253"];

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
                says(&figure.document_row(&entry.id));
            }
        }
    }
}
