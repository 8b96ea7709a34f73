//! The sending end of one direction.
//!
//! Its counts, its credit and the places of its payloads are private. All that
//! it ever reads of the shared memory is the consumer's count, and only when it has to
//! decide something; a count that goes back, or ahead of what was sent, is
//! refused as corrupt, and that is the end of this direction.
//!
//! It decides how long a generation is (decision 0005): at the cell that would be the last one it either
//! ends the generation, or, if more than half of it is out and there may be more cells, goes on and has twice as
//! many. At most two generations have cells that the consumer has not returned: this one and the one
//! before. So a cell may be written if it lies beyond the end of the generation before, all of which
//! has then come back, or if the cell of the generation before in the same place has come back.

use crate::cells::{
    Cell, CellMemory, FIRST_GENERATION, FLAG_MASK, LAST_OF_GENERATION, STEP_BYTES, generation_after,
};
use crate::geometry::{CELLS_FAST, CELLS_IDLE, Geometry};
use crate::payload_arena::{Allocation, PayloadArena};
use crate::shared::ticks;

/// Ends of generations in a row at which the ring must be nearly empty before generations become shorter.
const SHALLOW_LAPS: u32 = 64;
/// Laps after which flags that were not written since are cleared.
const REFRESH_LAPS: u32 = 1 << 28;

const _: () = {
    // No flag becomes so old that it looks like one that is still to come: half of all generations.
    assert!(2 * (REFRESH_LAPS as u64) + SHALLOW_LAPS as u64 <= 1 << 30);
};

/// Why nothing can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoRoom {
    /// Not now.
    #[error("the ring is full")]
    Full,
    /// Never again: the consumer returned impossible credit, or the direction was closed.
    #[error("the consumer returned impossible credit")]
    Corrupt,
}

/// The sending end.
pub struct Producer<M> {
    memory: M,
    /// The place of the next cell.
    at_bytes: u64,
    /// The place at which something must be decided: the ring may be full, the generation ends or
    /// has ended, or the end is closed.
    limit_bytes: u64,
    /// The flag of the next cell.
    flag: u64,
    arena: PayloadArena,
    generation: Lap,
}

/// What is needed only to decide.
struct Lap {
    closed: bool,
    /// Number of the first cell of this generation.
    base: u64,
    /// Number of the first cell of the generation before; the same in the first generation.
    before: u64,
    /// The consumer's count, when it was last read.
    known: u64,
    /// What that was when there was no room the last time.
    known_when_full: u64,
    /// How many cells this generation has at most.
    depth: u64,
    /// How many the next generation has.
    depth_next: u64,
    /// How many there can be. Fewer than the geometry allows if memory could not be had.
    depth_max: u64,
    /// So many cells, from the first one on, are present.
    present: u64,
    /// Cells from here on are not present, and their flags are zero.
    touched: u64,
    shallow_laps: u32,
    /// Cells were returned since this generation began.
    came_back: bool,
    /// When the ring had been full, most of it came back at once: the consumer is at work while we are not,
    /// as on one processor.
    by_turns: bool,
    /// There was no room when we last looked.
    is_full: bool,
    /// There was no room once since this generation began: the ring is not deep enough, even if the consumer
    /// should have taken everything by the last cell.
    was_full: bool,
    refresh_in_laps: u32,
    geometry: Geometry,
}

impl Lap {
    /// Cells from the beginning of this generation that may be written.
    fn free(&self) -> u64 {
        if self.known >= self.base {
            self.depth
        } else {
            self.known.saturating_sub(self.before).min(self.depth)
        }
    }

    /// Whether the consumer takes cells while we send them.
    fn works_beside(&self) -> bool {
        self.came_back && !self.by_turns
    }
}

