//! The memory of an area: the only place where a reference into memory that others
//! may write is given out, and why it is sound.

use core::ops::Range;
use core::sync::atomic::AtomicU32;
use std::sync::{Mutex, PoisonError};

use hamlyn_engine::limits::SHORT_BYTES_MAX;
use hamlyn_engine::memory::{Denied, ShortData, ShortSource};
use hamlyn_engine::operation::Atomic;

use rustix::fd::OwnedFd;

use super::{Access, Mapping, OutOfRange, StoreKind, store_short};
use crate::Errno;
use crate::export::{ExportError, ExportableError};
use crate::handover::{Pieces, ReleaseToken, WriteToken};
use crate::memfd::Memfd;

/// The memory of an area: plain, or divided into pieces that are handed over.
pub(crate) struct Memory {
    mapping: Mapping,
    /// None if it is plain; otherwise all of the mapping lies in them, and they in it.
    pieces: Pieces<AtomicU32>,
    /// Which pages are lent, if they may be exchanged for others at all; never if it has pieces.
    lent: Option<Mutex<Vec<Range<usize>>>>,
    /// The file in which all of it lies, if it may be exported; never if it has pieces or may be
    /// lent.
    file: Option<Mutex<ExportableFile>>,
}

/// The file of an area that can be exported.
struct ExportableFile {
    file: Memfd,
    is_exported: bool,
}

impl Memory {
    pub(crate) fn plain(len: usize) -> Result<Self, Errno> {
        Ok(Self {
            mapping: Mapping::anonymous(len)?,
            pieces: Pieces::none(),
            lent: None,
            file: None,
        })
    }

    /// Plain memory whose pages may be lent.
    pub(crate) fn lendable(len: usize) -> Result<Self, Errno> {
        Ok(Self {
            mapping: Mapping::anonymous(len)?,
            pieces: Pieces::none(),
            lent: Some(Mutex::default()),
            file: None,
        })
    }

    /// Plain memory that is a mapping of all of a file.
    pub(crate) fn in_file(mapping: Mapping, file: Memfd) -> Self {
        Self {
            mapping,
            pieces: Pieces::none(),
            lent: None,
            file: Some(Mutex::new(ExportableFile {
                file,
                is_exported: false,
            })),
        }
    }

    #[inline]
    pub(crate) fn is_in_file(&self) -> bool {
        self.file.is_some()
    }

    /// A descriptor of the file, for peers, and from now on for no others than those of this
    /// export.
    pub(crate) fn begin_export(&self, access: Access) -> Result<OwnedFd, ExportError> {
        let Some(state) = &self.file else {
            return Err(ExportError::NotExportable);
        };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_exported {
            return Err(ExportError::ExportedAlready);
        }
        let descriptor = state.file.duplicate()?;
        state.file.seal_exported(access)?;
        state.is_exported = true;
        Ok(descriptor)
    }

