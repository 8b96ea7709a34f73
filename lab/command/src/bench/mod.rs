//! `hamlyn-lab bench`: the machine's own limits and ours, side by side in one run.
//!
//! Two processes, each on a processor of its own. Whatever is compared takes turns in one run, and
//! medians of the ratios of neighbouring rounds are reported. A latency stands beside the raw
//! hand-off of cache lines just before and just after; if that moved by more than 15 %, the machine
//! was disturbed, and the round is repeated.

mod active;
mod comparison;
mod descriptors;
mod direct;
mod event_loop;
mod faces;
mod interrupts;
mod large;
mod latency;
mod loans;
mod memory;
pub(crate) mod network;
mod one_sided;
mod overflow;
pub(crate) mod oversubscribed;
mod pair;
pub(crate) mod peer;
mod pictures;
mod raw;
mod raw_stream;
pub(crate) mod report;
mod request_reply;
pub(crate) mod senders;
pub(crate) mod splitc;
pub(crate) mod stopped;
mod strategies;
mod threads;
mod through_c;
mod throughput;
mod waking;
mod wan;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hamlyn::host::process::Options;
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, ManagerOptions, Strategy};
use hamlyn_cli::processors;
pub(crate) use hamlyn_cli::processors::{median, pin};
use hamlyn_counted::instructions::{self, Instructions};
use serde::{Deserialize, Serialize};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Measure fewer and shorter batches.
    #[arg(long)]
    quick: bool,
    /// Measure hardly anything: whether each figure comes, not what it is.
    #[arg(long, hide = true, conflicts_with = "quick")]
    trial: bool,
    /// Measure the latency of this protocol, by length, and nothing else.
    #[arg(long, value_parser = protocols(), group = "part")]
    only: Option<latency::Protocol>,
    /// Count the instructions of a message and nothing else. Needs valgrind.
    #[arg(long, group = "part")]
    instructions: bool,
    /// Count what a call through C costs beside one through Rust, and nothing else. Needs a
    /// checkout, a C compiler and valgrind.
    #[arg(long, group = "part")]
    c: bool,
    /// Measure Rust, C and Python beside each other, and nothing else. Needs a checkout and a C
    /// compiler, and for Python its package.
    #[arg(long, group = "part")]
    faces: bool,
    /// Measure large messages and nothing else.
    #[arg(long, group = "part")]
    large: bool,
    /// Measure loaned messages and nothing else.
    #[arg(long, group = "part")]
    loans: bool,
    /// Measure requests and their replies and nothing else.
    #[arg(long, group = "part")]
    request_reply: bool,
    /// Measure one-sided operations and nothing else.
    #[arg(long, group = "part")]
    one_sided: bool,
    /// Measure the rate of short messages and nothing else.
    #[arg(long, group = "part")]
    rate: bool,
    /// Measure the strategies and nothing else.
    #[arg(long, group = "part")]
    strategies: bool,
    /// Measure how long it takes to wake a sleeper and nothing else.
    #[arg(long, group = "part")]
    waking: bool,
    /// Measure a call from an event loop beside one that blocks and nothing else.
    #[arg(long, group = "part")]
    event_loop: bool,
    /// Measure many senders to one receiver and nothing else.
    #[arg(long, group = "part")]
    senders: bool,
    /// Measure threads that share an interface and nothing else.
    #[arg(long, group = "part")]
    threads: bool,
    /// Measure more processes than processors and nothing else.
    #[arg(long, group = "part")]
    oversubscribed: bool,
    /// Measure what live peers get beside a stopped one and nothing else.
    #[arg(long, group = "part")]
    stopped_peer: bool,
    /// Measure sends to a receiver that takes nothing, and what its overflow log costs, and nothing
    /// else.
    #[arg(long, group = "part")]
    overflow: bool,
    /// Measure the operations of Split-C and nothing else: round trips, overhead, gaps, bandwidth,
    /// polling, random updates.
    #[arg(long, group = "part")]
    splitc: bool,
    /// Measure Active Messages beside the interface under them, and nothing else.
    #[arg(long, group = "part")]
    am: bool,
    /// Measure User Direct Messaging beside the interface under it, and nothing else.
    #[arg(long, group = "part")]
    udm: bool,
    /// Measure between two hosts, and nothing else: two network namespaces joined by a veth pair,
    /// which needs root; without, both are on the loopback device.
    #[arg(long, group = "part")]
    network: bool,
    /// Measure a stream beside TCP at base round trips from 0.02 to 100 ms, and nothing else:
    /// through a relay between two network namespaces. Needs root.
    #[arg(long, group = "part")]
    wan: bool,
    /// What a packet of that network carries, in bytes.
    #[arg(long, requires = "network", default_value_t = 1_500, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(1_280..=9_000))]
    mtu: u32,
    /// Draw time, rate and bandwidth against length, as SVG, into this directory; with --network,
    /// what loss costs; with --one-sided and --splitc, what they measure.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["peers", "instructions", "c", "faces", "strategies", "waking", "event_loop",
          "senders", "threads", "oversubscribed", "stopped_peer", "overflow", "request_reply", "loans", "wan", "am", "udm"])]
    plot: Option<PathBuf>,
    /// Compare with other ways to exchange messages instead: installs them, builds them, and runs
    /// them in turn with ours. Needs a checkout, and root to install.
    #[arg(long, group = "part")]
    peers: bool,
}