impl<M: CellMemory> Producer<M> {
    /// The sending end of an unused memory. At most `window_bytes` of its payload arena
    /// are present and used at first.
    pub fn new(memory: M, geometry: Geometry, window_bytes: usize) -> Self {
        let idle = u64::from(geometry.cells_idle());
        Self {
            memory,
            at_bytes: 0,
            limit_bytes: 0,
            flag: FIRST_GENERATION,
            arena: PayloadArena::new(geometry.cells_idle(), window_bytes, geometry.arena_bytes()),
            generation: Lap {
                closed: false,
                base: 0,
                before: 0,
                known: 0,
                known_when_full: 0,
                depth: idle,
                depth_next: idle,
                depth_max: u64::from(geometry.cells()),
                present: idle,
                touched: idle,
                shallow_laps: 0,
                came_back: false,
                by_turns: false,
                is_full: false,
                was_full: false,
                refresh_in_laps: REFRESH_LAPS,
                geometry,
            },
        }
    }

    /// Room for one cell, if there is some.
    #[inline(always)]
    pub fn room(&mut self) -> Result<Room<'_, M>, NoRoom> {
        if self.at_bytes == self.limit_bytes {
            self.decide()?;
        }
        Ok(Room { producer: self })
    }

    /// After this there is room for a cell, or an error.
    #[cold]
    #[inline(never)]
    fn decide(&mut self) -> Result<(), NoRoom> {
        if self.generation.closed {
            return Err(NoRoom::Corrupt);
        }
        self.begin_lap_if_due();
        self.collect()?;
        let at = self.at();
        if at >= self.generation.free() {
            self.generation.was_full = true;
            self.generation.is_full = true;
            self.generation.known_when_full = self.generation.known;
            return Err(NoRoom::Full);
        }
        if at + 1 == self.generation.depth && !self.deepen() {
            // The last cell of the generation; what comes after it is decided again.
            self.flag |= LAST_OF_GENERATION;
            self.limit_bytes = self.at_bytes + STEP_BYTES;
            self.consider_depth();
        } else {
            let limit = self.generation.free().min(self.generation.depth - 1);
            self.limit_bytes = limit * STEP_BYTES;
        }
        Ok(())
    }

    /// The last cell of a generation was written: the next one is the first again.
    fn begin_lap_if_due(&mut self) {
        let at = self.at();
        let generation = &mut self.generation;
        // It may have been decided that a cell is the last, and the cell not be written yet.
        if self.flag & LAST_OF_GENERATION == 0 || at < generation.depth {
            return;
        }
        generation.before = generation.base;
        generation.base += at;
        generation.depth = generation.depth_next;
        generation.came_back = false;
        generation.by_turns = false;
        self.at_bytes = 0;
        self.limit_bytes = 0;
        self.flag = generation_after(self.flag);
        generation.refresh_in_laps -= 1;
        if generation.refresh_in_laps == 0 {
            self.refresh(at);
        }
    }

    /// Clears the flags that no generation has written for long. The generation that has just ended had `length`
    /// cells; what lies beyond them has been returned, once the generation before that has.
    #[cold]
    fn refresh(&mut self, length: u64) {
        let generation = &mut self.generation;
        if generation.known < generation.before {
            generation.refresh_in_laps = 1;
            return;
        }
        generation.refresh_in_laps = REFRESH_LAPS;
        for cell in length..generation.present {
            self.memory.clear(cell * STEP_BYTES);
        }
        let from = generation.present.max(length);
        if from < generation.touched && self.memory.discard_cells(from, generation.touched) {
            generation.touched = from;
        }
    }

    /// Reads the consumer's count.
    fn collect(&mut self) -> Result<(), NoRoom> {
        let consumed = self.memory.load_consumed();
        if consumed < self.generation.known || consumed > self.sent() {
            self.close();
            return Err(NoRoom::Corrupt);
        }
        let generation = &mut self.generation;
        let returned = consumed - generation.known;
        if returned != 0 {
            generation.came_back = true;
            generation.by_turns |= generation.is_full && returned * 4 >= generation.depth * 3;
            generation.is_full = false;
            generation.known = consumed;
        }
        self.arena.release(consumed);
        Ok(())
    }

    /// More than half of this generation is out, or there was no room: has more cells, if that is possible. Where the
    /// consumer works beside us, no more than are fast; where it does not, as many as can be.
    fn deepen(&mut self) -> bool {
        let outstanding = self.sent() - self.generation.known;
        let generation = &mut self.generation;
        let was_full = core::mem::take(&mut generation.was_full);
        let is_deep = generation.depth >= u64::from(CELLS_FAST) && generation.works_beside();
        if (outstanding * 2 <= generation.depth && !was_full)
            || is_deep
            || generation.depth >= generation.depth_max
        {
            return false;
        }
        let depth = (generation.depth + 1)
            .next_power_of_two()
            .min(generation.depth_max);
        if depth > generation.present {
            if !self.memory.reserve_cells(generation.present, depth) {
                // Asking again would cost a call each time.
                generation.depth_max = generation.depth;
                return false;
            }
            generation.present = depth;
            generation.touched = generation.touched.max(depth);
        }
        self.arena.expect_cells(depth as usize);
        generation.depth = depth;
        generation.depth_next = depth;
        generation.shallow_laps = 0;
        true
    }

    /// Shorter generations touch less memory, if the consumer keeps up anyway.
    fn consider_depth(&mut self) {
        let outstanding = self.sent() - self.generation.known;
        let generation = &mut self.generation;
        let fast = u64::from(CELLS_FAST);
        if generation.depth > fast && generation.works_beside() {
            generation.depth_next = (generation.depth / 2).max(fast);
        }
        if outstanding * 4 > generation.depth {
            generation.shallow_laps = 0;
            return;
        }
        generation.shallow_laps += 1;
        if generation.shallow_laps == SHALLOW_LAPS {
            generation.shallow_laps = 0;
            let idle = u64::from(generation.geometry.cells_idle());
            generation.depth_next = (generation.depth_next / 2).max(idle);
        }
    }

    /// Gives memory back that an idle ring does not need: cells beyond the first page of them, and
    /// arena bytes beyond the first window, as far as the consumer has returned them. To be called before
    /// sleeping, or after nothing was sent for long. Returns how many bytes were given back. Makes system
    /// calls, but none if there is nothing to give back.
    #[cold]
    pub fn give_back(&mut self) -> usize {
        if self.generation.closed {
            return 0;
        }
        self.begin_lap_if_due();
        if self.collect().is_err() {
            return 0;
        }
        let memory = &self.memory;
        let arena_bytes = self
            .arena
            .give_back(|from, to| memory.discard_arena(from, to));
        arena_bytes + (self.give_cells_back() * STEP_BYTES) as usize
    }

    /// Whether there may be something for [`Producer::give_back`] to give.
    pub fn has_spare(&self) -> bool {
        let idle = u64::from(self.generation.geometry.cells_idle());
        !self.generation.closed && (self.generation.touched > idle || self.arena.has_spare())
    }

    fn give_cells_back(&mut self) -> u64 {
        let at = self.at();
        let generation = &mut self.generation;
        let idle = u64::from(generation.geometry.cells_idle());
        generation.depth_next = idle;
        generation.was_full = false;
        generation.depth_max = u64::from(generation.geometry.cells());
        if generation.touched <= idle || generation.known < generation.base {
            return 0;
        }
        // The cells that are out, and the next one, stay where they are, in whole pages.
        let page = u64::from(CELLS_IDLE);
        let kept_from = (generation.known - generation.base) / page * page;
        let kept_to = match at {
            _ if at < idle => idle,
            _ => (at + 1).next_multiple_of(page).min(generation.depth),
        };
        let mut given = 0;
        if generation.touched > kept_to {
            if !self.memory.discard_cells(kept_to, generation.touched) {
                return 0;
            }
            given += generation.touched - kept_to;
            generation.touched = kept_to;
            generation.present = generation.present.min(kept_to);
            generation.depth = generation.depth.min(kept_to);
            if self.flag & LAST_OF_GENERATION == 0 {
                self.limit_bytes = self.at_bytes;
            }
        }
        if generation.present > idle
            && kept_from > idle
            && self.memory.discard_cells(idle, kept_from)
        {
            given += kept_from - idle;
            generation.present = idle;
        }
        given
    }

    /// Announces that we are about to sleep until there is more room, if that `is_needed`: until half of what is out has
    /// come back, so that a sleep is worth it, and there is still something to take when we wake; or until so many cells
    /// were `returned`. The caller must then pass a full barrier, ask [`Producer::credit_came`] or
    /// [`Producer::may_have_returned`], and sleep only if that says no.
    #[cold]
    pub fn await_credit(&self, is_needed: bool, returned: Option<u64>) {
        let outstanding = self.sent() - self.generation.known;
        let half = self.generation.known + (outstanding / 2).max(1);
        let awaited = is_needed.then_some(half).into_iter().chain(returned).min();
        self.memory.store_awaited(awaited.unwrap_or(0));
    }

    /// Whether the consumer has returned the first `count` cells. What it has done before that is done.
    pub fn has_returned(&mut self, count: u64) -> Result<bool, NoRoom> {
        if self.generation.closed {
            return Err(NoRoom::Corrupt);
        }
        if self.generation.known < count {
            self.collect()?;
        }
        Ok(self.generation.known >= count)
    }

    /// Whether [`Producer::has_returned`] is worth asking.
    pub fn may_have_returned(&self, count: u64) -> bool {
        self.generation.closed || self.memory.load_consumed() >= count
    }

    /// Whether the consumer returned anything since there was no room the last time, whichever call has read its count
    /// since.
    pub fn credit_came(&self) -> bool {
        let generation = &self.generation;
        generation.closed || self.memory.load_consumed() != generation.known_when_full
    }

    /// Ends this direction from this side.
    #[cold]
    pub fn close(&mut self) {
        self.generation.closed = true;
        self.limit_bytes = self.at_bytes;
    }

    /// Whether the direction has ended.
    pub fn is_closed(&self) -> bool {
        self.generation.closed
    }

    /// How many cells were sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.generation.base + self.at()
    }

    /// How many cells there may be in a generation, at present.
    pub fn depth(&self) -> u64 {
        self.generation.depth
    }

    /// The longest payload that can ever find a place, in bytes.
    #[inline]
    pub fn longest(&self) -> usize {
        self.arena.longest()
    }

    /// How many bytes of payload arena are in use at most, at present.
    pub fn window_bytes(&self) -> usize {
        self.arena.window()
    }

    /// How many cells of this generation were sent.
    #[inline]
    fn at(&self) -> u64 {
        self.at_bytes / STEP_BYTES
    }

    #[cold]
    #[inline(never)]
    fn find_harder(&mut self, len: usize) -> Result<Allocation, NoRoom> {
        self.collect()?;
        self.arena.note(ticks());
        if self.arena.widens() {
            // Lines that the consumer has just let go of are the slowest to write again, so
            // the window widens before it is too small.
            let memory = &self.memory;
            self.arena.grow(|from, to| memory.grow_arena(from, to));
        }
        loop {
            if let Some(place) = self.arena.find(len) {
                return Ok(place);
            }
            let memory = &self.memory;
            if !self.arena.grow(|from, to| memory.grow_arena(from, to)) {
                self.generation.known_when_full = self.generation.known;
                return Err(NoRoom::Full);
            }
        }
    }
}

/// Room for one cell. Dropping it sends nothing.
pub struct Room<'a, M> {
    producer: &'a mut Producer<M>,
}

impl<M: CellMemory> Room<'_, M> {
    /// A place in the payload arena for `len` bytes that go with the cell.
    #[inline]
    pub fn place(&mut self, len: usize) -> Result<Allocation, NoRoom> {
        match self.producer.arena.find(len) {
            Some(place) => Ok(place),
            None => self.producer.find_harder(len),
        }
    }

    /// Sends the cell. The low 32 bits of its first word are overwritten.
    #[inline(always)]
    pub fn publish(self, mut cell: Cell) {
        let producer = self.producer;
        cell[0] = cell[0] & !FLAG_MASK | producer.flag;
        producer.memory.store(producer.at_bytes, &cell);
        producer.at_bytes += STEP_BYTES;
    }

    /// Sends the cell, which names `place`.
    #[inline]
    pub fn publish_with(self, cell: Cell, place: Allocation) {
        let number = self.producer.sent();
        self.producer.arena.take(number, place);
        self.publish(cell);
    }
}

#[cfg(test)]
mod tests;
