//! A short packet as it lies in a cell (decision 0026).
//!
//! | word of a cell | bits |
//! |---|---|
//! | 0 | flag of the ring 32, data length 24, placement 8: 0, or 2 if the word is metadata |
//! | 1 | slot 32, metadata index 16, unused 16 |
//! | 2 | key |
//! | 3 | offset |
//! | 4 | the word; or metadata; or the last 8 of 32 bytes |
//! | 5 to 7 | up to 24 bytes of data |

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{SHORT_BYTES_MAX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::memory::ShortSource;
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, ShortInPlace};
use hamlyn_ring::cells::{Cell, CellInPlace, FLAG_MASK, number_in};

use crate::LinkFault;
use crate::cell::{Data, METADATA_IN_WORD, Metadata, Placement};

/// Where the first word has the data length.
const LENGTH_SHIFT: u32 = FLAG_MASK.count_ones();

const _: () = assert!(Kind::WRITE.0 == 0 && Flags::NONE.0 == 0);

/// The first word of a short packet's cell, but for what belongs to the ring, with a word of
/// metadata or without.
#[inline(always)]
pub const fn first_word(has_metadata: bool) -> u64 {
    if has_metadata {
        (METADATA_IN_WORD as u64) << 56
    } else {
        0
    }
}

/// The longest data of a short packet, with a word of metadata or without.
#[inline(always)]
pub const fn bytes_max(has_metadata: bool) -> u64 {
    if has_metadata {
        SHORT_BYTES_WITH_WORD as u64
    } else {
        SHORT_BYTES_MAX as u64
    }
}

/// A short packet in its cell.
#[derive(Clone, Copy)]
pub struct ShortInCell<C, const HAS_METADATA: bool> {
    length_bytes: u64,
    cell: C,
}

/// The short packet in a cell whose first word is [`first_word`], and that length, which was found
/// there.
#[inline(always)]
pub fn decode_short<C: CellInPlace, const HAS_METADATA: bool>(
    length_bytes: u64,
    cell: C,
) -> ShortInCell<C, HAS_METADATA> {
    ShortInCell { length_bytes, cell }
}

impl<C: CellInPlace, const HAS_METADATA: bool> ShortInPlace for ShortInCell<C, HAS_METADATA> {
    const HAS_METADATA: bool = HAS_METADATA;

    #[inline(always)]
    fn to(&self) -> Address {
        Address::from_bits(self.cell.word::<1>())
    }

    #[inline(always)]
    fn key(&self) -> Key {
        Key::from_bits(self.cell.word::<2>())
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        self.cell.word::<3>()
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        if !HAS_METADATA && self.length_bytes() > SHORT_BYTES_WITH_WORD {
            return 0;
        }
        self.cell.word::<4>()
    }
}

impl<C: CellInPlace, const HAS_METADATA: bool> ShortSource for ShortInCell<C, HAS_METADATA> {
    #[inline(always)]
    fn length_bytes(&self) -> usize {
        self.length_bytes as usize
    }

    #[inline(always)]
    fn data_word<const NUMBER: usize>(&self) -> u64 {
        match NUMBER {
            0 => self.cell.word::<5>(),
            1 => self.cell.word::<6>(),
            2 => self.cell.word::<7>(),
            _ => self.cell.word::<4>(),
        }
    }
}

/// Whether a packet with that header, so many metadata and so many data that travel can have the
/// cell of a short one.
#[inline(always)]
pub fn fits(header: &Header, metadata_length: usize, length: usize) -> bool {
    let fits_word = match metadata_length {
        0 => header.word == 0 || length <= SHORT_BYTES_WITH_WORD,
        8 => header.word == 0 && !header.is_fast() && length <= SHORT_BYTES_WITH_WORD,
        _ => false,
    };
    fits_word
        && length <= SHORT_BYTES_MAX
        && header.kind == Kind::WRITE
        && header.flags == Flags::NONE
}

/// The cell of a short packet. The flag is left to the ring.
#[inline(always)]
pub fn encode_short(short: &Short) -> Cell {
    let [first, second, third, fourth] = short.data;
    [
        first_word(short.has_metadata) | u64::from(short.length_bytes) << LENGTH_SHIFT,
        short.to.to_bits(),
        short.key.to_bits(),
        short.offset,
        if usize::from(short.length_bytes) <= SHORT_BYTES_WITH_WORD {
            short.word
        } else {
            fourth
        },
        first,
        second,
        third,
    ]
}

/// As [`crate::cell::decode`], if the cell is that of a short packet; `said` is its first word
/// without what belongs to the ring.
#[inline(always)]
pub(crate) fn decode_copy(
    said: u64,
    cell: &Cell,
) -> Option<Result<(Header, Placement), LinkFault>> {
    if let Some(length) = number_in(said, first_word(false), bytes_max(false)) {
        let short = decode_short::<_, false>(length, *cell).copied();
        return Some(placed(short));
    }
    let length = number_in(said, first_word(true), bytes_max(true))?;
    let short = decode_short::<_, true>(length, *cell).copied();
    Some(placed(short))
}

/// The header of a short packet, and where its bytes are.
fn placed(short: Short) -> Result<(Header, Placement), LinkFault> {
    if short.has_metadata && short.to.is_fast() {
        return Err(LinkFault::Placement);
    }
    let word = if short.has_metadata { short.word } else { 0 };
    let placement = Placement {
        data: Data::Cell(short.data),
        metadata: Metadata::Word(word),
    };
    Ok((short.header(), placement))
}

#[cfg(test)]
mod tests;
