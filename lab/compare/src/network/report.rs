//! What was measured between two hosts: kept as JSON, shown as a table that is made of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::hosts::MTU_BYTES;
use super::{ACTIVE_FIGURES, FIGURES, REFERENCE, Results};
use crate::catalogue::{AM, Peer};
use crate::figure::{Category, Figure, size_name};
use crate::kept::Kept;
use crate::record::Circumstances;
use crate::statistics::median;

/// One peer, figure by figure.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    label: String,
    library: String,
    /// Of active messages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    active: bool,
    figures: Vec<(Figure, Results)>,
}

/// All of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    circumstances: Circumstances,
    mtu_bytes: u32,
    peers: Vec<Row>,
}

impl Report {
    pub(super) fn new(
        circumstances: Circumstances,
        all: &[Peer],
        mut measured: BTreeMap<(&'static str, Figure), Results>,
    ) -> Self {
        let row = |peer: &Peer| Row {
            name: peer.name.to_owned(),
            label: peer.label.to_owned(),
            library: peer.library.to_owned(),
            active: peer.active,
            figures: (FIGURES.iter().chain(&ACTIVE_FIGURES))
                .filter_map(|&figure| Some((figure, measured.remove(&(peer.name, figure))?)))
                .collect(),
        };
        Self {
            peers: all.iter().map(row).collect(),
            circumstances,
            mtu_bytes: MTU_BYTES,
        }
    }

    /// Those that are of active messages, or those that are not.
    fn table(&self, text: &mut String, active: bool, figures: &[Figure]) {
        text.push_str("| |");
        // Writing to a string does not fail.
        for &figure in figures {
            let _ = write!(text, " {} |", name(figure));
        }
        text.push_str("\n|---|");
        text.push_str(&"---:|".repeat(figures.len()));
        text.push('\n');
        for row in self.peers.iter().filter(|row| row.active == active) {
            let _ = write!(text, "| {} |", row.label);
            for &figure in figures {
                let _ = write!(text, " {} |", row.cell(figure));
            }
            text.push('\n');
        }
    }

    /// Who, or what, is not in the table, and why.
    fn missing(&self, text: &mut String) {
        let mut reasons: Vec<String> = Vec::new();
        for (library, reason) in &self.circumstances.unavailable {
            reasons.push(format!("{library}: {reason}"));
        }
        for row in &self.peers {
            for (figure, results) in &row.figures {
                if let Some(failure) = &results.failure {
                    reasons.push(format!("{}, {}: {failure}", row.label, name(*figure)));
                }
            }
        }
        if !reasons.is_empty() {
            text.push_str("\nWhat is not there, and why:\n\n");
        }
        for reason in reasons {
            let _ = writeln!(text, "* {}", reason.replace('\n', " "));
        }
    }
}

impl Kept for Report {
    const NAME: &'static str = "network";

    fn markdown(&self) -> String {
        let at = &self.circumstances;
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: two network namespaces joined by a veth pair, MTU {} bytes; the median of {}. \
             In brackets, the multiple of ours (the raw interface, clear), measured right after. \
             The network is a cable of memory: nothing is lost or delayed, and the kernel hands \
             over runs and large segments uncut.\n",
            at.measured(),
            self.mtu_bytes,
            at.rounds(),
        );
        self.table(&mut text, false, &FIGURES);
        if self.peers.iter().any(|row| row.active) {
            text.push_str("\nActive messages, as multiples of Hamlyn's in Rust:\n\n");
            self.table(&mut text, true, &ACTIVE_FIGURES);
        }
        self.missing(&mut text);
        text
    }
}

impl Row {
    fn cell(&self, figure: Figure) -> String {
        let found = self.figures.iter().find(|(other, _)| *other == figure);
        let Some((_, results)) = found.filter(|(_, results)| !results.values.is_empty()) else {
            return "–".to_owned();
        };
        let value = figure.show(median(&results.values));
        if [REFERENCE, AM].contains(&self.name.as_str()) {
            return value;
        }
        let pairs = results.values.iter().zip(&results.ours);
        let ratios: Vec<f64> = pairs.map(|(value, ours)| value / ours).collect();
        format!("{value} (×{:.2})", median(&ratios))
    }
}

fn name(figure: Figure) -> String {
    let size = size_name(figure.size_bytes());
    match figure {
        Figure::OneWay { .. } => format!("{size} one way, µs"),
        Figure::Rate { .. } | Figure::Senders { .. } => format!("{size}, million a second"),
        Figure::Bandwidth { .. } => format!("{size}, GB/s"),
        Figure::Loaned { .. } => format!("{size} loaned, µs"),
        Figure::Active(active) => {
            let of = match active.category {
                Category::Short => format!("{} arguments", active.size),
                Category::Medium => format!("{size} medium"),
                Category::Long => return format!("{size} bulk, GB/s"),
            };
            match active.is_round_trip {
                true => format!("{of}, µs"),
                false => format!("{of}, million a second"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let figure = FIGURES[0];
        let results = |values: &[f64], ours: &[f64]| Results {
            values: values.to_vec(),
            ours: ours.to_vec(),
            ..Results::default()
        };
        let row = |name: &str, label: &str, results| Row {
            name: name.to_owned(),
            label: label.to_owned(),
            library: "a".to_owned(),
            active: false,
            figures: vec![(figure, results)],
        };
        let broken = Results {
            failure: Some("it broke".to_owned()),
            ..Results::default()
        };
        Report {
            circumstances: Circumstances::default(),
            mtu_bytes: 1_500,
            peers: vec![
                row(
                    REFERENCE,
                    "Ours",
                    results(&[5e3, 6e3, 7e3], &[5e3, 6e3, 7e3]),
                ),
                row(
                    "other",
                    "Other",
                    results(&[12e3, 20e3, 15e3], &[6e3, 5e3, 5e3]),
                ),
                row("broken", "Broken", broken),
            ],
        }
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let text = report().markdown();
        assert!(text.contains("| Ours | 6.00 |"), "{text}");
        // 2, 4 and 3 times as long.
        assert!(text.contains("| Other | 15.0 (×3.00) |"), "{text}");
    }

    #[test]
    fn what_failed_is_named_with_the_reason() {
        let text = report().markdown();
        assert!(text.contains("| Broken | – |"), "{text}");
        assert!(
            text.contains("* Broken, 16 B one way, µs: it broke"),
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
