//! What is kept of a run, for programs: one JSON object a line. It is written first and read back
//! (`reading`), and tables and pictures are made of what was read; so they say what it says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalogue::{Peer, RAW, Waits};
use crate::figure::Figure;
use crate::pin::Cores;
use crate::run::{Effort, Measured, Results};
use crate::statistics::{Round, State, Summary, summarize};

/// Where and when, and with which versions.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    /// Of the code that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// How long the run took, but for installing and building.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) took_s: Option<u64>,
    /// Coordinated universal time.
    pub(crate) date: String,
    pub(crate) kernel: String,
    pub(crate) processor: String,
    /// Processors that the system has.
    #[serde(default)]
    pub(crate) processors: usize,
    /// Whether they are a virtual machine's.
    #[serde(default)]
    pub(crate) is_virtual: bool,
    #[serde(default)]
    pub(crate) memory_bytes: u64,
    /// Processes that wanted to run in the minute before, on average.
    #[serde(default)]
    pub(crate) load: Option<f64>,
    pub(crate) cores: [usize; 2],
    pub(crate) rounds: usize,
    pub(crate) quick: bool,
    /// By library.
    pub(crate) versions: BTreeMap<String, String>,
    /// Libraries that could not be installed or built, and why.
    pub(crate) unavailable: BTreeMap<String, String>,
}

impl Circumstances {
    pub(crate) fn now(cores: Cores, effort: Effort, quick: bool) -> Result<Self> {
        let system = rustix::system::uname();
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let information = read("/proc/cpuinfo");
        let of_each = |name: &str| {
            let lines = information.lines().filter_map(|line| {
                let rest = line.strip_prefix(name)?.trim_start();
                Some(rest.strip_prefix(':')?.trim().to_owned())
            });
            lines.collect::<Vec<String>>()
        };
        let memory_kib = read("/proc/meminfo")
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        Ok(Self {
            date: date(rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec),
            kernel: system.release().to_string_lossy().into_owned(),
            processor: of_each("model name")
                .into_iter()
                .next()
                .unwrap_or_else(|| "an unknown processor".to_owned()),
            processors: of_each("processor").len(),
            is_virtual: of_each("flags")
                .first()
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            memory_bytes: memory_kib.unwrap_or_default() * 1024,
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok()),
            cores: [cores.receiver, cores.sender],
            rounds: effort.rounds,
            quick,
            ..Self::default()
        })
    }

    /// When and on which machine, as tables begin that name no cores.
    pub(crate) fn measured(&self) -> String {
        format!(
            "Measured {} on {}, {} processors{}, Linux {}, load {:.1} beforehand",
            self.date,
            self.processor,
            self.processors,
            if self.is_virtual { " (virtual)" } else { "" },
            self.kernel,
            self.load.unwrap_or_default(),
        )
    }

    /// How many rounds, and of which length.
    pub(crate) fn rounds(&self) -> String {
        format!(
            "{} {}rounds",
            self.rounds,
            if self.quick { "short " } else { "" }
        )
    }

    /// When, of which commit, and on which machine, for people.
    pub(crate) fn told(&self) -> String {
        let commit = self
            .commit
            .as_ref()
            .map_or(String::new(), |commit| format!(" at commit {commit}"));
        let took = self.took_s.map_or(String::new(), |seconds| {
            format!(", in {} minutes", seconds.div_ceil(60))
        });
        format!("{}{commit}{took} on {}", self.date, self.machine())
    }

    /// Libraries and their versions, for people.
    pub(crate) fn versions(&self) -> String {
        let versions = self.versions.iter();
        let versions: Vec<String> = versions
            .map(|(library, version)| format!("{library} {version}"))
            .collect();
        versions.join(", ")
    }

    /// Whether the run had that library, or was to have it.
    pub(crate) fn names(&self, library: &str) -> bool {
        self.versions.contains_key(library) || self.unavailable.contains_key(library)
    }

    /// The machine, for people.
    pub(crate) fn machine(&self) -> String {
        let mut text = self.processor.clone();
        let gibibytes = self.memory_bytes as f64 / f64::from(1 << 30);
        match (self.processors, self.is_virtual) {
            (0, _) => {}
            (many, true) => text += &format!(", {many} virtual processors, {gibibytes:.0} GiB"),
            (many, false) => text += &format!(", {many} processors, {gibibytes:.0} GiB"),
        }
        let [receiver, sender] = self.cores;
        text += &format!(
            " (cores {receiver} and {sender} used), Linux {}",
            self.kernel
        );
        if let Some(load) = self.load {
            text += &format!(", load {load:.1} beforehand");
        }
        text
    }
}

