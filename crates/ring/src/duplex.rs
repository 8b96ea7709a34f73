//! The duplex line of a link: one cell that both ends write, in turn.
//!
//! Over a ring for each direction a message costs two transfers of a line: its sender fetches the
//! cell that the receiver polls, and the receiver fetches it back. The end that has just read a
//! message from the duplex line has that line at hand, so its answer costs one
//! (docs/decisions/0028-duplex-line.md).
//!
//! The messages of both directions are numbered together: the first end sends the odd numbers, the
//! other end the even ones. An end may write the line when it has taken the message before, so at
//! any time one end at most may write. What it may not write there goes over its ring. Order
//! between line and ring is kept by two marks:
//!
//! * The flag of a message in the line says how many cells its sender had sent before it. It is not
//!   there before they are taken.
//! * Cells that are sent after it have the other *epoch* ([`crate::cells::EPOCH`]). They are not
//!   there before it is taken.
//!
//! | bits of the flag | |
//! |---|---|
//! | 0 to 7 | number of the message, modulo 256; 0 at first |
//! | 8 to 31 | cells that were sent before it, modulo 2^24 |
//!
//! A peer that writes anything else here, or out of turn, silences its own line, spoils what is on
//! its way to itself, or has its messages taken out of order. Each message is checked as one from a
//! ring.

use core::sync::atomic::AtomicU64;

use crate::cells::{CONTINUED_WORDS, Cell, FLAG_MASK, LineMemory, SharedLine};
use crate::geometry::CELLS_MAX;

const NUMBER_BITS: u32 = 8;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
/// What is expected when nothing is to be seen: no number of a message.
const NEVER: u64 = u64::MAX;
/// Messages after which the receiver looks after other things, at the latest: so many in a row may
/// come while others wait.
const MESSAGES_IN_A_ROW: u64 = 64;

// Cells that are not taken yet are told apart by their count.
const _: () = assert!((CELLS_MAX as u64) < FLAG_MASK >> NUMBER_BITS);

#[inline(always)]
const fn flag(number: u64, cells: u64) -> u64 {
    cells << NUMBER_BITS & FLAG_MASK | number & NUMBER_MASK
}

/// When an end of a link writes its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineOrder {
    /// Before the other end.
    First,
    /// After it.
    Second,
    /// Never, nor does it read it.
    Never,
}

impl LineOrder {
    /// That of the other end.
    pub const fn of_peer(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
            Self::Never => Self::Never,
        }
    }

    /// The number of the first message of such an end; zero if there is none.
    const fn first_number(self) -> u64 {
        match self {
            Self::First => 1,
            Self::Second => 2,
            Self::Never => 0,
        }
    }
}

/// How many messages an end sends before the one of that number.
const fn count_before(number: u64) -> u64 {
    number.saturating_sub(1) / 2
}

/// The sending half of an end.
pub struct DuplexSender<M> {
    memory: M,
    /// The number of the message that is to be taken before the next one of ours.
    before: u64,
}

impl<M: LineMemory> DuplexSender<M> {
    /// Over a line that was never used.
    pub fn new(memory: M, order: LineOrder) -> Self {
        Self {
            memory,
            before: order.first_number().wrapping_sub(1),
        }
    }

    /// Whether we may write, if `taken` is the number of the peer's message that was taken last.
    #[inline(always)]
    pub fn is_ours(&self, taken: u64) -> bool {
        taken == self.before
    }

    /// Sends a message after so many cells; we [must be allowed to](DuplexSender::is_ours). What is
    /// a flag in the first word is overwritten.
    #[inline(always)]
    pub fn publish(&mut self, mut cell: Cell, cells_sent: u64) {
        cell[0] = cell[0] & !FLAG_MASK | flag(self.before + 1, cells_sent);
        self.memory.store(&cell);
        self.before += 2;
    }

