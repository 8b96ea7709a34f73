//! A set of channels, as a bitmap.

use alloc::vec;
use alloc::vec::Vec;

use crate::limits::CHANNELS_MAX;

const _: () = assert!(CHANNELS_MAX <= 64 * 64);

/// A set of channels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChannelSet {
    words: Vec<u64>,
    /// Which of the words are not zero.
    used: u64,
    count: usize,
}

impl ChannelSet {
    /// No channel of so many.
    pub(super) fn empty(channels: u16) -> Self {
        Self {
            words: vec![0; usize::from(channels).div_ceil(64)],
            used: 0,
            count: 0,
        }
    }

    /// All of so many.
    pub(super) fn full(channels: u16) -> Self {
        let mut all = Self::empty(channels);
        (0..channels).for_each(|channel| all.insert(channel));
        all
    }

    /// There are so many channels now, and none of the new ones is in it.
    pub(super) fn grow(&mut self, channels: u16) {
        let words = usize::from(channels).div_ceil(64);
        if words > self.words.len() {
            self.words.resize(words, 0);
        }
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
    pub(super) fn insert(&mut self, channel: u16) {
        if let Some(word) = self.words.get_mut(usize::from(channel / 64)) {
            let bit = 1 << (channel % 64);
            self.count += usize::from(*word & bit == 0);
            *word |= bit;
            self.used |= 1 << (channel / 64);
        }
    }

    /// Takes one out.
    #[inline]
    pub(super) fn remove(&mut self, channel: u16) {
        if let Some(word) = self.words.get_mut(usize::from(channel / 64)) {
            let bit = 1 << (channel % 64);
            self.count -= usize::from(*word & bit != 0);
            *word &= !bit;
            if *word == 0 {
                self.used &= !(1 << (channel / 64));
            }
        }
    }

    /// The first at or behind that channel.
    #[inline]
    pub(super) fn next(&self, from: u16) -> Option<u16> {
        next_of(from, self.used, |at| self.word(at))
    }

    /// The first at or behind that channel in one of the two.
    #[inline]
    pub(super) fn next_in_either(&self, other: &Self, from: u16) -> Option<u16> {
        next_of(from, self.used | other.used, |at| {
            self.word(at) | other.word(at)
        })
    }

    #[inline]
    fn word(&self, at: u32) -> u64 {
        self.words.get(at as usize).copied().unwrap_or(0)
    }
}

/// The first bit from there on, of words of which those in `used` are not zero.
#[inline]
fn next_of(from: u16, used: u64, word: impl Fn(u32) -> u64) -> Option<u16> {
    let first = u32::from(from / 64);
    let here = word(first) & (u64::MAX << (from % 64));
    if here != 0 {
        return Some((first * 64 + here.trailing_zeros()) as u16);
    }
    let later = u64::MAX.checked_shl(first + 1).unwrap_or(0) & used;
    let at = later.trailing_zeros();
    (later != 0).then(|| (at * 64 + word(at).trailing_zeros()) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found_in_order() {
        let mut channel_set = ChannelSet::empty(200);
        assert_eq!(channel_set.next(0), None);
        for channel in [5, 63, 64, 199, 5] {
            channel_set.insert(channel);
        }
        assert_eq!(channel_set.count(), 4);
        assert_eq!(channel_set.next(0), Some(5));
        assert_eq!(channel_set.next(6), Some(63));
        assert_eq!(channel_set.next(64), Some(64));
        assert_eq!(channel_set.next(65), Some(199));
        assert_eq!(channel_set.next(200), None);
        channel_set.remove(63);
        channel_set.remove(62);
        assert_eq!((channel_set.count(), channel_set.next(6)), (3, Some(64)));
        let mut other = ChannelSet::empty(200);
        other.insert(7);
        assert_eq!(channel_set.next_in_either(&other, 6), Some(7));
        assert_eq!(ChannelSet::full(65).count(), 65);
        channel_set.remove(199);
        assert_eq!(channel_set.next(65), None);
        let last = CHANNELS_MAX as u16 - 1;
        let mut all = ChannelSet::full(last + 1);
        assert_eq!((all.next(last), all.next(last + 1)), (Some(last), None));
        all.remove(last);
        assert_eq!(all.next(last - 64), Some(last - 64));
        assert_eq!(all.next(last), None);
        // A channel that there is not.
        channel_set.insert(60_000);
        assert!(!channel_set.contains(60_000));
    }
}
