//! Mutants: a sample of small changes of the product, each of which a test or a scenario should
//! notice (decision 0032).
//!
//! A seed draws them among all that [`find`] finds. One copy of the tree has all of the sample,
//! each behind a switch that the environment sets, so one build is enough. A mutant that does not
//! compile gives its place to another. Every mutant is run in the test programs that reach it,
//! until one fails; and in the scenarios of the simulator by themselves.

mod build;
mod find;
mod report;
mod run;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{collect, copy, read};
use find::Mutant;

pub(crate) const USAGE: &str = "[--seed N] [--count N] [--scenarios N] [--jobs N] [--longest SECONDS] [--only NUMBER,..] [--json]";

/// The tree that has them.
const COPY: &str = "target/mutants";
/// Whose sources have mutants.
const SOURCES: [&str; 4] = ["engine", "ring", "link", "hamlyn"];
/// What the copy has besides: the logic of fuzz targets, which tests include, and the scenarios by
/// themselves.
const MORE: [(&str, &str); 2] = [
    ("lab/fuzz", "lab/fuzz"),
    ("lab/planted/mutants/sim", "lab/sim/tests"),
];
const MODULE: (&str, &str) = (
    "lab/planted/mutants/mutant.rs",
    "crates/engine/src/mutant.rs",
);
const ROOT: &str = "crates/engine/src/lib.rs";
/// Tests of what sources may say, which the switch breaks: they compile files of the engine by
/// themselves, or read them.
const LEFT_OUT: [&str; 2] = [
    "crates/engine/tests/loom.rs",
    "crates/engine/tests/no_io.rs",
];
const SURVIVORS: &str = "lab/planted/survivors.toml";

struct Options {
    seed: u64,
    count: usize,
    scenarios: u64,
    jobs: usize,
    /// A program that takes longer is not run for each mutant.
    longest: Duration,
    only: Option<BTreeSet<usize>>,
    json: bool,
}

impl Options {
    fn parse(given: &[&str]) -> Result<Self> {
        let now = std::time::UNIX_EPOCH.elapsed()?.as_secs();
        let mut options = Options {
            seed: now,
            count: 300,
            scenarios: 100,
            jobs: 2,
            longest: Duration::from_secs(90),
            only: None,
            json: false,
        };
        let mut given = given.iter();
        while let Some(name) = given.next() {
            if *name == "--json" {
                options.json = true;
                continue;
            }
            let value = given
                .next()
                .with_context(|| format!("{name} wants a value; {USAGE}"))?;
            match *name {
                "--seed" => options.seed = value.parse()?,
                "--count" => options.count = value.parse()?,
                "--scenarios" => options.scenarios = value.parse()?,
                "--jobs" => options.jobs = value.parse()?,
                "--longest" => options.longest = Duration::from_secs(value.parse()?),
                "--only" => {
                    let numbers = value.split(',').map(str::parse).collect::<Result<_, _>>();
                    options.only = Some(numbers?);
                }
                _ => bail!("unknown: {name}; {USAGE}"),
            }
        }
        Ok(options)
    }
}

/// Whether enough of the sample is killed, or argued to be harmless.
pub(crate) fn run(root: &Path, given: &[&str]) -> Result<bool> {
    let options = Options::parse(given)?;
    let survivors = report::parse(SURVIVORS, &read(root, SURVIVORS)?)?;
    let tree = Tree::read(root)?;
    eprintln!(
        "mutants: {} places of {} files; --seed {} draws {}",
        tree.mutants.len(),
        tree.files.len(),
        options.seed,
        options.count
    );
    let sample = sample(root, &tree, &options)?;
    let programs = build::test_programs(&root.join(COPY))?;
    let results = run::run(root, &options, &sample, programs)?;
    Ok(report::print(&options, &results, &survivors))
}

