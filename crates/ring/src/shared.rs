//! Memory that somebody else may write at any moment: the only file of this
//! crate with `unsafe` in it.
//!
//! Whatever lies in a [`Mapping`] may change between any two instructions. So
//! there is never a reference into it except to atomics, and bytes are copied
//! by atomic accesses or by instructions that the compiler cannot see into.
//! The one exception are the pieces of a [`Memory`] that are in the
//! application's hands (see [`Memory::view`]).
//!
//! Refused here: any access outside the mapping, and any write to a mapping
//! that was made read-only.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::Arc;

use hamlyn_engine::memory::Denied;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::handover::{Pieces, Turn};

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

/// A range of address space, mapped as long as this lives.
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
    access: Access,
}

// SAFETY: the mapping is plain memory without affinity to a thread, and every
// access that a shared reference allows tolerates concurrent access.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Private zeroed memory, present in full: if it cannot be had, this says
    /// so, rather than a fault later. A length of 0 is legal.
    pub fn anonymous(len: usize) -> Result<Self, Errno> {
        if len == 0 {
            let base = NonNull::<[u8; PAGE_BYTES]>::dangling().cast();
            return Ok(Self {
                base,
                len,
                access: Access::Writable,
            });
        }
        // SAFETY: the kernel chooses the address, so nothing that exists is replaced.
        let base = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let mapping = Self::from_raw(base.cast(), len, Access::Writable)?;
        if len >= HUGE_PAGE_BYTES {
            // Fewer faults and translations; a kernel that declines is no error.
            // SAFETY: the range is our new mapping; the advice changes no contents.
            let _ = unsafe { madvise(base, len, Advice::LinuxHugepage) };
        }
        // SAFETY: as above.
        match unsafe { madvise(base, len, Advice::LinuxPopulateWrite) } {
            Ok(()) => Ok(mapping),
            // Kernels before 5.14 do not know the advice.
            Err(Errno::INVAL) => {
                for offset in (0..len).step_by(PAGE_BYTES) {
                    // SAFETY: offset < len, and nobody else knows the mapping yet.
                    unsafe { mapping.base.add(offset).write_volatile(0) };
                }
                Ok(mapping)
            }
            Err(Errno::FAULT) => Err(Errno::NOMEM),
            Err(errno) => Err(errno),
        }
    }

    /// The first `len` bytes of a memory file, shared with whoever else maps it.
    /// [`crate::memfd::Memfd`] proves that the file cannot shrink beneath us.
    /// Forked children do not get the mapping: they must not keep rings.
    pub(crate) fn of_file(fd: BorrowedFd<'_>, len: usize, access: Access) -> Result<Self, Errno> {
        let protection = match access {
            Access::Writable => ProtFlags::READ | ProtFlags::WRITE,
            Access::ReadOnly => ProtFlags::READ,
        };
        // SAFETY: the kernel chooses the address, so nothing that exists is replaced.
        let base = unsafe {
            mmap(
                core::ptr::null_mut(),
                len,
                protection,
                MapFlags::SHARED,
                fd,
                0,
            )
        }?;
        let mapping = Self::from_raw(base.cast(), len, access)?;
        // SAFETY: the range is our new mapping; the advice changes no contents.
        unsafe { madvise(base, len, Advice::LinuxDontFork) }?;
        Ok(mapping)
    }

    fn from_raw(base: *mut u8, len: usize, access: Access) -> Result<Self, Errno> {
        let base = NonNull::new(base).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len, access })
    }

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
        self.access == Access::Writable
    }

    #[inline]
    fn holds(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }

    #[inline]
    fn readable(&self, offset: usize, len: usize) -> Result<*const u8, OutOfRange> {
        if !self.holds(offset, len) {
            return Err(OutOfRange);
        }
        // SAFETY: offset <= len, so the address stays within the mapping or one past it.
        Ok(unsafe { self.base.as_ptr().add(offset) })
    }

    #[inline]
    fn writable(&self, offset: usize, len: usize) -> Result<*mut u8, OutOfRange> {
        if !self.is_writable() {
            return Err(OutOfRange);
        }
        self.readable(offset, len).map(<*const u8>::cast_mut)
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
    ) -> Result<(), OutOfRange> {
        let source = from.readable(from_offset, len)?;
        let target = to.writable(to_offset, len)?;
        // SAFETY: both ranges were checked.
        unsafe { raw::copy(target, source, len) };
        Ok(())
    }

    /// Stores the first `len` bytes of two words (little-endian, at most 16 bytes).
    #[inline]
    pub fn store_short(
        &self,
        offset: usize,
        words: [u64; 2],
        len: usize,
    ) -> Result<(), OutOfRange> {
        let to = self.writable(offset, len)?;
        let words = words.map(u64::to_le);
        if len == 16 {
            // SAFETY: the 16 bytes were checked.
            unsafe {
                raw::store_u64(to, words[0]);
                raw::store_u64(to.add(8), words[1]);
            }
            return Ok(());
        }
        if len > 16 {
            return Err(OutOfRange);
        }
        // SAFETY: `len` bytes of target were checked, and the words have 16.
        unsafe { raw::copy(to, words.as_ptr().cast(), len) };
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
        if self.len > 0 {
            // SAFETY: the range was mapped by us with this length, and nothing
            // borrows from it any more. There is nobody to tell of an error.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

impl core::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Mapping({} bytes, {:?})", self.len, self.access)
    }
}

