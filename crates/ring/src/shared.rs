//! Memory that somebody else may write at any moment: the only module of this crate with `unsafe`
//! in it. Accesses to a mapping are here, how it is made in `mapped`, single words in `words`, the
//! memory of areas in `memory` and `window`, single loads and stores in `instructions` (x86-64),
//! `instructions_aarch64` or `atomics`.
//!
//! Whatever lies in a [`Mapping`] may change between any two instructions. So
//! there is never a reference into it except to atomics, and bytes are copied
//! by atomic accesses or by instructions that the compiler cannot see into.
//! The one exception are the pieces of a `Memory` that are in the
//! application's hands (see `Memory::view`).
//!
//! Refused here: any access outside the mapping, and any write to a mapping
//! that was made read-only.

mod changes;
mod direct;
pub mod forks;
mod loaned;
mod mapped;
mod memory;
mod placed;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "shared/atomics.rs"]
mod raw;
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[path = "shared/instructions_aarch64.rs"]
mod raw;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[path = "shared/instructions.rs"]
mod raw;
mod window;
mod words;

pub use direct::DirectWindow;
pub use loaned::{Chunk, Chunks, View};
pub(crate) use memory::Memory;
pub use window::Window;
pub use words::{LINE_BYTES, LINE_REST_BYTES, LINE_WORDS, Lines, ReadWord, Word};

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};

use hamlyn_engine::limits::{SHORT_BYTES_MAX, SHORT_WORDS};
use hamlyn_engine::memory::ShortSource;
use rustix::mm::munmap;

/// The unit of reservation, whatever the processor's page size.
pub const PAGE_BYTES: usize = 4096;
/// From this size on, huge pages are worth asking for.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What a mapping may be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Loads and stores.
    Writable,
    /// Loads only; the processor enforces it.
    ReadOnly,
}

/// The range is not in the mapping, is not aligned, or the mapping is read-only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the range does not lie in the mapping, or may not be used this way")]
pub struct OutOfRange;

/// Stores the first `len` bytes of data: what is a whole word of them, and is aligned, is stored
/// whole.
///
/// # Safety
///
/// So many bytes can be written there.
#[inline(always)]
unsafe fn store_short(to: *mut u8, len: usize, data: &impl ShortSource) {
    let first = || data.data_word::<0>().to_le();
    let second = || data.data_word::<1>().to_le();
    let third = || data.data_word::<2>().to_le();
    let fourth = || data.data_word::<3>().to_le();
    // SAFETY: as above; each word is stored only if all of it is part of the data.
    unsafe {
        // First, as it is the size that most protocols of the library send.
        if len == 16 {
            raw::store_u64(to, first());
            return raw::store_u64(to.add(8), second());
        }
        if len > SHORT_BYTES_MAX || data.first_bytes() < len {
            return store_long(to, len, data);
        }
        let rest = if len < 8 {
            first()
        } else {
            raw::store_u64(to, first());
            if len < 16 {
                second()
            } else {
                raw::store_u64(to.add(8), second());
                if len < 24 {
                    third()
                } else {
                    raw::store_u64(to.add(16), third());
                    if len == SHORT_BYTES_MAX {
                        return raw::store_u64(to.add(24), fourth());
                    }
                    fourth()
                }
            }
        };
        if !len.is_multiple_of(8) {
            store_rest(to.add(len / 8 * 8), rest, len % 8);
        }
    }
}

/// As [`store_short`], for data that do not lie in the first words alone.
///
/// # Safety
///
/// So many bytes can be written there.
#[inline]
unsafe fn store_long(to: *mut u8, len: usize, data: &impl ShortSource) {
    const WORD: usize = size_of::<u64>();
    // Of a packet in cells this is a constant.
    let firsts = (data.first_bytes() / WORD).min(SHORT_WORDS);
    if firsts * WORD > len {
        debug_assert!(false, "the first bytes are some of all");
        return;
    }
    // SAFETY: the caller vouches for `len` bytes, and no store goes beyond them; so many bytes are
    // in the words that more of the data lie in.
    unsafe {
        if firsts > 0 {
            raw::store_u64(to, data.data_word::<0>().to_le());
        }
        if firsts > 1 {
            raw::store_u64(to.add(WORD), data.data_word::<1>().to_le());
        }
        if firsts > 2 {
            raw::store_u64(to.add(2 * WORD), data.data_word::<2>().to_le());
        }
        if firsts > 3 {
            raw::store_u64(to.add(3 * WORD), data.data_word::<3>().to_le());
        }
        let mut at = firsts * WORD;
        let mut number = 0;
        while at < len {
            let some = (len - at).min(LINE_REST_BYTES);
            copy_continued(to.add(at), data.more(number).as_ptr().cast(), some);
            at += some;
            number += 1;
        }
    }
}

