//! Regions: ranges of an area that others map.
//!
//! A memory file shows all of its pages to every process that has it, for ever. So a region that is
//! all of an area is shared by the area's own file, and for a part of it the pages are exchanged
//! for a file that holds nothing else. When the region is taken back, a fresh file that nobody else
//! knows takes its place. The addresses stay the same throughout.
//!
//! A second file of one page goes with it, which only the owner can write. Its first word says
//! whether the region lasts, so that holders stop using it. Holders cannot change what others read
//! there.
//!
//! Refused: areas that were not made with [`Area::shared`] or [`Area::from_file`], handover areas
//! among them; ranges that are not whole pages; and pages that are shared already.
//!
//! Pages that a holder touches first, and holes that it punches into a writable region, are memory
//! that nobody has reserved. A machine without memory for them ends a process, as it does for
//! memory of the process itself.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use hamlyn_engine::memory::Denied;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::Errno;
use crate::area::Area;
use crate::forks::Birth;
pub use crate::memfd::REGION_BYTES_MAX;
use crate::memfd::{Memfd, MemfdError, Unsuitable};
use crate::shared::{
    Access, DirectWindow, Mapping, Memory, OutOfRange, PAGE_BYTES, ReadWord, StoreKind,
};
use crate::streaming::StreamingHeuristic;

/// Regions that are not longer, and present in full, are mapped in advance.
const POPULATED_BYTES_MAX: usize = 1 << 32;

const LASTS: u64 = 1;
const ENDED: u64 = 0;

/// A region was not shared or not taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The area was not made to be shared.
    #[error("the area was not made to be shared: allocate it with Area::shared")]
    NotSharable,
    /// The range is not made of whole pages of the area.
    #[error(
        "the range from {start} to {end} is not made of whole pages of {PAGE_BYTES} bytes of the area"
    )]
    NotPages {
        /// Its first byte in the area.
        start: u64,
        /// The byte behind its last.
        end: u64,
    },
    /// A part of it is shared already, perhaps by way of another slot or interface.
    #[error("a part of these pages is shared already: revoke that region first")]
    SharedAlready,
    /// A file could not be had, sealed or mapped. The contents of the area have not changed.
    #[error(transparent)]
    Memory(#[from] MemfdError),
}

/// The files of a region, held ready for others.
#[derive(Debug)]
pub struct RegionFiles {
    memory: MemoryFile,
    state: OwnedFd,
    length_bytes: u64,
}

#[derive(Debug)]
enum MemoryFile {
    /// This process made it, and uses it as well.
    Own(Arc<Memfd>),
    Received(OwnedFd),
}

impl From<ReceivedRegion> for RegionFiles {
    fn from(received: ReceivedRegion) -> Self {
        Self {
            memory: MemoryFile::Received(received.memory),
            state: received.state,
            length_bytes: received.length_bytes,
        }
    }
}

impl RegionFiles {
    pub(crate) fn new(memory: Arc<Memfd>, state: Memfd) -> Self {
        Self {
            length_bytes: memory.len() as u64,
            memory: MemoryFile::Own(memory),
            state: state.into_fd(),
        }
    }

    /// The memory, and the page that says whether the region lasts.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        let memory = match &self.memory {
            MemoryFile::Own(file) => file.as_fd(),
            MemoryFile::Received(file) => file.as_fd(),
        };
        [memory, self.state.as_fd()]
    }

    /// The files as a holder of the same process has them.
    pub fn duplicate(&self) -> std::io::Result<ReceivedRegion> {
        let [memory, state] = self.descriptors();
        Ok(ReceivedRegion {
            memory: memory.try_clone_to_owned()?,
            state: state.try_clone_to_owned()?,
            length_bytes: self.length_bytes(),
        })
    }

    /// Bytes of the region.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }
}

/// The word that tells holders whether a region lasts. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct LastingWord {
    page: Mapping,
    birth: Birth,
}

impl LastingWord {
    /// The word, and the file in which others read it.
    pub(crate) fn new() -> Result<(Self, Memfd), MemfdError> {
        let (file, page) = Memfd::create_for_readers("hamlyn-region", PAGE_BYTES)?;
        let birth = Birth::here();
        let word = Self { page, birth };
        word.say(LASTS);
        Ok((word, file))
    }

