//! A packet header as it lies in a cell (`Hamlyn 2.2, Table 1`; decision 0001).
//!
//! | word | bits |
//! |---|---|
//! | 0 | flag of the ring 32, kind 8, flags 8, metadata length 8, placement 8 |
//! | 1 | slot 32, metadata index 16, unused 16 |
//! | 2 | key |
//! | 3 | offset |
//! | 4 | data length 32, place in the payload arena 32 |
//! | 5 | the word; or metadata |
//! | 6, 7 | the first 16 bytes of data |
//!
//! Data that do not fit continue in the next cells, as those of a short packet do, or lie in the
//! payload arena.
//!
//! The placement of such a packet has bit 8; without it, it is a short one, whose cell is another
//! ([`crate::short_cell`]). A cell with bit 128 there is a message's to a port
//! ([`crate::message_cell`]).
//!
//! A cell whose placement is 4, and which says nothing else, is no packet but a *fence*: the
//! receiving end returns the room of all cells before it, so that the sender knows that they were
//! taken (decision 0020).
//!
//! [`decode`] is a parser of foreign bytes: it is total, reads nothing but its
//! arguments, and refuses whatever would lead outside the payload arena or beyond what was
//! agreed. It does not check kinds, flags, slots or keys; the engine does.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, SHORT_WORDS, USER_METADATA_BYTES};
use hamlyn_engine::operation::{REQUEST_WORDS, ShortRequest};
use hamlyn_engine::packet::{Address, Flags, Header, Kind, SlotName};
use hamlyn_ring::cells::{Cell, CellInPlace, FLAG_MASK};
use hamlyn_ring::shared::{LINE_BYTES, LINE_WORDS};

use crate::{LinkFault, message_cell, short_cell};

/// Bytes of data that fit into the cell of a packet that is not short.
pub const INLINE_BYTES: usize = 16;
/// Bytes of metadata that fit into the word of a cell.
pub const WORD_BYTES: usize = 8;
/// In the payload arena, data begin at a multiple of this after the metadata.
pub const DATA_ALIGNMENT_BYTES: usize = 16;

/// Placement bit: the data, and metadata that are not in the word, lie in the payload arena.
const BULK: u8 = 1;
/// Placement bit: the word is metadata, and the header's word is zero.
pub(crate) const METADATA_IN_WORD: u8 = 2;

/// Placement bit: a packet that is not short.
const GENERAL: u8 = 8;

/// Placement bit: a fence.
const FENCE: u8 = 4;

/// The cell of a fence. The flag is left to the ring.
pub const fn fence() -> Cell {
    let mut cell = [0; LINE_WORDS];
    cell[0] = (FENCE as u64) << 56;
    cell
}

/// Whether the cell is a fence.
pub fn is_fence(cell: &Cell) -> bool {
    cell[0] & !FLAG_MASK == fence()[0] && cell[1..] == fence()[1..]
}

/// Where a packet's data are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// In the cell: the bytes of these words, lowest first.
    Cell([u64; SHORT_WORDS]),
    /// In the cell, the first ones, and the others in the cells after it.
    Cells {
        /// The bytes of these words, lowest first.
        first: [u64; REQUEST_WORDS],
        /// How many bytes they are.
        first_bytes: u32,
    },
    /// Those of a message to a port: in all words of the cell but the first, lowest byte first; and
    /// in the cells after it.
    Message,
    /// At this place of the payload arena.
    PayloadArena(u32),
    /// In their place: the header says that they were placed, and they do not travel.
    Placed,
}

/// Where a packet's metadata are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metadata {
    /// In the cell: the bytes of this word, lowest first. Also if there are none.
    Word(u64),
    /// At this place of the payload arena.
    PayloadArena(u32),
}

/// Where the bytes of a packet are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Its data.
    pub data: Data,
    /// Its metadata.
    pub metadata: Metadata,
}

