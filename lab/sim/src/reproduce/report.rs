//! The report: for every row of a paper what it says, what was measured here, and what the
//! agreement of the two is worth.
//!
//! One report serves all papers: rows are data ([`super::rows`]), experiments are functions of a
//! bench that has measured a machine. Its headline counts inputs, calibration and predictions
//! apart, and says so itself if there was more to choose than to choose by.

use std::collections::BTreeSet;

use super::measure::Failure;
use super::rows::{Figure, Kind, Origin, Paper, Reading, Row, Treatment};
use crate::machine::Machine;
use crate::machine::number::{Number, Provenance};

/// A figure is reached if it deviates by so much at most, in percent, or rounds to the digits that
/// the paper prints.
pub const WITHIN_PERCENT: f64 = 5.0;

/// Measures a number of a row.
pub type Measure<B> = fn(&B) -> Result<f64, Failure>;

/// How a row is measured on a bench.
pub enum Experiment<B: 'static> {
    /// By numbers: one for each of the row's figures.
    Figures(&'static [Measure<B>]),
    /// By one number, which the bench has under the row's identifier.
    Named(fn(&B, &str) -> Result<f64, Failure>),
    /// An experiment supports or contradicts it; it says with which figures.
    Judged(fn(&B) -> Result<(bool, String), Failure>),
}

// Derived ones would ask it of the bench.
impl<B> Clone for Experiment<B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Experiment<B> {}

/// What became of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureVerdict {
    /// The machine was given it.
    Input,
    /// A number of the machine was chosen by it.
    Calibrated,
    /// Predicted, and within the limit.
    PredictedHit,
    /// Predicted, and not within the limit.
    PredictedMissed,
    /// The same experiment as another row's; it is counted there.
    Repeated,
}

/// What became of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every number is reached.
    Reached,
    /// A number is not reached; the remark says why.
    NotReached,
    /// The claim is supported by measurement.
    Supported,
    /// The claim is contradicted by measurement.
    Contradicted,
    /// The experiment is carried out.
    CarriedOut,
    /// Shown elsewhere in this project.
    ShownElsewhere,
    /// Quoted, and not measured.
    Cited,
    /// It cannot be measured here.
    NotMeasurable,
}

/// A number beside ours.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Comparison {
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// The paper's.
    pub paper: f64,
    /// Ours.
    pub ours: f64,
    /// By how much ours deviates, in percent of the paper's.
    pub deviation_percent: f64,
    /// Whether that is little enough.
    pub is_within: bool,
    /// Where ours comes from.
    pub origin: Origin,
    /// What that is worth.
    pub verdict: FigureVerdict,
}

#[cfg(test)]
impl Comparison {
    /// The line of a document's table that has it, for a row of that identifier.
    pub(super) fn document_row(&self, id: &str) -> String {
        let verdict = match self.verdict {
            FigureVerdict::Input => "input",
            FigureVerdict::Calibrated => "calibrated",
            FigureVerdict::PredictedHit => "hit",
            FigureVerdict::PredictedMissed => "missed",
            FigureVerdict::Repeated => "repeated",
        };
        format!(
            "| {id} | {} | {} {} | {:.2} | {verdict} |\n",
            self.what, self.paper, self.unit, self.ours
        )
    }
}

/// An entry of the report.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Entry {
    /// The row's identifier.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// Where in the paper it stands.
    pub source: String,
    /// What the paper says.
    pub says: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Its numbers.
    pub figures: Vec<Comparison>,
    /// What must be said of it.
    pub remark: String,
}

/// A row of a table that the paper prints, in its unit.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct TableRow {
    /// What it is.
    pub component: &'static str,
    /// The paper's: raw, tagged.
    pub paper_us: (f64, f64),
    /// Ours: raw, tagged.
    pub ours_us: (f64, f64),
}

/// A curve: points of what is varied and what is measured.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Curve {
    /// What it is for.
    pub label: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A value that the paper prints, for drawing beside ours.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Anchor {
    /// The row that prints it.
    pub id: &'static str,
    /// Where: what is varied, and what is measured.
    pub point: (f64, f64),
}

/// A plot.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Plot {
    /// Its name, fit for a file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What its points' first numbers are.
    pub across: &'static str,
    /// What its points' second numbers are.
    pub unit: &'static str,
    /// Its curves.
    pub curves: Vec<Curve>,
    /// The paper's printed values.
    pub anchors: Vec<Anchor>,
}

/// Groups of bars: in each, one bar of every series.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct BarChart {
    /// Its name, fit for a file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// What heights are.
    pub unit: &'static str,
    /// What the bars of a group are, from left to right.
    pub series: Vec<&'static str>,
    /// What each group is, and its heights.
    pub groups: Vec<(&'static str, Vec<f64>)>,
}

