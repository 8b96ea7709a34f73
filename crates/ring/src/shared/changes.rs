//! Words of shared memory are changed atomically, for one-sided operations (decision 0037).
//!
//! Whoever else has the memory may change the word meanwhile, by whatever means: each change here
//! is one that the processor makes as a whole. Refused: words that are not at a multiple of their
//! width.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use hamlyn_engine::operation::{Atomic, Change, Width};

use super::{Mapping, OutOfRange};

impl Mapping {
    /// Changes the word at `offset`, and returns what it was. The change is made after all that the
    /// caller did before, and before all that it does afterwards.
    #[inline]
    pub fn change(&self, offset: usize, atomic: &Atomic) -> Result<u64, OutOfRange> {
        let at = self.writable(offset, atomic.width.bytes() as usize)?;
        full_barrier();
        let before = match atomic.width {
            Width::Bits64 => {
                let at = at.cast::<u64>();
                if !at.is_aligned() {
                    return Err(OutOfRange);
                }
                // SAFETY: eight bytes that may be written, aligned, for as long as the mapping is
                // borrowed.
                let word = unsafe { AtomicU64::from_ptr(at) };
                change_64(word, atomic)
            }
            Width::Bits32 => {
                let at = at.cast::<u32>();
                if !at.is_aligned() {
                    return Err(OutOfRange);
                }
                // SAFETY: four bytes that may be written, aligned, for as long as the mapping is
                // borrowed.
                let word = unsafe { AtomicU32::from_ptr(at) };
                change_32(word, atomic)
            }
        };
        full_barrier();
        Ok(before)
    }
}

/// What a locked instruction of x86-64 is by itself. Elsewhere an earlier store may pass a change,
/// and a later load, too, whatever order the change has.
#[inline(always)]
fn full_barrier() {
    if cfg!(any(miri, not(target_arch = "x86_64"))) {
        fence(Ordering::SeqCst);
    }
}

const ORDER: Ordering = Ordering::SeqCst;

#[inline]
fn change_64(word: &AtomicU64, atomic: &Atomic) -> u64 {
    let operand = atomic.operand;
    match atomic.change {
        Change::Add => word.fetch_add(operand, ORDER),
        Change::And => word.fetch_and(operand, ORDER),
        Change::Or => word.fetch_or(operand, ORDER),
        Change::Xor => word.fetch_xor(operand, ORDER),
        Change::Swap => word.swap(operand, ORDER),
        Change::CompareSwap => {
            match word.compare_exchange(atomic.expected, operand, ORDER, ORDER) {
                Ok(before) | Err(before) => before,
            }
        }
        Change::Min | Change::Max | Change::FloatAdd => {
            let mut before = word.load(Ordering::Relaxed);
            while let Err(found) =
                word.compare_exchange_weak(before, atomic.changed(before), ORDER, Ordering::Relaxed)
            {
                before = found;
            }
            before
        }
    }
}

#[inline]
fn change_32(word: &AtomicU32, atomic: &Atomic) -> u64 {
    let operand = atomic.operand as u32;
    let before = match atomic.change {
        Change::Add => word.fetch_add(operand, ORDER),
        Change::And => word.fetch_and(operand, ORDER),
        Change::Or => word.fetch_or(operand, ORDER),
        Change::Xor => word.fetch_xor(operand, ORDER),
        Change::Swap => word.swap(operand, ORDER),
        Change::CompareSwap => {
            match word.compare_exchange(atomic.expected as u32, operand, ORDER, ORDER) {
                Ok(before) | Err(before) => before,
            }
        }
        Change::Min | Change::Max | Change::FloatAdd => {
            let after = |before: u32| atomic.changed(u64::from(before)) as u32;
            let mut before = word.load(Ordering::Relaxed);
            while let Err(found) =
                word.compare_exchange_weak(before, after(before), ORDER, Ordering::Relaxed)
            {
                before = found;
            }
            before
        }
    };
    u64::from(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(width: Width) -> impl Iterator<Item = Atomic> {
        let numbers = [0, 1, 7, u64::MAX, 1 << 31, 1 << 63, 0x4045_0000_4045_0000];
        Change::ALL.into_iter().flat_map(move |change| {
            numbers.into_iter().flat_map(move |operand| {
                numbers.into_iter().map(move |expected| Atomic {
                    change,
                    width,
                    operand,
                    expected,
                })
            })
        })
    }

    #[test]
    fn every_change_is_what_the_engine_says_and_touches_nothing_beside_the_word() {
        let mapping = Mapping::anonymous(64).unwrap();
        let around = 0xaaaa_bbbb_cccc_dddd;
        for width in [Width::Bits32, Width::Bits64] {
            let kept = u64::MAX >> (64 - 8 * width.bytes());
            for atomic in all_of(width) {
                for before in [0_u64, 1, 5, u64::MAX, 1 << 31, 1 << 63] {
                    let word = before & kept | around & !kept;
                    mapping.store_u64(8, around).unwrap();
                    mapping.store_u64(16, word).unwrap();
                    mapping.store_u64(24, around).unwrap();
                    assert_eq!(mapping.change(16, &atomic), Ok(before & kept), "{atomic:?}");
                    let after = mapping.load_u64(16).unwrap();
                    let expected = atomic.changed(before & kept) & kept;
                    assert_eq!(after, expected | around & !kept, "{atomic:?} of {before:x}");
                    assert_eq!(mapping.load_u64(8), Ok(around));
                    assert_eq!(mapping.load_u64(24), Ok(around));
                }
            }
        }
    }

    #[test]
    fn words_that_are_not_aligned_or_not_there_are_refused() {
        let mapping = Mapping::anonymous(64).unwrap();
        for width in [Width::Bits32, Width::Bits64] {
            let atomic = Atomic::new(Change::Add, width, 1);
            let end = mapping.len();
            for offset in [1, 2, 3, 5, 6, 7, end - 3, end - 1, end, end + 8, usize::MAX] {
                assert_eq!(mapping.change(offset, &atomic), Err(OutOfRange), "{offset}");
            }
        }
    }

    #[test]
    fn additions_of_several_threads_are_all_counted() {
        let mapping = Mapping::anonymous(64).unwrap();
        let atomic = Atomic::new(Change::FloatAdd, Width::Bits64, 1_f64.to_bits());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        mapping.change(8, &atomic).unwrap();
                    }
                });
            }
        });
        assert_eq!(mapping.load_u64(8), Ok(4_000_f64.to_bits()));
    }
}
