//! Many senders to one receiver: what each of them gets, and what the silent ones cost.
//!
//! Each sender is an interface of its own in a process of its own, with a key of its own, and sends
//! short messages in fast mode, one call each. The receiver has the first processor, and all
//! senders have the others. They wait as programs do: they poll for a while, then sleep.
//!
//! *Fairness* is what the slowest sender got over the mean, in a window that begins when every
//! sender was heard and in which all send all the time. An *empty poll* is one that finds nothing,
//! with that many silent senders that have all sent before.

pub(crate) mod sender;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Manager, NewSlot, Queue, Slot};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::report::Report;
use super::{Depth, Effort, descriptors, memory};
use crate::Role;
use hamlyn_cli::actor::{Actor, to_hex};
use sender::Order;

/// How many senders at once.
const NUMBERS: [usize; 4] = [1, 10, 100, 1_000];
/// The most with `--quick`.
const QUICK_MAX: usize = 100;
/// Pipes of a process and descriptors of a link, at most.
const DESCRIPTORS_PER_SENDER: usize = 6;
/// Descriptors that are not those of a sender.
const DESCRIPTORS_BESIDES: usize = 64;
/// Memory that one sender writes.
const SLOT_BYTES: u64 = 1024;
/// Senders from which on their memory is a sum that says something.
const MEMORY_FROM: usize = 10;
/// Messages, or empty polls, between two looks at the clock, or at whether to stop.
const MESSAGES_PER_LOOK: u64 = 64;
/// Polls until silent senders are known to be, for each of them.
const POLLS_TO_SETTLE: usize = 64;
const POLLS_TO_SETTLE_MIN: usize = 10_000;
/// Empty polls that are timed.
const EMPTY_POLLS: usize = 20_000;
/// How often; the median is reported.
const EMPTY_ROUNDS: usize = 11;
/// The window in which many senders have their turns is longer by this for each: where they share a
/// processor, several time slices of the kernel, since what one gets is a number of whole slices.
const WINDOW_PER_SENDER: Duration = Duration::from_millis(16);
/// How long rings have to grow before the window.
const GROWTH: Duration = Duration::from_millis(100);
/// A receiver that hears nothing for so long gives up.
const SILENCE: Duration = Duration::from_secs(30);
/// In the word of the last message of a sender.
const LAST: u64 = 1 << 63;

/// What was found with one number of senders.
pub(crate) struct Figures {
    senders: usize,
    messages_per_s: f64,
    slowest_over_mean: f64,
    one_busy_messages_per_s: f64,
    empty_poll_ns: f64,
    idle_peer: Option<IdlePeer>,
}

/// Memory of a link over which nothing was sent.
struct IdlePeer {
    /// What the receiver pays.
    own_bytes: u64,
    /// What both pay.
    both_bytes: u64,
}

impl Figures {
    pub(crate) fn json(&self) -> Value {
        json!({
            "senders": self.senders,
            "messages_per_s": self.messages_per_s.round(),
            "slowest_over_mean": self.slowest_over_mean,
            "one_busy_messages_per_s": self.one_busy_messages_per_s.round(),
            "empty_poll_ns": self.empty_poll_ns,
            "idle_peer_bytes": self.idle_peer.as_ref().map(|idle| idle.own_bytes),
            "idle_peer_both_sides_bytes": self.idle_peer.as_ref().map(|idle| idle.both_bytes),
        })
    }

    /// A row of the table whose columns are [`Figures::COLUMNS`].
    pub(crate) fn row(&self) -> [String; 7] {
        let kibibytes = |figure: fn(&IdlePeer) -> u64| match &self.idle_peer {
            Some(idle) => format!("{:.1}", figure(idle) as f64 / 1024.0),
            None => String::new(),
        };
        [
            self.senders.to_string(),
            format!("{:.1}", self.messages_per_s / 1e6),
            format!("{:.2}", self.slowest_over_mean),
            format!("{:.1}", self.one_busy_messages_per_s / 1e6),
            format!("{:.0}", self.empty_poll_ns),
            kibibytes(|idle| idle.own_bytes),
            kibibytes(|idle| idle.both_bytes),
        ]
    }

    /// See [`Figures::row`].
    pub(crate) const COLUMNS: [&str; 7] = [
        "senders",
        "million/s",
        "slowest/mean",
        "one busy, million/s",
        "empty poll, ns",
        "KiB per idle peer",
        "both sides",
    ];
}

