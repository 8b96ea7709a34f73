//! The sending end of one direction.
//!
//! Its counts, its credit and the places of its payloads are private. All that it ever reads of the
//! shared memory is the consumer's count, when what it knows says that there is no room; a count
//! that goes back, or ahead of what was sent, is refused as corrupt, and that is the end of this
//! direction.

use crate::cells::{
    CONTINUED, CONTINUED_BYTES, Cell, CellMemory, EPOCH, FLAG_MASK, PayloadMemory, STEP_BYTES,
    SharedCells, flag_of,
};
use crate::geometry::Geometry;
use crate::overflow::{LogWriter, Wanted};
use crate::payload_arena::{Allocation, PayloadArena};
use crate::shared::ticks;

mod overflow;

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

/// So far ahead of the cell that is stored the lines of cells are claimed: the consumer's processor
/// has them, and the stores of few messages fit into a processor's queue while one line comes from
/// a far one.
const AHEAD_CELLS: u64 = 8;

/// The sending end.
pub struct Producer<M> {
    memory: M,
    /// The place of the next cell. It never wraps: 2^58 cells take decades.
    at_bytes: u64,
    /// The place at which something must be decided: the ring may be full, a generation begins, or
    /// the end is closed.
    limit_bytes: u64,
    /// The flag of the next cell.
    flag: u64,
    arena: PayloadArena,
    /// The consumer's count, when it was last read.
    known: u64,
    /// What that was when there was no room the last time.
    known_when_full: u64,
    /// More than half of the ring was out when the count was last read.
    is_behind: bool,
    /// How many cells there are, as a power of two.
    shift: u32,
    is_closed: bool,
    /// Cells go to the overflow log.
    is_in_log: bool,
    /// How many more cells were sent than places were used where the next one goes.
    elsewhere: u64,
    log: Option<Box<LogWriter>>,
}

impl<M: CellMemory> Producer<M> {
    /// The sending end of an unused memory. The first `window_bytes` of its payload arena
    /// are present and used at first.
    pub fn new(memory: M, geometry: Geometry, window_bytes: usize) -> Self {
        Self {
            memory,
            at_bytes: 0,
            limit_bytes: 0,
            flag: flag_of(0, geometry.shift()),
            arena: PayloadArena::new(window_bytes, geometry.arena_bytes()),
            known: 0,
            known_when_full: 0,
            is_behind: false,
            shift: geometry.shift(),
            is_closed: false,
            is_in_log: false,
            elsewhere: 0,
            log: None,
        }
    }

    /// Reserves memory, so that no later call allocates any. To be called while no message waits
    /// in the overflow log; otherwise long ones may allocate after that.
    pub fn reserve(&mut self) {
        self.arena.reserve(1 << self.shift);
    }

    /// Room for one cell, if there is some.
    #[inline(always)]
    pub fn room(&mut self) -> Result<Room<'_, M>, NoRoom> {
        if self.at_bytes >= self.limit_bytes {
            self.decide(1)?;
        }
        Ok(Room { producer: self })
    }

    /// Room for a message of so many cells, at least one and at most as [`Geometry::message_cells`]
    /// says, if there is some.
    #[inline(always)]
    pub fn room_for(&mut self, cells: u64) -> Result<Room<'_, M>, NoRoom> {
        if self.at_bytes + cells * STEP_BYTES > self.limit_bytes {
            self.decide(cells)?;
        }
        Ok(Room { producer: self })
    }

    /// After this there is room for so many cells, or an error.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, wanted: u64) -> Result<(), NoRoom> {
        if self.is_closed {
            return Err(NoRoom::Corrupt);
        }
        if self.is_in_log {
            return self.decide_in_log(wanted);
        }
        let (at, cells) = (self.at_bytes / STEP_BYTES, self.cells_in_use());
        let end = at + wanted;
        if end > self.returned() + cells {
            self.collect()?;
            if end > self.returned() + cells {
                return self.overflow(Wanted::Cells(wanted));
            }
        }
        self.flag = flag_of(at, self.shift) | self.flag & EPOCH;
        let generation_end = ((at >> self.shift) + 1) << self.shift;
        self.limit_bytes = generation_end.min(self.returned() + cells) * STEP_BYTES;
        Ok(())
    }

    /// A message went over the duplex line: cells that are sent from now on are to be taken after
    /// it.
    #[inline(always)]
    pub fn next_epoch(&mut self) {
        self.flag ^= EPOCH;
    }

    /// Reads the consumer's count.
    fn collect(&mut self) -> Result<(), NoRoom> {
        let consumed = self.memory.load_consumed();
        if consumed < self.known || consumed > self.sent() {
            self.close();
            return Err(NoRoom::Corrupt);
        }
        self.known = consumed;
        if let Some(log) = &mut self.log {
            log.patience.returned(consumed, || self.memory.now_ns());
        }
        self.is_behind = self.sent() - consumed > (1 << self.shift) / 2;
        self.arena.release(consumed);
        Ok(())
    }

    /// Announces that we are about to sleep until there is more room, if that `is_needed`: until
    /// half of what is out has come back, so that a sleep is worth it, and there is still something
    /// to take when we wake, or anything if a message is held back; or until so many cells were
    /// `returned`. The caller must then pass a
    /// full barrier, ask [`Producer::credit_came`] or [`Producer::may_have_returned`], and sleep
    /// only if that says no.
    #[cold]
    pub fn await_credit(&self, is_needed: bool, returned: Option<u64>) {
        let half = match self.is_held_back() {
            true => 0,
            false => (self.sent() - self.known) / 2,
        };
        let room = self.known + half.max(1);
        let awaited = is_needed.then_some(room).into_iter().chain(returned).min();
        self.memory.store_awaited(awaited.unwrap_or(0));
    }

    /// Whether the consumer has returned the first `count` cells. What it has done before that is
    /// done.
    pub fn has_returned(&mut self, count: u64) -> Result<bool, NoRoom> {
        if self.is_closed {
            return Err(NoRoom::Corrupt);
        }
        if self.known < count {
            self.collect()?;
        }
        Ok(self.known >= count)
    }

    /// Whether [`Producer::has_returned`] is worth asking.
    pub fn may_have_returned(&self, count: u64) -> bool {
        self.is_closed || self.memory.load_consumed() >= count
    }

    /// Whether the consumer returned anything since there was no room the last time, whichever call
    /// has read its count since.
    pub fn credit_came(&self) -> bool {
        self.is_closed
            || self.memory.load_consumed() != self.known_when_full
            || self.is_patience_over()
    }

    /// True if the consumer takes messages more slowly than they are sent.
    #[inline(always)]
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Ends this direction from this side.
    #[cold]
    pub fn close(&mut self) {
        self.is_closed = true;
        self.limit_bytes = self.at_bytes;
    }

    /// Whether the direction has ended.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// How many cells were sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        (self.at_bytes / STEP_BYTES).wrapping_add(self.elsewhere)
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

    /// Goes on with another cell than the first; all before it have been returned.
    #[cfg(test)]
    fn go_on_at(&mut self, number: u64) {
        self.at_bytes = number * STEP_BYTES;
        self.limit_bytes = self.at_bytes;
        self.known = number;
    }

    #[cold]
    #[inline(never)]
    fn find_harder(&mut self, len: usize) -> Result<Allocation, NoRoom> {
        if self.is_in_log {
            return self.place_in_log(len);
        }
        self.collect()?;
        self.arena.note(ticks());
        if self.arena.widens() {
            // Lines that the consumer has just let go of are the slowest to write again, so
            // the window widens before it is too small.
            let memory = &self.memory;
            self.arena.grow(|from, to| memory.reserve_arena(from, to));
        }
        loop {
            if let Some(place) = self.arena.find(len) {
                return Ok(place);
            }
            let memory = &self.memory;
            if !self.arena.grow(|from, to| memory.reserve_arena(from, to)) {
                self.overflow(Wanted::Payload(len as u64))?;
                return self.place_in_log(len);
            }
        }
    }
}

