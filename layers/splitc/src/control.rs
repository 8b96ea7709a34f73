//! The control area of a processor: words that other processors store, and that it looks at. It is
//! no part of the memory that programs share, so that no pointer of a program leads there.
//!
//! A value of a collective operation travels in a *cell* of two words. Each holds half of the value
//! and a mark, so that the reader sees of each word whether it is there, in whatever order the
//! words come.
//!
//! Where processors reach each other's memory directly, the control area also has a ring of
//! requests for each of the others ([`crate::direct_procedure`]).

use hamlyn::Area;

/// A cache line: places that different processors write share none.
const LINE_BYTES: u64 = 64;
/// Rounds of a barrier of as many processors as there may be.
pub(crate) const ROUNDS_MAX: u32 = 16;
/// Cells of a mailbox: values that a processor may have sent to another before that one took any.
pub(crate) const CELLS: u64 = 4;
/// Bytes of a cell.
const CELL_BYTES: u64 = 16;

const _: () = assert!(CELLS * CELL_BYTES <= LINE_BYTES);

/// How many collective operations this processor has entered.
pub(crate) const ENTERED: u64 = 0;
/// What is asked of this processor: a bit for the rings of requests of some processors
/// ([`called_by`]), [`CALLED`] and [`ASLEEP`].
pub(crate) const ATTENTION: u64 = LINE_BYTES;
/// Another processor has asked for an atomic procedure by a call of the service.
pub(crate) const CALLED: u64 = 1 << 31;
/// Of the word of attention, what says that an atomic procedure is asked for.
pub(crate) const ASKED: u64 = u32::MAX as u64;
/// This processor sleeps, or is about to: a change of a word alone does not wake it.
pub(crate) const ASLEEP: u64 = 1 << 63;
/// Bits of the word of attention that stand for rings.
pub(crate) const RING_BITS: u32 = 31;
/// Not 0: this processor's program has come to its end, which is the collective operation of that
/// number.
pub(crate) const ENDING: u64 = 2 * LINE_BYTES;
/// Where the messages land that wake this processor.
pub(crate) const WOKEN: u64 = 3 * LINE_BYTES;
const BARRIER: u64 = 4 * LINE_BYTES;
/// The barrier at the end has words of its own, so that no other is taken for it.
const END: u64 = BARRIER + (ROUNDS_MAX as u64 + 1) * LINE_BYTES;
const MAILBOXES: u64 = END + (ROUNDS_MAX as u64 + 1) * LINE_BYTES;
/// Lines of a mailbox: a cell, and two counts.
const MAILBOX_LINES: u64 = 3;

/// Requests for atomic procedures that a processor may have in its ring at another.
pub(crate) const REQUESTS: u64 = 64;
/// Bytes that say why an atomic procedure failed, with their number.
pub(crate) const FAILURE_BYTES: u64 = 4 * LINE_BYTES;
/// A ring, a line that says how far it was served, and why the last request of it that failed did
/// so.
const RING_BYTES: u64 = (REQUESTS + 1) * LINE_BYTES + FAILURE_BYTES;

/// The bit of the word of attention for the ring of that processor.
pub(crate) fn called_by(proc: u32) -> u64 {
    1 << (proc % RING_BITS)
}

/// Where things lie in the control area of a job of so many processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    procs: u64,
    has_rings: bool,
}

impl Layout {
    pub(crate) fn new(procs: u32, has_rings: bool) -> Self {
        Self {
            procs: u64::from(procs),
            has_rings,
        }
    }

    /// The word that says which barriers have come to that round.
    pub(crate) fn barrier(self, round: u32) -> u64 {
        BARRIER + u64::from(round) * LINE_BYTES
    }

    /// The same of the barrier at the end.
    pub(crate) fn end(self, round: u32) -> u64 {
        END + u64::from(round) * LINE_BYTES
    }

    /// The cell for the value of that number from that processor.
    pub(crate) fn cell(self, from: u32, number: u64) -> u64 {
        MAILBOXES + u64::from(from) * LINE_BYTES + number % CELLS * CELL_BYTES
    }

    /// How many values that processor has taken that this one sent to it.
    pub(crate) fn taken(self, by: u32) -> u64 {
        MAILBOXES + (self.procs + u64::from(by)) * LINE_BYTES
    }

    /// How many bytes that processor has stored here.
    pub(crate) fn stored(self, by: u32) -> u64 {
        MAILBOXES + (2 * self.procs + u64::from(by)) * LINE_BYTES
    }