/// Copies what lies in a line after its first word.
///
/// # Safety
///
/// So many bytes can be read and written there.
#[inline(always)]
unsafe fn copy_continued(to: *mut u8, from: *const u8, len: usize) {
    const PAIR_BYTES: usize = 16;
    // SAFETY: the caller vouches for both.
    unsafe {
        if len != LINE_REST_BYTES {
            return raw::copy(to, from, len);
        }
        for pair in 0..LINE_REST_BYTES / PAIR_BYTES {
            let at = pair * PAIR_BYTES;
            raw::copy(to.add(at), from.add(at), PAIR_BYTES);
        }
        let last = LINE_REST_BYTES - 8;
        raw::copy(to.add(last), from.add(last), 8);
    }
}

/// Stores the first bytes of a word, fewer than all.
///
/// # Safety
///
/// So many bytes can be written there.
#[inline(never)]
unsafe fn store_rest(to: *mut u8, word: u64, len: usize) {
    debug_assert!(len < size_of_val(&word));
    // SAFETY: the caller vouches for the target, and the word has as many bytes.
    unsafe { raw::copy(to, (&raw const word).cast(), len) };
}

/// A range of address space, mapped as long as this lives.
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    /// As long as all of it, or 0 if it is read-only: one comparison checks both.
    writable_len: usize,
    /// It stays mapped when this is dropped, as others than we use the addresses (see `placed`).
    is_kept: bool,
}

// SAFETY: the mapping is plain memory without affinity to a thread, and every
// access that a shared reference allows tolerates concurrent access.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// How bytes are stored: through the caches, or past them where the processor can, for bytes that
/// would have left them before they are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreKind {
    /// Through the caches.
    Temporal,
    /// Past them.
    NonTemporal,
}

impl StoreKind {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            StoreKind::Temporal => StoreKind::NonTemporal,
            StoreKind::NonTemporal => StoreKind::Temporal,
        }
    }
}

