//! The overflow log of a link (decision 53): what a send takes while its receiver takes nothing,
//! beside one to a receiver that takes all; and what it costs a pair that never needs it.
//!
//! Each send of 16 bytes to a mailbox is timed by itself, so all times have the clock's in them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::{Manager, ManagerOptions, Wait};
use hamlyn_cli::processors::{median, pin};
use indicatif::ProgressBar;
use serde::Serialize;

const MESSAGE: [u8; 16] = [7; 16];
const LOG_BYTES: u32 = 16 << 20;
/// Of a receiver that takes nothing: so many lie in pages that were present before, and so many in
/// all. Both fit in the log.
const WARM_MESSAGES: usize = 500;
const MESSAGES: usize = 100_000;
/// Windows of each kind, in turn; the median is reported.
const ROUNDS: usize = 5;
const WAIT: Wait = Wait::millis(5_000);

/// Figures that are measured.
pub(super) const STEPS: u64 = 2 * ROUNDS as u64;

/// Times of single sends.
#[derive(Serialize)]
struct Times {
    median_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    most_ns: u64,
}

/// The figures that are reported.
#[derive(Serialize)]
pub(crate) struct Figures {
    /// To a receiver that takes all.
    direct: Times,
    /// To one that takes nothing, without the messages that its ring takes: into pages that are
    /// new,
    fresh: Times,
    /// and into some that are present.
    warm: Times,
    /// Messages in a second of a pair whose receiver lends a log, and the quotient by one whose
    /// receiver lends none: the median of neighbouring windows.
    messages_per_s: f64,
    with_over_without: f64,
    /// The part of those messages that went to the log.
    spilled: f64,
}

impl Figures {
    pub(crate) fn print(&self) {
        let mut table =
            hamlyn_cli::terminal::table(&["send", "median, ns", "99 %", "99.9 %", "most"]);
        for (name, times) in [
            ("to one that takes all", &self.direct),
            ("to one that takes nothing, fresh pages", &self.fresh),
            ("the same, pages that are present", &self.warm),
        ] {
            let numbers = [times.median_ns, times.p99_ns, times.p999_ns, times.most_ns];
            let numbers = numbers.map(|number| number.to_string());
            table.add_row(std::iter::once(name.to_owned()).chain(numbers));
        }
        println!("What does the overflow log cost? 16 bytes\n{table}");
        println!(
            "A pair at full rate: {:.1} million/s, {:.2} of one without a log; {:.3} % spilled\n",
            self.messages_per_s / 1e6,
            self.with_over_without,
            100.0 * self.spilled
        );
    }
}

fn open(log_bytes: u32) -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace("bench");
    options.spin_ns = Some(u64::MAX / 4);
    options.buffer_bytes_per_peer = log_bytes;
    Ok(hamlyn::open_with(options, ManagerOptions::default())?)
}

/// Measures both, on these processors, this thread on the first.
pub(super) fn measure(
    processors: &[usize],
    window: Duration,
    bar: &ProgressBar,
) -> Result<Figures> {
    let there = processors.get(1).copied().context("one processor only")?;
    let (mut direct, mut fresh, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        direct.extend(at_rate(there, LOG_BYTES, window, true)?.times_ns);
        let stopped = to_one_that_takes_nothing()?;
        fresh.extend(stopped.fresh_ns);
        warm.extend(stopped.warm_ns);
        bar.inc(1);
    }
    let (mut rates, mut ratios, mut spilled) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let with = at_rate(there, LOG_BYTES, window, false)?;
        let without = at_rate(there, 0, window, false)?;
        rates.push(with.messages_per_s);
        ratios.push(with.messages_per_s / without.messages_per_s);
        spilled.push(with.spilled);
        bar.inc(1);
    }
    Ok(Figures {
        direct: times(direct),
        fresh: times(fresh),
        warm: times(warm),
        messages_per_s: median(rates),
        with_over_without: median(ratios),
        spilled: median(spilled),
    })
}

