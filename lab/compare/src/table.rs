//! Tables: on the terminal, and as Markdown. A figure in which a peer is ahead of ours is marked,
//! and so is one that was measured while the cores were in another state than for the rest.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};

use crate::catalogue::{BATCHED, Peer, Waits};
use crate::figure::{
    BANDWIDTH_SIZES_BYTES, Figure, RATE_SIZES_BYTES, SENDERS, TIME_SIZES_BYTES, size_name,
};
use crate::record::{Cell, Report};
use crate::statistics::{State, Summary, median};

/// Beside a figure in which a peer is ahead of all of ours, or of the one that it is compared with.
const AHEAD: &str = "◀";
const AHEAD_OF_REFERENCE: &str = "◁";

/// One table: a title, and a column for each figure.
pub(crate) struct Section {
    /// The peers that it shows.
    pub(crate) waits: Waits,
    pub(crate) title: &'static str,
    pub(crate) columns: Vec<(String, Figure)>,
    /// A time that is also shown as a multiple of the raw hand-off beside it: that can be compared
    /// between rounds in which the cores were near and such in which they were far from each other.
    pub(crate) over_raw: Option<Figure>,
}

const OVER_RAW: &str = "16 B over raw";
const HAND_OFF: &str = "raw hand-off, ns";

/// The tables of a comparison.
pub(crate) struct Tables {
    pub(crate) sections: Vec<Section>,
    /// The one that the others are multiples of, for people.
    pub(crate) reference: &'static str,
    /// The same, once it was said.
    pub(crate) short: &'static str,
}

/// Those of the comparison on one host, in order: of the peers that poll, then of those that sleep.
pub(crate) fn tables() -> Tables {
    Tables {
        sections: Waits::ALL.into_iter().flat_map(sections_of).collect(),
        reference: "Hamlyn's raw interface that waits in the same manner",
        short: "the raw interface",
    }
}

/// What the peers of a kind have in common, as a head line.
pub(crate) fn heading(waits: Waits) -> &'static str {
    match waits {
        Waits::Polls => "Peers that poll: each process occupies a processor",
        Waits::Sleeps => "Peers that sleep while they wait",
    }
}

fn sections_of(waits: Waits) -> Vec<Section> {
    let bandwidth = |fresh| {
        BANDWIDTH_SIZES_BYTES
            .map(|size_bytes| {
                (
                    size_name(size_bytes),
                    Figure::Bandwidth { size_bytes, fresh },
                )
            })
            .to_vec()
    };
    vec![
        Section {
            waits,
            title: "One-way time, µs",
            columns: TIME_SIZES_BYTES
                .map(|size_bytes| (size_name(size_bytes), Figure::OneWay { size_bytes }))
                .to_vec(),
            over_raw: Some(Figure::OneWay { size_bytes: 16 }),
        },
        Section {
            waits,
            title: "Messages, million a second",
            columns: RATE_SIZES_BYTES
                .map(|size_bytes| (size_name(size_bytes), Figure::Rate { size_bytes }))
                .to_vec(),
            over_raw: None,
        },
        Section {
            waits,
            title: "16-byte messages of several senders, million a second",
            columns: SENDERS
                .map(|senders| (several(senders), Figure::Senders { senders }))
                .to_vec(),
            over_raw: None,
        },
        Section {
            waits,
            title: "Bandwidth from buffers used again, GB/s",
            columns: bandwidth(false),
            over_raw: None,
        },
        Section {
            waits,
            title: "Bandwidth from fresh buffers, GB/s",
            columns: bandwidth(true),
            over_raw: None,
        },
        Section {
            waits,
            title: "Loaned messages, µs for each (multiples of Hamlyn's loans)",
            columns: Figure::of_loans()
                .into_iter()
                .map(|figure| (loaned(figure), figure))
                .collect(),
            over_raw: None,
        },
    ]
}

/// The head of a column: a size and the readers.
fn loaned(figure: Figure) -> String {
    let size = size_name(figure.size_bytes());
    match figure {
        Figure::Loaned { readers, .. } if readers > 1 => format!("{size}, {readers} readers"),
        _ => format!("{size}, 1 reader"),
    }
}

/// The head of a column: senders that share one core, while the receiver has the other.
fn several(senders: usize) -> String {
    match senders {
        1 => "1 of 8 connected".to_owned(),
        senders => format!("{senders} senders"),
    }
}

/// What a peer has left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ahead {
    Nobody,
    /// What it is compared with, but not all of ours.
    Reference,
    /// All of ours that have a call for each message.
    All,
}

/// What a peer's figure is ahead of, by the median of the ratios.
pub(crate) fn ahead(report: &Report, peer: &Peer, figure: Figure, summary: &Summary) -> Ahead {
    if peer.is_ours() || peer.is_machine() || !figure.is_ahead(summary.over_ours, 1.0) {
        return Ahead::Nobody;
    }
    let ours: Vec<f64> = report
        .peers
        .iter()
        .filter(|ours| ours.is_ours() && ours.name != BATCHED && ours.waits == peer.waits)
        .filter_map(|ours| match report.cell(ours, figure) {
            Cell::Measured(summary) => Some(summary.over_ours),
            _ => None,
        })
        .collect();
    if figure.is_ahead(summary.over_ours, figure.best(&ours)) {
        Ahead::All
    } else {
        Ahead::Reference
    }
}

