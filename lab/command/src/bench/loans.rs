//! Loaned messages: how long one takes, by its length and by the number of its readers.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::Options;
use hamlyn::loans::{PublisherOptions, SlowReaders};
use hamlyn::{ManagerOptions, Wait};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::Effort;
use super::pair::{Order, Pair};
use super::report::Report;
use hamlyn_cli::actor::answer;

const LENGTHS_BYTES: [usize; 4] = [64, 4 << 10, 64 << 10, 4 << 20];
const READERS: [usize; 2] = [1, 7];
const WAIT: Wait = Wait::millis(5_000);
const ITEM: &str = "loans";
/// Runs of each; the median is reported.
const RUNS: usize = 5;

/// Kinds of message that are measured.
pub(crate) const STEPS: u64 = (LENGTHS_BYTES.len() * READERS.len()) as u64;

/// How long a message took.
pub(crate) struct Figures {
    length_bytes: usize,
    readers: usize,
    /// Half of the time from one message to the next, when the publisher waits until all readers
    /// have given it back.
    ns: f64,
}

pub(crate) fn measure(
    pair: &mut Pair,
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    for length_bytes in LENGTHS_BYTES {
        for readers in READERS {
            let runs: Result<Vec<_>> = (0..effort.depth.pick(RUNS, RUNS, 1))
                .map(|_| published(pair, length_bytes, readers, effort))
                .collect();
            report.loans.push(Figures {
                length_bytes,
                readers,
                ns: super::median(runs?),
            });
            bar.inc(1);
        }
    }
    Ok(())
}

fn published(pair: &mut Pair, length_bytes: usize, readers: usize, effort: Effort) -> Result<f64> {
    let name = format!("bench-{}", std::process::id());
    let mut options = Options::named(&name).in_namespace("bench");
    options.spin_ns = Some(u64::MAX / 4);
    let manager = hamlyn::open_with(options, ManagerOptions::default())?;
    let options = PublisherOptions {
        message_bytes: u32::try_from(length_bytes)?,
        chunks: 4,
        // So that each waits for the one before.
        depth: 1,
        slow_readers: SlowReaders::Block,
        ..PublisherOptions::default()
    };
    let mut publisher = manager.bind_publisher(ITEM, options)?;
    let warming = effort.round_trips / 10;
    pair.actor.order(&Order::ReadLoans {
        address: format!("{name}/{ITEM}"),
        readers,
        messages: warming + effort.round_trips,
    })?;
    let there = publisher.await_readers(readers, WAIT)?;
    ensure!(there == readers, "{there} of {readers} readers came");
    let mut start = Instant::now();
    for number in 0..warming + effort.round_trips {
        if number == warming {
            start = Instant::now();
        }
        let mut loan = publisher.loan(length_bytes, WAIT)?;
        loan[..8].copy_from_slice(&number.to_le_bytes());
        let published = loan.publish(WAIT)?;
        ensure!(published.readers == readers, "a reader is gone");
    }
    ensure!(publisher.await_room(WAIT)?, "a reader is stuck");
    let elapsed = start.elapsed();
    let () = pair.actor.answer()?;
    Ok(elapsed.as_nanos() as f64 / effort.round_trips as f64 / 2.0)
}

/// The other side: readers, each with an interface of its own, all in one thread.
pub(crate) fn read(address: &str, readers: usize, messages: u64) -> Result<()> {
    let mut managers = Vec::new();
    let mut subscribers = Vec::new();
    for _ in 0..readers {
        let manager = super::open()?;
        subscribers.push(manager.connect_subscriber(address, WAIT)?);
        managers.push(manager);
    }
    for number in 0..messages {
        for subscriber in &mut subscribers {
            let sample = subscriber.recv(WAIT)?.context("no message came")?;
            ensure!(sample.read(0) == Some(number), "another message");
        }
    }
    for manager in &managers {
        ensure!(manager.flush(WAIT)?, "the last sample was not given back");
    }
    answer(&())?;
    Ok(())
}

/// By length and then by readers.
pub(crate) fn loan_json(all: &[Figures]) -> Value {
    let mut by_length = json!({});
    for figures in all {
        let (length, readers) = (
            figures.length_bytes.to_string(),
            figures.readers.to_string(),
        );
        by_length[length][readers] = json!(figures.ns);
    }
    by_length
}

pub(crate) fn print(all: &[Figures]) {
    let mut table = hamlyn_cli::terminal::table(&["size", "readers", "ns"]);
    for figures in all {
        table.add_row([
            indicatif::HumanBytes(figures.length_bytes as u64).to_string(),
            figures.readers.to_string(),
            format!("{:.0}", figures.ns),
        ]);
    }
    println!(
        "How long does a loaned message take? Half of the way to all readers and back\n{table}"
    );
}
