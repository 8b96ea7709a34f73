//! What Split-C's operations cost (`Split-C 5`): what Table 1 lists, the bandwidth of bulk gets and
//! stores (Figure 6), how often a processor must poll (Figures 7, 8), and random updates of a table
//! (GUPS), under each strategy with copied placement, and with direct placement.
//!
//! Each job is started by `hamlyn run` as any other. Processor 0 measures, and prints what it
//! found.

mod operations;
mod polling;
mod processor;
mod updates;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use comfy_table::{Table, presets};
use serde::{Deserialize, Serialize};

use super::pictures::{Curve, Picture, draw};
use super::{Depth, Effort, median};
use hamlyn_cli::actor::this_program;

pub(crate) use processor::run as run_processor;

/// The implementations that are compared: a name, a strategy and a placement.
const IMPLEMENTATIONS: [(&str, &str, &str); 5] = [
    ("proc", "proc", "copied"),
    ("np", "np", "copied"),
    ("inject", "inject", "copied"),
    ("receive", "receive", "copied"),
    ("direct", "proc", "direct"),
];

/// The jobs of an implementation: what is measured, and by how many processors.
const JOBS: [(Part, u32); 7] = [
    (Part::Pair, 2),
    (Part::Three, 3),
    (Part::Polling, 2),
    (Part::Updates, 1),
    (Part::Updates, 2),
    (Part::Updates, 4),
    (Part::Updates, 8),
];

/// How many steps a progress bar has.
pub(super) const STEPS: u64 = (IMPLEMENTATIONS.len() * JOBS.len()) as u64;

/// What a job measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Part {
    /// Everything between two processors.
    Pair,
    /// Operations to two others in turn.
    Three,
    /// The polling granularity.
    Polling,
    /// Random updates of a table.
    Updates,
}

/// What a processor of a job is told.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) part: Part,
    pub(crate) depth: Depth,
}

/// The variable that carries it.
pub(crate) const ORDER: &str = "HAMLYN_BENCH_SPLITC";

/// What one implementation takes. Times in nanoseconds for an operation on 8 bytes, by the names of
/// Table 1.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) times_ns: BTreeMap<String, f64>,
    /// Bytes a second, by operation and size.
    pub(crate) bandwidth: BTreeMap<String, Vec<(usize, f64)>>,
    /// Time of an iteration in microseconds, by the computation between two polls in microseconds;
    /// and without polls.
    pub(crate) polling_us: Vec<(usize, f64)>,
    pub(crate) not_polling_us: Option<f64>,
    /// By number of processors and size of the table.
    pub(crate) updates: Vec<updates::Updates>,
}

/// The rows of Table 1, in its order.
const ROWS: [&str; 15] = [
    "round trip: atomic",
    "round trip: read",
    "round trip: write",
    "overhead: get",
    "overhead: put",
    "overhead: store",
    "gap: get",
    "gap: put",
    "gap: store",
    "gap to two: get",
    "gap to two: put",
    "gap to two: store",
    "gap in exchange: get",
    "gap in exchange: put",
    "gap in exchange: store",
];