fn times(mut all_ns: Vec<u64>) -> Times {
    all_ns.sort_unstable();
    let at = |part: f64| {
        let place = (all_ns.len() as f64 * part) as usize;
        let last = all_ns.len().saturating_sub(1);
        all_ns.get(place.min(last)).copied().unwrap_or_default()
    };
    Times {
        median_ns: at(0.5),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        most_ns: at(1.0),
    }
}

/// How long a send takes.
fn timed(sender: &mailbox::Sender) -> Result<u64> {
    let begun = Instant::now();
    sender.send(&MESSAGE, WAIT)?;
    Ok(begun.elapsed().as_nanos() as u64)
}

struct ToStopped {
    fresh_ns: Vec<u64>,
    warm_ns: Vec<u64>,
}

/// Nobody polls the receiver while messages are sent to it.
fn to_one_that_takes_nothing() -> Result<ToStopped> {
    let receiver = open(LOG_BYTES)?;
    let options = MailboxOptions {
        queue_bytes: 1 << 28,
        ..MailboxOptions::default()
    };
    let mut inbox = mailbox::Receiver::new(&receiver, options)?;
    let manager = open(0)?;
    let sender = mailbox::Sender::grow(&manager, &inbox.ticket(), WAIT)?;
    let ring = Options::default().cells as usize;
    let send = |count: usize| -> Result<Vec<u64>> {
        let times: Result<Vec<_>> = (0..ring + count).map(|_| timed(&sender)).collect();
        let mut times = times?;
        // The ring took the first of them; what waited for it to be full is one send.
        times.drain(..ring);
        Ok(times)
    };
    let fresh_ns = send(MESSAGES)?;
    for _ in 0..ring + MESSAGES {
        ensure!(inbox.recv(WAIT)?.is_some(), "a message did not come");
    }
    ensure!(inbox.recv(Wait::Poll)?.is_none(), "more came than was sent");
    // Back to the ring, so that the next episode begins in pages that stayed.
    sender.send(&MESSAGE, WAIT)?;
    while manager.session().poll() > 0 || inbox.recv(Wait::millis(1))?.is_some() {}
    let warm_ns = send(WARM_MESSAGES)?;
    Ok(ToStopped { fresh_ns, warm_ns })
}

struct AtRate {
    messages_per_s: f64,
    spilled: f64,
    times_ns: Vec<u64>,
}

/// A receiver that takes all, on a processor of its own, and a sender that sends as fast as it can.
fn at_rate(there: usize, log_bytes: u32, window: Duration, is_timed: bool) -> Result<AtRate> {
    let stop = AtomicBool::new(false);
    let taken = AtomicU64::new(0);
    let (say, said) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let (stop, taken) = (&stop, &taken);
        let receiving = scope.spawn(move || -> Result<()> {
            pin(&[there])?;
            let receiver = open(log_bytes)?;
            let mut inbox = mailbox::Receiver::new(&receiver, MailboxOptions::default())?;
            say.send(inbox.ticket())?;
            let mut count = 0;
            while !stop.load(Relaxed) {
                while inbox.recv(Wait::Poll)?.is_some() {
                    count += 1;
                }
                taken.store(count, Relaxed);
            }
            Ok(())
        });
        let sent = (|| -> Result<AtRate> {
            let manager = open(0)?;
            let sender = mailbox::Sender::grow(&manager, &said.recv()?, WAIT)?;
            let (begun, mut times_ns, mut count) = (Instant::now(), Vec::new(), 0_u64);
            while begun.elapsed() < window {
                for _ in 0..64 {
                    match is_timed {
                        true => times_ns.push(timed(&sender)?),
                        false => drop(sender.send(&MESSAGE, WAIT)?),
                    }
                    count += 1;
                }
            }
            let messages_per_s = taken.load(Relaxed) as f64 / begun.elapsed().as_secs_f64();
            let link = manager.session().peers().next().map(|(link, _)| link);
            let used = link.and_then(|link| manager.session().log_use(link));
            let spilled_bytes = used.map_or(0, |used| used.spilled_bytes);
            Ok(AtRate {
                messages_per_s,
                spilled: spilled_bytes as f64 / 64.0 / count as f64,
                times_ns,
            })
        })();
        stop.store(true, Relaxed);
        receiving.join().ok().context("a thread panicked")??;
        sent
    })
}
