//! Areas that any number of peers map (exported areas, decision 0037).
//!
//! Pages that are granted to one peer are exchanged for a file first ([`crate::lending`]). An
//! exportable area lies in a memory file from the beginning, so that it can be large and sparse:
//! pages appear when they are touched, none is reserved. When it is exported, the file gets all of
//! its seals, and each peer that is given it maps it: for reading only, if that is all that was
//! granted, which the kernel enforces. When the export is taken back, a fresh file that nobody else
//! knows takes its place.
//!
//! Beside that file goes another one, of one page, that only the owner can write. Its first word
//! says whether the export lasts: a hint for those who imported it, who then go back to packets.
//! Importers can not change what others are told.
//!
//! Refused: areas that were not made for this, areas that are exported already, lengths that are
//! impossible.
//!
//! What the owner has to know: pages that importers touch first, and holes that they punch, are
//! memory that nobody has reserved. A machine without memory for them ends a process, as it does
//! for memory of the process itself.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use rustix::fd::OwnedFd;

use crate::Errno;
use crate::area::Area;
use crate::forks::Birth;
use crate::lending::BorrowError;
use crate::memfd::{Memfd, MemfdError};
use crate::shared::{Access, DirectWindow, Mapping, Memory, PAGE_BYTES, ReadWord};

/// The most bytes that an exportable area has.
pub const EXPORTED_BYTES_MAX: u64 = 1 << 40;

const LASTS: u64 = 1;
const ENDED: u64 = 0;

/// What an area that can be exported is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportableOptions {
    /// Its length, which is rounded up to whole pages.
    pub length_bytes: u64,
    /// Where it is to lie in this process, at a multiple of 4096; none if the kernel may choose.
    pub address: Option<usize>,
}

/// An area that can be exported was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportableError {
    /// The length is impossible.
    #[error(
        "{0} bytes are no area to be exported: it has 1 byte or more, at most {EXPORTED_BYTES_MAX}, and memory whose place it takes has whole pages of {PAGE_BYTES}"
    )]
    Length(u64),
    /// The address is not that of a page.
    #[error("{0:#x} is not the address of a page: name a multiple of {PAGE_BYTES}")]
    Address(usize),
    /// Something is mapped there.
    #[error(
        "something is mapped in the {length_bytes} bytes at {address:#x} already: choose another address"
    )]
    Occupied {
        /// Where it was to lie.
        address: usize,
        /// How long it was to be.
        length_bytes: u64,
    },
    /// The memory file could not be made.
    #[error(transparent)]
    Memory(#[from] MemfdError),
    /// It could not be mapped; nothing has changed.
    #[error("the memory file could not be mapped: {0}")]
    Map(Errno),
}

