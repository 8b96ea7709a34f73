//! The receiving end of one direction.
//!
//! A cell is there when its flag says the generation that is due, and the epoch. The flag of the
//! generation before means that the ring is empty, and the other epoch that a message of the duplex
//! line is to be taken first. Any other can only be written by a peer that breaks the rules, and
//! ends this direction. Each word of a cell is loaded once at most, and what was loaded is what
//! counts.
//!
//! A message takes one cell or several. Those that continue the first are there when it is, as they
//! are stored before it; what they say of themselves is checked all the same.
//!
//! The count of cells that are done with is published rarely: it is the only
//! line that the producer must fetch from here.

use core::sync::atomic::AtomicU64;

use crate::cells::{
    CONTINUED, CONTINUED_WORDS, Cell, CellMemory, EPOCH, FLAG_MASK, PayloadMemory, STEP_BYTES,
    SharedCells, flag_of, is_before,
};
use crate::geometry::Geometry;
use crate::overflow::LogReader;

mod overflow;

/// The part of the ring whose return is held back.
const BATCHES: u64 = 8;
/// The part of the payload arena whose return is held back.
const ARENA_BATCHES: usize = 4;
/// Most cells whose return is held back.
const BATCH_CELLS_MAX: u64 = 256;
/// An expected flag that no cell can have.
const NEVER: u64 = u64::MAX;
/// Cells that are fetched in advance: as many as are taken while one comes from a far processor.
const AHEAD_CELLS: u64 = 8;

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
    /// Its epoch.
    epoch: u64,
    /// From this place on there is more to do before the next cell: the generation has ended, or
    /// credit is due.
    due_bytes: u64,
    /// How far ahead of the next cell cells are fetched: nothing while the producer may not have
    /// written them, as that would take them from it.
    ahead_bytes: u64,
    published: u64,
    /// What the producer waited for when it was last rung for.
    answered: u64,
    batch: u64,
    /// How many cells there are, as a power of two.
    shift: u32,
    arena_held: usize,
    arena_batch: usize,
    /// Cells come from the overflow log.
    is_in_log: bool,
    /// How many more cells were taken than places were left behind where the next one is.
    elsewhere: u64,
    log: Option<Box<LogReader>>,
}

impl<M: CellMemory> Consumer<M> {
    /// The receiving end of an unused memory.
    pub fn new(memory: M, geometry: Geometry) -> Self {
        let batch = (u64::from(geometry.cells()) / BATCHES).clamp(1, BATCH_CELLS_MAX);
        Self {
            memory,
            at_bytes: 0,
            expected: flag_of(0, geometry.shift()),
            epoch: 0,
            due_bytes: batch * STEP_BYTES,
            ahead_bytes: 0,
            published: 0,
            answered: 0,
            batch,
            shift: geometry.shift(),
            arena_held: 0,
            arena_batch: geometry.arena_bytes() as usize / ARENA_BATCHES,
            is_in_log: false,
            elsewhere: 0,
            log: None,
        }
    }

    /// A copy of the next cell, if it is there. The same cell is shown until it is
    /// [`Consumer::done`].
    #[inline(always)]
    pub fn peek(&mut self) -> Result<Option<Cell>, Corrupt> {
        debug_assert!(!self.is_step_due(), "credit is due first");
        match self.memory.load(self.at_bytes, self.expected) {
            Ok(cell) => Ok(Some(cell)),
            Err(first) if self.is_before(first) => Ok(None),
            Err(_) => Err(Corrupt),
        }
    }

    /// Whether a first word is what is there before the next cell.
    #[inline(always)]
    fn is_before(&self, first: u64) -> bool {
        let is_other = first & FLAG_MASK != self.expected;
        self.expected != NEVER && (is_before(first, self.expected) || (self.is_in_log && is_other))
    }

    /// The next cell in place, if it is there and its first word is `first`, which has no flag, but
    /// for a number up to `most` ([`number_in`](crate::cells::number_in)), and that number: the
    /// fast path, which overlooks errors, and sees nothing while [`Consumer::return_due_credit`]
    /// has something to do. To be followed by [`Consumer::took`], or nothing.
    #[inline(always)]
    pub fn look(&self, first: u64, most: u64) -> Option<(u64, M::InPlace<'_>)> {
        if self.is_blind() {
            return None;
        }
        self.memory.look(self.at_bytes, self.expected | first, most)
    }

    /// Checks that the cells after the next one, which is there, continue its message, which has so
    /// many cells together. They do, as they are stored before it, unless the producer breaks the
    /// rules.
    #[inline(always)]
    pub fn continues(&self, cells: u64) -> Result<(), Corrupt> {
        let number = self.at_bytes / STEP_BYTES;
        for at in 1..cells {
            let first = self.memory.load_first(self.at_bytes + at * STEP_BYTES);
            if first != CONTINUED | flag_of(number + at, self.shift) | self.epoch {
                return Err(Corrupt);
            }
        }
        Ok(())
    }

    /// The message that was last shown by [`Consumer::look`], of one cell, is done with.
    #[inline(always)]
    pub fn took(&mut self) {
        self.at_bytes += STEP_BYTES;
        self.memory.prefetch(self.at_bytes + self.ahead_bytes);
    }

