//! More processes than processors: what pairs of processes that exchange short messages get done
//! together.
//!
//! One pair has the two processors to itself, one process on each. Then there are four pairs: once
//! *placed*, with one process of each pair on either processor, and once *free*, where the kernel
//! may move them as it likes. They wait as programs do by default. Short messages go to and fro
//! within each pair (*round trips*), or one way as fast as they go (*stream*). The three take
//! turns, so that they see the same machine, and the medians of the ratios are reported: what all
//! get done together, over what the one pair does alone.

pub(crate) mod process;

use anyhow::Result;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::report::Report;
use super::{Effort, median};
use hamlyn_cli::actor::Actor;

use crate::Role;
use process::{Exchange, Order};

/// Processors that all processes share.
const PROCESSORS: usize = 2;
/// Processes for each of them, when there are many.
const PROCESSES_PER_PROCESSOR: usize = 4;
const PAIRS: usize = PROCESSORS * PROCESSES_PER_PROCESSOR / 2;

/// All pairs at the same time.
pub(crate) struct Together {
    /// What all get done.
    pub(crate) per_s: f64,
    /// The same over what one pair alone gets done.
    pub(crate) ratio: f64,
    /// The slowest pair's over the mean.
    pub(crate) slowest_over_mean: f64,
}

impl Together {
    fn json(&self) -> Value {
        json!({
            "per_s": self.per_s.round(),
            "ratio": self.ratio,
            "slowest_over_mean": self.slowest_over_mean,
        })
    }
}

/// Of one kind of exchange.
pub(crate) struct Rates {
    pub(crate) exchange: Exchange,
    /// Of one pair alone.
    pub(crate) alone_per_s: f64,
    pub(crate) placed: Together,
    pub(crate) free: Together,
}

/// What was found.
pub(crate) struct Figures {
    pub(crate) rates: Vec<Rates>,
}

impl Figures {
    /// Processes when there are many.
    pub(crate) const PROCESSES: usize = 2 * PAIRS;

    pub(crate) fn json(&self) -> Value {
        let mut all = json!({ "processors": PROCESSORS, "processes": Self::PROCESSES });
        for rates in &self.rates {
            all[rates.exchange.name()] = json!({
                "two_processes_per_s": rates.alone_per_s.round(),
                "placed": rates.placed.json(),
                "free": rates.free.json(),
            });
        }
        all
    }
}

/// One process of a pair begins, the other answers.
struct Pair {
    first: Actor,
    second: Actor,
}

impl Pair {
    fn start(processors: &[usize]) -> Result<Self> {
        let mut pair = Self {
            first: Actor::start(Role::Crowd, None)?,
            second: Actor::start(Role::Crowd, None)?,
        };
        let settle = Order::Settle {
            processors: processors.to_vec(),
        };
        pair.first.order(&settle)?;
        pair.second.order(&settle)?;
        let first: String = pair.first.answer()?;
        let second: String = pair.second.answer()?;
        pair.first.order(&Order::Meet { ticket: second })?;
        pair.second.order(&Order::Meet { ticket: first })?;
        let () = pair.first.answer()?;
        let () = pair.second.answer()?;
        Ok(pair)
    }
}

/// Where the processes of a pair run: the first one, and the second.
type Placement<'a> = [&'a [usize]; 2];

/// What these pairs get done at the same time, by pair.
fn exchange_in(
    pairs: &mut [Pair],
    exchange: Exchange,
    [first, second]: Placement<'_>,
    effort: Effort,
) -> Result<Vec<f64>> {
    let order = |leads, processors: &[usize]| Order::Exchange {
        exchange,
        processors: processors.to_vec(),
        leads,
        window_ns: effort.window.as_nanos() as u64,
    };
    for pair in &mut *pairs {
        pair.second.order(&order(false, second))?;
        pair.first.order(&order(true, first))?;
    }
    let mut rates = Vec::new();
    for pair in pairs {
        rates.push(pair.first.answer()?);
        let () = pair.second.answer()?;
    }
    Ok(rates)
}

/// The rounds of all pairs.
#[derive(Default)]
struct Rounds {
    sums: Vec<f64>,
    ratios: Vec<f64>,
    shares: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, rates: &[f64], alone: f64) {
        let sum: f64 = rates.iter().sum();
        let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        self.sums.push(sum);
        self.ratios.push(sum / alone);
        self.shares.push(slowest * rates.len() as f64 / sum);
    }

    fn medians(self) -> Together {
        Together {
            per_s: median(self.sums),
            ratio: median(self.ratios),
            slowest_over_mean: median(self.shares),
        }
    }
}

/// Kinds of exchange that are measured.
pub(crate) const STEPS: u64 = Exchange::ALL.len() as u64;

pub(crate) fn measure(
    processors: &[usize],
    effort: Effort,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<()> {
    let processors = &processors[..PROCESSORS];
    let placed = [&processors[..1], &processors[1..]];
    let free = [processors, processors];
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        pairs.push(Pair::start(processors)?);
    }
    let mut rates = Vec::new();
    for exchange in Exchange::ALL {
        let mut alones = Vec::new();
        let (mut all_placed, mut all_free) = (Rounds::default(), Rounds::default());
        for round in 0..effort.runs {
            let one = round % PAIRS;
            let alone = exchange_in(&mut pairs[one..=one], exchange, placed, effort)?[0];
            let rates = exchange_in(&mut pairs, exchange, placed, effort)?;
            all_placed.add(&rates, alone);
            let rates = exchange_in(&mut pairs, exchange, free, effort)?;
            all_free.add(&rates, alone);
            alones.push(alone);
        }
        rates.push(Rates {
            exchange,
            alone_per_s: median(alones),
            placed: all_placed.medians(),
            free: all_free.medians(),
        });
        bar.inc(1);
    }
    report.oversubscribed = Some(Figures { rates });
    for pair in pairs {
        pair.first.finish()?;
        pair.second.finish()?;
    }
    Ok(())
}
