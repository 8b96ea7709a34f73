//! Accesses that may race with anybody's, for x86-64.
//!
//! On x86-64 they are instructions that the compiler cannot see into, of any
//! size and alignment. The language has no words for a race between accesses of
//! different sizes, the processor does: each aligned access of up to 8 bytes is
//! whole, loads are not reordered with loads nor stores with stores.

use core::arch::asm;

/// From here on 32 bytes at a time win, where the processor has such registers.
const LONG_COPY_BYTES: usize = 1024;
/// From here on the processor's own copy loop wins: it knows that it overwrites whole lines.
const STRING_COPY_BYTES: usize = 32 << 20;
/// Copies that pass by the caches begin at a line.
const LINE_BYTES: usize = super::LINE_BYTES;

/// Loads 8 bytes, before all later loads.
#[inline(always)]
pub(super) unsafe fn load_u64(from: *const u8) -> u64 {
    let value: u64;
    // SAFETY: the caller vouches for the address; one load, nothing else changes.
    unsafe {
        asm!("mov {value}, qword ptr [{from}]", from = in(reg) from, value = lateout(reg) value,
            options(nostack, preserves_flags));
    }
    value
}

/// Stores 8 bytes, after all earlier stores.
#[inline(always)]
pub(super) unsafe fn store_u64(to: *mut u8, value: u64) {
    // SAFETY: the caller vouches for the address; one store, nothing else changes.
    unsafe {
        asm!("mov qword ptr [{to}], {value}", to = in(reg) to, value = in(reg) value,
            options(nostack, preserves_flags));
    }
}

/// Loads and stores of other sizes; loads before all later loads, stores after all earlier stores.
macro_rules! access {
    ($load:ident, $store:ident, $word:ty, $class:ident, $read:literal, $write:literal) => {
        #[inline(always)]
        pub(super) unsafe fn $load(from: *const u8) -> $word {
            let value: $word;
            // SAFETY: the caller vouches for the address; one load, nothing else changes.
            unsafe {
                asm!($read, from = in(reg) from, value = lateout($class) value,
                    options(nostack, preserves_flags));
            }
            value
        }

        #[inline(always)]
        pub(super) unsafe fn $store(to: *mut u8, value: $word) {
            // SAFETY: the caller vouches for the address; one store, nothing else changes.
            unsafe {
                asm!($write, to = in(reg) to, value = in($class) value,
                    options(nostack, preserves_flags));
            }
        }
    };
}
access!(
    load_u8,
    store_u8,
    u8,
    reg_byte,
    "mov {value}, byte ptr [{from}]",
    "mov byte ptr [{to}], {value}"
);
access!(
    load_u16,
    store_u16,
    u16,
    reg,
    "mov {value:x}, word ptr [{from}]",
    "mov word ptr [{to}], {value:x}"
);
access!(
    load_u32,
    store_u32,
    u32,
    reg,
    "mov {value:e}, dword ptr [{from}]",
    "mov dword ptr [{to}], {value:e}"
);

/// Fetches a line to be stored to.
#[inline(always)]
pub(super) fn claim(line: *const u8) {
    // SAFETY: a hint, which faults at no address and changes nothing.
    unsafe {
        asm!("prefetchw byte ptr [{line}]", line = in(reg) line, options(nostack, preserves_flags));
    }
}

/// Fetches a line into the nearest cache.
#[inline(always)]
pub(super) fn prefetch(line: *const u8) {
    // SAFETY: a hint, which faults at no address and changes nothing.
    unsafe {
        asm!("prefetcht0 byte ptr [{line}]", line = in(reg) line, options(nostack, preserves_flags, readonly));
    }
}

