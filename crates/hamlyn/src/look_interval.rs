//! How long a receiver that polls leaves a line alone between two looks at it.
//!
//! A look at a line that its sender is writing takes the line away from the sender, who must fetch
//! it again for the next store. So an eager receiver slows down what it waits for. A receiver that
//! looks again after about as long as the line takes to come sees the message hardly later, and
//! lets it be written. How long that is differs by a factor of ten: between two threads of a core,
//! two cores of a cache, and two caches; and a hypervisor moves processors. So it is learnt while
//! waiting, from looks that find something: such a look takes as long as the line does. Half of
//! that was best where it was measured (docs/performance.md, How often to look).

use std::hint::spin_loop;

use hamlyn_ring::shared::ticks_after_loads;

/// Looks in a row, before other things are looked after.
const LOOKS: u32 = 4;
/// One of so many waits is measured.
const WAITS_PER_MEASUREMENT: u32 = 32;
/// Pauses between two looks at most; a look that took longer met something else than the line.
const PAUSES_MAX: u64 = 16;
/// Pauses that are measured together.
const PAUSES_MEASURED: u64 = 8;

/// See the module.
#[derive(Debug)]
pub(crate) struct LookInterval {
    /// Pauses of the processor between two looks.
    pauses: u32,
    /// Waits until one is measured.
    unmeasured: u32,
    /// How long a pause takes, in ticks, and how long the line took lately; zero as long as that is
    /// not known.
    pause_ticks: u64,
    line_ticks: u64,
}

impl LookInterval {
    pub(crate) fn new() -> Self {
        Self {
            pauses: 1,
            unmeasured: 0,
            pause_ticks: 0,
            line_ticks: 0,
        }
    }

    /// Lets the interval pass.
    #[inline]
    pub(crate) fn pass(&mut self) {
        if self.is_measuring() && self.pause_ticks == 0 {
            return self.pass_and_measure();
        }
        for _ in 0..self.pauses {
            spin_loop();
        }
    }

    #[cold]
    fn pass_and_measure(&mut self) {
        let since = ticks_after_loads();
        for _ in 0..PAUSES_MEASURED {
            spin_loop();
        }
        self.pause_ticks = ticks_after_loads().wrapping_sub(since) / PAUSES_MEASURED;
    }

    /// Looks once.
    #[inline]
    pub(crate) fn look_once(&mut self, is_there: impl FnOnce() -> bool) -> bool {
        if self.is_measuring() {
            return self.look_and_measure(is_there);
        }
        let is_there = is_there();
        self.unmeasured -= u32::from(is_there);
        is_there
    }

    /// Looks some times, with the interval in between, until something is there: whether it is.
    #[inline]
    pub(crate) fn look(&mut self, mut is_there: impl FnMut() -> bool) -> bool {
        for _ in 0..LOOKS {
            if self.look_once(&mut is_there) {
                return true;
            }
            self.pass();
        }
        false
    }

    #[inline]
    fn is_measuring(&self) -> bool {
        self.unmeasured == 0
    }

    #[cold]
    fn look_and_measure(&mut self, is_there: impl FnOnce() -> bool) -> bool {
        let since = ticks_after_loads();
        let is_there = is_there();
        if is_there {
            self.learn(ticks_after_loads().wrapping_sub(since));
        }
        is_there
    }

    /// A look that found something took so long.
    fn learn(&mut self, look_ticks: u64) {
        let pause_ticks = self.pause_ticks;
        if pause_ticks == 0 {
            return;
        }
        self.unmeasured = WAITS_PER_MEASUREMENT;
        let line_ticks = look_ticks.min(2 * PAUSES_MAX * pause_ticks);
        self.line_ticks = match self.line_ticks {
            0 => line_ticks,
            known => (3 * known + line_ticks) / 4,
        };
        let pauses = self.line_ticks / (2 * pause_ticks);
        self.pauses = pauses.clamp(1, PAUSES_MAX) as u32;
    }
}

#[cfg(test)]
mod tests;
