//! A message to a port as it lies in a cell (decision 49).
//!
//! | word of a cell | bits |
//! |---|---|
//! | 0 | flag of the ring 32, data length 11, handler 12, abbreviation 8, 1 |
//! | 1 to 7 | the first 56 bytes of data |
//!
//! More data continue in the next cells of the ring, as those of a short packet do
//! ([`crate::short_cell`]).
//!
//! The *abbreviation* stands for a port with key and group. Its number is the low 8 bits of the
//! index of the port. It stands for those that the last message to such a port said that came as a
//! packet that is not short ([`crate::cell`]) over this link and in this direction, in the ring. So
//! nothing is agreed, and nothing is checked but that there was one: port, key and group are checked
//! for each message, by the engine.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{HANDLERS_MAX, PORTS_MAX};
use hamlyn_engine::packet::{Header, Kind, PortAddress, PortName, short_words};
use hamlyn_ring::cells::{CONTINUED_BYTES, Cell, FLAG_MASK};
use hamlyn_ring::geometry::MESSAGE_CELLS_MAX;
use hamlyn_ring::shared::LINE_WORDS;

use crate::cell::{Data, Metadata, Placement};
use crate::{LinkFault, short_cell};

const LENGTH_SHIFT: u32 = FLAG_MASK.count_ones();
const LENGTH_BITS: u32 = 11;
const HANDLER_SHIFT: u32 = LENGTH_SHIFT + LENGTH_BITS;
const HANDLER_BITS: u32 = 12;
const ABBREVIATION_SHIFT: u32 = HANDLER_SHIFT + HANDLER_BITS;
const ABBREVIATION_BITS: u32 = 8;

/// The first word of a message's cell, but for the numbers in it and the flag.
pub const MESSAGE: u64 = 1 << (ABBREVIATION_SHIFT + ABBREVIATION_BITS);
/// The greatest number that may stand above the flag besides.
pub const SAID_MOST: u64 = (MESSAGE >> LENGTH_SHIFT) - 1;

/// Abbreviations of one direction of a link.
const ABBREVIATIONS: usize = 1 << ABBREVIATION_BITS;

/// Bytes of data in the first cell.
pub const FIRST_BYTES: usize = CONTINUED_BYTES;

const _: () = {
    assert!(MESSAGE == 1 << 63 && HANDLERS_MAX as u64 == 1 << HANDLER_BITS);
    assert!(bytes_in(MESSAGE_CELLS_MAX) < 1 << LENGTH_BITS);
};

/// The longest data of a message that takes so many cells.
pub const fn bytes_in(cells: u32) -> u64 {
    short_cell::bytes_after(FIRST_BYTES as u64, cells)
}

/// The number of cells that so many data take.
#[inline(always)]
pub const fn cells_of(length_bytes: u64) -> u64 {
    if length_bytes <= FIRST_BYTES as u64 {
        1
    } else {
        short_cell::cells_after(FIRST_BYTES as u64, length_bytes)
    }
}

/// A message in cells, but for its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageHead {
    /// The number of its abbreviation.
    pub abbreviation: u8,
    /// Its handler, below [`HANDLERS_MAX`].
    pub handler: u16,
    /// Its bytes of data.
    pub length_bytes: u16,
}

impl MessageHead {
    /// The head that the number above the flag of a [`MESSAGE`] says. Any number is one.
    #[inline(always)]
    pub const fn of(said: u64) -> Self {
        let first = said << LENGTH_SHIFT;
        Self {
            abbreviation: (first >> ABBREVIATION_SHIFT) as u8,
            handler: (first >> HANDLER_SHIFT) as u16 & (HANDLERS_MAX - 1),
            length_bytes: (first >> LENGTH_SHIFT) as u16 & ((1 << LENGTH_BITS) - 1),
        }
    }

    /// The head in a cell, if that is a message's. The flag does not matter.
    #[inline(always)]
    pub const fn of_cell(cell: &Cell) -> Option<Self> {
        if cell[0] & MESSAGE == 0 {
            return None;
        }
        Some(Self::of((cell[0] & !MESSAGE) >> LENGTH_SHIFT))
    }