    /// Puts a file that nobody else knows into the place of the exported one, with the pages that
    /// are there.
    pub(crate) fn end_export(&self) -> Result<(), ExportableError> {
        let Some(state) = &self.file else {
            return Ok(());
        };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let len = self.mapping.len();
        let fresh = Memfd::create_exportable(len)?;
        let fresh_mapping = fresh.map(Access::Writable).map_err(ExportableError::Map)?;
        let mut from = 0;
        // Each turn begins beyond the last one, so importers that punch holes meanwhile do not keep
        // us here.
        while let Some(present) = state.file.next_present(from)? {
            from = present.end;
            self.mapping.copy_present(present, &fresh, &fresh_mapping)?;
        }
        self.mapping
            .replace(0, len, &fresh)
            .map_err(ExportableError::Map)?;
        *state = ExportableFile {
            file: fresh,
            is_exported: false,
        };
        Ok(())
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    #[inline]
    pub(crate) fn is_lendable(&self) -> bool {
        self.lent.is_some()
    }

    /// Notes that a range is lent. False if a part of it is already, or it cannot be.
    pub(crate) fn note_lent(&self, range: Range<usize>) -> bool {
        let Some(lent) = &self.lent else {
            return false;
        };
        let mut lent = lent.lock().unwrap_or_else(PoisonError::into_inner);
        let overlaps = |other: &Range<usize>| range.start < other.end && other.start < range.end;
        if lent.iter().any(overlaps) {
            return false;
        }
        lent.push(range);
        true
    }

    /// Undoes that.
    pub(crate) fn note_taken_back(&self, range: &Range<usize>) {
        if let Some(lent) = &self.lent {
            let mut lent = lent.lock().unwrap_or_else(PoisonError::into_inner);
            lent.retain(|other| other != range);
        }
    }

    /// Puts the beginning of a file, filled with what is there, into the place of a range; see
    /// `Mapping::exchange`. Never done to memory in pieces, into which there may be references.
    pub(crate) fn exchange(
        &self,
        offset: usize,
        len: usize,
        file: &Memfd,
        file_mapping: &Mapping,
    ) -> Result<(), Errno> {
        if self.lent.is_none() || self.is_in_pieces() {
            return Err(Errno::PERM);
        }
        self.mapping.exchange(offset, len, file, file_mapping)
    }

    /// `count` pieces of `1 << shift` bytes, and the rights to open and to write them.
    pub(crate) fn in_pieces(
        count: u32,
        shift: u32,
    ) -> Result<(Self, ReleaseToken, WriteToken), Errno> {
        let len = (count as usize)
            .checked_mul(1 << shift)
            .ok_or(Errno::NOMEM)?;
        let mapping = Mapping::anonymous(len)?;
        let (pieces, release_token, write_token) = Pieces::new(count, shift).ok_or(Errno::NOMEM)?;
        Ok((
            Self {
                mapping,
                pieces,
                lent: None,
                file: None,
            },
            release_token,
            write_token,
        ))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Where a range of writable bytes begins; nothing if it does not lie in this memory, and for
    /// memory in pieces.
    pub(super) fn plain_start(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if self.is_in_pieces() {
            return None;
        }
        self.mapping.writable(offset, len).ok()
    }

    #[inline]
    pub(crate) fn pieces(&self) -> &Pieces<AtomicU32> {
        &self.pieces
    }

    #[inline(always)]
    fn is_in_pieces(&self) -> bool {
        self.pieces.count() != 0
    }

    /// For loads only; every store goes through [`Memory::store`].
    #[inline]
    fn for_loads(&self) -> &Mapping {
        &self.mapping
    }

    /// Carries out `store`, which may write the given range of the mapping and
    /// nothing else, unless one of its bytes is in the application's hands, or the
    /// memory is in pieces and the caller has not its write token.
    #[inline(always)]
    fn store(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        len: usize,
        store: impl FnOnce(&Mapping) -> Result<(), OutOfRange>,
    ) -> Result<(), Denied> {
        if self.is_in_pieces() {
            return self.store_if_open(write_token, offset, len, store);
        }
        store(&self.mapping).map_err(|OutOfRange| Denied::OutOfArea)
    }

    /// Apart, so that the way to plain memory stays short.
    #[inline(never)]
    fn store_if_open(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        len: usize,
        store: impl FnOnce(&Mapping) -> Result<(), OutOfRange>,
    ) -> Result<(), Denied> {
        // The write token is that of these pieces: an area gets both when it is made and never
        // changes them.
        self.pieces
            .while_open(write_token.ok_or(Denied::InUse)?, offset, len, move || {
                store(&self.mapping)
            })?
            .map_err(|OutOfRange| Denied::OutOfArea)
    }

    #[inline]
    pub(crate) fn write(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        from: &[u8],
    ) -> Result<(), Denied> {
        self.store(write_token, offset, from.len(), move |mapping| {
            mapping.copy_in(offset, from)
        })
    }

    #[inline(never)]
    pub(crate) fn write_short(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        data: ShortData,
    ) -> Result<(), Denied> {
        if data.length_bytes > SHORT_BYTES_MAX {
            return Err(Denied::OutOfArea);
        }
        self.store(write_token, offset, data.length_bytes, move |mapping| {
            mapping.store_short(offset, data.length_bytes, &data)
        })
    }

    /// As [`Memory::write_short`], of data that may be longer.
    #[inline(always)]
    pub(crate) fn write_words(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        data: &impl ShortSource,
    ) -> Result<(), Denied> {
        // Asked once: what is checked is what is stored.
        let len = data.length_bytes();
        self.store(write_token, offset, len, |mapping| {
            mapping.store_short(offset, len, data)
        })
    }

    /// Writes short data, and gives the piece between `low` and `high` to the application, if it is
    /// one piece, and the data lie in it: whether that was done. `write_token` is that of this
    /// memory.
    #[inline(always)]
    pub(crate) fn complete_with_short(
        &self,
        write_token: &WriteToken,
        offset: usize,
        data: &impl ShortSource,
        low: usize,
        high: usize,
    ) -> bool {
        let len = data.length_bytes();
        let Some(piece) = self.pieces.only_open(write_token, offset, len, low, high) else {
            return false;
        };
        // SAFETY: all bytes lie in one of the pieces, and those lie in the mapping.
        unsafe {
            let to = self.mapping.base.as_ptr().add(offset);
            store_short(to, len, data);
        }
        piece.complete();
        true
    }

    /// Gives the pieces between `low` and `high` to the application. `write_token` is that of this
    /// memory.
    #[inline]
    pub(crate) fn complete(&self, write_token: &WriteToken, low: usize, high: usize) {
        self.pieces.complete(write_token, low, high);
    }

    pub(crate) fn fill(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        len: usize,
        value: u8,
    ) -> Result<(), Denied> {
        self.store(write_token, offset, len, move |mapping| {
            mapping.fill(offset, len, value)
        })
    }

    #[inline]
    pub(crate) fn store_u64(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        value: u64,
    ) -> Result<(), Denied> {
        self.store(write_token, offset, 8, move |mapping| {
            mapping.store_u64(offset, value)
        })
    }

    pub(crate) fn change(
        &self,
        write_token: Option<&WriteToken>,
        offset: usize,
        atomic: &Atomic,
    ) -> Result<u64, Denied> {
        let mut before = 0;
        let bytes = atomic.width.bytes() as usize;
        self.store(write_token, offset, bytes, |mapping| {
            before = mapping.change(offset, atomic)?;
            Ok(())
        })?;
        Ok(before)
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
        write_token: Option<&WriteToken>,
        offset: usize,
        from: &Mapping,
        from_offset: usize,
        len: usize,
        way: StoreKind,
    ) -> Result<(), Denied> {
        self.store(write_token, offset, len, move |mapping| {
            Mapping::copy_between(from, from_offset, mapping, offset, len, way)
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
        way: StoreKind,
    ) -> Result<(), Denied> {
        Mapping::copy_between(self.for_loads(), offset, into, into_offset, len, way)
            .map_err(|OutOfRange| Denied::OutOfArea)
    }

    /// A reference to bytes in the application's hands, or nothing if any of them is open to the
    /// interface. `release_token` must be the one that was made with this memory.
    #[inline]
    pub(crate) fn view<'a>(
        &'a self,
        release_token: &'a ReleaseToken,
        offset: usize,
        len: usize,
    ) -> Option<&'a [u8]> {
        let from = if self.pieces.is_held_in_one(release_token, offset, len) {
            // SAFETY: the range lies in one of the pieces, and those lie in the mapping.
            unsafe { self.mapping.base.as_ptr().add(offset) }
        } else {
            self.readable_if_held(release_token, offset, len)?
        };
        // SAFETY: the range lies in a private mapping that lives as long as `self`. Nobody writes
        // it while the reference lives: every store into this memory runs inside
        // `Pieces::while_open` or while an `OpenPiece` lives, which there is not of pieces that are
        // held; and the only ways for an open piece to become held are `Pieces::complete` and
        // `OpenPiece::complete`. All need the one `WriteToken`, which is in one thread's hands at a
        // time, so no store is under way when a piece becomes held; `is_held` has seen, with
        // acquire, that this happened. A held piece opens only by `Pieces::open`, which needs
        // `release_token` mutably and so waits for the end of 'a.
        Some(unsafe { core::slice::from_raw_parts(from, len) })
    }
    /// Where a range begins that may lie in several pieces, or in none; nothing unless all of it is
    /// held.
    #[inline(never)]
    fn readable_if_held(
        &self,
        release_token: &ReleaseToken,
        offset: usize,
        len: usize,
    ) -> Option<*mut u8> {
        let from = self.mapping.readable(offset, len).ok()?;
        self.pieces
            .is_held(release_token, offset, len)
            .then_some(from.cast_mut())
    }
}
