//! Accesses that may race with anybody's, for 64-bit Arm.
//!
//! As on x86-64 they are instructions that the compiler cannot see into, of any size and alignment.
//! The processor keeps each aligned access of up to 8 bytes whole, and the halves of 16 bytes that
//! are aligned to 8. But it orders nothing of its own accord. So single loads acquire and single
//! stores release: `ldar` and `stlr`, which want aligned addresses, or a barrier. Copies are not
//! ordered among themselves; whoever stores a word afterwards with release orders all of a copy
//! before it.

use core::arch::asm;

/// From here on stores that pass by the caches may win.
const LONG_COPY_BYTES: usize = 1024;
/// About as many as a processor has cycles.
const TICKS_PER_SECOND: u64 = 2_500_000_000;
/// Of a timer of 1 MHz.
const TICK_FACTOR_MAX: u64 = 2_500;

/// Loads and stores of one size: loads before all later accesses, stores after all earlier ones.
/// Whole if they are aligned.
macro_rules! access {
    ($load:ident, $store:ident, $word:ty, $width:literal, $suffix:literal) => {
        #[inline(always)]
        pub(super) unsafe fn $load(from: *const u8) -> $word {
            let value: $word;
            // SAFETY: the caller vouches for the address; one load, nothing else changes. `ldar`
            // gets an aligned address.
            unsafe {
                if from.cast::<$word>().is_aligned() {
                    asm!(concat!("ldar", $suffix, " {value:", $width, "}, [{from}]"),
                        from = in(reg) from, value = lateout(reg) value, options(nostack, preserves_flags));
                } else {
                    asm!(concat!("ldr", $suffix, " {value:", $width, "}, [{from}]"), "dmb ishld",
                        from = in(reg) from, value = lateout(reg) value, options(nostack, preserves_flags));
                }
            }
            value
        }

        #[inline(always)]
        pub(super) unsafe fn $store(to: *mut u8, value: $word) {
            // SAFETY: the caller vouches for the address; one store, nothing else changes. `stlr`
            // gets an aligned address.
            unsafe {
                if to.cast::<$word>().is_aligned() {
                    asm!(concat!("stlr", $suffix, " {value:", $width, "}, [{to}]"),
                        to = in(reg) to, value = in(reg) value, options(nostack, preserves_flags));
                } else {
                    asm!("dmb ish", concat!("str", $suffix, " {value:", $width, "}, [{to}]"),
                        to = in(reg) to, value = in(reg) value, options(nostack, preserves_flags));
                }
            }
        }
    };
}
access!(load_u8, store_u8, u8, "w", "b");
access!(load_u16, store_u16, u16, "w", "h");
access!(load_u32, store_u32, u32, "w", "");
access!(load_u64, store_u64, u64, "x", "");

