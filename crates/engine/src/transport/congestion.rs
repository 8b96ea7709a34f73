//! The congestion window of a path: how many frames may be in flight on the path.
//!
//! The window follows Swift (Kumar and others, SIGCOMM 2020). It grows by a frame each round trip while the round trip is
//! shorter than the *target delay*; when the round trip is longer, it shrinks in proportion to the excess, once each round
//! trip. The target delay is a little longer for small windows, so that many flows can share a queue. A window below one
//! frame is a pace.
//!
//! Three departures from Swift. First, the target delay is the same for all flows that share a queue and does not derive
//! from the smallest round trip of each flow: a flow that starts late never sees an empty queue. Only a path that stays
//! slow while its window is a quarter of a frame is slow by itself; that path gets a target delay of its own. Second, until
//! the round trip first exceeds the target delay the window doubles each round trip; otherwise a long fat pipe would take a
//! thousand of them. Third, a lost frame alone is no sign of congestion: placement needs no order, so loss costs little, and
//! delay shows queues earlier. The window shrinks only when more than one frame in six is lost, or more than one in
//! thirty-two while the round trips show a queue; then by half of the lost part.

use super::round_trip::RoundTripEstimator;

/// A frame.
const ONE: u64 = 1 << 20;
/// Frames that the window grows by in a round trip; large ones by this part, so that they do not take hundreds.
const GROWTH: u64 = ONE;
const GROWTH_SHIFT: u32 = 6;
/// One hundredth of a frame: then one is sent in a hundred round trips.
const LEAST: u64 = ONE / 100;
/// The most that is taken off at once: one half.
const SHRINKAGE_MAX: u64 = ONE / 2;
/// The part of the excess over the target delay by which the window shrinks: four fifths.
const SHRINKAGE: u64 = ONE * 4 / 5;
/// A path whose window is tiny gets its own target delay after this many round trips above the target delay.
const MISSED_MAX: u32 = 4;
/// Part of the frames that may be lost while no queue shows: one sixth; and if one does: one thirty-second.
const LOSS_CLEAR: u32 = 6;
const LOSS_QUEUED: u32 = 32;
/// What is lost is counted among so many frames at least: while no queue shows, among several calls full of them, as a call may be lost as
/// a whole.
const ROUND_CLEAR_FRAMES: u32 = 512;
const ROUND_QUEUED_FRAMES: u32 = 64;
/// A queue shows in round trips of this part of the target delay, if they also take twice the smallest. That one alone may be of a moment when
/// the peer thought that a frame had waited there.
const QUEUED_PART: u64 = 4;
/// The square root of the window, in frames, beyond which the target delay is not scaled. Below a tenth of a frame it grows no further.
const SCALED_MAX_ROOT: u64 = 10;

/// The window of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u64,
    initial: u64,
    max: u64,
    target_ns: u64,
    /// The window doubles each round trip, up to this.
    start_until: u64,
    /// What it was before it collapsed.
    before: Option<u64>,
    shrunk_ns: Option<u64>,
    /// The round trip of the path itself, if that exceeds the target delay.
    own_ns: Option<u64>,
    /// Consecutive round trips above the target delay while the window was tiny, and the shortest of them.
    missed: (u32, u64),
    /// When the next frame may be sent, if the window is less than one.
    next_ns: u64,
    /// Acknowledged and lost in this round trip, and when it began.
    acknowledged: u32,
    lost: u32,
    round_ns: u64,
    /// Round trips measured in it, and their sum.
    round_trips: (u32, u64),
}

impl Window {
    /// The window that a path has at first.
    pub(super) fn new(initial_frames: u16, max_frames: u16, target_ns: u64) -> Self {
        let initial = u64::from(initial_frames) * ONE;
        Self {
            size: initial,
            initial,
            max: u64::from(max_frames) * ONE,
            target_ns,
            start_until: u64::MAX,
            before: None,
            shrunk_ns: None,
            own_ns: None,
            missed: (0, u64::MAX),
            next_ns: 0,
            acknowledged: 0,
            lost: 0,
            round_ns: 0,
            round_trips: (0, 0),
        }
    }

    /// Thousandths of a frame.
    pub(super) fn milliframes(&self) -> u64 {
        self.size * 1000 / ONE
    }

