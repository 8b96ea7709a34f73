//! What the two ends of a stream say to each other. Pure functions; all of them total.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{METADATA_ENTRIES_MAX, USER_METADATA_BYTES};
use hamlyn_engine::packet::SlotName;

use crate::error::ConnectError;
use crate::ticket::{TICKET_BYTES, Ticket, check_sum};

const _: () =
    assert!(EXTENT_NOTE_BYTES <= USER_METADATA_BYTES && GROW_REQUEST_BYTES <= USER_METADATA_BYTES);

/// Entries of the control slot, one for each thing that a sender says beside its records.
pub(crate) const CONTROL_ENTRIES: u16 = 3;
/// Control entry: the sender presents itself, with the ticket for credit as metadata.
pub(crate) const HELLO: u16 = 0;
/// Control entry: nothing comes after the [`StreamPosition`] given, which may be marked
/// [`GIVEN_UP`].
pub(crate) const CLOSE: u16 = 1;
/// Control entry: the sender cannot go on, because a record is longer than the extent or
/// because it waits for credit that may have been held back. A [`GrowRequest`].
pub(crate) const ENLARGE: u16 = 2;

/// Smallest piece.
pub(crate) const PIECE_BYTES_MIN: u32 = 64;
/// Largest piece.
pub(crate) const PIECE_BYTES_MAX: u32 = 1 << 30;
/// Most pieces of an extent.
pub(crate) const PIECES_MAX: u32 = METADATA_ENTRIES_MAX as u32;
/// Bits of a number of pieces as it travels.
const PIECES_BITS: u32 = 16;
const PIECES_MASK: u32 = (1 << PIECES_BITS) - 1;
/// Bits of the exponent of a piece's size in a seed, between the number of pieces and the limit.
const EXPONENT_BITS: u32 = 8;
/// The highest limit that a seed names; one that is higher is named so.
pub(crate) const LIMIT_BYTES_MAX: u64 = u64::MAX >> (PIECES_BITS + EXPONENT_BITS);

const _: () = assert!(PIECES_MAX <= PIECES_MASK);

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
    (next <= packed.len()).then_some((start, end, next))
}

/// Bytes of the place that the sender has for a [`Credit`], which comes with no data.
pub(crate) const CREDIT_PLACE_BYTES: u64 = 16;

/// The word with which a receiver says all that it has to say but where a new extent is. The newest
/// says what all before it said, so it does no harm if those are lost or come late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Credit {
    /// Pieces released since the extent was opened, modulo 2^32; many more than there ever are
    /// between what is released and what is filled.
    pub(crate) released: u32,
    /// Serial number of the extent, modulo 2^14.
    pub(crate) extent: u16,
    /// Grow requests answered since the stream began, modulo 2^16.
    pub(crate) answers: u16,
    /// The last answer was that no larger extent will be made.
    pub(crate) denied: bool,
    /// The receiver closed the stream.
    pub(crate) closed: bool,
}

const EXTENT_SHIFT: u32 = 32;
const ANSWERS_SHIFT: u32 = 46;
/// What a [`Credit`] says of a serial number.
pub(crate) const EXTENT_MASK: u16 = 0x3FFF;

impl Credit {
    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.released)
            | u64::from(self.extent & EXTENT_MASK) << EXTENT_SHIFT
            | u64::from(self.answers) << ANSWERS_SHIFT
            | u64::from(self.denied) << 62
            | u64::from(self.closed) << 63
    }

    #[inline]
    pub(crate) fn from_word(word: u64) -> Self {
        Self {
            released: word as u32,
            extent: (word >> EXTENT_SHIFT) as u16 & EXTENT_MASK,
            answers: (word >> ANSWERS_SHIFT) as u16,
            denied: word >> 62 & 1 != 0,
            closed: word >> 63 != 0,
        }
    }
}

