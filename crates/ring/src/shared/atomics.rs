//! Accesses that may race with anybody's, for other processors and for checkers that
//! know no instructions: relaxed atomics, words where both sides are aligned, else single bytes.
//!
//! A peer may access the same bytes in other sizes. The language does not define such a race;
//! processors do: each byte is one that somebody stored. That peer is another process, so the
//! compiler cannot assume that there is none.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// Loads a byte, of memory that perhaps cannot be written: hence a reference, which the language
/// allows relaxed loads of this size through, and not `from_ptr`, which demands memory that can be.
unsafe fn load_1(from: *const u8) -> u8 {
    // SAFETY: the caller vouches for the byte; a relaxed load never writes.
    unsafe { (*from.cast::<AtomicU8>()).load(Ordering::Relaxed) }
}

/// As [`load_1`], an aligned word.
unsafe fn load_8(from: *const u8) -> u64 {
    // SAFETY: the caller vouches for 8 aligned bytes; a relaxed load never writes.
    unsafe { (*from.cast::<AtomicU64>()).load(Ordering::Relaxed) }
}

unsafe fn move_1(to: *mut u8, from: *const u8) {
    // SAFETY: the caller vouches for both bytes; loads never write.
    unsafe {
        AtomicU8::from_ptr(to).store(load_1(from), Ordering::Relaxed);
    }
}

/// Loads 8 bytes, before all later accesses.
pub(super) unsafe fn load_u64(from: *const u8) -> u64 {
    // SAFETY: the caller vouches for 8 bytes.
    let value = unsafe {
        if from.cast::<u64>().is_aligned() {
            load_8(from)
        } else {
            let mut bytes = [0; 8];
            copy(bytes.as_mut_ptr(), from, 8);
            u64::from_ne_bytes(bytes)
        }
    };
    fence(Ordering::Acquire);
    value
}

/// Stores 8 bytes, after all earlier accesses.
pub(super) unsafe fn store_u64(to: *mut u8, value: u64) {
    fence(Ordering::Release);
    // SAFETY: the caller vouches for 8 bytes.
    unsafe {
        if to.cast::<u64>().is_aligned() {
            AtomicU64::from_ptr(to.cast()).store(value, Ordering::Relaxed);
        } else {
            copy(to, value.to_ne_bytes().as_ptr(), 8);
        }
    }
}

/// Loads and stores of other sizes, with the same order; whole if they are aligned.
macro_rules! access {
    ($load:ident, $store:ident, $word:ty, $atomic:ty) => {
        pub(super) unsafe fn $load(from: *const u8) -> $word {
            let mut value = <$word>::default();
            // SAFETY: the caller vouches for so many bytes; a relaxed load never writes.
            unsafe {
                if from.cast::<$word>().is_aligned() {
                    value = (*from.cast::<$atomic>()).load(Ordering::Relaxed);
                } else {
                    copy((&raw mut value).cast(), from, size_of::<$word>());
                }
            }
            fence(Ordering::Acquire);
            value
        }

        pub(super) unsafe fn $store(to: *mut u8, value: $word) {
            fence(Ordering::Release);
            // SAFETY: the caller vouches for so many bytes.
            unsafe {
                if to.cast::<$word>().is_aligned() {
                    <$atomic>::from_ptr(to.cast()).store(value, Ordering::Relaxed);
                } else {
                    copy(to, (&raw const value).cast(), size_of::<$word>());
                }
            }
        }
    };
}
access!(load_u8, store_u8, u8, AtomicU8);
access!(load_u16, store_u16, u16, AtomicU16);
access!(load_u32, store_u32, u32, AtomicU32);

/// Copies `len` bytes.
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: the caller vouches for `len` bytes at both addresses, and `at` stays below.
    unsafe {
        if to.align_offset(8) == from.align_offset(8) {
            while at < len && !to.add(at).cast::<u64>().is_aligned() {
                move_1(to.add(at), from.add(at));
                at += 1;
            }
            while len - at >= 8 {
                let value = load_8(from.add(at));
                AtomicU64::from_ptr(to.add(at).cast()).store(value, Ordering::Relaxed);
                at += 8;
            }
        }
        while at < len {
            move_1(to.add(at), from.add(at));
            at += 1;
        }
    }
}

/// Copies `len` bytes, which others see before whatever is stored afterwards with release.
pub(super) unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for `len` bytes at both addresses.
    unsafe { copy(to, from, len) };
    fence(Ordering::Release);
}

/// No count is known here.
pub(super) fn ticks() -> u64 {
    0
}

/// Nothing: a hint that need not be taken.
#[inline(always)]
pub(super) fn claim(_line: *const u8) {}

/// Nothing: a hint that need not be taken.
#[inline(always)]
pub(super) fn prefetch(_line: *const u8) {}

/// Always 0, as [`ticks`].
#[inline(always)]
pub(super) fn ticks_after_loads() -> u64 {
    0
}

/// Fills `len` bytes.
pub(super) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    for at in 0..len {
        // SAFETY: the caller vouches for `len` bytes.
        unsafe { AtomicU8::from_ptr(to.add(at)).store(value, Ordering::Relaxed) };
    }
}