/// Fetches a line to be stored to.
#[inline(always)]
pub(super) fn claim(line: *const u8) {
    // SAFETY: a hint, which faults at no address and changes nothing.
    unsafe {
        asm!("prfm pstl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags));
    }
}

/// Fetches a line into the nearest cache.
#[inline(always)]
pub(super) fn prefetch(line: *const u8) {
    // SAFETY: a hint, which faults at no address and changes nothing.
    unsafe {
        asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
    }
}

/// A count that goes up at a steady rate; see [`super::ticks`]. The processor's timer may go up 25
/// million times in a second, and what is compared with ticks was found where they are two or three
/// thousand million.
#[inline(always)]
pub(super) fn ticks() -> u64 {
    let (count, frequency_hz): (u64, u64);
    // SAFETY: reads a counter and its rate, which the system lets programs read, nothing else.
    unsafe {
        asm!("mrs {count}, cntvct_el0", "mrs {rate}, cntfrq_el0", count = out(reg) count, rate = out(reg) frequency_hz,
            options(nomem, nostack, preserves_flags));
    }
    // A rate that the firmware did not set reads as 0.
    count.wrapping_mul((TICKS_PER_SECOND / frequency_hz.max(1)).clamp(1, TICK_FACTOR_MAX))
}

/// The same, once all loads before it are done; see [`super::ticks_after_loads`].
#[inline(always)]
pub(super) fn ticks_after_loads() -> u64 {
    // SAFETY: waits for what was begun, nothing else.
    unsafe {
        asm!("dsb ishld", "isb", options(nostack, preserves_flags));
    }
    ticks()
}

/// Moves a number of bytes through a register.
macro_rules! move_through {
    ($name:ident, $class:ident, $load:literal, $store:literal) => {
        #[inline(always)]
        unsafe fn $name(to: *mut u8, from: *const u8) {
            // SAFETY: the caller vouches for both ranges; a load and a store, no flags, no stack.
            unsafe {
                asm!($load, $store, to = in(reg) to, from = in(reg) from, x = out($class) _,
                    options(nostack, preserves_flags));
            }
        }
    };
}
move_through!(move_1, reg, "ldrb {x:w}, [{from}]", "strb {x:w}, [{to}]");
move_through!(move_2, reg, "ldrh {x:w}, [{from}]", "strh {x:w}, [{to}]");
move_through!(move_4, reg, "ldr {x:w}, [{from}]", "str {x:w}, [{to}]");
move_through!(move_8, reg, "ldr {x:x}, [{from}]", "str {x:x}, [{to}]");
move_through!(move_16, vreg, "ldr {x:q}, [{from}]", "str {x:q}, [{to}]");

/// Moves 64 bytes.
macro_rules! move_64 {
    ($name:ident, $store:literal) => {
        #[inline(always)]
        unsafe fn $name(to: *mut u8, from: *const u8) {
            // SAFETY: the caller vouches for 64 bytes at both addresses; loads and stores, no
            // flags, no stack.
            unsafe {
                asm!(
                    "ldp {a:q}, {b:q}, [{from}]",
                    "ldp {c:q}, {d:q}, [{from}, #32]",
                    concat!($store, " {a:q}, {b:q}, [{to}]"),
                    concat!($store, " {c:q}, {d:q}, [{to}, #32]"),
                    to = in(reg) to, from = in(reg) from,
                    a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
                    options(nostack, preserves_flags)
                );
            }
        }
    };
}
move_64!(move_64, "stp");
move_64!(move_64_past_caches, "stnp");

/// Copies `len` bytes.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for `len` bytes at both addresses.
    unsafe {
        match len {
            16 => {
                move_8(to, from);
                move_8(to.add(8), from.add(8));
            }
            8 => move_8(to, from),
            _ => copy_any(to, from, len),
        }
    }
}

#[inline(never)]
unsafe fn copy_any(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for `len` bytes at both addresses. Every step stays inside: the
    // last one of each size ends exactly at `len`.
    unsafe {
        match len {
            65.. => {
                let mut at = 0;
                while len - at > 64 {
                    move_64(to.add(at), from.add(at));
                    at += 64;
                }
                move_64(to.add(len - 64), from.add(len - 64));
            }
            33..=64 => {
                move_16(to, from);
                move_16(to.add(16), from.add(16));
                move_16(to.add(len - 32), from.add(len - 32));
                move_16(to.add(len - 16), from.add(len - 16));
            }
            17..=32 => {
                move_16(to, from);
                move_16(to.add(len - 16), from.add(len - 16));
            }
            0 => {}
            1 => move_1(to, from),
            2..=3 => {
                move_2(to, from);
                move_2(to.add(len - 2), from.add(len - 2));
            }
            4..=7 => {
                move_4(to, from);
                move_4(to.add(len - 4), from.add(len - 4));
            }
            8..=16 => {
                move_8(to, from);
                move_8(to.add(len - 8), from.add(len - 8));
            }
        }
    }
}

/// Copies `len` bytes past the caches, if they are many and the processor takes the hint; they are
/// there for others before whatever is stored afterwards.
pub(super) unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for `len` bytes at both addresses; the loop stays inside, and the
    // last part ends exactly at `len`.
    unsafe {
        if len < LONG_COPY_BYTES {
            copy(to, from, len);
        } else {
            let mut at = 0;
            while len - at > 64 {
                move_64_past_caches(to.add(at), from.add(at));
                at += 64;
            }
            move_64(to.add(len - 64), from.add(len - 64));
        }
        asm!("dmb ishst", options(nostack, preserves_flags));
    }
}

/// Fills `len` bytes.
pub(super) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    let word = u64::from_ne_bytes([value; 8]);
    let mut at = 0;
    // SAFETY: the caller vouches for `len` bytes, and both loops stay inside.
    unsafe {
        while len - at >= 16 {
            asm!("stp {word}, {word}, [{to}]", to = in(reg) to.add(at), word = in(reg) word,
                options(nostack, preserves_flags));
            at += 16;
        }
        while at < len {
            asm!("strb {value:w}, [{to}]", to = in(reg) to.add(at), value = in(reg) word,
                options(nostack, preserves_flags));
            at += 1;
        }
    }
}
