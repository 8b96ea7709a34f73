//! Hamlyn beside other ways to exchange messages on one host, measured in one run on the same two cores.
//!
//! The driver installs and builds the peers (`prepare`), starts their processes (`session`,
//! `perftest`), measures each in turn with ours (`run`), keeps what came of it (`record`), reads that back (`reading`)
//! and shows it (`table`, `plot`, `short_table`). How each peer is run, and why so, is in `compare/README.md`.

mod catalogue;
mod figure;
mod interruption;
mod network;
mod perftest;
mod pin;
mod plot;
mod prepare;
mod publication;
mod reading;
mod record;
mod run;
mod session;
mod short_table;
mod statistics;
mod table;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::catalogue::{LOANS, Means, Peer, Places, Program, RAW, REFERENCE};
use crate::record::{Circumstances, Report};
use crate::run::Effort;

/// Every round of a run.
const RAW_FILE: &str = "raw.jsonl";
/// All of its tables.
const TABLE_FILE: &str = "table.md";

/// Measures Hamlyn and its peers in one run.
#[derive(Parser)]
#[command(
    name = "hamlyn-compare",
    version,
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds.
    #[arg(long)]
    quick: bool,
    /// Only these libraries, separated by commas: ucx, libfabric, openmpi, mpich, iceoryx2, aeron, zeromq, nng,
    /// kernel, python. Ours is always there.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Two cores, separated by a comma: the receiver's and the sender's. By default the first two
    /// that this process may use.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Rounds. By default 5, with --quick 2.
    #[arg(long)]
    rounds: Option<usize>,
    /// Where results go. By default `compare/results`, and the short table to docs/comparison.md; with --quick or
    /// --only beside what is built.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Install nothing; use what is there.
    #[arg(long)]
    no_install: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the tables, the pictures and docs/comparison.md's table anew from `compare/results/raw.jsonl`. Measures nothing.
    Show {
        /// Change nothing; fail if a table does not say what the raw data say.
        #[arg(long)]
        check: bool,
    },
    /// Measures between two hosts instead: network namespaces joined by a veth pair. Needs root.
    Network(Network),
}

#[derive(clap::Args)]
struct Network {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds.
    #[arg(long)]
    quick: bool,
    /// Only these libraries, separated by commas: ucx, libfabric, openmpi, zeromq, aeron, quic. Ours is
    /// always there.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Two cores, separated by a comma: the receiver's and the sender's.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Rounds. By default 5, with --quick 2.
    #[arg(long)]
    rounds: Option<usize>,
    /// Where results go. By default `compare/results`; with --quick or --only beside what is built.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Install nothing; use what is there.
    #[arg(long)]
    no_install: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Some(Command::Show { check }) => show(*check),
        Some(Command::Network(arguments)) => between_hosts(arguments),
        None => compare(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hamlyn-compare: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(arguments: &Arguments) -> Result<()> {
    interruption::watch()?;
    let cores = pin::Cores::choose(&arguments.cores)?;
    let places = Places::here()?;
    let effort = Effort {
        rounds: arguments
            .rounds
            .unwrap_or(if arguments.quick { 2 } else { 5 })
            .max(1),
        // Half a second for each figure in five rounds.
        lasts: Duration::from_millis(if arguments.quick { 8 } else { 100 }),
        time_max: Duration::from_secs(60 * if arguments.quick { 3 } else { 60 }),
    };
    let is_part = arguments.quick || !arguments.only.is_empty();
    if arguments.output.is_none() && !is_part {
        publication::permit(&places.compare)?;
    }
    let mut circumstances = Circumstances::now(cores, effort, arguments.quick)?;
    for library in prepare::chosen(&arguments.only)? {
        interruption::check()?;
        eprintln!("== {}", library.name);
        match prepare::prepare(&library, &places, !arguments.no_install) {
            Ok(version) => {
                circumstances
                    .versions
                    .insert(library.name.to_owned(), version);
            }
            Err(error) => {
                let reason = format!("{error:#}");
                eprintln!("{} is left out: {reason}", library.name);
                circumstances
                    .unavailable
                    .insert(library.name.to_owned(), reason);
            }
        }
    }
    let all = catalogue::catalogue(&places);
    let reference = program(&all, REFERENCE)?;
    let loans = program(&all, LOANS)?;
    let raw = program(&all, RAW)?;
    let peers: Vec<Peer> = all
        .iter()
        .filter(|peer| circumstances.names(peer.library))
        .cloned()
        .collect();
    let to_run: Vec<Peer> = peers
        .iter()
        .filter(|peer| {
            ![REFERENCE, LOANS].contains(&peer.name)
                && circumstances.versions.contains_key(peer.library)
        })
        .cloned()
        .collect();
    let crowds = to_run.iter().filter(|peer| peer.crowd).count();
    let bar = bar(
        ((to_run.len() + crowds) * effort.rounds) as u64,
        arguments.json,
    );
    let measured = run::run(&to_run, [&reference, &loans], &raw, effort, cores, &bar)?;
    bar.finish_and_clear();
    let (output, is_whole) = match &arguments.output {
        Some(output) => (output.clone(), false),
        None if is_part => (places.built().join("results-part"), false),
        None => (places.results(), true),
    };
    std::fs::create_dir_all(&output).with_context(|| format!("making {}", output.display()))?;
    let raw = output.join(RAW_FILE);
    Report::new(circumstances, peers, measured).write_raw(&raw)?;
    // What is shown is what was written.
    let report = reading::read_file(&raw, &all)?;
    write(&report, &output)?;
    if is_whole {
        short_table::put(&places.comparison(), &short_table::section(&report))?;
    }
    if arguments.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report.json(&figures()))?
        );
    } else {
        println!("{}", table::terminal(&report));
        println!("written to {}", output.display());
    }
    Ok(())
}

