//! The receiving end of one direction.
//!
//! A cell is there when its flag says the generation that is due, and is the last of its generation if its flag says
//! that too. A flag of an earlier generation, or none, means that the ring is empty. One of a
//! generation to come can only be written by a peer that breaks the rules, and so can a generation that is longer than
//! the ring: they end this direction. A cell's words are copied out once, and only the copy is used.
//!
//! The count of cells that are done with is published rarely: it is the only
//! line that the producer must fetch from here.

use crate::cells::{
    Cell, CellMemory, FIRST_GENERATION, FLAG_MASK, LAST_OF_GENERATION, STEP_BYTES, generation_after,
};
use crate::geometry::Geometry;

/// Most cells whose return is held back.
const BATCH_CELLS_MAX: u64 = 256;
/// The part of a generation whose return is held back.
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
    /// From this place on there is more to do before the next cell: the generation has ended, or credit is due.
    due_bytes: u64,
    /// Number of the first cell of this generation.
    base: u64,
    published: u64,
    /// What the producer waited for when it was last rung for.
    answered: u64,
    batch_bytes: u64,
    cells_bytes: u64,
    arena_held: usize,
    arena_batch: usize,
}

/// Whether the flag belongs to a generation before the one that is due. Laps are counted
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
            expected: FIRST_GENERATION,
            due_bytes: batch_bytes,
            base: 0,
            published: 0,
            answered: 0,
            batch_bytes,
            cells_bytes: u64::from(geometry.cells()) * STEP_BYTES,
            arena_held: 0,
            arena_batch: geometry.arena_bytes() as usize / 4,
        }
    }

    /// A copy of the next cell, if it is there. The same cell is shown until it is [`Consumer::done`].
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Cell>, Corrupt> {
        debug_assert!(!self.is_step_due(), "credit is due first");
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

    /// The next cell in place, if it is there and its first word is `first`, which has no flag, but for a number up to `most`
    /// ([`number_in`](crate::cells::number_in)), and that number: the fast path, which overlooks the last cell of a generation and errors, and sees
    /// nothing while [`Consumer::return_due_credit`] has something to do. To be followed by
    /// [`Consumer::took`], or nothing.
    #[inline(always)]
    pub fn look(&self, first: u64, most: u64) -> Option<(u64, M::InPlace<'_>)> {
        if self.at_bytes >= self.due_bytes {
            return None;
        }
        self.memory.look(self.at_bytes, self.expected | first, most)
    }

    /// The cell that was last shown by [`Consumer::look`] is done with.
    #[inline(always)]
    pub fn took(&mut self) {
        self.at_bytes += STEP_BYTES;
    }

    /// Whether something is to be done before the next cell.
    #[inline(always)]
    pub fn is_step_due(&self) -> bool {
        self.at_bytes >= self.due_bytes && self.expected != NEVER
    }

    /// Does what keeps [`Consumer::look`] from seeing a cell, if that is all: returns credit that is due, or
    /// expects the last cell of a generation. If so, true in it as for [`Consumer::done`].
    #[inline]
    #[must_use]
    pub fn return_due_credit(&mut self) -> Option<bool> {
        if self.is_step_due() {
            return Some(self.step());
        }
        let first = self.memory.load_first(self.at_bytes);
        if first & FLAG_MASK == self.expected | LAST_OF_GENERATION
            && self.expected & LAST_OF_GENERATION == 0
        {
            self.expect_last();
            return Some(false);
        }
        None
    }

    /// Whether the cell that is due is there and the last of its generation; from now on that is expected.
    /// False if nothing is there after all.
    #[cold]
    #[inline(never)]
    fn is_last(&mut self, first: u64) -> Result<bool, Corrupt> {
        let flag = first & FLAG_MASK;
        if self.expected == NEVER {
            Err(Corrupt)
        } else if flag == self.expected | LAST_OF_GENERATION {
            self.expect_last();
            Ok(true)
        } else if flag == 0 {
            Ok(false)
        } else {
            Err(Corrupt)
        }
    }

    fn expect_last(&mut self) {
        self.expected |= LAST_OF_GENERATION;
        self.due_bytes = self.at_bytes + STEP_BYTES;
    }

    /// Whether [`Consumer::peek`] would find something: a cell or an error.
    #[inline]
    pub fn is_pending(&self) -> bool {
        let first = self.memory.load_first(self.at_bytes);
        self.expected == NEVER
            || self.is_step_due()
            || !(is_older(first, self.expected) || first & FLAG_MASK == 0)
    }

    /// The cell that was last shown, and `arena_bytes` that it named, are done with. True
    /// if the producer sleeps until it has the room that it was just given.
    #[inline(always)]
    #[must_use]
    pub fn done(&mut self, arena_bytes: usize) -> bool {
        self.at_bytes += STEP_BYTES;
        if arena_bytes > 0 {
            self.arena_held += arena_bytes;
            if self.arena_held > self.arena_batch {
                return self.step();
            }
        }
        self.at_bytes >= self.due_bytes && self.step()
    }

    /// The generation has ended, or credit is due.
    #[cold]
    #[inline(never)]
    fn step(&mut self) -> bool {
        if self.expected != NEVER {
            if self.expected & LAST_OF_GENERATION != 0 {
                self.base = self.taken();
                self.at_bytes = 0;
                self.expected = generation_after(self.expected);
            } else if self.at_bytes >= self.cells_bytes {
                self.close();
            }
        }
        self.give_back()
    }

    #[inline]
    fn give_back(&mut self) -> bool {
        let taken = self.taken();
        self.memory.store_consumed(taken);
        self.published = taken;
        self.arena_held = 0;
        // Never more than this part of the generation: whatever its length, and however short the next one is,
        // what is held back never keeps the producer waiting.
        let held_bytes = (self.at_bytes / BATCHES_PER_LAP).clamp(
            self.batch_bytes,
            self.batch_bytes.max(BATCH_CELLS_MAX * STEP_BYTES),
        );
        if self.expected & LAST_OF_GENERATION == 0 {
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
    pub fn return_credit(&mut self) -> bool {
        if self.is_step_due() {
            return self.step();
        }
        self.published != self.taken() && self.give_back()
    }

    /// Gives back everything that is held back if packets held payload in the arena: what the producer may
    /// wait for though nothing more comes. True as for [`Consumer::done`].
    #[inline(always)]
    #[must_use]
    pub fn return_arena_credit(&mut self) -> bool {
        debug_assert!(!self.is_step_due(), "credit is due first");
        self.arena_held != 0 && self.give_back()
    }

    /// Ends this direction from this side: from now on everything is [`Corrupt`].
    #[cold]
    pub fn close(&mut self) {
        self.expected = NEVER;
        self.due_bytes = 0;
    }

    /// Goes on with another generation than the first.
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
