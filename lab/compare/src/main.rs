//! Hamlyn beside other ways to exchange messages on one host, measured in one run on the same two
//! cores.
//!
//! The driver installs and builds the peers (`prepare`), starts their processes (`session`,
//! `perftest`), measures each in turn with ours (`run`), keeps what came of it (`record`), reads
//! that back (`reading`) and shows it (`table`, `plot`, `short_table`). How each peer is run, and
//! why so, is in `lab/compare/README.md`.

mod active;
mod catalogue;
mod figure;
mod interruption;
mod kept;
mod locks;
mod network;
mod one_sided;
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
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::catalogue::{LIBRARIES, Peer, Places, RAW, program};
use crate::kept::Kept;
use crate::record::{Circumstances, Report};
use crate::run::Effort;

/// Every round of a run.
const RAW_FILE: &str = "raw.jsonl";
/// All of its tables, and all figures.
const TABLE_FILE: &str = "table.md";
const FIGURES_FILE: &str = "figures.json";

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
    /// Fewer and shorter rounds: three minutes at most.
    #[arg(long)]
    quick: bool,
    /// More rounds: an hour at most, instead of half an hour.
    #[arg(long, conflicts_with = "quick")]
    thorough: bool,
    /// Only these libraries, separated by commas: ucx, libfabric, openmpi, mpi_put, mpich,
    /// iceoryx2, aeron, zeromq, nng, kernel, python. Ours is always there.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Two cores, separated by a comma: the receiver's and the sender's. By default the first two
    /// that this process may use.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
    /// Rounds. By default 5, with --quick 2, with --thorough 11.
    #[arg(long)]
    rounds: Option<usize>,
    /// Where results go. By default `lab/compare/results`, and the short table to
    /// docs/comparison.md; with --quick or --only beside what is built.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Install nothing; use what is there.
    #[arg(long)]
    no_install: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the tables, the pictures and docs/comparison.md's table anew from
    /// `lab/compare/results/raw.jsonl`. Measures nothing.
    Show {
        /// Change nothing; fail if a table does not say what the raw data say.
        #[arg(long)]
        check: bool,
    },
    /// Measures between two hosts instead: network namespaces joined by a veth pair. Needs root.
    Network(Network),
    /// Measures one-sided operations instead: reads, writes, streams of writes and additions to one
    /// word, beside MPI and OpenSHMEM.
    OneSided(OneSided),
    /// Measures Active Messages instead, beside those of GASNet-EX and UCX: short, medium and bulk.
    Am(Am),
    /// Measures locks instead: acquisitions a second, beside a lock in Redis.
    Locks(Run),
}

/// Arguments of every comparison but the first.
#[derive(clap::Args)]
struct Run {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds.
    #[arg(long)]
    quick: bool,
    /// Rounds. By default 5, with --quick 2.
    #[arg(long)]
    rounds: Option<usize>,
    /// Where results go. By default `lab/compare/results`; those of a part (--quick, --only) beside
    /// what is built.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Install nothing; use what is there.
    #[arg(long)]
    no_install: bool,
}