/// Words per line.
pub const LINE_WORDS: usize = 8;
/// Bytes per line.
pub const LINE_BYTES: usize = 64;

#[repr(C, align(64))]
struct Line([AtomicU64; LINE_WORDS]);

/// An array of 64-byte lines in a mapping, a power of two of them. Indices are
/// masked, so every index is in range.
pub struct Lines {
    first: NonNull<Line>,
    mask: usize,
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
            mask: count - 1,
            _mapping: mapping,
        })
    }

    /// How many lines there are.
    pub fn count(&self) -> usize {
        self.mask + 1
    }

    /// The line at `index` modulo the count.
    #[inline(always)]
    pub fn line(&self, index: u64) -> &[AtomicU64; LINE_WORDS] {
        // SAFETY: the masked index is below the count, `new` has checked range,
        // alignment and writability for all of them, and the mapping lives with us.
        unsafe { &self.first.add(index as usize & self.mask).as_ref().0 }
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

/// The memory of an area: plain, or divided into pieces that are handed over.
pub(crate) struct Memory {
    mapping: Mapping,
    pieces: Option<Pieces<AtomicU32>>,
}

impl Memory {
    pub(crate) fn plain(len: usize) -> Result<Self, Errno> {
        Ok(Self {
            mapping: Mapping::anonymous(len)?,
            pieces: None,
        })
    }

    /// `count` pieces of `1 << shift` bytes, and the right to open them.
    pub(crate) fn in_pieces(count: u32, shift: u32) -> Result<(Self, Turn), Errno> {
        let len = (count as usize)
            .checked_mul(1 << shift)
            .ok_or(Errno::NOMEM)?;
        let mapping = Mapping::anonymous(len)?;
        let (pieces, turn) = Pieces::new(count, shift).ok_or(Errno::NOMEM)?;
        Ok((
            Self {
                mapping,
                pieces: Some(pieces),
            },
            turn,
        ))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.mapping.len()
    }

    #[inline]
    pub(crate) fn pieces(&self) -> Option<&Pieces<AtomicU32>> {
        self.pieces.as_ref()
    }

    /// For loads only; every store goes through [`Memory::store`].
    #[inline]
    fn for_loads(&self) -> &Mapping {
        &self.mapping
    }

    /// Carries out `store`, which may write the given range of the mapping and
    /// nothing else, unless one of its bytes is in the application's hands.
    #[inline]
    fn store(
        &self,
        offset: usize,
        len: usize,
        store: impl FnOnce(&Mapping) -> Result<(), OutOfRange>,
    ) -> Result<(), Denied> {
        match &self.pieces {
            None => store(&self.mapping).map_err(|OutOfRange| Denied::OutOfArea),
            Some(pieces) => self.store_if_open(pieces, offset, len, store),
        }
    }

    /// Apart, so that the way to plain memory stays short.
    #[inline(never)]
    fn store_if_open(
        &self,
        pieces: &Pieces<AtomicU32>,
        offset: usize,
        len: usize,
        store: impl FnOnce(&Mapping) -> Result<(), OutOfRange>,
    ) -> Result<(), Denied> {
        pieces
            .while_open(offset, len, || store(&self.mapping))?
            .map_err(|OutOfRange| Denied::OutOfArea)
    }

    #[inline]
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> Result<(), Denied> {
        self.store(offset, from.len(), |mapping| mapping.copy_in(offset, from))
    }

    #[inline]
    pub(crate) fn write_short(
        &self,
        offset: usize,
        words: [u64; 2],
        len: usize,
    ) -> Result<(), Denied> {
        self.store(offset, len, |mapping| {
            mapping.store_short(offset, words, len)
        })
    }

    pub(crate) fn fill(&self, offset: usize, len: usize, value: u8) -> Result<(), Denied> {
        self.store(offset, len, |mapping| mapping.fill(offset, len, value))
    }

    #[inline]
    pub(crate) fn store_u64(&self, offset: usize, value: u64) -> Result<(), Denied> {
        self.store(offset, 8, |mapping| mapping.store_u64(offset, value))
    }

    #[inline]
    pub(crate) fn load_u64(&self, offset: usize) -> Result<u64, Denied> {
        self.for_loads()
            .load_u64(offset)
            .map_err(|OutOfRange| Denied::OutOfArea)
    }

    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), Denied> {
        self.for_loads()
            .copy_out(offset, into)
            .map_err(|OutOfRange| Denied::OutOfArea)
    }

    /// Copies from a mapping into this memory.
    #[inline]
    pub(crate) fn write_from(
        &self,
        offset: usize,
        from: &Mapping,
        from_offset: usize,
        len: usize,
    ) -> Result<(), Denied> {
        self.store(offset, len, |mapping| {
            Mapping::copy_between(from, from_offset, mapping, offset, len)
        })
    }

    /// Copies from this memory into a mapping.
    #[inline]
    pub(crate) fn read_into(
        &self,
        offset: usize,
        into: &Mapping,
        into_offset: usize,
        len: usize,
    ) -> Result<(), Denied> {
        Mapping::copy_between(self.for_loads(), offset, into, into_offset, len)
            .map_err(|OutOfRange| Denied::OutOfArea)
    }

    /// Copies from another area's memory.
    pub(crate) fn write_from_memory(
        &self,
        offset: usize,
        from: &Memory,
        from_offset: usize,
        len: usize,
    ) -> Result<(), Denied> {
        self.write_from(offset, from.for_loads(), from_offset, len)
    }

    /// A reference to bytes in the application's hands, or nothing if any of
    /// them is open to the interface. `turn` must be the one that was made with this memory.
    #[inline]
    pub(crate) fn view<'a>(
        &'a self,
        turn: &'a Turn,
        offset: usize,
        len: usize,
    ) -> Option<&'a [u8]> {
        let from = self.mapping.readable(offset, len).ok()?;
        if !self.pieces.as_ref()?.is_held(turn, offset, len) {
            return None;
        }
        // SAFETY: the range lies in a private mapping that lives as long as
        // `self`. Nobody writes it while the reference lives: every store into
        // this memory runs inside `Pieces::while_open`, which refuses pieces
        // that are held and excludes `Pieces::complete`, the only way for an
        // open piece to become held; `is_held` has seen, with acquire, that
        // this happened. A held piece opens only by `Pieces::open`, which needs
        // `turn` mutably and so waits for the end of 'a.
        Some(unsafe { core::slice::from_raw_parts(from, len) })
    }
}

