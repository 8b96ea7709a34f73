//! Memory that is where the program wants it: memory files at an address of its choice, files that
//! take the place of memory that is there already, and memory that the program allocated.
//!
//! Refused: addresses that are not those of pages, and addresses at which something is mapped,
//! unless the caller vouches for what is there.

use core::ops::Range;
use core::ptr::NonNull;

use rustix::fd::AsFd;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::{Access, Mapping, Memory, OutOfRange, PAGE_BYTES, StoreKind};
use crate::Errno;
use crate::area::{Area, AreaError};
use crate::memfd::{Memfd, MemfdError, REGION_BYTES_MAX, map_failed};

const NO_BYTES: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

impl Mapping {
    /// All of a file at exactly that address, where nothing may be mapped (`EXIST`).
    pub(crate) fn of_file_at(file: &Memfd, address: usize) -> Result<Self, Errno> {
        let wanted = core::ptr::with_exposed_provenance_mut::<core::ffi::c_void>(address);
        // SAFETY: the kernel replaces nothing that is mapped (`FIXED_NOREPLACE`); one before 4.17,
        // which does not know the flag, takes the address as a hint and replaces nothing either.
        let base = unsafe {
            mmap(
                wanted,
                file.len(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED_NOREPLACE,
                file.as_fd(),
                0,
            )
        }?;
        if base != wanted {
            // SAFETY: it was mapped just now, and nobody knows it.
            let _ = unsafe { munmap(base, file.len()) };
            return Err(Errno::EXIST);
        }
        Self::from_raw(base.cast(), file.len(), Access::Writable)
    }

    /// Puts the first `len` bytes of a file into the place of a range of whole pages. The addresses
    /// stay; what others store into the range meanwhile may be lost. If it fails, nothing has
    /// changed.
    pub(super) fn replace(&self, offset: usize, len: usize, file: &Memfd) -> Result<(), Errno> {
        let at = self
            .writable(offset, len)
            .map_err(|OutOfRange| Errno::INVAL)?;
        if len == 0
            || !(at as usize).is_multiple_of(PAGE_BYTES)
            || !len.is_multiple_of(PAGE_BYTES)
            || file.len() < len
        {
            return Err(Errno::INVAL);
        }
        // SAFETY: the range is whole pages of our own mapping, into which there are no references
        // (only areas in pieces give any out, and those are never exchanged), and every access
        // tolerates that bytes change. The kernel replaces the pages in one step: another thread's
        // access finds the old or the new ones. The file cannot shrink beneath us (`Memfd`).
        let mapped = unsafe {
            mmap(
                at.cast(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED,
                file.as_fd(),
                0,
            )
        };
        if let Err(errno) = mapped {
            // SAFETY: asks whether the range is mapped; changes nothing.
            if unsafe { msync(at.cast(), len, MsyncFlags::ASYNC) } == Err(Errno::NOMEM) {
                // Kernels before 6.12 may have taken the old pages away before they ran out of
                // memory for a few hundred bytes of their own. Nothing sound can be done with a
                // hole.
                std::process::abort();
            }
            return Err(errno);
        }
        Ok(())
    }

    /// Copies those pages of a range that are not zero to a file that is mapped here and has
    /// nothing in it yet.
    pub(super) fn copy_used(
        &self,
        range: Range<usize>,
        file: &Memfd,
        file_mapping: &Mapping,
    ) -> Result<(), MemfdError> {
        let is_empty = |offset| {
            let mut page = NO_BYTES;
            let copied = self.copy_out(offset, &mut page);
            copied.is_ok() && page == NO_BYTES
        };
        let mut offset = range.start;
        while offset < range.end {
            if is_empty(offset) {
                offset += PAGE_BYTES;
                continue;
            }
            let begin = offset;
            while offset < range.end && !is_empty(offset) {
                offset += PAGE_BYTES;
            }
            self.copy_present(begin..offset, range.start, file, file_mapping)?;
        }
        Ok(())
    }

    /// Copies a range to a file that is mapped here and begins where `origin` is. Memory for it is
    /// reserved first: so there is an error if there is none, and no fault.
    pub(super) fn copy_present(
        &self,
        range: Range<usize>,
        origin: usize,
        file: &Memfd,
        file_mapping: &Mapping,
    ) -> Result<(), MemfdError> {
        let (from, to, len) = (range.start, range.start - origin, range.len());
        file.reserve(to..to + len)?;
        Self::copy_between(self, from, file_mapping, to, len, StoreKind::Temporal)
            .map_err(|OutOfRange| map_failed(Errno::INVAL))
    }
}

impl Area {
    /// Puts a memory file with the same contents into the place of memory that this process has
    /// already, for example of the static data of a program, and makes an area of it that can be
    /// shared ([`crate::region`]). The addresses stay. Pages that hold nothing but zeros take no
    /// memory. When the area and its clones are dropped, the memory stays where it is.
    ///
    /// `start` and `length_bytes` are those of whole pages of 4096 bytes. If this fails, nothing
    /// has changed.
    ///
    /// # Safety
    ///
    /// * All of the range is mapped, may be read and written, and is private memory of this
    ///   process; and stays mapped until the process ends.
    /// * While this runs, no other thread and no signal handler writes the range, and the stack of
    ///   this thread is not in it. Neither are variables of this library and of the C library.
    /// * From now on the program has no Rust reference into the range while the interface, or a
    ///   peer with which the area is shared, may write it. Accesses of C and C++ are theirs to
    ///   order.
    pub unsafe fn in_place_of(start: *mut u8, length_bytes: u64) -> Result<Self, AreaError> {
        let len = usize::try_from(length_bytes)
            .ok()
            .filter(|len| *len > 0 && length_bytes <= REGION_BYTES_MAX)
            .filter(|len| len.is_multiple_of(PAGE_BYTES))
            .ok_or(AreaError::Length(length_bytes))?;
        let address = start as usize;
        let base = NonNull::new(start)
            .filter(|_| address.is_multiple_of(PAGE_BYTES))
            .ok_or(AreaError::Address(address))?;
        let file = Memfd::create_unshared(len)?;
        let file_mapping = file.map(Access::Writable).map_err(map_failed)?;
        let mapping = Mapping {
            base,
            len,
            writable_len: len,
            is_kept: true,
        };
        // The caller vouches for the range, which is all that the mapping is made of.
        mapping.copy_used(0..len, &file, &file_mapping)?;
        mapping.replace(0, len, &file).map_err(map_failed)?;
        Ok(Self::of_memory(Memory::in_file(mapping, file, true, true)))
    }

    /// An area over memory that the program allocated, and that `guard` keeps: it is dropped when
    /// nobody has the area any more, and no message can reach the memory. Such an area holds data
    /// to send, and backs slots in normal mode. It cannot be shared with other processes, nor back
    /// a paranoid slot.
    ///
    /// # Safety
    ///
    /// * `length_bytes` from `start` on are mapped, may be read and written by this pointer, and
    ///   stay so until `guard` is dropped.
    /// * As long as the area or a clone of it lives, the program has no Rust reference into the
    ///   range while the interface may access it: none at all while a slot is open over it or a
    ///   peer may operate on it, and none that is mutable while a message is sent from it. It
    ///   accesses the bytes through the area or by pointer. Accesses of C and C++ are theirs to
    ///   order.
    pub unsafe fn from_raw(
        start: NonNull<u8>,
        length_bytes: usize,
        guard: impl Send + Sync + 'static,
    ) -> Self {
        let mapping = Mapping {
            base: start,
            len: length_bytes,
            writable_len: length_bytes,
            is_kept: true,
        };
        Self::of_memory(Memory::guarded(mapping, Box::new(guard)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::region::{AttachedRegion, SharedRegion};

    #[test]
    fn memory_that_is_there_becomes_an_area_with_its_contents_and_addresses() {
        // As the static data of a program would be: mapped before, and used by address.
        let memory = core::mem::ManuallyDrop::new(Mapping::anonymous(64 * PAGE_BYTES).unwrap());
        let start = memory.base.as_ptr();
        for page in (0..64).step_by(3) {
            memory
                .store_u64(page * PAGE_BYTES + 16, page as u64 + 1)
                .unwrap();
        }
        let length_bytes = 64 * PAGE_BYTES as u64;
        // SAFETY: the mapping is private memory that stays, since it is never dropped; nobody else
        // knows it, and there are no references into it.
        let area = unsafe { Area::in_place_of(start, length_bytes) }.unwrap();
        for page in 0..64 {
            let expected = if page % 3 == 0 { page as u64 + 1 } else { 0 };
            assert_eq!(memory.load_u64(page * PAGE_BYTES + 16), Ok(expected));
        }
        let region = SharedRegion::share(&area, 0..length_bytes, Access::Writable).unwrap();
        let received = region.files().duplicate().unwrap();
        let blocks = rustix::fs::fstat(&received.memory).unwrap().st_blocks;
        // Loads through the mapping have made pages since; they were zeros.
        assert!(blocks as usize * 512 <= 64 * PAGE_BYTES);
        let attached = AttachedRegion::adopt(received, Access::Writable).unwrap();
        let window = Arc::new(attached).direct_window(0..length_bytes).unwrap();
        window.store_u64(24, 7).unwrap();
        assert_eq!(memory.load_u64(24), Ok(7));
        memory.store_u64(32, 8).unwrap();
        assert_eq!(window.load_u64(32), Ok(8));
        // It stays when nobody has the area any more.
        drop((area, region));
        assert_eq!(memory.load_u64(24), Ok(7));
        memory.store_u64(24, 9).unwrap();
        assert_eq!(memory.load_u64(24), Ok(9));
    }

    #[test]
    fn pages_of_zeros_take_no_memory() {
        let memory = core::mem::ManuallyDrop::new(Mapping::anonymous(64 * PAGE_BYTES).unwrap());
        memory.store_u64(5 * PAGE_BYTES, 1).unwrap();
        // SAFETY: as above.
        let area =
            unsafe { Area::in_place_of(memory.base.as_ptr(), 64 * PAGE_BYTES as u64) }.unwrap();
        let blocks = area.memory().file_blocks();
        assert_eq!(blocks, PAGE_BYTES);
    }

    #[test]
    fn memory_of_the_program_holds_data_until_nobody_has_the_area() {
        use hamlyn_engine::memory::{Area as _, Denied};

        use crate::region::ShareError;

        struct Guard(Arc<core::sync::atomic::AtomicBool>, *mut [u64]);
        // SAFETY: the memory has no affinity to a thread.
        unsafe impl Send for Guard {}
        // SAFETY: the guard gives nobody access.
        unsafe impl Sync for Guard {}
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.store(true, core::sync::atomic::Ordering::Relaxed);
                // SAFETY: it is the box that was turned into this, and nobody uses it any more.
                drop(unsafe { Box::from_raw(self.1) });
            }
        }
        let freed = Arc::new(core::sync::atomic::AtomicBool::new(false));
        let is_freed = || freed.load(core::sync::atomic::Ordering::Relaxed);
        let memory = Box::into_raw(vec![7_u64; 512].into_boxed_slice());
        let guard = Guard(Arc::clone(&freed), memory);
        let start = NonNull::new(memory.cast::<u8>()).unwrap();
        // SAFETY: the guard keeps the box, and there are no references into it.
        let area = unsafe { Area::from_raw(start, 4096, guard) };
        let other = area.clone();
        assert_eq!((area.length_bytes(), area.load_u64(8)), (4096, Ok(7)));
        other.write_at(10, b"bytes").unwrap();
        let mut read = [0; 5];
        area.read_at(10, &mut read).unwrap();
        assert_eq!(&read, b"bytes");
        area.direct_window(0..16).unwrap().store_u64(0, 9).unwrap();
        // SAFETY: the box lives, and nobody writes it meanwhile.
        assert_eq!(unsafe { start.cast::<u64>().read() }, 9);
        assert_eq!(area.write_at(4092, b"bytes"), Err(Denied::OutOfArea));
        // Neither for others, nor for a slot whose places are its owner's own.
        assert!(!area.is_private());
        let refused = SharedRegion::share(&area, 0..4096, Access::Writable);
        assert_eq!(refused.unwrap_err(), ShareError::NotSharable);
        let window = area.window(0, 64);
        drop((area, other));
        assert!(!is_freed(), "the window keeps it");
        drop(window);
        assert!(is_freed());
    }

    #[test]
    fn ranges_that_are_no_pages_are_refused() {
        let memory = Mapping::anonymous(4 * PAGE_BYTES).unwrap();
        let start = memory.base.as_ptr();
        let refused = |start, length_bytes| {
            // SAFETY: they are refused before anything is touched.
            unsafe { Area::in_place_of(start, length_bytes) }.unwrap_err()
        };
        for length_bytes in [0, 1, PAGE_BYTES as u64 + 8, u64::MAX, 1 << 50] {
            let expected = AreaError::Length(length_bytes);
            assert_eq!(refused(start, length_bytes), expected);
        }
        for start in [start.wrapping_add(8), core::ptr::null_mut()] {
            let expected = AreaError::Address(start as usize);
            assert_eq!(refused(start, PAGE_BYTES as u64), expected);
        }
    }
}