    pub(crate) fn end(&self) {
        self.say(ENDED);
    }

    fn say(&self, word: u64) {
        let said = self.page.store_u64(0, word);
        debug_assert!(said.is_ok(), "the page has a word");
    }
}

impl Drop for LastingWord {
    fn drop(&mut self) {
        // A forked child ends nothing.
        if self.birth.is_here() {
            self.end();
        }
    }
}

/// A region in its owner's hands. Dropping this takes it back, if anybody still has the area and
/// there is memory for that.
pub struct SharedRegion {
    memory: Arc<Memory>,
    range: Range<usize>,
    file: Arc<Memfd>,
    files: Arc<RegionFiles>,
    word: LastingWord,
    is_out: bool,
}

impl SharedRegion {
    /// Shares a range of an area. For a part of an area, its pages are copied and exchanged; bytes
    /// that are stored there meanwhile may be lost. With [`Access::ReadOnly`] the kernel lets
    /// nobody but the owner write the memory.
    pub fn share(area: &Area, range: Range<u64>, access: Access) -> Result<Self, ShareError> {
        let memory = area.memory();
        let range = pages(&range, memory.len())?;
        let (word, state) = LastingWord::new()?;
        let file = memory.share(range.clone(), access)?;
        Ok(Self {
            memory: Arc::clone(memory),
            range,
            files: Arc::new(RegionFiles::new(Arc::clone(&file), state)),
            file,
            word,
            is_out: true,
        })
    }

    /// The files that holders are given.
    pub fn files(&self) -> &Arc<RegionFiles> {
        &self.files
    }

    /// Tells holders that the region has ended, if they look.
    pub fn mark_ended(&self) {
        self.word.end();
    }

    /// Puts fresh pages with the same contents into the place of the shared ones. When this
    /// returns, nothing that a holder does changes the area any more. Bytes that are stored
    /// meanwhile may be lost. May be called again if there was no memory for it.
    pub fn take_back(&mut self) -> Result<(), ShareError> {
        if self.is_out {
            self.mark_ended();
            self.memory.take_back(&self.range, &self.file)?;
            self.is_out = false;
        }
        Ok(())
    }

    /// Bytes of the region.
    pub fn length_bytes(&self) -> u64 {
        self.range.len() as u64
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        if self.word.birth.is_here() && Arc::strong_count(&self.memory) > 1 {
            // An owner that must know whether it succeeded has called it before.
            let _ = self.take_back();
        }
    }
}

impl core::fmt::Debug for SharedRegion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SharedRegion({:?})", self.range)
    }
}

fn pages(range: &Range<u64>, area_bytes: usize) -> Result<Range<usize>, ShareError> {
    let page = PAGE_BYTES as u64;
    let whole = range.start.is_multiple_of(page) && range.end.is_multiple_of(page);
    if !whole || range.start >= range.end || range.end > area_bytes as u64 {
        return Err(ShareError::NotPages {
            start: range.start,
            end: range.end,
        });
    }
    Ok(range.start as usize..range.end as usize)
}

/// The files of a region as they came from its owner. Nothing is known of them yet.
#[derive(Debug)]
pub struct ReceivedRegion {
    /// The memory.
    pub memory: OwnedFd,
    /// The page that says whether the region lasts.
    pub state: OwnedFd,
    /// Bytes of the memory, as the owner says.
    pub length_bytes: u64,
}

/// The files of a region cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdoptError {
    /// The length is impossible.
    #[error("{0} bytes are no region: it has whole pages, at most {REGION_BYTES_MAX} bytes")]
    Length(u64),
    /// A file is not what it must be.
    #[error("the owner of the region sent an unsuitable file: {0}")]
    Unsuitable(#[from] Unsuitable),
    /// A file could not be mapped.
    #[error("the region could not be mapped: {0}")]
    Map(Errno),
}

/// A region of another process, mapped here.
pub struct AttachedRegion {
    mapping: Mapping,
    state: ReadWord,
    is_detached: AtomicBool,
}

impl AttachedRegion {
    /// Maps a region for that access, if the kernel confirms seals and length. Pages may be
    /// missing.
    pub fn adopt(received: ReceivedRegion, access: Access) -> Result<Self, AdoptError> {
        Self::adopt_if(received, access, |fd, len| {
            Memfd::adopt_sparse(fd, len, access)
        })
    }

