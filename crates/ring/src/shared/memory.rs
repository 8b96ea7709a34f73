//! The memory of an area: the only place where a reference into memory that others
//! may write is given out, and why it is sound.

use core::ops::Range;
use core::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hamlyn_engine::limits::SHORT_BYTES_MAX;
use hamlyn_engine::memory::{Denied, ShortData, ShortSource};
use hamlyn_engine::operation::Atomic;

use super::{Access, Mapping, OutOfRange, StoreKind, store_short};
use crate::Errno;
use crate::handover::{Pieces, ReleaseToken, WriteToken};
use crate::memfd::{Memfd, MemfdError, map_failed};
use crate::region::ShareError;

/// The memory of an area: plain, or divided into pieces that are handed over.
pub(crate) struct Memory {
    mapping: Mapping,
    /// None if it is plain; otherwise all of the mapping lies in them, and they in it.
    pieces: Pieces<AtomicU32>,
    /// The pages of pieces are present from the first store on, until the pieces are opened.
    is_sparse: bool,
    /// There if it may be shared; never if it has pieces or a guard.
    sharing: Option<Mutex<Sharing>>,
    /// Keeps the mapping alive if it is the program's own. Dropped after it.
    guard: Option<Box<dyn Send + Sync>>,
}

/// The state of memory that may be shared with other processes.
struct Sharing {
    /// In it lies at least what was never exchanged.
    file: Arc<Memfd>,
    /// All of the memory lies in the file.
    is_whole: bool,
    /// Only this library uses the file.
    is_ours: bool,
    /// Pages appear when they are touched; otherwise all of them are present.
    is_sparse: bool,
    /// Ranges that others have.
    shared: Vec<Range<usize>>,
}

impl Memory {
    fn with(mapping: Mapping, pieces: Pieces<AtomicU32>) -> Self {
        Self {
            mapping,
            pieces,
            is_sparse: false,
            sharing: None,
            guard: None,
        }
    }

    pub(crate) fn plain(len: usize) -> Result<Self, Errno> {
        Ok(Self::with(Mapping::anonymous(len)?, Pieces::none()))
    }

    /// Memory of the program, which `guard` keeps.
    pub(super) fn guarded(mapping: Mapping, guard: Box<dyn Send + Sync>) -> Self {
        Self {
            guard: Some(guard),
            ..Self::with(mapping, Pieces::none())
        }
    }

    /// Plain memory that is a mapping of all of a file, and may be shared.
    pub(crate) fn in_file(mapping: Mapping, file: Memfd, is_ours: bool, is_sparse: bool) -> Self {
        let sharing = Sharing {
            file: Arc::new(file),
            is_whole: true,
            is_ours,
            is_sparse,
            shared: Vec::new(),
        };
        Self {
            sharing: Some(Mutex::new(sharing)),
            ..Self::with(mapping, Pieces::none())
        }
    }

    /// True if nobody but the library can write it.
    #[inline]
    pub(crate) fn is_private(&self) -> bool {
        self.sharing.is_none() && self.guard.is_none()
    }