/// A count that goes up at a steady rate; see [`super::ticks`].
#[inline(always)]
pub(super) fn ticks() -> u64 {
    // SAFETY: reads a counter of the processor, nothing else.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The same, once all loads before it are done; see [`super::ticks_after_loads`].
#[inline(always)]
pub(super) fn ticks_after_loads() -> u64 {
    // SAFETY: waits for what was begun and reads a counter of the processor, nothing else.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// Moves `$bytes` through a register.
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
move_through!(
    move_1,
    reg_byte,
    "mov {x}, byte ptr [{from}]",
    "mov byte ptr [{to}], {x}"
);
move_through!(
    move_2,
    reg,
    "mov {x:x}, word ptr [{from}]",
    "mov word ptr [{to}], {x:x}"
);
move_through!(
    move_4,
    reg,
    "mov {x:e}, dword ptr [{from}]",
    "mov dword ptr [{to}], {x:e}"
);
move_through!(
    move_8,
    reg,
    "mov {x}, qword ptr [{from}]",
    "mov qword ptr [{to}], {x}"
);
move_through!(
    move_16,
    xmm_reg,
    "movups {x}, [{from}]",
    "movups [{to}], {x}"
);

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
    // SAFETY: the caller vouches for `len` bytes at both addresses. Every
    // step stays inside: the last one of each size ends exactly at `len`.
    unsafe {
        match len {
            LONG_COPY_BYTES.. => copy_bulk(to, from, len),
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

/// Copies at least [`LONG_COPY_BYTES`].
#[inline(never)]
unsafe fn copy_bulk(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller vouches for `len` bytes at both addresses; the direction flag is clear by
    // the ABI.
    unsafe {
        if len < STRING_COPY_BYTES && has_avx() {
            copy_long(to, from, len);
        } else {
            asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }
}

#[inline]
fn has_avx() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// The loop of a long copy, which ends with a part that may overlap what was copied before.
macro_rules! copy_loop {
    ($store:literal, $to:ident, $from:ident, $len:ident) => {
        asm!(
            "2:",
            "vmovdqu ymm0, ymmword ptr [{from}]",
            "vmovdqu ymm1, ymmword ptr [{from} + 32]",
            "vmovdqu ymm2, ymmword ptr [{from} + 64]",
            "vmovdqu ymm3, ymmword ptr [{from} + 96]",
            concat!($store, " ymmword ptr [{to}], ymm0"),
            concat!($store, " ymmword ptr [{to} + 32], ymm1"),
            concat!($store, " ymmword ptr [{to} + 64], ymm2"),
            concat!($store, " ymmword ptr [{to} + 96], ymm3"),
            "add {from}, 128",
            "add {to}, 128",
            "sub {len}, 128",
            "cmp {len}, 128",
            "ja 2b",
            "vmovdqu ymm0, ymmword ptr [{from} + {len} - 128]",
            "vmovdqu ymm1, ymmword ptr [{from} + {len} - 96]",
            "vmovdqu ymm2, ymmword ptr [{from} + {len} - 64]",
            "vmovdqu ymm3, ymmword ptr [{from} + {len} - 32]",
            "vmovdqu ymmword ptr [{to} + {len} - 128], ymm0",
            "vmovdqu ymmword ptr [{to} + {len} - 96], ymm1",
            "vmovdqu ymmword ptr [{to} + {len} - 64], ymm2",
            "vmovdqu ymmword ptr [{to} + {len} - 32], ymm3",
            "vzeroupper",
            to = inout(reg) $to => _, from = inout(reg) $from => _, len = inout(reg) $len => _,
            // It clears the upper halves of all of these.
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _,
            out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack)
        )
    };
}

/// Copies at least 512 bytes.
#[target_feature(enable = "avx")]
unsafe fn copy_long(to: *mut u8, from: *const u8, len: usize) {
    debug_assert!(len >= 512);
    // SAFETY: the caller vouches for `len` bytes at both addresses. 64 bytes come first, then
    // from the next line on; more than 128 bytes are left then, so the loop runs, and its last
    // part, which ends exactly at the end, begins no earlier than the copy. The compiler is
    // told of every register whose upper half `vzeroupper` clears.
    unsafe {
        move_64(to, from);
        let skip = LINE_BYTES - to as usize % LINE_BYTES;
        let (to, from, len) = (to.add(skip), from.add(skip), len - skip);
        copy_loop!("vmovdqa", to, from, len);
    }
}

/// Copies `len` bytes past the caches, if they are many; they are there for others before
/// whatever is stored afterwards.
pub(super) unsafe fn stream(to: *mut u8, from: *const u8, len: usize) {
    if len < LONG_COPY_BYTES || !has_avx() {
        // SAFETY: the caller vouches for `len` bytes at both addresses.
        return unsafe { copy(to, from, len) };
    }
    // SAFETY: as above, and the processor has the registers.
    unsafe { stream_long(to, from, len) }
}

/// As [`copy_long`], past the caches.
#[target_feature(enable = "avx")]
unsafe fn stream_long(to: *mut u8, from: *const u8, len: usize) {
    debug_assert!(len >= 512);
    // SAFETY: as in `copy_long`. Stores past the caches are not ordered with others, hence the
    // fence.
    unsafe {
        move_64(to, from);
        let skip = LINE_BYTES - to as usize % LINE_BYTES;
        let (to, from, len) = (to.add(skip), from.add(skip), len - skip);
        copy_loop!("vmovntdq", to, from, len);
        asm!("sfence", options(nostack, preserves_flags));
    }
}

#[inline(always)]
unsafe fn move_64(to: *mut u8, from: *const u8) {
    // SAFETY: the caller vouches for 64 bytes at both addresses.
    unsafe {
        move_16(to, from);
        move_16(to.add(16), from.add(16));
        move_16(to.add(32), from.add(32));
        move_16(to.add(48), from.add(48));
    }
}

/// Fills `len` bytes.
pub(super) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
    // SAFETY: the caller vouches for `len` bytes; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") value,
            options(nostack, preserves_flags));
    }
}
