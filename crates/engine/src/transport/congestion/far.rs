//! The law of far paths: CUBIC (RFC 9438) with the start of HyStart++ (RFC 9406), pacing, and a
//! filter of losses.
//!
//! Placement needs no order, so a lost frame costs a retransmission and nothing else. In a round
//! whose smallest round trip shows no queue, a few losses in a hundred are therefore taken for
//! noise of the path. When a queue shows, any loss is its overflow. Rounds are judged as a whole
//! and cut the window once.

use super::pacer::Pacer;
use super::{ONE, RoundTripEstimator, Window};

/// A cut leaves seven tenths.
const CUT: (u64, u64) = (7, 10);
/// Never fewer frames after a cut.
const LEAST: u64 = 2 * ONE;
/// Growth of the Reno-friendly region, a round trip: 3 (1 - 0.7) / (1 + 0.7) of a frame.
const RENO: u64 = ONE * 9 / 17;
/// CUBIC grows by no more than this part of the window in a round trip.
const GROWTH_PART: u64 = 2;
/// C is 0.4 frames for the third power of a second.
const C: (i64, i64) = (4, 10);
/// Beyond this the third power leaves 64 bits; the window has its greatest size long before.
const TIME_MAX_MS: i64 = 50_000;
/// A round shows a queue when its smallest round trip exceeds the base by an eighth and this.
const QUEUE_PART: u64 = 8;
const QUEUE_NS: u64 = 1_000_000;
/// One in so many lost frames is tolerated while no queue shows, and the square root of this part
/// of all, as few frames vary more.
const NOISE_PART: u32 = 50;
const NOISE_ROOT_PART: u32 = 8;
/// While the window doubles, so many: what overflows then is much more, and few frames vary much.
const START_NOISE_PART: u32 = 8;
/// Where the smallest round trip of a round exceeds the base by no more than this part and this
/// time, nobody waits: the window grows by that part of itself in a round trip at least, as CUBIC's
/// curve takes seconds.
const CLEAR_PART: u64 = 32;
const CLEAR_NS: u64 = 50_000;
const CLEAR_GROWTH_PART: u64 = 32;
/// HyStart++: growth of the smallest round trip, within bounds, that ends the doubling; rounds of
/// slow growth before.
const RISE_PART: u64 = 8;
const RISE_MIN_NS: u64 = 1_000_000;
const RISE_MAX_NS: u64 = 16_000_000;
const SLOW_ROUNDS: u8 = 5;
/// In these rounds it grows by this part of what it would.
const SLOW_PART: u64 = 4;
/// The pace over the window in a round trip: twice while it doubles, five quarters otherwise.
const PACE_START: (u64, u64) = (2, 1);
const PACE: (u64, u64) = (5, 4);

/// State of a far path besides its window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Far {
    pub(super) pacer: Pacer,
    /// One frame may go whatever the window and the pace say.
    pub(super) has_probe: bool,
    /// The window before the last cut.
    cut_at: u64,
    /// When CUBIC's curve began, its middle in milliseconds, and the window that Reno would have.
    curve: Option<(u64, i64, u64)>,
    round_ns: u64,
    acknowledged: u32,
    lost: u32,
    /// Smallest round trip of this round, and of the one before.
    least_ns: u64,
    least_before_ns: u64,
    /// When the window was cut last: what was sent before and is lost says nothing new.
    cut_ns: Option<u64>,
    /// The window before it, and how many of its losses must turn out to be none for the cut to be
    /// taken back.
    undo: Option<(u64, u32)>,
    /// Rounds of slow growth, and the smallest round trip when they began.
    slow: Option<(u8, u64)>,
}

impl Far {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            pacer: Pacer::new(),
            has_probe: false,
            cut_at: 0,
            curve: None,
            round_ns: now_ns,
            acknowledged: 0,
            lost: 0,
            least_ns: u64::MAX,
            least_before_ns: u64::MAX,
            cut_ns: None,
            undo: None,
            slow: None,
        }
    }

    /// A frame is lost that was sent then. Judged with what is acknowledged in the same round: a
    /// loss alone says nothing of how much goes well.
    pub(super) fn lost(&mut self, sent_ns: u64) {
        self.lost += u32::from(self.cut_ns.is_none_or(|cut_ns| sent_ns > cut_ns));
    }

    /// A frame that counted as lost was only late. The window to go back to, if too few are lost
    /// without it.
    pub(super) fn was_late(&mut self) -> Option<u64> {
        let (size, left) = self.undo.as_mut()?;
        *left = left.saturating_sub(1);
        let size = (*left == 0).then_some(*size)?;
        (self.undo, self.curve) = (None, None);
        Some(size)
    }

    /// The window is one frame now.
    pub(super) fn collapsed(&mut self) {
        self.curve = None;
        self.slow = None;
    }

    /// By how much the window grows for so many acknowledged frames.
    fn growth(
        &mut self,
        now_ns: u64,
        size: u64,
        frames: u64,
        round_trip: &RoundTripEstimator,
    ) -> u64 {
        let (base_ns, smooth_ns) = (round_trip.least_ns(), round_trip.smooth_ns());
        let (began_ns, middle_ms, reno) = *self.curve.get_or_insert_with(|| {
            let missing = self.cut_at.saturating_sub(size) / ONE;
            // The third root of (missing / C) seconds.
            let middle_ms = cube_root(missing * 2_500_000_000);
            self.cut_at = self.cut_at.max(size);
            (now_ns, middle_ms as i64, size)
        });
        let reno = reno + RENO * frames / (size / ONE).max(1);
        self.curve = Some((began_ns, middle_ms, reno));
        let at_ms = (now_ns.saturating_sub(began_ns) + smooth_ns) / 1_000_000;
        let from_middle_ms = (at_ms as i64)
            .saturating_sub(middle_ms)
            .clamp(-TIME_MAX_MS, TIME_MAX_MS);
        let cube = from_middle_ms.pow(3) / 1_000;
        let beyond = cube * C.0 / C.1 * (ONE as i64 / 1024) / (1_000_000 / 1024);
        let cubic = self.cut_at.saturating_add_signed(beyond);
        let clear_ns = base_ns + (base_ns / CLEAR_PART).max(CLEAR_NS);
        let clear = match self.least_before_ns.min(self.least_ns) <= clear_ns {
            true => size + size / CLEAR_GROWTH_PART,
            false => size,
        };
        let aim = cubic.max(reno).max(clear).min(size + size / GROWTH_PART);
        (aim - size) / (size / ONE).max(1) * frames
    }
}

