//! Memory files that are mapped where their owner wants them, or take the place of memory that is
//! there already (exported areas, decision 0037).
//!
//! Refused: addresses that are not those of pages, and addresses at which something is mapped,
//! unless the caller vouches for what is there ([`Area::in_place_of`]).

use core::ptr::NonNull;

use rustix::fd::AsFd;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

use super::{Access, Mapping, Memory, OutOfRange, PAGE_BYTES, StoreKind};
use crate::Errno;
use crate::area::Area;
use crate::export::{EXPORTED_BYTES_MAX, ExportableError};
use crate::memfd::Memfd;

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

    /// Copies what is not zero to the same place of a file that is mapped here and has nothing in
    /// it yet, so that the file has no more pages than it needs.
    fn copy_to_empty(&self, file: &Memfd, file_mapping: &Mapping) -> Result<(), ExportableError> {
        let is_empty = |offset| {
            let mut page = NO_BYTES;
            let copied = self.copy_out(offset, &mut page);
            copied.is_ok() && page == NO_BYTES
        };
        let mut offset = 0;
        while offset < self.len {
            if is_empty(offset) {
                offset += PAGE_BYTES;
                continue;
            }
            let begin = offset;
            while offset < self.len && !is_empty(offset) {
                offset += PAGE_BYTES;
            }
            self.copy_present(begin..offset, file, file_mapping)?;
        }
        Ok(())
    }

    /// Copies a range to the same place of a file that is mapped here, for which memory is reserved
    /// first: so there is an error if there is none, and no fault.
    pub(super) fn copy_present(
        &self,
        range: core::ops::Range<usize>,
        file: &Memfd,
        file_mapping: &Mapping,
    ) -> Result<(), ExportableError> {
        file.reserve(range.clone())?;
        let copied = Self::copy_between(
            self,
            range.start,
            file_mapping,
            range.start,
            range.len(),
            StoreKind::Temporal,
        );
        copied.map_err(|OutOfRange| ExportableError::Map(Errno::INVAL))
    }
}

impl Area {
    /// Puts a memory file with the same contents into the place of memory that this process has
    /// already, for example of the static data of a program, and makes an area of it that can be
    /// exported ([`crate::export`]). The addresses stay. Pages that hold nothing but zeros take no
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
    ///   peer to which the area is exported, may write it. Accesses of C and C++ are theirs to
    ///   order.
    pub unsafe fn in_place_of(start: *mut u8, length_bytes: u64) -> Result<Self, ExportableError> {
        let len = usize::try_from(length_bytes)
            .ok()
            .filter(|len| *len > 0 && length_bytes <= EXPORTED_BYTES_MAX)
            .filter(|len| len.is_multiple_of(PAGE_BYTES))
            .ok_or(ExportableError::Length(length_bytes))?;
        let address = start as usize;
        let base = NonNull::new(start)
            .filter(|_| address.is_multiple_of(PAGE_BYTES))
            .ok_or(ExportableError::Address(address))?;
        let file = Memfd::create_exportable(len)?;
        let file_mapping = file.map(Access::Writable).map_err(ExportableError::Map)?;
        let mapping = Mapping {
            base,
            len,
            writable_len: len,
            is_kept: true,
        };
        // The caller vouches for the range, which is all that the mapping is made of.
        mapping.copy_to_empty(&file, &file_mapping)?;
        mapping
            .replace(0, len, &file)
            .map_err(ExportableError::Map)?;
        Ok(Self::of_memory(Memory::in_file(mapping, file)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::export::{ExportableError, ExportedArea, ImportedArea};

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
        let (exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
        let blocks = rustix::fs::fstat(&files.area).unwrap().st_blocks;
        // Loads through the mapping have made pages since; they were zeros.
        assert!(blocks as usize * 512 <= 64 * PAGE_BYTES);
        let imported = ImportedArea::adopt(files, length_bytes, Access::Writable).unwrap();
        let window = Arc::new(imported).direct_window(0..length_bytes).unwrap();
        window.store_u64(24, 7).unwrap();
        assert_eq!(memory.load_u64(24), Ok(7));
        memory.store_u64(32, 8).unwrap();
        assert_eq!(window.load_u64(32), Ok(8));
        // It stays when nobody has the area any more.
        drop((area, exported));
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
        let (_exported, files) = ExportedArea::export(&area, Access::Writable).unwrap();
        let blocks = rustix::fs::fstat(&files.area).unwrap().st_blocks;
        assert_eq!(blocks as usize * 512, PAGE_BYTES);
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
            let expected = ExportableError::Length(length_bytes);
            assert_eq!(refused(start, length_bytes), expected);
        }
        for start in [start.wrapping_add(8), core::ptr::null_mut()] {
            let expected = ExportableError::Address(start as usize);
            assert_eq!(refused(start, PAGE_BYTES as u64), expected);
        }
    }
}