/// The sources, and all mutants that they could have.
struct Tree {
    files: BTreeMap<String, String>,
    mutants: Vec<Mutant>,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let mut tree = Tree {
            files: BTreeMap::new(),
            mutants: Vec::new(),
        };
        for name in SOURCES {
            let mut files = Vec::new();
            let source = root.join("crates").join(name).join("src");
            collect(&source, &mut |path| is_product(path), &mut files)?;
            for path in files {
                let file = path.strip_prefix(root)?.display().to_string();
                tree.files.insert(file.clone(), read(root, &file)?);
            }
        }
        for (file, text) in &tree.files {
            let found = find::find(file, text).with_context(|| format!("parsing {file}"))?;
            tree.mutants.extend(found);
        }
        Ok(tree)
    }

    /// What the copy has instead of the tree's files; and where each mutant is.
    fn with(&self, chosen: &[usize]) -> (BTreeMap<String, String>, Vec<build::Place>) {
        let mut texts = BTreeMap::new();
        let mut places = Vec::new();
        for (file, text) in &self.files {
            let of_file: Vec<(usize, &Mutant)> = (chosen.iter().copied().enumerate())
                .map(|(number, mutant)| (number, &self.mutants[mutant]))
                .filter(|(_, mutant)| mutant.file == *file)
                .collect();
            let is_engine = file.starts_with("crates/engine/src/");
            let from = if is_engine { "crate" } else { "hamlyn_engine" };
            let written = write::write(text, &of_file, &format!("{from}::mutant::is_on"));
            for (number, range) in written.places {
                places.push(build::Place {
                    file: file.clone(),
                    range,
                    mutant: chosen[number],
                });
            }
            texts.insert(file.clone(), written.text);
        }
        (texts, places)
    }
}

/// Sources of the product, not of its tests.
fn is_product(path: &Path) -> bool {
    let is_tests = path.iter().any(|part| {
        let part = part.to_string_lossy();
        let part = part.strip_suffix(".rs").unwrap_or(&part);
        part == "tests" || part.ends_with("_tests")
    });
    !is_tests && path.extension().is_some_and(|extension| extension == "rs")
}

/// Draws the sample, and writes the copy that has it and compiles.
fn sample<'a>(root: &Path, tree: &'a Tree, options: &Options) -> Result<Vec<&'a Mutant>> {
    let mut order: Vec<usize> = (0..tree.mutants.len()).collect();
    shuffle(&mut order, options.seed);
    loop {
        let chosen: Vec<usize> = order.iter().copied().take(options.count).collect();
        let (mut texts, places) = tree.with(&chosen);
        let lib = texts.get(ROOT).context("the engine has a root")?;
        let lib = format!("{lib}\n#[allow(missing_docs)]\npub mod mutant;\n");
        texts.insert(ROOT.to_owned(), lib);
        texts.insert(MODULE.1.to_owned(), read(root, MODULE.0)?);
        copy::write(root, Path::new(COPY), &MORE, texts)?;
        for file in LEFT_OUT {
            // Not removed, as others name them.
            std::fs::write(root.join(COPY).join(file), "")?;
        }
        let refused = build::refused(&root.join(COPY), &places)?;
        if refused.is_empty() {
            return Ok(chosen.iter().map(|number| &tree.mutants[*number]).collect());
        }
        eprintln!(
            "mutants: {} do not compile; others are drawn",
            refused.len()
        );
        order.retain(|number| !refused.contains(number));
    }
}

/// The same order for the same seed: Fisher and Yates, with splitmix64.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut state = seed;
    for last in (1..order.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^= word >> 31;
        let range = last as u64 + 1;
        order.swap(last, (word % range) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_order() {
        let order = |seed| {
            let mut order: Vec<usize> = (0..50).collect();
            shuffle(&mut order, seed);
            order
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn tests_are_no_product() {
        for (path, is) in [
            ("crates/link/src/pair.rs", true),
            ("crates/link/src/pair/tests.rs", false),
            ("crates/link/src/pair/line_tests.rs", false),
            ("crates/link/src/tests/a.rs", false),
            ("crates/link/src/a.md", false),
        ] {
            assert_eq!(is_product(Path::new(path)), is, "{path}");
        }
    }
}
