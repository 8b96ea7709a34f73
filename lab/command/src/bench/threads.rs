//! Threads that share an interface: half of them send 16 bytes at a time, the others take them.
//! Both protocols send under a lock of the transmit half alone; the receiver of a stream sends
//! credit back besides, and its sender takes that in.
//!
//! The interface sends to itself, so that nothing but these threads is at work. Beside it the same
//! threads with two interfaces, one for those that send and one for those that receive: they share
//! no lock, and the difference is what sharing costs. Where there are fewer processors than
//! threads, they take turns.

use std::sync::Barrier;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::stream::StreamOptions;
use hamlyn::{Manager, ManagerOptions, Wait, stream, tagged_write};
use hamlyn_cli::processors::{median, pin};
use indicatif::ProgressBar;
use serde::Serialize;

type Host = ProcessHost<AnyThread>;
type Shared = Manager<Host>;

/// By which protocols.
const PROTOCOLS: [Protocol; 2] = [Protocol::TaggedWrite, Protocol::Stream];
/// How many threads.
const NUMBERS: [usize; 2] = [2, 4];
/// Windows of each kind, in turn; the median is reported.
const ROUNDS: usize = 5;
const MESSAGE_BYTES: usize = 16;
const AREA_BYTES: u64 = 4096;
/// Tags of a receiver.
const AHEAD_MAX: usize = 1024;
/// Messages between two looks at whether to stop.
const MESSAGES_PER_LOOK: u64 = 64;
const WAIT: Wait = Wait::millis(5_000);

/// Figures that are measured.
pub(super) const STEPS: u64 = (NUMBERS.len() * PROTOCOLS.len()) as u64;

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Protocol {
    TaggedWrite,
    Stream,
}

/// The figures of one protocol and number of threads.
#[derive(Serialize)]
pub(crate) struct Figures {
    protocol: Protocol,
    threads: usize,
    /// All of them share one interface.
    shared_messages_per_s: f64,
    /// Those that send share one, and those that receive another one.
    apart_messages_per_s: f64,
    /// Median of the quotients of neighbouring windows.
    shared_over_apart: f64,
}

impl Figures {
    pub(crate) const COLUMNS: [&str; 5] = [
        "protocol",
        "threads",
        "one interface, million/s",
        "two, million/s",
        "ratio",
    ];

    pub(crate) fn row(&self) -> [String; 5] {
        let protocol = match self.protocol {
            Protocol::TaggedWrite => "tagged write",
            Protocol::Stream => "stream",
        };
        [
            protocol.to_owned(),
            self.threads.to_string(),
            format!("{:.2}", self.shared_messages_per_s / 1e6),
            format!("{:.2}", self.apart_messages_per_s / 1e6),
            format!("{:.2}", self.shared_over_apart),
        ]
    }
}

/// Measures all protocols and numbers of threads. They run on these processors, in turn.
pub(super) fn measure(
    processors: &[usize],
    window: Duration,
    bar: &ProgressBar,
) -> Result<Vec<Figures>> {
    pin(processors)?;
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        for threads in NUMBERS {
            all.push(compare(protocol, threads, processors, window)?);
            bar.inc(1);
        }
    }
    Ok(all)
}

fn compare(
    protocol: Protocol,
    threads: usize,
    processors: &[usize],
    window: Duration,
) -> Result<Figures> {
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (rates, interfaces) in rates.iter_mut().zip([1, 2]) {
            let managers: Result<Vec<_>> = (0..interfaces).map(|_| open()).collect();
            let managers = managers?;
            let (from, to) = (&managers[0], &managers[interfaces - 1]);
            let ends: Result<Vec<_>> = (0..threads / 2)
                .map(|_| open_ends(protocol, from, to))
                .collect();
            rates.push(flood(from, ends?, processors, window)?);
        }
    }
    let [shared, apart] = rates;
    let pairs = shared.iter().zip(&apart);
    let ratios = pairs.map(|(shared, apart)| shared / apart).collect();
    Ok(Figures {
        protocol,
        threads,
        shared_over_apart: median(ratios),
        shared_messages_per_s: median(shared),
        apart_messages_per_s: median(apart),
    })
}

fn open() -> Result<Shared> {
    let mut options = Options::default().in_namespace("bench");
    options.spin_ns = Some(u64::MAX / 4);
    Ok(hamlyn::open_shared(options, ManagerOptions::default())?)
}

enum Sender {
    TaggedWrite(tagged_write::Sender<Host>),
    Stream(Box<stream::Sender<Host>>),
}

enum Receiver {
    TaggedWrite(Box<tagged_write::Receiver<Host>>),
    Stream(Box<stream::Receiver<Host>>),
}

