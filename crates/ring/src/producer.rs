//! The sending end of one direction.
//!
//! Its count, its credit and the places of its payloads are private. All that
//! it ever reads of the shared memory is the consumer's count, and only when the
//! ring looks full; a count that goes back, or ahead of what was sent, is
//! refused as corrupt, and that is the end of this direction.

use crate::bulk::{Bulk, Place};
use crate::cells::{Cell, CellMemory, FLAG_MASK};
use crate::geometry::Geometry;
use crate::shared::ticks;

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
    /// Number of the next cell.
    next: u64,
    /// The cell that may not be written yet. Equal to `next` when the end is closed.
    limit: u64,
    /// The flag of the next cell: its lap, plus one.
    flag: u32,
    closed: bool,
    cells: u64,
    bulk: Bulk,
}

impl<M: CellMemory> Producer<M> {
    /// The sending end of an unused memory. At most `window_bytes` of its bulk
    /// are present and used at first.
    pub fn new(memory: M, geometry: Geometry, window_bytes: usize) -> Self {
        let cells = geometry.cells();
        Self {
            memory,
            next: 0,
            limit: u64::from(cells),
            flag: 1,
            closed: false,
            cells: u64::from(cells),
            bulk: Bulk::new(cells, window_bytes, geometry.bulk_bytes()),
        }
    }

    /// Room for one cell, if there is some.
    #[inline(always)]
    pub fn room(&mut self) -> Result<Room<'_, M>, NoRoom> {
        if self.next == self.limit {
            self.collect()?;
        }
        Ok(Room { producer: self })
    }

    /// Reads the consumer's count. After this there is room for a cell, or an error.
    #[cold]
    #[inline(never)]
    fn collect(&mut self) -> Result<(), NoRoom> {
        if self.closed {
            return Err(NoRoom::Corrupt);
        }
        let known = self.limit - self.cells;
        let consumed = self.memory.load_consumed();
        if consumed < known || consumed > self.next {
            self.close();
            return Err(NoRoom::Corrupt);
        }
        self.limit = consumed + self.cells;
        self.bulk.release(consumed);
        if self.next == self.limit {
            Err(NoRoom::Full)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn next_lap(&mut self) {
        self.flag = self.flag.wrapping_add(1);
    }

    /// Announces that we are about to sleep until there is more room. The caller must
    /// then pass a full barrier, ask [`Producer::credit_came`], and sleep only if
    /// that says no.
    #[cold]
    pub fn await_credit(&self) {
        self.memory
            .store_awaited(self.limit.wrapping_sub(self.cells).wrapping_add(1));
    }

    /// Whether the consumer returned anything since we last looked.
    pub fn credit_came(&self) -> bool {
        self.closed || self.memory.load_consumed() != self.limit - self.cells
    }

    /// Ends this direction from this side.
    #[cold]
    pub fn close(&mut self) {
        self.closed = true;
        self.limit = self.next;
    }

    /// Whether the direction has ended.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many cells were sent.
    pub fn sent(&self) -> u64 {
        self.next
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

    #[cold]
    #[inline(never)]
    fn find_harder(&mut self, len: usize) -> Result<Place, NoRoom> {
        match self.collect() {
            Ok(()) => {}
            Err(NoRoom::Full) => return Err(NoRoom::Full),
            Err(NoRoom::Corrupt) => return Err(NoRoom::Corrupt),
        }
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
        cell[0] = cell[0] & !FLAG_MASK | u64::from(producer.flag);
        producer.memory.store(producer.next, &cell);
        producer.next += 1;
        if producer.next & (producer.cells - 1) == 0 {
            producer.next_lap();
        }
    }

    /// Sends the cell, which names `place`.
    #[inline]
    pub fn publish_with(self, cell: Cell, place: Place) {
        self.producer.bulk.take(self.producer.next, place);
        self.publish(cell);
    }
}

#[cfg(test)]
mod tests;
