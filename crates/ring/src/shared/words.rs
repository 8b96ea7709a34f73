//! Single words and lines of words in a mapping.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use hamlyn_engine::packet::short_rest;

use super::{Mapping, OutOfRange, copy_continued, raw};

/// Words per line.
pub const LINE_WORDS: usize = 8;
/// Bytes per line.
pub const LINE_BYTES: usize = 64;
/// Bytes of a line after its first word.
pub const LINE_REST_BYTES: usize = LINE_BYTES - size_of::<u64>();

#[repr(C, align(64))]
struct Line([AtomicU64; LINE_WORDS]);

/// An array of 64-byte lines in a mapping, a power of two of them. Places are
/// masked, so every place is in range.
pub struct Lines {
    first: NonNull<Line>,
    mask_bytes: usize,
    _mapping: Arc<Mapping>,
}

// SAFETY: only atomics are reached through the pointer, and the mapping is kept alive.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

impl Lines {
    /// The `count` lines from `offset` on.
    pub fn new(mapping: Arc<Mapping>, offset: usize, count: usize) -> Result<Self, OutOfRange> {
        if !count.is_power_of_two() {
            return Err(OutOfRange);
        }
        let bytes = count.checked_mul(LINE_BYTES).ok_or(OutOfRange)?;
        let first = NonNull::new(mapping.writable(offset, bytes)?.cast::<Line>());
        let first = first.filter(|first| first.is_aligned()).ok_or(OutOfRange)?;
        Ok(Self {
            first,
            mask_bytes: bytes - LINE_BYTES,
            _mapping: mapping,
        })
    }

    /// Copies bytes into the words of a line after the first, as many as fit. Of a word that they do
    /// not fill, the other bytes are zero.
    #[inline(always)]
    pub(crate) fn copy_in(&self, at_bytes: u64, bytes: &[u8]) {
        let [_, words @ ..] = self.line(at_bytes);
        if bytes.len() < LINE_REST_BYTES {
            let (whole, rest) = bytes.as_chunks();
            for (word, from) in words.iter().zip(whole) {
                word.store(u64::from_le_bytes(*from), Ordering::Relaxed);
            }
            if !rest.is_empty() {
                words[whole.len()].store(short_rest(rest), Ordering::Relaxed);
            }
            return;
        }
        let to = words.as_ptr().cast_mut().cast();
        // SAFETY: so many bytes lie in the words, which are atomics, and in the slice.
        unsafe { copy_continued(to, bytes.as_ptr(), LINE_REST_BYTES) };
    }

    /// The line that begins `at_bytes` after the first, rounded down to a line, and
    /// modulo the length of them all.
    #[inline(always)]
    pub fn line(&self, at_bytes: u64) -> &[AtomicU64; LINE_WORDS] {
        // SAFETY: the number of lines is a power of two, so what the mask leaves is the beginning
        // of one of them; `new` has checked range, alignment and writability for all of them, and
        // the mapping lives with us.
        unsafe {
            &self
                .first
                .byte_add(at_bytes as usize & self.mask_bytes)
                .as_ref()
                .0
        }
    }
}

/// One aligned word of a writable mapping.
pub struct Word {
    at: NonNull<AtomicU64>,
    _mapping: Arc<Mapping>,
}

// SAFETY: only an atomic is reached through the pointer, and the mapping is kept alive.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// The word at `offset`.
    pub fn new(mapping: Arc<Mapping>, offset: usize) -> Result<Self, OutOfRange> {
        let at = NonNull::from(mapping.atomic_u64(offset)?);
        Ok(Self {
            at,
            _mapping: mapping,
        })
    }

    /// The atomic itself.
    #[inline(always)]
    pub fn atomic(&self) -> &AtomicU64 {
        // SAFETY: `new` has checked it, and the mapping lives with us.
        unsafe { self.at.as_ref() }
    }
}

/// One aligned word of a mapping that may be read-only.
pub struct ReadWord {
    at: NonNull<u8>,
    _mapping: Arc<Mapping>,
}

// SAFETY: the word is only loaded, in a way that tolerates writers; the mapping is kept alive.
unsafe impl Send for ReadWord {}
// SAFETY: as above.
unsafe impl Sync for ReadWord {}

impl ReadWord {
    /// The word at `offset`.
    pub fn new(mapping: Arc<Mapping>, offset: usize) -> Result<Self, OutOfRange> {
        let at = NonNull::new(mapping.readable(offset, 8)?.cast_mut()).ok_or(OutOfRange)?;
        if !at.cast::<u64>().is_aligned() {
            return Err(OutOfRange);
        }
        Ok(Self {
            at,
            _mapping: mapping,
        })
    }

    /// Loads it, unordered against other memory but for what the compiler does.
    #[inline(always)]
    pub fn load(&self) -> u64 {
        // SAFETY: `new` has checked it, and the mapping lives with us.
        unsafe { raw::load_u64(self.at.as_ptr()) }
    }
}
