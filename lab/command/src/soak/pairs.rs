//! Pairs of processes on this host, the receivers of which lend an overflow log (decision 53) and
//! are stopped at random. Everything comes in order and once, and nothing of a log is left in
//! memory, but what is kept of each, once all was taken.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hamlyn::Strategy;
use hamlyn_cli::actor::Actor;
use hamlyn_sim::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::pair_process::{Order, Used};

/// Messages that a sender sends in one turn, if there is room.
const MESSAGES: u64 = 1_000;
/// Turns for which a receiver is stopped, and for which it is not.
const STOPPED_TURNS: std::ops::Range<u64> = 1..10;
const GOING_TURNS: std::ops::Range<u64> = 2..15;
/// Memory of a log that stays (decision 53).
const KEPT_BYTES: u64 = 64 << 10;
/// The time that the rest of it may take to go back.
const TIMEOUT: Duration = Duration::from_secs(30);

/// See the module.
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    random: Random,
}

struct Pair {
    receiver: Actor,
    sender: Actor,
    is_stopped: bool,
    /// Turns until that changes.
    turns: u64,
    figures: Figures,
}

/// The report of a pair.
#[derive(Clone, Default, Debug, Serialize)]
pub(super) struct Figures {
    /// Stops of its receiver.
    pub(super) stops: u64,
    /// The words of its sender.
    #[serde(flatten)]
    pub(super) used: Used,
    /// Bytes of the log that are present, and the most that were when somebody looked.
    pub(super) present_bytes: u64,
    pub(super) most_present_bytes: u64,
}

impl Pairs {
    pub(super) fn begin(count: usize, seed: u64) -> Result<Self> {
        let mut random = Random::new(seed);
        let namespace = format!("soak-pairs-{}", std::process::id());
        let start = |number: usize| -> Result<Pair> {
            let strategy = Strategy::ALL[number % Strategy::ALL.len()].name();
            let mut receiver = Actor::start(crate::Role::SoakPair, None)?;
            receiver.order(&Order::Receive {
                namespace: namespace.clone(),
                strategy: strategy.to_owned(),
                number: number as u64,
            })?;
            let ticket: String = receiver.answer()?;
            let mut sender = Actor::start(crate::Role::SoakPair, None)?;
            sender.order(&Order::Send {
                namespace: namespace.clone(),
                ticket,
                number: number as u64,
            })?;
            Ok(Pair {
                receiver,
                sender,
                is_stopped: false,
                turns: random.within(GOING_TURNS),
                figures: Figures::default(),
            })
        };
        let pairs = (0..count).map(start).collect::<Result<_>>()?;
        Ok(Self { pairs, random })
    }

    /// Has all senders send, and stops and continues receivers.
    pub(super) fn turn(&mut self, are_stopped: bool) -> Result<()> {
        for pair in &mut self.pairs {
            pair.look(MESSAGES)?;
            pair.turns -= 1;
            if pair.turns == 0 {
                pair.turns = match pair.is_stopped {
                    true => self.random.within(GOING_TURNS),
                    false => self.random.within(STOPPED_TURNS),
                };
                if are_stopped {
                    pair.stop(!pair.is_stopped)?;
                }
            }
        }
        Ok(())
    }

    /// Waits until all has come. Returns the faults.
    pub(super) fn end(&mut self) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        for (number, pair) in self.pairs.iter_mut().enumerate() {
            pair.stop(false)?;
            // Messages that found no room wait in its sender, which hands them over now.
            pair.look(0)?;
            let sent = pair.figures.used.messages;
            pair.receiver.order(&Order::Until(sent))?;
            let taken: u64 = pair.receiver.answer()?;
            if taken != sent {
                faults.push(format!("pair {number}: {taken} messages came of {sent}"));
            }
            // The sender gives back what it has reserved once it has rested.
            let begun = Instant::now();
            loop {
                pair.look(0)?;
                let Figures {
                    used,
                    present_bytes,
                    ..
                } = &pair.figures;
                if used.waiting_bytes == 0 && *present_bytes <= KEPT_BYTES {
                    break;
                }
                if begun.elapsed() > TIMEOUT {
                    faults.push(format!(
                        "pair {number}: nothing is sent any more, and {} KiB of its log are present, {} bytes wait",
                        present_bytes >> 10,
                        used.waiting_bytes
                    ));
                    break;
                }
            }
        }
        Ok(faults)
    }

    pub(super) fn figures(&self) -> Vec<Figures> {
        self.pairs.iter().map(|pair| pair.figures.clone()).collect()
    }

    /// Of all pairs: stops, bytes that went to logs, and the most that were present at a time.
    pub(super) fn summary(&self) -> String {
        let sum = |of: fn(&Figures) -> u64| self.pairs.iter().map(|pair| of(&pair.figures)).sum();
        let size = |bytes: u64| indicatif::HumanBytes(bytes).to_string();
        let stops: u64 = sum(|figures| figures.stops);
        format!(
            "{} pairs, {} messages, {stops} stops, {} pauses, {} in logs, of which {} are present and {} were",
            self.pairs.len(),
            sum(|figures| figures.used.messages),
            sum(|figures| figures.used.pauses),
            size(sum(|figures| figures.used.spilled_bytes)),
            size(sum(|figures| figures.present_bytes)),
            size(sum(|figures| figures.most_present_bytes)),
        )
    }
}

impl Pair {
    fn stop(&mut self, is_stopped: bool) -> Result<()> {
        if self.is_stopped != is_stopped {
            let signal = if is_stopped {
                Signal::STOP
            } else {
                Signal::CONT
            };
            let process = Pid::from_raw(self.receiver.process() as i32).context("no process")?;
            kill_process(process, signal)?;
            self.is_stopped = is_stopped;
            self.figures.stops += u64::from(is_stopped);
        }
        Ok(())
    }

    /// Has its sender send up to so many messages, and looks at the log.
    fn look(&mut self, messages: u64) -> Result<()> {
        self.sender.order(&Order::Go(messages))?;
        self.figures.used = self.sender.answer()?;
        let present_bytes = present_bytes(self.sender.process())?;
        // Both have the pages that they have touched.
        let present_bytes = present_bytes.max(self::present_bytes(self.receiver.process())?);
        self.figures.present_bytes = present_bytes;
        let most = &mut self.figures.most_present_bytes;
        *most = present_bytes.max(*most);
        Ok(())
    }
}

/// Bytes of logs that are mapped in a process.
fn present_bytes(process: u32) -> Result<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/smaps"))?;
    let mut lines = maps.lines();
    let mut present = 0;
    while lines.any(|line| line.contains("hamlyn-overflow")) {
        let rss = lines.find_map(|line| line.strip_prefix("Rss:"));
        let kib = rss.and_then(|text| text.split_whitespace().next());
        present += kib.context("no size in smaps")?.parse::<u64>()? << 10;
    }
    Ok(present)
}
