//! The time for which a sender waits for a full ring before it goes on in the log.
//!
//! A receiver that lost its processor for a moment is better waited for: the ring is in the caches,
//! and the pages of the log are not. One that is stopped is not. Nobody can tell them apart at
//! first, so a sender waits twice as long as such moments were lately.

/// Patience becomes at most so many times as long as its options say.
const TIMES_MAX: u64 = 20;
/// Each time that so long has passed, gaps of before count half.
const HALF_LIFE_NS: u64 = 1_000_000_000;

/// The patience of a sender, and how it learns.
pub(crate) struct Patience {
    shortest_ns: u64,
    /// Since when the ring is full, and how many cells were returned then.
    full: Option<(u64, u64)>,
    /// The longest time lately for which nothing was returned of a full ring, and when that ended.
    gap_ns: u64,
    gap_at_ns: u64,
}

impl Patience {
    pub(crate) const fn new(shortest_ns: u64) -> Self {
        Self {
            shortest_ns,
            full: None,
            gap_ns: 0,
            gap_at_ns: 0,
        }
    }

    /// The ring is full, after so many cells were returned: until when it is waited for.
    pub(crate) fn begin(&mut self, known: u64, now_ns: u64) -> u64 {
        self.full = Some((now_ns, known));
        let wait_ns = (2 * self.late_gap_ns(now_ns)).clamp(self.shortest_ns, self.longest_ns());
        now_ns.saturating_add(wait_ns)
    }

    /// So many cells are returned now.
    #[inline]
    pub(crate) fn returned(&mut self, known: u64, now_ns: impl FnOnce() -> u64) {
        if let Some((since_ns, known_when_full)) = self.full
            && known != known_when_full
        {
            self.full = None;
            self.learn(since_ns, now_ns());
        }
    }

    /// One that took nothing for longer than anybody would have waited was stopped, and tells
    /// nothing of those that were not.
    fn learn(&mut self, since_ns: u64, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(since_ns);
        if gap_ns <= self.longest_ns() && gap_ns >= self.late_gap_ns(now_ns) {
            (self.gap_ns, self.gap_at_ns) = (gap_ns, now_ns);
        }
    }

    const fn longest_ns(&self) -> u64 {
        self.shortest_ns.saturating_mul(TIMES_MAX)
    }

    fn late_gap_ns(&self, now_ns: u64) -> u64 {
        let half_lives = now_ns.saturating_sub(self.gap_at_ns) / HALF_LIFE_NS;
        self.gap_ns
            .checked_shr(half_lives.min(64) as u32)
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const S: u64 = 1_000_000_000;

    /// The wait if the ring is full now.
    fn wait_ns(patience: &mut Patience, now_ns: u64) -> u64 {
        patience.begin(0, now_ns) - now_ns
    }

    /// The ring is full for so long.
    fn full(patience: &mut Patience, now_ns: u64, gap_ns: u64) -> u64 {
        patience.begin(7, now_ns);
        patience.returned(7, || panic!("nothing was returned"));
        patience.returned(8, || now_ns + gap_ns);
        patience.returned(9, || panic!("it is not full any more"));
        now_ns + gap_ns
    }

    #[test]
    fn moments_are_waited_for_once_there_were_some() {
        let mut patience = Patience::new(100 * US);
        assert_eq!(wait_ns(&mut patience, S), 100 * US);
        let now_ns = full(&mut patience, S, 30 * US);
        assert_eq!(wait_ns(&mut patience, now_ns), 100 * US);
        let now_ns = full(&mut patience, now_ns, 400 * US);
        assert_eq!(wait_ns(&mut patience, now_ns), 800 * US);
        let now_ns = full(&mut patience, now_ns, 2_000 * US);
        assert_eq!(wait_ns(&mut patience, now_ns), 2_000 * US);
        // Short ones in between change nothing; time does.
        let now_ns = full(&mut patience, now_ns, US);
        assert_eq!(wait_ns(&mut patience, now_ns + S), 2_000 * US);
        assert_eq!(wait_ns(&mut patience, now_ns + 3 * S), 500 * US);
        assert_eq!(wait_ns(&mut patience, now_ns + 6 * S), 100 * US);
        assert_eq!(wait_ns(&mut patience, u64::MAX - S), 100 * US);
    }

    #[test]
    fn a_receiver_that_was_stopped_teaches_nothing() {
        let mut patience = Patience::new(100 * US);
        let now_ns = full(&mut patience, S, 2_001 * US);
        assert_eq!(wait_ns(&mut patience, now_ns), 100 * US);
        let now_ns = full(&mut patience, now_ns, 300 * US);
        let now_ns = full(&mut patience, now_ns, 5 * S);
        assert!(wait_ns(&mut patience, now_ns) < 600 * US);
    }

    #[test]
    fn one_that_is_not_to_wait_never_does() {
        let mut patience = Patience::new(0);
        let now_ns = full(&mut patience, S, 400 * US);
        assert_eq!(wait_ns(&mut patience, now_ns), 0);
        let mut patience = Patience::new(u64::MAX);
        assert_eq!(patience.begin(0, S), u64::MAX);
    }
}
