//! How long a call may take.

use std::time::Duration;

/// How long a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all: look once.
    Poll,
    /// At most that long.
    For(Duration),
    /// Until it is done, or cannot be done any more.
    Forever,
}

impl Wait {
    /// At most that many milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Wait::For(Duration::from_millis(millis))
    }
}

impl From<Duration> for Wait {
    fn from(duration: Duration) -> Self {
        Wait::For(duration)
    }
}

/// A wait under way: first it polls for a while, then it sleeps. Its time begins with its first
/// look at the clock, so that a call that need not wait reads none.
#[derive(Debug)]
pub struct Waiting {
    wait: Wait,
    /// Zero until the clock is needed, so that a call that need not wait reads none.
    deadline_ns: u64,
    /// Whether there was a pause, from which on the next two count.
    has_begun: bool,
    spin_until_ns: u64,
    begun_ns: u64,
    /// When the processor was last offered to others.
    offered_ns: u64,
    pauses: u32,
    /// The interface's activity when it was last about to sleep.
    seen: Option<u64>,
}

/// What a wait should do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitStep {
    /// Give up.
    Stop,
    /// Look again.
    Spin,
    /// Let others have the processor, if there are any, and look again: the peer may be
    /// one of them.
    Yield,
    /// Sleep, until then at the latest.
    Sleep(Option<u64>),
}

/// Rounds of looking before the host is told to relax between them. Each is a poll and a few looks
/// at the link that was last busy ([`crate::look_interval`]). So many there are before any sleep,
/// and protocols count on them to ask for what they lack.
pub(crate) const EAGER_LOOKS: u32 = 16;
/// Rounds between two looks at the clock while polling: some microseconds.
const PAUSES_PER_CLOCK: u32 = 8;
/// Rounds before the processor is offered to others: so few that the peer soon has it if it needs
/// this very one, and so many that a message that comes at once meets no offer.
const PAUSES_PER_YIELD_MIN: u32 = PAUSES_PER_CLOCK;
/// The same where another thread computes that takes the processor when it is offered.
const PAUSES_PER_YIELD_MAX: u32 = 8 * PAUSES_PER_CLOCK;
/// A thread that keeps an offered processor for longer computes, or another thread beside it does.
const OTHERS_COMPUTE_NS: u64 = 500_000;

/// A wait that ended so long after the time that polling may take would have been ended by polling:
/// to be woken takes about that long.
const WAKE_NS: u64 = 50_000;

/// How long waits poll before they sleep, learnt from how the last ones ended: nothing where
/// messages are rare, up to the limit where they come soon. A peer that is silent costs no
/// processor. And whether it is worth while to offer the processor to others early.
#[derive(Debug)]
pub(crate) struct AdaptiveSpin {
    spin_ns: u64,
    /// From the least to the most, a power of two.
    pauses_per_yield: u32,
}

impl AdaptiveSpin {
    /// To begin with, as long as is allowed.
    pub(crate) fn new(spin_max_ns: u64) -> Self {
        Self {
            spin_ns: spin_max_ns,
            pauses_per_yield: PAUSES_PER_YIELD_MIN,
        }
    }

    /// Whether polling would not have ended a wait that took so long.
    pub(crate) fn is_long(&self, waited_ns: u64, spin_max_ns: u64) -> bool {
        waited_ns > spin_max_ns.saturating_add(WAKE_NS)
    }

    /// A wait came to sleeping, and a sleep ended so long after it had begun.
    #[cold]
    pub(crate) fn slept(&mut self, waited_ns: u64, spin_max_ns: u64) {
        if !self.is_long(waited_ns, spin_max_ns) {
            let more_ns = self.spin_ns.saturating_mul(2).max(spin_max_ns / 4);
            self.spin_ns = more_ns.min(spin_max_ns);
        } else {
            self.spin_ns /= 2;
            if self.spin_ns < spin_max_ns / 16 {
                self.spin_ns = 0;
            }
        }
    }
}

