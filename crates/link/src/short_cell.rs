//! A short packet as it lies in a cell (decision 0026).
//!
//! | word of a cell | bits |
//! |---|---|
//! | 0 | flag of the ring 32, data length 24, placement 8: 0, or 2 if the word is metadata |
//! | 1 | slot 32, metadata index 16, unused 16 |
//! | 2 | key |
//! | 3 | offset |
//! | 4 | the word; or metadata; or the last 8 of 32 bytes |
//! | 5 to 7 | the first 24 bytes of data |
//!
//! Data that do not fit continue in the next cells of the ring (decision 0048), 56 bytes in each:
//!
//! | word of a cell that continues | bits |
//! |---|---|
//! | 0 | flag of the ring 32, unused 24, placement 8: 16 |
//! | 1 to 7 | up to 56 bytes of data |
//!
//! Data of 25 to 32 bytes lie in the place of a word that is zero. A word that is none, and no
//! metadata, *is kept*: then these data continue in the next cell, too, and their length is said
//! 4,096 too large.

use core::sync::atomic::AtomicU64;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{CELLS_BYTES_MAX, MORE_WORDS, SHORT_BYTES_MAX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::memory::ShortSource;
use hamlyn_engine::packet::{Address, Flags, Header, Kind, Short, ShortInPlace};
use hamlyn_ring::cells::{CONTINUED_BYTES, Cell, CellInPlace, FLAG_MASK, SharedCells, number_in};
use hamlyn_ring::consumer::Consumer;
use hamlyn_ring::geometry::MESSAGE_CELLS_MAX;

use crate::LinkFault;
use crate::cell::{Data, METADATA_IN_WORD, Metadata, Placement};

/// Added to the length where data that could lie in the place of the word do not.
const WORD_IS_KEPT: u64 = 1 << 12;

/// Where the first word has the data length.
const LENGTH_SHIFT: u32 = FLAG_MASK.count_ones();

const _: () = assert!(Kind::WRITE.0 == 0 && Flags::NONE.0 == 0);
// The longest packet of all has a length that a short one can say.
const _: () = assert!(bytes_in(true, MESSAGE_CELLS_MAX) < WORD_IS_KEPT);
const _: () = assert!(bytes_in(true, MESSAGE_CELLS_MAX) >= CELLS_BYTES_MAX as u64);

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

/// The longest data that fit one cell, with a word of metadata or without.
#[inline(always)]
pub const fn bytes_in_one(has_metadata: bool) -> u64 {
    if has_metadata {
        SHORT_BYTES_WITH_WORD as u64
    } else {
        SHORT_BYTES_MAX as u64
    }
}

/// The longest data that fit so many cells.
pub const fn bytes_in(has_metadata: bool, cells: u32) -> u64 {
    match cells {
        0 | 1 => bytes_in_one(has_metadata),
        _ => bytes_after(SHORT_BYTES_WITH_WORD as u64, cells),
    }
}

/// The longest data that fit so many cells, of which the first has that many bytes.
pub(crate) const fn bytes_after(first_bytes: u64, cells: u32) -> u64 {
    first_bytes + (cells as u64).saturating_sub(1) * CONTINUED_BYTES as u64
}

/// The number of cells that so many data take which do not fit the first, that has `first_bytes`.
#[inline(always)]
pub(crate) const fn cells_after(first_bytes: u64, length_bytes: u64) -> u64 {
    1 + (length_bytes - first_bytes).div_ceil(CONTINUED_BYTES as u64)
}

/// True if so many data would lie in the place of a word that is zero.
#[inline(always)]
const fn may_take_word(has_metadata: bool, length_bytes: u64) -> bool {
    !has_metadata
        && length_bytes > SHORT_BYTES_WITH_WORD as u64
        && length_bytes <= SHORT_BYTES_MAX as u64
}

/// The greatest length that can be said.
#[inline(always)]
pub(crate) const fn said_most(has_metadata: bool, cells: u32) -> u64 {
    match cells {
        0 | 1 => bytes_in_one(has_metadata),
        _ => WORD_IS_KEPT | SHORT_BYTES_MAX as u64,
    }
}

/// The greatest number above the flag in the first word of a short packet.
pub(crate) const SAID_MOST: u64 =
    first_word(true) >> LENGTH_SHIFT | said_most(true, MESSAGE_CELLS_MAX);

/// Tells of a packet with that number, if it takes more than one cell, if it has metadata. The
/// number may be no packet's.
#[inline(always)]
pub(crate) const fn has_metadata_in_cells(said: u64) -> Option<bool> {
    const HAS_METADATA: u64 = first_word(true) >> LENGTH_SHIFT;
    let has_metadata = said >= HAS_METADATA;
    let length = if has_metadata {
        said - HAS_METADATA
    } else {
        said
    };
    if length > bytes_in_one(has_metadata) {
        Some(has_metadata)
    } else {
        None
    }
}

/// The length that is said so, if a packet of so many cells at most may have it, and how many cells
/// it takes.
#[inline(always)]
pub(crate) const fn extent(has_metadata: bool, said: u64, cells: u32) -> Option<(u64, u64)> {
    if said <= bytes_in_one(has_metadata) {
        return Some((said, 1));
    }
    let length_bytes = said & !WORD_IS_KEPT;
    let is_kept = said != length_bytes;
    if length_bytes > bytes_in(has_metadata, cells)
        || is_kept && (cells < 2 || !may_take_word(has_metadata, length_bytes))
    {
        return None;
    }
    Some((length_bytes, cells_with_word(length_bytes)))
}

/// How many cells a short packet takes with that word and so many data.
#[inline(always)]
pub const fn cells_of(has_metadata: bool, word: u64, length_bytes: u64) -> u64 {
    let takes_word = may_take_word(has_metadata, length_bytes) && word == 0;
    if length_bytes <= SHORT_BYTES_WITH_WORD as u64 || takes_word {
        1
    } else {
        cells_with_word(length_bytes)
    }
}

/// The same of data that do not fit beside a word.
#[inline(always)]
pub(crate) const fn cells_with_word(length_bytes: u64) -> u64 {
    cells_after(SHORT_BYTES_WITH_WORD as u64, length_bytes)
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

/// A short packet in several cells.
#[derive(Clone, Copy)]
pub struct ShortInCells<'a, C, const HAS_METADATA: bool> {
    first: ShortInCell<C, HAS_METADATA>,
    /// Where the others are, after the next one.
    ring: &'a Consumer<SharedCells>,
}

impl<'a, C: CellInPlace, const HAS_METADATA: bool> ShortInCells<'a, C, HAS_METADATA> {
    pub(crate) fn new(
        first: ShortInCell<C, HAS_METADATA>,
        ring: &'a Consumer<SharedCells>,
    ) -> Self {
        Self { first, ring }
    }
}

impl<C: CellInPlace, const HAS_METADATA: bool> ShortInPlace for ShortInCells<'_, C, HAS_METADATA> {
    const HAS_METADATA: bool = HAS_METADATA;

    #[inline(always)]
    fn to(&self) -> Address {
        self.first.to()
    }

    #[inline(always)]
    fn key(&self) -> Key {
        self.first.key()
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        self.first.offset()
    }

    #[inline(always)]
    fn word(&self) -> u64 {
        self.first.cell.word::<4>()
    }
}