/// Takes the first bytes off.
fn take<const LENGTH: usize>(bytes: &mut &[u8]) -> Option<[u8; LENGTH]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Bytes of an [`ExtentNote`].
pub(crate) const EXTENT_NOTE_BYTES: usize = 30;

/// The metadata that announce a new extent. Its ticket follows from them and from the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExtentNote {
    /// Its serial number.
    pub(crate) serial: u64,
    pub(crate) slot: SlotName,
    pub(crate) key: Key,
    pub(crate) pieces: u32,
    pub(crate) piece_bytes: u32,
    /// As in [`Credit`].
    pub(crate) answers: u16,
}

impl ExtentNote {
    /// The number of pieces, and above it the exponent of their size.
    fn shape(self) -> u32 {
        self.pieces | self.piece_bytes.trailing_zeros() << PIECES_BITS
    }

    pub(crate) fn to_bytes(self) -> [u8; EXTENT_NOTE_BYTES] {
        let mut bytes = [0; EXTENT_NOTE_BYTES];
        bytes[..8].copy_from_slice(&self.serial.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.slot.to_bits().to_le_bytes());
        bytes[12..20].copy_from_slice(&self.key.to_bits().to_le_bytes());
        bytes[20..24].copy_from_slice(&self.shape().to_le_bytes());
        bytes[24..26].copy_from_slice(&self.answers.to_le_bytes());
        let sum = check_sum(&bytes[..26]);
        bytes[26..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Nothing if the bytes are none, which may be because the next one is being written over them.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let sum = check_sum(bytes.get(..EXTENT_NOTE_BYTES - 4)?);
        let rest = &mut bytes;
        let serial = u64::from_le_bytes(take(rest)?);
        let slot = SlotName::from_bits(u32::from_le_bytes(take(rest)?));
        let key = Key::from_bits(u64::from_le_bytes(take(rest)?));
        let shape = u32::from_le_bytes(take(rest)?);
        let note = Self {
            serial,
            slot,
            key,
            pieces: shape & PIECES_MASK,
            piece_bytes: 1_u32.checked_shl(shape >> PIECES_BITS)?,
            answers: u16::from_le_bytes(take(rest)?),
        };
        let is_whole = u32::from_le_bytes(take(rest)?) == sum && rest.is_empty();
        let is_possible = (1..=PIECES_MAX).contains(&note.pieces)
            && (PIECE_BYTES_MIN..=PIECE_BYTES_MAX).contains(&note.piece_bytes);
        (is_whole && is_possible).then_some(note)
    }
}

/// Bytes of a [`StreamPosition`].
pub(crate) const PLACE_BYTES: usize = 16;

/// How far a sender has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamPosition {
    /// Serial number of the extent that it fills.
    pub(crate) extent: u64,
    /// Pieces of it filled.
    pub(crate) position: u64,
}

/// Set in [`StreamPosition::extent`] by a sender that ends before all was sent that it had
/// accepted.
pub(crate) const GIVEN_UP: u64 = 1 << 63;

impl StreamPosition {
    pub(crate) fn to_bytes(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..8].copy_from_slice(&self.extent.to_le_bytes());
        bytes[8..].copy_from_slice(&self.position.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let place = Self {
            extent: u64::from_le_bytes(take(rest)?),
            position: u64::from_le_bytes(take(rest)?),
        };
        rest.is_empty().then_some(place)
    }
}

/// Bytes of a [`GrowRequest`].
pub(crate) const GROW_REQUEST_BYTES: usize = PLACE_BYTES + 8;

/// A sender cannot go on. It fills nothing more of that extent before it has an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GrowRequest {
    pub(crate) place: StreamPosition,
    /// Length of the record for which it wants room.
    pub(crate) record_bytes: u64,
}

