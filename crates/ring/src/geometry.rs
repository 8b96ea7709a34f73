//! How the memory of one direction is laid out.
//!
//! A control page (the consumer's counts and its reports, and what either end waits for), then
//! cells of one line, then payload bytes. The receiver makes the memory; both sides compute the
//! same layout from the two numbers of [`Geometry`] and trust nothing else about it.
//!
//! Most of the payload arena is address space only. What is [`Geometry::reserved`] is there from
//! the beginning; the sender reserves the rest when it needs it.

use core::ops::Range;

use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, USER_METADATA_BYTES};

use crate::shared::{LINE_BYTES, PAGE_BYTES};

/// Fewest cells of a ring.
pub const CELLS_MIN: u32 = 2;
/// Most cells of a ring.
pub const CELLS_MAX: u32 = 1 << 16;
/// Cells of a ring that was not told otherwise: so many, of both directions, stay in the caches
/// nearest to a processor. Twice as many are half as fast on some (docs/performance.md).
pub const CELLS_DEFAULT: u32 = 256;
/// Most cells of a message: longer ones are sooner through the payload arena
/// (docs/decisions/0048-cells.md).
pub const MESSAGE_CELLS_MAX: u32 = 19;
/// A message takes this part of a ring at most.
const CELLS_PER_MESSAGE_CELL: u32 = 8;
/// The smallest payload arena of a ring, in bytes.
pub const ARENA_MIN_BYTES: u32 = 128 << 10;
/// The largest payload arena of a ring, in bytes.
pub const ARENA_MAX_BYTES: u32 = 64 << 20;

/// Most bytes of payload arena that are present from the beginning.
pub const FIRST_WINDOW_BYTES: usize = 2 * PAGE_BYTES;

const _: () = {
    // The largest payload, with its metadata in a line of their own, fits into the smallest payload
    // arena.
    assert!(PACKET_PAYLOAD_MAX + USER_METADATA_BYTES + LINE_BYTES <= ARENA_MIN_BYTES as usize);
    // The whole layout fits into 32 bits.
    assert!((CELLS_MAX as u64) * 64 + (ARENA_MAX_BYTES as u64) + 4096 < 1 << 32);
};

/// Sizes that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadGeometry {
    /// The number of cells is not a power of two in the allowed range.
    #[error("{0} cells: must be a power of two from {CELLS_MIN} to {CELLS_MAX}")]
    Cells(u32),
    /// The payload arena is not a multiple of a page in the allowed range.
    #[error(
        "{0} bytes of payload arena: must be a multiple of 4096 from {ARENA_MIN_BYTES} to {ARENA_MAX_BYTES}"
    )]
    PayloadArena(u32),
}

/// The sizes of one direction. A value of this type is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    cells: u32,
    arena_bytes: u32,
}

impl Geometry {
    /// What a link has unless it is told otherwise.
    pub const DEFAULT: Self = Self {
        cells: CELLS_DEFAULT,
        arena_bytes: 1 << 20,
    };

    /// Checks the sizes, which may come from a peer.
    pub const fn new(cells: u32, arena_bytes: u32) -> Result<Self, BadGeometry> {
        if !cells.is_power_of_two() || cells < CELLS_MIN || cells > CELLS_MAX {
            return Err(BadGeometry::Cells(cells));
        }
        if arena_bytes < ARENA_MIN_BYTES
            || arena_bytes > ARENA_MAX_BYTES
            || !arena_bytes.is_multiple_of(PAGE_BYTES as u32)
        {
            return Err(BadGeometry::PayloadArena(arena_bytes));
        }
        Ok(Self { cells, arena_bytes })
    }

    /// How many cells there are.
    pub const fn cells(self) -> u32 {
        self.cells
    }

    /// The same, as a power of two.
    pub(crate) const fn shift(self) -> u32 {
        self.cells.trailing_zeros()
    }

    /// How many bytes of payload arena.
    pub const fn arena_bytes(self) -> u32 {
        self.arena_bytes
    }

    /// How many cells a message may take: so many that a sender who waits for half of the ring has
    /// room for it.
    pub const fn message_cells(self) -> u32 {
        match self.cells / CELLS_PER_MESSAGE_CELL {
            0 => 1,
            cells if cells < MESSAGE_CELLS_MAX => cells,
            _ => MESSAGE_CELLS_MAX,
        }
    }

    /// Where the consumer's count lies.
    pub const fn consumed_offset(self) -> usize {
        0
    }

    /// Where the consumer's count of reports lies: beside its other count, as the same end writes
    /// both.
    pub const fn refused_offset(self) -> usize {
        self.consumed_offset() + 8
    }

    /// Where the consumer says how many messages it has taken from the duplex line: beside its
    /// other counts.
    pub const fn line_taken_offset(self) -> usize {
        self.refused_offset() + 8
    }

    /// Where the producer says what count it waits for: on a line of its own, as the
    /// other end writes it.
    pub const fn awaited_offset(self) -> usize {
        2 * LINE_BYTES
    }

    /// Where a producer that pays for the barrier before it looks at the consumer's word keeps a
    /// word that says so ([`crate::doorbell::Waker`]): beside what it waits for.
    pub const fn barrier_offset(self) -> usize {
        self.awaited_offset() + 8
    }

    /// The word in which a producer that goes on in the overflow log says how many cells it has
    /// sent: beside the one that it waits for.
    pub const fn sent_offset(self) -> usize {
        self.barrier_offset() + 8
    }

    /// Where the consumer says whether it looks at this direction: on a line of its own, which
    /// the producer loads after each cell.
    pub const fn attention_offset(self) -> usize {
        4 * LINE_BYTES
    }

    /// Where the word lies by which the producer wakes the consumer: on a line of its own, which
    /// is touched only by sleepers and those that wake them.
    pub const fn wake_offset(self) -> usize {
        6 * LINE_BYTES
    }

    /// Where the line lies that both ends write ([`crate::duplex`]). A link has two memories, and
    /// uses it in one of them.
    pub const fn duplex_offset(self) -> usize {
        8 * LINE_BYTES
    }

    /// Where the consumer's reports lie ([`crate::reports`]): the second half of the control page.
    pub const fn reports_offset(self) -> usize {
        PAGE_BYTES / 2
    }

    /// Where the cells begin.
    pub const fn cells_offset(self) -> usize {
        PAGE_BYTES
    }

    /// Where the payload arena begins.
    pub const fn arena_offset(self) -> usize {
        // A page multiple, so that widening the window reserves nothing twice.
        (PAGE_BYTES + self.cells as usize * LINE_BYTES).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of the whole memory.
    pub const fn total_bytes(self) -> usize {
        self.arena_offset() + self.arena_bytes as usize
    }

    /// Bytes of payload arena that are present and used at first: room for one largest payload,
    /// with its metadata apart from it, but [`FIRST_WINDOW_BYTES`] at most.
    pub const fn window_bytes(self, payload_max_bytes: usize) -> usize {
        let window = payload_max_bytes.saturating_add(LINE_BYTES);
        if window < FIRST_WINDOW_BYTES {
            window.next_multiple_of(PAGE_BYTES)
        } else {
            FIRST_WINDOW_BYTES
        }
    }

    /// What the receiver must reserve when it makes the memory: control page, cells, and the first
    /// window of payload arena.
    pub const fn reserved(self, payload_max_bytes: usize) -> [Range<usize>; 2] {
        let cells_end = self.cells_offset() + self.cells as usize * LINE_BYTES;
        let arena = self.arena_offset();
        [
            0..cells_end,
            arena..arena + self.window_bytes(payload_max_bytes),
        ]
    }
}

impl Default for Geometry {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests;