/// An area was not exported, or not taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It was not made for that.
    #[error("the area was not made to be exported: allocate it as an exportable one")]
    NotExportable,
    /// It is exported, perhaps by way of another slot or interface.
    #[error("the area is exported already: revoke that export first")]
    ExportedAlready,
    /// A file could not be had, sealed or handed on.
    #[error(transparent)]
    Memory(#[from] MemfdError),
    /// Fresh pages could not be put in the place of the exported ones.
    #[error(transparent)]
    Exchange(#[from] ExportableError),
}

impl Area {
    /// An area that can be exported to any number of peers. It is zeroed, and sparse: its pages
    /// appear when they are touched.
    pub fn exportable(options: ExportableOptions) -> Result<Self, ExportableError> {
        let impossible = ExportableError::Length(options.length_bytes);
        let len = options
            .length_bytes
            .checked_next_multiple_of(PAGE_BYTES as u64)
            .filter(|len| (1..=EXPORTED_BYTES_MAX).contains(len))
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(impossible)?;
        let file = Memfd::create_exportable(len)?;
        let mapping = match options.address {
            None => file.map(Access::Writable).map_err(ExportableError::Map)?,
            Some(address) if !address.is_multiple_of(PAGE_BYTES) => {
                return Err(ExportableError::Address(address));
            }
            Some(address) => Mapping::of_file_at(&file, address).map_err(|errno| match errno {
                Errno::EXIST => ExportableError::Occupied {
                    address,
                    length_bytes: len as u64,
                },
                errno => ExportableError::Map(errno),
            })?,
        };
        Ok(Self::of_memory(Memory::in_file(mapping, file)))
    }

    /// A window on a part of the area, for accesses of a few instructions; nothing if the range
    /// does not lie in the area, and on a handover area.
    pub fn direct_window(&self, range: Range<u64>) -> Option<DirectWindow> {
        let length_bytes = range.end.checked_sub(range.start)?;
        DirectWindow::on_own(
            self.memory(),
            usize::try_from(range.start).ok()?,
            usize::try_from(length_bytes).ok()?,
        )
    }
}

/// What a peer is handed of an exported area.
#[derive(Debug)]
pub struct ExportFiles {
    /// The area's memory.
    pub area: OwnedFd,
    /// The page that says whether the export lasts.
    pub state: OwnedFd,
}

/// An exported area, in its owner's hands. Dropping this takes it back, if anybody still has the
/// area and there is memory for that.
pub struct ExportedArea {
    memory: Arc<Memory>,
    is_out: bool,
    birth: Birth,
    state: Mapping,
}

impl ExportedArea {
    /// Exports all of an area, and returns what peers are to be handed. With [`Access::ReadOnly`]
    /// the kernel lets nobody write the memory but through the mapping of its owner.
    pub fn export(area: &Area, access: Access) -> Result<(Self, ExportFiles), ExportError> {
        let memory = area.memory();
        let (state_file, state) = Memfd::create_for_readers("hamlyn-export", PAGE_BYTES)?;
        let file = memory.begin_export(access)?;
        let exported = Self {
            memory: Arc::clone(memory),
            is_out: true,
            birth: Birth::here(),
            state,
        };
        exported.say(LASTS);
        let files = ExportFiles {
            area: file,
            state: state_file.into_fd(),
        };
        Ok((exported, files))
    }

    /// Tells importers that the export has ended, if they care to look.
    pub fn mark_ended(&self) {
        self.say(ENDED);
    }

    /// Puts fresh pages with the same contents into the place of the exported ones. When this
    /// returns, nothing that an importer does changes the area any more. Only pages that are there
    /// are copied. Whatever is stored meanwhile may be lost. May be called again if there was no
    /// memory for it.
    pub fn take_back(&mut self) -> Result<(), ExportError> {
        if self.is_out {
            self.mark_ended();
            self.memory.end_export()?;
            self.is_out = false;
        }
        Ok(())
    }

    /// How many bytes.
    pub fn length_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn say(&self, word: u64) {
        let said = self.state.store_u64(0, word);
        debug_assert!(said.is_ok(), "the page has a word");
    }
}

impl Drop for ExportedArea {
    fn drop(&mut self) {
        // The importers read the word, and a forked child ends nothing.
        if !self.birth.is_here() {
            return;
        }
        self.mark_ended();
        if Arc::strong_count(&self.memory) > 1 {
            // An owner that must know whether it succeeded has called it before.
            let _ = self.take_back();
        }
    }
}

impl core::fmt::Debug for ExportedArea {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ExportedArea({} bytes)", self.length_bytes())
    }
}

/// An area of a peer, mapped here.
pub struct ImportedArea {
    mapping: Mapping,
    state: ReadWord,
    is_dropped: AtomicBool,
}

impl ImportedArea {
    /// Maps what a peer says is an exported area of so many bytes, if the kernel confirms that.
    pub fn adopt(
        files: ExportFiles,
        length_bytes: u64,
        access: Access,
    ) -> Result<Self, BorrowError> {
        let is_whole = length_bytes.is_multiple_of(PAGE_BYTES as u64);
        let len = usize::try_from(length_bytes)
            .ok()
            .filter(|_| is_whole && (1..=EXPORTED_BYTES_MAX).contains(&length_bytes))
            .ok_or(BorrowError::Length(length_bytes))?;
        let state = Memfd::adopt_for_reading(files.state, PAGE_BYTES)?;
        let state = state.map(Access::ReadOnly).map_err(BorrowError::Map)?;
        state.populate_for_loads();
        let state =
            ReadWord::new(Arc::new(state), 0).map_err(|_| BorrowError::Map(Errno::INVAL))?;
        let file = Memfd::adopt_sparse(files.area, len, access)?;
        let mapping = file.map(access).map_err(BorrowError::Map)?;
        Ok(Self {
            mapping,
            state,
            is_dropped: AtomicBool::new(false),
        })
    }

    /// Whether the owner says that the export lasts, and nobody here has let go of it. A hint.
    #[inline(always)]
    pub fn lasts(&self) -> bool {
        self.state.load() == LASTS && !self.is_dropped.load(Ordering::Relaxed)
    }

    /// From now on it does not last here.
    pub fn let_go(&self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }

    /// How many bytes.
    pub fn length_bytes(&self) -> u64 {
        self.mapping.len() as u64
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.mapping.is_writable()
    }

    /// A window on a part of it; nothing if the range does not lie in it.
    pub fn direct_window(self: &Arc<Self>, range: Range<u64>) -> Option<DirectWindow> {
        let length_bytes = range.end.checked_sub(range.start)?;
        DirectWindow::on_imported(self, range.start, length_bytes)
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

impl core::fmt::Debug for ImportedArea {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ImportedArea({} bytes)", self.length_bytes())
    }
}

#[cfg(test)]
mod tests;
