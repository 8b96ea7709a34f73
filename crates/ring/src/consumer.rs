//! The receiving end of one direction.
//!
//! A cell is there when its flag says the lap that is due. The flag of the lap
//! before means that the ring is empty; any other value can only come from a
//! peer that breaks the rules, and ends this direction. A cell's words are
//! copied out once, and only the copy is used.
//!
//! The count of cells that are done with is published rarely: it is the only
//! line that the producer must fetch from here.

use crate::cells::{Cell, CellMemory};
use crate::geometry::Geometry;

/// Most cells whose return is held back.
const BATCH_CELLS: u64 = 32;
/// An expected flag that no cell can have.
const NEVER: u64 = u64::MAX;

/// A flag had a value that no correct producer writes, or the direction was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the producer wrote an impossible flag")]
pub struct Corrupt;

/// The receiving end.
pub struct Consumer<M> {
    memory: M,
    /// Number of the next cell.
    next: u64,
    /// The flag that the next cell has when it is there; [`NEVER`] when the end is closed.
    expected: u64,
    /// The count that will be published when `next` gets there.
    due: u64,
    published: u64,
    /// What the producer waited for when it was last rung for.
    answered: u64,
    batch: u64,
    mask: u64,
    bulk_held: usize,
    bulk_batch: usize,
}

impl<M: CellMemory> Consumer<M> {
    /// The receiving end of an unused memory.
    pub fn new(memory: M, geometry: Geometry) -> Self {
        let cells = u64::from(geometry.cells());
        let batch = (cells / 8).clamp(1, BATCH_CELLS);
        Self {
            memory,
            next: 0,
            expected: 1,
            due: batch,
            published: 0,
            answered: 0,
            batch,
            mask: cells - 1,
            bulk_held: 0,
            bulk_batch: geometry.bulk_bytes() as usize / 4,
        }
    }

    /// A copy of the next cell, if it is there. The same cell is shown until it is [`Consumer::done`].
    #[inline(always)]
    pub fn peek(&self) -> Result<Option<Cell>, Corrupt> {
        match self.memory.load(self.next, self.expected) {
            Ok(cell) => Ok(Some(cell)),
            Err(first) => self.absent(first),
        }
    }

    #[inline]
    fn absent(&self, first: u64) -> Result<Option<Cell>, Corrupt> {
        let before = (self.expected as u32).wrapping_sub(1);
        if self.expected != NEVER && first as u32 == before {
            Ok(None)
        } else {
            Err(Corrupt)
        }
    }

    /// Whether [`Consumer::peek`] would find something: a cell or an error.
    #[inline]
    pub fn is_pending(&self) -> bool {
        !matches!(self.peek(), Ok(None))
    }

    /// The cell that was last shown, and `bulk_bytes` that it named, are done with. True
    /// if the producer sleeps until it has the room that it was just given.
    #[inline(always)]
    #[must_use]
    pub fn done(&mut self, bulk_bytes: usize) -> bool {
        self.next += 1;
        if self.next & self.mask == 0 {
            self.next_lap();
        }
        if bulk_bytes > 0 {
            self.bulk_held += bulk_bytes;
            if self.bulk_held > self.bulk_batch {
                return self.give_back();
            }
        }
        self.next >= self.due && self.give_back()
    }

    #[cold]
    fn next_lap(&mut self) {
        if self.expected != NEVER {
            self.expected = u64::from((self.expected as u32).wrapping_add(1));
        }
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self) -> bool {
        self.memory.store_consumed(self.next);
        self.published = self.next;
        self.due = self.next + self.batch;
        self.bulk_held = 0;
        // What the producer says is a hint: a false one makes us ring for nothing.
        let awaited = self.memory.load_awaited();
        let waits = awaited != 0 && awaited != self.answered && awaited <= self.next;
        if waits {
            self.answered = awaited;
        }
        waits
    }

    /// Gives back everything that is held back. True as for [`Consumer::done`].
    #[inline]
    #[must_use]
    pub fn settle(&mut self) -> bool {
        self.published != self.next && self.give_back()
    }

    /// Ends this direction from this side: from now on everything is [`Corrupt`].
    #[cold]
    pub fn close(&mut self) {
        self.expected = NEVER;
    }

    /// How many cells are done with.
    pub fn taken(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests;
