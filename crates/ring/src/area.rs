//! Message areas and send-buffer areas (`Hamlyn 2.2`, `2.3`).
//!
//! An [`Area`] is a contiguous region of this process, zeroed and present in
//! full, so that running out of memory is an error when it is made. Clones name
//! the same memory. Bytes go in and out by copies that tolerate any race;
//! there is no reference into an area.
//!
//! The exception is a *handover area* ([`Area::handover`]), whose pieces are
//! either open to the interface or in the application's hands; the latter may be
//! seen by reference through the [`HandoverReader`]. A write into a piece that is not
//! open is refused here, whatever engine, peer or application do. A sparse one
//! ([`Area::sparse_handover`]) has pages only as long as they hold something.

use core::ops::Range;
use std::sync::Arc;

use hamlyn_engine::memory::{self, Denied, ShortData, ShortSource};
use hamlyn_engine::operation::Atomic;

use rustix::fd::OwnedFd;

use crate::Errno;
use crate::handover::{ReleaseToken, WriteToken};
use crate::memfd::{Memfd, MemfdError, REGION_BYTES_MAX, Unsuitable, map_failed};
use crate::shared::{Access, DirectWindow, Mapping, Memory, PAGE_BYTES, StoreKind, Window};

/// Least size of a piece: its state should be small beside it.
pub const PIECE_MIN_BYTES: u32 = 16;

/// Options of [`Area::shared`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedOptions {
    /// Its length, which is rounded up to whole pages.
    pub length_bytes: u64,
    /// Pages appear when they are touched first. Otherwise all of them are present from the
    /// beginning, and running out of memory is an error when the area is made.
    pub is_sparse: bool,
    /// The address that it has in this process, a multiple of 4096. By default the kernel chooses.
    pub address: Option<usize>,
}

impl SharedOptions {
    /// All pages are present, anywhere.
    pub const fn reserved(length_bytes: u64) -> Self {
        Self {
            length_bytes,
            is_sparse: false,
            address: None,
        }
    }

    /// Pages appear when they are touched, anywhere.
    pub const fn sparse(length_bytes: u64) -> Self {
        Self {
            is_sparse: true,
            ..Self::reserved(length_bytes)
        }
    }
}

/// An area over a file was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AreaError {
    /// The length is impossible.
    #[error(
        "an area of {0} bytes cannot be shared: it has 1 byte or more, at most {REGION_BYTES_MAX}, and over memory or a file that exists whole pages of {PAGE_BYTES}"
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
        /// The address.
        address: usize,
        /// Its length.
        length_bytes: u64,
    },
    /// The memory file could not be made or mapped; nothing has changed.
    #[error(transparent)]
    Memory(#[from] MemfdError),
    /// The program's own file cannot be used.
    #[error(
        "the file cannot be an area: {0}; make it with memfd_create, seal it against shrinking and growing, and leave it writable"
    )]
    Unsuitable(#[from] Unsuitable),
}

/// Memory of an application that the interface may use.
///
/// A clone names the same memory. Of a handover area only the first one may write, and whatever
/// it is moved into; clones of it read. So that it has one writer at a time, an area can
/// move to another thread, and clones of it too, but not be shared between threads:
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<hamlyn_ring::area::Area>();
/// ```
pub struct Area {
    memory: Arc<Memory>,
    /// Of a handover area, the right to write.
    write_token: Option<WriteToken>,
}

impl Clone for Area {
    fn clone(&self) -> Self {
        Self {
            memory: Arc::clone(&self.memory),
            write_token: None,
        }
    }
}