/// Accesses that may race with anybody's.
///
/// On x86-64 they are instructions that the compiler cannot see into, of any
/// size and alignment. The language has no words for a race between accesses of
/// different sizes, the processor does: each aligned access of up to 8 bytes is
/// whole, loads are not reordered with loads nor stores with stores.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod raw {
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
}

/// Elsewhere: relaxed atomics, words where both sides are aligned.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod raw {
    use core::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

    unsafe fn move_1(to: *mut u8, from: *const u8) {
        // SAFETY: the caller vouches for both bytes; loads never write.
        unsafe {
            let value = AtomicU8::from_ptr(from.cast_mut()).load(Ordering::Relaxed);
            AtomicU8::from_ptr(to).store(value, Ordering::Relaxed);
        }
    }

    /// Loads 8 bytes, before all later accesses.
    pub(super) unsafe fn load_u64(from: *const u8) -> u64 {
        // SAFETY: the caller vouches for 8 bytes. Read-only memory: a relaxed load
        // of this size is only ever a load.
        let value = unsafe {
            if from.cast::<u64>().is_aligned() {
                AtomicU64::from_ptr(from.cast_mut().cast()).load(Ordering::Relaxed)
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
                    let value = AtomicU64::from_ptr(from.add(at).cast_mut().cast());
                    let value = value.load(Ordering::Relaxed);
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

    /// Fills `len` bytes.
    pub(super) unsafe fn fill(to: *mut u8, value: u8, len: usize) {
        for at in 0..len {
            // SAFETY: the caller vouches for `len` bytes.
            unsafe { AtomicU8::from_ptr(to.add(at)).store(value, Ordering::Relaxed) };
        }
    }
}
