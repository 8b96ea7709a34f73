//! Memory that its owner writes in place and that others only read (loans, decision 0024).
//!
//! The owner makes the file, pays for all of its pages, maps it, and seals it: from then on nobody,
//! not even the owner, gets another mapping that can be written, and nobody can punch holes into
//! it. Readers ask the kernel for just these seals, so no load of theirs can fault or cost them
//! memory, whatever the owner does.

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use crate::memfd::{Memfd, MemfdError};
use crate::newest::{self, Newest, OutsidePool, Word, Words};
use crate::region::{AdoptError, AttachedRegion, LastingWord, ReceivedRegion, RegionFiles};
pub use crate::shared::{Chunk, Chunks, View};
use crate::shared::{LINE_BYTES, Mapping, PAGE_BYTES};

/// The most bytes of a pool: a loan counts them in 32 bits.
const POOL_BYTES_MAX: u64 = (1 << 32) - PAGE_BYTES as u64;

/// A pool of chunks of one size, in the hands of the one process that writes it: a region for
/// reading.
#[derive(Debug)]
pub struct Pool {
    files: Arc<RegionFiles>,
    chunks: Chunks,
    /// Ends with the pool.
    _word: LastingWord,
}

/// A pool could not be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// It would be empty, or too large.
    #[error(
        "{count} chunks of {chunk_bytes} bytes are no pool: it has 1 byte or more in each, and less than 4 GiB together"
    )]
    Size {
        /// Bytes of a chunk.
        chunk_bytes: usize,
        /// How many.
        count: u32,
    },
    /// The memory could not be had.
    #[error(transparent)]
    Memory(#[from] MemfdError),
}

/// Bytes of the file of such a pool, if there can be one.
pub fn file_bytes(chunk_bytes: usize, count: u32) -> Option<usize> {
    bytes_with(chunk_bytes, count, 0)
}

/// The same of a pool with a head.
pub fn file_bytes_with_head(chunk_bytes: usize, count: u32) -> Option<usize> {
    bytes_with(chunk_bytes, count, LINE_BYTES)
}

fn bytes_with(chunk_bytes: usize, count: u32, head_bytes: usize) -> Option<usize> {
    if chunk_bytes == 0 || count == 0 || chunk_bytes as u64 > POOL_BYTES_MAX {
        return None;
    }
    let bytes = Chunks::stride_bytes(chunk_bytes).checked_mul(count as usize)?;
    let bytes = bytes.checked_add(head_bytes)?;
    let bytes = bytes.checked_next_multiple_of(PAGE_BYTES)?;
    (bytes as u64 <= POOL_BYTES_MAX).then_some(bytes)
}

/// Where the words of [`newest`] lie in a pool: the head behind all chunks, the others in the line
/// before a message.
struct InPool<'a> {
    mapping: &'a Mapping,
    chunk_bytes: usize,
    count: u32,
}

impl InPool<'_> {
    fn offset_of(&self, word: Word) -> usize {
        let stride = Chunks::stride_bytes(self.chunk_bytes);
        match word {
            Word::Head => stride * self.count as usize,
            Word::Stamp(chunk) => stride * chunk as usize,
            Word::Length(chunk) => stride * chunk as usize + size_of::<u64>(),
        }
    }
}

impl Words for InPool<'_> {
    #[inline]
    fn load(&self, word: Word) -> u64 {
        // A pool that is too short has no newest version.
        self.mapping.load_u64(self.offset_of(word)).unwrap_or(0)
    }

    #[inline]
    fn store(&self, word: Word, value: u64) {
        let stored = self.mapping.store_u64(self.offset_of(word), value);
        debug_assert!(stored.is_ok(), "the pool was made with a head");
    }

    #[inline]
    fn barrier(&self, order: Ordering) {
        fence(order);
    }
}

impl Pool {
    /// A pool of `count` chunks for messages of up to `chunk_bytes`, present in full. Allocates.
    pub fn new(chunk_bytes: usize, count: u32) -> Result<Self, PoolError> {
        Self::of_length(chunk_bytes, count, file_bytes(chunk_bytes, count))
    }

    /// The same with a head, which says where the newest version is. Allocates.
    pub fn with_head(chunk_bytes: usize, count: u32) -> Result<Self, PoolError> {
        Self::of_length(chunk_bytes, count, file_bytes_with_head(chunk_bytes, count))
    }

