//! Memory that its owner writes in place and that others only read (loans, decision 0024).
//!
//! The owner makes the file, pays for all of its pages, maps it, and seals it: from then on nobody, not even the owner, gets
//! another mapping that can be written, and nobody can punch holes into it. Readers ask the kernel for just these seals, so no
//! load of theirs can fault or cost them memory, whatever the owner does.

use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};

use crate::Errno;
use crate::lending::{BorrowError, LENT_BYTES_MAX};
use crate::memfd::{Memfd, MemfdError};
use crate::shared::{Access, Mapping, PAGE_BYTES};
pub use crate::shared::{Chunk, Chunks, View};

/// A pool of chunks of one size, in the hands of the one process that writes it.
#[derive(Debug)]
pub struct Pool {
    file: Memfd,
    chunks: Chunks,
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
    if chunk_bytes == 0 || count == 0 || chunk_bytes as u64 > LENT_BYTES_MAX {
        return None;
    }
    let bytes = Chunks::stride_bytes(chunk_bytes).checked_mul(count as usize)?;
    let bytes = bytes.checked_next_multiple_of(PAGE_BYTES)?;
    (bytes as u64 <= LENT_BYTES_MAX).then_some(bytes)
}

impl Pool {
    /// A pool of `count` chunks for messages of up to `chunk_bytes`, present in full. Allocates.
    pub fn new(chunk_bytes: usize, count: u32) -> Result<Self, PoolError> {
        let size = PoolError::Size { chunk_bytes, count };
        let len = file_bytes(chunk_bytes, count).ok_or(size)?;
        let (file, mapping) = Memfd::create_for_readers("hamlyn-loans", len)?;
        let chunks = Chunks::new(mapping, chunk_bytes, count).map_err(|_| size)?;
        Ok(Self { file, chunks })
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

    /// A descriptor for a reader.
    pub fn descriptor(&self) -> Result<OwnedFd, Errno> {
        self.file
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::MFILE))
    }

    /// Bytes of the file.
    pub fn length_bytes(&self) -> u64 {
        self.file.len() as u64
    }
}

/// Somebody else's pool, which this process reads.
#[derive(Clone, Debug)]
pub struct SharedPool {
    mapping: Arc<Mapping>,
}

impl SharedPool {
    /// Maps a file that a peer says is a pool of that many bytes, if the kernel confirms that it is sealed and all there.
    pub fn adopt(file: OwnedFd, length_bytes: u64) -> Result<Self, BorrowError> {
        let page = PAGE_BYTES as u64;
        if length_bytes == 0 || length_bytes > LENT_BYTES_MAX || !length_bytes.is_multiple_of(page)
        {
            return Err(BorrowError::Length(length_bytes));
        }
        let file = Memfd::adopt_for_reading(file, length_bytes as usize)?;
        let mapping = file.map(Access::ReadOnly).map_err(BorrowError::Map)?;
        mapping.populate_for_loads();
        Ok(Self {
            mapping: Arc::new(mapping),
        })
    }

    /// A view of a range; nothing if it does not lie in the pool.
    #[inline]
    pub fn view(&self, offset: usize, len: usize) -> Option<View<'_>> {
        View::new(&self.mapping, offset, len).ok()
    }

    /// Its size.
    pub fn length_bytes(&self) -> u64 {
        self.mapping.len() as u64
    }
}

#[cfg(test)]
mod tests;
