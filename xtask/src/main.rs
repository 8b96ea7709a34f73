//! Checks of the repository itself:
//! `cargo run -p xtask -- check-papers | check-engine | check-planted | check-links | check-structure`;
//! `test` runs all tests, `book` copies the documents to where a book is made of them, `plant`
//! makes a copy of the tree with all planted bugs (decision 0016), `mutants` one with a sample of
//! mutants, which it runs (decision 0032).
//!
//! Each check is a pure function of texts, so its tests can show that it fails.
#![forbid(unsafe_code)]

mod book;
mod copy;
mod engine;
mod links;
mod mutants;
mod papers;
mod planted;
mod source;
mod structure;
mod test_programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use papers::Paper;
use planted::Planted;

/// The papers, each with the rows that its file must have.
const PAPERS: [Paper; 4] = [
    Paper {
        name: "Hamlyn",
        file: "docs/papers/hamlyn.md",
        list: include_str!("../data/hamlyn-ids.txt"),
    },
    Paper {
        name: "Virtual networks",
        file: "docs/papers/virtual-networks.md",
        list: include_str!("../data/virtual-networks-ids.txt"),
    },
    Paper {
        name: "Two-case delivery",
        file: "docs/papers/two-case-delivery.md",
        list: include_str!("../data/two-case-delivery-ids.txt"),
    },
    Paper {
        name: "Global addresses",
        file: "docs/papers/global-address.md",
        list: include_str!("../data/global-address-ids.txt"),
    },
];
/// Says how many rows of each paper there are of each class.
const SUMMARY: &str = "docs/papers.md";
/// Cite tests, but have no rows that they must have.
const CITING: [&str; 2] = ["docs/security.md", "docs/pains.md"];
const ENGINE: &str = "crates/engine";
/// The planted bugs, the module of their switch, and the tests that must find them.
const PLANTED: &str = "lab/planted";
/// The tree that has them,
const COPY: &str = "target/planted";
/// with their tests among those of three crates.
const TESTS: [(&str, &str); 6] = [
    ("lab/planted/tests/engine", "crates/engine/tests"),
    ("lab/planted/tests/ring", "crates/ring/tests"),
    ("lab/planted/tests/sim", "lab/sim/tests"),
    ("lab/planted/tests/hunt", "crates/engine/tests/hunt"),
    ("lab/planted/tests/hunt", "crates/ring/tests/hunt"),
    ("lab/planted/tests/hunt", "lab/sim/tests/hunt"),
];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the check that was asked for found nothing.
fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root()?;
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["check-papers"] => check_papers(&root),
        ["check-engine"] => check_engine(&root),
        ["check-planted"] => Ok(planted(&root)?.is_some()),
        ["check-links"] => book::check_links(&root),
        ["check-structure"] => structure::check(&root),
        ["book"] => book::write(&root),
        ["plant"] => plant(&root),
        ["mutants", options @ ..] => mutants::run(&root, options),
        ["test", options @ ..] => test_programs::run(&root, options),
        _ => bail!(
            "usage: cargo run -p xtask -- check-papers | check-engine | check-planted | check-links | check-structure | book | plant | mutants {} | test {}",
            mutants::USAGE,
            test_programs::USAGE
        ),
    }
}

fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here
        .parent()
        .context("xtask lies in the workspace")?
        .to_owned())
}

fn check_papers(root: &Path) -> Result<bool> {
    let in_tree = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let mut is_sound = true;
    let mut print_problems = |file: &str, problems: &[String]| {
        is_sound &= problems.is_empty();
        for problem in problems {
            eprintln!("{file}: {problem}");
        }
    };
    let mut summaries = Vec::new();
    for paper in &PAPERS {
        let required = papers::required(paper.list)?;
        let report = papers::check(&read(root, paper.file)?, &required, &in_tree);
        print_problems(paper.file, &report.problems);
        println!(
            "{}: {} rows; shown by code and test: {}; departures: {}; without test: {}; not yet: {}",
            paper.file,
            report.rows,
            report.shown,
            report.departures,
            report.untested,
            report.not_yet.values().sum::<usize>(),
        );
        for (work, rows) in &report.not_yet {
            println!("    not yet: {work}: {rows}");
        }
        summaries.push(report.summary(paper));
    }
    print_problems(
        SUMMARY,
        &papers::check_summary(&read(root, SUMMARY)?, &summaries),
    );
    for file in CITING {
        let cited = papers::check_citations(&read(root, file)?, &in_tree);
        print_problems(file, &cited.problems);
        println!("{file}: {} lines cite a test", cited.cited);
    }
    Ok(is_sound)
}

fn check_engine(root: &Path) -> Result<bool> {
    let mut files = Vec::new();
    let mut is_source = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
    collect(&root.join(ENGINE).join("src"), &mut is_source, &mut files)?;
    let mut sources = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        let name = file
            .strip_prefix(root)
            .unwrap_or(&file)
            .display()
            .to_string();
        sources.push((name, text));
    }
    sources.sort();
    let manifest = read(root, &format!("{ENGINE}/Cargo.toml"))?;
    let problems = engine::check(&manifest, &sources);
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() {
        println!(
            "{ENGINE}: {} files, no_std, no unsafe, no I/O, clock or thread",
            sources.len()
        );
    }
    Ok(problems.is_empty())
}

/// Applies the edits of all planted bugs: the copy's texts, or nothing if some do not apply.
fn planted(root: &Path) -> Result<Option<Planted>> {
    let mut bugs = Vec::new();
    let mut names: Vec<PathBuf> = std::fs::read_dir(root.join(PLANTED))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    names.sort();
    for name in names {
        let is_list = name
            .extension()
            .is_some_and(|extension| extension == "toml");
        if is_list && !name.ends_with("survivors.toml") {
            let text = std::fs::read_to_string(&name)?;
            bugs.extend(planted::parse(&name.display().to_string(), &text)?);
        }
    }
    let module = read(root, &format!("{PLANTED}/mutation.rs"))?;
    let in_tree = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    match planted::plant(&bugs, &module, &in_tree) {
        Ok(planted) => {
            println!(
                "{PLANTED}: {} bugs, each of their {} edits applies once",
                planted.bugs, planted.edits
            );
            Ok(Some(planted))
        }
        Err(problems) => {
            for problem in &problems {
                eprintln!("{PLANTED}: {problem}");
            }
            Ok(None)
        }
    }
}

/// Makes the copy of the tree that has the planted bugs and their tests, or brings it up to date.
fn plant(root: &Path) -> Result<bool> {
    let Some(mut planted) = planted(root)? else {
        return Ok(false);
    };
    // Its other tests are one program, which is no part of this.
    let manifest = "crates/engine/Cargo.toml";
    let text = read(root, manifest)? + "\n[[test]]\nname = \"transport_mutations\"\n";
    planted.files.insert(manifest.to_owned(), text);
    copy::write(root, Path::new(COPY), &TESTS, planted.files)?;
    println!("{COPY}: the tree with all of them");
    Ok(true)
}

fn read(root: &Path, path: &str) -> Result<String> {
    std::fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
}

/// All files under a directory that are wanted, but those of builds.
fn collect(
    directory: &Path,
    is_wanted: &mut dyn FnMut(&Path) -> bool,
    files: &mut Vec<PathBuf>,
) -> Result<()> {
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, is_wanted, files)?;
            }
        } else if is_wanted(&path) {
            files.push(path);
        }
    }
    Ok(())
}