/// What the report comes to, its parts counted apart.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct Headline {
    /// Numbers of the paper that the machine was given, or that follow from those by arithmetic.
    pub inputs: usize,
    /// Numbers of the machine that were chosen so that numbers of the paper come out.
    pub calibrated: usize,
    /// Rows of the paper that they were chosen by.
    pub independent: usize,
    /// Predictions within the limit.
    pub predicted_hit: usize,
    /// Predictions beyond it.
    pub predicted_missed: usize,
    /// Numbers of the paper that numbers of the machine were chosen by, or that are sums of such.
    pub calibrated_figures: usize,
    /// Numbers whose experiment is another row's.
    pub repeated: usize,
    /// Numbers of the machine that the paper gives.
    pub given: usize,
    /// Numbers of the machine that the paper says nothing of.
    pub assumed: usize,
    /// By how much predictions deviate, in percent of the paper's number: half of them by less.
    /// Nothing without predictions.
    pub median_deviation_predicted: Option<f64>,
    /// What is wrong with that.
    pub defects: Vec<String>,
}

/// All of it.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Report {
    /// What it comes to.
    pub headline: Headline,
    /// Deviations up to this count as reached, in percent.
    pub within_percent: f64,
    /// The machine's title.
    pub machine: String,
    /// The machine's numbers, and where each is from.
    pub parameters: Vec<Number>,
    /// Where the paper contradicts itself, and what is followed.
    pub readings: Vec<Reading>,
    /// Table 4.
    pub table4: Vec<TableRow>,
    /// The rows of the paper, and after them the derived checks.
    pub entries: Vec<Entry>,
    /// The paper's figures.
    pub plots: Vec<Plot>,
    /// Those of them that have bars.
    pub bars: Vec<BarChart>,
}

impl Report {
    /// Measures each row of a paper on a bench of that machine. `experiments` says how a row is
    /// measured.
    pub fn new<B: 'static>(
        paper: &Paper,
        machine: &Machine,
        bench: &B,
        experiments: impl Fn(&str) -> Option<Experiment<B>>,
    ) -> Result<Self, Failure> {
        let title = machine.title().to_owned();
        Self::on(paper, title, machine.numbers(), bench, experiments)
    }

    /// The same of a bench with several machines, whose numbers are `parameters`.
    pub fn on<B: 'static>(
        paper: &Paper,
        machine: String,
        parameters: Vec<Number>,
        bench: &B,
        experiments: impl Fn(&str) -> Option<Experiment<B>>,
    ) -> Result<Self, Failure> {
        let mut entries = Vec::new();
        for row in &paper.row {
            entries.push(enter(row, bench, experiments(&row.id))?);
        }
        Ok(Self {
            headline: headline(&entries, &parameters),
            within_percent: WITHIN_PERCENT,
            machine,
            parameters,
            readings: paper.reading.clone(),
            table4: Vec::new(),
            entries,
            plots: Vec::new(),
            bars: Vec::new(),
        })
    }

    /// How many entries have that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.verdict == verdict)
            .count()
    }

    /// The entry of that identifier.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

/// Identifiers in a text: what looks like `H-316`, or like `G-TAB1.gap.store.CM5` for a cell of a
/// table.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let words =
        text.split(|letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '.'));
    let words = words.map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        word.split_once('-').is_some_and(|(paper, rest)| {
            let number = rest.strip_prefix("TAB").map_or(rest, |cell| {
                cell.split_once('.').map_or("", |(table, _)| table)
            });
            !paper.is_empty()
                && paper.chars().all(|letter| letter.is_ascii_uppercase())
                && !number.is_empty()
                && number.chars().all(|digit| digit.is_ascii_digit())
        })
    })
}

pub(super) fn headline(entries: &[Entry], numbers: &[Number]) -> Headline {
    let figures = || entries.iter().flat_map(|entry| &entry.figures);
    let count = |verdict| figures().filter(|figure| figure.verdict == verdict).count();
    let of = |provenance| {
        numbers
            .iter()
            .filter(move |number| number.provenance == provenance)
    };
    let calibrated = of(Provenance::Calibrated).count();
    let rows: BTreeSet<&str> = of(Provenance::Calibrated)
        .flat_map(|number| identifiers(&number.source))
        .collect();
    let independent = rows.len();
    let mut defects = Vec::new();
    if calibrated > independent {
        defects.push(format!(
            "{calibrated} numbers of the machine were chosen by {independent} numbers of the paper: there was more to choose than to choose by"
        ));
    }
    // A row that a number was chosen by predicts nothing.
    for entry in entries.iter().filter(|entry| rows.contains(&*entry.id)) {
        if !entry.figures.is_empty() && entry.figures.iter().all(is_predicted) {
            let id = &entry.id;
            defects.push(format!("{id} is called predicted, and was calibrated on"));
        }
    }
    Headline {
        inputs: count(FigureVerdict::Input),
        calibrated,
        independent,
        predicted_hit: count(FigureVerdict::PredictedHit),
        predicted_missed: count(FigureVerdict::PredictedMissed),
        calibrated_figures: count(FigureVerdict::Calibrated),
        repeated: count(FigureVerdict::Repeated),
        given: of(Provenance::Given).count(),
        assumed: of(Provenance::Assumed).count(),
        median_deviation_predicted: median(figures().filter(|figure| is_predicted(figure))),
        defects,
    }
}