/// Room for one cell, or for a message of several. Dropping it sends nothing.
pub struct Room<'a, M> {
    producer: &'a mut Producer<M>,
}

impl<M: CellMemory> Producer<M> {
    /// Stores bytes into the cells after the next one; the place after those.
    #[inline(always)]
    fn store_continuation(&mut self, bytes: &[u8]) -> u64 {
        let (mut number, epoch) = (self.at_bytes / STEP_BYTES, self.flag & EPOCH);
        let mut at_bytes = self.at_bytes;
        for bytes in bytes.chunks(CONTINUED_BYTES) {
            (number, at_bytes) = (number + 1, at_bytes + STEP_BYTES);
            self.memory.claim(at_bytes + AHEAD_CELLS * STEP_BYTES);
            let flag = flag_of(number, self.shift) | epoch;
            self.memory
                .store_continued(at_bytes, CONTINUED | flag, bytes);
        }
        at_bytes + STEP_BYTES
    }

    /// The cells before that place are sent.
    #[inline(always)]
    fn publish_to(&mut self, end: u64) {
        self.at_bytes = end;
        self.memory.claim(end + AHEAD_CELLS * STEP_BYTES);
    }
}

impl Room<'_, SharedCells> {
    /// Where its payload lies.
    #[inline(always)]
    pub fn payload_memory(&self) -> PayloadMemory<'_> {
        self.producer.memory.payload_memory()
    }
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
        producer
            .memory
            .claim(producer.at_bytes + AHEAD_CELLS * STEP_BYTES);
    }

    /// Sends a message of several cells, for which there is room: `head`, and others with the bytes
    /// that do not fit it. The low 32 bits of the first word of `head` are overwritten.
    #[inline(always)]
    pub fn publish_all(self, mut head: Cell, continued: &[u8]) {
        let producer = self.producer;
        let end = producer.store_continuation(continued);
        // Last: what the consumer sees of the message, it sees whole.
        head[0] = head[0] & !FLAG_MASK | producer.flag;
        producer.memory.store(producer.at_bytes, &head);
        producer.publish_to(end);
    }

    /// Sends a message of as many cells as its bytes take, for which there is room: all words of its
    /// first cell, but for `first`, have bytes, too. The low 32 bits of `first` are overwritten.
    #[inline(always)]
    pub fn publish_bytes(self, first: u64, bytes: &[u8]) {
        let producer = self.producer;
        let (bytes, continued) = bytes.split_at(bytes.len().min(CONTINUED_BYTES));
        let end = match continued {
            [] => producer.at_bytes + STEP_BYTES,
            _ => producer.store_continuation(continued),
        };
        let first = first & !FLAG_MASK | producer.flag;
        let memory = &producer.memory;
        memory.store_continued(producer.at_bytes, first, bytes);
        producer.publish_to(end);
    }

    /// Sends the cell, which names `place`.
    #[inline]
    pub fn publish_with(self, cell: Cell, place: Allocation) {
        if self.producer.is_in_log {
            return self.producer.publish_in_log(cell, place);
        }
        let number = self.producer.sent();
        self.producer.arena.take(number, place);
        self.publish(cell);
    }
}

#[cfg(test)]
mod tests;