impl Placement {
    /// How many cells a packet with so many data that travel takes, which are placed so.
    #[inline(always)]
    pub const fn cells(&self, length_bytes: u32) -> u64 {
        match self.data {
            Data::Cells { first_bytes, .. } => {
                short_cell::cells_after(first_bytes as u64, length_bytes as u64)
            }
            Data::Message => message_cell::cells_of(length_bytes as u64),
            _ => 1,
        }
    }

    /// How far into its place in the payload arena the data begin.
    #[inline]
    pub const fn data_after(metadata_length: usize) -> usize {
        metadata_length.next_multiple_of(DATA_ALIGNMENT_BYTES)
    }
}

/// Whether metadata of this length can travel in the word of a cell.
#[inline]
pub fn word_is_free(header: &Header, metadata_length: usize) -> bool {
    metadata_length <= WORD_BYTES && header.word == 0 && !header.is_fast()
}

/// The cell of a header whose bytes are placed so. The flag is left to the ring.
///
/// Metadata may be in the word only if [`word_is_free`]; metadata in the payload arena lie
/// [`Placement::data_after`] bytes before the data, which are there too.
#[inline(always)]
pub fn encode(header: &Header, placement: &Placement) -> Cell {
    let (mut bits, mut place, mut data) = (GENERAL, 0, [0; SHORT_WORDS]);
    match placement.data {
        Data::Cell(words) => data = words,
        Data::Cells {
            first: [first, second, _],
            ..
        } => data = [first, second, 0, 0],
        Data::PayloadArena(offset) => {
            bits |= BULK;
            place = offset;
        }
        // A message that is not abbreviated has its data as any other packet.
        Data::Placed | Data::Message => {}
    }
    let mut word = header.word;
    match placement.metadata {
        Metadata::Word(metadata) => {
            if header.metadata_length_bytes > 0 {
                bits |= METADATA_IN_WORD;
                word = metadata;
            }
        }
        Metadata::PayloadArena(offset) => {
            bits |= BULK;
            place = offset;
        }
    }
    [
        u64::from(header.kind.0) << 32
            | u64::from(header.flags.0) << 40
            | u64::from(header.metadata_length_bytes) << 48
            | u64::from(bits) << 56,
        u64::from(header.slot.to_bits()) | u64::from(header.metadata_index) << 32,
        header.key.to_bits(),
        header.offset,
        u64::from(header.length_bytes) | u64::from(place) << 32,
        word,
        data[0],
        data[1],
    ]
}

/// The first word of a request that has its data in its cell, but for its kind and what belongs to
/// the ring.
pub(crate) const REQUEST_FIRST: u64 = (GENERAL as u64) << 56;
/// The greatest kind that may stand there.
pub(crate) const KIND_MAX: u64 = u8::MAX as u64;

/// The request of that kind in a cell whose first word is [`REQUEST_FIRST`] besides, if it is one
/// that has so many data.
#[inline(always)]
pub(crate) fn decode_request(kind: u64, cell: &impl CellInPlace) -> Option<ShortRequest> {
    let kind = Kind(kind as u8);
    if !kind.is_request() || cell.word::<4>() != u64::from(ShortRequest::BYTES) {
        return None;
    }
    Some(ShortRequest {
        kind,
        to: Address::from_bits(cell.word::<1>()),
        key: Key::from_bits(cell.word::<2>()),
        offset: cell.word::<3>(),
        word: cell.word::<5>(),
        data: [cell.word::<6>(), cell.word::<7>()],
    })
}

/// The cell of a request that has its data in it. The flag is left to the ring.
#[inline(always)]
pub(crate) fn encode_request(request: &ShortRequest) -> Cell {
    [
        REQUEST_FIRST | u64::from(request.kind.0) << 32,
        request.to.to_bits(),
        request.key.to_bits(),
        request.offset,
        u64::from(ShortRequest::BYTES),
        request.word,
        request.data[0],
        request.data[1],
    ]
}

