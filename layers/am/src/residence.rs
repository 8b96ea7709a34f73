//! Residency (`V 3.2`, `V 4.1`): which endpoints have a frame. A pure state machine: it says what
//! is to be loaded and unloaded, and does neither.

use std::collections::VecDeque;
use std::time::Duration;

/// Time after which an endpoint that was loaded goes if others want its frame: longer than the
/// first pause of a sender whose message was refused.
const STAY_NS: u64 = 2_000_000;
/// After a load there is none for so many times what it took, so that at most a fifth of the time is
/// spent on loads.
const LOADS_PER_PAUSE: u64 = 4;
/// It goes early if nothing has come for so many times what the first message took to come.
const RESPONSES_PER_LULL: u64 = 2;

/// The frames of a node.
#[derive(Debug)]
pub(crate) struct Residence {
    frames: usize,
    /// Endpoints that are resident, in the order in which they were loaded.
    resident: VecDeque<u16>,
    /// Endpoints that wait for a frame, each once, in the order of their faults.
    faulted: VecDeque<u16>,
}

impl Residence {
    pub(crate) fn new(frames: u16) -> Self {
        Self {
            frames: usize::from(frames),
            resident: VecDeque::new(),
            faulted: VecDeque::new(),
        }
    }

    /// An endpoint is opened: true if it has a frame at once.
    pub(crate) fn open(&mut self, endpoint: u16) -> bool {
        let has_frame = self.resident.len() < self.frames && self.faulted.is_empty();
        if has_frame {
            self.resident.push_back(endpoint);
        }
        has_frame
    }

    /// An endpoint is closed.
    pub(crate) fn close(&mut self, endpoint: u16) {
        self.resident.retain(|&other| other != endpoint);
        self.faulted.retain(|&other| other != endpoint);
    }

    /// An endpoint faults. False if it waits for a frame already, or has one.
    pub(crate) fn fault(&mut self, endpoint: u16) -> bool {
        if self.faulted.contains(&endpoint) || self.resident.contains(&endpoint) {
            return false;
        }
        self.faulted.push_back(endpoint);
        true
    }

    /// True if endpoints wait for frames.
    #[inline]
    pub(crate) fn is_wanting(&self) -> bool {
        !self.faulted.is_empty()
    }

    /// The next endpoint to be loaded, and the one that goes for it, if no frame is free. The clock
    /// goes over the resident ones, and takes the first that `may_go`. Nothing if none may.
    pub(crate) fn next(
        &mut self,
        mut may_go: impl FnMut(u16) -> bool,
    ) -> Option<(u16, Option<u16>)> {
        let &loaded = self.faulted.front()?;
        let mut gone = None;
        if self.resident.len() >= self.frames {
            for _ in 0..self.resident.len() {
                let candidate = self.resident.pop_front()?;
                if may_go(candidate) {
                    gone = Some(candidate);
                    break;
                }
                self.resident.push_back(candidate);
            }
            gone?;
        }
        self.faulted.pop_front();
        self.resident.push_back(loaded);
        Some((loaded, gone))
    }
}

/// The stay of an endpoint in its frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stay {
    loaded_ns: u64,
    /// Messages taken since.
    pub(crate) taken: u32,
    /// Those at the last look, and when there were fewer.
    seen: u32,
    seen_ns: u64,
}

impl Stay {
    /// It begins.
    pub(crate) fn since(now_ns: u64) -> Self {
        Self {
            loaded_ns: now_ns,
            seen_ns: now_ns,
            ..Self::default()
        }
    }
}

/// The pace of loads: how long they take, and how long it is until messages come after one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// There is no load before that.
    due_ns: u64,
    response_ns: u64,
}

impl Pace {
    /// An endpoint was loaded, which took so long until now.
    pub(crate) fn loaded_in(&mut self, load_ns: u64, now_ns: u64) {
        let pause_ns = LOADS_PER_PAUSE.saturating_mul(load_ns).min(STAY_NS);
        self.due_ns = now_ns.saturating_add(pause_ns);
    }

