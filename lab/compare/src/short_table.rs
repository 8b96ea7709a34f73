//! The short table in docs/comparison.md: the best of each peer. It stands between two markers, and
//! is made of the results in `lab/compare/results` alone.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::catalogue::{BATCHED, LIBRARIES, Peer, REFERENCE, SLEEPING, Waits};
use crate::figure::{
    BANDWIDTH_SIZES_BYTES, Figure, RATE_SIZES_BYTES, SENDERS_MAX, TIME_SIZES_BYTES, size_name,
};
use crate::record::{Cell, Report};
use crate::statistics::Summary;
use crate::table::{heading, marked, stillness};

/// Between which a section stands, and the file in `lab/compare/results` that it is made of.
pub(crate) struct Markers {
    pub(crate) name: &'static str,
    pub(crate) made_of: &'static str,
}

/// Those of the comparison on one host.
pub(crate) const MARKERS: Markers = Markers {
    name: "compare",
    made_of: crate::RAW_FILE,
};
/// Ours, each with a row of its own.
const OURS: [&str; 5] = [
    REFERENCE,
    "hamlyn_direct",
    BATCHED,
    SLEEPING,
    "hamlyn_default",
];

/// The tables of each kind of peers: a title, and a column for each figure.
fn tables() -> [(&'static str, Vec<(String, Figure)>); 3] {
    let named = |figure: Figure| (size_name(figure.size_bytes()), figure);
    let mut rates = RATE_SIZES_BYTES
        .map(|size_bytes| named(Figure::Rate { size_bytes }))
        .to_vec();
    let senders = SENDERS_MAX;
    rates.push((
        format!("16 B, {senders} senders"),
        Figure::Senders { senders },
    ));
    let fresh = false;
    [
        (
            "One way, µs",
            TIME_SIZES_BYTES
                .map(|size_bytes| named(Figure::OneWay { size_bytes }))
                .to_vec(),
        ),
        ("Messages, million/s", rates),
        (
            "Bandwidth, GB/s",
            BANDWIDTH_SIZES_BYTES
                .map(|size_bytes| named(Figure::Bandwidth { size_bytes, fresh }))
                .to_vec(),
        ),
    ]
}

/// The best of some, with its figure; or why there is none.
fn best<'a>(
    report: &Report,
    peers: &[&'a Peer],
    figure: Figure,
) -> Result<(&'a Peer, Summary), Cell> {
    let mut found: Option<(&Peer, Summary)> = None;
    let mut without = Cell::Absent;
    for &peer in peers {
        match report.cell(peer, figure) {
            Cell::Measured(summary) => {
                // What was measured as it should be goes before what was not.
                let rank = |summary: &Summary| (summary.steady, summary.state == report.state);
                let is_better = found.as_ref().is_none_or(|(_, best)| {
                    rank(&summary) > rank(best)
                        || rank(&summary) == rank(best)
                            && figure.is_ahead(summary.over_ours, best.over_ours)
                });
                if is_better {
                    found = Some((peer, summary));
                }
            }
            failed @ Cell::Failed(_) => without = failed,
            Cell::Unsupported(_) | Cell::Absent => {}
        }
    }
    found.ok_or(without)
}

/// Ours and the libraries, each with those of its variants that wait in that manner.
fn rows(report: &Report, waits: Waits) -> Vec<(&'static str, Vec<&Peer>)> {
    let peers = || report.peers.iter().filter(|peer| peer.waits == waits);
    let ours = OURS
        .iter()
        .filter_map(|name| peers().find(|peer| peer.name == *name))
        .map(|peer| (peer.label, vec![peer]));
    let libraries = LIBRARIES.iter().map(|library| {
        let is_of =
            |peer: &&Peer| peer.library == library.name && !peer.is_ours() && !peer.is_machine();
        (library.label, peers().filter(is_of).collect())
    });
    ours.chain(libraries).collect()
}

/// What stands between the markers.
pub(crate) fn section(report: &Report) -> String {
    let circumstances = &report.circumstances;
    let mut text = format!(
        "Measured alternately on the same two cores, {}; medians and quartiles of up to {} rounds. ",
        circumstances.told(),
        circumstances.rounds,
    );
    text.push_str(&stillness(report));
    let _ = writeln!(text, "\nVersions: {}.", circumstances.versions());
    text.push_str(
        "\nEach library is shown by the fastest of its variants. In brackets, the quartiles; after ×, the multiple of Hamlyn's raw interface that waits in the same manner, in the same rounds. **Bold**: ahead of every line of Hamlyn's that has a call for each message, *italic*: of the raw interface only; –: the library, or the program that measures it here, does not do this.\n",
    );
    for waits in Waits::ALL {
        let rows = rows(report, waits);
        let mut is_first = true;
        for (title, columns) in tables() {
            let table = table(report, title, &columns, &rows);
            if table.is_empty() {
                continue;
            }
            if std::mem::take(&mut is_first) {
                let _ = writeln!(text, "\n### {}", heading(waits));
            }
            text.push_str(&table);
        }
    }
    text.push_str(
        "\nUCX is here mostly by its *put*, which has no queue, notification or protection; iceoryx2 by samples written and read in place, with no copy. \
         Each variant, several senders, loans, fresh buffers and failures: [lab/compare/results/table.md](../lab/compare/results/table.md); each figure as JSON: [figures.json](../lab/compare/results/figures.json); how each is run: [lab/compare/README.md](../lab/compare/README.md).\n",
    );
    text
}

/// One table; empty if nobody has anything in it.
fn table(
    report: &Report,
    title: &str,
    columns: &[(String, Figure)],
    rows: &[(&str, Vec<&Peer>)],
) -> String {
    let mut lines = String::new();
    for (label, peers) in rows {
        let cells: Vec<_> = columns
            .iter()
            .map(|&(_, figure)| (figure, best(report, peers, figure)))
            .collect();
        if cells
            .iter()
            .all(|(_, cell)| matches!(cell, Err(Cell::Absent)))
        {
            continue;
        }
        let _ = write!(lines, "| {label} |");
        for (figure, cell) in cells {
            let shown = match cell {
                Ok((peer, summary)) => marked(report, peer, figure, &summary),
                Err(Cell::Failed(_)) => "failed".to_owned(),
                Err(_) => "–".to_owned(),
            };
            let _ = write!(lines, " {shown} |");
        }
        lines.push('\n');
    }
    if lines.is_empty() {
        return lines;
    }
    let heads: String = columns
        .iter()
        .map(|(head, _)| format!(" {head} |"))
        .collect();
    let rule = "---:|".repeat(columns.len());
    format!("\n| {title} |{heads}\n|---|{rule}\n{lines}")
}

impl Markers {
    /// A text with the section between them.
    fn with_section(&self, text: &str, section: &str) -> Result<String> {
        let found = |marker: &str| {
            let mut places = text.match_indices(marker).map(|(at, _)| at);
            match (places.next(), places.next()) {
                (Some(at), None) => Ok(at),
                _ => Err(anyhow::anyhow!("it must have {marker} once")),
            }
        };
        let [begin, end] = ["begin", "end"].map(|which| format!("<!-- {}:{which} -->", self.name));
        let (from, to) = (found(&begin)? + begin.len(), found(&end)?);
        ensure!(from <= to, "{end} stands before {begin}");
        Ok(format!("{}\n{section}{}", &text[..from], &text[to..]))
    }

    /// Puts the section into that file; all else stays as it is.
    pub(crate) fn put(&self, path: &Path, section: &str) -> Result<()> {
        let change = || -> Result<()> {
            let text = std::fs::read_to_string(path)?;
            std::fs::write(path, self.with_section(&text, section)?)?;
            Ok(())
        };
        change().with_context(|| format!("the table in {}", path.display()))
    }

    /// Fails unless the section stands in that file.
    pub(crate) fn check(&self, path: &Path, section: &str) -> Result<()> {
        let compare = || -> Result<()> {
            let text = std::fs::read_to_string(path)?;
            ensure!(
                text == self.with_section(&text, section)?,
                "it does not say what lab/compare/results/{} says: run `make compare-show`",
                self.made_of
            );
            Ok(())
        };
        compare().with_context(|| format!("the table in {}", path.display()))
    }
}

#[cfg(test)]
mod tests;
