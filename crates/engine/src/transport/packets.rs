//! Packets as they lie in a frame, one after the other. The bytes are in the documentation of
//! [`crate::transport`].
//!
//! A packet carries only the parts of its address, key, offset and word that differ from the packet
//! before it, so that a short one takes from 17 bytes on. The decoder reads foreign bytes and is
//! total; it checks no kinds, slots or keys.

use crate::key::Key;
use crate::limits::{SHORT_BYTES_MAX, USER_METADATA_BYTES};
use crate::memory::{Area, Part};
use crate::packet::{Address, Flags, Header, Kind, Short};

/// There is a packet; a zero byte begins padding.
const PRESENT: u8 = 0x80;
/// It is not a short one.
const GENERAL: u8 = 0x40;
/// Address and key are those of the packet before.
const SAME_ADDRESS: u8 = 0x20;
/// How the offset is said: two bits.
const OFFSET_SHIFT: u8 = 3;
const OFFSET_SAME: u8 = 0;
const OFFSET_NEXT: u8 = 1;
const OFFSET_U32: u8 = 2;
const OFFSET_U64: u8 = 3;
/// How the word is said: two bits.
const WORD_SHIFT: u8 = 1;
const WORD_ZERO: u8 = 0;
const WORD_SAME: u8 = 1;
const WORD_ONE_MORE: u8 = 2;
const WORD_U64: u8 = 3;
/// The word is metadata; only of short packets.
const IS_METADATA: u8 = 1;

/// Bytes of address and key.
const ADDRESS_BYTES: usize = 14;
/// Bytes of what only a general packet says: kind, flags, length of metadata, length of data.
const TAIL_BYTES: usize = 7;
/// Bytes of a general packet at most, metadata and data not counted.
pub(super) const GENERAL_BYTES_MAX: usize = 1 + ADDRESS_BYTES + 8 + 8 + TAIL_BYTES;
/// Bytes of data in a compact packet: a short one that brings exactly so many.
pub(super) const COMPACT_BYTES: usize = 16;
/// Bytes of a compact packet at most.
const COMPACT_BYTES_MAX: usize = 1 + ADDRESS_BYTES + 8 + 8 + COMPACT_BYTES;
/// Bytes of any short packet at most.
pub(super) const SHORT_PACKET_BYTES_MAX: usize = GENERAL_BYTES_MAX + 8 + SHORT_BYTES_MAX;
/// Bytes behind the end of what may be filled, so that a short packet is written without asking for
/// each field.
pub(super) const SLACK_BYTES: usize = 48;
const _: () = assert!(COMPACT_BYTES_MAX <= SLACK_BYTES && GENERAL_BYTES_MAX <= SLACK_BYTES);

/// Bytes before data (or kind and flags) of a packet whose first byte is this.
const fn front_bytes(form: u8) -> usize {
    let cursor = if form & SAME_ADDRESS == 0 {
        ADDRESS_BYTES
    } else {
        0
    };
    let offset = match form >> OFFSET_SHIFT & 3 {
        OFFSET_U32 => 4,
        OFFSET_U64 => 8,
        _ => 0,
    };
    let word = if form >> WORD_SHIFT & 3 == WORD_U64 {
        8
    } else {
        0
    };
    1 + cursor + offset + word
}

/// The same, looked up.
static FRONT_BYTES: [u8; 64] = {
    let mut table = [0; 64];
    let mut form = 0;
    while form < 64 {
        table[form] = front_bytes(form as u8) as u8;
        form += 1;
    }
    table
};

/// What the next packet may refer to: the fields of the one before; zeros at the beginning of a
/// frame.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PreviousPacket {
    to: u64,
    key: u64,
    offset: u64,
    /// Where the data of the packet before ended.
    end: u64,
    word: u64,
}

/// Why a packet was not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WriteError {
    /// Not enough room is left.
    Room,
    /// Its data could not be had, or are not as long as its header says.
    Data,
}

