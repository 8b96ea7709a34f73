//! Reads what was kept of a run (`record`). What is not as it was written is an error that names
//! its line.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::catalogue::Peer;
use crate::figure::Figure;
use crate::record::{Circumstances, Report};
use crate::run::{Measured, Results};
use crate::statistics::Round;

/// A line, but for its figure.
#[derive(Deserialize)]
struct Line {
    peer: String,
    unsupported: Option<String>,
    failure: Option<String>,
    #[serde(default)]
    messages: u64,
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    ours: Vec<f64>,
    #[serde(default)]
    steady: Vec<bool>,
    #[serde(default)]
    repeats: Vec<usize>,
    #[serde(default)]
    raw_ns: Vec<Vec<f64>>,
}

impl Line {
    fn results(self) -> Result<Results> {
        let rounds = self.values.len();
        ensure!(self.ours.len() == rounds, "not one of ours for each value");
        // Runs of before kept these for times only.
        let is_bare = self.steady.is_empty() && self.repeats.is_empty() && self.raw_ns.is_empty();
        ensure!(
            is_bare || [self.steady.len(), self.repeats.len(), self.raw_ns.len()] == [rounds; 3],
            "not one entry for each value"
        );
        let rounds = (0..rounds)
            .map(|round| Round {
                value: self.values[round],
                ours: self.ours[round],
                raw_ns: self.raw_ns.get(round).cloned().unwrap_or_default(),
                steady: self.steady.get(round).copied().unwrap_or(true),
                repeats: self.repeats.get(round).copied().unwrap_or_default(),
            })
            .collect();
        Ok(Results::of(
            rounds,
            self.unsupported,
            self.failure,
            self.messages,
        ))
    }
}

/// The report of that run. `all` are the peers that there are; it has those whose libraries the run
/// names.
pub(crate) fn read(text: &str, all: &[Peer]) -> Result<Report> {
    let mut circumstances = None;
    let mut measured = Measured::default();
    for (number, line) in text.lines().enumerate() {
        let mut take = || -> Result<()> {
            let mut value: Value = serde_json::from_str(line)?;
            if number == 0 {
                let run: Circumstances = serde_json::from_value(value["run"].take())?;
                circumstances = Some(run);
                return Ok(());
            }
            let figure = match value.get("figure") {
                Some(_) => Some(Figure::deserialize(&value)?),
                None => None,
            };
            let line: Line = serde_json::from_value(value)?;
            let name = all
                .iter()
                .find(|peer| peer.name == line.peer)
                .with_context(|| format!("nobody is called {:?}", line.peer))?
                .name;
            match figure {
                Some(figure) => {
                    let figures = measured.figures.entry(name).or_default();
                    let before = figures.insert(figure, line.results()?);
                    ensure!(before.is_none(), "the same figure twice");
                }
                None => {
                    let reason = line.failure.context("neither a figure nor a failure")?;
                    measured.failures.insert(name, reason);
                }
            }
            Ok(())
        };
        take().with_context(|| format!("line {}", number + 1))?;
    }
    let circumstances = circumstances.context("it is empty")?;
    let peers = all
        .iter()
        .filter(|peer| circumstances.names(peer.library))
        .cloned()
        .collect();
    Ok(Report::new(circumstances, peers, measured))
}

/// The report of the run that was kept there.
pub(crate) fn read_file(path: &Path, all: &[Peer]) -> Result<Report> {
    std::fs::read_to_string(path)
        .map_err(anyhow::Error::from)
        .and_then(|text| read(&text, all))
        .with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests;
