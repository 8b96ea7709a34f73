//! Memory files: made sealed, and refused if a peer's is not.
//!
//! A file that its other holders could shrink would be a fault for us at any
//! moment; so [`Memfd`] is proof that it cannot: either we made and sealed it, or
//! [`Memfd::adopt`] has asked the kernel. Only a `Memfd` can be mapped.
//!
//! A process that may write a file may also punch holes into it, unless [`Memfd::seal_ring`] has
//! forbidden both. The pages come back as zeros, which is one more hostile value, and are charged
//! to the process that touches them next.

use core::ops::Range;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, SeekFrom, fallocate, fcntl_add_seals, fcntl_get_seals,
    fstat, fstatfs, ftruncate, memfd_create, seek,
};

use crate::Errno;
use crate::geometry::Geometry;
use crate::shared::{Access, Mapping, PAGE_BYTES};

/// `TMPFS_MAGIC`: memory files of ordinary pages lie in the kernel's own tmpfs.
const ORDINARY_PAGES: u64 = 0x0102_1994;

/// The most bytes of a region, and of an area that can be shared.
pub const REGION_BYTES_MAX: u64 = 1 << 40;

/// A memory file could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemfdError {
    /// The memory itself could not be had.
    #[error("no memory for {needed_bytes} bytes: {errno}")]
    Memory {
        /// How much was to be reserved.
        needed_bytes: u64,
        /// The system's reason.
        errno: Errno,
    },
    /// Another call failed.
    #[error("{call} failed: {errno}")]
    System {
        /// Which.
        call: &'static str,
        /// The system's reason.
        errno: Errno,
    },
}

/// A file could not be mapped.
pub(crate) fn map_failed(errno: Errno) -> MemfdError {
    MemfdError::System {
        call: "mmap",
        errno,
    }
}

/// Why a peer's descriptor is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsuitable {
    /// It is not a memory file that can be sealed.
    #[error("the descriptor is not a memory file")]
    NotMemory,
    /// Its pages are huge ones: nobody vouches that there are enough of them.
    #[error("the memory file does not consist of ordinary pages")]
    Pages,
    /// A seal is missing.
    #[error("the memory file lacks seals")]
    Unsealed,
    /// It has a seal that forbids what it is for.
    #[error("the memory file cannot be written")]
    WriteSealed,
    /// Pages are missing.
    #[error("the memory file has holes")]
    Holes,
    /// Its size is not what was agreed.
    #[error("the memory file has {actual_bytes} bytes")]
    Size {
        /// Its size.
        actual_bytes: u64,
    },
}

/// A memory file that cannot shrink or grow.
#[derive(Debug)]
pub struct Memfd {
    fd: OwnedFd,
    len: usize,
}

impl Memfd {
    /// A file of `len` bytes, of which the first `reserved` are present. It can be
    /// written by everyone who is given it. `name` is shown in `/proc` only.
    pub fn create(name: &str, len: usize, reserved: usize) -> Result<Self, MemfdError> {
        let file = Self::unsealed(name, len, reserved)?;
        file.seal(SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(file)
    }

    /// A file of `len` bytes, all present, and a mapping of it through which alone it can be
    /// written: every other holder reads. Nobody can punch holes into it.
    pub(crate) fn create_for_readers(
        name: &str,
        len: usize,
    ) -> Result<(Self, Mapping), MemfdError> {
        let file = Self::unsealed(name, len, 0)?;
        let memory = |errno| MemfdError::Memory {
            needed_bytes: len as u64,
            errno,
        };
        let mapping = file.map(Access::Writable).map_err(memory)?;
        // The pages are made when they are touched first: only then can they be huge ones.
        mapping.prefer_huge_pages(0, len);
        mapping.populate().map_err(memory)?;
        file.reserve(0..len)?;
        let fixed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        file.seal(fixed | SealFlags::FUTURE_WRITE)?;
        Ok((file, mapping))
    }

    /// A file of `len` bytes, none of them present, that keeps its size and is known to nobody yet.
    /// [`Memfd::seal_shared`] is due before that changes.
    pub(crate) fn create_unshared(len: usize) -> Result<Self, MemfdError> {
        let file = Self::unsealed("hamlyn-area", len, 0)?;
        file.seal(SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(file)
    }

    /// Nobody can change the seals any more. With [`Access::ReadOnly`], nobody can write it but
    /// through mappings that there are, nor punch holes into it.
    pub(crate) fn seal_shared(&self, access: Access) -> Result<(), MemfdError> {
        let wanted = match access {
            Access::Writable => SealFlags::SEAL,
            Access::ReadOnly => SealFlags::FUTURE_WRITE | SealFlags::SEAL,
        };
        // A file of the program's own may have them, and take no others.
        match fcntl_get_seals(&self.fd) {
            Ok(seals) if seals.contains(wanted) => Ok(()),
            _ => self.seal(wanted),
        }
    }

    /// Gives pages back. They would only take memory, so it does not matter if that fails.
    pub(crate) fn punch(&self, part: Range<usize>) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.fd, flags, part.start as u64, part.len() as u64);
    }

