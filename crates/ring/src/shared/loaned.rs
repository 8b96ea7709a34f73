//! Loaned memory: chunks that their one owner writes by reference, and views of them in other
//! processes.
//!
//! Why a `&mut [u8]` into shared memory is sound here, and nowhere else: no other process can write
//! the file (`Memfd::create_for_readers`), [`Chunks`] gives each chunk out once, and the mapping is
//! reachable through chunks only. A view is in another mapping; the writer may change what it shows
//! at any time, so it is read by copies.

use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::sync::Arc;

use super::{LINE_BYTES, Mapping, OutOfRange};

/// Bytes before the message of a chunk, for the protocol.
const PREFIX_BYTES: usize = LINE_BYTES;

/// A pool in chunks of one size, in its owner's hands: which of them are free.
pub struct Chunks {
    mapping: Arc<Mapping>,
    chunk_bytes: usize,
    count: u32,
    /// Each at most once; none that is out.
    free: Vec<u32>,
}

impl Chunks {
    /// Bytes from one chunk to the next.
    pub const fn stride_bytes(chunk_bytes: usize) -> usize {
        PREFIX_BYTES + chunk_bytes.next_multiple_of(LINE_BYTES)
    }

    /// Where the message of a chunk begins.
    pub const fn offset_of(index: u32, chunk_bytes: usize) -> usize {
        index as usize * Self::stride_bytes(chunk_bytes) + PREFIX_BYTES
    }

    /// Divides a mapping that no other process writes, and nothing else of this process has.
    pub(crate) fn new(
        mapping: Mapping,
        chunk_bytes: usize,
        count: u32,
    ) -> Result<Self, OutOfRange> {
        let len = Self::stride_bytes(chunk_bytes).checked_mul(count as usize);
        mapping.writable(0, len.ok_or(OutOfRange)?)?;
        Ok(Self {
            mapping: Arc::new(mapping),
            chunk_bytes,
            count,
            free: (0..count).rev().collect(),
        })
    }

    /// A free chunk, for a message of `len` bytes; nothing if none is free, or the message is too
    /// long.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Chunk> {
        if len > self.chunk_bytes {
            return None;
        }
        let index = self.free.pop()?;
        let offset = index as usize * Self::stride_bytes(self.chunk_bytes);
        let at = self.mapping.writable(offset, PREFIX_BYTES + len);
        let at = at.ok().and_then(NonNull::new);
        Some(Chunk {
            at: at.unwrap_or_else(|| unreachable!("all chunks lie in the mapping")),
            len,
            index,
            mapping: Arc::clone(&self.mapping),
        })
    }

    /// Takes a chunk back.
    ///
    /// # Panics
    ///
    /// If it is another pool's.
    #[inline]
    pub fn give_back(&mut self, chunk: Chunk) {
        assert!(
            Arc::ptr_eq(&self.mapping, &chunk.mapping),
            "a chunk goes back to its own pool"
        );
        // There is room: each of `count` chunks is here or out.
        self.free.push(chunk.index);
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// How many chunks there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// How many chunks are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Bytes of the longest message.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }
}

impl core::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (free, count, bytes) = (self.free.len(), self.count, self.chunk_bytes);
        write!(f, "Chunks({free} of {count} free, {bytes} bytes each)")
    }
}

/// A chunk that was taken: its message is its owner's to read and write. It goes back by
/// [`Chunks::give_back`]; one that is dropped is never given out again.
pub struct Chunk {
    at: NonNull<u8>,
    len: usize,
    index: u32,
    mapping: Arc<Mapping>,
}

// SAFETY: the memory has no affinity to a thread, and nothing but this chunk leads to it.
unsafe impl Send for Chunk {}
// SAFETY: a shared reference to it only reads, and nobody writes meanwhile.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Its number in the pool.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Puts eight bytes right before the message.
    #[inline]
    pub fn set_mark(&mut self, mark: u64) {
        let at = PREFIX_BYTES - size_of::<u64>();
        self.whole_mut()[at..PREFIX_BYTES].copy_from_slice(&mark.to_le_bytes());
    }

    /// The mark, and the message behind it.
    #[inline]
    pub fn marked(&self) -> &[u8] {
        &self.whole()[PREFIX_BYTES - size_of::<u64>()..]
    }

    #[inline]
    fn whole(&self) -> &[u8] {
        // SAFETY: `Chunks::take` has checked prefix and message; both are initialised (they come
        // from the kernel), mapped as long as `self.mapping` is there, and written by nobody else:
        // see the module.
        unsafe { core::slice::from_raw_parts(self.at.as_ptr(), PREFIX_BYTES + self.len) }
    }

    #[inline]
    fn whole_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above. `self` is borrowed mutably, chunks do not overlap, and other processes
        // only read: this process does not see whether they do.
        unsafe { core::slice::from_raw_parts_mut(self.at.as_ptr(), PREFIX_BYTES + self.len) }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.whole()[PREFIX_BYTES..]
    }
}

impl DerefMut for Chunk {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.whole_mut()[PREFIX_BYTES..]
    }
}

impl core::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Chunk({}, {} bytes)", self.index, self.len)
    }
}

/// A range of memory that somebody else writes, to be read in place. Its bytes may change between
/// two loads: what must not change is copied out first, and only the copy is looked at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    mapping: &'a Mapping,
    offset: usize,
    len: usize,
}

impl<'a> View<'a> {
    #[inline]
    pub(crate) fn new(mapping: &'a Mapping, offset: usize, len: usize) -> Result<Self, OutOfRange> {
        mapping.readable(offset, len)?;
        Ok(Self {
            mapping,
            offset,
            len,
        })
    }

    /// How many bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the bytes lie, for programs that load them by other means. They may change between two
    /// loads.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.mapping.base.as_ptr().wrapping_add(self.offset)
    }

    /// Copies bytes out, from `offset` on. Bytes that are written at the same time come out old or
    /// new.
    #[inline]
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> Result<(), OutOfRange> {
        if offset > self.len || into.len() > self.len - offset {
            return Err(OutOfRange);
        }
        self.mapping.copy_out(self.offset + offset, into)
    }

    /// The bytes in place.
    ///
    /// # Safety
    ///
    /// No process may write them while the slice lives. Nothing enforces that: the writer must be
    /// trusted not to touch a message before its readers have given it back, and the sample must
    /// not be given back.
    #[inline]
    pub unsafe fn as_slice(&self) -> &'a [u8] {
        // SAFETY: `new` has checked the range; it is initialised and mapped as long as
        // `self.mapping` is there. The caller vouches that it does not change.
        unsafe {
            let at = self.mapping.base.as_ptr().add(self.offset);
            core::slice::from_raw_parts(at, self.len)
        }
    }
}

impl core::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "View({} bytes)", self.len)
    }
}
