//! More processes than processors: what pairs of processes that exchange short messages get done together.
//!
//! One pair has the two processors to itself; then there are four pairs on the same two. All of their threads may
//! run on either, and wait as programs do by default. Short messages go to and fro within each pair (*round
//! trips*), or one way as fast as they go (*stream*). One pair and all of them take turns, so that both
//! see the same machine, and the median of the ratios is reported: what all get done together, over what the one does alone.

pub(crate) mod party;

use anyhow::Result;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::report::Report;
use super::{Effort, median};
use crate::actor::{Actor, Role};
use party::{Exchange, Order};

/// Processors that all processes share.
const PROCESSORS: usize = 2;
/// Processes for each of them, when there are many.
const PROCESSES_PER_PROCESSOR: usize = 4;
const PAIRS: usize = PROCESSORS * PROCESSES_PER_PROCESSOR / 2;

/// Of one kind of exchange.
pub(crate) struct Rates {
    pub(crate) exchange: Exchange,
    /// Of one pair alone.
    pub(crate) alone_per_s: f64,
    /// Of all pairs together.
    pub(crate) together_per_s: f64,
    pub(crate) ratio: f64,
    /// The slowest pair's over the mean.
    pub(crate) slowest_over_mean: f64,
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
                "all_processes_per_s": rates.together_per_s.round(),
                "ratio": rates.ratio,
                "slowest_over_mean": rates.slowest_over_mean,
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

/// What these pairs get done at the same time, by pair.
fn together(pairs: &mut [Pair], exchange: Exchange, effort: Effort) -> Result<Vec<f64>> {
    let order = |leads| Order::Exchange {
        exchange,
        leads,
        window_ns: effort.window.as_nanos() as u64,
    };
    for pair in &mut *pairs {
        pair.second.order(&order(false))?;
        pair.first.order(&order(true))?;
    }
    let mut rates = Vec::new();
    for pair in pairs {
        rates.push(pair.first.answer()?);
        let () = pair.second.answer()?;
    }
    Ok(rates)
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
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        pairs.push(Pair::start(processors)?);
    }
    let mut rates = Vec::new();
    for exchange in Exchange::ALL {
        let (mut alones, mut togethers, mut ratios, mut shares) = (vec![], vec![], vec![], vec![]);
        for round in 0..effort.runs {
            let one = round % PAIRS;
            let alone: f64 = together(&mut pairs[one..=one], exchange, effort)?
                .iter()
                .sum();
            let all = together(&mut pairs, exchange, effort)?;
            let sum: f64 = all.iter().sum();
            let slowest = all.into_iter().fold(f64::INFINITY, f64::min);
            alones.push(alone);
            togethers.push(sum);
            ratios.push(sum / alone);
            shares.push(slowest * PAIRS as f64 / sum);
        }
        rates.push(Rates {
            exchange,
            alone_per_s: median(alones),
            together_per_s: median(togethers),
            ratio: median(ratios),
            slowest_over_mean: median(shares),
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