    /// The next pages that are present, from `from` on and before `end`.
    pub(crate) fn next_present(
        &self,
        from: usize,
        end: usize,
    ) -> Result<Option<Range<usize>>, MemfdError> {
        let limit = end.min(self.len);
        let find = |from| match seek(&self.fd, from) {
            Ok(found) => Ok(Some(found as usize)),
            // There is nothing behind.
            Err(Errno::NXIO) => Ok(None),
            Err(errno) => Err(MemfdError::System {
                call: "lseek",
                errno,
            }),
        };
        if from >= limit {
            return Ok(None);
        }
        let Some(begin) = find(SeekFrom::Data(from as u64))? else {
            return Ok(None);
        };
        let end = find(SeekFrom::Hole(begin as u64))?.unwrap_or(limit);
        // Pages, and not less than one, whatever others do with the file meanwhile.
        let begin = begin.max(from) / PAGE_BYTES * PAGE_BYTES;
        let end = end.max(begin + 1).next_multiple_of(PAGE_BYTES).min(limit);
        Ok((begin < end).then_some(begin..end))
    }

    /// The memory of one direction, of which what [`Geometry::reserved`] names is present. Once its
    /// peer has mapped it, [`Memfd::seal_ring`] is due.
    pub fn create_ring(
        name: &str,
        geometry: Geometry,
        payload_max_bytes: usize,
    ) -> Result<Self, MemfdError> {
        let file = Self::unsealed(name, geometry.total_bytes(), 0)?;
        file.reserve_ring(geometry, payload_max_bytes)?;
        // The peer must not believe a file that could shrink; and must still map it.
        file.seal(SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(file)
    }

    /// From now on nobody gets another mapping through which it can be written, writes it by a
    /// descriptor, or punches holes into it. Mappings that there are stay as they are, and memory
    /// can still be reserved. What is [`Geometry::reserved`] is present, also if a holder has
    /// punched holes there before. An error if a holder has forbidden further seals.
    pub fn seal_ring(
        &self,
        geometry: Geometry,
        payload_max_bytes: usize,
    ) -> Result<(), MemfdError> {
        self.seal(SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        self.reserve_ring(geometry, payload_max_bytes)
    }

    fn reserve_ring(&self, geometry: Geometry, payload_max_bytes: usize) -> Result<(), MemfdError> {
        for part in geometry.reserved(payload_max_bytes) {
            self.reserve(part)?;
        }
        Ok(())
    }

    fn unsealed(name: &str, len: usize, reserved: usize) -> Result<Self, MemfdError> {
        let system = |call| move |errno| MemfdError::System { call, errno };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            // Kernels before 6.3 do not know the flag.
            Err(Errno::INVAL) => memfd_create(name, flags),
            other => other,
        }
        .map_err(system("memfd_create"))?;
        ftruncate(&fd, len as u64).map_err(system("ftruncate"))?;
        let file = Self { fd, len };
        if reserved > 0 {
            file.reserve(0..reserved)?;
        }
        Ok(file)
    }

    pub(crate) fn reserve(&self, part: Range<usize>) -> Result<(), MemfdError> {
        let needed_bytes = part.len() as u64;
        reserve(self.as_fd(), part.start, part.len()).map_err(|errno| MemfdError::Memory {
            needed_bytes,
            errno,
        })
    }

    fn seal(&self, seals: SealFlags) -> Result<(), MemfdError> {
        fcntl_add_seals(&self.fd, seals).map_err(|errno| MemfdError::System {
            call: "fcntl(F_ADD_SEALS)",
            errno,
        })
    }

    /// Takes a descriptor that a peer sent, if it is a file that cannot shrink or grow, can be
    /// written, and has that size. Never blocks.
    pub fn adopt(fd: OwnedFd, expected_len: usize) -> Result<Self, Unsuitable> {
        Self::check(fd.as_fd(), expected_len)?;
        Ok(Self {
            fd,
            len: expected_len,
        })
    }

    /// Whether [`Memfd::adopt`] would take it.
    pub fn check(fd: BorrowedFd<'_>, expected_len: usize) -> Result<(), Unsuitable> {
        let seals = Self::seals_of(fd)?;
        if seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
            return Err(Unsuitable::WriteSealed);
        }
        Self::check_size(fd, expected_len)
    }