impl<C: CellInPlace, const HAS_METADATA: bool> ShortSource for ShortInCells<'_, C, HAS_METADATA> {
    #[inline(always)]
    fn length_bytes(&self) -> usize {
        self.first.length_bytes()
    }

    #[inline(always)]
    fn data_word<const NUMBER: usize>(&self) -> u64 {
        // There are three; the place of a fourth is the word's.
        match NUMBER {
            3 => 0,
            _ => self.first.data_word::<NUMBER>(),
        }
    }

    #[inline(always)]
    fn first_bytes(&self) -> usize {
        SHORT_BYTES_WITH_WORD
    }

    #[inline(always)]
    fn more(&self, number: usize) -> &[AtomicU64; MORE_WORDS] {
        self.ring.continuation(number)
    }
}

/// True if a packet with that header, so many metadata and so many data that travel is a short one
/// in so many cells at most.
#[inline(always)]
pub fn fits(header: &Header, metadata_length: usize, length: usize, cells: u32) -> bool {
    let (is_word_free, has_metadata) = match metadata_length {
        0 => (true, false),
        8 => (header.word == 0 && !header.is_fast(), true),
        _ => return false,
    };
    is_word_free
        && cells_of(has_metadata, header.word, length as u64) <= u64::from(cells)
        && header.kind == Kind::WRITE
        && header.flags == Flags::NONE
}

/// The first of several cells of a short packet. The flag is left to the ring.
#[inline(always)]
pub fn encode_first(short: &Short) -> Cell {
    let [first, second, third, _] = short.data;
    let length = u64::from(short.length_bytes);
    let said = match may_take_word(short.has_metadata, length) {
        true => length | WORD_IS_KEPT,
        false => length,
    };
    [
        first_word(short.has_metadata) | said << LENGTH_SHIFT,
        short.to.to_bits(),
        short.key.to_bits(),
        short.offset,
        short.word,
        first,
        second,
        third,
    ]
}

/// The only cell of a short packet. The flag is left to the ring.
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

/// As [`crate::cell::decode`], if the cell is the first one of a short packet in so many cells at
/// most; `said` is its first word without what belongs to the ring.
#[inline(always)]
pub(crate) fn decode_copy(
    said: u64,
    cell: &Cell,
    cells: u32,
) -> Option<Result<(Header, Placement), LinkFault>> {
    if let Some(said) = number_in(said, first_word(false), said_most(false, cells)) {
        return Some(placed::<false>(said, cell, cells));
    }
    let said = number_in(said, first_word(true), said_most(true, cells))?;
    Some(placed::<true>(said, cell, cells))
}

/// The header of a short packet of that length, and where its bytes are.
#[inline(always)]
fn placed<const HAS_METADATA: bool>(
    said: u64,
    cell: &Cell,
    cells: u32,
) -> Result<(Header, Placement), LinkFault> {
    let (length, taken) = extent(HAS_METADATA, said, cells).ok_or(LinkFault::Placement)?;
    let mut short = decode_short::<_, HAS_METADATA>(length, *cell).copied();
    if HAS_METADATA && short.to.is_fast() {
        return Err(LinkFault::Placement);
    }
    let data = if taken == 1 {
        Data::Cell(short.data)
    } else {
        short.word = cell[4];
        let [first, second, third, _] = short.data;
        Data::Cells {
            first: [first, second, third],
            first_bytes: SHORT_BYTES_WITH_WORD as u32,
        }
    };
    let metadata = Metadata::Word(if HAS_METADATA { short.word } else { 0 });
    Ok((short.header(), Placement { data, metadata }))
}

#[cfg(test)]
mod tests;
