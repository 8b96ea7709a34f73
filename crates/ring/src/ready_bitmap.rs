//! The ready bitmap: senders mark the links that have packets (decision 0005).
//!
//! One page per receiver, which all its peers can write: a bit for each link, and a summary of 64
//! bits, one for each word of them. So a receiver learns with one load whether any link is ready,
//! and with few more which.
//!
//! Any peer may set, clear or overwrite any bit. So a bit is a hint: it can make the receiver poll
//! a link for nothing, a bounded number of times per poll, and its absence can delay the poll;
//! only the link itself decides. Nothing else may be put here.

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use crate::doorbell::MarkReady;
use crate::shared::{LINE_BYTES, Mapping, OutOfRange, PAGE_BYTES, Word};

mod ready_bits;

pub use ready_bits::{ReadyBit, ReadyBits};

/// Words of ready bits.
const WORDS: u32 = 64;
/// How many links have a ready bit. Others are found by sweeping.
pub const READY_BITS_MAX: u32 = WORDS * u64::BITS;
/// Most words looked into per call of [`ReadyBitmap::take`].
const WORDS_PER_TAKE: u32 = 8;

/// Bytes of the page.
pub const READY_BITMAP_BYTES: usize = PAGE_BYTES;

const SUMMARY_OFFSET: usize = 0;
const WORDS_OFFSET: usize = LINE_BYTES;

const _: () = assert!(WORDS_OFFSET + WORDS as usize * 8 <= READY_BITMAP_BYTES);

/// The words of the page. The summary is number 0.
pub trait BitmapMemory {
    /// Sets bits, after all earlier stores and before all later loads.
    fn set(&self, word: u32, bits: u64);
    /// Loads a word, unordered.
    fn load(&self, word: u32) -> u64;
    /// Takes all bits of a word; a full barrier follows.
    fn take(&self, word: u32) -> u64;
    /// The barrier between what was sent and the look for its ready bit.
    fn fence(&self);
}

/// The page in a mapping.
pub struct SharedBitmap {
    mapping: Arc<Mapping>,
    summary: Word,
}

impl SharedBitmap {
    /// A page of [`READY_BITMAP_BYTES`].
    pub fn new(mapping: Arc<Mapping>) -> Result<Self, OutOfRange> {
        if mapping.len() < READY_BITMAP_BYTES {
            return Err(OutOfRange);
        }
        Ok(Self {
            summary: Word::new(Arc::clone(&mapping), SUMMARY_OFFSET)?,
            mapping,
        })
    }

    fn word(&self, word: u32) -> &core::sync::atomic::AtomicU64 {
        match word.checked_sub(1) {
            None => self.summary.atomic(),
            Some(place) => {
                let at = WORDS_OFFSET + place as usize % WORDS as usize * 8;
                // In a page whose length was checked, so there is no error.
                self.mapping.atomic_u64(at).unwrap_or(self.summary.atomic())
            }
        }
    }
}

impl BitmapMemory for SharedBitmap {
    fn set(&self, word: u32, bits: u64) {
        self.word(word).fetch_or(bits, Ordering::SeqCst);
        // Where this is a load and a store, the look at the summary that follows may pass the
        // store: the summary would be seen as it was before the receiver took it, and not be set
        // for this bit.
        #[cfg(not(target_arch = "x86_64"))]
        fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn load(&self, word: u32) -> u64 {
        self.word(word).load(Ordering::Relaxed)
    }

    fn take(&self, word: u32) -> u64 {
        let taken = self.word(word).swap(0, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        taken
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

/// The sender's side.
pub struct ReadyMarker<M = SharedBitmap> {
    memory: Option<M>,
    number: u32,
}

impl<M: BitmapMemory> ReadyMarker<M> {
    /// Sets the bit of this number; none at all if there is no such bit.
    pub fn new(memory: M, number: u32) -> Self {
        Self {
            memory: (number < READY_BITS_MAX).then_some(memory),
            number,
        }
    }

    /// Sets no bit.
    pub fn none() -> Self {
        Self {
            memory: None,
            number: READY_BITS_MAX,
        }
    }
}

impl<M: BitmapMemory> MarkReady for ReadyMarker<M> {
    fn mark(&self) {
        let Some(memory) = &self.memory else {
            return;
        };
        let word = self.number / u64::BITS;
        // All peers share these lines, so they are written only if need be. A bit that is seen
        // after this barrier is taken later, and the look that follows finds what was sent before
        // it.
        memory.fence();
        // The bit first: a receiver that finds the summary finds it, too. The summary even if other
        // bits are set: their senders may not have set it yet.
        let bit = 1 << (self.number % u64::BITS);
        if memory.load(word + 1) & bit == 0 {
            memory.set(word + 1, bit);
        }
        if memory.load(0) & 1 << word == 0 {
            memory.set(0, 1 << word);
        }
    }
}

/// The receiver's side.
pub struct ReadyBitmap<M = SharedBitmap> {
    memory: M,
    /// Words of the last summary that were not looked into yet.
    words: u64,
    /// Bits of the last word that were not taken yet.
    bits: u64,
    word: u32,
}

impl<M: BitmapMemory> ReadyBitmap<M> {
    /// An unused page.
    pub fn new(memory: M) -> Self {
        Self {
            memory,
            words: 0,
            bits: 0,
            word: 0,
        }
    }

    /// Whether bits may be set. One load.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.words | self.bits | self.memory.load(0) != 0
    }

    /// Takes up to `most` bits: the numbers of links that may have something.
    #[cold]
    pub fn take(&mut self, most: u32, mut ready: impl FnMut(u32)) {
        let (mut left, mut words_left, mut summaries_left) = (most, WORDS_PER_TAKE, 1);
        while left > 0 {
            if self.bits == 0 {
                if self.words == 0 {
                    if summaries_left == 0 {
                        return;
                    }
                    summaries_left -= 1;
                    self.words = self.memory.take(0);
                }
                if self.words == 0 || words_left == 0 {
                    return;
                }
                words_left -= 1;
                self.word = self.words.trailing_zeros();
                self.words &= self.words - 1;
                self.bits = self.memory.take(self.word + 1);
            } else {
                left -= 1;
                let bit = self.bits.trailing_zeros();
                self.bits &= self.bits - 1;
                ready(self.word * u64::BITS + bit);
            }
        }
    }
}

#[cfg(test)]
mod tests;