/// How much to measure.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Round trips in a batch of a latency.
    pub(crate) round_trips: u64,
    /// Batches; the median is reported.
    pub(crate) batches: usize,
    /// Messages of a run of the message rate.
    pub(crate) messages: u64,
    /// Bytes moved in a run of a bandwidth.
    pub(crate) bytes_per_run: usize,
    /// Runs of each bandwidth; the median is reported.
    pub(crate) runs: usize,
    /// Messages to a receiver that computes, for each length of its grains.
    pub(crate) interruptions: u64,
    /// How long messages are counted that are sent without a pause.
    pub(crate) window: Duration,
    pub(crate) depth: Depth,
}

/// How well figures are to be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Depth {
    Full,
    Quick,
    /// That there is each, and no more: for tests.
    Trial,
}

impl Depth {
    pub(crate) fn pick<T>(self, full: T, quick: T, trial: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Trial => trial,
        }
    }
}

impl Effort {
    fn of(arguments: &Arguments) -> Self {
        if arguments.trial {
            Self {
                round_trips: 100,
                batches: 3,
                messages: 20_000,
                bytes_per_run: 1 << 20,
                runs: 1,
                interruptions: 16,
                window: Duration::from_millis(40),
                depth: Depth::Trial,
            }
        } else if arguments.quick {
            Self {
                round_trips: 2_000,
                batches: 15,
                messages: 2_000_000,
                bytes_per_run: 32 << 20,
                runs: 5,
                interruptions: 64,
                window: Duration::from_millis(300),
                depth: Depth::Quick,
            }
        } else {
            Self {
                round_trips: 10_000,
                batches: 31,
                messages: 20_000_000,
                bytes_per_run: 128 << 20,
                runs: 15,
                interruptions: 400,
                window: Duration::from_millis(800),
                depth: Depth::Full,
            }
        }
    }
}

/// The protocols, by the names that reports have for them.
fn protocols() -> impl TypedValueParser<Value = latency::Protocol> {
    PossibleValuesParser::new(latency::Protocol::ALL.map(latency::Protocol::name))
        .try_map(|name| name.parse::<latency::Protocol>())
}