/// How many numbers of senders are measured.
pub(crate) fn steps(effort: Effort) -> u64 {
    numbers(effort).count() as u64
}

fn numbers(effort: Effort) -> impl Iterator<Item = usize> {
    NUMBERS
        .into_iter()
        .filter(move |&number| effort.depth == Depth::Full || number <= QUICK_MAX)
}

/// Measures all numbers of senders. This thread stays on the first of these processors.
pub(crate) fn measure(
    processors: &[usize],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let most = numbers(effort).max().unwrap_or(0);
    descriptors::allow((most * DESCRIPTORS_PER_SENDER + DESCRIPTORS_BESIDES) as u64)?;
    let mut crowd = Crowd::new(most, &processors[1..])?;
    for number in numbers(effort) {
        let idle_peer = crowd.grow(number)?;
        let window = effort.window + WINDOW_PER_SENDER * number as u32;
        let all = crowd.flood(number, window)?;
        let empty_poll_ns = crowd.empty_poll_ns()?;
        let one = crowd.flood(1, effort.window)?;
        report.senders.push(Figures {
            senders: number,
            messages_per_s: all.messages_per_s,
            slowest_over_mean: all.slowest_over_mean,
            one_busy_messages_per_s: one.messages_per_s,
            empty_poll_ns,
            idle_peer,
        });
        bar.inc(1);
    }
    crowd.finish()
}

/// The receiver, and its senders.
struct Crowd {
    manager: Manager<ProcessHost>,
    queue: Queue,
    area: hamlyn::Area,
    slots: Vec<Slot>,
    processes: Vec<Actor>,
    elsewhere: Vec<usize>,
}

/// What came in a window.
struct Flood {
    messages_per_s: f64,
    slowest_over_mean: f64,
}

/// What was heard so far.
struct Tally {
    by_sender: Vec<u64>,
    /// Senders that were heard.
    heard: usize,
    /// Senders whose last message came.
    ended: usize,
    total: u64,
}

impl Tally {
    #[inline]
    fn count(&mut self, word: u64) -> Result<()> {
        let number = (word & !LAST) as usize;
        let count = self
            .by_sender
            .get_mut(number)
            .context("a message of nobody")?;
        self.heard += usize::from(*count == 0);
        self.ended += usize::from(word & LAST != 0);
        self.total += 1;
        *count += 1;
        Ok(())
    }
}

impl Crowd {
    fn new(senders_max: usize, elsewhere: &[usize]) -> Result<Self> {
        let manager = super::open()?;
        let mut interface = manager.session();
        let area = interface.allocate(senders_max as u64 * SLOT_BYTES)?;
        let queue = interface.open_queue(4096)?;
        drop(interface);
        Ok(Self {
            manager,
            queue,
            area,
            slots: Vec::new(),
            processes: Vec::new(),
            elsewhere: elsewhere.to_vec(),
        })
    }

    /// As many senders as that. What the links cost that are new, if they are many.
    fn grow(&mut self, senders: usize) -> Result<Option<IdlePeer>> {
        let known = self.processes.len();
        for number in known..senders {
            let mut process = Actor::start(Role::Sender, None).with_context(|| {
                format!(
                    "starting sender {} of {senders}, with three threads each: raise the limit of processes (ulimit -u, pids.max), or measure with --quick",
                    number + 1
                )
            })?;
            process.order(&Order::Open {
                processors: self.elsewhere.clone(),
                number: number as u64,
                ticket: self.open_slot()?,
            })?;
            self.processes.push(process);
        }
        let new = &mut self.processes[known..];
        for process in &mut *new {
            let () = process.answer()?;
        }
        let before = memory::used_bytes()?;
        // All at once, as when a parallel program starts.
        for process in &mut *new {
            process.order(&Order::Connect)?;
        }
        let mut theirs = 0;
        for process in &mut *new {
            let bytes: u64 = process.answer()?;
            theirs += bytes;
        }
        while self.manager.session().peers().count() < senders {
            self.manager.session().poll();
        }
        let grown = memory::used_bytes()?.since(before);
        let new = new.len() as u64;
        Ok((senders >= MEMORY_FROM).then(|| IdlePeer {
            own_bytes: (grown.private + grown.shared / 2) / new,
            both_bytes: (grown.private + grown.shared + theirs) / new,
        }))
    }

