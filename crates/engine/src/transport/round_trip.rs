//! The round-trip estimator of a path: round trips from echoed timestamps, and the retransmission
//! timeout: the time after which an unacknowledged frame is sent again.

/// How long the smallest round trip is remembered, at least; at most twice as long.
const MEMORY_NS: u64 = 10_000_000_000;
/// Doublings of the retransmission timeout, at most.
const BACKOFF_MAX: u8 = 16;
/// A path that is slow by itself may double its timeout at least this often.
const BACKOFF_OWN: u64 = 8;
/// A timeout waits no longer than this for what waits in the hosts.
const HOST_MAX_NS: u64 = 20_000_000;

/// Round trips of one path, the time in the peer's host taken off.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTripEstimator {
    smooth_ns: u64,
    variation_ns: u64,
    latest_ns: u64,
    /// The smallest of this period, and of the one before.
    least_ns: [u64; 2],
    period_ns: u64,
    /// How long answers wait in the two hosts lately, at most.
    host_ns: u64,
    /// Times without an answer, one after the other.
    backoff: u8,
}

impl RoundTripEstimator {
    /// Nothing measured.
    pub(super) fn new() -> Self {
        Self {
            smooth_ns: 0,
            variation_ns: 0,
            latest_ns: 0,
            least_ns: [u64::MAX; 2],
            period_ns: 0,
            host_ns: 0,
            backoff: 0,
        }
    }

    /// One took so long. The time is never zero from then on.
    pub(super) fn measured(&mut self, now_ns: u64, took_ns: u64) {
        let took_ns = took_ns.max(1);
        self.latest_ns = took_ns;
        if self.smooth_ns == 0 {
            self.smooth_ns = took_ns;
            self.variation_ns = took_ns / 2;
        } else {
            let error_ns = took_ns.abs_diff(self.smooth_ns);
            self.variation_ns = self.variation_ns - self.variation_ns / 4 + error_ns / 4;
            self.smooth_ns = (self.smooth_ns - self.smooth_ns / 8 + took_ns / 8).max(1);
        }
        if now_ns.saturating_sub(self.period_ns) > MEMORY_NS {
            self.period_ns = now_ns;
            self.least_ns = [took_ns, self.least_ns[0]];
        }
        self.least_ns[0] = self.least_ns[0].min(took_ns);
        self.backoff = 0;
    }

    /// The answer waited so long in the hosts, which is no part of the round trip. Forgotten by an
    /// eighth each time.
    pub(super) fn waited(&mut self, host_ns: u64) {
        let host_ns = host_ns.min(HOST_MAX_NS);
        self.host_ns = host_ns.max(self.host_ns - self.host_ns / 8);
    }

    /// Smoothed; zero if none was measured.
    #[inline]
    pub(super) fn smooth_ns(&self) -> u64 {
        self.smooth_ns
    }

    /// The last one, or the smoothed one if that is longer.
    #[inline]
    pub(super) fn recent_ns(&self) -> u64 {
        self.latest_ns.max(self.smooth_ns)
    }

    /// The smallest that is remembered; zero if none was measured.
    pub(super) fn least_ns(&self) -> u64 {
        if self.smooth_ns == 0 {
            0
        } else {
            self.least_ns[0].min(self.least_ns[1])
        }
    }

    /// The retransmission timeout. `slack_ns` is how long the peer may delay an acknowledgement.
    #[inline]
    pub(super) fn timeout_ns(
        &self,
        initial_ns: u64,
        least_ns: u64,
        most_ns: u64,
        slack_ns: u64,
    ) -> u64 {
        let first_ns = if self.smooth_ns == 0 {
            initial_ns
        } else {
            // On a steady path four variations are next to nothing, and the timeout would precede
            // the detection of losses.
            let variation_ns = (4 * self.variation_ns).max(self.smooth_ns / 2);
            (self.smooth_ns + variation_ns + slack_ns + self.host_ns).max(least_ns)
        };
        let doubled_ns = first_ns.saturating_mul(1 << self.backoff.min(BACKOFF_MAX));
        // A path may be slower than the limit by itself, and doubles all the same, if less often.
        let own_ns = match self.smooth_ns {
            0 => first_ns,
            _ => BACKOFF_OWN * self.smooth_ns,
        };
        doubled_ns.min(most_ns.max(own_ns).max(first_ns))
    }

    /// The timeout passed without an acknowledgement. How often in a row.
    pub(super) fn timed_out(&mut self) -> u8 {
        self.backoff = self.backoff.saturating_add(1).min(BACKOFF_MAX);
        self.backoff
    }

    /// The peer answered.
    pub(super) fn answered(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests;