impl PreviousPacket {
    /// Writes a packet's bytes before its data, all but the first. Gives that, how many they are,
    /// and what the packet after it may refer to.
    #[inline(always)]
    fn front(
        &self,
        bytes: &mut [u8; SLACK_BYTES],
        to: u64,
        key: u64,
        offset: u64,
        length_bytes: u64,
        word: u64,
    ) -> (u8, usize, Self) {
        let mut form = PRESENT;
        let mut at = 1;
        if to == self.to && key == self.key {
            form |= SAME_ADDRESS;
        } else {
            bytes[at..at + 8].copy_from_slice(&to.to_le_bytes());
            bytes[at + 6..at + ADDRESS_BYTES].copy_from_slice(&key.to_le_bytes());
            at += ADDRESS_BYTES;
        }
        if offset == self.end {
            form |= OFFSET_NEXT << OFFSET_SHIFT;
        } else if offset != self.offset {
            // The upper half is written over if it is not wanted.
            bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
            let is_long = offset > u64::from(u32::MAX);
            form |= if is_long { OFFSET_U64 } else { OFFSET_U32 } << OFFSET_SHIFT;
            at += if is_long { 8 } else { 4 };
        }
        if word == self.word {
            form |= WORD_SAME << WORD_SHIFT;
        } else if word == self.word.wrapping_add(1) {
            form |= WORD_ONE_MORE << WORD_SHIFT;
        } else if word != 0 {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            form |= WORD_U64 << WORD_SHIFT;
            at += 8;
        }
        let after = Self {
            to,
            key,
            offset,
            end: offset.wrapping_add(length_bytes),
            word,
        };
        (form, at, after)
    }

    /// Writes a short packet at `at` of `into`, of which bytes below `end` may be filled, and
    /// [`SLACK_BYTES`] after them exist. Gives where the next one goes.
    #[inline]
    pub(super) fn write_short(
        &mut self,
        short: &Short,
        into: &mut [u8],
        at: usize,
        end: usize,
    ) -> Option<usize> {
        let to = short.to.to_bits() & PLACE_MASK;
        let cursor: &mut [u8; SLACK_BYTES] = into.get_mut(at..)?.first_chunk_mut()?;
        let (form, length, after) = self.front(
            cursor,
            to,
            short.key.to_bits(),
            short.offset,
            COMPACT_BYTES as u64,
            short.word,
        );
        if at + length + COMPACT_BYTES > end {
            return None;
        }
        // Otherwise what was written is written over.
        cursor[0] = form | u8::from(short.has_metadata);
        cursor
            .get_mut(length..length + COMPACT_BYTES)?
            .copy_from_slice(short.bytes().get(..COMPACT_BYTES)?);
        *self = after;
        Some(at + length + COMPACT_BYTES)
    }

    /// Writes a packet of any kind; otherwise as [`PreviousPacket::write_short`].
    pub(super) fn write<A: Area>(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, A>],
        into: &mut [u8],
        at: usize,
        end: usize,
    ) -> Result<usize, WriteError> {
        let data_bytes: usize = parts.iter().map(Part::length_bytes).sum();
        let said_bytes = travelling_bytes(header.flags, header.length_bytes);
        if data_bytes as u64 != said_bytes
            || metadata.len() != usize::from(header.metadata_length_bytes)
            || metadata.len() > USER_METADATA_BYTES
        {
            return Err(WriteError::Data);
        }
        let to = Address::new(header.slot, header.metadata_index).to_bits();
        let mut front = [0; SLACK_BYTES];
        let (form, length, after) = self.front(
            &mut front,
            to,
            header.key.to_bits(),
            header.offset,
            u64::from(header.length_bytes),
            header.word,
        );
        let total = length + TAIL_BYTES + metadata.len() + data_bytes;
        let Some(cursor) = into.get_mut(at..end).and_then(|room| room.get_mut(..total)) else {
            return Err(WriteError::Room);
        };
        front[0] = form | GENERAL;
        let (place_front, rest) = cursor.split_at_mut(length);
        place_front.copy_from_slice(&front[..length]);
        let (tail, rest) = rest.split_at_mut(TAIL_BYTES);
        tail[..3].copy_from_slice(&[header.kind.0, header.flags.0, header.metadata_length_bytes]);
        tail[3..].copy_from_slice(&header.length_bytes.to_le_bytes());
        let (place_metadata, mut rest) = rest.split_at_mut(metadata.len());
        place_metadata.copy_from_slice(metadata);
        for part in parts {
            let (piece, after) = rest.split_at_mut(part.length_bytes());
            match *part {
                Part::Bytes(bytes) => piece.copy_from_slice(bytes),
                Part::Area { area, offset, .. } => {
                    area.read(offset, piece).map_err(|_| WriteError::Data)?;
                }
            }
            rest = after;
        }
        *self = after;
        Ok(at + total)
    }
}

