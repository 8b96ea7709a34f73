//! The event queue: entries by time; entries of one instant by their turns, and in the order in
//! which they were made.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// The turn of entries that have none.
const MIDDLE_TURN: u16 = 1 << 15;
/// Enough to count all entries of a run.
const MADE_BITS: u32 = 48;

/// The one queue of events of a world, a network or a machine.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    made: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: Time,
    /// Among the entries of its instant: a turn in the upper bits, and when it was made in the
    /// lower.
    order: u64,
    what: T,
}

impl<T> Entry<T> {
    fn key(&self) -> u128 {
        // One comparison instead of two.
        u128::from(self.at.as_ps()) << 64 | u128::from(self.order)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            made: 0,
        }
    }

    pub(crate) fn enter(&mut self, at: Time, what: T) {
        self.enter_in_turn(at, MIDDLE_TURN, what);
    }

    /// As [`EventQueue::enter`], before entries of the same instant that have a later turn.
    pub(crate) fn enter_in_turn(&mut self, at: Time, turn: u16, what: T) {
        self.made += 1;
        let order = u64::from(turn) << MADE_BITS | self.made;
        self.heap.push(Reverse(Entry { at, order, what }));
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// The earliest entry, if it is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }

    /// How many entries were ever made.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }
}
