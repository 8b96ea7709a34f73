//! The sending end of one direction.
//!
//! Its counts, its credit and the places of its payloads are private. All that
//! it ever reads of the shared memory is the consumer's count, and only when it has to
//! decide something; a count that goes back, or ahead of what was sent, is
//! refused as corrupt, and that is the end of this direction.
//!
//! It decides how long a lap is (decision 0005): at the cell that would be the last one it either
//! ends the lap, or, if more than half of it is out and there may be more cells, goes on and has twice as
//! many. At most two laps have cells that the consumer has not returned: this one and the one
//! before. So a cell may be written if it lies beyond the end of the lap before, all of which
//! has then come back, or if the cell of the lap before in the same place has come back.

use crate::bulk::{Bulk, Place};
use crate::cells::{Cell, CellMemory, FIRST_LAP, FLAG_MASK, LAST, STEP_BYTES, lap_after};
use crate::geometry::{CELLS_FAST, CELLS_IDLE, Geometry};
use crate::shared::ticks;

/// Ends of laps in a row at which the ring must be nearly empty before laps become shorter.
const SHALLOW_LAPS: u32 = 64;
/// Laps after which flags that were not written since are cleared.
const REFRESH_LAPS: u32 = 1 << 28;

const _: () = {
    // No flag becomes so old that it looks like one that is still to come: half of all laps.
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
    /// The place at which something must be decided: the ring may be full, the lap ends or
    /// has ended, or the end is closed.
    limit_bytes: u64,
    /// The flag of the next cell.
    flag: u64,
    bulk: Bulk,
    lap: Lap,
}

/// What is needed only to decide.
struct Lap {
    closed: bool,
    /// Number of the first cell of this lap.
    base: u64,
    /// Number of the first cell of the lap before; the same in the first lap.
    before: u64,
    /// The consumer's count, when it was last read.
    known: u64,
    /// How many cells this lap has at most.
    depth: u64,
    /// How many the next lap has.
    depth_next: u64,
    /// How many there can be. Fewer than the geometry allows if memory could not be had.
    depth_max: u64,
    /// So many cells, from the first one on, are present.
    present: u64,
    /// Cells from here on are not present, and their flags are zero.
    touched: u64,
    shallow_laps: u32,
    /// Cells were returned since this lap began.
    came_back: bool,
    /// When the ring had been full, most of it came back at once: the consumer is at work while we are not,
    /// as on one processor.
    by_turns: bool,
    /// There was no room when we last looked.
    is_full: bool,
    /// There was no room once since this lap began: the ring is not deep enough, even if the consumer
    /// should have taken everything by the last cell.
    was_full: bool,
    refresh_in_laps: u32,
    geometry: Geometry,
}