fn open_ends(protocol: Protocol, from: &Shared, to: &Shared) -> Result<(Sender, Receiver)> {
    Ok(match protocol {
        Protocol::TaggedWrite => {
            let receiver = tagged_write::Receiver::new(to, AREA_BYTES, AHEAD_MAX)?;
            let sender = tagged_write::Sender::grow(from, &receiver.ticket(), WAIT)?;
            (
                Sender::TaggedWrite(sender),
                Receiver::TaggedWrite(Box::new(receiver)),
            )
        }
        Protocol::Stream => {
            let receiver = stream::Receiver::new(to, StreamOptions::default())?;
            let sender = stream::Sender::grow(from, &receiver.make_seed(), WAIT)?;
            (
                Sender::Stream(Box::new(sender)),
                Receiver::Stream(Box::new(receiver)),
            )
        }
    })
}

impl Sender {
    #[inline]
    fn send(&mut self, number: u64) -> Result<()> {
        let mut data = [7; MESSAGE_BYTES];
        data[..8].copy_from_slice(&number.to_le_bytes());
        match self {
            Self::TaggedWrite(sender) => {
                let offset = number * MESSAGE_BYTES as u64 % AREA_BYTES;
                sender.send(offset, &data, number, WAIT)?;
            }
            Self::Stream(sender) => sender.send(&data, WAIT)?,
        }
        Ok(())
    }

    /// Nobody else may move what waits.
    fn flush(&mut self, from: &Shared) -> Result<()> {
        if let Self::Stream(sender) = self {
            sender.flush(WAIT)?;
        }
        ensure!(from.flush(WAIT)?, "what was sent last was not taken");
        Ok(())
    }
}

impl Receiver {
    /// The number of the next message.
    #[inline]
    fn next(&mut self) -> Result<Option<u64>> {
        Ok(match self {
            Self::TaggedWrite(receiver) => receiver.recv(Wait::Poll)?.map(|tag| tag.tag),
            Self::Stream(receiver) => match receiver.recv(Wait::Poll)? {
                Some(record) => {
                    let number = record.get(..8).context("a shorter record")?;
                    Some(u64::from_le_bytes(number.try_into()?))
                }
                None => None,
            },
        })
    }
}

/// Threads in pairs, of which one sends to the other: messages that came in a second, of all.
fn flood(
    from: &Shared,
    ends: Vec<(Sender, Receiver)>,
    processors: &[usize],
    window: Duration,
) -> Result<f64> {
    let pairs = ends.len();
    let ways: Vec<_> = (0..pairs).map(|_| Progress::default()).collect();
    let stop = AtomicBool::new(false);
    let ready = Barrier::new(2 * pairs + 1);
    let taken = || ways.iter().map(|way| way.taken.load(Acquire)).sum::<u64>();
    let mut turn = processors.iter().cycle();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((mut sender, receiver), progress) in ends.into_iter().zip(&ways) {
            let (from, stop, ready) = (from.clone(), &stop, &ready);
            let [here, there] = [(); 2].map(|()| turn.next().copied());
            let sends = move || -> Result<_> {
                pin(here.as_slice())?;
                ready.wait();
                send(&from, &mut sender, progress, stop)?;
                // It says good-bye when it is dropped, which is not for the receiver to hear yet.
                Ok(Some(sender))
            };
            let takes = move || -> Result<_> {
                pin(there.as_slice())?;
                ready.wait();
                take(receiver, progress)?;
                Ok(None)
            };
            threads.push(scope.spawn(sends));
            threads.push(scope.spawn(takes));
        }
        ready.wait();
        let (start, before) = (Instant::now(), taken());
        std::thread::sleep(window);
        let rate = (taken() - before) as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Relaxed);
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        for ended in ended {
            let _: Option<Sender> = ended.ok().context("a thread panicked")??;
        }
        Ok(rate)
    })
}

/// How far a pair of threads is.
#[derive(Default)]
struct Progress {
    taken: AtomicU64,
    /// The number of messages and one, when all are sent.
    end: AtomicU64,
}

/// Sends until it is to stop.
fn send(from: &Shared, sender: &mut Sender, progress: &Progress, stop: &AtomicBool) -> Result<()> {
    let mut sent = 0;
    let ended = send_until(sender, progress, stop, &mut sent).and_then(|()| sender.flush(from));
    progress.end.store(sent + 1, Release);
    ended
}

/// No further ahead than the receiver's queue is long.
fn send_until(
    sender: &mut Sender,
    progress: &Progress,
    stop: &AtomicBool,
    sent: &mut u64,
) -> Result<()> {
    while !stop.load(Relaxed) {
        if *sent - progress.taken.load(Acquire) > AHEAD_MAX as u64 - MESSAGES_PER_LOOK {
            std::thread::yield_now();
            continue;
        }
        for _ in 0..MESSAGES_PER_LOOK {
            sender.send(*sent)?;
            *sent += 1;
        }
    }
    Ok(())
}

/// Takes all that is sent.
fn take(mut receiver: Receiver, progress: &Progress) -> Result<()> {
    let mut count = 0;
    while progress.end.load(Acquire) != count + 1 {
        for _ in 0..MESSAGES_PER_LOOK {
            if let Some(number) = receiver.next()? {
                ensure!(number == count, "message {number} came as number {count}");
                count += 1;
            }
        }
        progress.taken.store(count, Release);
    }
    Ok(())
}