impl Mapping {
    /// How many bytes may be accessed.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the mapping may be stored to.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.writable_len == self.len
    }

    #[inline]
    fn readable(&self, offset: usize, len: usize) -> Result<*const u8, OutOfRange> {
        if offset > self.len || len > self.len - offset {
            return Err(OutOfRange);
        }
        // SAFETY: offset <= len, so the address stays within the mapping or one past it.
        Ok(unsafe { self.base.as_ptr().add(offset) })
    }

    #[inline]
    fn writable(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfRange> {
        if offset > self.writable_len || len > self.writable_len - offset {
            return Err(OutOfRange);
        }
        // SAFETY: offset <= writable_len <= len, as above.
        Ok(unsafe { self.base.as_ptr().add(offset) })
    }

    /// The aligned word at `offset`.
    #[inline]
    pub fn atomic_u64(&self, offset: usize) -> Result<&AtomicU64, OutOfRange> {
        let at = self.writable(offset, 8)?.cast::<u64>();
        if !at.is_aligned() {
            return Err(OutOfRange);
        }
        // SAFETY: aligned, inside the mapping, writable, and alive as long as `self`.
        Ok(unsafe { AtomicU64::from_ptr(at) })
    }

    /// The aligned half word at `offset`.
    #[inline]
    pub fn atomic_u32(&self, offset: usize) -> Result<&AtomicU32, OutOfRange> {
        let at = self.writable(offset, 4)?.cast::<u32>();
        if !at.is_aligned() {
            return Err(OutOfRange);
        }
        // SAFETY: aligned, inside the mapping, writable, and alive as long as `self`.
        Ok(unsafe { AtomicU32::from_ptr(at) })
    }

    /// Has the lines fetched that will soon be stored to, as far as they lie in the mapping. A
    /// hint, which does nothing where it is not known how.
    #[inline]
    pub fn claim(&self, offset: usize, length_bytes: usize) {
        if let Ok(first) = self.writable(offset, length_bytes) {
            for line in (0..length_bytes).step_by(LINE_BYTES) {
                raw::claim(first.wrapping_add(line));
            }
        }
    }

    /// Copies `from` into the mapping.
    #[inline]
    pub fn copy_in(&self, offset: usize, from: &[u8]) -> Result<(), OutOfRange> {
        let to = self.writable(offset, from.len())?;
        // SAFETY: both ranges were checked or are a slice.
        unsafe { raw::copy(to, from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Copies out of the mapping.
    #[inline]
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.readable(offset, into.len())?;
        // SAFETY: both ranges were checked or are a slice.
        unsafe { raw::copy(into.as_mut_ptr(), from, into.len()) };
        Ok(())
    }

    /// Copies from one mapping to another. If the ranges overlap, which bytes
    /// are there afterwards is not defined; nothing else happens.
    #[inline]
    pub fn copy_between(
        from: &Mapping,
        from_offset: usize,
        to: &Mapping,
        to_offset: usize,
        len: usize,
        way: StoreKind,
    ) -> Result<(), OutOfRange> {
        let source = from.readable(from_offset, len)?;
        let target = to.writable(to_offset, len)?;
        // SAFETY: both ranges were checked.
        unsafe {
            match way {
                StoreKind::Temporal => raw::copy(target, source, len),
                StoreKind::NonTemporal => raw::stream(target, source, len),
            }
        }
        Ok(())
    }

    /// As [`Mapping::copy_in`], but past the caches, where the processor can.
    pub fn stream_in(&self, offset: usize, from: &[u8]) -> Result<(), OutOfRange> {
        let to = self.writable(offset, from.len())?;
        // SAFETY: both ranges were checked or are a slice.
        unsafe { raw::stream(to, from.as_ptr(), from.len()) };
        Ok(())
    }

    /// Stores the first `len` bytes of data that come word by word.
    #[inline(always)]
    pub(crate) fn store_short(
        &self,
        offset: usize,
        len: usize,
        data: &impl ShortSource,
    ) -> Result<(), OutOfRange> {
        let to = self.writable(offset, len)?;
        // SAFETY: so many bytes were checked.
        unsafe { store_short(to, len, data) };
        Ok(())
    }

    /// Fills a range with one value.
    pub fn fill(&self, offset: usize, len: usize, value: u8) -> Result<(), OutOfRange> {
        let to = self.writable(offset, len)?;
        // SAFETY: the range was checked.
        unsafe { raw::fill(to, value, len) };
        Ok(())
    }

    /// The eight bytes at `offset`, at once if they are aligned, and before
    /// whatever the caller loads afterwards. Also from read-only mappings.
    #[inline]
    pub fn load_u64(&self, offset: usize) -> Result<u64, OutOfRange> {
        let at = self.readable(offset, 8)?;
        // SAFETY: the 8 bytes were checked.
        Ok(unsafe { raw::load_u64(at) })
    }

    /// Stores eight bytes at `offset`, at once if they are aligned, and after
    /// whatever the caller stored before.
    #[inline]
    pub fn store_u64(&self, offset: usize, value: u64) -> Result<(), OutOfRange> {
        let at = self.writable(offset, 8)?;
        // SAFETY: the 8 bytes were checked.
        unsafe { raw::store_u64(at, value) };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 && !self.is_kept {
            // SAFETY: the range was mapped by us with this length, and nothing
            // borrows from it any more. There is nobody to tell of an error.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

impl core::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Mapping({} bytes, {} writable)",
            self.len, self.writable_len
        )
    }
}

/// Fetches a line that will soon be stored to, where the processor can be told so. A hint: it
/// faults at no address.
#[inline(always)]
pub(crate) fn claim(line: *const u8) {
    raw::claim(line);
}

/// Fetches a line into the nearest cache, where the processor can be told to. A hint: it faults at
/// no address.
#[inline(always)]
pub(crate) fn prefetch(line: *const u8) {
    raw::prefetch(line);
}

/// A count that goes up at a steady rate, to compare how long copies take; always 0 where the
/// processor has none. It need not agree between processors.
#[inline(always)]
pub fn ticks() -> u64 {
    raw::ticks()
}

/// As [`ticks`], once all loads before it are done: how long a load takes is the difference of two
/// of these.
#[inline]
pub fn ticks_after_loads() -> u64 {
    raw::ticks_after_loads()
}

#[cfg(test)]
mod tests;
