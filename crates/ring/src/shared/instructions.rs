//! Accesses that may race with anybody's, for x86-64.
//!
//! On x86-64 they are instructions that the compiler cannot see into, of any
//! size and alignment. The language has no words for a race between accesses of
//! different sizes, the processor does: each aligned access of up to 8 bytes is
//! whole, loads are not reordered with loads nor stores with stores.

use core::arch::asm;

/// From here on the processor's own copy loop wins.
const STRING_COPY_BYTES: usize = 1024;

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
            17..STRING_COPY_BYTES => {
                let mut at = 0;
                while len - at > 64 {
                    move_16(to.add(at), from.add(at));
                    move_16(to.add(at + 16), from.add(at + 16));
                    move_16(to.add(at + 32), from.add(at + 32));
                    move_16(to.add(at + 48), from.add(at + 48));
                    at += 64;
                }
                while len - at > 16 {
                    move_16(to.add(at), from.add(at));
                    at += 16;
                }
                move_16(to.add(len - 16), from.add(len - 16));
            }
            _ => {
                asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags))
            }
        }
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