#[derive(clap::Args)]
struct OneSided {
    #[command(flatten)]
    run: Run,
    /// Only these libraries, separated by commas: splitc, mpi_one_sided, shmem. Ours and the
    /// machine are always there.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

#[derive(clap::Args)]
struct Am {
    #[command(flatten)]
    run: Run,
    /// Only these libraries, separated by commas: hamlyn_c, gasnet, ucx_am. Ours in Rust and the
    /// machine are always there.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Two cores, separated by a comma: the receiver's and the sender's.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
}

#[derive(clap::Args)]
struct Network {
    #[command(flatten)]
    run: Run,
    /// Only these libraries, separated by commas: ucx, libfabric, openmpi, zeromq, aeron, quic,
    /// ucx_am, gasnet.
    /// Ours is always there.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Two cores, separated by a comma: the receiver's and the sender's.
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Some(Command::Show { check }) => show(*check),
        Some(Command::Network(arguments)) => between_hosts(arguments),
        Some(Command::OneSided(arguments)) => one_sided_operations(arguments),
        Some(Command::Am(arguments)) => active_messages(arguments),
        Some(Command::Locks(arguments)) => acquisitions(arguments),
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
    // Half a second for each figure in five rounds.
    let (rounds, lasts_ms, minutes_max) = match (arguments.quick, arguments.thorough) {
        (true, _) => (2, 8, 3),
        (_, true) => (11, 100, 60),
        _ => (5, 100, 30),
    };
    let effort = Effort {
        rounds: arguments.rounds.unwrap_or(rounds).max(1),
        lasts: Duration::from_millis(lasts_ms),
        time_max: Duration::from_secs(60 * minutes_max),
    };
    let is_part = arguments.quick || !arguments.only.is_empty();
    if arguments.output.is_none() && !is_part {
        publication::permit(&places.compare)?;
    }
    let mut circumstances = Circumstances::now(cores, effort, arguments.quick)?;
    circumstances.commit = publication::commit(&places.compare);
    let install = !arguments.no_install;
    prepare::all(
        LIBRARIES,
        &arguments.only,
        &places,
        install,
        &mut circumstances,
    )?;
    let all = catalogue::catalogue(&places);
    let raw = program(&all, RAW)?;
    let peers: Vec<Peer> = all
        .iter()
        .filter(|peer| circumstances.names(peer.library))
        .cloned()
        .collect();
    let to_run: Vec<Peer> = peers
        .iter()
        .filter(|peer| !peer.is_reference() && circumstances.versions.contains_key(peer.library))
        .cloned()
        .collect();
    let bar = bar(arguments.json);
    let start = Instant::now();
    let measured = run::run(
        run::groups(&to_run),
        |name| program(&all, name),
        raw,
        effort,
        cores,
        &bar,
    )?;
    circumstances.took_s = Some(start.elapsed().as_secs());
    bar.finish_and_clear();
    let is_whole = arguments.output.is_none() && !is_part;
    let output = output_of(arguments.output.as_deref(), is_part, &places);
    std::fs::create_dir_all(&output).with_context(|| format!("making {}", output.display()))?;
    let raw = output.join(RAW_FILE);
    Report::new(circumstances, peers, measured).write_raw(&raw)?;
    // What is shown is what was written.
    let report = reading::read_file(&raw, &all)?;
    write(&report, &output)?;
    if is_whole {
        short_table::MARKERS.put(&places.comparison(), &short_table::section(&report))?;
    }
    if arguments.json {
        print!("{}", figures(&report)?);
    } else {
        show_written(&table::terminal(&report, &table::tables()), &output);
    }
    Ok(())
}

impl Run {
    /// Measures by a function of the places, the rounds, and the time that a figure takes in each.
    /// A whole run may take the place of what is published.
    fn measure<R>(
        &self,
        only: &[String],
        [lasts_ms, quick_lasts_ms]: [u64; 2],
        measure: impl FnOnce(&Places, usize, Duration) -> Result<R>,
    ) -> Result<Measured<R>> {
        interruption::watch()?;
        let places = Places::here()?;
        let is_part = self.quick || !only.is_empty();
        let is_whole = self.output.is_none() && !is_part;
        if is_whole {
            publication::permit(&places.compare)?;
        }
        let (rounds, lasts_ms) = match self.quick {
            true => (2, quick_lasts_ms),
            false => (5, lasts_ms),
        };
        let rounds = self.rounds.unwrap_or(rounds).max(1);
        let report = measure(&places, rounds, Duration::from_millis(lasts_ms))?;
        Ok(Measured {
            report,
            output: output_of(self.output.as_deref(), is_part, &places),
            places,
            is_whole,
        })
    }

