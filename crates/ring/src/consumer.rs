//! The receiving end of one direction.
//!
//! A cell is there when its flag says the lap that is due, and is the last of its lap if its flag says
//! that too. A flag of an earlier lap, or none, means that the ring is empty. One of a
//! lap to come can only be written by a peer that breaks the rules, and so can a lap that is longer than
//! the ring: they end this direction. A cell's words are copied out once, and only the copy is used.
//!
//! The count of cells that are done with is published rarely: it is the only
//! line that the producer must fetch from here.

use crate::cells::{
    Cell, CellMemory, FIRST_LAP, FIRST_WORDS, FLAG_MASK, LAST, STEP_BYTES, lap_after,
};
use crate::geometry::Geometry;

/// Most cells whose return is held back.
const BATCH_CELLS_MAX: u64 = 256;
/// The part of a lap whose return is held back.
const BATCHES_PER_LAP: u64 = 4;
/// An expected flag that no cell can have.
const NEVER: u64 = u64::MAX;

/// A flag had a value that no correct producer writes, or the direction was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the producer wrote an impossible flag")]
pub struct Corrupt;

/// The receiving end.
pub struct Consumer<M> {
    memory: M,
    /// The place of the next cell.
    at_bytes: u64,
    /// The flag that the next cell has when it is there; [`NEVER`] when the end is closed.
    expected: u64,
    /// The place from which on [`Consumer::done`] has more to do: the lap ends, or
    /// credit is due.
    due_bytes: u64,
    /// Number of the first cell of this lap.
    base: u64,
    published: u64,
    /// What the producer waited for when it was last rung for.
    answered: u64,
    batch_bytes: u64,
    cells_bytes: u64,
    bulk_held: usize,
    bulk_batch: usize,
}

/// Whether the flag belongs to a lap before the one that is due. Laps are counted
/// modulo 2^31, and no flag in memory is older than half of that.
#[inline(always)]
fn is_older(first: u64, expected: u64) -> bool {
    ((first as u32).wrapping_sub(expected as u32) as i32) < 0
}

impl<M: CellMemory> Consumer<M> {
    /// The receiving end of an unused memory.
    pub fn new(memory: M, geometry: Geometry) -> Self {
        let batch = (u64::from(geometry.cells_idle()) / BATCHES_PER_LAP).clamp(1, BATCH_CELLS_MAX);
        let batch_bytes = batch * STEP_BYTES;
        Self {
            memory,
            at_bytes: 0,
            expected: FIRST_LAP,
            due_bytes: batch_bytes,
            base: 0,
            published: 0,
            answered: 0,
            batch_bytes,
            cells_bytes: u64::from(geometry.cells()) * STEP_BYTES,
            bulk_held: 0,
            bulk_batch: geometry.bulk_bytes() as usize / 4,
        }
    }

