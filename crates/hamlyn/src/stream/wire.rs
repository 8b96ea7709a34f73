//! What the two ends of a stream say to each other. Pure functions; all of them total.

use hamlyn_engine::limits::{METADATA_ENTRIES_MAX, SHORT_BYTES};
use hamlyn_engine::mutation::{Mutation, is_on};

use crate::error::GrowError;
use crate::ticket::{TICKET_BYTES, Ticket};

/// Entries of an extent besides those of its pieces.
pub(crate) const CONTROL_ENTRIES: u32 = 3;
/// Control entry (counted from the number of pieces): the sender presents itself, with the
/// ticket for credit as metadata.
pub(crate) const HELLO: u32 = 0;
/// Control entry: nothing comes after the position given.
pub(crate) const CLOSE: u32 = 1;
/// Control entry: the sender cannot go on, because a record is longer than the extent or
/// because it waits for credit that may have been held back.
pub(crate) const ENLARGE: u32 = 2;

/// Smallest piece.
pub(crate) const PIECE_BYTES_MIN: u32 = 64;
/// Largest piece.
pub(crate) const PIECE_BYTES_MAX: u32 = 1 << 30;
/// Most pieces of an extent.
pub(crate) const PIECES_MAX: u32 = METADATA_ENTRIES_MAX as u32 - CONTROL_ENTRIES;

/// The piece after that one, in a ring of so many. Positions and indices are counted side by
/// side, since a division for each record would cost more than the rest of its bookkeeping.
#[inline]
pub(crate) const fn after(index: u32, pieces: u32) -> u32 {
    if index + 1 == pieces { 0 } else { index + 1 }
}

/// What a piece holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One record.
    Whole,
    /// The beginning of a record that takes several pieces; the length is that of all of it.
    First,
    /// A later part of such a record.
    Next,
    /// Several records, each with its length before it.
    Packed,
    /// Nothing: the record that follows would not have fitted before the end.
    Skip,
}

/// The eight bytes of metadata of a piece: what it holds and how long that is.
#[inline]
pub(crate) const fn piece_word(kind: Kind, length_bytes: u32) -> u64 {
    let kind = match kind {
        Kind::Whole => 1,
        Kind::First => 2,
        Kind::Next => 3,
        Kind::Packed => 4,
        Kind::Skip => 5,
    };
    length_bytes as u64 | kind << 32
}

/// Reads [`piece_word`].
pub(crate) fn read_piece_word(word: u64) -> Option<(Kind, u32)> {
    let kind = match word >> 32 {
        1 => Kind::Whole,
        2 => Kind::First,
        3 => Kind::Next,
        4 => Kind::Packed,
        5 => Kind::Skip,
        _ => return None,
    };
    Some((kind, word as u32))
}

/// The metadata of a short record, which is alone in its piece.
pub(crate) const SHORT_WORD: u64 = piece_word(Kind::Whole, SHORT_BYTES as u32);

/// Bytes before each packed record: its length, and padding.
pub(crate) const PACKED_HEADER_BYTES: usize = 8;

/// Room that a packed record takes.
pub(crate) const fn packed_bytes(length_bytes: usize) -> usize {
    PACKED_HEADER_BYTES + length_bytes.next_multiple_of(8)
}

/// The packed record at `at` among `packed`: where its data begin and end, and where
/// the next one begins. Nothing if the bytes are no such record.
pub(crate) fn packed_record(packed: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    let start = at.checked_add(PACKED_HEADER_BYTES)?;
    let header = packed.get(at..start)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let end = start.checked_add(length)?;
    let next = start.checked_add(length.checked_next_multiple_of(8)?)?;
    let end = if is_on(Mutation::PaddingDelivered) {
        next
    } else {
        end
    };
    (next <= packed.len()).then_some((start, end, next))
}

/// Bytes of data that come with a [`Credit`], and of the place that the sender has for them.
pub(crate) const CREDIT_BYTES: usize = SHORT_BYTES;

/// The word with which a receiver reports what it released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Credit {
    /// Pieces released since the extent was opened.
    pub(crate) released: u64,
    /// Which extent, modulo 2^13.
    pub(crate) extent: u16,
    /// This answers the sender's demand.
    pub(crate) answer: bool,
    /// No larger extent will be made.
    pub(crate) denied: bool,
    /// The receiver closed the stream.
    pub(crate) closed: bool,
}

const RELEASED_BITS: u32 = 48;
pub(crate) const EXTENT_MASK: u16 = 0x1FFF;

