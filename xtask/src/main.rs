//! Checks of the repository itself: `cargo run -p xtask -- check-papers | check-engine`.
//!
//! Each check is a pure function of texts, so its tests can show that it fails.
#![forbid(unsafe_code)]

mod engine;
mod mutations;
mod papers;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

/// The rows that `docs/papers.md` must have.
const REQUIRED: &str = concat!(
    include_str!("../data/hamlyn-ids.txt"),
    include_str!("../data/virtual-networks-ids.txt"),
);
const PAPERS: &str = "docs/papers.md";
/// Cites tests, but has no rows that it must have.
const SECURITY: &str = "docs/security.md";
const ENGINE: &str = "crates/engine";

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
        _ => bail!("usage: cargo run -p xtask -- check-papers | check-engine"),
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
    let table = read(root, PAPERS)?;
    let required = papers::required(REQUIRED)?;
    let in_tree = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let report = papers::check(&table, &required, &in_tree);
    for problem in &report.problems {
        eprintln!("{PAPERS}: {problem}");
    }
    let cited = papers::check_citations(&read(root, SECURITY)?, &in_tree);
    for problem in &cited.problems {
        eprintln!("{SECURITY}: {problem}");
    }
    println!(
        "{PAPERS}: {} rows, {} of them cite a test; {} departures: {}; no test for {}: {}",
        report.rows,
        report.tested,
        report.departures.len(),
        report.departures.join(" "),
        report.untested.len(),
        report.untested.join(" "),
    );
    println!("{SECURITY}: {} lines cite a test", cited.tested);
    Ok(report.problems.is_empty() && cited.problems.is_empty())
}

fn check_engine(root: &Path) -> Result<bool> {
    let mut files = Vec::new();
    collect(&root.join(ENGINE).join("src"), &mut files)?;
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
    let mut problems = engine::check(&manifest, &sources);
    problems.extend(mutations::check(&manifests(root)?));
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() {
        println!(
            "{ENGINE}: {} files, no_std, no unsafe, no I/O, clock or thread; no product with deliberate bugs",
            sources.len()
        );
    }
    Ok(problems.is_empty())
}

/// All manifests of the workspace, with their names.
fn manifests(root: &Path) -> Result<Vec<(String, String)>> {
    let workspace = read(root, "Cargo.toml")?;
    let members = workspace
        .lines()
        .find_map(|line| line.strip_prefix("members = ["))
        .context("the workspace lists its members in one line")?;
    let members = members.split('"').skip(1).step_by(2);
    let mut names: Vec<String> = members.map(|name| format!("{name}/Cargo.toml")).collect();
    names.push("Cargo.toml".to_owned());
    names
        .into_iter()
        .map(|name| Ok((name.clone(), read(root, &name)?)))
        .collect()
}

fn read(root: &Path, path: &str) -> Result<String> {
    std::fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))
}

/// All Rust sources under a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
