//! What was measured of one-sided operations: kept as JSON, shown as tables that are made of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Figure, Operation, REFERENCE, Values};
use crate::figure::size_name;
use crate::kept::Kept;
use crate::record::Circumstances;
use crate::statistics::median;

/// One peer, figure by figure, round by round.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    label: String,
    figures: Vec<(Figure, Vec<f64>)>,
}

/// All of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    circumstances: Circumstances,
    peers: Vec<Row>,
    /// By the peer and its processes.
    failures: BTreeMap<String, String>,
}

impl Report {
    pub(super) fn new(
        circumstances: Circumstances,
        labels: Vec<(String, String)>,
        mut values: Values,
        failures: BTreeMap<String, String>,
    ) -> Self {
        let mut peers = Vec::new();
        for (name, label) in labels {
            let keys: Vec<_> = values
                .keys()
                .filter(|(of, _)| *of == name)
                .cloned()
                .collect();
            let figures = keys.into_iter().filter_map(|key| {
                let found = values.remove(&key)?;
                Some((key.1, found))
            });
            let figures: Vec<_> = figures.collect();
            peers.push(Row {
                name,
                label,
                figures,
            });
        }
        Self {
            circumstances,
            peers,
            failures,
        }
    }

    /// Who, or what, is not in the tables, and why.
    fn missing(&self, text: &mut String) {
        let reasons = self.circumstances.unavailable.iter().chain(&self.failures);
        let reasons: Vec<_> = reasons.collect();
        if !reasons.is_empty() {
            text.push_str("\nWhat is not there, and why:\n\n");
        }
        for (what, reason) in reasons {
            let _ = writeln!(text, "* {what}: {}", reason.replace('\n', " "));
        }
    }

    fn cell(&self, row: &Row, figure: Figure) -> String {
        let Some(values) = row.values(figure) else {
            return "–".to_owned();
        };
        let shown = show(median(values));
        let reference = self.peers.iter().find(|row| row.name == REFERENCE);
        let ours = reference.and_then(|row| row.values(figure));
        match ours {
            Some(ours) if row.name != REFERENCE => {
                let ratios: Vec<f64> = values
                    .iter()
                    .zip(ours)
                    .map(|(value, ours)| value / ours)
                    .collect();
                format!("{shown} (×{:.2})", median(&ratios))
            }
            _ => shown,
        }
    }
}

impl Kept for Report {
    const NAME: &'static str = "one-sided";

    fn markdown(&self) -> String {
        let at = &self.circumstances;
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: the median of {}, in which all take turns. In brackets, the multiple of the \
             first row, measured in the same round. Nanoseconds for an operation.",
            at.measured(),
            at.rounds(),
        );
        let mut figures: Vec<Figure> = Vec::new();
        for row in &self.peers {
            figures.extend(row.figures.iter().map(|(figure, _)| *figure));
        }
        figures.sort_unstable();
        figures.dedup();
        for (operation, title) in [
            (Operation::Read, "A read that is waited for"),
            (Operation::Write, "A write that is waited for"),
            (
                Operation::Stream,
                "One of a stream of writes (puts, or stores)",
            ),
            (
                Operation::Add,
                "An addition to one word, of all processes together",
            ),
            (
                Operation::Updates,
                "A random update of a table over all processes, of all together",
            ),
            (
                Operation::Em3d,
                "An edge of em3d, of all processes together",
            ),
            (
                Operation::Sort,
                "A key of a sort over all processes, of all together",
            ),
        ] {
            let columns: Vec<_> = figures
                .iter()
                .filter(|figure| {
                    figure.operation == operation
                        && (operation.is_of_all() || figure.processes == 2)
                })
                .copied()
                .collect();
            if columns.is_empty() {
                continue;
            }
            let _ = write!(text, "\n| {title} |");
            for figure in &columns {
                let _ = match operation {
                    Operation::Updates => {
                        let size = size_name(figure.size_bytes);
                        write!(text, " {size}, {} processes |", figure.processes)
                    }
                    _ if operation.is_of_all() => {
                        write!(text, " {} processes |", figure.processes)
                    }
                    _ => write!(text, " {} |", size_name(figure.size_bytes)),
                };
            }
            text.push_str("\n|---|");
            text.push_str(&"---:|".repeat(columns.len()));
            text.push('\n');
            for row in &self.peers {
                if columns.iter().all(|figure| row.values(*figure).is_none()) {
                    continue;
                }
                let _ = write!(text, "| {} |", row.label);
                for figure in &columns {
                    let _ = write!(text, " {} |", self.cell(row, *figure));
                }
                text.push('\n');
            }
        }
        self.missing(&mut text);
        text
    }
}

impl Row {
    fn values(&self, figure: Figure) -> Option<&[f64]> {
        let found = self.figures.iter().find(|(other, _)| *other == figure);
        found
            .map(|(_, values)| &values[..])
            .filter(|values| !values.is_empty())
    }
}

fn show(ns: f64) -> String {
    match ns {
        ns if ns < 100.0 => format!("{ns:.1}"),
        ns => format!("{ns:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let figure = Figure {
            operation: Operation::Add,
            size_bytes: 8,
            processes: 4,
        };
        let mut values = Values::new();
        values.insert((REFERENCE.to_owned(), figure), vec![10.0, 20.0, 30.0]);
        values.insert(("other".to_owned(), figure), vec![20.0, 100.0, 90.0]);
        let labels = [(REFERENCE, "Ours"), ("other", "Other")];
        let labels = labels.map(|(name, label)| (name.to_owned(), label.to_owned()));
        let failures = [("Broken with 8 processes".to_owned(), "it broke".to_owned())];
        Report::new(
            Circumstances::default(),
            labels.into(),
            values,
            failures.into(),
        )
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let text = report().markdown();
        assert!(text.contains("| Ours | 20.0 |"), "{text}");
        // 2, 5 and 3 times as long.
        assert!(text.contains("| Other | 90.0 (×3.00) |"), "{text}");
        assert!(
            text.contains("* Broken with 8 processes: it broke"),
            "{text}"
        );
    }

    #[test]
    fn what_is_kept_says_the_same_when_it_is_read() {
        let report = report();
        let kept = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&kept).unwrap();
        assert_eq!(read.markdown(), report.markdown());
    }
}
