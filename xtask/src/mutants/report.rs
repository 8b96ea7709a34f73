//! What became of the mutants, as a table or as JSON; and those that live for a reason.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::Options;
use super::run::Outcome;

/// Of so many of a hundred, killed or argued, the sample is good.
const GOAL: usize = 95;

/// A mutant that may live, and why.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub(super) struct Survivor {
    file: String,
    function: String,
    /// As the list of those that live says it.
    change: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    survivor: Vec<Survivor>,
}

pub(super) fn parse(name: &str, text: &str) -> Result<Vec<Survivor>> {
    let file: File = toml::from_str(text).with_context(|| format!("reading {name}"))?;
    Ok(file.survivor)
}

#[derive(Default, Serialize, PartialEq, Debug)]
struct Share {
    mutants: usize,
    killed_by_tests: usize,
    killed_by_scenarios: usize,
    killed: usize,
    argued: usize,
}

impl Share {
    fn add(&mut self, outcome: &Outcome, is_argued: bool) {
        let (tests, scenarios) = (outcome.tests.is_killed(), outcome.scenarios.is_killed());
        self.mutants += 1;
        self.killed_by_tests += usize::from(tests);
        self.killed_by_scenarios += usize::from(scenarios);
        self.killed += usize::from(tests || scenarios);
        self.argued += usize::from(!tests && !scenarios && is_argued);
    }
}

#[derive(Serialize)]
struct Report<'a> {
    seed: u64,
    scenarios: u64,
    total: Share,
    crates: BTreeMap<String, Share>,
    outcomes: &'a [Outcome],
}

/// Prints the report. Whether the sample is good.
pub(super) fn print(options: &Options, outcomes: &[Outcome], survivors: &[Survivor]) -> bool {
    let mut report = Report {
        seed: options.seed,
        scenarios: options.scenarios,
        total: Share::default(),
        crates: BTreeMap::new(),
        outcomes,
    };
    for outcome in outcomes {
        let is_argued = reason(outcome, survivors).is_some();
        report.total.add(outcome, is_argued);
        let share = report.crates.entry(part(&outcome.file)).or_default();
        share.add(outcome, is_argued);
    }
    let total = &report.total;
    let is_good = (total.killed + total.argued) * 100 >= total.mutants * GOAL;
    if options.json {
        match serde_json::to_string_pretty(&report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("mutants: {error}"),
        }
        return is_good;
    }
    println!(
        "{:12}{:>9}{:>16}{:>20}{:>9}{:>9}",
        "", "mutants", "by tests", "by scenarios alone", "by both", "argued"
    );
    let all = ("all".to_owned(), total);
    for (name, share) in report
        .crates
        .iter()
        .map(|(name, share)| (name.clone(), share))
        .chain([all])
    {
        let of = |count: usize| {
            format!(
                "{count} ({:.1} %)",
                100.0 * count as f64 / share.mutants.max(1) as f64
            )
        };
        println!(
            "{name:12}{:>9}{:>16}{:>20}{:>9}{:>9}",
            share.mutants,
            of(share.killed_by_tests),
            of(share.killed_by_scenarios),
            share.killed,
            share.argued
        );
    }
    let lived = |outcome: &&Outcome| !outcome.tests.is_killed() && !outcome.scenarios.is_killed();
    for outcome in outcomes.iter().filter(lived) {
        let Outcome {
            number,
            file,
            line,
            function,
            change,
            ..
        } = outcome;
        println!("lives: {number} {file}:{line} {function}: {change}");
        match reason(outcome, survivors) {
            Some(reason) => println!("    {reason}"),
            None => println!(
                "    tests: {:?}, scenarios: {:?}",
                outcome.tests, outcome.scenarios
            ),
        }
    }
    println!(
        "--seed {}: tests and scenarios kill {} of {}, {} more are argued; the goal is {GOAL} %",
        options.seed, total.killed, total.mutants, total.argued
    );
    is_good
}

/// The transport is a part of the engine that counts by itself.
fn part(file: &str) -> String {
    if file.starts_with("crates/engine/src/transport/") {
        return "transport".to_owned();
    }
    let name = file.split('/').nth(1).unwrap_or(file);
    if name == "hamlyn" { "library" } else { name }.to_owned()
}

fn reason<'a>(outcome: &Outcome, survivors: &'a [Survivor]) -> Option<&'a str> {
    let is = |survivor: &&Survivor| {
        survivor.file == outcome.file
            && survivor.function == outcome.function
            && survivor.change == outcome.change
    };
    survivors
        .iter()
        .find(is)
        .map(|survivor| survivor.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::run::Verdict;

    #[test]
    fn shares_count_those_that_live_for_a_reason_apart() {
        let list = "[[survivor]]\nfile = \"crates/engine/src/transport/a.rs\"\nfunction = \"f\"\n\
                    change = \"1 => 2\"\nreason = \"It is a hint.\"\n";
        let survivors = parse("survivors", list).expect("a list");
        let outcome = |tests: Verdict, scenarios: Verdict| Outcome {
            number: 0,
            file: "crates/engine/src/transport/a.rs".to_owned(),
            line: 1,
            function: "f".to_owned(),
            change: "1 => 2".to_owned(),
            tests,
            scenarios,
        };
        let killed = || Verdict::Killed("a".to_owned());
        let lived = outcome(Verdict::Lived, Verdict::Unreached);
        assert_eq!(reason(&lived, &survivors), Some("It is a hint."));
        assert_eq!(reason(&lived, &[]), None);
        let mut share = Share::default();
        share.add(&lived, true);
        share.add(&outcome(killed(), killed()), true);
        share.add(
            &outcome(Verdict::Hung("a".to_owned()), Verdict::Lived),
            false,
        );
        share.add(&outcome(Verdict::Lived, killed()), false);
        let expected = Share {
            mutants: 4,
            killed_by_tests: 2,
            killed_by_scenarios: 2,
            killed: 3,
            argued: 1,
        };
        assert_eq!(share, expected);
        assert_eq!(part(&lived.file), "transport");
        assert_eq!(part("crates/hamlyn/src/error.rs"), "library");
        for json in ["--seed", "--json"] {
            let given: &[&str] = if json == "--json" {
                &[json]
            } else {
                &[json, "1"]
            };
            let options = Options::parse(given).expect("options");
            assert!(print(&options, std::slice::from_ref(&lived), &survivors));
            assert!(!print(&options, std::slice::from_ref(&lived), &[]));
        }
    }
}