impl Area {
    /// An area of `len` bytes, page aligned, zeroed and reserved. 0 is legal.
    pub fn new(len: u64) -> Result<Self, Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        Ok(Self {
            memory: Arc::new(Memory::plain(len)?),
            write_token: None,
        })
    }

    /// An area of which other processes may be given regions ([`crate::region`]). Zeroed. It
    /// cannot back a paranoid slot.
    pub fn shared(options: SharedOptions) -> Result<Self, AreaError> {
        let impossible = AreaError::Length(options.length_bytes);
        let len = options
            .length_bytes
            .checked_next_multiple_of(PAGE_BYTES as u64)
            .filter(|len| (1..=REGION_BYTES_MAX).contains(len))
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(impossible)?;
        let file = Memfd::create_unshared(len)?;
        let mapping = match options.address {
            None => file.map(Access::Writable).map_err(map_failed)?,
            Some(address) if !address.is_multiple_of(PAGE_BYTES) => {
                return Err(AreaError::Address(address));
            }
            Some(address) => Mapping::of_file_at(&file, address).map_err(|errno| match errno {
                Errno::EXIST => AreaError::Occupied {
                    address,
                    length_bytes: len as u64,
                },
                errno => map_failed(errno).into(),
            })?,
        };
        if !options.is_sparse {
            mapping.reserve().map_err(|errno| MemfdError::Memory {
                needed_bytes: len as u64,
                errno,
            })?;
        }
        let memory = Memory::in_file(mapping, file, true, options.is_sparse);
        Ok(Self::of_memory(memory))
    }

    /// An area over a memory file of the program's own, which other processes may be given regions
    /// of. The file has ordinary pages and exactly that length, can be written, and is sealed
    /// against shrinking and growing. Before it is shared it gets further seals; so it must take
    /// them, or have them.
    ///
    /// The area is the file until its pages are exchanged: when a part of it is shared, and when a
    /// region is taken back. From then on the area keeps its contents and addresses, and the
    /// program's own mappings of the file show that file.
    pub fn from_file(file: OwnedFd, length_bytes: u64) -> Result<Self, AreaError> {
        let is_whole = length_bytes.is_multiple_of(PAGE_BYTES as u64);
        let len = usize::try_from(length_bytes)
            .ok()
            .filter(|_| is_whole && (1..=REGION_BYTES_MAX).contains(&length_bytes))
            .ok_or(AreaError::Length(length_bytes))?;
        let file = Memfd::adopt(file, len)?;
        let mapping = file.map(Access::Writable).map_err(map_failed)?;
        Ok(Self::of_memory(Memory::in_file(mapping, file, false, true)))
    }

    /// A window on a part of the area, for accesses of a few instructions; none if the range does
    /// not lie in the area, and on a handover area.
    pub fn direct_window(&self, range: Range<u64>) -> Option<DirectWindow> {
        let length_bytes = range.end.checked_sub(range.start)?;
        DirectWindow::on_own(
            self.memory(),
            usize::try_from(range.start).ok()?,
            usize::try_from(length_bytes).ok()?,
        )
    }

    /// An area without pieces.
    pub(crate) fn of_memory(memory: Memory) -> Self {
        Self {
            memory: Arc::new(memory),
            write_token: None,
        }
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// An area in `pieces` of `piece_bytes` (a power of two, at least
    /// [`PIECE_MIN_BYTES`], else `INVAL`), all in the application's hands at first.
    pub fn handover(pieces: u32, piece_bytes: u32) -> Result<(Self, HandoverReader), Errno> {
        Self::in_pieces(pieces, piece_bytes, false)
    }

    /// A handover area of which a page is present from its first store on until
    /// [`HandoverReader::open`] opens its piece. Pieces have whole pages ([`PAGE_BYTES`]), else
    /// `INVAL`. If memory is short when a page is stored to, the system ends a process, as for any
    /// memory of a program. A program that locks its memory (`mlockall`) keeps all pages.
    pub fn sparse_handover(pieces: u32, piece_bytes: u32) -> Result<(Self, HandoverReader), Errno> {
        if (piece_bytes as usize) < PAGE_BYTES {
            return Err(Errno::INVAL);
        }
        Self::in_pieces(pieces, piece_bytes, true)
    }

    fn in_pieces(
        pieces: u32,
        piece_bytes: u32,
        is_sparse: bool,
    ) -> Result<(Self, HandoverReader), Errno> {
        if !piece_bytes.is_power_of_two() || piece_bytes < PIECE_MIN_BYTES {
            return Err(Errno::INVAL);
        }
        let (memory, release_token, write_token) =
            Memory::in_pieces(pieces, piece_bytes.trailing_zeros(), is_sparse)?;
        let memory = Arc::new(memory);
        let reader = HandoverReader {
            memory: Arc::clone(&memory),
            release_token,
        };
        let write_token = Some(write_token);
        Ok((
            Self {
                memory,
                write_token,
            },
            reader,
        ))
    }

    /// Whether bytes can be written through this one: not of a handover area, if this is a clone.
    pub fn may_write(&self) -> bool {
        self.write_token.is_some() || self.memory.pieces().count() == 0
    }

    /// Copies out of the area. Bytes that the interface writes at the same time
    /// come out old or new.
    #[inline]
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), Denied> {
        self.memory.read(place(offset)?, into)
    }

    /// Copies `from` into the area.
    #[inline]
    pub fn write_at(&self, offset: u64, from: &[u8]) -> Result<(), Denied> {
        self.memory
            .write(self.write_token.as_ref(), place(offset)?, from)
    }

    /// Writes data that come word by word.
    #[inline(always)]
    pub fn write_words(&self, offset: u64, data: &impl ShortSource) -> Result<(), Denied> {
        self.memory
            .write_words(self.write_token.as_ref(), place(offset)?, data)
    }

    /// The word at `offset`; if that is a multiple of 8, it is never torn
    /// against [`Area::store_u64`] and deposits of 8 or 16 aligned bytes, and it
    /// is loaded before whatever the caller loads afterwards.
    #[inline]
    pub fn load_u64(&self, offset: u64) -> Result<u64, Denied> {
        self.memory.load_u64(place(offset)?)
    }

    /// Stores a word; see [`Area::load_u64`].
    #[inline]
    pub fn store_u64(&self, offset: u64, value: u64) -> Result<(), Denied> {
        self.memory
            .store_u64(self.write_token.as_ref(), place(offset)?, value)
    }

    /// Changes the word at `offset`, which must be a multiple of its width, and returns what it
    /// was; nobody sees a part of the change, and changes of others are not lost.
    pub fn change_at(&self, offset: u64, atomic: &Atomic) -> Result<u64, Denied> {
        self.memory
            .change(self.write_token.as_ref(), place(offset)?, atomic)
    }

    /// Fills a range with one value.
    pub fn fill(&self, offset: u64, len: u64, value: u8) -> Result<(), Denied> {
        self.memory.fill(
            self.write_token.as_ref(),
            place(offset)?,
            place(len)?,
            value,
        )
    }

    /// Copies from a mapping into the area.
    #[inline]
    pub fn write_from(
        &self,
        offset: u64,
        from: &Mapping,
        from_offset: usize,
        len: usize,
        way: StoreKind,
    ) -> Result<(), Denied> {
        let (write_token, offset) = (self.write_token.as_ref(), place(offset)?);
        self.memory
            .write_from(write_token, offset, from, from_offset, len, way)
    }

    /// Copies from the area into a mapping.
    #[inline]
    pub fn read_into(
        &self,
        offset: u64,
        into: &Mapping,
        into_offset: usize,
        len: usize,
        way: StoreKind,
    ) -> Result<(), Denied> {
        self.memory
            .read_into(place(offset)?, into, into_offset, len, way)
    }
}