    /// True if another one may be loaded.
    pub(crate) fn may_load(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// True if an endpoint may go: it has had its turn, or nothing comes for it. What it has
    /// outstanding needs no frame, as answers come to the node. So no endpoint holds its frame while
    /// it waits for another one.
    pub(crate) fn may_go(&mut self, stay: &mut Stay, visit: u32, now_ns: u64) -> bool {
        let stayed_ns = now_ns.saturating_sub(stay.loaded_ns);
        if stay.taken != stay.seen {
            if stay.seen == 0 {
                self.response_ns = stayed_ns.min(STAY_NS);
            }
            (stay.seen, stay.seen_ns) = (stay.taken, now_ns);
        }
        let lull_ns = now_ns.saturating_sub(stay.seen_ns);
        stayed_ns >= STAY_NS
            || stay.taken >= visit
            || stay.taken > 0 && lull_ns >= RESPONSES_PER_LULL * self.response_ns
    }

    /// Time after which one may be loaded, or may go, that may not yet.
    pub(crate) fn patience(&self, now_ns: u64) -> Duration {
        let lull_ns = RESPONSES_PER_LULL * self.response_ns.max(1_000);
        let pause_ns = self.due_ns.saturating_sub(now_ns);
        Duration::from_nanos(lull_ns.max(pause_ns).min(STAY_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn those_that_are_busy_stay_for_their_visit_and_idle_ones_go() {
        let mut pace = Pace::default();
        let mut stay = Stay::since(1_000);
        assert!(!pace.may_go(&mut stay, 64, 50_000), "nothing came yet");
        stay.taken = 4;
        assert!(!pace.may_go(&mut stay, 64, 101_000), "some came just now");
        assert!(!pace.may_go(&mut stay, 64, 300_000));
        assert!(
            pace.may_go(&mut stay, 64, 301_000),
            "no more for two responses"
        );
        stay.taken = 64;
        assert!(pace.may_go(&mut stay, 64, 302_000), "its visit is over");
        let mut silent = Stay::since(1_000);
        assert!(!pace.may_go(&mut silent, 64, 2_000_000));
        assert!(pace.may_go(&mut silent, 64, 2_001_000));
    }

    #[test]
    fn loads_take_a_fifth_of_the_time_at_most() {
        let mut pace = Pace::default();
        assert!(pace.may_load(0));
        pace.loaded_in(100_000, 100_000);
        assert!(!pace.may_load(499_999));
        assert!(pace.may_load(500_000));
        pace.loaded_in(u64::MAX, 500_000);
        assert!(pace.may_load(500_000 + STAY_NS), "not for ever");
    }

    #[test]
    fn those_that_may_not_go_stay() {
        let mut residence = Residence::new(2);
        assert!(residence.open(0) && residence.open(1) && !residence.open(2));
        assert!(residence.fault(2));
        assert!(!residence.fault(2), "it waits already");
        assert!(!residence.fault(1), "it is resident");
        assert_eq!(residence.next(|_| false), None);
        assert!(residence.is_wanting());
        assert_eq!(residence.next(|endpoint| endpoint == 1), Some((2, Some(1))));
        assert!(residence.fault(1));
        assert_eq!(residence.next(|_| true), Some((1, Some(0))));
        residence.close(2);
        assert!(residence.fault(0));
        assert_eq!(residence.next(|_| unreachable!()), Some((0, None)));
    }

    proptest! {
        /// Whatever faults is loaded in the end, and no more are resident than there are frames.
        #[test]
        fn everybody_has_a_turn(frames in 1_u16..5, faults in prop::collection::vec(0_u16..12, 1..80)) {
            let mut residence = Residence::new(frames);
            let mut resident: Vec<u16> = (0..12).filter(|&at| residence.open(at)).collect();
            for endpoint in faults {
                let is_new = residence.fault(endpoint);
                prop_assert_eq!(is_new, !resident.contains(&endpoint));
                while let Some((loaded, gone)) = residence.next(|_| true) {
                    resident.retain(|&other| Some(other) != gone);
                    resident.push(loaded);
                    prop_assert!(resident.len() <= usize::from(frames));
                }
                prop_assert!(resident.contains(&endpoint) && !residence.is_wanting());
            }
        }
    }
}
