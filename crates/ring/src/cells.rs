//! The cells of one direction, as the two ends see them.
//!
//! [`CellMemory`] is all that producer and consumer know of memory, so that
//! the model checker can run the very same logic on its own atomics.
//! [`SharedCells`] is the memory they have in earnest.

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};

use crate::geometry::Geometry;
use crate::memfd::reserve;
use crate::shared::{LINE_WORDS, Lines, Mapping, OutOfRange, Word};

/// A cell: one line. The low 32 bits of its first word are the flag, which counts laps.
pub type Cell = [u64; LINE_WORDS];

/// The bits of a cell's first word that belong to the ring.
pub const FLAG_MASK: u64 = u32::MAX as u64;

/// Where cells lie, and the count that the consumer gives back.
pub trait CellMemory {
    /// Loads the first word of a cell with acquire, and if its flag is `expected`, the other
    /// words too; else only the first word is returned. Each word is loaded once. The
    /// index is taken modulo the number of cells.
    fn load(&self, index: u64, expected: u64) -> Result<Cell, u64>;
    /// Stores a cell, its first word last and with release.
    fn store(&self, index: u64, cell: &Cell);
    /// Loads the consumer's count with acquire.
    fn load_consumed(&self) -> u64;
    /// Stores the consumer's count with release.
    fn store_consumed(&self, count: u64);
    /// Stores the count that the producer waits for with release; zero if it waits for none.
    fn store_awaited(&self, count: u64);
    /// Loads it, after a full barrier: whoever stored it, passed a barrier and saw no new
    /// count is seen here.
    fn load_awaited(&self) -> u64;
    /// Makes sure that the first `to` bytes of bulk are present, given that the
    /// first `from` are. False if that cannot be had.
    fn grow_bulk(&self, from: usize, to: usize) -> bool;
}

/// Cells in a mapping.
pub struct SharedCells {
    lines: Lines,
    consumed: Word,
    awaited: Word,
    bulk_offset: usize,
    file: Option<OwnedFd>,
}

impl SharedCells {
    /// The cells of a memory with this layout. `file` is what the mapping shows, if bulk
    /// has to be reserved when it is first used.
    pub fn new(
        mapping: &Arc<Mapping>,
        geometry: Geometry,
        file: Option<OwnedFd>,
    ) -> Result<Self, OutOfRange> {
        if mapping.len() < geometry.total_bytes() {
            return Err(OutOfRange);
        }
        let lines = Lines::new(
            Arc::clone(mapping),
            geometry.cells_offset(),
            geometry.cells() as usize,
        )?;
        let consumed = Word::new(Arc::clone(mapping), geometry.consumed_offset())?;
        let awaited = Word::new(Arc::clone(mapping), geometry.awaited_offset())?;
        Ok(Self {
            lines,
            consumed,
            awaited,
            bulk_offset: geometry.bulk_offset(),
            file,
        })
    }
}

impl CellMemory for SharedCells {
    #[inline(always)]
    fn load(&self, index: u64, expected: u64) -> Result<Cell, u64> {
        let line = self.lines.line(index);
        let first = line[0].load(Ordering::Acquire);
        if first & FLAG_MASK != expected {
            return Err(first);
        }
        let word = |at: usize| line[at].load(Ordering::Relaxed);
        Ok([
            first,
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            word(6),
            word(7),
        ])
    }

    #[inline(always)]
    fn store(&self, index: u64, cell: &Cell) {
        let line = self.lines.line(index);
        line[1].store(cell[1], Ordering::Relaxed);
        line[2].store(cell[2], Ordering::Relaxed);
        line[3].store(cell[3], Ordering::Relaxed);
        line[4].store(cell[4], Ordering::Relaxed);
        line[5].store(cell[5], Ordering::Relaxed);
        line[6].store(cell[6], Ordering::Relaxed);
        line[7].store(cell[7], Ordering::Relaxed);
        line[0].store(cell[0], Ordering::Release);
    }

    #[inline(always)]
    fn load_consumed(&self) -> u64 {
        self.consumed.atomic().load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_consumed(&self, count: u64) {
        self.consumed.atomic().store(count, Ordering::Release);
    }

    #[inline]
    fn store_awaited(&self, count: u64) {
        self.awaited.atomic().store(count, Ordering::Release);
    }

    #[inline]
    fn load_awaited(&self) -> u64 {
        fence(Ordering::SeqCst);
        self.awaited.atomic().load(Ordering::Relaxed)
    }

    #[cold]
    fn grow_bulk(&self, from: usize, to: usize) -> bool {
        match &self.file {
            None => true,
            Some(file) => reserve(file.as_fd(), self.bulk_offset + from, to - from).is_ok(),
        }
    }
}