/// Bits of an address.
const PLACE_MASK: u64 = (1 << 48) - 1;

/// Bytes of data that travel with such a packet.
const fn travelling_bytes(flags: Flags, length_bytes: u32) -> u64 {
    if flags.is_placed() {
        0
    } else {
        length_bytes as u64
    }
}

/// Whether a packet with that header is [`Short`], with 16 bytes of data: then it travels in fewer
/// bytes.
pub(super) fn is_compact(header: &Header) -> bool {
    header.length_bytes as usize == COMPACT_BYTES
        && header.kind == Kind::WRITE
        && header.flags == Flags::NONE
        && match header.metadata_length_bytes {
            0 => header.is_fast() || header.word == 0,
            8 => !header.is_fast() && header.word == 0,
            _ => false,
        }
}

/// A packet of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// A short one.
    Short(Short),
    /// Any other.
    General {
        /// Its header.
        header: Header,
        /// As many bytes as the header says, at most [`USER_METADATA_BYTES`].
        metadata: &'a [u8],
        /// As many bytes as the header says; none if they were placed.
        data: &'a [u8],
    },
}

impl Packet<'_> {
    /// Its header.
    pub fn header(&self) -> Header {
        match self {
            Self::Short(short) => short.header(),
            Self::General { header, .. } => *header,
        }
    }
}

/// How many packets there are, if each is well made: all that a frame has behind its NACKs. Reads
/// lengths only.
pub(super) fn count(bytes: &[u8]) -> Option<u16> {
    let (mut at, mut packets) = (0, 0_u16);
    loop {
        let Some(&form) = bytes.get(at) else {
            return (at == bytes.len()).then_some(packets);
        };
        if form & PRESENT == 0 {
            return (form == 0).then_some(packets);
        }
        at += usize::from(FRONT_BYTES[usize::from(form & 0x3F)]);
        if form & GENERAL == 0 {
            at += COMPACT_BYTES;
        } else {
            let [_, flags, metadata_bytes, length @ ..]: [u8; TAIL_BYTES] =
                *bytes.get(at..)?.first_chunk()?;
            let data_bytes = travelling_bytes(Flags(flags), u32::from_le_bytes(length));
            if usize::from(metadata_bytes) > USER_METADATA_BYTES
                || form & IS_METADATA != 0
                || data_bytes > bytes.len() as u64
            {
                return None;
            }
            at += TAIL_BYTES + usize::from(metadata_bytes) + data_bytes as usize;
        }
        packets = packets.checked_add(1)?;
    }
}

/// The packets of a frame, in order. Of bytes that are no packets, those before.
#[derive(Clone, Copy, Debug)]
pub struct Packets<'a> {
    bytes: &'a [u8],
    previous: PreviousPacket,
    /// Bytes that were read.
    passed: usize,
}

/// Where a packet lies in its frame, and what is to be known to read it there.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    at: usize,
    previous: PreviousPacket,
}

impl Cursor {
    /// Bytes before it.
    pub(super) fn at(&self) -> usize {
        self.at
    }
}