    /// Frames that may be in flight beyond these; at least one in its time.
    #[inline]
    pub(super) fn room(&self, now_ns: u64, in_flight: usize) -> usize {
        if self.size >= ONE {
            ((self.size / ONE) as usize).saturating_sub(in_flight)
        } else {
            usize::from(in_flight == 0 && now_ns >= self.next_ns)
        }
    }

    /// When a frame may be sent that now may not, if that is only a matter of time.
    pub(super) fn next_ns(&self, in_flight: usize) -> Option<u64> {
        (self.size < ONE && in_flight == 0).then_some(self.next_ns)
    }

    /// Whole frames.
    #[inline]
    pub(super) fn frames(&self) -> u32 {
        (self.size / ONE) as u32
    }

    /// After how many frames an acknowledgement is wanted.
    #[inline]
    pub(super) fn quarter(&self) -> u32 {
        ((self.size / ONE / 4) as u32).max(1)
    }

    /// A frame was sent.
    #[inline]
    pub(super) fn sent(&mut self, now_ns: u64, round_trip: &RoundTripEstimator) {
        if self.size < ONE {
            let pause_ns = round_trip.smooth_ns() * ONE / self.size.max(1);
            // Without this bound a process that was descheduled would pause for seconds.
            let pause_max_ns = self.target_delay_ns() * ONE / LEAST;
            self.next_ns = now_ns + pause_ns.min(pause_max_ns);
        }
    }

    /// The target delay: the round trip that the window is controlled to.
    fn target_delay_ns(&self) -> u64 {
        let own_ns = self.own_ns.unwrap_or(0);
        let own_ns = self.target_ns.max(own_ns + own_ns / 8);
        // 1/sqrt(window), in 1/1024, less what it is for the largest that is scaled; 3.16 is 1/sqrt(0.1).
        let inverse = ONE / self.size.isqrt().max(1);
        let scale = inverse.clamp(1024 / SCALED_MAX_ROOT, 3_238) - 1024 / SCALED_MAX_ROOT;
        own_ns + self.target_ns * scale / 1024
    }

    /// So many frames were acknowledged when a round trip took that. `is_used`: the window was what
    /// held frames up, or nearly.
    pub(super) fn acknowledged(
        &mut self,
        now_ns: u64,
        frames: u32,
        took_ns: u64,
        round_trip: &RoundTripEstimator,
        is_used: bool,
    ) {
        self.acknowledged += frames;
        self.round_trips.0 += 1;
        self.round_trips.1 += took_ns;
        self.own_ns = self.own_ns.map(|own_ns| own_ns.min(took_ns));
        let target_delay_ns = self.target_delay_ns();
        if took_ns > target_delay_ns {
            self.start_until = 0;
            let missed = ONE * (took_ns - target_delay_ns) / took_ns;
            self.shrink(now_ns, round_trip, SHRINKAGE * missed / ONE);
            self.missed_by(took_ns);
            return self.end_round(now_ns, round_trip);
        }
        self.missed = (0, u64::MAX);
        if is_used && frames > 0 {
            let frames = u64::from(frames);
            self.size += if self.size < self.start_until {
                frames * ONE
            } else if self.size >= ONE {
                frames * GROWTH.max(self.size >> GROWTH_SHIFT) * ONE / self.size
            } else {
                // A window of less than a frame gets as much in a round trip, however rarely it sends.
                GROWTH / 4
            };
            self.size = self.size.min(self.max);
        }
        self.end_round(now_ns, round_trip);
    }

    /// A round trip exceeded the target delay. If the path is slow by itself, it gets its own target delay.
    fn missed_by(&mut self, took_ns: u64) {
        let (times, least_ns) = &mut self.missed;
        if self.size > ONE / 4 {
            (*times, *least_ns) = (0, u64::MAX);
            return;
        }
        *times += 1;
        *least_ns = took_ns.min(*least_ns);
        if *times >= MISSED_MAX {
            self.own_ns = Some(*least_ns);
            self.size = self.initial.min(8 * ONE);
            self.start_until = u64::MAX;
            self.missed = (0, u64::MAX);
        }
    }

