//! The short table in docs/comparison.md: the best of each peer. It stands between two markers, and is made of the results in
//! `compare/results` alone.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::catalogue::{BATCHED, LIBRARIES, Peer, REFERENCE};
use crate::figure::{BANDWIDTH_SIZES_BYTES, Figure, SENDERS_MAX, size_name};
use crate::record::{Cell, Report};
use crate::statistics::Summary;
use crate::table::{marked, stillness};

const BEGIN: &str = "<!-- compare:begin -->";
const END: &str = "<!-- compare:end -->";
/// Ours, each with a row of its own.
const OURS: [&str; 3] = [REFERENCE, "hamlyn_direct", BATCHED];
const TIME: Figure = Figure::OneWay { size_bytes: 16 };
const CROWD: Figure = Figure::Senders {
    senders: SENDERS_MAX,
};

fn columns() -> Vec<(String, Figure)> {
    let mut columns = vec![
        ("16 B one way, µs".to_owned(), TIME),
        ("16 B, million/s".to_owned(), Figure::Rate),
        (format!("{SENDERS_MAX} senders, million/s"), CROWD),
    ];
    columns.extend(BANDWIDTH_SIZES_BYTES.map(|size_bytes| {
        let figure = Figure::Bandwidth {
            size_bytes,
            fresh: false,
        };
        (format!("{}, GB/s", size_name(size_bytes)), figure)
    }));
    columns
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

/// What stands between the markers.
pub(crate) fn section(report: &Report) -> String {
    let circumstances = &report.circumstances;
    let mut text = format!(
        "Beside others, alternately with them on the same two cores, {} on {}; medians of up to {} rounds. ",
        circumstances.date,
        circumstances.machine(),
        circumstances.rounds,
    );
    text.push_str(&stillness(report));
    text.push_str(
        "Each library is shown in its fastest configuration. In brackets, the multiple of Hamlyn's raw interface in the same rounds; **bold**: ahead of everything of Hamlyn's that has a call for each message, *italic*: of the raw interface only; –: not offered.\n\n| |",
    );
    let columns = columns();
    for (head, _) in &columns {
        let _ = write!(text, " {head} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---:|".repeat(columns.len()));
    text.push('\n');
    let mut rows: Vec<(&str, Vec<&Peer>)> = OURS
        .iter()
        .filter_map(|name| report.peers.iter().find(|peer| peer.name == *name))
        .map(|peer| (peer.label, vec![peer]))
        .collect();
    rows.extend(LIBRARIES.iter().map(|library| {
        let of_library =
            |peer: &&Peer| peer.library == library.name && !peer.is_ours() && !peer.is_machine();
        (
            library.label,
            report.peers.iter().filter(of_library).collect(),
        )
    }));
    for (label, peers) in rows {
        let cells: Vec<_> = columns
            .iter()
            .map(|&(_, figure)| (figure, best(report, &peers, figure)))
            .collect();
        if cells
            .iter()
            .all(|(_, cell)| matches!(cell, Err(Cell::Absent)))
        {
            continue;
        }
        let _ = write!(text, "| {label} |");
        for (figure, cell) in cells {
            let shown = match cell {
                Ok((peer, summary)) => marked(report, peer, figure, &summary),
                Err(Cell::Failed(_)) => "failed".to_owned(),
                Err(_) => "–".to_owned(),
            };
            let _ = write!(text, " {shown} |");
        }
        text.push('\n');
    }
    text.push_str(
        "\nUCX is here mostly by its *put*, which has no queue, notification or protection; iceoryx2 by samples written and read in place, with no copy. \
         Each variant, other sizes, fresh buffers, versions and failures: [compare/results/table.md](../compare/results/table.md); how each is run: [compare/README.md](../compare/README.md).\n",
    );
    text
}

/// A text with the section between its markers.
fn with_section(text: &str, section: &str) -> Result<String> {
    let found = |marker| {
        let mut places = text.match_indices(marker).map(|(at, _)| at);
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            _ => Err(anyhow::anyhow!("it must have {marker} once")),
        }
    };
    let begin = found(BEGIN)? + BEGIN.len();
    let end = found(END)?;
    ensure!(begin <= end, "{END} stands before {BEGIN}");
    Ok(format!("{}\n{section}{}", &text[..begin], &text[end..]))
}

/// Puts the section into that file; all else stays as it is.
pub(crate) fn put(path: &Path, section: &str) -> Result<()> {
    let change = || -> Result<()> {
        let text = std::fs::read_to_string(path)?;
        std::fs::write(path, with_section(&text, section)?)?;
        Ok(())
    };
    change().with_context(|| format!("the table in {}", path.display()))
}

/// Whether the section stands in that file.
pub(crate) fn check(path: &Path, section: &str) -> Result<()> {
    let compare = || -> Result<()> {
        let text = std::fs::read_to_string(path)?;
        ensure!(
            text == with_section(&text, section)?,
            "it does not say what compare/results/raw.jsonl says: run `make compare-show`"
        );
        Ok(())
    };
    compare().with_context(|| format!("the table in {}", path.display()))
}

#[cfg(test)]
mod tests;