impl GrowRequest {
    pub(crate) fn to_bytes(self) -> [u8; GROW_REQUEST_BYTES] {
        let mut bytes = [0; GROW_REQUEST_BYTES];
        bytes[..PLACE_BYTES].copy_from_slice(&self.place.to_bytes());
        bytes[PLACE_BYTES..].copy_from_slice(&self.record_bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (place, record) = bytes.split_at_checked(PLACE_BYTES)?;
        Some(Self {
            place: StreamPosition::from_bytes(place)?,
            record_bytes: u64::from_le_bytes(record.try_into().ok()?),
        })
    }
}

/// Bytes of a seed as it travels.
pub const SEED_BYTES: usize = TICKET_BYTES + 24;

/// All that is needed to grow the sending end of a stream elsewhere (`Hamlyn 3.3`). A
/// capability; to be used by one holder, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamSeed {
    /// The ticket for piece 0; the others follow from it.
    pub(crate) ticket: Ticket,
    pub(crate) pieces: u32,
    pub(crate) piece_bytes: u32,
    /// The longest record.
    pub(crate) limit_bytes: u64,
    /// Where the sender says what are no records.
    pub(crate) control_slot: SlotName,
    pub(crate) control_key: Key,
}

impl StreamSeed {
    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; SEED_BYTES] {
        let mut bytes = [0; SEED_BYTES];
        let (ticket, rest) = bytes.split_at_mut(TICKET_BYTES);
        ticket.copy_from_slice(&self.ticket.to_bytes());
        let exponent = u64::from(self.piece_bytes.trailing_zeros()) << PIECES_BITS;
        let limit = self.limit_bytes << (PIECES_BITS + EXPONENT_BITS);
        let shape = u64::from(self.pieces) | exponent | limit;
        rest[..8].copy_from_slice(&shape.to_le_bytes());
        rest[8..12].copy_from_slice(&self.control_slot.to_bits().to_le_bytes());
        rest[12..20].copy_from_slice(&self.control_key.to_bits().to_le_bytes());
        let sum = check_sum(&bytes[..SEED_BYTES - 4]);
        bytes[SEED_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a seed. Total: any bytes give a seed or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<StreamSeed, ConnectError> {
        let damaged = |what| ConnectError::Seed { what };
        let Some((ticket, mut rest)) = bytes.split_at_checked(TICKET_BYTES) else {
            return Err(damaged("it was cut"));
        };
        let ticket = Ticket::of_slot(ticket)?;
        let Some((seed, sum)) = Self::read(ticket, &mut rest).filter(|_| rest.is_empty()) else {
            return Err(damaged("its length is wrong"));
        };
        if sum != check_sum(&bytes[..SEED_BYTES - 4]) {
            return Err(damaged("its check sum is wrong"));
        }
        seed.validate().map_err(damaged)?;
        Ok(seed)
    }

    /// What follows the ticket, and its check sum.
    fn read(ticket: Ticket, rest: &mut &[u8]) -> Option<(Self, u32)> {
        let shape = u64::from_le_bytes(take(rest)?);
        let exponent = (shape >> PIECES_BITS) as u8;
        let seed = Self {
            ticket,
            pieces: shape as u32 & PIECES_MASK,
            piece_bytes: 1_u32.checked_shl(u32::from(exponent)).unwrap_or(0),
            limit_bytes: shape >> (PIECES_BITS + EXPONENT_BITS),
            control_slot: SlotName::from_bits(u32::from_le_bytes(take(rest)?)),
            control_key: Key::from_bits(u64::from_le_bytes(take(rest)?)),
        };
        Some((seed, u32::from_le_bytes(take(rest)?)))
    }

    /// The ticket for the control entries. They have no place, so their messages carry metadata
    /// alone.
    pub(crate) fn control(&self) -> Ticket {
        Ticket {
            slot: self.control_slot,
            metadata_index: HELLO,
            key: self.control_key,
            base: 0,
            length_bytes: 0,
            ..self.ticket
        }
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
        if self.limit_bytes < self.ticket.length_bytes.min(LIMIT_BYTES_MAX) {
            return Err("the longest record is shorter than its memory");
        }
        if self.control_slot == self.ticket.slot {
            return Err("records and what is said beside them have one slot");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