    /// The same of a message of so many cells.
    #[inline(always)]
    pub fn took_all(&mut self, cells: u64) {
        for _ in 0..cells {
            self.at_bytes += STEP_BYTES;
            // What lies further ahead of the last place may not be there.
            let known_bytes = self.at_bytes.min(self.due_bytes);
            self.memory.prefetch(known_bytes + self.ahead_bytes);
        }
    }

    /// Whether [`Consumer::look`] sees nothing, whatever is there: credit is due, or the end is
    /// closed.
    #[inline(always)]
    pub fn is_blind(&self) -> bool {
        self.at_bytes >= self.due_bytes
    }

    /// Whether something is to be done before the next cell.
    #[inline(always)]
    pub fn is_step_due(&self) -> bool {
        self.is_blind() && self.expected != NEVER
    }

    /// Does what keeps [`Consumer::look`] from seeing a cell, if that is all: returns credit that
    /// is due, or begins a generation. If so, true in it as for [`Consumer::done`].
    #[inline]
    #[must_use]
    pub fn return_due_credit(&mut self) -> Option<bool> {
        self.is_step_due().then(|| self.step())
    }

    /// Whether [`Consumer::peek`] would find something: a cell or an error.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.is_step_due() || !self.is_before(self.memory.load_first(self.at_bytes))
    }

    /// The message that was last shown, of so many cells, and `arena_bytes` that it named, are
    /// done with. True if the producer sleeps until it has the room that it was just given.
    #[inline(always)]
    #[must_use]
    pub fn done(&mut self, cells: u64, arena_bytes: usize) -> bool {
        self.took_all(cells);
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
            self.expect(self.at_bytes / STEP_BYTES);
            self.look_ahead();
        }
        self.give_back()
    }

    /// Fetches cells in advance until credit is due again, if all that may be fetched are there
    /// already.
    fn look_ahead(&mut self) {
        if self.is_in_log {
            // Pages that nobody has written are not to be touched.
            self.ahead_bytes = 0;
            return;
        }
        let furthest = self.batch + AHEAD_CELLS;
        let flag = flag_of(self.at_bytes / STEP_BYTES + furthest, self.shift) | self.epoch;
        let first = self
            .memory
            .load_first(self.at_bytes + furthest * STEP_BYTES);
        let is_there = first & FLAG_MASK == flag;
        self.ahead_bytes = u64::from(is_there) * AHEAD_CELLS * STEP_BYTES;
    }

    /// The cell of that number is next.
    fn expect(&mut self, number: u64) {
        self.expected = flag_of(number, self.shift) | self.epoch;
    }

    /// A message of the duplex line was taken: cells that were sent after it are next.
    #[inline(always)]
    pub fn next_epoch(&mut self) {
        self.epoch ^= EPOCH;
        if self.expected != NEVER {
            self.expected ^= EPOCH;
        }
    }

    #[inline]
    fn give_back(&mut self) -> bool {
        if self.is_in_log {
            // Before the sender may write there again.
            self.go_on_in_log();
        }
        let taken = self.taken();
        self.memory.store_consumed(taken);
        self.published = taken;
        self.arena_held = 0;
        if self.expected != NEVER {
            let at = self.at_bytes / STEP_BYTES;
            let generation_end = ((at >> self.shift) + 1) << self.shift;
            self.due_bytes = generation_end.min(at + self.batch) * STEP_BYTES;
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
        if self.is_in_log && !self.is_pending() {
            self.give_back_log(true);
        }
        self.published != self.taken() && self.give_back()
    }

    /// Gives back everything that is held back if packets held payload in the arena: what the
    /// producer may wait for though nothing more comes. True as for [`Consumer::done`].
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

    /// Goes on with another cell than the first.
    #[cfg(test)]
    pub(crate) fn go_on_at(&mut self, number: u64) {
        self.at_bytes = number * STEP_BYTES;
        self.published = number;
        self.expect(number);
        self.due_bytes = self.at_bytes + self.batch * STEP_BYTES;
    }

    /// How many cells are done with.
    #[inline]
    pub fn taken(&self) -> u64 {
        (self.at_bytes / STEP_BYTES).wrapping_add(self.elsewhere)
    }
}

impl Consumer<SharedCells> {
    /// Where the payload of the next cell lies.
    #[inline(always)]
    pub fn payload_memory(&self) -> PayloadMemory<'_> {
        self.memory.payload_memory()
    }

    /// The words of the next cell, but for the first word. The producer may write them at any time.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64; CONTINUED_WORDS] {
        let [_, words @ ..] = self.memory.line(self.at_bytes);
        words
    }

    /// The words of a cell that continues the next one, by its number from 0 on, but for the first
    /// word. The producer may write them at any time.
    #[inline(always)]
    pub fn continuation(&self, number: usize) -> &[AtomicU64; CONTINUED_WORDS] {
        let at_bytes = self.at_bytes + (number as u64 + 1) * STEP_BYTES;
        let [_, words @ ..] = self.memory.line(at_bytes);
        words
    }
}

#[cfg(test)]
mod tests;
