//! When each link wants to be looked after though nothing comes: a poll looks at those that are
//! due, however many links there are, and allocates nothing.
//!
//! A tree has the least deadline of each of its halves. A link that wants something sooner than it
//! is armed for lowers its leaf. A later deadline leaves the leaf as it is: the link is looked at
//! once too early then, and armed anew.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The deadlines of all links of an endpoint.
#[derive(Default)]
pub(super) struct Timers {
    tree: Mutex<Tree>,
    /// A link has ended, or nobody has it any more.
    has_changed: AtomicBool,
}

/// When a link is looked at, at the latest: no sooner than its leaf says.
pub(super) struct Armed(AtomicU64);

impl Default for Armed {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Timers {
    /// The link at that place has set a deadline. To be called after it was set.
    #[inline]
    pub(super) fn arm(&self, place: usize, armed: &Armed, deadline_ns: u64) {
        if deadline_ns < armed.0.load(Ordering::SeqCst) {
            self.lower(place, armed, deadline_ns);
        }
    }

    #[cold]
    fn lower(&self, place: usize, armed: &Armed, deadline_ns: u64) {
        let mut tree = self.lock();
        if deadline_ns < armed.0.load(Ordering::SeqCst) {
            armed.0.store(deadline_ns, Ordering::SeqCst);
            let leaf_ns = tree.get(place).min(deadline_ns);
            tree.set(place, leaf_ns);
        }
    }

    /// A link has ended, or nobody has it any more.
    pub(super) fn note_change(&self) {
        self.has_changed.store(true, Ordering::Release);
    }

    /// Whether that happened since the last call.
    pub(super) fn take_change(&self) -> bool {
        self.has_changed.swap(false, Ordering::AcqRel)
    }

    /// For one look at all that is due.
    pub(super) fn look(&self) -> Look<'_> {
        Look(self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        // No panic of ours leaves it half done.
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Timers::look`].
pub(super) struct Look<'a>(MutexGuard<'a, Tree>);

impl Look<'_> {
    /// A link that may be due. To be followed by [`Look::disarm`] if there is one.
    pub(super) fn next_due(&mut self, now_ns: u64) -> Option<usize> {
        let place = self.0.first_until(now_ns)?;
        self.0.set(place, u64::MAX);
        Some(place)
    }

    /// From here on the link arms itself, whatever its deadline is. To be called before that is
    /// read.
    pub(super) fn disarm(&self, armed: &Armed) {
        armed.0.store(u64::MAX, Ordering::SeqCst);
    }

    /// It was not due yet.
    pub(super) fn arm_again(&mut self, place: usize, armed: &Armed, deadline_ns: u64) {
        armed.0.store(deadline_ns, Ordering::SeqCst);
        self.0.set(place, deadline_ns);
    }

    /// The next deadline.
    pub(super) fn first_ns(&self) -> u64 {
        self.0.nodes.get(1).copied().unwrap_or(u64::MAX)
    }
}

/// The least of each pair, up to the least of all at 1; the leaves are the second half.
#[derive(Default)]
struct Tree {
    nodes: Vec<u64>,
}

impl Tree {
    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    fn get(&self, place: usize) -> u64 {
        match place < self.leaves() {
            true => self.nodes[self.leaves() + place],
            false => u64::MAX,
        }
    }

    fn set(&mut self, place: usize, deadline_ns: u64) {
        if place >= self.leaves() {
            self.grow(place + 1);
        }
        let mut at = self.leaves() + place;
        self.nodes[at] = deadline_ns;
        while at > 1 {
            at /= 2;
            self.nodes[at] = self.nodes[2 * at].min(self.nodes[2 * at + 1]);
        }
    }

    #[cold]
    fn grow(&mut self, places: usize) {
        let leaves = places.next_power_of_two();
        let mut nodes = vec![u64::MAX; 2 * leaves];
        let before = self.leaves();
        nodes[leaves..leaves + before].copy_from_slice(&self.nodes[before..]);
        for at in (1..leaves).rev() {
            nodes[at] = nodes[2 * at].min(nodes[2 * at + 1]);
        }
        self.nodes = nodes;
    }

    /// The first place whose deadline has come.
    fn first_until(&self, now_ns: u64) -> Option<usize> {
        let is_due = |at: usize| self.nodes[at] <= now_ns;
        if now_ns == u64::MAX || self.nodes.is_empty() || !is_due(1) {
            return None;
        }
        let mut at = 1;
        while at < self.leaves() {
            at = match is_due(2 * at) {
                true => 2 * at,
                false => 2 * at + 1,
            };
        }
        Some(at - self.leaves())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree and a plain list say the same.
    #[test]
    fn each_deadline_is_found_when_it_has_come() {
        let mut tree = Tree::default();
        let mut list: Vec<u64> = Vec::new();
        let mut state = 7_u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (place, deadline_ns) = ((state >> 33) as usize % 300, state >> 40 & 0xfff);
            if list.len() <= place {
                list.resize(place + 1, u64::MAX);
            }
            list[place] = deadline_ns;
            tree.set(place, deadline_ns);
            let now_ns = state >> 20 & 0xfff;
            let first = list.iter().position(|at| *at <= now_ns);
            assert_eq!(tree.first_until(now_ns), first);
            assert_eq!(Some(&tree.nodes[1]), list.iter().min());
        }
    }

    #[test]
    fn a_link_is_armed_for_the_soonest_that_it_wanted() {
        let (timers, armed) = (Timers::default(), Armed::default());
        for (deadline_ns, first_ns) in [(50, 50), (70, 50), (20, 20)] {
            timers.arm(5, &armed, deadline_ns);
            assert_eq!(timers.look().first_ns(), first_ns);
        }
        let mut look = timers.look();
        assert_eq!(look.next_due(19), None);
        assert_eq!(look.next_due(20), Some(5));
        look.disarm(&armed);
        look.arm_again(5, &armed, 70);
        assert_eq!((look.next_due(69), look.first_ns()), (None, 70));
    }
}