/// Counts the instructions of messages, of this very program.
fn count_instructions() -> Result<Instructions> {
    let program = std::env::current_exe().context("finding this program")?;
    instructions::count(&program, &["actor", "count"])
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.peers {
        return comparison::run(arguments.json, arguments.quick);
    }
    if arguments.instructions {
        let report = report::Report {
            instructions: Some(count_instructions()?),
            ..report::Report::default()
        };
        report.print(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.c {
        through_c::run(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let effort = Effort::of(arguments);
    let processors = processors::allowed()?;
    if processors.len() < 2 {
        bail!(
            "two processors are needed to measure messages between two processes; this process may use {}",
            processors.len()
        );
    }
    if arguments.faces {
        faces::run(effort, arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.splitc {
        let bar = hamlyn_cli::terminal::steps_bar(splitc::STEPS, "measuring", arguments.json);
        let figures = splitc::measure(effort, &bar)?;
        bar.finish_and_clear();
        if let Some(directory) = &arguments.plot {
            figures.plot(directory)?;
        }
        figures.print(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.network {
        let figures = network::measure(&processors, effort, arguments.mtu, arguments.json)?;
        if let Some(directory) = &arguments.plot {
            network::plot(&figures, directory)?;
        }
        figures.print(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.wan {
        wan::measure(effort, arguments.json)?.print(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    pin(&processors[..1])?;
    let mut report = report::Report {
        load: report::load(),
        ..report::Report::default()
    };
    if arguments.am || arguments.udm {
        let amount = active::Amount {
            round_trips: effort.round_trips,
            bytes_per_run: effort.bytes_per_run,
            window: effort.window,
            rounds: effort.depth.pick(9, 5, 1),
        };
        let steps = if arguments.am {
            active::STEPS
        } else {
            direct::STEPS
        };
        let bar = hamlyn_cli::terminal::steps_bar(steps, "measuring", arguments.json);
        if arguments.am {
            report.active_messages = Some(active::measure(&processors, amount, &bar)?);
        } else {
            report.direct_messages = Some(direct::measure(&processors, amount, &bar)?);
        }
        bar.finish_and_clear();
        report.print(arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.senders
        || arguments.threads
        || arguments.oversubscribed
        || arguments.stopped_peer
        || arguments.overflow
        || arguments.event_loop
    {
        return crowd(arguments, &processors, effort, report);
    }
    let mut pair = pair::Pair::start(processors[1])?;
    note_raw(&mut pair, effort, &mut report)?;
    let bar = hamlyn_cli::terminal::steps_bar(
        latency::steps(&latency::Protocol::ALL)
            + request_reply::STEPS
            + throughput::LENGTHS_BYTES.len() as u64
            + large::SIZES_BYTES.len() as u64
            + loans::STEPS
            + 1
            + 1
            + 1
            + 4
            + 1
            + senders::steps(effort)
            + threads::STEPS
            + oversubscribed::STEPS
            + event_loop::STEPS
            + one_sided::STEPS
            + stopped::STEPS
            + overflow::STEPS,
        "measuring",
        arguments.json,
    );
    match arguments.only {
        _ if arguments.large => {
            large::measure(&mut pair, processors[1], effort, &mut report, &bar)?
        }
        _ if arguments.loans => loans::measure(&mut pair, effort, &mut report, &bar)?,
        _ if arguments.request_reply => {
            request_reply::measure(&mut pair, effort, &mut report, &bar)?;
        }
        _ if arguments.rate => throughput::measure(&mut pair, effort, &mut report, &bar)?,
        _ if arguments.strategies => {
            strategies::measure(&mut pair, &processors, effort, &mut report, &bar)?;
        }
        _ if arguments.one_sided => {
            one_sided::measure(&mut pair, &processors, effort, &mut report, &bar)?;
        }
        _ if arguments.waking => waking::measure(processors[1], effort, &mut report, &bar)?,
        Some(protocol) => latency::measure(&mut pair, &[protocol], effort, &mut report, &bar)?,
        None => {
            latency::measure(
                &mut pair,
                &latency::Protocol::ALL,
                effort,
                &mut report,
                &bar,
            )?;
            request_reply::measure(&mut pair, effort, &mut report, &bar)?;
            throughput::measure(&mut pair, effort, &mut report, &bar)?;
            large::measure(&mut pair, processors[1], effort, &mut report, &bar)?;
            loans::measure(&mut pair, effort, &mut report, &bar)?;
            memory::measure(&mut pair, &mut report, &bar)?;
            waking::measure(processors[1], effort, &mut report, &bar)?;
            strategies::measure(&mut pair, &processors, effort, &mut report, &bar)?;
            one_sided::measure(&mut pair, &processors, effort, &mut report, &bar)?;
            senders::measure(&processors, effort, &mut report, &bar)?;
            report.threads = threads::measure(&processors, effort.window, &bar)?;
            oversubscribed::measure(&processors, effort, &mut report, &bar)?;
            stopped::measure(&processors, effort, &mut report, &bar)?;
            report.overflow = Some(overflow::measure(&processors, effort.window, &bar)?);
            event_loop::measure(&processors, effort, &mut report, &bar)?;
            match count_instructions() {
                Ok(instructions) => report.instructions = Some(instructions),
                Err(error) => {
                    bar.suspend(|| eprintln!("hamlyn: instructions not counted: {error:#}"))
                }
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    note_raw(&mut pair, effort, &mut report)?;
    pair.finish()?;
    if let Some(directory) = &arguments.plot {
        pictures::write(&report, directory)?;
    }
    report.print(arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Remembers what the raw hand-off of a line takes now.
fn note_raw(pair: &mut pair::Pair, effort: Effort, report: &mut report::Report) -> Result<()> {
    let raws: Result<Vec<_>> = (0..5)
        .map(|_| pair.raw(raw::HandOff::LINE, effort.round_trips))
        .collect();
    report.raw_handoffs_ns.push(median(raws?));
    Ok(())
}

/// Measures on these processors, this thread on the first.
type Measure = fn(&[usize], Effort, &mut report::Report, &indicatif::ProgressBar) -> Result<()>;

/// Measures only what has processes of its own.
fn crowd(
    arguments: &Arguments,
    processors: &[usize],
    effort: Effort,
    mut report: report::Report,
) -> Result<ExitCode> {
    let (steps, measure): (_, Measure) = if arguments.senders {
        (senders::steps(effort), senders::measure)
    } else if arguments.threads {
        (threads::STEPS, |processors, effort, report, bar| {
            report.threads = threads::measure(processors, effort.window, bar)?;
            Ok(())
        })
    } else if arguments.overflow {
        (overflow::STEPS, |processors, effort, report, bar| {
            report.overflow = Some(overflow::measure(processors, effort.window, bar)?);
            Ok(())
        })
    } else if arguments.oversubscribed {
        (oversubscribed::STEPS, oversubscribed::measure)
    } else if arguments.event_loop {
        (event_loop::STEPS, event_loop::measure)
    } else {
        (stopped::STEPS, stopped::measure)
    };
    let bar = hamlyn_cli::terminal::steps_bar(steps, "measuring", arguments.json);
    measure(processors, effort, &mut report, &bar)?;
    bar.finish_and_clear();
    report.print(arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// A manager that polls and never sleeps, apart from all others on this machine.
pub(crate) fn open() -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace("bench");
    options.spin_ns = Some(u64::MAX / 4);
    Ok(hamlyn::open_with(options, ManagerOptions::default())?)
}

/// How long a wait polls before it sleeps, by default, in a process that has several processors.
const SPIN_NS: u64 = 20_000;

/// A manager that is driven in that way, with this thread, the application's, on that processor and
/// all others of the interface elsewhere.
pub(crate) fn open_driven(driven: &pair::Driven, processor: usize) -> Result<Manager<ProcessHost>> {
    let strategy = Strategy::ALL
        .into_iter()
        .find(|strategy| strategy.name() == driven.strategy)
        .with_context(|| format!("no strategy is called {}", driven.strategy))?;
    let elsewhere: Vec<usize> = driven
        .processors
        .iter()
        .copied()
        .filter(|&other| other != processor)
        .collect();
    pin(&elsewhere)?;
    let manager = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    let mut options = Options::default().in_namespace("bench");
    // The default would be not to poll at all where `elsewhere` is but one processor.
    options.spin_ns = Some(SPIN_NS);
    let manager = hamlyn::open_with(options, manager)?;
    pin(&[processor])?;
    Ok(manager)
}