impl<'a> Packets<'a> {
    /// The packets in these bytes of a frame: the range that [`ReceiveToken`](super::ReceiveToken)
    /// names.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            previous: PreviousPacket::default(),
            passed: 0,
        }
    }

    /// The packets from a place on that [`Packets::cursor`] gave.
    pub fn resume(bytes: &'a [u8], cursor: Cursor) -> Self {
        Self {
            bytes: bytes.get(cursor.at..).unwrap_or_default(),
            previous: cursor.previous,
            passed: 0,
        }
    }

    /// Where the next packet lies; `from` is where the ones began that were read since.
    pub fn cursor(&self, from: Cursor) -> Cursor {
        Cursor {
            at: from.at + self.passed,
            previous: self.previous,
        }
    }

    /// The bytes at the place where `at` points, which then points behind them.
    #[inline(always)]
    fn field<const N: usize>(&self, at: &mut usize) -> Option<[u8; N]> {
        let bytes = self.bytes.get(*at..)?.first_chunk::<N>()?;
        *at += N;
        Some(*bytes)
    }

    #[inline]
    fn general(&self, at: usize, to: Address) -> Option<(usize, Packet<'a>)> {
        let mut at = at;
        let [kind, flags, metadata_length_bytes, length @ ..] =
            self.field::<TAIL_BYTES>(&mut at)?;
        let header = Header {
            slot: to.slot(),
            metadata_index: to.metadata_index(),
            key: Key::from_bits(self.previous.key),
            offset: self.previous.offset,
            length_bytes: u32::from_le_bytes(length),
            word: self.previous.word,
            metadata_length_bytes,
            flags: Flags(flags),
            kind: Kind(kind),
        };
        let rest = self.bytes.get(at..)?;
        let (metadata, rest) = rest.split_at_checked(usize::from(metadata_length_bytes))?;
        let data_bytes = travelling_bytes(header.flags, header.length_bytes);
        let data = rest.get(..usize::try_from(data_bytes).ok()?)?;
        let packet = Packet::General {
            header,
            metadata,
            data,
        };
        (metadata.len() <= USER_METADATA_BYTES)
            .then_some((at + metadata.len() + data.len(), packet))
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        let &form = self.bytes.first()?;
        if form & PRESENT == 0 {
            return None;
        }
        let mut at = 1;
        let mut previous = self.previous;
        if form & SAME_ADDRESS == 0 {
            let cursor = self.field::<ADDRESS_BYTES>(&mut at)?;
            let [t0, t1, t2, t3, t4, t5, key @ ..] = cursor;
            previous.to = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, 0, 0]);
            previous.key = u64::from_le_bytes(key);
        }
        match form >> OFFSET_SHIFT & 3 {
            OFFSET_SAME => {}
            OFFSET_NEXT => previous.offset = previous.end,
            OFFSET_U32 => previous.offset = u32::from_le_bytes(self.field(&mut at)?).into(),
            _ => previous.offset = u64::from_le_bytes(self.field(&mut at)?),
        }
        match form >> WORD_SHIFT & 3 {
            WORD_ZERO => previous.word = 0,
            WORD_SAME => {}
            WORD_ONE_MORE => previous.word = previous.word.wrapping_add(1),
            _ => previous.word = u64::from_le_bytes(self.field(&mut at)?),
        }
        self.previous = previous;
        let to = Address::from_bits(previous.to);
        let (end, length_bytes, packet) = if form & GENERAL == 0 {
            let data = u128::from_le_bytes(self.field(&mut at)?);
            let short = Short {
                to,
                key: Key::from_bits(previous.key),
                offset: previous.offset,
                word: previous.word,
                has_metadata: form & IS_METADATA != 0,
                length_bytes: COMPACT_BYTES as u16,
                data: [data as u64, (data >> 64) as u64, 0, 0],
            };
            // Whether metadata are allowed there is for the receiver's interface to say.
            (at, COMPACT_BYTES as u64, Packet::Short(short))
        } else {
            let (end, packet) = self.general(at, to)?;
            (end, u64::from(packet.header().length_bytes), packet)
        };
        self.previous.end = previous.offset.wrapping_add(length_bytes);
        self.bytes = self.bytes.get(end..)?;
        self.passed += end;
        Some(packet)
    }
}

#[cfg(test)]
mod tests;
