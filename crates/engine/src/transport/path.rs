//! One path of an association: its sequence numbers, round-trip estimate and window, and whether
//! frames are sent over it.

use super::congestion::Window;
use super::frame::{HOLD_UNKNOWN, is_after};
use super::round_trip::RoundTripEstimator;
use super::settings::Settings;

/// A path is deactivated after this many consecutive losses, if another path delivers.
const LOST_IN_A_ROW: u32 = 3;
/// An inactive path is probed after four round trips, and no earlier than this.
const FIRST_PROBE_NS: u64 = 1_000_000;
/// Longest time between two probes.
const PROBE_MAX_NS: u64 = 1_000_000_000;
/// After this time without a newer timestamp any timestamp is accepted as new.
const FORGET_NS: u64 = 1_000_000_000;
/// A frame that is overtaken counts as lost after so many eighths of a round trip more; at most,
/// and after so many round trips without one that was only late again.
const REORDERING: u32 = 2;
const REORDERING_MAX: u32 = 32;
const WIDENED_ROUNDS: u64 = 16;

/// A path that is not used.
#[derive(Clone, Copy, Debug)]
struct Inactive {
    /// Time of deactivation. The echo of a later timestamp reactivates the path.
    since_ns: u64,
    probe_ns: u64,
    pause_ns: u64,
}

/// Counters and state of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStatistics {
    /// Frames with packets that were sent over it, each time counted.
    pub sent: u64,
    /// Of these, given up on and sent again.
    pub lost: u64,
    /// Frames in flight at the moment.
    pub in_flight: usize,
    /// Smoothed round trip, the time in the peer's host taken off; zero if none was measured.
    pub round_trip_ns: u64,
    /// The smallest of the last ten seconds or more.
    pub round_trip_least_ns: u64,
    /// Its window, in thousandths of a frame.
    pub window_milliframes: u64,
    /// Whether the path is inactive because it delivers nothing.
    pub is_inactive: bool,
    /// How often the path was deactivated.
    pub deactivations: u64,
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) window: Window,
    pub(super) round_trip: RoundTripEstimator,
    /// Number of the last frame sent, and of the last of those that were acknowledged.
    pub(super) order: u32,
    pub(super) acknowledged_order: u32,
    /// When the latest frame was sent that was acknowledged, sent once.
    pub(super) acknowledged_sent_ns: u64,
    /// Acknowledged since the last measured round trip.
    pub(super) acknowledged: u32,
    /// Frames since one asked for an acknowledgement.
    pub(super) unasked: u32,
    /// What is added to a round trip before a reordered frame counts as lost, in eighths of one;
    /// and when it was widened.
    reordering: u32,
    widened_ns: u64,
    lost_in_a_row: u32,
    /// The same, but that acknowledged frames count only if they are no shorter than the shortest
    /// lost one; and its bytes.
    pub(super) losses: (u32, usize),
    /// The newest timestamp that came, and when.
    newest_stamp: Option<(u32, u64)>,
    /// Whether it was not sent back yet.
    pub(super) has_unsent_echo: bool,
    /// The latest timestamp that came back, and when it was sent.
    echoed: Option<(u32, u64)>,
    inactive: Option<Inactive>,
    pub(super) sent_count: u64,
    pub(super) lost_count: u64,
    deactivation_count: u64,
}