    /// The same; keeps and shows what comes of it.
    fn keep<R: Kept>(
        &self,
        only: &[String],
        lasts_ms: [u64; 2],
        measure: impl FnOnce(&Places, usize, Duration) -> Result<R>,
    ) -> Result<()> {
        let Measured { report, output, .. } = self.measure(only, lasts_ms, measure)?;
        kept::write(&report, &output)?;
        match self.json {
            true => println!("{}", serde_json::to_string_pretty(&report)?),
            false => show_written(&report.markdown(), &output),
        }
        Ok(())
    }
}

/// The result of a run, and where it goes.
struct Measured<R> {
    report: R,
    output: PathBuf,
    places: Places,
    /// It takes the place of what is published.
    is_whole: bool,
}

fn between_hosts(arguments: &Network) -> Result<()> {
    let (run, only) = (&arguments.run, &arguments.only);
    run.keep(only, [100, 30], |places, rounds, lasts| {
        let cores = pin::Cores::choose(&arguments.cores)?;
        let install = !run.no_install;
        network::compare(only, places, cores, rounds, lasts, install, run.quick)
    })
}

fn one_sided_operations(arguments: &OneSided) -> Result<()> {
    let (run, only) = (&arguments.run, &arguments.only);
    run.keep(only, [50, 10], |places, rounds, lasts| {
        let cores = pin::Cores::choose(&[])?;
        let install = !run.no_install;
        one_sided::compare(only, places, cores, rounds, lasts, install, run.quick)
    })
}

fn active_messages(arguments: &Am) -> Result<()> {
    let (run, only) = (&arguments.run, &arguments.only);
    let bar = bar(run.json);
    let measured = run.measure(only, [100, 20], |places, rounds, lasts| {
        let cores = pin::Cores::choose(&arguments.cores)?;
        let effort = Effort {
            rounds,
            lasts,
            time_max: active::time_max(run.quick),
        };
        let install = !run.no_install;
        active::compare(only, places, cores, effort, install, run.quick, &bar)
    })?;
    let (places, output) = (&measured.places, &measured.output);
    let report = active::keep(&measured.report, output, places)?;
    if measured.is_whole {
        active::publish(&report, places)?;
    }
    match run.json {
        true => print!("{}", active::json(&report)?),
        false => show_written(&active::terminal(&report), output),
    }
    Ok(())
}

fn acquisitions(run: &Run) -> Result<()> {
    run.keep(&[], [500, 100], |places, rounds, lasts| {
        let cores = pin::Cores::choose(&[])?;
        locks::compare(places, cores, rounds, lasts, !run.no_install, run.quick)
    })
}

/// Where results go: those of a part not among those that are published.
fn output_of(output: Option<&Path>, is_part: bool, places: &Places) -> PathBuf {
    match output {
        Some(output) => output.to_owned(),
        None if is_part => places.built().join("results-part"),
        None => places.results(),
    }
}

fn show_written(tables: &str, output: &Path) {
    println!("{tables}");
    println!("written to {}", output.display());
}

/// Every figure of a run, as one JSON object.
fn figures(report: &Report) -> Result<String> {
    let mut figures = figure::Figure::of_a_pair();
    figures.extend(figure::Figure::of_loans());
    figures.extend(figure::Figure::of_a_crowd());
    Ok(serde_json::to_string_pretty(&report.json(&figures))? + "\n")
}

/// What is made of the raw data in the same directory.
fn write(report: &Report, output: &Path) -> Result<()> {
    std::fs::write(
        output.join(TABLE_FILE),
        table::markdown(report, &table::tables()),
    )
    .context("writing the table")?;
    std::fs::write(output.join(FIGURES_FILE), figures(report)?).context("writing the figures")?;
    plot::write(report, output)
}

/// Makes what is shown anew from the results in the checkout, or checks it.
fn show(check: bool) -> Result<()> {
    let places = Places::here()?;
    let results = places.results();
    let report = reading::read_file(&results.join(RAW_FILE), &catalogue::catalogue(&places))?;
    let section = short_table::section(&report);
    let between = kept::read::<network::Report>(&results)?;
    let one_sided = kept::read::<one_sided::Report>(&results)?;
    let locks = kept::read::<locks::Report>(&results)?;
    active::show(check, &places)?;
    if !check {
        write(&report, &results)?;
        if let Some(between) = between {
            between.show(&results)?;
        }
        if let Some(one_sided) = one_sided {
            one_sided.show(&results)?;
        }
        if let Some(locks) = locks {
            locks.show(&results)?;
        }
        return short_table::MARKERS.put(&places.comparison(), &section);
    }
    for (file, wanted) in [
        (TABLE_FILE, table::markdown(&report, &table::tables())),
        (FIGURES_FILE, figures(&report)?),
    ] {
        let found = std::fs::read_to_string(results.join(file))
            .with_context(|| format!("reading {file} of lab/compare/results"))?;
        ensure!(
            found == wanted,
            "{file} does not say what {RAW_FILE} beside it says: run `make compare-show`"
        );
    }
    if let Some(one_sided) = one_sided {
        one_sided.check()?;
    }
    if let Some(locks) = locks {
        locks.check()?;
    }
    if let Some(between) = between {
        between.check()?;
    }
    short_table::MARKERS.check(&places.comparison(), &section)
}

fn bar(quiet: bool) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && !quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template(
        "{prefix:26} {msg:36} {bar:30} {pos}/{len} {elapsed}, {eta} left",
    ) {
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
