//! Residency (`V 3.2`, `V 4.1`): which endpoints have a frame. A pure state machine: it says what
//! is to be loaded and unloaded, and does neither.

use std::collections::VecDeque;

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
