//! Pages of an area that a peer stores into by itself (direct placement, decision 0006).
//!
//! A memory file shows all of its pages to every holder, for ever. So what is lent is a file of its
//! own for every grant, with exactly the pages that are granted; it takes their place in the
//! owner's area as long as the grant lasts, and fresh pages that nobody else knows take its place
//! when it ends.
//!
//! Refused: areas that were not made for this ([`Area::lendable`]), handover areas among them,
//! whose pieces are seen by reference; and ranges that are not whole pages.
//!
//! The last page of such a file is no part of the area. Its first word says whether the grant
//! lasts: a hint for the borrower, who then goes back to sending copies. It decides nothing.

use core::ops::Range;
use std::sync::Arc;

use hamlyn_engine::memory::Denied;
use rustix::fd::OwnedFd;

use crate::Errno;
use crate::area::Area;
use crate::forks::Birth;
use crate::memfd::{Memfd, MemfdError, Unsuitable};
use crate::shared::{Access, Mapping, Memory, OutOfRange, PAGE_BYTES, StoreKind};
use crate::streaming::StreamingHeuristic;

/// The most that can be lent at a time: a packet counts its bytes in 32 bits.
pub const LENT_BYTES_MAX: u64 = (1 << 32) - PAGE_BYTES as u64;

const LASTS: u64 = 1;
const ENDED: u64 = 0;

/// Pages could not be lent or taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LendError {
    /// The area was not made to be lent.
    #[error("the area was not made to be mapped by others: allocate it as a shared one")]
    NotLendable,
    /// The range is not made of whole pages of the area.
    #[error(
        "the range from {start} to {end} is not made of whole pages of {PAGE_BYTES} bytes of the area"
    )]
    NotPages {
        /// Where it was to begin, in the area.
        start: u64,
        /// Where it was to end.
        end: u64,
    },
    /// A part of it is lent already, perhaps by way of another slot or interface.
    #[error("a part of these pages is lent already: take it back first")]
    LentAlready,
    /// Fresh pages could not be had.
    #[error(transparent)]
    Memory(#[from] MemfdError),
    /// They could not be put in their place; nothing has changed.
    #[error("the pages could not be exchanged: {0}")]
    Exchange(Errno),
}

/// Pages that are lent, in their owner's hands. Dropping this takes them back, if anybody still
/// has the area and there is memory for it.
pub struct ExportedRegion {
    memory: Arc<Memory>,
    start: usize,
    length: usize,
    is_out: bool,
    birth: Birth,
    /// All of the file, for the word in its last page.
    file_mapping: Mapping,
}

impl ExportedRegion {
    /// Puts a file of its own, with the same contents, in the place of these pages, and
    /// returns it for the borrower. Whatever is stored there meanwhile may be lost.
    pub fn lend(area: &Area, range: Range<u64>) -> Result<(Self, OwnedFd), LendError> {
        let memory = area.memory();
        if !memory.is_lendable() {
            return Err(LendError::NotLendable);
        }
        let (start, length) = pages(&range, memory.len())?;
        let claimed = start..start + length;
        if !memory.note_lent(claimed.clone()) {
            return Err(LendError::LentAlready);
        }
        let exchanged = fresh(length).and_then(|(file, file_mapping)| {
            memory
                .exchange(start, length, &file, &file_mapping)
                .map_err(LendError::Exchange)?;
            Ok((file, file_mapping))
        });
        let (file, file_mapping) = exchanged.inspect_err(|_| memory.note_taken_back(&claimed))?;
        let lent = Self {
            memory: Arc::clone(memory),
            start,
            length,
            is_out: true,
            birth: Birth::here(),
            file_mapping,
        };
        lent.say(LASTS);
        Ok((lent, file.into_fd()))
    }

    /// Tells the borrower that the grant has ended, if it cares to look.
    pub fn mark_ended(&self) {
        self.say(ENDED);
    }

    /// Puts fresh pages with the same contents into the place of the lent ones. When this returns,
    /// nothing that the borrower does changes the area any more. Whatever is stored there meanwhile
    /// may be lost. May be called again if there was no memory for it.
    pub fn take_back(&mut self) -> Result<(), LendError> {
        if !self.is_out {
            return Ok(());
        }
        self.mark_ended();
        let (file, file_mapping) = fresh(self.length)?;
        self.memory
            .exchange(self.start, self.length, &file, &file_mapping)
            .map_err(LendError::Exchange)?;
        self.memory
            .note_taken_back(&(self.start..self.start + self.length));
        self.is_out = false;
        Ok(())
    }

    /// How many bytes.
    pub fn length_bytes(&self) -> u64 {
        self.length as u64
    }