    fn of_length(chunk_bytes: usize, count: u32, len: Option<usize>) -> Result<Self, PoolError> {
        let size = PoolError::Size { chunk_bytes, count };
        let len = len.ok_or(size)?;
        let (file, mapping) = Memfd::create_for_readers("hamlyn-loans", len)?;
        let chunks = Chunks::new(mapping, chunk_bytes, count).map_err(|_| size)?;
        let (word, state) = LastingWord::new()?;
        Ok(Self {
            files: Arc::new(RegionFiles::new(Arc::new(file), state)),
            chunks,
            _word: word,
        })
    }

    /// Its chunks.
    #[inline]
    pub fn chunks(&mut self) -> &mut Chunks {
        &mut self.chunks
    }

    /// Its chunks, to be counted.
    pub fn state(&self) -> &Chunks {
        &self.chunks
    }

    fn words(&self) -> InPool<'_> {
        InPool {
            mapping: self.chunks.mapping(),
            chunk_bytes: self.chunks.chunk_bytes(),
            count: self.chunks.count(),
        }
    }

    /// The program is about to write a chunk of a pool with a head: from now on nobody takes it
    /// for a version.
    #[inline]
    pub fn begin_version(&self, chunk: &mut Chunk) {
        newest::begin(&self.words(), chunk.index());
    }

    /// A chunk of a pool with a head is that version.
    #[inline]
    pub fn finish_version(&self, chunk: &mut Chunk, number: u64) {
        newest::finish(&self.words(), chunk.index(), number, chunk.len() as u64);
    }

    /// That chunk has the newest version. It must not be written until another has.
    #[inline]
    pub fn show_newest(&self, chunk: &Chunk) {
        newest::show(&self.words(), chunk.index());
    }

    /// The files that readers are given.
    pub fn files(&self) -> &Arc<RegionFiles> {
        &self.files
    }

    /// Bytes of the file.
    pub fn length_bytes(&self) -> u64 {
        self.files.length_bytes()
    }
}

/// Somebody else's pool, which this process reads.
#[derive(Clone, Debug)]
pub struct SharedPool {
    region: Arc<AttachedRegion>,
}

impl SharedPool {
    /// Maps a region that a peer says is a pool, if the kernel confirms that it is sealed and all
    /// there.
    pub fn adopt(received: ReceivedRegion) -> Result<Self, AdoptError> {
        if received.length_bytes > POOL_BYTES_MAX {
            return Err(AdoptError::Length(received.length_bytes));
        }
        let region = Arc::new(AttachedRegion::adopt_present(received)?);
        Ok(Self { region })
    }

    /// A pool that was adopted before.
    pub fn of_region(region: Arc<AttachedRegion>) -> Self {
        Self { region }
    }

    /// The region that it is.
    pub fn region(&self) -> &Arc<AttachedRegion> {
        &self.region
    }

    /// A view of a range; nothing if it does not lie in the pool.
    #[inline]
    pub fn view(&self, offset: usize, len: usize) -> Option<View<'_>> {
        View::new(self.region.mapping(), offset, len).ok()
    }

    /// Whether [`SharedPool::copy_newest`] is worth a try: the head shows a version whose number
    /// is `from` or more, or one that is none.
    #[inline]
    pub fn shows_newer(&self, chunk_bytes: usize, count: u32, from: u64) -> bool {
        newest::shows_newer(&self.words(chunk_bytes, count), count, from)
    }

    fn words(&self, chunk_bytes: usize, count: u32) -> InPool<'_> {
        InPool {
            mapping: self.region.mapping(),
            chunk_bytes,
            count,
        }
    }

    /// Copies the newest version out of a pool with a head, if its number is `from` or more:
    /// whole, whatever the writer does if it keeps the rules. Nothing if there is none, or if the
    /// writer was always faster. `into` must have room for
    /// `chunk_bytes`, and has the version afterwards. Does not allocate.
    pub fn copy_newest(
        &self,
        chunk_bytes: usize,
        count: u32,
        from: u64,
        into: &mut Vec<u8>,
    ) -> Result<Option<Newest>, OutsidePool> {
        let words = self.words(chunk_bytes, count);
        let copy = |chunk, len: usize| {
            into.resize(len, 0);
            let copied = self
                .region
                .mapping()
                .copy_out(Chunks::offset_of(chunk, chunk_bytes), into);
            debug_assert!(copied.is_ok(), "a pool has all of its chunks");
        };
        newest::copy_newest(&words, count, chunk_bytes, from, copy)
    }

    /// Its size.
    pub fn length_bytes(&self) -> u64 {
        self.region.length_bytes()
    }
}

#[cfg(test)]
mod tests;