    /// How many messages were sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        count_before(self.before.wrapping_add(1))
    }

    /// Whether the peer is known to have taken all of them, if `taken` is the number of its message
    /// that was taken last: it says so with that, or when it has nothing else to do.
    pub fn is_all_taken(&self, taken: u64) -> bool {
        self.sent() == 0 || self.is_ours(taken) || self.memory.load_taken() == self.sent()
    }
}

/// The receiving half of an end.
pub struct DuplexReceiver<M> {
    memory: M,
    /// The number of the peer's next message.
    next: u64,
    /// What a flag says of it; or [`NEVER`].
    expected: u64,
    /// How many were taken when the peer was told.
    told: u64,
    is_closed: bool,
}

impl<M: LineMemory> DuplexReceiver<M> {
    /// Over a line that was never used.
    pub fn new(memory: M, order: LineOrder) -> Self {
        let mut end = Self {
            memory,
            next: order.of_peer().first_number(),
            expected: NEVER,
            told: 0,
            is_closed: order == LineOrder::Never,
        };
        end.begin_row();
        end
    }

    /// The flag of the next message, unless none is to be seen.
    #[inline(always)]
    fn expected(&self, cells_taken: u64) -> Option<u64> {
        (self.expected != NEVER).then(|| flag(self.expected, cells_taken))
    }

    /// The next message in place, as [`Consumer::look`](crate::consumer::Consumer::look), if it is
    /// there and as many cells were taken as were sent before it. Nothing while
    /// [`DuplexReceiver::begin_row`] has something to do. To be followed by
    /// [`DuplexReceiver::took`], or nothing.
    #[inline(always)]
    pub fn look(&self, first: u64, most: u64, cells_taken: u64) -> Option<(u64, M::InPlace<'_>)> {
        self.memory.look(self.expected(cells_taken)? | first, most)
    }

    /// A copy of the next message; otherwise as [`DuplexReceiver::look`].
    #[inline]
    pub fn peek(&self, cells_taken: u64) -> Option<Cell> {
        self.memory.load(self.expected(cells_taken)?).ok()
    }

    /// Whether there is a message, or [`DuplexReceiver::begin_row`] has something to do.
    #[inline]
    pub fn is_pending(&self, cells_taken: u64) -> bool {
        match self.expected(cells_taken) {
            Some(flag) => self.memory.load_first() & FLAG_MASK == flag,
            None => self.is_row_over(),
        }
    }

    /// The message that was last shown is done with. Its number, which the sending half is to be
    /// told.
    #[inline(always)]
    pub fn took(&mut self) -> u64 {
        let number = self.next;
        self.next += 2;
        self.expected = if (number + 1) % (2 * MESSAGES_IN_A_ROW) < 2 {
            NEVER
        } else {
            self.next & NUMBER_MASK
        };
        number
    }

    /// Whether so many messages were taken in a row that other things are to be looked after.
    #[inline]
    pub fn is_row_over(&self) -> bool {
        self.expected == NEVER && !self.is_closed
    }

    /// Goes on after a row, if one is over.
    #[inline]
    pub fn begin_row(&mut self) {
        if self.is_row_over() {
            self.expected = self.next & NUMBER_MASK;
        }
    }

    /// Tells the peer what was taken, if it was not told.
    #[inline]
    pub fn return_taken(&mut self) {
        let taken = self.taken();
        if self.told != taken {
            self.told = taken;
            self.memory.store_taken(taken);
        }
    }

    /// How many messages were taken.
    #[inline]
    pub fn taken(&self) -> u64 {
        count_before(self.next)
    }

    /// From now on there is nothing.
    #[cold]
    pub fn close(&mut self) {
        (self.expected, self.is_closed) = (NEVER, true);
    }
}

impl DuplexReceiver<SharedLine> {
    /// The words of the line, but for the first word. The sender may write them at any time.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64; CONTINUED_WORDS] {
        self.memory.words()
    }
}

#[cfg(test)]
mod tests;
