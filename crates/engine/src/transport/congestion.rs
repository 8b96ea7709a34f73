//! The congestion window of a path: how many frames may be in flight on the path. Two laws, chosen
//! by the base round trip of the path (decision 43).
//!
//! *Near* (a base below 0.4 ms) the window follows Swift (Kumar and others, SIGCOMM 2020). It grows
//! by a frame each round trip while the round trip is shorter than the *target delay*. When the
//! smallest round trip of a round is longer, it shrinks in proportion to the excess: one alone may
//! be of a moment when a host was busy. The target delay is a little longer for small windows, so
//! that many flows can share a queue. A window below one frame is a pace.
//!
//! Three departures from Swift. First, the target delay is the same for all flows that share a
//! queue and does not derive from the smallest round trip of each flow: a flow that starts late
//! never sees an empty queue. Only a base that leaves no room below the target moves it. Second,
//! until the round trip first exceeds the target delay the window doubles each round trip;
//! otherwise a long fat pipe would take a thousand of them. Third, a lost frame alone is no sign of
//! congestion: placement needs no order, so loss costs little, and delay shows queues earlier. The
//! window shrinks only when more than one frame in six is lost, or more than one in thirty-two
//! while the round trips show a queue; then by half of the lost part.
//!
//! *Far* queues cannot be told from the jitter of hosts by a fixed delay, and others fill them: see
//! [`far`].

mod far;
mod pacer;

use super::round_trip::RoundTripEstimator;
use far::Far;

/// A frame.
const ONE: u64 = 1 << 20;
/// Frames that the window grows by in a round trip; large ones by this part, so that they do not
/// take hundreds.
const GROWTH: u64 = ONE;
const GROWTH_SHIFT: u32 = 6;
/// One hundredth of a frame: then one is sent in a hundred round trips.
const LEAST: u64 = ONE / 100;
/// The most that is taken off at once: one half.
const SHRINKAGE_MAX: u64 = ONE / 2;
/// The part of the excess over the target delay by which the window shrinks: four fifths.
const SHRINKAGE: u64 = ONE * 4 / 5;
/// Part of the frames that may be lost while no queue shows: one sixth; and if one does: one
/// thirty-second.
const LOSS_CLEAR: u32 = 6;
const LOSS_QUEUED: u32 = 32;
/// Lost frames are counted among so many at least: while no queue shows, among several calls full
/// of them, as a call may be lost as a whole.
const ROUND_CLEAR_FRAMES: u32 = 512;
const ROUND_QUEUED_FRAMES: u32 = 64;
/// A queue shows in round trips of this part of the target delay, if they also take twice the
/// smallest. That one alone may be of a moment when the peer thought that a frame had waited there.
const QUEUED_PART: u64 = 4;
/// The square root of the window, in frames, beyond which the target delay is not scaled. Below a
/// tenth of a frame it grows no further.
const SCALED_MAX_ROOT: u64 = 10;
/// A base of this or more is far, and one below this is near; in between the path stays what it is.
const FAR_NS: u64 = 400_000;
const NEAR_NS: u64 = 300_000;
/// A path that was near once is far from here: what is less may be the queue of many who share the
/// near one.
const FAR_AGAIN_NS: u64 = 2_000_000;
/// A base from here on keeps this room below the target delay, besides a quarter of itself. Shorter
/// ones do not move the target: a flow that starts late takes the queue of the others for its base,
/// and would be served better than they.
const OWN_NS: u64 = 200_000;
const ROOM_NS: u64 = 50_000;
const ROOM_PART: u64 = 4;
/// Such a path is left so many frames however long it takes: that is a tenth of a millisecond of
/// most networks, and hosts and networks jitter by more. Losses take them, too.
const OWN_LEAST: u64 = 32 * ONE;
/// Round trips of which the smallest is compared with the target, unless that takes longer than
/// this.
const JUDGED_MIN: u32 = 4;
const JUDGED_MAX_NS: u64 = 1_000_000;