    fn sharing(&self) -> Result<MutexGuard<'_, Sharing>, ShareError> {
        let sharing = self.sharing.as_ref().ok_or(ShareError::NotSharable)?;
        Ok(sharing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A file that has these pages and no others, sealed for that access.
    pub(crate) fn share(
        &self,
        range: Range<usize>,
        access: Access,
    ) -> Result<Arc<Memfd>, ShareError> {
        let mut sharing = self.sharing()?;
        let overlaps = |other: &Range<usize>| range.start < other.end && other.start < range.end;
        if sharing.shared.iter().any(overlaps) {
            return Err(ShareError::SharedAlready);
        }
        let is_all = range.len() == self.len();
        let file = if is_all && sharing.is_whole {
            Arc::clone(&sharing.file)
        } else {
            let source = sharing.is_whole.then(|| (&*sharing.file, range.start));
            let fresh = Arc::new(self.exchange(&range, source, sharing.is_sparse)?);
            if is_all {
                sharing.file = Arc::clone(&fresh);
            } else if sharing.is_ours {
                // These pages of the area's file are in nobody's use any more.
                sharing.file.punch(range.clone());
            }
            sharing.is_whole = is_all;
            fresh
        };
        file.seal_shared(access)?;
        sharing.shared.push(range);
        Ok(file)
    }

    /// Puts a file that nobody else knows into the place of one that is shared.
    pub(crate) fn take_back(&self, range: &Range<usize>, file: &Memfd) -> Result<(), ShareError> {
        let mut sharing = self.sharing()?;
        let fresh = self.exchange(range, Some((file, 0)), sharing.is_sparse)?;
        if range.len() == self.len() {
            sharing.file = Arc::new(fresh);
            sharing.is_ours = true;
        }
        sharing.shared.retain(|other| other != range);
        Ok(())
    }

    /// Puts a fresh file with the same contents into the place of a range. `source` says in which
    /// file, and where in it, all of the range lies.
    fn exchange(
        &self,
        range: &Range<usize>,
        source: Option<(&Memfd, usize)>,
        is_sparse: bool,
    ) -> Result<Memfd, MemfdError> {
        let (start, len) = (range.start, range.len());
        let fresh = Memfd::create_unshared(len)?;
        let to = fresh.map(Access::Writable).map_err(map_failed)?;
        match (is_sparse, source) {
            (false, _) => {
                // The pages are made when they are touched first: only then can they be huge ones.
                to.prefer_huge_pages(0, len);
                to.populate().map_err(|errno| MemfdError::Memory {
                    needed_bytes: len as u64,
                    errno,
                })?;
                Mapping::copy_between(&self.mapping, start, &to, 0, len, StoreKind::Temporal)
                    .map_err(|OutOfRange| map_failed(Errno::INVAL))?;
            }
            (true, Some((file, first))) => {
                let mut from = first;
                // Each turn begins beyond the last one, so holders that punch holes meanwhile do
                // not keep us here.
                while let Some(present) = file.next_present(from, first + len)? {
                    from = present.end;
                    let present = start + present.start - first..start + present.end - first;
                    self.mapping.copy_present(present, start, &fresh, &to)?;
                }
            }
            (true, None) => self.mapping.copy_used(range.clone(), &fresh, &to)?,
        }
        self.mapping
            .replace(start, len, &fresh)
            .map_err(map_failed)?;
        if !is_sparse {
            self.mapping.prefer_huge_pages(start, len);
            self.mapping.lock(start, len);
        }
        Ok(fresh)
    }

    /// Bytes of memory that its file takes.
    #[cfg(test)]
    pub(crate) fn file_blocks(&self) -> usize {
        let sharing = self.sharing().unwrap();
        let blocks = rustix::fs::fstat(&*sharing.file).unwrap().st_blocks;
        blocks as usize * 512
    }

    /// Pages of this memory that are present.
    #[cfg(test)]
    pub(crate) fn present_pages(&self) -> usize {
        unsafe extern "C" {
            fn mincore(from: *mut u8, len: usize, present: *mut u8) -> core::ffi::c_int;
        }
        let mut present = vec![0; self.len().div_ceil(rustix::param::page_size())];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let failed =
            unsafe { mincore(self.mapping.base.as_ptr(), self.len(), present.as_mut_ptr()) };
        assert_eq!(failed, 0);
        present.iter().filter(|page| **page & 1 != 0).count()
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// `count` pieces of `1 << shift` bytes, and the rights to open and to write them.
    pub(crate) fn in_pieces(
        count: u32,
        shift: u32,
        is_sparse: bool,
    ) -> Result<(Self, ReleaseToken, WriteToken), Errno> {
        let len = (count as usize)
            .checked_mul(1 << shift)
            .ok_or(Errno::NOMEM)?;
        let mapping = match is_sparse {
            true => Mapping::sparse(len)?,
            false => Mapping::anonymous(len)?,
        };
        let (pieces, release_token, write_token) = Pieces::new(count, shift).ok_or(Errno::NOMEM)?;
        let memory = Self {
            is_sparse,
            ..Self::with(mapping, pieces)
        };
        Ok((memory, release_token, write_token))
    }

    /// Opens pieces to the interface, without their pages if the memory is sparse. Pieces that do
    /// not exist are ignored. `release_token` must be the one that was made with this memory.
    pub(crate) fn open(&self, release_token: &mut ReleaseToken, pieces: Range<u32>) {
        if self.is_sparse {
            let end = pieces.end.min(self.pieces.count());
            let start = pieces.start.min(end);
            let offset = (start as usize) << self.pieces.shift();
            let len = ((end - start) as usize) << self.pieces.shift();
            // Those that are open already may be written at this moment.
            if self.pieces.is_held(release_token, offset, len) {
                // SAFETY: the token is borrowed mutably, so no reference that `view` gave out
                // lives; and nobody writes a piece that is held, as `view` says.
                unsafe { self.mapping.discard(offset, len) };
            }
        }
        self.pieces.open(release_token, pieces);
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
