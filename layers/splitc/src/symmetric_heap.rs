//! The allocator of spread arrays. Every processor has one over the same range of places, and makes
//! the same calls in the same order, so that an array has the same place everywhere without a word
//! between processors.
//!
//! Its records lie in private memory: a program that writes past the end of an array cannot damage
//! them.

use std::collections::BTreeMap;
use std::ops::Range;

/// Arrays begin at multiples of this: a cache line, so that arrays share none.
const ALIGNMENT_BYTES: u64 = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct SymmetricHeap {
    /// Free pieces: where each begins, and its length.
    free: BTreeMap<u64, u64>,
    used: BTreeMap<u64, u64>,
}

impl SymmetricHeap {
    pub(crate) fn new(places: Range<u64>) -> Self {
        let start = places.start.next_multiple_of(ALIGNMENT_BYTES);
        let end = places.end - places.end % ALIGNMENT_BYTES;
        let length_bytes = end.saturating_sub(start);
        let free = (length_bytes > 0).then_some((start, length_bytes));
        Self {
            free: free.into_iter().collect(),
            used: BTreeMap::new(),
        }
    }

    /// The place of `length_bytes` bytes: the lowest that has room, and the highest with `is_last`.
    /// None if no piece is long enough.
    pub(crate) fn allocate(&mut self, length_bytes: u64, is_last: bool) -> Option<u64> {
        let length_bytes = length_bytes
            .max(1)
            .checked_next_multiple_of(ALIGNMENT_BYTES)?;
        let is_long_enough = |(_, length): &(&u64, &u64)| **length >= length_bytes;
        let found = match is_last {
            false => self.free.iter().find(is_long_enough),
            true => self.free.iter().rev().find(is_long_enough),
        };
        let (&start, &length) = found?;
        self.free.remove(&start);
        let rest = length - length_bytes;
        let place = if is_last { start + rest } else { start };
        if rest > 0 {
            let rest_start = if is_last { start } else { start + length_bytes };
            self.free.insert(rest_start, rest);
        }
        self.used.insert(place, length_bytes);
        Some(place)
    }

    /// Gives an array back; whether there was one at that place.
    pub(crate) fn free(&mut self, place: u64) -> bool {
        let Some(mut length) = self.used.remove(&place) else {
            return false;
        };
        let mut start = place;
        if let Some((&before, &before_length)) = self.free.range(..place).next_back()
            && before + before_length == place
        {
            self.free.remove(&before);
            start = before;
            length += before_length;
        }
        if let Some(after_length) = self.free.remove(&(start + length)) {
            length += after_length;
        }
        self.free.insert(start, length);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_freed_is_whole_again() {
        let mut heap = SymmetricHeap::new(100..100 + 64 * 10);
        let mut places: Vec<u64> = (0..4).map(|_| heap.allocate(65, false).unwrap()).collect();
        assert_eq!(places[..2], [128, 256]);
        assert_eq!(heap.allocate(65, false), None);
        let last = heap.allocate(1, true).unwrap();
        assert_eq!(last, 128 + 64 * 8);
        places.swap(0, 2);
        for place in places {
            assert!(heap.free(place));
            assert!(!heap.free(place), "freed twice");
        }
        assert!(heap.free(last));
        assert_eq!(heap.allocate(64 * 9, false), Some(128));
    }

    #[test]
    fn the_same_calls_give_the_same_places() {
        let mut heaps = [(); 2].map(|()| SymmetricHeap::new(64..1 << 20));
        let mut state = 7_u64;
        let mut places: Vec<u64> = Vec::new();
        for _ in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let choice = state >> 33;
            if choice.is_multiple_of(3) && !places.is_empty() {
                let place = places.swap_remove(choice as usize % places.len());
                assert!(heaps.iter_mut().all(|heap| heap.free(place)));
            } else {
                let [a, b] = heaps
                    .each_mut()
                    .map(|heap| heap.allocate(choice % 9000, choice.is_multiple_of(2)));
                assert_eq!(a, b);
                places.extend(a);
            }
        }
    }
}
