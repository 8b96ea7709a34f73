//! A report in 80 columns.

use comfy_table::{ContentArrangement, Table};
use hamlyn_sim::reproduce::{Report, Verdict};

use super::words::{amount, judgement, verdict, with_unit};
use hamlyn_cli::terminal::table;

/// Columns of all that is printed.
const COLUMNS: u16 = 80;

/// A table of 80 columns.
pub(super) fn narrow(header: &[&str]) -> Table {
    let mut shown = table(header);
    shown
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(COLUMNS);
    shown
}

/// Every number beside the paper's.
pub(super) fn show_numbers(report: &Report) {
    let mut shown = narrow(&["id", "what", "paper", "ours", "off", "verdict"]);
    for entry in &report.entries {
        for figure in &entry.figures {
            shown.add_row([
                entry.id.clone(),
                format!("{}: {}", entry.says, figure.what),
                with_unit(figure.paper, &figure.unit),
                amount(figure.ours),
                format!("{:+.1} %", figure.deviation_percent),
                judgement(figure).to_owned(),
            ]);
        }
    }
    println!("{shown}\n");
}

/// Claims, and remarks on numbers.
pub(super) fn show_claims(report: &Report) {
    let mut shown = narrow(&["id", "the paper", "verdict", "measured, or a remark"]);
    for entry in &report.entries {
        if entry.figures.is_empty() || !entry.remark.is_empty() {
            shown.add_row([
                &entry.id,
                &entry.says,
                verdict(entry.verdict),
                &entry.remark,
            ]);
        }
    }
    println!("{shown}\n");
}

/// The sum of it all.
pub(super) fn show_summary(report: &Report) {
    let headline = &report.headline;
    println!(
        "Predictions: {} hit, {} missed; half deviate by {:.1} % or less.",
        headline.predicted_hit,
        headline.predicted_missed,
        headline.median_deviation_predicted.unwrap_or_default(),
    );
    println!(
        "Claims: {} supported, {} contradicted.",
        report.count(Verdict::Supported),
        report.count(Verdict::Contradicted),
    );
    println!(
        "Numbers of the machine: {} given by the paper, {} calibrated on {} rows,\n{} assumed. Figures that were given or follow from those: {} and {}.",
        headline.given,
        headline.calibrated,
        headline.independent,
        headline.assumed,
        headline.inputs,
        headline.calibrated_figures,
    );
    for defect in &headline.defects {
        println!("DEFECT: {defect}.");
    }
}
