//! The event queue: entries by time; entries of one instant in the order in which they were made.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// The one queue of events of a world, a network or a machine.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    made: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: Time,
    made: u64,
    what: T,
}

impl<T> Entry<T> {
    fn key(&self) -> u128 {
        // One comparison instead of two.
        u128::from(self.at.as_ps()) << 64 | u128::from(self.made)
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
        self.made += 1;
        let made = self.made;
        self.heap.push(Reverse(Entry { at, made, what }));
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