/// `YYYY-MM-DD HH:MM UTC`, by the civil calendar's 400-year cycle.
fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    let minutes = seconds.rem_euclid(86_400) / 60;
    // Years that begin in March end with the day that leap years add.
    let shifted = days + 719_468;
    let cycle = shifted.div_euclid(146_097);
    let day_of_cycle = shifted.rem_euclid(146_097);
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
        - day_of_cycle / 146_096)
        / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_cycle + cycle * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        minutes / 60,
        minutes % 60
    )
}

/// A run, ready to be shown.
pub(crate) struct Report {
    pub(crate) circumstances: Circumstances,
    pub(crate) peers: Vec<Peer>,
    pub(crate) measured: Measured,
    /// The state of the cores in most of the rounds, which all figures are of if they can be.
    pub(crate) state: Option<State>,
}

/// One place of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Measured(Summary),
    /// The peer does not do this; why.
    Unsupported(String),
    Failed(String),
    /// Not asked for.
    Absent,
}

impl Report {
    pub(crate) fn new(circumstances: Circumstances, peers: Vec<Peer>, measured: Measured) -> Self {
        let state = measured.usual_state();
        Self {
            circumstances,
            peers,
            measured,
            state,
        }
    }

    /// One of ours that others are compared with: all rounds in which it stood beside somebody.
    fn reference(&self, name: &str, figure: Figure) -> Option<Summary> {
        let rounds: Vec<Round> = self
            .peers
            .iter()
            .filter(|peer| peer.reference(figure) == name)
            .filter_map(|peer| self.measured.figures.get(peer.name)?.get(&figure))
            .flat_map(|results| &results.rounds)
            .map(|round| Round {
                value: round.ours,
                ..round.clone()
            })
            .collect();
        summarize(figure, &rounds, self.state)
    }

    /// The raw hand-off of all rounds: least, median, most, in nanoseconds.
    pub(crate) fn raw_ns(&self) -> Option<[f64; 3]> {
        let mut raw: Vec<f64> = self
            .measured
            .figures
            .values()
            .flat_map(BTreeMap::values)
            .flat_map(|results| &results.rounds)
            .flat_map(|round| &round.raw_ns)
            .copied()
            .collect();
        raw.sort_by(f64::total_cmp);
        Some([*raw.first()?, crate::statistics::median(&raw), *raw.last()?])
    }

    pub(crate) fn cell(&self, peer: &Peer, figure: Figure) -> Cell {
        if peer.name == peer.reference(figure) {
            return self
                .reference(peer.name, figure)
                .map_or(Cell::Absent, Cell::Measured);
        }
        let Some(results) = self
            .measured
            .figures
            .get(peer.name)
            .and_then(|figures| figures.get(&figure))
        else {
            return match self.failure(peer) {
                Some(reason) if peer.measures(figure) => Cell::Failed(reason),
                _ => Cell::Absent,
            };
        };
        match (summarize(figure, &results.rounds, self.state), results) {
            (Some(summary), _) => Cell::Measured(summary),
            (
                None,
                Results {
                    unsupported: Some(reason),
                    ..
                },
            ) => Cell::Unsupported(reason.clone()),
            (
                None,
                Results {
                    failure: Some(reason),
                    ..
                },
            ) => Cell::Failed(reason.clone()),
            (None, _) => match self.failure(peer) {
                Some(reason) => Cell::Failed(reason),
                None => Cell::Absent,
            },
        }
    }

