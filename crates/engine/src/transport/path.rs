//! One of the flows that frames are sprayed over: what is known of it, and whether it is used.

use super::congestion::Window;
use super::frame::{HOLD_UNKNOWN, is_after};
use super::round_trip::RoundTrip;
use super::settings::Settings;

/// Frames lost, one after the other, after which a path is left, if others bring theirs there.
const LOST_IN_A_ROW: u32 = 3;
/// A path that was left is tried after this many round trips, but not before the least time below.
const FIRST_TRIAL_NS: u64 = 1_000_000;
/// The longest time between two trials.
const TRIAL_MAX_NS: u64 = 1_000_000_000;
/// A timestamp that did not come for so long may be followed by any other.
const FORGET_NS: u64 = 1_000_000_000;

/// A path that is not used.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// When it was left; the echo of a later timestamp brings it back.
    since_ns: u64,
    trial_ns: u64,
    pause_ns: u64,
}

/// What counts of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStatistics {
    /// Frames with packets that were sent over it, each time counted.
    pub sent: u64,
    /// Of these, given up on and sent again.
    pub lost: u64,
    /// Frames under way at the moment.
    pub under_way: usize,
    /// Smoothed round trip, the time in the peer's host taken off; zero if none was measured.
    pub round_trip_ns: u64,
    /// The smallest of the last ten seconds or more.
    pub round_trip_least_ns: u64,
    /// Its window, in thousandths of a frame.
    pub window_milliframes: u64,
    /// Whether it is left at the moment, as it brings nothing there.
    pub is_left: bool,
    /// How often it was left.
    pub times_left: u64,
}

/// A path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) window: Window,
    pub(super) trip: RoundTrip,
    /// Number of the last frame sent, and of the last of those that were acknowledged.
    pub(super) order: u32,
    pub(super) acknowledged_order: u32,
    /// When the latest frame was sent that was acknowledged, sent once.
    pub(super) acknowledged_sent_ns: u64,
    /// Acknowledged since the last measured round trip.
    pub(super) acknowledged: u32,
    /// Frames since one asked for an acknowledgement.
    pub(super) unasked: u32,
    /// What is added to a round trip before a frame that was overtaken is lost, in eighths of one.
    reordering: u32,
    lost_in_a_row: u32,
    /// The same, but that acknowledged frames count only if they are no shorter than the shortest lost one; and its bytes.
    pub(super) losses: (u32, usize),
    /// The newest timestamp that came, and when.
    heard: Option<(u32, u64)>,
    /// Whether it was not sent back yet.
    pub(super) has_news: bool,
    /// The last timestamp that came back.
    echoed: Option<u32>,
    left: Option<Left>,
    pub(super) sent_count: u64,
    pub(super) lost_count: u64,
    left_count: u64,
}

impl Path {
    /// Nothing is known of it.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            window: Window::new(
                settings.window_initial_frames,
                settings.window_max_frames,
                settings.delay_target_ns,
            ),
            trip: RoundTrip::new(),
            order: 0,
            acknowledged_order: 0,
            acknowledged_sent_ns: 0,
            acknowledged: 0,
            unasked: 0,
            reordering: 2,
            lost_in_a_row: 0,
            losses: (0, usize::MAX),
            heard: None,
            has_news: false,
            echoed: None,
            left: None,
            sent_count: 0,
            lost_count: 0,
            left_count: 0,
        }
    }

    /// A frame with that timestamp came on it.
    pub(super) fn heard(&mut self, now_ns: u64, stamp: u32) {
        let is_newer = self.heard.is_none_or(|(newest, at_ns)| {
            is_after(stamp, newest) || now_ns.saturating_sub(at_ns) > FORGET_NS
        });
        if is_newer {
            self.heard = Some((stamp, now_ns));
            self.has_news = true;
        }
    }

    /// The timestamp to be sent back, and how long it was held, in microseconds.
    pub(super) fn echo(&self, now_ns: u64) -> Option<(u32, u16)> {
        self.heard.map(|(stamp, at_ns)| {
            let hold_us = now_ns.saturating_sub(at_ns) / 1000;
            (stamp, u16::try_from(hold_us).unwrap_or(HOLD_UNKNOWN))
        })
    }

    /// A timestamp came back that was sent then. Whether it is news.
    pub(super) fn echoed(&mut self, stamp: u32, sent_ns: u64) -> bool {
        if self.left.is_some_and(|left| sent_ns > left.since_ns) {
            self.use_again();
            self.window.restart();
        }
        self.echoed.replace(stamp) != Some(stamp)
    }

    /// Whether packets are sent over it.
    #[inline]
    pub(super) fn is_left(&self) -> bool {
        self.left.is_some()
    }

    /// A frame that was sent over it was acknowledged.
    pub(super) fn delivered(&mut self, length_bytes: u16) {
        self.lost_in_a_row = 0;
        if usize::from(length_bytes) >= self.losses.1 {
            self.losses = (0, usize::MAX);
        }
        self.acknowledged += 1;
        self.trip.answered();
    }

    /// A frame that was sent over it is lost. Whether the path is to be left, if others are good.
    pub(super) fn lost(&mut self, now_ns: u64, length_bytes: u16) -> bool {
        let (count, least_bytes) = self.losses;
        self.losses = (
            count.saturating_add(1),
            least_bytes.min(usize::from(length_bytes)),
        );
        self.lost_count += 1;
        self.lost_in_a_row += 1;
        self.window.lost(now_ns, 1, &self.trip);
        self.left.is_none() && self.lost_in_a_row >= LOST_IN_A_ROW
    }

    /// It is not used from now on, but tried now and then.
    pub(super) fn leave(&mut self, now_ns: u64) {
        let pause_ns = (4 * self.trip.smooth_ns()).max(FIRST_TRIAL_NS);
        self.left_count += 1;
        self.left = Some(Left {
            since_ns: now_ns,
            trial_ns: now_ns + pause_ns,
            pause_ns,
        });
    }

    /// It is used again, as no other is better.
    pub(super) fn use_again(&mut self) {
        self.left = None;
        self.lost_in_a_row = 0;
    }

    /// When it is to be tried.
    pub(super) fn trial_ns(&self) -> Option<u64> {
        self.left.map(|left| left.trial_ns)
    }

    /// It is tried; the next time after twice as long.
    pub(super) fn tried(&mut self, now_ns: u64) {
        if let Some(left) = &mut self.left {
            left.pause_ns = (2 * left.pause_ns).min(TRIAL_MAX_NS);
            left.trial_ns = now_ns + left.pause_ns;
        }
    }

    /// After how long a frame that was overtaken is lost.
    #[inline]
    pub(super) fn overtaken_ns(&self) -> u64 {
        let trip_ns = self.trip.recent_ns();
        trip_ns + trip_ns / 8 * u64::from(self.reordering) + 4_000
    }

    /// A frame that was held for lost was only late.
    pub(super) fn was_late(&mut self) {
        self.reordering = (self.reordering * 2).min(32);
        self.window.restore();
    }

    /// What counts of it.
    pub(super) fn statistics(&self, under_way: usize) -> PathStatistics {
        PathStatistics {
            sent: self.sent_count,
            lost: self.lost_count,
            under_way,
            round_trip_ns: self.trip.smooth_ns(),
            round_trip_least_ns: self.trip.least_ns(),
            window_milliframes: self.window.milliframes(),
            is_left: self.is_left(),
            times_left: self.left_count,
        }
    }
}