/// The whole part of the third root.
fn cube_root(of: u64) -> u64 {
    let mut root = 0;
    for bit in (0..21).rev() {
        let higher = root | 1 << bit;
        if higher * higher * higher <= of {
            root = higher;
        }
    }
    root
}

impl Window {
    pub(super) fn acknowledged_far(
        &mut self,
        now_ns: u64,
        frames: u32,
        took_ns: u64,
        round_trip: &RoundTripEstimator,
        is_used: bool,
    ) {
        let Some(far) = &mut self.far else { return };
        far.acknowledged += frames;
        far.least_ns = far.least_ns.min(took_ns);
        let frames = u64::from(frames);
        if is_used && frames > 0 {
            self.size += match (self.size < self.start_until, far.slow) {
                (true, None) => frames * ONE,
                (true, Some(_)) => frames * ONE / SLOW_PART,
                (false, _) => far.growth(now_ns, self.size, frames, round_trip),
            };
            self.size = self.size.min(self.max);
        } else if frames > 0 {
            // The curve is one of time: time in which nothing was held up does not count.
            far.curve = None;
        }
        let (pace, part) = match self.size < self.start_until {
            true => PACE_START,
            false => PACE,
        };
        far.pacer
            .set(self.size * pace / part, ONE, round_trip.smooth_ns());
        self.end_round_far(now_ns, round_trip);
    }

    /// Judges a round that is over.
    fn end_round_far(&mut self, now_ns: u64, round_trip: &RoundTripEstimator) {
        let Some(far) = &mut self.far else { return };
        let all = far.lost + far.acknowledged;
        if all == 0 || now_ns < far.round_ns.saturating_add(round_trip.smooth_ns()) {
            return;
        }
        let base_ns = round_trip.least_ns();
        let queued_ns = base_ns + base_ns / QUEUE_PART + QUEUE_NS;
        let is_queued = far.least_ns != u64::MAX && far.least_ns > queued_ns;
        let tolerated = match is_queued {
            true => 0,
            false if self.size < self.start_until => all / START_NOISE_PART,
            false => all / NOISE_PART + (all / NOISE_ROOT_PART).isqrt(),
        };
        if far.lost > tolerated {
            far.cut_ns = Some(now_ns);
            far.undo = Some((self.size, far.lost - tolerated));
            self.start_until = 0;
            // A flow that was cut before it came back leaves room for others.
            far.cut_at = match self.size < far.cut_at {
                true => self.size * (CUT.0 + CUT.1) / (2 * CUT.1),
                false => self.size,
            };
            (far.curve, far.slow) = (None, None);
            self.size = (self.size * CUT.0 / CUT.1).max(LEAST).min(self.max);
        } else if self.size < self.start_until && far.least_ns != u64::MAX {
            match &mut far.slow {
                Some((_, began_ns)) if far.least_ns < *began_ns => far.slow = None,
                Some((rounds, _)) if *rounds == 0 => {
                    (far.slow, far.curve, self.start_until) = (None, None, 0);
                }
                Some((rounds, _)) => *rounds -= 1,
                None => {
                    let before_ns = far.least_before_ns;
                    let rise_ns = (before_ns / RISE_PART).clamp(RISE_MIN_NS, RISE_MAX_NS);
                    if before_ns != u64::MAX && far.least_ns >= before_ns + rise_ns {
                        far.slow = Some((SLOW_ROUNDS, far.least_ns));
                    }
                }
            }
        }
        if far.least_ns != u64::MAX {
            far.least_before_ns = far.least_ns;
        }
        (far.round_ns, far.least_ns) = (now_ns, u64::MAX);
        (far.acknowledged, far.lost) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