const _: () = assert!(OWN_NS < NEAR_NS && NEAR_NS < FAR_NS && FAR_NS < FAR_AGAIN_NS);

/// The window of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u64,
    initial: u64,
    /// The largest under either law.
    max: u64,
    near_max: u64,
    target_ns: u64,
    /// The window doubles each round trip, up to this.
    start_until: u64,
    /// Its size before it collapsed, and up to where it doubled then.
    before: Option<(u64, u64)>,
    shrunk_ns: Option<u64>,
    /// When the next frame may be sent, if the window is less than one.
    next_ns: u64,
    /// Acknowledged and lost in this round trip, and when it began.
    acknowledged: u32,
    lost: u32,
    round_ns: u64,
    /// Round trips measured in it, and their sum.
    round_trips: (u32, u64),
    /// When the round began whose smallest round trip is compared with the target, and that one.
    delay_round_ns: u64,
    round_least_ns: u64,
    judged: u32,
    /// The law of far paths, on one.
    far: Option<Far>,
    was_near: bool,
}

impl Window {
    /// The window that a path has at first. A near path has `near_max_frames` at most.
    pub(super) fn new(
        initial_frames: u16,
        max_frames: u16,
        near_max_frames: u16,
        target_ns: u64,
    ) -> Self {
        let initial = u64::from(initial_frames) * ONE;
        let max = u64::from(max_frames) * ONE;
        Self {
            size: initial,
            initial,
            max,
            near_max: (u64::from(near_max_frames) * ONE).clamp(initial, max),
            target_ns,
            start_until: u64::MAX,
            before: None,
            shrunk_ns: None,
            next_ns: 0,
            acknowledged: 0,
            lost: 0,
            round_ns: 0,
            round_trips: (0, 0),
            delay_round_ns: 0,
            round_least_ns: u64::MAX,
            judged: 0,
            far: None,
            was_near: false,
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
            let room = ((self.size / ONE) as usize).saturating_sub(in_flight);
            match &self.far {
                Some(far) if far.has_probe => room.max(1),
                Some(far) if !far.pacer.is_due(now_ns) => 0,
                _ => room,
            }
        } else {
            usize::from(in_flight == 0 && now_ns >= self.next_ns)
        }
    }

