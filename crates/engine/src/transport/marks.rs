//! A bit for each channel.

use alloc::boxed::Box;
use alloc::vec;

/// A set of channels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Marks {
    words: Box<[u64]>,
    count: usize,
}

impl Marks {
    /// No channel of so many.
    pub(super) fn none(channels: u16) -> Self {
        Self {
            words: vec![0; usize::from(channels).div_ceil(64)].into(),
            count: 0,
        }
    }

    /// All of so many.
    pub(super) fn all(channels: u16) -> Self {
        let mut all = Self::none(channels);
        (0..channels).for_each(|channel| all.set(channel));
        all
    }

    /// How many are in it.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn contains(&self, channel: u16) -> bool {
        let word = self.words.get(usize::from(channel / 64));
        word.is_some_and(|word| word >> (channel % 64) & 1 != 0)
    }

    /// Puts one in.
    #[inline]
    pub(super) fn set(&mut self, channel: u16) {
        if let Some(word) = self.words.get_mut(usize::from(channel / 64)) {
            let bit = 1 << (channel % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Takes one out.
    #[inline]
    pub(super) fn clear(&mut self, channel: u16) {
        if let Some(word) = self.words.get_mut(usize::from(channel / 64)) {
            let bit = 1 << (channel % 64);
            self.count -= usize::from(*word & bit != 0);
            *word &= !bit;
        }
    }

    /// The first at or behind that channel.
    #[inline]
    pub(super) fn next(&self, from: u16) -> Option<u16> {
        next_of(from, self.words.len(), |at| {
            self.words.get(at).copied().unwrap_or(0)
        })
    }

    /// The first at or behind that channel in one of the two.
    pub(super) fn next_in_either(&self, other: &Self, from: u16) -> Option<u16> {
        next_of(from, self.words.len(), |at| {
            let word = |marks: &Self| marks.words.get(at).copied().unwrap_or(0);
            word(self) | word(other)
        })
    }
}

#[inline]
fn next_of(from: u16, words: usize, word: impl Fn(usize) -> u64) -> Option<u16> {
    let first = usize::from(from / 64);
    if first >= words {
        return None;
    }
    let mut found = word(first) & (u64::MAX << (from % 64));
    let mut at = first;
    while found == 0 {
        at += 1;
        if at >= words {
            return None;
        }
        found = word(at);
    }
    Some((at * 64) as u16 + found.trailing_zeros() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found_in_order() {
        let mut marks = Marks::none(200);
        assert_eq!(marks.next(0), None);
        for channel in [5, 63, 64, 199, 5] {
            marks.set(channel);
        }
        assert_eq!(marks.count(), 4);
        assert_eq!(marks.next(0), Some(5));
        assert_eq!(marks.next(6), Some(63));
        assert_eq!(marks.next(64), Some(64));
        assert_eq!(marks.next(65), Some(199));
        assert_eq!(marks.next(200), None);
        marks.clear(63);
        marks.clear(62);
        assert_eq!((marks.count(), marks.next(6)), (3, Some(64)));
        let mut other = Marks::none(200);
        other.set(7);
        assert_eq!(marks.next_in_either(&other, 6), Some(7));
        assert_eq!(Marks::all(65).count(), 65);
        // A channel that there is not.
        marks.set(60_000);
        assert!(!marks.contains(60_000));
    }
}