impl Path {
    /// A path without measurements.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            window: Window::new(
                settings.window_initial_frames,
                settings.window_max_frames,
                settings.near_max_frames(),
                settings.delay_target_ns,
            ),
            round_trip: RoundTripEstimator::new(),
            order: 0,
            acknowledged_order: 0,
            acknowledged_sent_ns: 0,
            acknowledged: 0,
            unasked: 0,
            reordering: REORDERING,
            widened_ns: 0,
            lost_in_a_row: 0,
            losses: (0, usize::MAX),
            newest_stamp: None,
            has_unsent_echo: false,
            echoed: None,
            inactive: None,
            sent_count: 0,
            lost_count: 0,
            deactivation_count: 0,
        }
    }

    /// Its frames are counted from the one after that.
    pub(super) fn begin_after(&mut self, order: u32) {
        (self.order, self.acknowledged_order) = (order, order);
    }

    /// A frame with that timestamp came on it.
    pub(super) fn stamp_received(&mut self, now_ns: u64, stamp: u32) {
        let is_newer = self.newest_stamp.is_none_or(|(newest, at_ns)| {
            is_after(stamp, newest) || now_ns.saturating_sub(at_ns) > FORGET_NS
        });
        if is_newer {
            self.newest_stamp = Some((stamp, now_ns));
            self.has_unsent_echo = true;
        }
    }

    /// The timestamp to be sent back, and how long it was held, in microseconds.
    pub(super) fn echo(&self, now_ns: u64) -> Option<(u32, u16)> {
        self.newest_stamp.map(|(stamp, at_ns)| {
            let hold_us = now_ns.saturating_sub(at_ns) / 1000;
            (stamp, u16::try_from(hold_us).unwrap_or(HOLD_UNKNOWN))
        })
    }

    /// A timestamp came back that was sent then. Whether it is news: one that comes again, or after
    /// a later one, measures how long the peer kept it or a frame was overtaken.
    pub(super) fn echoed(&mut self, stamp: u32, sent_ns: u64) -> bool {
        if self
            .inactive
            .is_some_and(|inactive| sent_ns > inactive.since_ns)
        {
            self.inactive = None;
            self.lost_in_a_row = 0;
            self.window.restart();
        }
        // After half of all stamps none is told from a later one.
        let is_new = self.echoed.is_none_or(|(last, last_ns)| {
            is_after(stamp, last) || sent_ns.saturating_sub(last_ns) > FORGET_NS
        });
        if is_new {
            self.echoed = Some((stamp, sent_ns));
        }
        is_new
    }

    /// Whether the path carries no packets at present.
    #[inline]
    pub(super) fn is_inactive(&self) -> bool {
        self.inactive.is_some()
    }

    /// A frame that was sent over it was acknowledged.
    pub(super) fn delivered(&mut self, length_bytes: u16) {
        self.lost_in_a_row = 0;
        if usize::from(length_bytes) >= self.losses.1 {
            self.losses = (0, usize::MAX);
        }
        self.acknowledged += 1;
        self.round_trip.answered();
    }

    /// A frame that was sent over it is lost. Returns whether the path should be deactivated if
    /// another path delivers.
    pub(super) fn lost(&mut self, now_ns: u64, length_bytes: u16) -> bool {
        let (count, least_bytes) = self.losses;
        self.losses = (
            count.saturating_add(1),
            least_bytes.min(usize::from(length_bytes)),
        );
        self.lost_count += 1;
        self.lost_in_a_row += 1;
        let widened_until_ns = self.widened_ns + WIDENED_ROUNDS * self.round_trip.smooth_ns();
        if now_ns > widened_until_ns {
            self.reordering = REORDERING;
        }
        self.inactive.is_none() && self.lost_in_a_row >= LOST_IN_A_ROW
    }

    /// That loss of a frame that was sent then is one for the window.
    pub(super) fn count_loss(&mut self, now_ns: u64, sent_ns: u64) {
        self.window.lost(now_ns, sent_ns, &self.round_trip);
    }

    /// Frames that it lost since it last delivered one, or was heard again.
    pub(super) fn lost_in_a_row(&self) -> u32 {
        self.lost_in_a_row
    }

    /// Deactivates the path; it is probed from time to time.
    pub(super) fn deactivate(&mut self, now_ns: u64) {
        let pause_ns = (4 * self.round_trip.smooth_ns()).max(FIRST_PROBE_NS);
        self.deactivation_count += 1;
        self.inactive = Some(Inactive {
            since_ns: now_ns,
            probe_ns: now_ns + pause_ns,
            pause_ns,
        });
    }

    /// Time of the next probe.
    pub(super) fn probe_ns(&self) -> Option<u64> {
        self.inactive.map(|inactive| inactive.probe_ns)
    }

    /// The next probe is due then, at the latest, if the path is inactive.
    pub(super) fn probe_by(&mut self, at_ns: u64) {
        if let Some(inactive) = &mut self.inactive {
            inactive.probe_ns = inactive.probe_ns.min(at_ns);
        }
    }

    /// A probe was sent; the interval to the next one doubles.
    pub(super) fn probed(&mut self, now_ns: u64) {
        if let Some(inactive) = &mut self.inactive {
            inactive.pause_ns = (2 * inactive.pause_ns).min(PROBE_MAX_NS);
            inactive.probe_ns = now_ns + inactive.pause_ns;
        }
    }

    /// After how long a reordered frame counts as lost.
    #[inline]
    pub(super) fn reorder_window_ns(&self) -> u64 {
        let round_trip_ns = self.round_trip.recent_ns();
        round_trip_ns + round_trip_ns / 8 * u64::from(self.reordering) + 4_000
    }

    /// A frame that was declared lost arrived after all: widens the reorder window.
    pub(super) fn was_spurious(&mut self, now_ns: u64) {
        self.reordering = (self.reordering * 2).min(REORDERING_MAX);
        self.widened_ns = now_ns;
        self.window.restore();
    }

    /// Counters and state.
    pub(super) fn statistics(&self, in_flight: usize) -> PathStatistics {
        PathStatistics {
            sent: self.sent_count,
            lost: self.lost_count,
            in_flight,
            round_trip_ns: self.round_trip.smooth_ns(),
            round_trip_least_ns: self.round_trip.least_ns(),
            window_milliframes: self.window.milliframes(),
            is_inactive: self.is_inactive(),
            deactivations: self.deactivation_count,
        }
    }
}

#[cfg(test)]
mod tests;
