//! A processor of this host that computes at the pace of FUGU's, and notes which messages its
//! program handled after a stop.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hamlyn::{Host, Wait};
use hamlyn_programs::{Processor, ProgramError};
use hamlyn_udm::Udm;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A cycle of FUGU here: its slice of 500,000 cycles (`T 5.1`) is a quantum of ten milliseconds.
pub(super) const CYCLE_NS: f64 = 20.0;
/// Cycles that a program computes between two looks for messages: an interrupt comes that late.
const LOOK_CYCLES: f64 = 100.0;
/// Messages that one look takes.
const VISIT: usize = 64;
/// The time for which a program waits for a message before it gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The same, for the library.
pub(super) const WAIT: Wait = Wait::millis(30_000);

/// Steps whose time is measured, and how often.
const STEPS: u64 = 1_000_000;
const MEASUREMENTS: usize = 5;

/// The counts of a process.
#[derive(Debug, Default)]
struct Counts {
    handled: AtomicU64,
    after_stop: AtomicU64,
    stops: AtomicU64,
}

/// The counts of a process at a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    /// By the clock that all processes of a host have.
    pub(super) at_ns: u64,
    /// Messages that were handled.
    pub(super) handled: u64,
    /// Those of them that the program found after a stop: there were some then, and these are all
    /// until there was none, as FUGU's buffered mode lasts until the buffer is empty (`T 4.2`).
    pub(super) after_stop: u64,
    /// Stops after which the program went on.
    pub(super) stops: u64,
}

/// Nanoseconds by the clock that all processes of a host have.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// See the module. Clones are the same processor.
#[derive(Clone, Debug)]
pub(super) struct Tempo {
    steps_per_cycle: f64,
    cycles_per_operation: f64,
    counts: Arc<Counts>,
    /// Set when the process goes on after a stop.
    goes_on: Arc<AtomicBool>,
    /// The program has not had all that came while it was stopped.
    is_behind: Arc<AtomicBool>,
}

impl Tempo {
    /// A processor for a program whose operations take so many cycles.
    pub(super) fn new(cycles_per_operation: f64) -> Result<Self> {
        let goes_on = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGCONT, Arc::clone(&goes_on))
            .context("asking to be told after a stop")?;
        Ok(Self {
            steps_per_cycle: CYCLE_NS / step_ns(),
            cycles_per_operation,
            counts: Arc::default(),
            goes_on,
            is_behind: Arc::default(),
        })
    }

    /// The counts up to now.
    pub(super) fn progress(&self) -> Progress {
        let now = |count: &AtomicU64| count.load(Relaxed);
        Progress {
            at_ns: now_ns(),
            handled: now(&self.counts.handled),
            after_stop: now(&self.counts.after_stop),
            stops: now(&self.counts.stops),
        }
    }

    /// The program is about to look for messages.
    pub(super) fn looks(&self) {
        if self.goes_on.swap(false, Relaxed) {
            self.counts.stops.fetch_add(1, Relaxed);
            self.is_behind.store(true, Relaxed);
        }
    }

    /// It has had so many, of a look for up to `most`.
    pub(super) fn looked(&self, had: usize, most: usize) {
        self.counts.handled.fetch_add(had as u64, Relaxed);
        if self.is_behind.load(Relaxed) {
            self.counts.after_stop.fetch_add(had as u64, Relaxed);
            self.is_behind.store(had == most, Relaxed);
        }
    }

    fn look<S, H: Host>(&self, udm: &mut Udm<S, H>) -> Result<usize, ProgramError> {
        self.looks();
        let had = udm.poll(VISIT)?;
        self.looked(had, VISIT);
        Ok(had)
    }

    fn spin(&self, cycles: f64) {
        spin((cycles * self.steps_per_cycle) as u64);
    }
}

impl<H: Host> Processor<H> for Tempo {
    fn compute<S>(&self, udm: &mut Udm<S, H>, operations: u64) -> Result<(), ProgramError> {
        let mut left = operations as f64 * self.cycles_per_operation;
        while left > LOOK_CYCLES {
            self.spin(LOOK_CYCLES);
            self.look(udm)?;
            left -= LOOK_CYCLES;
        }
        self.spin(left);
        self.look(udm)?;
        Ok(())
    }

    fn compute_in_handler(&self, operations: u64) {
        self.spin(operations as f64 * self.cycles_per_operation);
    }

    fn wait<S>(&self, udm: &mut Udm<S, H>) -> Result<(), ProgramError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_there = udm.await_message(Wait::millis(left.as_millis() as u64))?;
            // A message of the layer is none for the program.
            if is_there && self.look(udm)? > 0 {
                return Ok(());
            }
            if !is_there || left.is_zero() {
                return Err(ProgramError::Late {
                    me: udm.me(),
                    waited_ms: (PATIENCE - left).as_millis() as u64,
                });
            }
        }
    }
}

/// Steps of work, not of time: a stop in between makes none of them.
fn spin(steps: u64) {
    for step in 0..steps {
        black_box(step);
    }
}

/// Nanoseconds of processor time for a step: the least of several, as other work only adds to it.
fn step_ns() -> f64 {
    let now_ns = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    };
    let measured = (0..MEASUREMENTS).map(|_| {
        let begun = now_ns();
        spin(STEPS);
        (now_ns() - begun) / STEPS as f64
    });
    // A clock of the kernel's ticks would say nothing.
    measured.fold(f64::INFINITY, f64::min).max(1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a stop messages count until a look has had all that were there.
    #[test]
    fn messages_count_until_none_is_left() {
        let tempo = Tempo::new(1.0).unwrap();
        let look = |had| {
            tempo.looks();
            tempo.looked(had, VISIT);
        };
        look(5);
        tempo.goes_on.store(true, Relaxed);
        look(VISIT);
        look(VISIT);
        look(3);
        look(7);
        let after = tempo.progress();
        assert_eq!(after.handled as usize, 5 + 2 * VISIT + 3 + 7);
        assert_eq!(after.after_stop as usize, 2 * VISIT + 3);
        assert_eq!(after.stops, 1);
        // Nothing has come while it was stopped.
        tempo.goes_on.store(true, Relaxed);
        look(0);
        look(9);
        assert_eq!(tempo.progress().after_stop, after.after_stop);
        assert_eq!(tempo.progress().stops, 2);
    }
}