    /// Maps a region for reading, if the kernel also confirms that all pages are there and that
    /// nobody can take one away: no load of it costs this process memory.
    pub(crate) fn adopt_present(received: ReceivedRegion) -> Result<Self, AdoptError> {
        Self::adopt_if(received, Access::ReadOnly, Memfd::adopt_for_reading)
    }

    fn adopt_if(
        received: ReceivedRegion,
        access: Access,
        check: impl FnOnce(OwnedFd, usize) -> Result<Memfd, Unsuitable>,
    ) -> Result<Self, AdoptError> {
        let length_bytes = received.length_bytes;
        let is_whole = length_bytes.is_multiple_of(PAGE_BYTES as u64);
        let len = usize::try_from(length_bytes)
            .ok()
            .filter(|_| is_whole && (1..=REGION_BYTES_MAX).contains(&length_bytes))
            .ok_or(AdoptError::Length(length_bytes))?;
        let state = Memfd::adopt_for_reading(received.state, PAGE_BYTES)?;
        let state = state.map(Access::ReadOnly).map_err(AdoptError::Map)?;
        state.populate_for_loads();
        let state = ReadWord::new(Arc::new(state), 0).map_err(|_| AdoptError::Map(Errno::INVAL))?;
        let file = check(received.memory, len)?;
        let mapping = file.map(access).map_err(AdoptError::Map)?;
        mapping.prefer_huge_pages(0, len);
        // A fault for every page would cost more than copies. Pages that are not there would be
        // charged to us, so they are left alone.
        if len <= POPULATED_BYTES_MAX && file.is_present() {
            match access {
                Access::Writable => mapping.populate().map_err(AdoptError::Map)?,
                Access::ReadOnly => mapping.populate_for_loads(),
            }
        }
        Ok(Self {
            mapping,
            state,
            is_detached: AtomicBool::new(false),
        })
    }

    /// True while the owner says that the region lasts, and this process has not detached it. A
    /// hint.
    #[inline(always)]
    pub fn lasts(&self) -> bool {
        self.state.load() == LASTS && !self.is_detached.load(Ordering::Relaxed)
    }

    /// From now on the region does not last here.
    pub fn detach(&self) {
        self.is_detached.store(true, Ordering::Relaxed);
    }

    /// Bytes of the region.
    pub fn length_bytes(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// True if the region may be written.
    pub fn is_writable(&self) -> bool {
        self.mapping.is_writable()
    }

    /// Stores bytes. Others see them before whatever is stored afterwards.
    #[inline]
    pub fn store(
        &self,
        offset: u64,
        bytes: &[u8],
        streaming: &StreamingHeuristic,
    ) -> Result<(), OutOfRange> {
        let at = self.place(offset, bytes.len() as u64).ok_or(OutOfRange)?;
        match streaming.way(offset, bytes.len()) {
            StoreKind::NonTemporal => self.mapping.stream_in(at, bytes),
            StoreKind::Temporal => self.mapping.copy_in(at, bytes),
        }
    }

    /// Like [`AttachedRegion::store`], for bytes that lie in an area.
    pub fn store_from(
        &self,
        offset: u64,
        area: &Area,
        from: u64,
        len: u64,
        streaming: &StreamingHeuristic,
    ) -> Result<(), Denied> {
        let at = self.place(offset, len).ok_or(Denied::OutOfArea)?;
        let len = len as usize;
        let kind = streaming.way(offset, len);
        area.read_into(from, &self.mapping, at, len, kind)
    }

    /// A window on a part of it; none if the range does not lie in it.
    pub fn direct_window(self: &Arc<Self>, range: Range<u64>) -> Option<DirectWindow> {
        let length_bytes = range.end.checked_sub(range.start)?;
        DirectWindow::on_attached(self, range.start, length_bytes)
    }

    /// The place of so many bytes in the mapping. The heuristic must not learn of bytes outside.
    #[inline]
    fn place(&self, offset: u64, len: u64) -> Option<usize> {
        let end = offset.checked_add(len)?;
        (end <= self.mapping.len() as u64).then_some(offset as usize)
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

impl core::fmt::Debug for AttachedRegion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "AttachedRegion({} bytes)", self.length_bytes())
    }
}

#[cfg(test)]
mod tests;
