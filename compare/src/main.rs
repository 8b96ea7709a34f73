//! Hamlyn beside other ways to exchange messages on one host, measured in one run on the same two cores.
//!
//! The driver installs and builds the peers (`prepare`), starts their processes (`session`,
//! `perftest`), measures each in turn with ours (`run`), and shows what came of it (`table`, `plot`,
//! `record`). How each peer is run, and why so, is in `compare/README.md`.

mod catalogue;
mod figure;
mod interruption;
mod perftest;
mod pin;
mod plot;
mod prepare;
mod record;
mod run;
mod session;
mod statistics;
mod table;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::catalogue::{Means, Peer, Places, Program, RAW, REFERENCE};
use crate::record::{Circumstances, Report};
use crate::run::Effort;

/// Measures Hamlyn and its peers in one run.
#[derive(Parser)]
#[command(name = "hamlyn-compare", version)]
struct Arguments {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Fewer and shorter rounds; results go to a directory of their own.
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
    /// Where results go. By default `compare/results`, with --quick beside what is built.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Install nothing; use what is there.
    #[arg(long)]
    no_install: bool,
}

fn main() -> ExitCode {
    match compare(&Arguments::parse()) {
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
    let places = Places {
        compare: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        binaries: std::env::current_exe()
            .context("finding this program")?
            .parent()
            .context("this program lies nowhere")?
            .to_owned(),
    };
    let effort = Effort {
        rounds: arguments
            .rounds
            .unwrap_or(if arguments.quick { 2 } else { 5 })
            .max(1),
        lasts: Duration::from_millis(if arguments.quick { 8 } else { 25 }),
        time_max: Duration::from_secs(60 * if arguments.quick { 3 } else { 12 }),
    };
    let mut circumstances = Circumstances::now(cores, effort, arguments.quick)?;
    for library in prepare::chosen(&arguments.only)? {
        interruption::check()?;
        eprintln!("== {}", library.name);
        match prepare::prepare(&library, &places, !arguments.no_install) {
            Ok(version) => {
                circumstances.versions.insert(library.name, version);
            }
            Err(error) => {
                let reason = format!("{error:#}");
                eprintln!("{} is left out: {reason}", library.name);
                circumstances.unavailable.insert(library.name, reason);
            }
        }
    }
    let all = catalogue::catalogue(&places);
    let reference = program(&all, REFERENCE)?;
    let raw = program(&all, RAW)?;
    let peers: Vec<Peer> = all
        .into_iter()
        .filter(|peer| {
            circumstances.versions.contains_key(peer.library)
                || circumstances.unavailable.contains_key(peer.library)
        })
        .collect();
    let to_run: Vec<Peer> = peers
        .iter()
        .filter(|peer| peer.name != REFERENCE && circumstances.versions.contains_key(peer.library))
        .cloned()
        .collect();
    let crowds = to_run.iter().filter(|peer| peer.crowd).count();
    let bar = bar(
        ((to_run.len() + crowds) * effort.rounds) as u64,
        arguments.json,
    );
    let measured = run::run(&to_run, &reference, &raw, effort, cores, &bar)?;
    bar.finish_and_clear();
    let report = Report {
        circumstances,
        peers,
        measured,
    };
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None if arguments.quick => places.built().join("results-quick"),
        None => places.compare.join("results"),
    };
    write(&report, &output)?;
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

fn figures() -> Vec<figure::Figure> {
    let mut figures = figure::Figure::of_a_pair();
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

fn write(report: &Report, output: &Path) -> Result<()> {
    std::fs::create_dir_all(output).with_context(|| format!("making {}", output.display()))?;
    report.write_raw(&output.join("raw.jsonl"))?;
    std::fs::write(output.join("table.md"), table::markdown(report))
        .context("writing the table")?;
    plot::write(report, output)
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
