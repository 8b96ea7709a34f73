//! What became of the handshakes, counted and, within reason, logged.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::RefusedBecause;

/// How the handshakes that others began ended, since the host was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RendezvousCounters {
    /// In a link.
    pub accepted: u64,
    /// In an answer to an ask.
    pub answered: u64,
    /// In the answer that nothing is offered under that name.
    pub not_offered: u64,
    /// In a region that is shared with the peer.
    pub shared: u64,
    /// In the answer that no region is shared with the peer under that number.
    pub not_shared: u64,
    /// The access list does not name the user or group.
    pub not_allowed: u64,
    /// Another version.
    pub version: u64,
    /// As many links as allowed were there, or as many as allowed to one user.
    pub too_many: u64,
    /// We were out of memory or descriptors.
    pub resources: u64,
    /// The message is an invalid handshake, or its memory could not be used.
    pub invalid: u64,
    /// The handshake of another host was made without the secret, or with a key that is not known.
    pub unauthentic: u64,
    /// Another host's key is that of another name than it goes by.
    pub not_its_key: u64,
    /// There was a link already, or both sides connected at once.
    pub simultaneous: u64,
    /// As many handshakes as allowed were under way.
    pub busy: u64,
    /// The peer did not complete the handshake in time.
    pub stalled: u64,
    /// The peer closed before the handshake was complete.
    pub peer_closed: u64,
}

/// How a handshake ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Accepted,
    Answered,
    NotOffered,
    Shared,
    NotShared,
    NotAllowed,
    Version,
    TooMany,
    Resources,
    Invalid,
    Unauthentic,
    NotItsKey,
    Simultaneous,
    Busy,
    Stalled,
    PeerClosed,
}

impl Outcome {
    /// The reason that a refused peer is told.
    pub(crate) fn reason(self) -> Option<RefusedBecause> {
        Some(match self {
            Self::NotAllowed => RefusedBecause::NOT_ALLOWED,
            Self::Version => RefusedBecause::VERSION,
            Self::TooMany => RefusedBecause::TOO_MANY,
            Self::Resources => RefusedBecause::RESOURCES,
            Self::Invalid => RefusedBecause::INVALID,
            Self::Simultaneous => RefusedBecause::SIMULTANEOUS,
            Self::Busy => RefusedBecause::BUSY,
            Self::NotItsKey => RefusedBecause::NOT_ITS_KEY,
            Self::Accepted
            | Self::Answered
            | Self::NotOffered
            | Self::Shared
            | Self::NotShared
            | Self::Unauthentic
            | Self::Stalled
            | Self::PeerClosed => return None,
        })
    }
}

const OUTCOMES: usize = Outcome::PeerClosed as usize + 1;

/// Written by the control thread, read by the owner.
#[derive(Debug, Default)]
pub(crate) struct Tally([AtomicU64; OUTCOMES]);

impl Tally {
    pub(crate) fn count(&self, outcome: Outcome) {
        self.of(outcome).fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, outcome: Outcome) -> &AtomicU64 {
        let Self(counters) = self;
        &counters[outcome as usize]
    }

    pub(crate) fn read(&self) -> RendezvousCounters {
        let of = |outcome| self.of(outcome).load(Ordering::Relaxed);
        RendezvousCounters {
            accepted: of(Outcome::Accepted),
            answered: of(Outcome::Answered),
            not_offered: of(Outcome::NotOffered),
            shared: of(Outcome::Shared),
            not_shared: of(Outcome::NotShared),
            not_allowed: of(Outcome::NotAllowed),
            version: of(Outcome::Version),
            too_many: of(Outcome::TooMany),
            resources: of(Outcome::Resources),
            invalid: of(Outcome::Invalid),
            unauthentic: of(Outcome::Unauthentic),
            not_its_key: of(Outcome::NotItsKey),
            simultaneous: of(Outcome::Simultaneous),
            busy: of(Outcome::Busy),
            stalled: of(Outcome::Stalled),
            peer_closed: of(Outcome::PeerClosed),
        }
    }
}

/// Bounds the lines that others can cause in our log.
#[derive(Debug)]
pub(crate) struct LogBudget {
    period_ns: u64,
    period_began_ns: u64,
    lines: u32,
    suppressed: u64,
}

impl Default for LogBudget {
    fn default() -> Self {
        Self::new(Self::PERIOD_NS)
    }
}

impl LogBudget {
    const PERIOD_NS: u64 = 1_000_000_000;
    const LINES_PER_PERIOD: u32 = 4;
    /// Strangers may come for years.
    const STRANGERS_PERIOD_NS: u64 = 60_000_000_000;

    fn new(period_ns: u64) -> Self {
        Self {
            period_ns,
            period_began_ns: 0,
            lines: 0,
            suppressed: 0,
        }
    }

    /// For what anybody on the network can cause.
    pub(crate) fn of_strangers() -> Self {
        Self::new(Self::STRANGERS_PERIOD_NS)
    }

    /// Whether a line may be written now; if so, how many were not before it.
    pub(crate) fn line(&mut self, now_ns: u64) -> Option<u64> {
        if now_ns.saturating_sub(self.period_began_ns) >= self.period_ns {
            self.period_began_ns = now_ns;
            self.lines = 0;
        }
        if self.lines == Self::LINES_PER_PERIOD {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded_and_told() {
        let mut budget = LogBudget::default();
        let second = LogBudget::PERIOD_NS;
        let lines = (0..1000).filter_map(|_| budget.line(5 * second)).count();
        assert_eq!(lines, LogBudget::LINES_PER_PERIOD as usize);
        assert_eq!(budget.line(6 * second), Some(1000 - 4));
    }

    #[test]
    fn every_outcome_has_its_counter() {
        let tally = Tally::default();
        tally.count(Outcome::Stalled);
        tally.count(Outcome::PeerClosed);
        tally.count(Outcome::PeerClosed);
        let read = tally.read();
        assert_eq!((read.stalled, read.peer_closed, read.accepted), (1, 2, 0));
    }
}