    /// A copy of the next cell, if it is there. The same cell is shown until it is [`Consumer::done`].
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Cell>, Corrupt> {
        loop {
            match self.memory.load(self.at_bytes, self.expected) {
                Ok(cell) => return Ok(Some(cell)),
                Err(first) if is_older(first, self.expected) && self.expected != NEVER => {
                    return Ok(None);
                }
                Err(first) => {
                    if !self.is_last(first)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// As [`Consumer::peek`], but sees nothing in the last cell of a lap, nor in an error: the
    /// shorter way, for those who look by the other when this shows nothing.
    #[inline(always)]
    pub fn peek_due(&self) -> Option<Cell> {
        self.memory.load(self.at_bytes, self.expected).ok()
    }

    /// Whether [`Consumer::peek`] shows a cell; then so does [`Consumer::peek_due`].
    #[inline]
    pub fn is_due(&mut self) -> bool {
        matches!(self.peek(), Ok(Some(_)))
    }

    /// As [`Consumer::peek_due`], but shows only a cell whose first words pass the test.
    #[inline(always)]
    pub fn peek_due_if(&self, test: impl FnOnce(&[u64; FIRST_WORDS]) -> bool) -> Option<Cell> {
        self.memory.load_if(self.at_bytes, self.expected, test)
    }

    /// Whether the cell that is due is there and the last of its lap; from now on that is expected.
    /// False if nothing is there after all.
    #[cold]
    #[inline(never)]
    fn is_last(&mut self, first: u64) -> Result<bool, Corrupt> {
        let flag = first & FLAG_MASK;
        if self.expected == NEVER {
            Err(Corrupt)
        } else if flag == self.expected | LAST {
            self.expected |= LAST;
            self.due_bytes = 0;
            Ok(true)
        } else if flag == 0 {
            Ok(false)
        } else {
            Err(Corrupt)
        }
    }

    /// Whether [`Consumer::peek`] would find something: a cell or an error.
    #[inline]
    pub fn is_pending(&self) -> bool {
        let first = self.memory.load_first(self.at_bytes);
        self.expected == NEVER || !(is_older(first, self.expected) || first & FLAG_MASK == 0)
    }

    /// The cell that was last shown, and `bulk_bytes` that it named, are done with. True
    /// if the producer sleeps until it has the room that it was just given.
    #[inline(always)]
    #[must_use]
    pub fn done(&mut self, bulk_bytes: usize) -> bool {
        self.at_bytes += STEP_BYTES;
        if bulk_bytes > 0 {
            self.bulk_held += bulk_bytes;
            if self.bulk_held > self.bulk_batch {
                return self.step();
            }
        }
        self.at_bytes >= self.due_bytes && self.step()
    }

    /// The lap has ended, or credit is due.
    #[cold]
    #[inline(never)]
    fn step(&mut self) -> bool {
        if self.expected != NEVER {
            if self.expected & LAST != 0 {
                self.base = self.taken();
                self.at_bytes = 0;
                self.expected = lap_after(self.expected);
            } else if self.at_bytes >= self.cells_bytes {
                self.close();
            }
        }
        self.give_back()
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self) -> bool {
        let taken = self.taken();
        self.memory.store_consumed(taken);
        self.published = taken;
        self.bulk_held = 0;
        // Never more than this part of the lap: whatever its length, and however short the next one is,
        // what is held back never keeps the producer waiting.
        let held_bytes = (self.at_bytes / BATCHES_PER_LAP).clamp(
            self.batch_bytes,
            self.batch_bytes.max(BATCH_CELLS_MAX * STEP_BYTES),
        );
        if self.expected & LAST == 0 {
            self.due_bytes = (self.at_bytes + held_bytes).min(self.cells_bytes);
        }
        // What the producer says is a hint: a false one makes us ring for nothing.
        let awaited = self.memory.load_awaited();
        let waits = awaited != 0 && awaited != self.answered && awaited <= taken;
        if waits {
            self.answered = awaited;
        }
        waits
    }

    /// Gives back everything that is held back. True as for [`Consumer::done`].
    #[inline]
    #[must_use]
    pub fn settle(&mut self) -> bool {
        self.published != self.taken() && self.give_back()
    }

    /// Gives back everything that is held back if there is bulk in it: what the producer may
    /// wait for though nothing more comes. True as for [`Consumer::done`].
    #[inline(always)]
    #[must_use]
    pub fn settle_bulk(&mut self) -> bool {
        self.bulk_held != 0 && self.give_back()
    }

    /// Ends this direction from this side: from now on everything is [`Corrupt`].
    #[cold]
    pub fn close(&mut self) {
        self.expected = NEVER;
    }

    /// Goes on with another lap than the first.
    #[cfg(test)]
    pub(crate) fn expect_lap(&mut self, flag: u64) {
        self.expected = flag;
    }

    /// How many cells are done with.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.base + self.at_bytes / STEP_BYTES
    }
}

#[cfg(test)]
mod tests;