#[inline]
fn place(offset: u64) -> Result<usize, Denied> {
    usize::try_from(offset).map_err(|_| Denied::OutOfArea)
}

#[inline]
fn clamp(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl memory::Area for Area {
    type Window = Window;

    fn window(&self, offset: u64, length_bytes: u64) -> Window {
        match (place(offset), place(length_bytes)) {
            (Ok(offset), Ok(length_bytes)) => Window::on(&self.memory, offset, length_bytes),
            _ => memory::Window::empty(),
        }
    }

    #[inline]
    fn length_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn is_private(&self) -> bool {
        self.memory.is_private()
    }

    #[inline]
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Denied> {
        self.write_at(offset, from)
    }

    #[inline(always)]
    fn write_short(&self, offset: u64, data: ShortData) -> Result<(), Denied> {
        self.memory
            .write_short(self.write_token.as_ref(), place(offset)?, data)
    }

    #[inline]
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Denied> {
        self.read_at(offset, into)
    }

    fn change(&self, offset: u64, atomic: &Atomic) -> Result<u64, Denied> {
        self.change_at(offset, atomic)
    }

    #[inline(always)]
    fn complete_with_short(
        &self,
        offset: u64,
        data: &impl ShortSource,
        low: u64,
        high: u64,
    ) -> bool {
        // Without it the area is plain, or not ours to write.
        let (Some(write_token), Ok(offset)) = (&self.write_token, place(offset)) else {
            return false;
        };
        self.memory
            .complete_with_short(write_token, offset, data, clamp(low), clamp(high))
    }

    #[inline]
    fn message_complete(&self, low: u64, high: u64) {
        if let Some(write_token) = &self.write_token {
            self.memory.complete(write_token, clamp(low), clamp(high));
        }
    }
}

impl core::fmt::Debug for Area {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Area({} bytes)", self.memory.len())
    }
}

