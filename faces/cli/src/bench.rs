//! `hamlyn bench`: in some seconds, how fast this machine hands a cache line from one processor to
//! another, and how fast messages travel between two processes on these processors.
//! `hamlyn-lab bench` measures all the rest.
//!
//! Each figure is the median of several rounds, and each round of a message stands beside a round
//! of the raw hand-off, so that a machine that was disturbed disturbs both.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::stream::StreamOptions;
use hamlyn::{Manager, ManagerOptions, Wait, datagram, stream};
use hamlyn_cli::actor::{Actor, answer, next_order};
use hamlyn_cli::processors::{allowed, median, pin};
use hamlyn_cli::terminal;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::Role;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
}

/// Lengths of the messages whose time is measured.
const LENGTHS_BYTES: [usize; 4] = [16, 256, 4_096, 65_536];
/// Lengths of the records whose rate is measured.
const RECORDS_BYTES: [usize; 3] = [16, 4_096, 262_144];
const ROUNDS: usize = 15;
const ROUND_TRIPS: u64 = 10_000;
/// Records of one round: as many, or as many as have these bytes.
const RECORDS_MAX: usize = 500_000;
const ROUND_BYTES: usize = 256 << 20;

const BUFFER_BYTES: u32 = 65_536;
const PIECES: u32 = 16;
const PIECE_BYTES: u32 = 256 << 10;
const WAIT: Wait = Wait::millis(10_000);

const REQUESTS: &str = "requests";
const ANSWERS: &str = "answers";
const RECORDS: &str = "records";

/// What the other process is to do next. It answers when it is ready.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Stay on that processor, and be found in that namespace.
    Settle { processor: usize, namespace: String },
    /// Send messages that come back to their sender, so many.
    Echo { round_trips: u64 },
    /// Take so many records; answer again when they are there.
    Take { records: u64 },
}

/// One row: a length, and what was measured of it.
struct Row {
    length_bytes: usize,
    figure: f64,
    /// What the raw hand-off took beside it.
    raw_ns: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let processors = allowed()?;
    let &[here, there, ..] = &processors[..] else {
        bail!(
            "two processors are needed to measure messages between two processes; this process may use {}",
            processors.len()
        );
    };
    pin(&[here])?;
    let steps = (LENGTHS_BYTES.len() + RECORDS_BYTES.len()) * ROUNDS;
    let bar = terminal::steps_bar(steps as u64, "measuring", arguments.json);
    let mut ends = Ends::open(there)?;
    let mut latencies = Vec::new();
    for length_bytes in LENGTHS_BYTES {
        let (mut times, mut raws) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            raws.push(raw_hand_off_ns(here, there)?);
            times.push(ends.one_way_ns(length_bytes)?);
            bar.inc(1);
        }
        latencies.push(Row {
            length_bytes,
            figure: median(times),
            raw_ns: median(raws),
        });
    }
    let mut rates = Vec::new();
    for length_bytes in RECORDS_BYTES {
        let mut figures = Vec::new();
        for _ in 0..ROUNDS {
            figures.push(ends.records_per_s(length_bytes)?);
            bar.inc(1);
        }
        rates.push((length_bytes, median(figures)));
    }
    ends.other.finish()?;
    bar.finish_and_clear();
    let raw_ns = median(latencies.iter().map(|row| row.raw_ns).collect());
    if arguments.json {
        print_json(&latencies, &rates, raw_ns);
    } else {
        print_tables(&latencies, &rates, raw_ns);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(latencies: &[Row], rates: &[(usize, f64)], raw_ns: f64) {
    let report = json!({
        "processor": processor_name(),
        "raw_hand_off_ns": raw_ns,
        "datagram_one_way": latencies.iter().map(|row| json!({
            "length_bytes": row.length_bytes,
            "ns": row.figure,
            "over_raw": row.figure / row.raw_ns,
        })).collect::<Vec<_>>(),
        "stream": rates.iter().map(|&(length_bytes, records_per_s)| json!({
            "length_bytes": length_bytes,
            "records_per_s": records_per_s,
            "bytes_per_s": records_per_s * length_bytes as f64,
        })).collect::<Vec<_>>(),
    });
    println!("{report}");
}

fn print_tables(latencies: &[Row], rates: &[(usize, f64)], raw_ns: f64) {
    println!("{}", processor_name());
    println!(
        "A cache line goes from one processor to the other in {raw_ns:.0} ns; no message can be faster.\n"
    );
    let mut table = terminal::table(&["datagram, bytes", "one way, ns", "of a cache line"]);
    for row in latencies {
        table.add_row([
            row.length_bytes.to_string(),
            format!("{:.0}", row.figure),
            format!("{:.2}", row.figure / row.raw_ns),
        ]);
    }
    println!("{table}\n");
    let mut table = terminal::table(&["stream, bytes", "records a second", "MB a second"]);
    for &(length_bytes, records_per_s) in rates {
        table.add_row([
            length_bytes.to_string(),
            format!("{records_per_s:.0}"),
            format!("{:.0}", records_per_s * length_bytes as f64 / 1e6),
        ]);
    }
    println!("{table}");
}

/// What the kernel calls the processor.
fn processor_name() -> String {
    std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| "a processor that /proc/cpuinfo does not name".to_owned())
}

/// A word that has its line to itself, and the next: lines are fetched in pairs.
#[repr(align(128))]
struct Line(AtomicU64);

