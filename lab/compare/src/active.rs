//! Active Messages beside each other: ours in Rust and in C, GASNet-EX's and UCX's, on one host.
//!
//! Rounds, the hand-off beside them and what is kept of them are as for messages (`run`, `record`);
//! the figures are others, and so are the programs: they run handlers (`peers/harness/active.h`,
//! `peers/active`).

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use serde_json::json;

use crate::catalogue::{
    self, AM, Build, GASNET, HAMLYN, IN_C, Library, MACHINE, Peer, Places, RAW, UCX_AM, Waits,
};
use crate::figure::{Active, Category, Figure, size_name};
use crate::pin::Cores;
use crate::prepare;
use crate::publication;
use crate::reading;
use crate::record::{Cell, Circumstances, Report};
use crate::run::{self, Effort, Group};
use crate::short_table::Markers;
use crate::table::{self, Section, Tables};

const ARGUMENTS: [usize; 4] = [0, 4, 8, 16];
/// The last is the longest that all of them take: `am.h` has 65,000 bytes, GASNet-EX 65,416.
const MEDIUM_BYTES: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 63 << 10];
const LONG_BYTES: [usize; 3] = [16 << 10, 64 << 10, 1 << 20];

/// Every round of a run; all of its tables; all figures.
const RAW_FILE: &str = "am.jsonl";
const TABLE_FILE: &str = "am.md";
const FIGURES_FILE: &str = "am.json";
const MARKERS: Markers = Markers {
    name: "compare-am",
    made_of: RAW_FILE,
};

const LIBRARIES: &[Library] = &[
    Library {
        name: MACHINE,
        label: "the machine itself",
        build: catalogue::of_c("raw", &[]),
        version: &["uname", "-r"],
    },
    Library {
        name: HAMLYN,
        label: "Hamlyn, Rust",
        build: Build::Cargo {
            packages: &["compare-active"],
        },
        version: &["git", "describe", "--always", "--dirty"],
    },
    Library {
        name: IN_C,
        label: "Hamlyn, C",
        build: Build::Face {
            package: "hamlyn-am-c",
            source: "am",
            headers: "faces/am/include",
            libraries: &["-l:libhamlyn_am_c.a", "-lm"],
        },
        version: &["git", "describe", "--always", "--dirty"],
    },
    GASNET,
    UCX_AM,
];

/// All that can be compared, ours first. The reasons for their settings are in
/// `lab/compare/README.md`.
fn catalogue(places: &Places) -> Vec<Peer> {
    let built = |name: &str| vec![catalogue::word(&places.built().join(name))];
    let ours = vec![catalogue::word(&places.binaries.join("compare-active"))];
    let ucx = |name, label, transports| {
        Peer::each(UCX_AM.name, name, label, built("ucx_am"), "am")
            .active()
            .environment(transports)
    };
    vec![
        Peer::each(HAMLYN, AM, "Hamlyn, Rust", ours, "am").active(),
        Peer::each(IN_C, "hamlyn_am_c", "Hamlyn, C", built("am"), "am").active(),
        Peer::each(MACHINE, RAW, "the machine itself", built("raw"), "raw"),
        Peer::each(
            GASNET.name,
            "gasnet_smp",
            "GASNet-EX smp",
            built("gasnet_smp"),
            "smp",
        )
        .launched()
        .active()
        .environment(&[("GASNET_PSHM_NODES", "2")]),
        ucx("ucx_am", "UCX", &[("UCX_TLS", "posix,self")]),
        ucx("ucx_am_cma", "UCX, cma", &[("UCX_TLS", "posix,cma,self")]),
    ]
}

/// The tables; their columns are all figures.
fn tables() -> Tables {
    let section = |title, category, is_round_trip, sizes: &[usize]| {
        let column = |&size: &usize| {
            let head = match category {
                Category::Short => format!("{size} arguments"),
                Category::Medium | Category::Long => size_name(size),
            };
            let active = Active {
                category,
                size,
                is_round_trip,
            };
            (head, Figure::Active(active))
        };
        Section {
            waits: Waits::Polls,
            title,
            columns: sizes.iter().map(column).collect(),
            over_raw: None,
        }
    };
    Tables {
        sections: vec![
            section("Short, µs", Category::Short, true, &ARGUMENTS),
            section("Short, million/s", Category::Short, false, &ARGUMENTS),
            section("Medium, µs", Category::Medium, true, &MEDIUM_BYTES),
            section("Medium, million/s", Category::Medium, false, &MEDIUM_BYTES),
            section("Bulk, GB/s", Category::Long, false, &LONG_BYTES),
        ],
        reference: "Hamlyn's Active Messages in Rust",
        short: "those in Rust",
    }
}

fn figures() -> Vec<Figure> {
    let columns = tables().sections.into_iter();
    let columns = columns.flat_map(|section| section.columns);
    columns.map(|(_, figure)| figure).collect()
}

