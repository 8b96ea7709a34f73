//! The copy policy: whether payloads are stored into the payload arena with temporal or
//! non-temporal stores.
//!
//! Two processors that have a cache together hand bytes over in it. Two that have none together
//! fetch every line from the other's cache, which is several times slower than memory; then it is
//! better to use non-temporal stores. Which it is depends on where the two threads happen to run,
//! it may change at any time, and nobody tells. But a sender that waits for lines notices: its
//! copies take several times longer. So the sender times some of them, tries the other way now and
//! then, for a short while, and keeps to what was clearly faster.
//!
//! Nothing that the peer says is used. A wrong choice costs time and nothing else.

use hamlyn_ring::shared::StoreKind;

/// Shorter payloads go with temporal stores, and are not timed.
const WATCHED_MIN_BYTES: usize = 4 << 10;
/// One in so many copies is timed while nothing is tried.
const SPARSE: u32 = 16;
/// Timed copies that are enough for a judgement.
const SAMPLES: u32 = 32;
/// Copies of a trial that are not received: what lies in the payload arena is still from the other
/// way. With temporal stores it is slow as long as that is so: then all of the window must have
/// been gone through.
const TRIAL_SETTLING: u32 = 16;
/// Copies after which a trial that is going badly ends early.
const TRIAL_LEAST: u32 = 4;
/// Bytes between trials at first. They double as long as trials fail.
const PERIOD_MIN_BYTES: u64 = 8 << 20;
/// The most bytes between trials. With temporal stores it shows by itself when it has become slow.
const PERIOD_MAX_TEMPORAL_BYTES: u64 = 1 << 30;
const PERIOD_MAX_NON_TEMPORAL_BYTES: u64 = 64 << 20;
/// Non-temporal stores must be so many times faster: it makes the receiver fetch from memory.
const CLEARLY: u64 = 2;
/// Ticks are counted in parts, so that a byte takes many.
const PARTS: u64 = 1 << 10;

/// A trial that is under way.
#[derive(Clone, Copy, Default, Debug)]
struct Trial {
    copies: u32,
    bytes: u64,
    /// The copies from here on are received.
    has_settled: bool,
}

/// The cost of timed copies.
#[derive(Clone, Copy, Default, Debug)]
struct Costs {
    count: u32,
    sum: u64,
    worst: u64,
}

impl Costs {
    fn add(&mut self, cost: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(cost);
        self.worst = self.worst.max(cost);
    }

    /// The mean, once there are enough of them. The worst does not count: it may
    /// have been interrupted.
    fn mean(&self) -> Option<u64> {
        (self.count >= SAMPLES).then(|| (self.sum - self.worst) / u64::from(self.count - 1))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct CopyPolicy {
    chosen: StoreKind,
    /// The trial that is under way, if one is.
    trial: Option<Trial>,
    costs: Costs,
    /// What the chosen way last cost.
    chosen_cost: Option<u64>,
    copies: u32,
    since_trial_bytes: u64,
    period_bytes: u64,
}

impl CopyPolicy {
    pub(crate) fn new() -> Self {
        Self {
            chosen: StoreKind::Temporal,
            trial: None,
            costs: Costs::default(),
            chosen_cost: None,
            copies: 0,
            since_trial_bytes: 0,
            period_bytes: PERIOD_MIN_BYTES,
        }
    }

    /// Carries out a copy of that many bytes, in the way that `copy` is told. The copies before it
    /// went to a window of `window_bytes` that is gone round.
    #[inline(always)]
    pub(crate) fn carry<R>(
        &mut self,
        length: usize,
        window_bytes: usize,
        ticks: impl Fn() -> u64,
        copy: impl FnOnce(StoreKind) -> R,
    ) -> R {
        let mut way = StoreKind::Temporal;
        let mut begin = None;
        if length >= WATCHED_MIN_BYTES {
            self.since_trial_bytes = self.since_trial_bytes.saturating_add(length as u64);
            self.copies = self.copies.wrapping_add(1);
            way = match self.trial {
                Some(_) => self.chosen.other(),
                None => self.chosen,
            };
            if self.trial.is_some() || self.copies.is_multiple_of(SPARSE) {
                begin = Some(ticks());
            }
        }
        // In one place, so that it is compiled into its caller.
        let result = copy(way);
        if let Some(begin) = begin {
            let cost = ticks().wrapping_sub(begin).saturating_mul(PARTS) / length as u64;
            self.note(cost, length as u64, window_bytes as u64);
        }
        result
    }

    #[cold]
    fn note(&mut self, cost: u64, length: u64, window_bytes: u64) {
        match &mut self.trial {
            Some(trial) => {
                trial.copies += 1;
                trial.bytes += length;
                self.costs.add(cost);
                if trial.copies == TRIAL_LEAST {
                    let hopeless = self.chosen_cost.unwrap_or(u64::MAX);
                    let mean = self.costs.sum / u64::from(TRIAL_LEAST);
                    if mean > hopeless.saturating_mul(2 * CLEARLY) {
                        return self.refusal_of(mean);
                    }
                }
                if !trial.has_settled {
                    let is_round =
                        self.chosen == StoreKind::Temporal || trial.bytes >= window_bytes;
                    if trial.copies >= TRIAL_SETTLING && is_round {
                        trial.has_settled = true;
                        self.costs = Costs::default();
                    }
                } else if let Some(mean) = self.costs.mean() {
                    self.refusal_of(mean);
                }
            }
            None => {
                self.costs.add(cost);
                let Some(mean) = self.costs.mean() else {
                    return;
                };
                self.costs = Costs::default();
                let before = self.chosen_cost.replace(mean);
                let worse = before.is_some_and(|before| mean > before.saturating_mul(CLEARLY));
                let due_bytes = if worse {
                    PERIOD_MIN_BYTES
                } else {
                    self.period_bytes
                };
                if self.since_trial_bytes >= due_bytes {
                    self.trial = Some(Trial::default());
                }
            }
        }
    }

    /// The trial is over.
    fn refusal_of(&mut self, tried_cost: u64) {
        let chosen_cost = self.chosen_cost.unwrap_or(u64::MAX);
        let (through, past) = match self.chosen {
            StoreKind::Temporal => (chosen_cost, tried_cost),
            StoreKind::NonTemporal => (tried_cost, chosen_cost),
        };
        let best = if through > past.saturating_mul(CLEARLY) {
            StoreKind::NonTemporal
        } else {
            StoreKind::Temporal
        };
        if best == self.chosen {
            self.period_bytes = (self.period_bytes * 2).min(match best {
                StoreKind::Temporal => PERIOD_MAX_TEMPORAL_BYTES,
                StoreKind::NonTemporal => PERIOD_MAX_NON_TEMPORAL_BYTES,
            });
        } else {
            self.chosen = best;
            self.chosen_cost = Some(tried_cost);
            self.period_bytes = PERIOD_MIN_BYTES;
        }
        self.trial = None;
        self.costs = Costs::default();
        self.since_trial_bytes = 0;
    }
}

#[cfg(test)]
mod tests;