    fn say(&self, word: u64) {
        let said = self.file_mapping.store_u64(self.length, word);
        debug_assert!(said.is_ok(), "the file has a page more");
    }
}

impl Drop for ExportedRegion {
    fn drop(&mut self) {
        if self.birth.is_here() && Arc::strong_count(&self.memory) > 1 {
            // An owner that must know whether it succeeded has called it before.
            let _ = self.take_back();
        }
    }
}

impl core::fmt::Debug for ExportedRegion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ExportedRegion({} bytes at {})", self.length, self.start)
    }
}

/// A file that nobody else knows, for so many bytes and a page more.
fn fresh(length: usize) -> Result<(Memfd, Mapping), LendError> {
    // The pages are made when they are filled: only then can they be huge ones.
    let file = Memfd::create("hamlyn-lent", length + PAGE_BYTES, 0)?;
    let mapping = file.map(Access::Writable).map_err(LendError::Exchange)?;
    mapping.prefer_huge_pages(0, length);
    Ok((file, mapping))
}

fn pages(range: &Range<u64>, area_bytes: usize) -> Result<(usize, usize), LendError> {
    let page = PAGE_BYTES as u64;
    let whole = range.start.is_multiple_of(page) && range.end.is_multiple_of(page);
    let length = range.end.saturating_sub(range.start);
    if !whole || length == 0 || length > LENT_BYTES_MAX || range.end > area_bytes as u64 {
        return Err(LendError::NotPages {
            start: range.start,
            end: range.end,
        });
    }
    Ok((range.start as usize, length as usize))
}

/// Somebody else's pages that we were lent.
#[derive(Debug)]
pub struct ImportedRegion {
    mapping: Mapping,
    length: usize,
    streaming: StreamingHeuristic,
}

impl ImportedRegion {
    /// Maps a file that a peer says are `length_bytes` lent pages, if the kernel confirms that.
    pub fn adopt(file: OwnedFd, length_bytes: u64) -> Result<Self, BorrowError> {
        let page = PAGE_BYTES as u64;
        if length_bytes == 0 || length_bytes > LENT_BYTES_MAX || !length_bytes.is_multiple_of(page)
        {
            return Err(BorrowError::Length(length_bytes));
        }
        let length = length_bytes as usize;
        let file = Memfd::adopt(file, length + PAGE_BYTES)?;
        // A fault for every page would cost more than the copies. Pages that are not there would be
        // charged to us, so they are left alone.
        let present = file.is_present();
        let mapping = file.map(Access::Writable).map_err(BorrowError::Map)?;
        mapping.prefer_huge_pages(0, length);
        if present {
            mapping.populate().map_err(BorrowError::Map)?;
        }
        Ok(Self {
            mapping,
            length,
            streaming: StreamingHeuristic::new(),
        })
    }

    /// Whether the owner says that the grant lasts. A hint.
    #[inline]
    pub fn lasts(&self) -> bool {
        self.mapping.load_u64(self.length) == Ok(LASTS)
    }

    /// Stores bytes. Others see them before whatever is stored afterwards.
    #[inline]
    pub fn store(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        let offset = usize::try_from(offset).map_err(|_| OutOfRange)?;
        if offset > self.length || bytes.len() > self.length - offset {
            return Err(OutOfRange);
        }
        match self.streaming.way(offset as u64, bytes.len()) {
            StoreKind::NonTemporal => self.mapping.stream_in(offset, bytes),
            StoreKind::Temporal => self.mapping.copy_in(offset, bytes),
        }
    }

    /// As [`ImportedRegion::store`], of bytes that lie in an area.
    pub fn store_from(&self, offset: u64, area: &Area, from: u64, len: u64) -> Result<(), Denied> {
        let inside = offset
            .checked_add(len)
            .is_some_and(|end| end <= self.length as u64);
        if !inside {
            return Err(Denied::OutOfArea);
        }
        // Both fit a usize, as what is mapped does.
        let (offset, len) = (offset as usize, len as usize);
        let way = self.streaming.way(offset as u64, len);
        area.read_into(from, &self.mapping, offset, len, way)
    }

    /// How many bytes.
    pub fn length_bytes(&self) -> u64 {
        self.length as u64
    }
}

/// What a peer lent cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BorrowError {
    /// The length is impossible.
    #[error("{0} bytes cannot be lent: whole pages, less than 4 GiB")]
    Length(u64),
    /// The file is not what it must be.
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    /// It could not be mapped.
    #[error("lent pages could not be mapped: {0}")]
    Map(Errno),
}

#[cfg(test)]
mod tests;