/// The application's end of a handover area: sees held pieces by reference, and
/// opens them to the interface again.
pub struct HandoverReader {
    memory: Arc<Memory>,
    release_token: ReleaseToken,
}

impl HandoverReader {
    /// Opens pieces to the interface. It needs `self` mutably, so no reference
    /// into them is left. Pieces that do not exist are ignored. Of a sparse area, the pages go back
    /// to the system, if all of the pieces were in the application's hands.
    pub fn open(&mut self, pieces: Range<u32>) {
        self.memory.open(&mut self.release_token, pieces);
    }

    /// Opens one piece, and leaves its pages where they are.
    #[inline]
    pub fn open_one(&mut self, piece: u32) {
        self.memory
            .pieces()
            .open_one(&mut self.release_token, piece);
    }

    /// The bytes of a range, if every piece that it touches is in the
    /// application's hands.
    #[inline]
    pub fn view(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.memory
            .view(&self.release_token, usize::try_from(offset).ok()?, len)
    }

    /// Whether a piece is in the application's hands.
    #[inline]
    pub fn is_held(&self, piece: u32) -> bool {
        let pieces = self.memory.pieces();
        piece < pieces.count()
            && pieces.is_held(&self.release_token, (piece as usize) << pieces.shift(), 1)
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> u32 {
        self.memory.pieces().count()
    }

    /// The numbers of the pieces that have a byte in the range; nothing unless all of it lies in
    /// the area.
    pub fn pieces_of(&self, offset: u64, len: usize) -> Option<Range<u32>> {
        let end = offset.checked_add(len as u64)?;
        if end > u64::from(self.pieces()) * u64::from(self.piece_bytes()) {
            return None;
        }
        let pieces = self.memory.pieces();
        let numbers = pieces.numbers_of(usize::try_from(offset).ok()?, len)?;
        Some(numbers.start as u32..numbers.end as u32)
    }

    /// Bytes of a piece.
    pub fn piece_bytes(&self) -> u32 {
        1 << self.memory.pieces().shift()
    }
}

impl core::fmt::Debug for HandoverReader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "HandoverReader({} pieces of {} bytes)",
            self.pieces(),
            self.piece_bytes()
        )
    }
}

#[cfg(test)]
mod tests;