impl Waiting {
    /// A wait that begins with the first look at the clock.
    pub fn new(wait: Wait) -> Self {
        Self {
            wait,
            deadline_ns: 0,
            has_begun: false,
            spin_until_ns: 0,
            begun_ns: 0,
            offered_ns: 0,
            pauses: 0,
            seen: None,
        }
    }

    #[inline]
    pub(crate) fn next(
        &mut self,
        adaptive_spin: &AdaptiveSpin,
        now_ns: impl FnOnce() -> u64,
    ) -> WaitStep {
        if self.wait == Wait::Poll {
            return WaitStep::Stop;
        }
        self.pauses = self.pauses.wrapping_add(1);
        if self.spin_until_ns != 0 && !self.pauses.is_multiple_of(PAUSES_PER_CLOCK) {
            return WaitStep::Spin;
        }
        self.by_the_clock(adaptive_spin, now_ns())
    }

    /// When it is over; its time begins with the first look at the clock.
    fn deadline(&mut self, now_ns: u64) -> u64 {
        if self.deadline_ns == 0 {
            self.deadline_ns = Self::deadline_ns(self.wait, now_ns).max(1);
        }
        self.deadline_ns
    }

    /// What is left of the wait, for one of several calls that are to take no longer all together.
    pub(crate) fn left(&mut self, now_ns: impl FnOnce() -> u64) -> Wait {
        if !matches!(self.wait, Wait::For(_)) {
            return self.wait;
        }
        let now_ns = now_ns();
        Wait::For(Duration::from_nanos(
            self.deadline(now_ns).saturating_sub(now_ns),
        ))
    }

    /// Whether the activity differs from what it was the last time; remembers it.
    pub(crate) fn is_news(&mut self, activity: u64) -> bool {
        self.seen.replace(activity) != Some(activity)
    }

    /// Whether to look again at once, without a pause of the processor.
    #[inline]
    pub(crate) fn is_eager(&self) -> bool {
        self.pauses < EAGER_LOOKS
    }

    /// Whether it has not come to sleeping yet.
    #[inline]
    pub(crate) fn polls(&self) -> bool {
        self.pauses == 0 || self.spin_until_ns != 0
    }

    fn by_the_clock(&mut self, adaptive_spin: &AdaptiveSpin, now_ns: u64) -> WaitStep {
        if !self.has_begun {
            self.has_begun = true;
            self.begun_ns = now_ns;
            self.spin_until_ns = now_ns.saturating_add(adaptive_spin.spin_ns);
        }
        if now_ns >= self.deadline(now_ns) {
            return WaitStep::Stop;
        }
        if now_ns < self.spin_until_ns || self.pauses < EAGER_LOOKS {
            if !self.pauses.is_multiple_of(adaptive_spin.pauses_per_yield) {
                return WaitStep::Spin;
            }
            self.offered_ns = now_ns;
            return WaitStep::Yield;
        }
        // From now on every pause is a sleep.
        self.spin_until_ns = 0;
        WaitStep::Sleep((self.deadline_ns != u64::MAX).then_some(self.deadline_ns))
    }

    /// After [`WaitStep::Yield`]: the processor is ours again. What others took of it to move
    /// messages is no time that we have waited.
    pub(crate) fn resumed(&mut self, adaptive_spin: &mut AdaptiveSpin, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(self.offered_ns);
        if took_ns > OTHERS_COMPUTE_NS {
            adaptive_spin.pauses_per_yield = PAUSES_PER_YIELD_MAX;
        } else {
            adaptive_spin.pauses_per_yield =
                (adaptive_spin.pauses_per_yield / 2).max(PAUSES_PER_YIELD_MIN);
            self.begun_ns = self.begun_ns.saturating_add(took_ns);
            self.spin_until_ns = self.spin_until_ns.saturating_add(took_ns);
        }
    }

    /// How long this wait has lasted, without what [`Waiting::resumed`] says.
    pub(crate) fn waited_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.begun_ns)
    }

    /// The absolute deadline for calls that take one.
    pub(crate) fn deadline_ns(wait: Wait, now_ns: u64) -> u64 {
        match wait {
            Wait::Poll => now_ns,
            Wait::For(duration) => {
                now_ns.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
            }
            Wait::Forever => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests;