    /// The header of the message, and where its data are: in so many cells at most, and no more
    /// than `payload_max_bytes`.
    pub fn decode(
        self,
        abbreviations: &Abbreviations,
        cells: u32,
        payload_max_bytes: usize,
    ) -> Result<(Header, Placement), LinkFault> {
        let to = abbreviations.get(self.abbreviation);
        let to = to.ok_or(LinkFault::Abbreviation)?;
        let length = u64::from(self.length_bytes);
        if cells_of(length) > u64::from(cells) || length > payload_max_bytes as u64 {
            return Err(LinkFault::Placement);
        }
        let placement = Placement {
            data: Data::Message,
            metadata: Metadata::Word(0),
        };
        Ok((
            to.header(self.handler.into(), self.length_bytes.into()),
            placement,
        ))
    }

    /// The first word. The flag is left to the ring.
    #[inline(always)]
    pub const fn first_word(self) -> u64 {
        MESSAGE
            | (self.abbreviation as u64) << ABBREVIATION_SHIFT
            | (self.handler as u64) << HANDLER_SHIFT
            | (self.length_bytes as u64) << LENGTH_SHIFT
    }

    /// The first cell, with as many of the data as it holds.
    #[inline(always)]
    pub fn encode(self, data: &[u8]) -> Cell {
        let mut cell = [0; LINE_WORDS];
        cell[0] = self.first_word();
        let first = &data[..data.len().min(FIRST_BYTES)];
        if first.len() <= size_of::<[u64; 4]>()
            && let Some([a, b, c, d]) = short_words(first)
        {
            [cell[1], cell[2], cell[3], cell[4]] = [a, b, c, d];
        } else if let Some((four, rest)) = first.split_first_chunk::<32>()
            && let (Some([a, b, c, d]), Some([e, f, g, _])) = (short_words(four), short_words(rest))
        {
            [cell[1], cell[2], cell[3], cell[4]] = [a, b, c, d];
            [cell[5], cell[6], cell[7]] = [e, f, g];
        }
        cell
    }
}

/// The abbreviations of one direction of a link, with the ports that they stand for. Takes memory
/// with the first one.
#[derive(Debug, Default)]
pub struct Abbreviations(Option<Box<[PortAddress; ABBREVIATIONS]>>);

/// Of an abbreviation that stands for nothing: a port that no interface has.
const NOTHING: PortAddress = PortAddress {
    port: PortName::from_bits(u32::MAX),
    key: Key::from_bits(0),
    group: 0,
};

impl Abbreviations {
    /// The number of the abbreviation of that port.
    #[inline(always)]
    pub const fn number(to: &PortAddress) -> u8 {
        to.port.index() as u8
    }

    /// The port that it stands for, if for any.
    #[inline(always)]
    pub fn get(&self, number: u8) -> Option<&PortAddress> {
        let address = &self.0.as_ref()?[usize::from(number)];
        (address.port != NOTHING.port).then_some(address)
    }

    /// True if the abbreviation of that port stands for it, with that key and group.
    #[inline(always)]
    pub fn has(&self, to: &PortAddress) -> bool {
        // A made-up ticket may name the port that no interface has.
        self.get(Self::number(to)) == Some(to)
    }

    /// A packet that is not short goes, or came, in the ring. If it is a message, the abbreviation
    /// stands for its port from now on.
    #[inline(always)]
    pub fn note(&mut self, header: &Header) {
        if header.kind == Kind::MESSAGE {
            self.set(PortAddress::of(header));
        }
    }

    #[cold]
    fn set(&mut self, to: PortAddress) {
        self.reserve()[usize::from(Self::number(&to))] = to;
    }

    /// Takes the memory that the first one needs.
    pub fn reserve(&mut self) -> &mut [PortAddress; ABBREVIATIONS] {
        self.0
            .get_or_insert_with(|| Box::new([NOTHING; ABBREVIATIONS]))
    }
}

const _: () = {
    assert!(ABBREVIATIONS == u8::MAX as usize + 1);
    assert!(NOTHING.port.index() as usize >= PORTS_MAX);
};

#[cfg(test)]
mod tests;