/// Measures all that are chosen.
pub(crate) fn compare(
    only: &[String],
    places: &Places,
    cores: Cores,
    effort: Effort,
    install: bool,
    quick: bool,
    bar: &ProgressBar,
) -> Result<Report> {
    let mut circumstances = Circumstances::now(cores, effort, quick)?;
    circumstances.commit = publication::commit(&places.compare);
    prepare::all(LIBRARIES, only, places, install, &mut circumstances)?;
    let all = catalogue(places);
    let has = |peer: &&Peer| circumstances.versions.contains_key(peer.library);
    let is_measured = |peer: &&Peer| !peer.is_reference() && !peer.is_machine();
    let group = Group {
        figures: figures(),
        senders: 1,
        name: "active messages",
        reference: AM,
        peers: all.iter().filter(has).filter(is_measured).collect(),
        share: 1.0,
    };
    ensure!(!group.peers.is_empty(), "there is nobody to compare with");
    let program = |name: &str| catalogue::program(&all, name);
    let begun = Instant::now();
    let raw = program(RAW)?;
    let measured = run::run(vec![group], program, raw, effort, cores, bar)?;
    circumstances.took_s = Some(begun.elapsed().as_secs());
    bar.finish_and_clear();
    let peers = of(&circumstances, &all);
    Ok(Report::new(circumstances, peers, measured))
}

/// Those that are shown: the machine's hand-off stands beside each.
fn of(circumstances: &Circumstances, all: &[Peer]) -> Vec<Peer> {
    let is_of = |peer: &&Peer| circumstances.names(peer.library) && !peer.is_machine();
    all.iter().filter(is_of).cloned().collect()
}

/// The longest time that a run may take.
pub(crate) fn time_max(quick: bool) -> Duration {
    Duration::from_secs(60 * if quick { 2 } else { 10 })
}

/// Every figure, as one JSON object.
pub(crate) fn json(report: &Report) -> Result<String> {
    let mut value = report.json(&figures());
    value["reference"] = json!(AM);
    if let Some(object) = value.as_object_mut() {
        object.remove("reference_of_those_that_sleep");
    }
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

pub(crate) fn terminal(report: &Report) -> String {
    table::terminal(report, &tables())
}

/// Writes every round into that directory, and what is made of them; the report as it is read back.
pub(crate) fn keep(report: &Report, output: &Path, places: &Places) -> Result<Report> {
    std::fs::create_dir_all(output).with_context(|| format!("making {}", output.display()))?;
    report.write_raw(&output.join(RAW_FILE))?;
    let report = read(output, places)?.context("what was written is not there")?;
    write(&report, output)?;
    Ok(report)
}

/// The report that a run has left there, if there was one.
fn read(output: &Path, places: &Places) -> Result<Option<Report>> {
    let raw = output.join(RAW_FILE);
    if !raw.exists() {
        return Ok(None);
    }
    let all = catalogue(places);
    let mut report = reading::read_file(&raw, &all)?;
    report.peers = of(&report.circumstances, &all);
    Ok(Some(report))
}

fn made_of(report: &Report) -> Result<[(&'static str, String); 2]> {
    Ok([
        (TABLE_FILE, table::markdown(report, &tables())),
        (FIGURES_FILE, json(report)?),
    ])
}

fn write(report: &Report, output: &Path) -> Result<()> {
    for (file, text) in made_of(report)? {
        std::fs::write(output.join(file), text).with_context(|| format!("writing {file}"))?;
    }
    Ok(())
}

/// Puts the short tables into docs/comparison.md.
pub(crate) fn publish(report: &Report, places: &Places) -> Result<()> {
    MARKERS.put(&places.comparison(), &short(report))
}

/// Makes what is shown anew from the results in the checkout, or checks it.
pub(crate) fn show(check: bool, places: &Places) -> Result<()> {
    let results = places.results();
    let Some(report) = read(&results, places)? else {
        return Ok(());
    };
    if !check {
        write(&report, &results)?;
        return publish(&report, places);
    }
    for (file, wanted) in made_of(&report)? {
        let found = std::fs::read_to_string(results.join(file))
            .with_context(|| format!("reading {file} of lab/compare/results"))?;
        ensure!(
            found == wanted,
            "{file} does not say what {RAW_FILE} beside it says: run `make compare-show`"
        );
    }
    MARKERS.check(&places.comparison(), &short(&report))
}

/// The tables without quartiles.
fn short(report: &Report) -> String {
    let mut text = format!(
        "Measured {}. {}After ×, the median of the multiples of the first row. **Bold**: ahead of all of ours, *italic*: of the first row only. ~: the machine never kept still. Quartiles: [am.md](../lab/compare/results/am.md); each figure as JSON: [am.json](../lab/compare/results/am.json).\n\nVersions: {}.\n",
        report.circumstances.told(),
        table::stillness(report).replace('\n', " "),
        report.circumstances.versions(),
    );
    let tables = tables();
    for section in &tables.sections {
        let heads: String = (section.columns.iter())
            .map(|(head, _)| format!(" {head} |"))
            .collect();
        let rule = "---:|".repeat(section.columns.len());
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n| {} |{heads}\n|---|{rule}", section.title);
        for (peer, cells) in table::rows(report, section) {
            let _ = write!(text, "| {} |", peer.label);
            for (cell, &(_, figure)) in cells.iter().zip(&section.columns) {
                let shown = match cell {
                    Cell::Measured(summary) => table::brief(report, peer, figure, summary),
                    Cell::Unsupported(_) | Cell::Absent => "–".to_owned(),
                    Cell::Failed(_) => "failed".to_owned(),
                };
                let _ = write!(text, " {shown} |");
            }
            text.push('\n');
        }
    }
    for (name, reason) in table::failures(report, &tables) {
        let _ = writeln!(text, "\nFailed: {name}: {reason}");
    }
    text
}

#[cfg(test)]
mod tests;