    /// Takes a descriptor that a peer sent, if it is a file that cannot shrink or grow, cannot be
    /// written through this descriptor, has that size, and has all of its pages. Never blocks.
    pub(crate) fn adopt_for_reading(fd: OwnedFd, expected_len: usize) -> Result<Self, Unsuitable> {
        let seals = Self::seals_of(fd.as_fd())?;
        // These also forbid holes, whose pages would be charged to whoever reads them first.
        if !seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
            return Err(Unsuitable::Unsealed);
        }
        let file = Self::of_size(fd, expected_len)?;
        match file.is_present() {
            true => Ok(file),
            false => Err(Unsuitable::Holes),
        }
    }

    /// Takes a descriptor that a peer sent, if it is a file that cannot shrink or grow, has that
    /// size, and can be mapped for that. Pages may be missing. Never blocks.
    pub(crate) fn adopt_sparse(
        fd: OwnedFd,
        expected_len: usize,
        access: Access,
    ) -> Result<Self, Unsuitable> {
        let seals = Self::seals_of(fd.as_fd())?;
        let is_write_sealed = seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE);
        match (access, is_write_sealed) {
            (Access::Writable, true) => Err(Unsuitable::WriteSealed),
            (Access::ReadOnly, false) => Err(Unsuitable::Unsealed),
            _ => Self::of_size(fd, expected_len),
        }
    }

    fn seals_of(fd: BorrowedFd<'_>) -> Result<SealFlags, Unsuitable> {
        let seals = fcntl_get_seals(fd).map_err(|_| Unsuitable::NotMemory)?;
        match seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
            true => Ok(seals),
            false => Err(Unsuitable::Unsealed),
        }
    }

    fn of_size(fd: OwnedFd, expected_len: usize) -> Result<Self, Unsuitable> {
        Self::check_size(fd.as_fd(), expected_len)?;
        Ok(Self {
            fd,
            len: expected_len,
        })
    }

    fn check_size(fd: BorrowedFd<'_>, expected_len: usize) -> Result<(), Unsuitable> {
        let system = fstatfs(fd).map_err(|_| Unsuitable::NotMemory)?;
        if system.f_type as u64 != ORDINARY_PAGES {
            return Err(Unsuitable::Pages);
        }
        let actual_bytes = fstat(fd).map_err(|_| Unsuitable::NotMemory)?.st_size as u64;
        match actual_bytes == expected_len as u64 {
            true => Ok(()),
            false => Err(Unsuitable::Size { actual_bytes }),
        }
    }

    /// Maps all of it.
    pub fn map(&self, access: Access) -> Result<Mapping, Errno> {
        Mapping::of_file(self.fd.as_fd(), self.len, access)
    }

    /// Whether all of its pages are there and were written: pages that are only reserved count as a
    /// hole, and so an owner who reserved pages behind the end, which a truncation frees again,
    /// gains nothing.
    pub(crate) fn is_present(&self) -> bool {
        seek(&self.fd, SeekFrom::Hole(0)).is_ok_and(|hole| hole >= self.len as u64)
    }

    /// Its size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The descriptor alone.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Memfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes sure that the pages of a range are present.
pub(crate) fn reserve(fd: BorrowedFd<'_>, offset: usize, len: usize) -> Result<(), Errno> {
    loop {
        // A signal may come in between; the call then has to be repeated.
        match fallocate(fd, FallocateFlags::empty(), offset as u64, len as u64) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests;