/// Everything, by implementation.
pub(super) struct Report {
    implementations: Vec<(&'static str, Figures)>,
}

pub(super) fn measure(effort: Effort, bar: &indicatif::ProgressBar) -> Result<Report> {
    let mut implementations = Vec::new();
    for (name, strategy, placement) in IMPLEMENTATIONS {
        let mut all = Figures::default();
        for (part, procs) in JOBS {
            let order = Order {
                part,
                depth: effort.depth,
            };
            let figures = run_job(strategy, placement, procs, order)
                .with_context(|| format!("measuring {name}, {part:?}"))?;
            all.times_ns.extend(figures.times_ns);
            all.bandwidth.extend(figures.bandwidth);
            all.updates.extend(figures.updates);
            if part == Part::Polling {
                all.polling_us = figures.polling_us;
                all.not_polling_us = figures.not_polling_us;
            }
            bar.inc(1);
        }
        implementations.push((name, all));
    }
    Ok(Report { implementations })
}

fn run_job(strategy: &str, placement: &str, procs: u32, order: Order) -> Result<Figures> {
    let program = this_program()?;
    let mut command = Command::new(&program);
    command
        .args(["run", "-n", &procs.to_string(), "--memory", "64M"])
        .args(["--strategy", strategy, "--placement", placement])
        .arg(&program)
        .args(["actor", "splitc"])
        .env(ORDER, serde_json::to_string(&order)?);
    let output = command.output().context("starting a job")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the job failed: {errors}");
    serde_json::from_slice(&output.stdout).context("reading what it measured")
}

impl Report {
    pub(super) fn print(&self, as_json: bool) -> Result<()> {
        if as_json {
            let all: BTreeMap<_, _> = self
                .implementations
                .iter()
                .map(|(name, it)| (name, it))
                .collect();
            let text = serde_json::to_string_pretty(&serde_json::json!({ "splitc": all }))?;
            println!("{text}");
            return Ok(());
        }
        println!("Split-C between processes of this host, 8 bytes, in microseconds (Table 1)");
        let times = self.table(ROWS.into_iter(), |figures, row| {
            figures
                .times_ns
                .get(row)
                .map(|time| format!("{:.2}", time / 1e3))
        });
        println!("{times}\n\nBandwidth in MB/s (Figure 6)");
        for operation in ["bulk get", "bulk store"] {
            let sizes = self.sizes(operation);
            let rates = self.table(sizes.iter().map(|(_, row)| row.as_str()), |figures, row| {
                let (size, _) = sizes.iter().find(|(_, name)| name == row)?;
                let rates = figures.bandwidth.get(operation)?;
                let (_, rate) = rates.iter().find(|(at, _)| at == size)?;
                Some(format!("{:.0}", rate / 1e6))
            });
            println!("{rates}");
        }
        println!(
            "\nMicroseconds of an iteration, by the computation between two polls (Figures 7, 8)"
        );
        let grains: Vec<_> = self.implementations[0]
            .1
            .polling_us
            .iter()
            .map(|(grain, _)| (*grain, format!("{grain} us")))
            .collect();
        let rows = grains
            .iter()
            .map(|(_, row)| row.as_str())
            .chain(["no poll"]);
        let times = self.table(rows, |figures, row| {
            let time = match grains.iter().find(|(_, name)| name == row) {
                Some((grain, _)) => figures.polling_us.iter().find(|(at, _)| at == grain)?.1,
                None => figures.not_polling_us?,
            };
            Some(format!("{time:.0}"))
        });
        println!("{times}\n\nMillion updates a second of random words of a table (GUPS)");
        let rows: Vec<_> = self.implementations[0]
            .1
            .updates
            .iter()
            .map(|it| (it.processors, it.table_bytes, it.name()))
            .collect();
        let of = |figures: &Figures, row: &str| {
            let (processors, table_bytes, _) = rows.iter().find(|(_, _, name)| name == row)?;
            let is_it = |it: &&updates::Updates| {
                (it.processors, it.table_bytes) == (*processors, *table_bytes)
            };
            figures.updates.iter().find(is_it).cloned()
        };
        let names = || rows.iter().map(|(_, _, name)| name.as_str());
        let rates = self.table(names(), |figures, row| {
            Some(format!("{:.3}", of(figures, row)?.updates_per_s / 1e6))
        });
        println!("{rates}\n\nOver the locked instruction alone, where memory is reached directly");
        let ratios = self.table(names(), |figures, row| {
            Some(format!("{:.2}", of(figures, row)?.over_plain?))
        });
        println!("{ratios}");
        Ok(())
    }