    fn ring(self, of: u32) -> u64 {
        MAILBOXES + MAILBOX_LINES * self.procs * LINE_BYTES + u64::from(of) * RING_BYTES
    }

    /// The line for the request of that number from that processor.
    pub(crate) fn request(self, from: u32, number: u64) -> u64 {
        self.ring(from) + number % REQUESTS * LINE_BYTES
    }

    /// How many requests of that processor were served, and behind it the number of the last one
    /// without a result that failed.
    pub(crate) fn served(self, from: u32) -> u64 {
        self.ring(from) + REQUESTS * LINE_BYTES
    }

    /// Why a request of that processor failed: how many bytes, and the bytes.
    pub(crate) fn failure(self, from: u32) -> u64 {
        self.served(from) + LINE_BYTES
    }

    pub(crate) fn length_bytes(self) -> u64 {
        let rings = if self.has_rings { self.procs } else { 0 };
        let mailboxes = MAILBOX_LINES * self.procs * LINE_BYTES;
        (MAILBOXES + mailboxes + rings * RING_BYTES).next_multiple_of(4096)
    }
}

/// What a mark says: the number of the value, and by which operation it was sent.
pub(crate) fn mark(number: u64, kind: Kind) -> u64 {
    (number & NUMBER_MASK) << KIND_BITS | kind as u64
}

const KIND_BITS: u32 = 8;
const NUMBER_MASK: u64 = (1 << (32 - KIND_BITS)) - 1;

/// The two words of a cell.
pub(crate) fn cell_words(mark: u64, value: u64) -> [u64; 2] {
    [mark << 32 | value & 0xFFFF_FFFF, mark << 32 | value >> 32]
}

/// The value in a cell, and by which operation it was sent; nothing as long as that number is not
/// there.
pub(crate) fn cell_value(words: [u64; 2], number: u64) -> Option<(u8, u64)> {
    let number = number & NUMBER_MASK;
    let is_there = |word: u64| word >> (32 + KIND_BITS) == number && (word >> 32) as u8 != 0;
    if !words.into_iter().all(is_there) {
        return None;
    }
    let value = words[0] & 0xFFFF_FFFF | words[1] << 32;
    Some(((words[0] >> 32) as u8, value))
}

/// Which collective operation a value belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    Reduce = 1,
    Broadcast = 2,
    Scan = 3,
    Allocation = 4,
    StoreSync = 5,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        Self::name_of(self as u8)
    }

    pub(crate) fn name_of(kind: u8) -> &'static str {
        match kind {
            1 => "a reduction",
            2 => "a broadcast",
            3 => "a scan",
            4 => "an allocation of a spread array",
            5 => "all_store_sync",
            _ => "an operation of another version",
        }
    }
}

/// The word at a place of the control area, which lies in it.
pub(crate) fn load(area: &Area, place: u64) -> u64 {
    area.load_u64(place).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap() {
        let layout = Layout::new(3, true);
        let mut places: Vec<u64> = (0..=ROUNDS_MAX)
            .map(|round| layout.barrier(round))
            .collect();
        places.extend((0..=ROUNDS_MAX).map(|round| layout.end(round)));
        places.extend([ENTERED, ATTENTION, ENDING, WOKEN]);
        for proc in 0..3 {
            places.extend([
                layout.cell(proc, 0),
                layout.taken(proc),
                layout.stored(proc),
                layout.served(proc),
                layout.failure(proc),
            ]);
            places.extend((0..REQUESTS).map(|number| layout.request(proc, number)));
        }
        places.sort_unstable();
        assert!(
            places
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= LINE_BYTES)
        );
        assert!(layout.failure(2) + FAILURE_BYTES <= layout.length_bytes());
        assert_eq!(places.last(), Some(&layout.failure(2)));
        assert!(Layout::new(3, false).length_bytes() < layout.length_bytes());
    }

    #[test]
    fn a_cell_is_read_when_both_words_are_there() {
        let value = 0xFEDC_BA98_7654_3210;
        let new = cell_words(mark(8, Kind::Scan), value);
        let old = cell_words(mark(4, Kind::Scan), 1);
        assert_eq!(cell_value(new, 8), Some((3, value)));
        for words in [old, [new[0], old[1]], [old[0], new[1]], [0, 0]] {
            assert_eq!(cell_value(words, 8), None);
        }
        // The number of a value that is a multiple of what a mark holds.
        assert_eq!(cell_value([0, 0], NUMBER_MASK + 1), None);
    }
}