fn is_predicted(figure: &Comparison) -> bool {
    matches!(
        figure.verdict,
        FigureVerdict::PredictedHit | FigureVerdict::PredictedMissed
    )
}

fn median<'a>(figures: impl Iterator<Item = &'a Comparison>) -> Option<f64> {
    let mut deviations: Vec<f64> = figures
        .map(|figure| figure.deviation_percent.abs())
        .collect();
    deviations.sort_by(f64::total_cmp);
    let (lower, upper) = (deviations.len().checked_sub(1)? / 2, deviations.len() / 2);
    Some((deviations[lower] + deviations[upper]) / 2.0)
}

fn enter<B: 'static>(
    row: &Row,
    bench: &B,
    experiment: Option<Experiment<B>>,
) -> Result<Entry, Failure> {
    let mut figures = Vec::new();
    let mut remark = row.remark.clone();
    let verdict = match (row.treatment, experiment) {
        (Treatment::Measured, Some(Experiment::Figures(measures))) => {
            if measures.len() != row.figures.len() {
                return Err(Failure::Unmatched { id: row.id.clone() });
            }
            for (figure, measure) in row.figures.iter().zip(measures) {
                figures.push(compare(figure, measure(bench)?));
            }
            if figures.iter().all(|figure| figure.is_within) {
                Verdict::Reached
            } else {
                Verdict::NotReached
            }
        }
        (Treatment::Measured, Some(Experiment::Named(measure))) => {
            let [figure] = &row.figures[..] else {
                return Err(Failure::Unmatched { id: row.id.clone() });
            };
            let compared = compare(figure, measure(bench, &row.id)?);
            let is_within = compared.is_within;
            figures.push(compared);
            match is_within {
                true => Verdict::Reached,
                false => Verdict::NotReached,
            }
        }
        (Treatment::Measured, Some(Experiment::Judged(judge))) => {
            let holds;
            (holds, remark) = judge(bench)?;
            if holds {
                Verdict::Supported
            } else {
                Verdict::Contradicted
            }
        }
        (Treatment::Measured, None) => return Err(Failure::Unmatched { id: row.id.clone() }),
        (Treatment::Elsewhere, _) => Verdict::ShownElsewhere,
        (Treatment::Cited, _) => Verdict::Cited,
        (Treatment::NotMeasurable, _) => Verdict::NotMeasurable,
        (Treatment::CarriedOut, _) => Verdict::CarriedOut,
    };
    Ok(Entry {
        id: row.id.clone(),
        kind: row.kind,
        source: row.source.clone(),
        says: row.says.clone(),
        verdict,
        figures,
        remark,
    })
}

fn compare(figure: &Figure, ours: f64) -> Comparison {
    // So that what is printed does not depend on the last bit of a sum.
    let rounded = (ours * 1e6).round() / 1e6;
    let deviation = if figure.paper == 0.0 {
        rounded * 100.0
    } else {
        (rounded - figure.paper) / figure.paper * 100.0
    };
    let rounds_to_it = figure
        .printed_to
        .is_some_and(|digit| (rounded - figure.paper).abs() <= digit / 2.0);
    let limit = figure.within_percent.unwrap_or(WITHIN_PERCENT);
    let is_within = deviation.abs() <= limit || rounds_to_it;
    Comparison {
        what: figure.what.clone(),
        unit: figure.unit.clone(),
        paper: figure.paper,
        ours: rounded,
        deviation_percent: (deviation * 100.0).round() / 100.0,
        is_within,
        origin: figure.is,
        verdict: match (figure.is, &figure.same_as) {
            (Origin::Input, _) => FigureVerdict::Input,
            (Origin::Calibrated, _) => FigureVerdict::Calibrated,
            (Origin::Predicted, Some(_)) => FigureVerdict::Repeated,
            (Origin::Predicted, None) if is_within => FigureVerdict::PredictedHit,
            (Origin::Predicted, None) => FigureVerdict::PredictedMissed,
        },
    }
}