#[inline(always)]
fn header(cell: &Cell) -> Header {
    Header {
        slot: SlotName::from_bits(cell[1] as u32),
        metadata_index: (cell[1] >> 32) as u16,
        key: Key::from_bits(cell[2]),
        offset: cell[3],
        length_bytes: cell[4] as u32,
        word: cell[5],
        metadata_length_bytes: (cell[0] >> 48) as u8,
        flags: Flags((cell[0] >> 40) as u8),
        kind: Kind((cell[0] >> 32) as u8),
    }
}

/// The longest data of a packet that is not short and takes so many cells.
pub const fn bytes_in(cells: u32) -> usize {
    short_cell::bytes_after(INLINE_BYTES as u64, cells) as usize
}

/// The header in a cell, and where the packet's bytes are: in so many `cells` together, or inside a
/// payload arena of `arena_bytes`, and not more than `payload_max_bytes`.
#[inline(always)]
pub fn decode(
    cell: &Cell,
    cells: u32,
    arena_bytes: usize,
    payload_max_bytes: usize,
) -> Result<(Header, Placement), LinkFault> {
    let said = cell[0] & !FLAG_MASK;
    let bits = (said >> 56) as u8;
    if bits & GENERAL == 0 {
        let decoded = short_cell::decode_copy(said, cell, cells);
        let (header, placement) = decoded.unwrap_or(Err(LinkFault::Placement))?;
        let payload_bytes =
            header.length_bytes as usize + usize::from(header.metadata_length_bytes);
        return match payload_bytes <= payload_max_bytes {
            true => Ok((header, placement)),
            false => Err(LinkFault::Placement),
        };
    }
    let mut header = header(cell);
    let metadata_length = header.metadata_length_bytes as usize;
    let placed = header.flags.is_placed();
    // What is in its place already does not travel.
    let length = if placed {
        0
    } else {
        header.length_bytes as usize
    };
    if bits & !(BULK | METADATA_IN_WORD) != GENERAL
        || metadata_length > USER_METADATA_BYTES
        || metadata_length + length > payload_max_bytes
    {
        return Err(LinkFault::Placement);
    }
    let in_word = bits & METADATA_IN_WORD != 0;
    if in_word {
        if metadata_length == 0
            || metadata_length > WORD_BYTES
            || header.metadata_index == FAST_INDEX
        {
            return Err(LinkFault::Placement);
        }
        header.word = 0;
    }
    if bits & BULK == 0 {
        if length > bytes_in(cells) || (metadata_length > 0 && !in_word) {
            return Err(LinkFault::Placement);
        }
        let metadata = Metadata::Word(if in_word { cell[5] } else { 0 });
        return Ok((
            header,
            Placement {
                data: if placed {
                    Data::Placed
                } else if length <= INLINE_BYTES {
                    Data::Cell([cell[6], cell[7], 0, 0])
                } else {
                    Data::Cells {
                        first: [cell[6], cell[7], 0],
                        first_bytes: INLINE_BYTES as u32,
                    }
                },
                metadata,
            },
        ));
    }
    let offset = (cell[4] >> 32) as u32;
    let data_after = if in_word {
        0
    } else {
        Placement::data_after(metadata_length)
    };
    let needed = data_after + length;
    let begin = offset as usize;
    if !begin.is_multiple_of(LINE_BYTES) || begin > arena_bytes || needed > arena_bytes - begin {
        return Err(LinkFault::Placement);
    }
    let placement = Placement {
        // `needed` fits into what is left of a payload arena whose size is a u32.
        data: if placed {
            Data::Placed
        } else {
            Data::PayloadArena(offset + data_after as u32)
        },
        metadata: match metadata_length {
            0 => Metadata::Word(0),
            _ if in_word => Metadata::Word(cell[5]),
            _ => Metadata::PayloadArena(offset),
        },
    };
    Ok((header, placement))
}

#[cfg(test)]
mod tests;
