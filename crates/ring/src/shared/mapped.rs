//! How memory is mapped, reserved and given back.

use core::ptr::NonNull;

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap, mmap_anonymous};
use rustix::param::page_size;

use super::{Access, HUGE_PAGE_BYTES, Mapping, OutOfRange, PAGE_BYTES};

impl Mapping {
    /// Private zeroed memory, present in full: if it cannot be had, this says
    /// so, rather than a fault later. A length of 0 is legal.
    pub fn anonymous(len: usize) -> Result<Self, Errno> {
        if len == 0 {
            let base = NonNull::<[u8; PAGE_BYTES]>::dangling().cast();
            return Ok(Self {
                base,
                len,
                writable_len: 0,
                is_kept: false,
            });
        }
        let mapping = Self::private(len)?;
        // Fewer faults and translations.
        mapping.prefer_huge_pages(0, len);
        // SAFETY: the range is our new mapping; the advice changes no contents.
        match unsafe {
            madvise(
                mapping.base.as_ptr().cast(),
                len,
                Advice::LinuxPopulateWrite,
            )
        } {
            Ok(()) => {
                mapping.lock(0, len);
                Ok(mapping)
            }
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

    /// Private zeroed memory of which a page is present from its first store on. Small pages only:
    /// parts of it are to go back ([`Mapping::discard`]).
    pub(crate) fn sparse(len: usize) -> Result<Self, Errno> {
        let mapping = Self::private(len)?;
        let base = mapping.base.as_ptr().cast();
        // SAFETY: the range is our new mapping; the advice changes no contents.
        let _ = unsafe { madvise(base, len, Advice::LinuxNoHugepage) };
        Ok(mapping)
    }

    fn private(len: usize) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses the address, so nothing that exists is replaced.
        let base = unsafe {
            mmap_anonymous(
                core::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        Self::from_raw(base.cast(), len, Access::Writable)
    }

    /// The first `len` bytes of a memory file, shared with every process that maps it.
    /// [`crate::memfd::Memfd`] proves that the file cannot shrink beneath us. Forked children get
    /// the mapping, too: without it, what they do here would hit whatever takes its place.
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
        Self::from_raw(base.cast(), len, access)
    }

    /// Makes sure that all pages are present, huge ones where possible, and stay so.
    pub(crate) fn reserve(&self) -> Result<(), Errno> {
        self.prefer_huge_pages(0, self.len);
        self.populate()?;
        self.lock(0, self.len);
        Ok(())
    }

    /// Keeps a range from being paged out, as far as this process may. Where it may not, it is as
    /// before.
    pub(super) fn lock(&self, offset: usize, len: usize) {
        if let Ok(at) = self.writable(offset, len) {
            // SAFETY: the range is our mapping; its contents and addresses stay.
            let _ = unsafe { mlock(at.cast(), len) };
        }
    }

    /// Makes sure that all pages are present.
    pub(crate) fn populate(&self) -> Result<(), Errno> {
        let (at, len) = (self.base.as_ptr().cast(), self.writable_len);
        // SAFETY: the range is this mapping, which is writable; contents stay as they are.
        match unsafe { madvise(at, len, Advice::LinuxPopulateWrite) } {
            // Kernels before 5.14 do not know the advice; the copy that follows does the same.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(Errno::FAULT) => Err(Errno::NOMEM),
            Err(errno) => Err(errno),
        }
    }

    /// Makes sure that the pages of a part are present, all of them or none.
    pub(crate) fn populate_part(&self, offset: usize, len: usize) -> Result<(), Errno> {
        let at = self
            .writable(offset, len)
            .map_err(|OutOfRange| Errno::INVAL)?;
        // SAFETY: the range lies in this mapping, which is writable; contents stay as they are.
        match unsafe { madvise(at.cast(), len, Advice::LinuxPopulateWrite) } {
            Err(Errno::FAULT) => Err(Errno::NOMEM),
            other => other,
        }
    }

    /// Gives the pages of a part back: from now on they are zeros. They would only take memory, so
    /// it does not matter if that fails.
    pub(crate) fn remove(&self, offset: usize, len: usize) {
        if len > 0
            && let Ok(at) = self.writable(offset, len)
        {
            // SAFETY: the range lies in this mapping. All accesses to it are atomic, or of bytes
            // that others may change at any time, so zeros are as good as what was there.
            let _ = unsafe { madvise(at.cast(), len, Advice::LinuxRemove) };
        }
    }

    /// Gives the whole pages of a part of private memory back: from now on they are zeros. They
    /// would only take memory, so it does not matter if that fails.
    ///
    /// # Safety
    ///
    /// No reference into the part lives, and nobody stores there meanwhile.
    pub(crate) unsafe fn discard(&self, offset: usize, len: usize) {
        // The kernel rounds the length up.
        let page_bytes = page_size();
        let end = offset.saturating_add(len) / page_bytes * page_bytes;
        let begin = offset.next_multiple_of(page_bytes);
        if begin < end
            && let Ok(at) = self.writable(begin, end - begin)
        {
            // SAFETY: the range lies in this mapping; the caller vouches for the rest.
            let _ = unsafe { madvise(at.cast(), end - begin, Advice::LinuxDontNeed) };
        }
    }

    /// Has all pages mapped for reading, so that no load faults. A kernel that does not know this
    /// is no error.
    pub(crate) fn populate_for_loads(&self) {
        let (at, len) = (self.base.as_ptr().cast(), self.len);
        // SAFETY: the range is this mapping; its contents stay as they are.
        let _ = unsafe { madvise(at, len, Advice::LinuxPopulateRead) };
    }

    pub(super) fn from_raw(base: *mut u8, len: usize, access: Access) -> Result<Self, Errno> {
        let base = NonNull::new(base).ok_or(Errno::NOMEM)?;
        let writable_len = match access {
            Access::Writable => len,
            Access::ReadOnly => 0,
        };
        Ok(Self {
            base,
            len,
            writable_len,
            is_kept: false,
        })
    }

    /// Asks for huge pages where whole ones lie in the range. A kernel that declines is no error.
    pub fn prefer_huge_pages(&self, offset: usize, len: usize) {
        if len < HUGE_PAGE_BYTES {
            return;
        }
        if let Ok(at) = self.writable(offset, len) {
            // SAFETY: the range lies in the mapping; the advice changes no contents.
            let _ = unsafe { madvise(at.cast(), len, Advice::LinuxHugepage) };
        }
    }
}