    /// When a frame may be sent that now may not, if that is only a matter of time.
    pub(super) fn next_ns(&self, in_flight: usize) -> Option<u64> {
        match &self.far {
            Some(far) if self.size >= ONE => far.pacer.next_ns().filter(|_| !far.has_probe),
            _ => (self.size < ONE && in_flight == 0).then_some(self.next_ns),
        }
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
            let pause_max_ns = self.target_delay_ns(round_trip.least_ns()) * ONE / LEAST;
            self.next_ns = now_ns + pause_ns.min(pause_max_ns);
        } else if let Some(far) = &mut self.far {
            far.has_probe = false;
            far.pacer.sent(now_ns);
        }
    }

    /// The target delay: the round trip that the window of a near path is controlled to.
    fn target_delay_ns(&self, base_ns: u64) -> u64 {
        let own_ns = match base_ns < OWN_NS {
            true => self.target_ns,
            false => self.target_ns.max(base_ns + base_ns / ROOM_PART + ROOM_NS),
        };
        // 1/sqrt(window), in 1/1024, less what it is for the largest that is scaled; 3.16 is
        // 1/sqrt(0.1).
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
        self.choose_law(now_ns, round_trip);
        if self.far.is_some() {
            return self.acknowledged_far(now_ns, frames, took_ns, round_trip, is_used);
        }
        self.acknowledged += frames;
        self.round_trips.0 += 1;
        self.round_trips.1 += took_ns;
        self.round_least_ns = self.round_least_ns.min(took_ns);
        let target_delay_ns = self.target_delay_ns(round_trip.least_ns());
        if took_ns <= target_delay_ns && is_used && frames > 0 {
            let frames = u64::from(frames);
            self.size += if self.size < self.start_until {
                frames * ONE
            } else if self.size >= ONE {
                frames * GROWTH.max(self.size >> GROWTH_SHIFT) * ONE / self.size
            } else {
                // A window of less than a frame gets as much in a round trip, however rarely it
                // sends.
                GROWTH / 4
            };
            self.size = self.size.min(self.near_max);
        }
        self.judged += 1;
        let since_ns = now_ns.saturating_sub(self.delay_round_ns);
        let is_enough = self.judged >= JUDGED_MIN || since_ns >= JUDGED_MAX_NS || self.size < ONE;
        if since_ns >= round_trip.smooth_ns() && is_enough {
            let least_ns = core::mem::replace(&mut self.round_least_ns, u64::MAX);
            (self.delay_round_ns, self.judged) = (now_ns, 0);
            if least_ns > target_delay_ns {
                self.start_until = 0;
                let missed = ONE * (least_ns - target_delay_ns) / least_ns;
                let before = self.size;
                self.shrink(now_ns, round_trip, SHRINKAGE * missed / ONE);
                if round_trip.least_ns() >= OWN_NS {
                    self.size = self.size.max(before.min(OWN_LEAST));
                }
            }
        }
        self.end_round(now_ns, round_trip);
    }

    /// The base of a path says which law is its own.
    fn choose_law(&mut self, now_ns: u64, round_trip: &RoundTripEstimator) {
        let base_ns = round_trip.least_ns();
        let far_ns = match self.was_near {
            true => FAR_AGAIN_NS,
            false => FAR_NS,
        };
        if base_ns < NEAR_NS {
            self.was_near = true;
            if self.far.take().is_some() {
                self.size = self.size.min(self.near_max);
                (self.acknowledged, self.lost, self.round_ns) = (0, 0, now_ns);
                self.round_trips = (0, 0);
                (self.delay_round_ns, self.round_least_ns) = (now_ns, u64::MAX);
            }
        } else if base_ns >= far_ns && self.far.is_none() {
            self.far = Some(Far::new(now_ns));
            // No queue of its own made the first round trips long.
            self.size = self.size.max(self.initial.min(8 * ONE));
        }
    }

    /// A frame is lost that was sent then.
    pub(super) fn lost(&mut self, now_ns: u64, sent_ns: u64, round_trip: &RoundTripEstimator) {
        if let Some(far) = &mut self.far {
            return far.lost(sent_ns);
        }
        self.lost += 1;
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

    /// True for a far path.
    #[inline]
    pub(super) fn is_far(&self) -> bool {
        self.far.is_some()
    }

    /// Nothing came back for a while. Whether one frame shall ask the peer before the window
    /// collapses: on a far path an answer that is late is likelier than a path that is full to the
    /// brim.
    pub(super) fn probes_first(&mut self, is_first: bool) -> bool {
        let Some(far) = self.far.as_mut().filter(|_| is_first) else {
            return false;
        };
        far.has_probe = true;
        true
    }

    /// Nothing came back for long: one frame at a time, until something does; then quickly up to
    /// half of before.
    pub(super) fn collapse(&mut self) {
        if self.size > ONE {
            self.before = Some((self.size, self.start_until));
            self.start_until = self.size / 2;
            self.size = ONE;
            if let Some(far) = &mut self.far {
                far.collapsed();
            }
        }
    }

    /// What was waited for was only late: as if the window had not collapsed.
    pub(super) fn restore(&mut self) {
        if let Some((size, start_until)) = self.before.take() {
            self.size = self.size.max(size);
            self.start_until = self.start_until.max(start_until);
        }
        if let Some(size) = self.far.as_mut().and_then(Far::was_late) {
            self.size = self.size.max(size);
        }
    }

    /// A path that was left is tried again.
    pub(super) fn restart(&mut self) {
        self.size = self.initial;
        self.start_until = u64::MAX;
        self.before = None;
        (self.far, self.was_near) = (None, false);
        (self.lost, self.acknowledged) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
