//! `hamlyn ping`: how long a message takes to a name and back, by messages of the public library
//! alone.
//!
//! The answering side (`--listen`) offers tickets, one for each client. A client sends a hello
//! there with a ticket for the answers, and then sends one message after the other, each when the
//! one before was answered or given up. Nothing is said of one way that was not measured: two hosts
//! have two clocks.

mod answering;
mod asking;
mod message;
mod report;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use hamlyn::Manager;
use hamlyn::host::process::ProcessHost;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::partners::Partners;
use message::{SIZE_BYTES_MAX, SIZE_BYTES_MIN};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The name that is to answer; of another host, HOST/NAME. With --listen: under which name to
    /// answer.
    name: String,
    /// Answer those who ask, until interrupted.
    #[arg(long, alias = "serve", conflicts_with_all = ["count", "interval", "timeout", "size", "json"])]
    listen: bool,
    /// How many messages; 0: until interrupted.
    #[arg(long, short, default_value_t = 1000)]
    count: u64,
    /// From one message to the next, in seconds; 0: the next as soon as the one before is answered.
    #[arg(long, short, default_value = "0.01", value_parser = seconds)]
    interval: Duration,
    /// How long an answer may take, in seconds, before it counts as lost.
    #[arg(long, short = 'W', default_value = "1", value_parser = seconds)]
    timeout: Duration,
    /// Bytes of a message, and of its answer.
    #[arg(long, short, default_value_t = SIZE_BYTES_MIN, value_parser = clap::value_parser!(u32).range(i64::from(SIZE_BYTES_MIN)..=i64::from(SIZE_BYTES_MAX)))]
    size: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// No progress bar.
    #[arg(long, short)]
    quiet: bool,
    /// How long to wait for somebody of that name to appear, in seconds.
    #[arg(long, default_value_t = 10)]
    wait: u64,
    #[command(flatten)]
    partners: Partners,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "it must be a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let manager = open(arguments)?;
    if arguments.listen {
        answering::run(arguments, manager, &stop)
    } else {
        asking::run(arguments, manager, &stop)
    }
}

fn open(arguments: &Arguments) -> Result<Manager<ProcessHost>> {
    let name = arguments.listen.then_some(arguments.name.as_str());
    arguments.partners.open(name)
}

/// Whether somebody wants this program to end: then it sums up first. Who wants it twice has it at
/// once.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn on_signals() -> Result<Self> {
        let wanted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds the flag set.
            flag::register_conditional_default(signal, Arc::clone(&wanted))
                .and_then(|_| flag::register(signal, Arc::clone(&wanted)))
                .context("watching for signals")?;
        }
        Ok(Self(wanted))
    }

    fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long to wait at a time, so that [`Stop`] is seen soon.
const POLL_SPAN: Duration = Duration::from_millis(100);