    /// Why nothing, or not all, of this peer could be run.
    pub(crate) fn failure(&self, peer: &Peer) -> Option<String> {
        let unavailable = self.circumstances.unavailable.get(peer.library);
        unavailable
            .or_else(|| self.measured.failures.get(peer.name))
            .cloned()
    }

    /// The whole run as one object, without the single rounds.
    pub(crate) fn json(&self, figures: &[Figure]) -> Value {
        let peers: Vec<Value> = self
            .peers
            .iter()
            .map(|peer| {
                let rows: Vec<Value> = figures
                    .iter()
                    .filter_map(|&figure| {
                        let mut row = serde_json::to_value(figure).ok()?;
                        match self.cell(peer, figure) {
                            Cell::Measured(summary) => row["summary"] = json!(summary),
                            Cell::Unsupported(reason) => row["unsupported"] = json!(reason),
                            Cell::Failed(reason) => row["failed"] = json!(reason),
                            Cell::Absent => return None,
                        }
                        Some(row)
                    })
                    .collect();
                json!({
                    "peer": peer.name,
                    "label": peer.label,
                    "library": peer.library,
                    "sleeps": peer.waits == Waits::Sleeps,
                    "failure": self.failure(peer),
                    "figures": rows,
                })
            })
            .collect();
        json!({
            "circumstances": self.circumstances,
            "reference": Waits::Polls.reference(),
            "reference_of_those_that_sleep": Waits::Sleeps.reference(),
            "raw": RAW,
            "raw_handoff_ns": self.raw_ns(),
            "state": self.state,
            "peers": peers,
        })
    }

    /// Every round of every figure.
    pub(crate) fn write_raw(&self, path: &Path) -> Result<()> {
        let file = File::create(path).with_context(|| format!("writing {}", path.display()))?;
        let mut file = BufWriter::new(file);
        let mut line = |value: Value| -> Result<()> {
            serde_json::to_writer(&mut file, &value)?;
            file.write_all(b"\n")?;
            Ok(())
        };
        line(json!({ "run": self.circumstances }))?;
        for peer in &self.peers {
            if let Some(reason) = self.failure(peer) {
                line(json!({ "peer": peer.name, "failure": reason }))?;
            }
            for (figure, results) in self.measured.figures.get(peer.name).into_iter().flatten() {
                let rounds = &results.rounds;
                let of = |value: fn(&Round) -> f64| {
                    rounds
                        .iter()
                        .map(|round| short(value(round)))
                        .collect::<Vec<_>>()
                };
                let mut row = serde_json::to_value(figure)?;
                row["peer"] = json!(peer.name);
                if let Some(reason) = &results.unsupported {
                    row["unsupported"] = json!(reason);
                } else {
                    row["messages"] = json!(results.count);
                    row["values"] = json!(of(|round| round.value));
                    row["ours"] = json!(of(|round| round.ours));
                }
                if !rounds.is_empty() {
                    let steady: Vec<bool> = rounds.iter().map(|round| round.steady).collect();
                    row["steady"] = json!(steady);
                    let repeats: Vec<usize> = rounds.iter().map(|round| round.repeats).collect();
                    row["repeats"] = json!(repeats);
                    let raw = rounds
                        .iter()
                        .map(|round| round.raw_ns.iter().map(|&ns| short(ns)).collect());
                    row["raw_ns"] = json!(raw.collect::<Vec<Vec<f64>>>());
                }
                if let Some(reason) = &results.failure {
                    row["failure"] = json!(reason);
                }
                line(row)?;
            }
        }
        file.flush()?;
        Ok(())
    }
}

/// To a tenth of a nanosecond, or four digits: more would be noise.
fn short(value: f64) -> f64 {
    if value < 1e5 {
        (value * 10.0).round() / 10.0
    } else {
        let unit = 10_f64.powi(value.log10().floor() as i32 - 3);
        (value / unit).round() * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_263_180), "2026-11-21 12:13 UTC");
        assert_eq!(date(4_107_542_400 - 60), "2100-02-28 23:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn four_digits() {
        assert_eq!(short(123.456), 123.5);
        assert_eq!(short(123_456_789.0), 123_500_000.0);
    }
}