    /// A column for each implementation.
    fn table<'a>(
        &self,
        rows: impl Iterator<Item = &'a str>,
        cell: impl Fn(&Figures, &str) -> Option<String>,
    ) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        let names = self.implementations.iter().map(|(name, _)| *name);
        table.set_header(std::iter::once("").chain(names));
        for row in rows {
            let cells = self.implementations.iter();
            let cells = cells.map(|(_, figures)| cell(figures, row).unwrap_or_default());
            table.add_row(std::iter::once(row.to_owned()).chain(cells));
        }
        table
    }

    fn sizes(&self, operation: &str) -> Vec<(usize, String)> {
        let figures = self.implementations.first();
        let rates = figures.and_then(|(_, figures)| figures.bandwidth.get(operation));
        let rates = rates.map(Vec::as_slice).unwrap_or_default();
        rates
            .iter()
            .map(|(size, _)| (*size, format!("{operation}, {size} bytes")))
            .collect()
    }

    /// Draws Figures 6 to 8, and the updates.
    pub(super) fn plot(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("making {}", directory.display()))?;
        let of_rates = |operation: &str| {
            let curve = |(name, figures): &(&str, Figures)| Curve {
                label: (*name).to_owned(),
                is_machine: false,
                points: figures
                    .bandwidth
                    .get(operation)
                    .map(|rates| {
                        rates
                            .iter()
                            .map(|(size, rate)| (*size, rate / 1e6))
                            .collect()
                    })
                    .unwrap_or_default(),
            };
            self.implementations.iter().map(curve).collect()
        };
        let polling = self.implementations.iter().map(|(name, figures)| Curve {
            label: (*name).to_owned(),
            is_machine: false,
            points: figures.polling_us.clone(),
        });
        let (of_updates, most_bytes) = (
            |(name, figures): &(&str, Figures)| Curve {
                label: (*name).to_owned(),
                is_machine: false,
                points: updates::by_processors(&figures.updates, |it| Some(it.updates_per_s / 1e6)),
            },
            updates::TABLE_BYTES_MAX >> 20,
        );
        let plain = |(_, figures): &(&str, Figures)| Curve {
            label: "locked instruction".to_owned(),
            is_machine: true,
            points: updates::by_processors(&figures.updates, |it| {
                Some(it.plain_updates_per_s? / 1e6)
            }),
        };
        let mut curves: Vec<_> = self.implementations.iter().map(of_updates).collect();
        curves.extend(self.implementations.iter().map(plain));
        curves.retain(|curve| !curve.points.is_empty());
        let title = format!("Split-C: updates of a table of {most_bytes} MiB (more is better)");
        let pictures = [
            Picture {
                file: "splitc-updates.svg",
                title: &title,
                unit: "million a second",
                across: "processors",
                corner: plotters::prelude::SeriesLabelPosition::UpperLeft,
                curves,
            },
            Picture {
                file: "splitc-bulk-get.svg",
                title: "Split-C: bulk get (more is better)",
                unit: "MB/s",
                across: "bytes",
                corner: plotters::prelude::SeriesLabelPosition::UpperLeft,
                curves: of_rates("bulk get"),
            },
            Picture {
                file: "splitc-bulk-store.svg",
                title: "Split-C: bulk store (more is better)",
                unit: "MB/s",
                across: "bytes",
                corner: plotters::prelude::SeriesLabelPosition::UpperLeft,
                curves: of_rates("bulk store"),
            },
            Picture {
                file: "splitc-polling.svg",
                title: "Split-C: time of an iteration by polling granularity (less is better)",
                unit: "us",
                across: "us between polls",
                corner: plotters::prelude::SeriesLabelPosition::UpperLeft,
                curves: polling.collect(),
            },
        ];
        for picture in pictures {
            let path = directory.join(picture.file);
            draw(&picture, &super::report::processor(), &path)
                .map_err(|error| anyhow!("drawing {}: {error}", path.display()))?;
        }
        Ok(())
    }
}