    /// So many frames are lost.
    pub(super) fn lost(&mut self, now_ns: u64, frames: u32, round_trip: &RoundTripEstimator) {
        self.lost += frames;
        self.end_round(now_ns, round_trip);
    }

    /// When a round trip is over, what was lost in it counts.
    fn end_round(&mut self, now_ns: u64, round_trip: &RoundTripEstimator) {
        let all = self.lost + self.acknowledged;
        if now_ns < self.round_ns.saturating_add(round_trip.smooth_ns()) {
            return;
        }
        let queued_ns = (2 * round_trip.least_ns()).max(self.target_ns / QUEUED_PART);
        let (part, least) = match self.round_trips.1 > u64::from(self.round_trips.0) * queued_ns {
            true => (LOSS_QUEUED, ROUND_QUEUED_FRAMES),
            false => (LOSS_CLEAR, ROUND_CLEAR_FRAMES),
        };
        if all < least {
            return;
        }
        if self.lost > all / part {
            self.start_until = 0;
            let part = ONE * u64::from(self.lost) / u64::from(all);
            self.shrink(now_ns, round_trip, part / 2);
        }
        (self.lost, self.acknowledged, self.round_ns) = (0, 0, now_ns);
        self.round_trips = (0, 0);
    }

    /// Takes off that part, if nothing was taken off in this round trip.
    fn shrink(&mut self, now_ns: u64, round_trip: &RoundTripEstimator, part: u64) {
        let is_time = |at_ns: u64| now_ns >= at_ns.saturating_add(round_trip.smooth_ns());
        if self.shrunk_ns.is_none_or(is_time) {
            self.shrunk_ns = Some(now_ns);
            let part = part.min(SHRINKAGE_MAX);
            self.size = (self.size - self.size * part / ONE).max(LEAST);
        }
    }

    /// Nothing came back for long: one frame at a time, until something does; then quickly up to half of before.
    pub(super) fn collapse(&mut self) {
        if self.size > ONE {
            self.before = Some(self.size);
            self.start_until = self.size / 2;
            self.size = ONE;
        }
    }

    /// What was waited for was only late: as if the window had not collapsed.
    pub(super) fn restore(&mut self) {
        if let Some(before) = self.before.take() {
            self.size = self.size.max(before);
        }
    }

