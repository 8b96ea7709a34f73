//! The pace of a far path: frames go in *quanta*, runs short enough for the queues of a long path
//! and long enough for one call of the system.

/// Frames of a quantum: at least these, as a sleeping thread wakes no more often; at most two calls
/// full.
const QUANTUM_MIN_FRAMES: u64 = 4;
const QUANTUM_MAX_FRAMES: u64 = 88;
/// How long a quantum takes at the pace: this part of a round trip, within bounds that timers of
/// hosts can keep.
const QUANTUM_PART: u64 = 8;
const QUANTUM_MIN_NS: u64 = 50_000;
const QUANTUM_MAX_NS: u64 = 1_000_000;
/// What a late timer has missed is made up for as far as this part of a round trip, within bounds:
/// a thread on a busy machine wakes milliseconds late.
const CATCH_UP_PART: u64 = 4;
const CATCH_UP_MIN_NS: u64 = 2_000_000;
const CATCH_UP_MAX_NS: u64 = 20_000_000;
/// Times between frames are kept in these parts of a nanosecond.
const SHIFT: u32 = 4;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    /// Between two frames; zero is no pace.
    interval: u64,
    quantum_ns: u64,
    catch_up_ns: u64,
    /// Frames of this quantum that may still go, and when the next one begins.
    remaining: u64,
    next_ns: u64,
}

impl Pacer {
    /// No pace yet.
    pub(super) fn new() -> Self {
        Self {
            interval: 0,
            quantum_ns: QUANTUM_MIN_NS,
            catch_up_ns: CATCH_UP_MIN_NS,
            remaining: 0,
            next_ns: 0,
        }
    }

    /// The pace is so many frames (in parts of `one`) in that time.
    #[inline]
    pub(super) fn set(&mut self, size: u64, one: u64, span_ns: u64) {
        self.interval = (span_ns << SHIFT) / (size / one).max(1);
        self.quantum_ns = (span_ns / QUANTUM_PART).clamp(QUANTUM_MIN_NS, QUANTUM_MAX_NS);
        self.catch_up_ns = (span_ns / CATCH_UP_PART).clamp(CATCH_UP_MIN_NS, CATCH_UP_MAX_NS);
    }

    /// Whether a frame may go at this time.
    #[inline]
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        self.remaining > 0 || now_ns >= self.next_ns
    }

    /// When a frame may go, if none may before.
    #[inline]
    pub(super) fn next_ns(&self) -> Option<u64> {
        (self.remaining == 0).then_some(self.next_ns)
    }

    /// A frame went.
    #[inline]
    pub(super) fn sent(&mut self, now_ns: u64) {
        if self.remaining == 0 && now_ns >= self.next_ns {
            let frames = (self.quantum_ns << SHIFT) / self.interval.max(1);
            self.remaining = frames.clamp(QUANTUM_MIN_FRAMES, QUANTUM_MAX_FRAMES);
            let from_ns = self.next_ns.max(now_ns.saturating_sub(self.catch_up_ns));
            self.next_ns = from_ns + ((self.remaining * self.interval) >> SHIFT);
        }
        self.remaining = self.remaining.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = 1 << 20;

    /// Frames that go in that time, of an end that looks so often.
    fn sent_in(pacer: &mut Pacer, span_ns: u64, look_ns: u64) -> u64 {
        let mut frames = 0;
        for now_ns in (10_000_000..10_000_000 + span_ns).step_by(look_ns as usize) {
            while pacer.is_due(now_ns) {
                pacer.sent(now_ns);
                frames += 1;
                assert!(frames < 1_000_000);
            }
        }
        frames
    }

    #[test]
    fn a_pace_is_kept_by_who_looks_often_and_by_who_looks_rarely() {
        for look_ns in [10_000, 1_000_000] {
            let mut pacer = Pacer::new();
            pacer.set(1_000 * ONE, ONE, 50_000_000);
            let frames = sent_in(&mut pacer, 1_000_000_000, look_ns);
            assert!((19_900..20_300).contains(&frames), "{look_ns}: {frames}");
        }
    }

    #[test]
    fn a_long_pause_is_not_made_up_for() {
        let mut pacer = Pacer::new();
        pacer.set(1_000 * ONE, ONE, 50_000_000);
        sent_in(&mut pacer, 1_000_000, 10_000);
        let at_ns = 5_000_000_000;
        let mut frames = 0;
        while pacer.is_due(at_ns) {
            pacer.sent(at_ns);
            frames += 1;
        }
        assert!((240..=300).contains(&frames), "{frames}");
        assert!(pacer.next_ns().is_some_and(|next_ns| next_ns > at_ns));
    }

    #[test]
    fn a_slow_pace_goes_by_a_few_frames() {
        let mut pacer = Pacer::new();
        pacer.set(2 * ONE, ONE, 100_000_000);
        let at_ns = 20_000_000;
        let mut frames = 0;
        while pacer.is_due(at_ns) {
            pacer.sent(at_ns);
            frames += 1;
        }
        assert_eq!(frames, QUANTUM_MIN_FRAMES);
        assert_eq!(pacer.next_ns(), Some(200_000_000));
    }
}
