//! How the memory of one direction is laid out.
//!
//! A control page (the consumer's counts and its reports, and what either end waits for), then cells of one line, then
//! payload bytes. The receiver makes the memory; both sides compute the same
//! layout from the two numbers of [`Geometry`] and trust nothing else about it.
//!
//! Most of it is address space only. What is [`Geometry::reserved`] is there from the beginning;
//! the rest the producer reserves when it needs it, and gives back.

use core::ops::Range;

use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, USER_METADATA_BYTES};

use crate::shared::{LINE_BYTES, PAGE_BYTES};

/// Fewest cells of a ring.
pub const CELLS_MIN: u32 = 2;
/// Most cells of a ring.
pub const CELLS_MAX: u32 = 1 << 16;
/// Cells that an idle ring keeps: one page of them.
pub const CELLS_IDLE: u32 = (PAGE_BYTES / LINE_BYTES) as u32;
/// Cells that a ring has at most while its consumer is at work, unless it was told to have fewer: so many, of both
/// directions, stay in the caches nearest to a processor. Twice as many are half as fast on some
/// (docs/performance.md).
pub const CELLS_FAST: u32 = 4 * CELLS_IDLE;
/// The smallest payload arena of a ring, in bytes.
pub const ARENA_MIN_BYTES: u32 = 128 << 10;
/// The largest payload arena of a ring, in bytes.
pub const ARENA_MAX_BYTES: u32 = 64 << 20;

/// Longest payload for which there is room from the beginning.
pub const FIRST_PAYLOAD_BYTES: usize = 16 << 10;

const _: () = {
    // The largest payload, with its metadata in a line of their own, fits into the smallest payload arena.
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
    cells_idle: u32,
    arena_bytes: u32,
}

impl Geometry {
    /// What a link has unless it is told otherwise. Cells and arena bytes that are not in use cost
    /// nothing.
    pub const DEFAULT: Self = Self {
        cells: 8192,
        cells_idle: CELLS_IDLE,
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
        let cells_idle = if cells < CELLS_IDLE {
            cells
        } else {
            CELLS_IDLE
        };
        Ok(Self {
            cells,
            cells_idle,
            arena_bytes,
        })
    }

    /// The same, with as many cells present from the beginning as there are: the ring neither
    /// grows nor gives back.
    pub const fn fixed(self) -> Self {
        Self {
            cells_idle: self.cells,
            ..self
        }
    }

    /// The same, with fewer cells when idle, so that a test sees a ring of a few cells grow.
    #[cfg(test)]
    pub(crate) const fn with_idle(self, cells_idle: u32) -> Self {
        Self { cells_idle, ..self }
    }

    /// How many cells there can be.
    pub const fn cells(self) -> u32 {
        self.cells
    }

    /// How many cells are present while the ring is idle.
    pub const fn cells_idle(self) -> u32 {
        self.cells_idle
    }

    /// How many bytes of payload arena.
    pub const fn arena_bytes(self) -> u32 {
        self.arena_bytes
    }

    /// Where the consumer's count lies.
    pub const fn consumed_offset(self) -> usize {
        0
    }

    /// Where the consumer's count of reports lies: beside its other count, as the same end writes both.
    pub const fn refused_offset(self) -> usize {
        self.consumed_offset() + 8
    }

    /// Where the producer says what count it waits for: on a line of its own, as the
    /// other end writes it.
    pub const fn awaited_offset(self) -> usize {
        2 * LINE_BYTES
    }

    /// Where a producer that pays for the barrier before it looks at the consumer's word keeps a word that says so
    /// ([`crate::doorbell::Waker`]): beside what it waits for.
    pub const fn barrier_offset(self) -> usize {
        self.awaited_offset() + 8
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
        // A page multiple, so that growing the payload arena reserves nothing twice.
        (PAGE_BYTES + self.cells as usize * LINE_BYTES).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of the whole memory.
    pub const fn total_bytes(self) -> usize {
        self.arena_offset() + self.arena_bytes as usize
    }

    /// Bytes of payload arena that a producer uses at first: one largest payload, with its metadata apart
    /// from it, unless that is long. Longer ones find room when they come; if there is no memory for it,
    /// payloads stay this short.
    pub const fn window_bytes(self, payload_max_bytes: usize) -> usize {
        let payload = if payload_max_bytes < FIRST_PAYLOAD_BYTES {
            payload_max_bytes
        } else {
            FIRST_PAYLOAD_BYTES
        };
        let window = (payload + LINE_BYTES).next_multiple_of(PAGE_BYTES);
        if window < self.arena_bytes as usize {
            window
        } else {
            self.arena_bytes as usize
        }
    }

    /// What the receiver must reserve when it makes the memory: control page and idle cells, and the
    /// first window of payload arena.
    pub const fn reserved(self, payload_max_bytes: usize) -> [Range<usize>; 2] {
        let cells_end = self.cells_offset() + self.cells_idle as usize * LINE_BYTES;
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