impl Lap {
    /// Cells from the beginning of this lap that may be written.
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
    /// The sending end of an unused memory. At most `window_bytes` of its bulk
    /// are present and used at first.
    pub fn new(memory: M, geometry: Geometry, window_bytes: usize) -> Self {
        let idle = u64::from(geometry.cells_idle());
        Self {
            memory,
            at_bytes: 0,
            limit_bytes: 0,
            flag: FIRST_LAP,
            bulk: Bulk::new(geometry.cells_idle(), window_bytes, geometry.bulk_bytes()),
            lap: Lap {
                closed: false,
                base: 0,
                before: 0,
                known: 0,
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
        if self.lap.closed {
            return Err(NoRoom::Corrupt);
        }
        self.begin_lap_if_due();
        self.collect()?;
        let at = self.at();
        if at >= self.lap.free() {
            self.lap.was_full = true;
            self.lap.is_full = true;
            return Err(NoRoom::Full);
        }
        if at + 1 == self.lap.depth && !self.deepen() {
            // The last cell of the lap; what comes after it is decided again.
            self.flag |= LAST;
            self.limit_bytes = self.at_bytes + STEP_BYTES;
            self.consider_depth();
        } else {
            let limit = self.lap.free().min(self.lap.depth - 1);
            self.limit_bytes = limit * STEP_BYTES;
        }
        Ok(())
    }

    /// The last cell of a lap was written: the next one is the first again.
    fn begin_lap_if_due(&mut self) {
        let at = self.at();
        let lap = &mut self.lap;
        // It may have been decided that a cell is the last, and the cell not be written yet.
        if self.flag & LAST == 0 || at < lap.depth {
            return;
        }
        lap.before = lap.base;
        lap.base += at;
        lap.depth = lap.depth_next;
        lap.came_back = false;
        lap.by_turns = false;
        self.at_bytes = 0;
        self.limit_bytes = 0;
        self.flag = lap_after(self.flag);
        lap.refresh_in_laps -= 1;
        if lap.refresh_in_laps == 0 {
            self.refresh(at);
        }
    }

    /// Clears the flags that no lap has written for long. The lap that has just ended had `length`
    /// cells; what lies beyond them has been returned, once the lap before that has.
    #[cold]
    fn refresh(&mut self, length: u64) {
        let lap = &mut self.lap;
        if lap.known < lap.before {
            lap.refresh_in_laps = 1;
            return;
        }
        lap.refresh_in_laps = REFRESH_LAPS;
        for cell in length..lap.present {
            self.memory.clear(cell * STEP_BYTES);
        }
        let from = lap.present.max(length);
        if from < lap.touched && self.memory.discard_cells(from, lap.touched) {
            lap.touched = from;
        }
    }

    /// Reads the consumer's count.
    fn collect(&mut self) -> Result<(), NoRoom> {
        let consumed = self.memory.load_consumed();
        if consumed < self.lap.known || consumed > self.sent() {
            self.close();
            return Err(NoRoom::Corrupt);
        }
        let lap = &mut self.lap;
        let returned = consumed - lap.known;
        if returned != 0 {
            lap.came_back = true;
            lap.by_turns |= lap.is_full && returned * 4 >= lap.depth * 3;
            lap.is_full = false;
            lap.known = consumed;
        }
        self.bulk.release(consumed);
        Ok(())
    }

    /// More than half of this lap is out, or there was no room: has more cells, if that is possible. Where the
    /// consumer works beside us, no more than are fast; where it does not, as many as can be.
    fn deepen(&mut self) -> bool {
        let outstanding = self.sent() - self.lap.known;
        let lap = &mut self.lap;
        let was_full = core::mem::take(&mut lap.was_full);
        let is_deep = lap.depth >= u64::from(CELLS_FAST) && lap.works_beside();
        if (outstanding * 2 <= lap.depth && !was_full) || is_deep || lap.depth >= lap.depth_max {
            return false;
        }
        let depth = (lap.depth + 1).next_power_of_two().min(lap.depth_max);
        if depth > lap.present {
            if !self.memory.reserve_cells(lap.present, depth) {
                // Asking again would cost a call each time.
                lap.depth_max = lap.depth;
                return false;
            }
            lap.present = depth;
            lap.touched = lap.touched.max(depth);
        }
        self.bulk.expect_cells(depth as usize);
        lap.depth = depth;
        lap.depth_next = depth;
        lap.shallow_laps = 0;
        true
    }

    /// Shorter laps touch less memory, if the consumer keeps up anyway.
    fn consider_depth(&mut self) {
        let outstanding = self.sent() - self.lap.known;
        let lap = &mut self.lap;
        let fast = u64::from(CELLS_FAST);
        if lap.depth > fast && lap.works_beside() {
            lap.depth_next = (lap.depth / 2).max(fast);
        }
        if outstanding * 4 > lap.depth {
            lap.shallow_laps = 0;
            return;
        }
        lap.shallow_laps += 1;
        if lap.shallow_laps == SHALLOW_LAPS {
            lap.shallow_laps = 0;
            let idle = u64::from(lap.geometry.cells_idle());
            lap.depth_next = (lap.depth_next / 2).max(idle);
        }
    }

    /// Gives memory back that an idle ring does not need: cells beyond the first page of them, and
    /// bulk beyond the first window, as far as the consumer has returned them. To be called before
    /// sleeping, or after nothing was sent for long. Returns how many bytes were given back. Makes system
    /// calls, but none if there is nothing to give back.
    #[cold]
    pub fn give_back(&mut self) -> usize {
        if self.lap.closed {
            return 0;
        }
        self.begin_lap_if_due();
        if self.collect().is_err() {
            return 0;
        }
        let memory = &self.memory;
        let bulk_bytes = self
            .bulk
            .give_back(|from, to| memory.discard_bulk(from, to));
        bulk_bytes + (self.give_cells_back() * STEP_BYTES) as usize
    }

    /// Whether there may be something for [`Producer::give_back`] to give.
    pub fn has_spare(&self) -> bool {
        let idle = u64::from(self.lap.geometry.cells_idle());
        !self.lap.closed && (self.lap.touched > idle || self.bulk.has_spare())
    }

    fn give_cells_back(&mut self) -> u64 {
        let at = self.at();
        let lap = &mut self.lap;
        let idle = u64::from(lap.geometry.cells_idle());
        lap.depth_next = idle;
        lap.was_full = false;
        lap.depth_max = u64::from(lap.geometry.cells());
        if lap.touched <= idle || lap.known < lap.base {
            return 0;
        }
        // The cells that are out, and the next one, stay where they are, in whole pages.
        let page = u64::from(CELLS_IDLE);
        let kept_from = (lap.known - lap.base) / page * page;
        let kept_to = match at {
            _ if at < idle => idle,
            _ => (at + 1).next_multiple_of(page).min(lap.depth),
        };
        let mut given = 0;
        if lap.touched > kept_to {
            if !self.memory.discard_cells(kept_to, lap.touched) {
                return 0;
            }
            given += lap.touched - kept_to;
            lap.touched = kept_to;
            lap.present = lap.present.min(kept_to);
            lap.depth = lap.depth.min(kept_to);
            if self.flag & LAST == 0 {
                self.limit_bytes = self.at_bytes;
            }
        }
        if lap.present > idle && kept_from > idle && self.memory.discard_cells(idle, kept_from) {
            given += kept_from - idle;
            lap.present = idle;
        }
        given
    }

    /// Announces that we are about to sleep until there is more room, if that `is_needed`: until half of what is out has
    /// come back, so that a sleep is worth it, and there is still something to take when we wake; or until so many cells
    /// were `returned`. The caller must then pass a full barrier, ask [`Producer::credit_came`] or
    /// [`Producer::may_have_returned`], and sleep only if that says no.
    #[cold]
    pub fn await_credit(&self, is_needed: bool, returned: Option<u64>) {
        let outstanding = self.sent() - self.lap.known;
        let half = self.lap.known + (outstanding / 2).max(1);
        let awaited = is_needed.then_some(half).into_iter().chain(returned).min();
        self.memory.store_awaited(awaited.unwrap_or(0));
    }

    /// Whether the consumer has returned the first `count` cells. What it has done before that is done.
    pub fn has_returned(&mut self, count: u64) -> Result<bool, NoRoom> {
        if self.lap.closed {
            return Err(NoRoom::Corrupt);
        }
        if self.lap.known < count {
            self.collect()?;
        }
        Ok(self.lap.known >= count)
    }

    /// Whether [`Producer::has_returned`] is worth asking.
    pub fn may_have_returned(&self, count: u64) -> bool {
        self.lap.closed || self.memory.load_consumed() >= count
    }

    /// Whether the consumer returned anything since we last looked.
    pub fn credit_came(&self) -> bool {
        self.lap.closed || self.memory.load_consumed() != self.lap.known
    }

    /// Ends this direction from this side.
    #[cold]
    pub fn close(&mut self) {
        self.lap.closed = true;
        self.limit_bytes = self.at_bytes;
    }

    /// Whether the direction has ended.
    pub fn is_closed(&self) -> bool {
        self.lap.closed
    }

    /// How many cells were sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.lap.base + self.at()
    }

    /// How many cells there may be in a lap, at present.
    pub fn depth(&self) -> u64 {
        self.lap.depth
    }

    /// The longest payload that can ever find a place, in bytes.
    #[inline]
    pub fn longest(&self) -> usize {
        self.bulk.longest()
    }

    /// How many bytes of bulk are in use at most, at present.
    pub fn window_bytes(&self) -> usize {
        self.bulk.window()
    }

    /// How many cells of this lap were sent.
    #[inline]
    fn at(&self) -> u64 {
        self.at_bytes / STEP_BYTES
    }

    #[cold]
    #[inline(never)]
    fn find_harder(&mut self, len: usize) -> Result<Place, NoRoom> {
        self.collect()?;
        self.bulk.note(ticks());
        if self.bulk.widens() {
            // Lines that the consumer has just let go of are the slowest to write again, so
            // the window widens before it is too small.
            let memory = &self.memory;
            self.bulk.grow(|from, to| memory.grow_bulk(from, to));
        }
        loop {
            if let Some(place) = self.bulk.find(len) {
                return Ok(place);
            }
            let memory = &self.memory;
            if !self.bulk.grow(|from, to| memory.grow_bulk(from, to)) {
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
    /// A place in the bulk for `len` bytes that go with the cell.
    #[inline]
    pub fn place(&mut self, len: usize) -> Result<Place, NoRoom> {
        match self.producer.bulk.find(len) {
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
    pub fn publish_with(self, cell: Cell, place: Place) {
        let number = self.producer.sent();
        self.producer.bulk.take(number, place);
        self.publish(cell);
    }
}

#[cfg(test)]
mod tests;