fn between_hosts(arguments: &Network) -> Result<()> {
    interruption::watch()?;
    let places = Places::here()?;
    let is_part = arguments.quick || !arguments.only.is_empty();
    if arguments.output.is_none() && !is_part {
        publication::permit(&places.compare)?;
    }
    let rounds = arguments
        .rounds
        .unwrap_or(if arguments.quick { 2 } else { 5 });
    let lasts = Duration::from_millis(if arguments.quick { 30 } else { 100 });
    let report = network::compare(
        &arguments.only,
        &places,
        pin::Cores::choose(&arguments.cores)?,
        rounds.max(1),
        lasts,
        !arguments.no_install,
        arguments.quick,
    )?;
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None if is_part => places.built().join("results-part"),
        None => places.results(),
    };
    network::write(&report, &output)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{}", report.markdown());
        println!("written to {}", output.display());
    }
    Ok(())
}

fn figures() -> Vec<figure::Figure> {
    let mut figures = figure::Figure::of_a_pair();
    figures.extend(figure::Figure::of_loans());
    figures.extend(figure::Figure::of_a_crowd());
    figures
}

fn program(peers: &[Peer], name: &str) -> Result<Program> {
    let peer = peers
        .iter()
        .find(|peer| peer.name == name)
        .context("not in the catalogue")?;
    match &peer.means {
        Means::Session(program) => Ok(program.clone()),
        Means::Perftest { .. } => anyhow::bail!("{name} takes no orders"),
    }
}

/// What is made of the raw data in the same directory.
fn write(report: &Report, output: &Path) -> Result<()> {
    std::fs::write(output.join(TABLE_FILE), table::markdown(report))
        .context("writing the table")?;
    plot::write(report, output)
}

/// Makes what is shown anew from the results in the checkout, or checks it.
fn show(check: bool) -> Result<()> {
    let places = Places::here()?;
    let results = places.results();
    let report = reading::read_file(&results.join(RAW_FILE), &catalogue::catalogue(&places))?;
    let section = short_table::section(&report);
    let between = network::read(&results)?;
    if !check {
        write(&report, &results)?;
        if let Some((between, _)) = &between {
            network::write(between, &results)?;
        }
        return short_table::put(&places.comparison(), &section);
    }
    let table = results.join(TABLE_FILE);
    let found =
        std::fs::read_to_string(&table).with_context(|| format!("reading {}", table.display()))?;
    ensure!(
        found == table::markdown(&report),
        "{} does not say what {RAW_FILE} beside it says: run `make compare-show`",
        table.display()
    );
    if let Some((between, found)) = between {
        ensure!(
            found == between.markdown(),
            "network.md does not say what network.json beside it says: run `make compare-show`"
        );
    }
    short_table::check(&places.comparison(), &section)
}

fn bar(steps: u64, quiet: bool) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    if let Ok(style) = ProgressStyle::with_template("{msg:36} {bar:30} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    /// Of the results that are committed.
    #[test]
    fn tables_say_what_the_raw_data_say() {
        super::show(true).expect("tables that agree with raw.jsonl");
    }
}