/// What is said after a figure of rounds that are not what they should be.
pub(crate) fn reservation(summary: &Summary, usual: Option<State>) -> String {
    let unsteady = if summary.steady { "" } else { "~" };
    match summary.state {
        Some(state) if summary.state != usual => format!("{unsteady} {}", state.name()),
        _ => unsteady.to_owned(),
    }
}

/// One figure in Markdown, with its quartiles and its multiple of ours.
pub(crate) fn marked(report: &Report, peer: &Peer, figure: Figure, summary: &Summary) -> String {
    let quartiles = format!(" [{}]", figure.show_interval(summary.quartiles));
    marked_with(report, peer, figure, summary, &quartiles)
}

/// One without its quartiles.
pub(crate) fn brief(report: &Report, peer: &Peer, figure: Figure, summary: &Summary) -> String {
    marked_with(report, peer, figure, summary, "")
}

fn marked_with(
    report: &Report,
    peer: &Peer,
    figure: Figure,
    summary: &Summary,
    quartiles: &str,
) -> String {
    let shown = format!(
        "{}{}{quartiles} {}",
        figure.show(summary.median),
        reservation(summary, report.state),
        ratio(summary.over_ours)
    );
    match ahead(report, peer, figure, summary) {
        Ahead::All => format!("**{shown}**"),
        Ahead::Reference => format!("*{shown}*"),
        Ahead::Nobody => shown,
    }
}

/// The state in which a row was measured, and the raw hand-off meanwhile. Figures in another state
/// say so themselves.
fn hand_off(report: &Report, cells: &[Cell]) -> String {
    let of = |wanted: &dyn Fn(&Summary) -> bool| -> Vec<f64> {
        let measured = cells.iter().filter_map(|cell| match cell {
            Cell::Measured(summary) if wanted(summary) => summary.raw_ns,
            _ => None,
        });
        measured.collect()
    };
    let usual = of(&|summary| summary.state == report.state);
    match report.state {
        Some(state) if !usual.is_empty() => format!("{} {:.0}", state.name(), median(&usual)),
        _ => match median(&of(&|_| true)) {
            ns if ns.is_nan() => "–".to_owned(),
            ns => format!("{ns:.0}"),
        },
    }
}

/// The last column of a table that has it.
fn over_raw(report: &Report, peer: &Peer, section: &Section) -> Option<String> {
    let figure = section.over_raw?;
    Some(match report.cell(peer, figure) {
        Cell::Measured(Summary {
            over_raw: Some(times),
            ..
        }) => ratio(times),
        _ => "–".to_owned(),
    })
}

/// Peers that have something in this table.
pub(crate) fn rows<'a>(report: &'a Report, section: &Section) -> Vec<(&'a Peer, Vec<Cell>)> {
    report
        .peers
        .iter()
        .filter(|peer| peer.waits == section.waits)
        .map(|peer| {
            let cells: Vec<Cell> = section
                .columns
                .iter()
                .map(|&(_, figure)| report.cell(peer, figure))
                .collect();
            (peer, cells)
        })
        .filter(|(_, cells)| {
            cells
                .iter()
                .any(|cell| matches!(cell, Cell::Measured(_) | Cell::Failed(_)))
        })
        .collect()
}

pub(crate) fn ratio(value: f64) -> String {
    match value {
        x if x >= 100.0 => format!("×{x:.0}"),
        x if x >= 10.0 => format!("×{x:.1}"),
        x => format!("×{x:.2}"),
    }
}

/// All tables for people at a terminal: median and quartiles, and below them the ratio to ours.
pub(crate) fn terminal(report: &Report, tables: &Tables) -> String {
    let mut text = String::new();
    let mut last_heading = "";
    for section in &tables.sections {
        let rows = rows(report, section);
        if rows.is_empty() {
            continue;
        }
        let heading = heading(section.waits);
        if heading != last_heading {
            let _ = writeln!(text, "{heading}\n");
            last_heading = heading;
        }
        let mut table = Table::new();
        let heads = section.columns.iter().map(|(head, _)| head.clone());
        table
            .load_preset(UTF8_HORIZONTAL_ONLY)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(
                [section.title.to_owned()]
                    .into_iter()
                    .chain(heads)
                    .chain(section.over_raw.map(|_| OVER_RAW.to_owned()))
                    .chain([HAND_OFF.to_owned()]),
            );
        for (peer, cells) in rows {
            let shown = cells
                .iter()
                .zip(&section.columns)
                .map(|(cell, &(_, figure))| match cell {
                    Cell::Measured(summary) => {
                        let mark = match ahead(report, peer, figure, summary) {
                            Ahead::All => AHEAD,
                            Ahead::Reference => AHEAD_OF_REFERENCE,
                            Ahead::Nobody => "",
                        };
                        format!(
                            "{}{} {mark}{}\n{}",
                            figure.show(summary.median),
                            reservation(summary, report.state),
                            ratio(summary.over_ours),
                            figure.show_interval(summary.quartiles),
                        )
                    }
                    Cell::Unsupported(_) | Cell::Absent => "–".to_owned(),
                    Cell::Failed(_) => "failed".to_owned(),
                });
            let last = over_raw(report, peer, section);
            table.add_row(
                [peer.label.to_owned()]
                    .into_iter()
                    .chain(shown)
                    .chain(last)
                    .chain([hand_off(report, &cells)]),
            );
        }
        let _ = writeln!(text, "{table}\n");
    }
    text.push_str(&format!(
        "median of the rounds, as a multiple of Hamlyn's first line of that table in the same rounds, and below the quartiles.\n\
         {AHEAD} a peer is ahead of all of ours   {AHEAD_OF_REFERENCE} only of the first   ~ the machine never kept still   \
         – the peer or its program here does not do this\n"
    ));
    text.push_str(&stillness(report));
    for (name, reason) in failures(report, tables) {
        let _ = writeln!(text, "failed: {name}: {reason}");
    }
    text
}