impl Credit {
    pub(crate) fn to_word(self) -> u64 {
        (self.released & ((1 << RELEASED_BITS) - 1))
            | u64::from(self.extent & EXTENT_MASK) << RELEASED_BITS
            | u64::from(self.answer) << 61
            | u64::from(self.denied) << 62
            | u64::from(self.closed) << 63
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self {
            released: word & ((1 << RELEASED_BITS) - 1),
            extent: (word >> RELEASED_BITS) as u16 & EXTENT_MASK,
            answer: word >> 61 & 1 != 0,
            denied: word >> 62 & 1 != 0,
            closed: word >> 63 != 0,
        }
    }
}

/// Bytes of metadata that announce a new extent: its ticket and the number of its pieces.
pub(crate) const EXTENT_NOTE_BYTES: usize = TICKET_BYTES + 4;

pub(crate) fn extent_note(ticket: &Ticket, pieces: u32) -> [u8; EXTENT_NOTE_BYTES] {
    let mut bytes = [0; EXTENT_NOTE_BYTES];
    bytes[..TICKET_BYTES].copy_from_slice(&ticket.to_bytes());
    bytes[TICKET_BYTES..].copy_from_slice(&pieces.to_le_bytes());
    bytes
}

pub(crate) fn read_extent_note(bytes: &[u8]) -> Option<(Ticket, u32)> {
    let (ticket, pieces) = bytes.split_at_checked(TICKET_BYTES)?;
    let pieces = u32::from_le_bytes(pieces.try_into().ok()?);
    Some((Ticket::from_bytes(ticket).ok()?, pieces))
}

/// Bytes of the metadata of [`ENLARGE`]: the position reached, and the length of the record.
pub(crate) const ENLARGE_BYTES: usize = 16;

pub(crate) fn enlarge_note(position: u64, record_bytes: u64) -> [u8; ENLARGE_BYTES] {
    let mut bytes = [0; ENLARGE_BYTES];
    bytes[..8].copy_from_slice(&position.to_le_bytes());
    bytes[8..].copy_from_slice(&record_bytes.to_le_bytes());
    bytes
}

pub(crate) fn read_enlarge_note(bytes: &[u8]) -> Option<(u64, u64)> {
    let (position, record) = bytes.split_at_checked(8)?;
    Some((
        u64::from_le_bytes(position.try_into().ok()?),
        u64::from_le_bytes(record.try_into().ok()?),
    ))
}

/// Bytes of a seed as it travels.
pub const SEED_BYTES: usize = TICKET_BYTES + 12;

/// All that is needed to grow the sending end of a stream elsewhere (`Hamlyn 3.3`). A
/// capability; to be used by one holder, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamSeed {
    /// The ticket for piece 0; the others follow from it.
    pub(crate) ticket: Ticket,
    pub(crate) pieces: u32,
    pub(crate) piece_bytes: u32,
}

impl StreamSeed {
    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; SEED_BYTES] {
        let mut bytes = [0; SEED_BYTES];
        bytes[..TICKET_BYTES].copy_from_slice(&self.ticket.to_bytes());
        bytes[TICKET_BYTES..][..4].copy_from_slice(&self.pieces.to_le_bytes());
        bytes[TICKET_BYTES + 4..][..4].copy_from_slice(&self.piece_bytes.to_le_bytes());
        let check = self.check();
        bytes[TICKET_BYTES + 8..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads a seed. Total: any bytes give a seed or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<StreamSeed, GrowError> {
        let damaged = |what| GrowError::Seed { what };
        let Some((ticket, rest)) = bytes.split_at_checked(TICKET_BYTES) else {
            return Err(damaged("it was cut"));
        };
        let ticket = Ticket::from_bytes(ticket)?;
        let rest: [u8; 12] = rest
            .try_into()
            .map_err(|_| damaged("its length is wrong"))?;
        let field =
            |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let seed = StreamSeed {
            ticket,
            pieces: field(0),
            piece_bytes: field(4),
        };
        if field(8) != seed.check() {
            return Err(damaged("its check sum is wrong"));
        }
        seed.validate().map_err(damaged)?;
        Ok(seed)
    }

    fn check(&self) -> u32 {
        self.pieces.rotate_left(7) ^ self.piece_bytes.rotate_left(19) ^ 0x5EED_5EED
    }

    /// Whether the fields fit each other.
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        if !(1..=PIECES_MAX).contains(&self.pieces) {
            return Err("the number of pieces is impossible");
        }
        if !(PIECE_BYTES_MIN..=PIECE_BYTES_MAX).contains(&self.piece_bytes)
            || !self.piece_bytes.is_power_of_two()
        {
            return Err("the size of the pieces is impossible");
        }
        if self.ticket.base != 0
            || self.ticket.length_bytes != u64::from(self.pieces) * u64::from(self.piece_bytes)
        {
            return Err("the ticket does not cover the pieces");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