/// Nobody is there yet.
const ABSENT: u64 = u64::MAX;

/// What a cache line takes from one processor to the other now, in nanoseconds. Both write the same
/// line in turn.
fn raw_hand_off_ns(here: usize, there: usize) -> Result<f64> {
    let line = &Line(AtomicU64::new(ABSENT));
    std::thread::scope(|scope| {
        let other = scope.spawn(move || -> Result<()> {
            pin(&[there])?;
            line.0.store(0, Release);
            for turn in 0..ROUND_TRIPS {
                line.await_word(2 * turn + 1);
                line.0.store(2 * turn + 2, Release);
            }
            Ok(())
        });
        while line.0.load(Acquire) == ABSENT && !other.is_finished() {
            std::hint::spin_loop();
        }
        let start = Instant::now();
        if !other.is_finished() {
            for turn in 0..ROUND_TRIPS {
                line.0.store(2 * turn + 1, Release);
                line.await_word(2 * turn + 2);
            }
        }
        let elapsed = start.elapsed();
        match other.join() {
            Ok(result) => result?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        pin(&[here])?;
        Ok(elapsed.as_nanos() as f64 / (2 * ROUND_TRIPS) as f64)
    })
}

impl Line {
    fn await_word(&self, word: u64) {
        while self.0.load(Acquire) != word {
            std::hint::spin_loop();
        }
    }
}

/// A manager that polls, and never sleeps, among those of one measurement.
fn open(namespace: &str, name: &str) -> Result<Manager<ProcessHost>> {
    let mut options = Options::default().in_namespace(namespace);
    options.name = Some(name.to_owned());
    options.spin_ns = Some(u64::MAX / 4);
    Ok(hamlyn::open_with(options, ManagerOptions::default())?)
}

/// This process' ends, and the other process.
struct Ends {
    other: Actor,
    request: datagram::Sender,
    answers: datagram::Receiver,
    records: stream::Sender,
    turn: u64,
}

impl Ends {
    fn open(processor: usize) -> Result<Self> {
        let namespace = format!("bench-{}", std::process::id());
        let manager = open(&namespace, "here")?;
        let answers = manager.bind_datagram(ANSWERS, BUFFER_BYTES)?;
        let mut other = Actor::start(Role::Bench, None)?;
        other.order(&Order::Settle {
            processor,
            namespace,
        })?;
        let () = other.answer()?;
        Ok(Self {
            request: manager.connect_datagram(&format!("there/{REQUESTS}"), WAIT)?,
            records: manager.connect_stream(&format!("there/{RECORDS}"), WAIT)?,
            other,
            answers,
            turn: 0,
        })
    }

    fn one_way_ns(&mut self, length_bytes: usize) -> Result<f64> {
        self.other.order(&Order::Echo {
            round_trips: ROUND_TRIPS,
        })?;
        let () = self.other.answer()?;
        let mut message = vec![0; length_bytes];
        let start = Instant::now();
        for _ in 0..ROUND_TRIPS {
            self.turn += 1;
            message[..8].copy_from_slice(&self.turn.to_le_bytes());
            self.request.send(&message, WAIT)?;
            let back = self.answers.recv(WAIT)?.context("no answer came")?;
            ensure!(
                back.len() == length_bytes && back[..8] == message[..8],
                "another message came back"
            );
        }
        Ok(start.elapsed().as_nanos() as f64 / (2 * ROUND_TRIPS) as f64)
    }

    fn records_per_s(&mut self, length_bytes: usize) -> Result<f64> {
        let records = RECORDS_MAX.min(ROUND_BYTES / length_bytes) as u64;
        self.other.order(&Order::Take { records })?;
        let () = self.other.answer()?;
        let message = vec![0x5a; length_bytes];
        let start = Instant::now();
        for _ in 0..records {
            self.records.send(&message, WAIT)?;
        }
        self.records.flush(WAIT)?;
        let () = self.other.answer()?;
        Ok(records as f64 / start.elapsed().as_secs_f64())
    }
}

/// The other process of the benchmark.
pub(crate) fn other_process() -> Result<()> {
    let Some(Order::Settle {
        processor,
        namespace,
    }) = next_order()?
    else {
        bail!("not told where to be");
    };
    pin(&[processor])?;
    let manager = open(&namespace, "there")?;
    let mut requests = manager.bind_datagram(REQUESTS, BUFFER_BYTES)?;
    let mut records = manager.bind_stream(
        RECORDS,
        StreamOptions {
            pieces: PIECES,
            piece_bytes: PIECE_BYTES,
            limit_bytes: u64::from(PIECES) * u64::from(PIECE_BYTES),
            ahead: false,
        },
    )?;
    let to_here = manager.connect_datagram(&format!("here/{ANSWERS}"), WAIT)?;
    answer(&())?;
    while let Some(order) = next_order()? {
        match order {
            Order::Settle { .. } => bail!("settled already"),
            Order::Echo { round_trips } => {
                answer(&())?;
                for _ in 0..round_trips {
                    let request = requests.recv(WAIT)?.context("no message came")?;
                    to_here.send(&request, WAIT)?;
                }
                ensure!(manager.flush(WAIT)?, "the last answer was not sent");
            }
            Order::Take { records: count } => {
                answer(&())?;
                for _ in 0..count {
                    records.recv(WAIT)?.context("no record came")?;
                }
                answer(&())?;
            }
        }
    }
    Ok(())
}
