//! Locks: acquisitions and releases a second, of Hamlyn's lock manager beside a lock in Redis.
//!
//! The program of both is `peers/locks`: a server and clients in processes of their own, which are
//! not bound. Both take turns in each round, and ratios are of one round.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::catalogue::{Build, HAMLYN, Library, Places};
use crate::interruption;
use crate::kept::Kept;
use crate::pin::Cores;
use crate::prepare;
use crate::publication;
use crate::record::Circumstances;
use crate::run::Effort;
use crate::statistics::median;

const REDIS: &str = "locks_redis";
/// Clients, and if all of them want one lock.
const FIGURES: [(u32, bool); 5] = [(1, false), (2, false), (4, false), (2, true), (4, true)];
/// Both systems, ours first.
const SYSTEMS: [(&str, &str); 2] = [(HAMLYN, "hamlyn"), (REDIS, "redis")];

const LIBRARIES: &[Library] = &[
    Library {
        name: HAMLYN,
        label: "Hamlyn",
        build: Build::Cargo {
            packages: &["compare-locks"],
        },
        version: &["git", "describe", "--always", "--dirty"],
    },
    Library {
        name: REDIS,
        label: "Redis",
        build: Build::Nothing,
        version: &["redis-server", "--version"],
    },
];

/// One figure: acquisitions a second, round by round, of each system.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    clients: u32,
    is_contended: bool,
    hamlyn: Vec<f64>,
    redis: Vec<f64>,
}

/// All of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    circumstances: Circumstances,
    rows: Vec<Row>,
    failures: BTreeMap<String, String>,
}

pub(crate) fn compare(
    places: &Places,
    cores: Cores,
    rounds: usize,
    lasts: Duration,
    install: bool,
    quick: bool,
) -> Result<Report> {
    let effort = Effort {
        rounds,
        lasts,
        time_max: Duration::MAX,
    };
    let mut circumstances = Circumstances::now(cores, effort, quick)?;
    circumstances.commit = publication::commit(&places.compare);
    // Redis is skipped aloud if it cannot be had.
    prepare::all(LIBRARIES, &[], places, install, &mut circumstances)?;
    let mut failures = BTreeMap::new();
    let mut rows: Vec<Row> = (FIGURES.iter())
        .map(|&(clients, is_contended)| Row {
            clients,
            is_contended,
            hamlyn: Vec::new(),
            redis: Vec::new(),
        })
        .collect();
    let begun = Instant::now();
    for round in 0..rounds {
        for row in &mut rows {
            let mut systems = SYSTEMS;
            systems.rotate_left(round % 2);
            for (library, system) in systems {
                interruption::check()?;
                let key = format!("{system}, {}", row.name());
                if !circumstances.versions.contains_key(library) || failures.contains_key(&key) {
                    continue;
                }
                eprintln!("== round {} of {rounds}: {key}", round + 1);
                match row.measure(places, system, lasts) {
                    Ok(rate) if library == HAMLYN => row.hamlyn.push(rate),
                    Ok(rate) => row.redis.push(rate),
                    Err(error) => {
                        interruption::check()?;
                        eprintln!("{key}: {error:#}");
                        failures.insert(key, format!("{error:#}"));
                    }
                }
            }
        }
    }
    circumstances.took_s = Some(begun.elapsed().as_secs());
    Ok(Report {
        circumstances,
        rows,
        failures,
    })
}

impl Row {
    fn name(&self) -> String {
        match (self.clients, self.is_contended) {
            (1, _) => "1 client".to_owned(),
            (clients, false) => format!("{clients} clients, a lock each"),
            (clients, true) => format!("{clients} clients, one lock"),
        }
    }

    fn measure(&self, places: &Places, system: &str, lasts: Duration) -> Result<f64> {
        let which = if self.is_contended { "one" } else { "own" };
        let output = Command::new(places.binaries.join("compare-locks"))
            .args(["run", system, &self.clients.to_string(), which])
            .arg(lasts.as_millis().to_string())
            .stdin(Stdio::null())
            .output()
            .context("starting compare-locks")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", errors.trim());
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim()
            .parse()
            .with_context(|| format!("what is {text:?}?"))
    }
}

impl Kept for Report {
    const NAME: &'static str = "locks";

    fn markdown(&self) -> String {
        let at = &self.circumstances;
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}: thousands of acquisitions (each with its release) a second, of all clients \
             together; the median of {}, in which both take turns, and in brackets the median of \
             the ratios. Server and clients are processes, which are not bound. Redis: `SET NX PX` \
             and a script that compares and deletes, over a UNIX socket; a client that does not \
             get the lock tries again at once.\n",
            at.measured(),
            at.rounds(),
        );
        let _ = writeln!(text, "| | Hamlyn | Redis |\n|---|---:|---:|");
        let thousands = |values: &[f64]| match values {
            [] => "-".to_owned(),
            values => format!("{:.1}", median(values) / 1e3),
        };
        for row in &self.rows {
            let ratios = row
                .hamlyn
                .iter()
                .zip(&row.redis)
                .map(|(ours, theirs)| theirs / ours);
            let ratios: Vec<f64> = ratios.collect();
            let ratio = match &ratios[..] {
                [] => String::new(),
                ratios => format!(" (×{:.2})", median(ratios)),
            };
            let (ours, theirs) = (thousands(&row.hamlyn), thousands(&row.redis));
            let _ = writeln!(text, "| {} | {ours} | {theirs}{ratio} |", row.name());
        }
        for (what, reason) in at.unavailable.iter().chain(&self.failures) {
            let _ = writeln!(text, "\n{what}: {reason}");
        }
        for (what, version) in &at.versions {
            let _ = writeln!(text, "\n{what}: {version}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_peer_are_shown() {
        let row = |redis: Vec<f64>| Row {
            clients: 2,
            is_contended: true,
            hamlyn: vec![2e5, 4e5],
            redis,
        };
        let effort = Effort {
            rounds: 2,
            lasts: Duration::from_millis(1),
            time_max: Duration::MAX,
        };
        let cores = Cores::choose(&[]).unwrap();
        let report = Report {
            circumstances: Circumstances::now(cores, effort, true).unwrap(),
            rows: vec![row(vec![1e5, 1e5]), row(Vec::new())],
            failures: BTreeMap::from([("redis".to_owned(), "it is not there".to_owned())]),
        };
        let text = report.markdown();
        assert!(
            text.contains("| 2 clients, one lock | 300.0 | 100.0 (×0.38) |"),
            "{text}"
        );
        assert!(
            text.contains("| 2 clients, one lock | 300.0 | - |"),
            "{text}"
        );
        assert!(text.contains("redis: it is not there"), "{text}");
    }
}