    /// A slot for the next sender: its ticket.
    fn open_slot(&mut self) -> Result<String> {
        let number = self.slots.len() as u64;
        let from = number * SLOT_BYTES;
        let new = NewSlot::new(&self.area)
            .range(from..from + SLOT_BYTES)
            .queue(&self.queue);
        let slot = self.manager.session().open_slot(new)?;
        let ticket = to_hex(&slot.fast_ticket(0, SLOT_BYTES)?.to_bytes());
        self.slots.push(slot);
        Ok(ticket)
    }

    /// Takes what comes, a while.
    #[inline]
    fn take(&mut self, tally: &mut Tally) -> Result<()> {
        for _ in 0..MESSAGES_PER_LOOK {
            if let Some(notification) = self.manager.session().rcv(&mut self.queue)? {
                tally.count(notification.word)?;
            }
        }
        Ok(())
    }

    /// Takes until that is so. Fails if nothing new is heard for too long.
    fn take_until(
        &mut self,
        tally: &mut Tally,
        is_so: impl Fn(&Tally) -> bool,
        what: &str,
    ) -> Result<()> {
        let (mut seen, mut seen_at) = (0, Instant::now());
        while !is_so(tally) {
            self.take(tally)?;
            if tally.total != seen {
                (seen, seen_at) = (tally.total, Instant::now());
            } else if seen_at.elapsed() > SILENCE {
                bail!(
                    "{} of the senders were heard, {} {what}",
                    tally.heard,
                    tally.ended
                );
            }
        }
        Ok(())
    }

    /// Has the first so many senders send: what came in that window.
    fn flood(&mut self, senders: usize, window: Duration) -> Result<Flood> {
        for process in &mut self.processes[..senders] {
            process.order(&Order::Send)?;
        }
        let mut tally = Tally {
            by_sender: vec![0; senders],
            heard: 0,
            ended: 0,
            total: 0,
        };
        self.take_until(&mut tally, |tally| tally.heard == senders, "are ready")?;
        let grown = Instant::now();
        while grown.elapsed() < GROWTH {
            self.take(&mut tally)?;
        }
        let (before, total_before) = (tally.by_sender.clone(), tally.total);
        let start = Instant::now();
        let took = loop {
            self.take(&mut tally)?;
            let took = start.elapsed();
            // On a busy machine no sender may have had its turn yet: that is no rate.
            let is_one_heard = tally.total > total_before || took >= SILENCE;
            if took >= window && is_one_heard {
                break took;
            }
        };
        let in_window = tally
            .by_sender
            .iter()
            .zip(before)
            .map(|(now, then)| now - then);
        let slowest = in_window.clone().min().unwrap_or(0);
        let sum: u64 = in_window.sum();
        for process in &mut self.processes[..senders] {
            process.order(&Order::Stop)?;
        }
        self.take_until(&mut tally, |tally| tally.ended == senders, "have ended")?;
        let mut sent = 0;
        for process in &mut self.processes[..senders] {
            let by_process: u64 = process.answer()?;
            sent += by_process;
        }
        ensure!(
            sent == tally.total,
            "{} of {sent} messages came",
            tally.total
        );
        Ok(Flood {
            messages_per_s: sum as f64 / took.as_secs_f64(),
            slowest_over_mean: slowest as f64 * senders as f64 / sum.max(1) as f64,
        })
    }

    /// What a poll takes that finds nothing, when all senders have been silent for long.
    fn empty_poll_ns(&mut self) -> Result<f64> {
        let to_settle = POLLS_TO_SETTLE_MIN.max(POLLS_TO_SETTLE * self.slots.len());
        let mut figures = Vec::new();
        self.poll_empty(to_settle)?;
        for _ in 0..EMPTY_ROUNDS {
            let start = Instant::now();
            self.poll_empty(EMPTY_POLLS)?;
            figures.push(start.elapsed().as_nanos() as f64 / EMPTY_POLLS as f64);
        }
        Ok(super::median(figures))
    }

    fn poll_empty(&mut self, polls: usize) -> Result<()> {
        for _ in 0..polls {
            let taken = self.manager.session().rcv(&mut self.queue)?;
            ensure!(taken.is_none(), "a silent sender sent something");
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        drop(self.manager);
        self.processes.into_iter().try_for_each(Actor::finish)
    }
}