/// What failed, with the reason.
pub(crate) fn failures(report: &Report, tables: &Tables) -> Vec<(String, String)> {
    let mut failures = Vec::new();
    for peer in &report.peers {
        if let Some(reason) = report.failure(peer) {
            failures.push((peer.label.to_owned(), reason));
            continue;
        }
        let of_peer = |section: &&Section| section.waits == peer.waits;
        for section in tables.sections.iter().filter(of_peer) {
            for (head, figure) in &section.columns {
                if let Cell::Failed(reason) = report.cell(peer, *figure) {
                    failures.push((format!("{}, {}, {head}", peer.label, section.title), reason));
                }
            }
        }
    }
    failures
}

/// A sentence on the state of the cores.
pub(crate) fn stillness(report: &Report) -> String {
    let Some([least, middle, most]) = report.raw_ns() else {
        return String::new();
    };
    let mut text = format!(
        "The raw hand-off of a cache line took {least:.0} to {most:.0} ns meanwhile, in the median {middle:.0} ns."
    );
    if let Some(state) = report.state {
        let _ = write!(
            text,
            " Figures are of rounds in which the cores were {} ({}), unless they say otherwise.",
            match state {
                State::SameCore => "threads of one core",
                State::Near => "near each other",
                State::Far => "far from each other",
            },
            match state {
                State::SameCore => "a hand-off below 40 ns",
                State::Near => "a hand-off of 40 to 95 ns",
                State::Far => "a hand-off above 95 ns",
            },
        );
    }
    text.push('\n');
    text
}

/// All tables as Markdown: dated, with the versions.
pub(crate) fn markdown(report: &Report, tables: &Tables) -> String {
    let circumstances = &report.circumstances;
    let mut text = format!(
        "Measured {}; median and quartiles of up to {} rounds{}.\n",
        circumstances.told(),
        circumstances.rounds,
        if circumstances.quick {
            ", a quick run"
        } else {
            ""
        },
    );
    text.push_str(&stillness(report));
    let _ = writeln!(
        text,
        "After ×, the multiple of {}, measured alternately in the same rounds. **Bold**: ahead, by more than 1 %, of all lines of ours in that table that have a call for each message; *italic*: only of {}. \
         ~: the machine never kept still. –: the peer, or the program that measures it here, does not do this.",
        tables.reference, tables.short,
    );
    let mut last_heading = "";
    for section in &tables.sections {
        let rows = rows(report, section);
        if rows.is_empty() {
            continue;
        }
        let heading = heading(section.waits);
        if heading != last_heading {
            let _ = writeln!(text, "\n## {heading}");
            last_heading = heading;
        }
        let _ = write!(text, "\n| {} |", section.title);
        for (head, _) in &section.columns {
            let _ = write!(text, " {head} |");
        }
        let last = section
            .over_raw
            .map_or(String::new(), |_| format!(" {OVER_RAW} |"));
        let _ = write!(text, "{last} {HAND_OFF} |");
        text.push_str("\n|---|");
        let columns = section.columns.len() + 1 + usize::from(section.over_raw.is_some());
        text.push_str(&"---:|".repeat(columns));
        text.push('\n');
        for (peer, cells) in rows {
            let _ = write!(text, "| {} |", peer.label);
            for (cell, &(_, figure)) in cells.iter().zip(&section.columns) {
                let shown = match cell {
                    Cell::Measured(summary) => marked(report, peer, figure, summary),
                    Cell::Unsupported(_) | Cell::Absent => "–".to_owned(),
                    Cell::Failed(_) => "failed".to_owned(),
                };
                let _ = write!(text, " {shown} |");
            }
            if let Some(last) = over_raw(report, peer, section) {
                let _ = write!(text, " {last} |");
            }
            let _ = writeln!(text, " {} |", hand_off(report, &cells));
        }
    }
    let _ = writeln!(text, "\nVersions: {}.", circumstances.versions());
    for (name, reason) in failures(report, tables) {
        let _ = writeln!(text, "\nFailed: {name}: {reason}");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests;