    /// A path that was left is tried again.
    pub(super) fn restart(&mut self) {
        self.size = self.initial;
        self.start_until = u64::MAX;
        self.before = None;
        (self.lost, self.acknowledged) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after calls of 44 frames of which every twentieth is lost as a whole, and round trips that take that.
    fn after_losses(took_ns: u64) -> u64 {
        let mut round_trip = RoundTripEstimator::new();
        round_trip.measured(0, 10_000);
        let mut window = Window::new(256, 256, 250_000);
        for call in 1..1_000 {
            let now_ns = call * 20_000;
            match call % 20 {
                0 => window.lost(now_ns, 44, &round_trip),
                _ => window.acknowledged(now_ns, 44, took_ns, &round_trip, false),
            }
        }
        window.milliframes() / 1000
    }

    #[test]
    fn calls_lost_whole_close_a_window_only_where_a_queue_shows() {
        assert_eq!(after_losses(15_000), 256);
        assert_eq!(after_losses(60_000), 256);
        assert!(after_losses(100_000) < 128, "{}", after_losses(100_000));
    }

    #[test]
    fn heavy_losses_close_a_window_though_no_queue_shows() {
        let mut round_trip = RoundTripEstimator::new();
        round_trip.measured(0, 10_000);
        let mut window = Window::new(256, 256, 250_000);
        for call in 1..100 {
            let now_ns = call * 20_000;
            window.lost(now_ns, 22, &round_trip);
            window.acknowledged(now_ns, 22, 10_000, &round_trip, false);
        }
        assert!(window.milliframes() < 200_000, "{}", window.milliframes());
    }

    #[test]
    fn a_path_that_is_slow_by_itself_may_take_an_eighth_longer_than_it_does() {
        let mut window = Window::new(256, 256, 250_000);
        assert_eq!(window.target_delay_ns(), 250_000);
        window.own_ns = Some(800_000);
        assert_eq!(window.target_delay_ns(), 900_000);
        // One that is quicker than all must be.
        window.own_ns = Some(100_000);
        assert_eq!(window.target_delay_ns(), 250_000);
    }

    fn at(frames: u64) -> Window {
        let mut window = Window::new(16, 256, 250_000);
        window.size = frames * ONE;
        window
    }

    /// Only after several round trips in a row; and its own round trip is the shortest of these.
    #[test]
    fn a_path_is_slow_by_itself_if_its_window_stays_tiny() {
        let mut window = at(1);
        window.size = ONE / 8;
        for took_ns in [500_000, 900_000, 700_000] {
            window.missed_by(took_ns);
        }
        // In between it was not tiny.
        window.size = ONE;
        window.missed_by(400_000);
        window.size = ONE / 4;
        for took_ns in [900_000, 700_000, 800_000] {
            window.missed_by(took_ns);
            assert_eq!(window.own_ns, None);
        }
        window.missed_by(1_000_000);
        assert_eq!(window.own_ns, Some(700_000));
        assert_eq!((window.size, window.start_until), (8 * ONE, u64::MAX));
    }

    /// After it collapsed, a window doubles up to half of what it was, and then grows by a frame.
    #[test]
    fn a_collapsed_window_comes_back_by_half() {
        let round_trip = RoundTripEstimator::new();
        let mut window = at(64);
        window.collapse();
        assert_eq!(window.size, ONE);
        for _ in 0..31 {
            window.acknowledged(0, 1, 10_000, &round_trip, true);
        }
        assert_eq!(window.size, 32 * ONE);
        window.acknowledged(0, 1, 10_000, &round_trip, true);
        assert_eq!(window.size, 32 * ONE + ONE / 32);
        // If nothing was lost, it is what it was, once.
        window.restore();
        assert_eq!(window.size, 64 * ONE);
        window.size = ONE;
        window.restore();
        assert_eq!(window.size, ONE);
    }

    #[test]
    fn a_path_that_is_tried_again_begins_anew() {
        let mut window = at(64);
        window.collapse();
        window.lost = 5;
        window.restart();
        assert_eq!((window.size, window.lost), (16 * ONE, 0));
        window.restore();
        assert_eq!(window.size, 16 * ONE);
    }

    #[test]
    fn a_window_has_a_greatest_size_and_a_least() {
        let mut round_trip = RoundTripEstimator::new();
        round_trip.measured(0, 10_000);
        let mut window = at(255);
        for at in 0..9 {
            window.acknowledged(at, 100, 10_000, &round_trip, true);
        }
        assert_eq!(
            (window.size, window.room(0, 255), window.room(0, 256)),
            (256 * ONE, 1, 0)
        );
        for at in 1..100 {
            window.shrink(at * 20_000, &round_trip, ONE);
        }
        assert_eq!(window.size, LEAST);
    }

    #[test]
    fn a_window_shrinks_once_in_a_round_trip() {
        let mut round_trip = RoundTripEstimator::new();
        round_trip.measured(0, 10_000);
        let mut window = at(64);
        for now_ns in [100_000, 100_001, 109_999] {
            window.shrink(now_ns, &round_trip, ONE / 4);
            assert_eq!(window.size, 48 * ONE);
        }
        window.shrink(110_000, &round_trip, ONE / 4);
        assert_eq!(window.size, 36 * ONE);
    }

    /// Below one frame a window is a pace; after a process was stopped for long, too, one frame follows in time.
    #[test]
    fn a_pace_has_a_longest_pause() {
        let mut round_trip = RoundTripEstimator::new();
        round_trip.measured(0, 10_000);
        let mut window = at(1);
        window.size = ONE / 4;
        window.sent(1_000, &round_trip);
        assert_eq!(window.next_ns(0), Some(41_000));
        assert_eq!(
            (
                window.room(40_999, 0),
                window.room(41_000, 0),
                window.room(41_000, 1)
            ),
            (0, 1, 0)
        );
        round_trip.measured(1, 60_000_000_000);
        window.size = LEAST;
        window.sent(0, &round_trip);
        let longest_ns = window.target_delay_ns() * ONE / LEAST;
        assert_eq!(window.next_ns(0), Some(longest_ns));
        assert!(longest_ns < 200_000_000);
    }
}
