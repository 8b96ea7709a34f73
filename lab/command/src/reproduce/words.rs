//! Values and verdicts as words.

use hamlyn_sim::reproduce::{Comparison, FigureVerdict, Verdict};

/// Widest remark of a line, in characters.
const REMARK_COLUMNS: u16 = 60;

/// All verdicts, with their names.
pub(super) const VERDICTS: [(Verdict, &str); 8] = [
    (Verdict::Reached, "reached"),
    (Verdict::NotReached, "not reached"),
    (Verdict::Supported, "supported"),
    (Verdict::Contradicted, "contradicted"),
    (Verdict::CarriedOut, "carried out"),
    (Verdict::ShownElsewhere, "shown elsewhere"),
    (Verdict::Cited, "cited, not measured"),
    (Verdict::NotMeasurable, "not measurable here"),
];

/// The name of a verdict.
pub(super) fn verdict(verdict: Verdict) -> &'static str {
    VERDICTS
        .iter()
        .find(|(one, _)| *one == verdict)
        .map_or("", |&(_, name)| name)
}

/// The origin of a figure, and what became of it.
pub(super) fn judgement(figure: &Comparison) -> &'static str {
    match (figure.verdict, figure.is_within) {
        (FigureVerdict::PredictedHit, _) => "predicted, hit",
        (FigureVerdict::PredictedMissed, _) => "predicted, MISSED",
        (FigureVerdict::Input, true) => "input",
        (FigureVerdict::Input, false) => "input, NOT IN FORCE",
        (FigureVerdict::Calibrated, true) => "calibrated",
        (FigureVerdict::Calibrated, false) => "calibrated, NOT REACHED",
        (FigureVerdict::Repeated, true) => "repeated",
        (FigureVerdict::Repeated, false) => "repeated, missed",
    }
}

/// A value with two digits after the point at most.
pub(super) fn amount(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// The same with its unit.
pub(super) fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", amount(value)).trim_end().to_owned()
}

/// Bounds the width of a column.
pub(super) fn set_width(table: &mut comfy_table::Table, column: usize) {
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    if let Some(column) = table.column_mut(column) {
        column.set_constraint(comfy_table::ColumnConstraint::UpperBoundary(
            comfy_table::Width::Fixed(REMARK_COLUMNS),
        ));
    }
}
