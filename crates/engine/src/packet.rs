//! What a packet says of itself (`Hamlyn 2.2, Table 1`).
//!
//! Every packet names its own place in the receiver's memory, so packets may
//! arrive in any order. A header here is a value; how it lies on the wire is
//! each link's affair.

use crate::key::Key;
use crate::limits::{FAST_INDEX, SHORT_BYTES_MAX, SHORT_WORDS};
use crate::memory::ShortSource;
use crate::point::Point;

/// A slot as peers name it: 16 bits of index and 16 bits of generation. An
/// index is used again only under a new generation, so a stale name never
/// reaches another owner's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct SlotName(u32);

impl SlotName {
    /// Index and generation together.
    #[inline]
    pub const fn new(index: u16, generation: u16) -> Self {
        Self(index as u32 | (generation as u32) << 16)
    }

    /// The name as it travels in a packet or ticket.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The name as it travels in a packet or ticket.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Which slot of the table.
    #[inline]
    pub const fn index(self) -> u16 {
        self.0 as u16
    }

    /// Which use of that slot.
    #[inline]
    pub const fn generation(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl core::fmt::Debug for SlotName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "slot {}.{}", self.index(), self.generation())
    }
}

impl core::fmt::Display for SlotName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

/// A port as peers name it, with index and generation as a [`SlotName`]. It travels in the place of
/// one, and is told from it by the packet's [`Kind`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct PortName(pub(crate) SlotName);

impl PortName {
    /// The name as it travels in a packet or ticket.
    #[inline]
    pub const fn from_bits(bits: u32) -> Self {
        Self(SlotName::from_bits(bits))
    }

    /// The name as it travels in a packet or ticket.
    #[inline]
    pub const fn to_bits(self) -> u32 {
        self.0.to_bits()
    }

    /// Which port of the table.
    #[inline]
    pub const fn index(self) -> u16 {
        self.0.index()
    }
}

impl core::fmt::Debug for PortName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "port {}.{}", self.0.index(), self.0.generation())
    }
}

impl core::fmt::Display for PortName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(self, f)
    }
}

/// The port that a message goes to, with all that opens it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortAddress {
    /// The port.
    pub port: PortName,
    /// Its key.
    pub key: Key,
    /// The group of those who may send to it.
    pub group: u64,
}

impl PortAddress {
    /// The address in the header of a message: the key and name in their own fields, the group in
    /// that of the offset, which a message has not.
    #[inline]
    pub const fn of(header: &Header) -> Self {
        Self {
            port: PortName(header.slot),
            key: header.key,
            group: header.offset,
        }
    }

    /// The header of a message to this port, for a handler.
    #[inline]
    pub const fn header(&self, handler: u64, length_bytes: u32) -> Header {
        Header {
            slot: self.port.0,
            metadata_index: FAST_INDEX,
            key: self.key,
            offset: self.group,
            length_bytes,
            word: handler,
            metadata_length_bytes: 0,
            flags: Flags::NONE,
            kind: Kind::MESSAGE,
        }
    }
}

/// What a packet asks for. Open: a value that this version does not know is
/// data, and is refused by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Kind(pub u8);

impl Kind {
    /// Deposit the payload at the named place.
    pub const WRITE: Kind = Kind(0);
    /// Hand the payload to a port, for the handler in the header's word.
    pub const MESSAGE: Kind = Kind(3);
}

/// Bits of a packet header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// Deposit without telling the application (`Hamlyn 2.2`: notification is optional).
    pub const SILENT: Flags = Flags(1);

    /// The data are in their place already: the sender, which holds a grant, has stored them there
    /// itself (decision 0006). The packet brings none.
    pub const PLACED: Flags = Flags(2);

    /// All of these and those.
    #[inline]
    #[must_use]
    pub const fn with(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }

    /// Whether the packet's data are in their place already.
    #[inline]
    pub const fn is_placed(self) -> bool {
        self.0 & Self::PLACED.0 != 0
    }

    /// Whether the packet's message is to land unannounced.
    #[inline]
    pub const fn is_silent(self) -> bool {
        self.0 & Self::SILENT.0 != 0
    }
}

/// The fields of Table 1. The destination host of the paper is the link itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Which slot of the receiver.
    pub slot: SlotName,
    /// Which metadata entry of that slot; [`FAST_INDEX`] for fast mode.
    pub metadata_index: u16,
    /// The key that opens the slot, or in the paranoid modes the entry.
    pub key: Key,
    /// Where in the slot this packet's data begin.
    pub offset: u64,
    /// Bytes of data in this packet, metadata not counted. Zero is legal. Of a placed packet, the
    /// bytes that were stored.
    pub length_bytes: u32,
    /// The packet's delta (`Hamlyn 2.5`); in fast mode, which needs no delta, the
    /// one word of metadata (`Hamlyn 2.7`).
    pub word: u64,
    /// Bytes of metadata in this packet.
    pub metadata_length_bytes: u8,
    /// Flags.
    pub flags: Flags,
    /// What is asked for.
    pub kind: Kind,
}

impl Header {
    /// Whether the packet names no metadata entry.
    #[inline]
    pub const fn is_fast(&self) -> bool {
        self.metadata_index == FAST_INDEX
    }

    /// True if a message of so many bytes would end beyond the highest offset. One to a port has no
    /// place.
    #[inline(always)]
    pub(crate) const fn ends_beyond(&self, length_bytes: u64) -> bool {
        self.offset.checked_add(length_bytes).is_none() && self.kind.0 != Kind::MESSAGE.0
    }
}

/// A slot and a metadata entry of it, or none, as one number: so that both are compared at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Address(u64);

impl Address {
    /// The entry of that index of the slot; fast mode if it is [`FAST_INDEX`].
    #[inline]
    pub const fn new(slot: SlotName, metadata_index: u16) -> Self {
        Self(slot.to_bits() as u64 | (metadata_index as u64) << 32)
    }

    /// As it travels; the highest 16 bits of an address are zero.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// As it travels.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The slot.
    #[inline]
    pub const fn slot(self) -> SlotName {
        SlotName::from_bits(self.0 as u32)
    }

    /// The entry; [`FAST_INDEX`] in fast mode.
    #[inline]
    pub const fn metadata_index(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Whether it names no metadata entry.
    #[inline]
    pub const fn is_fast(self) -> bool {
        self.metadata_index() == FAST_INDEX
    }
}

/// A short packet: an announced message of at most
/// [`SHORT_BYTES_WITH_WORD`](crate::limits::SHORT_BYTES_WITH_WORD), or in fast mode with a word of
/// zero [`SHORT_BYTES_MAX`], all of it in this one packet. What a [`Header`] and its payload say,
/// without what is the same in every such packet: the kind is [`Kind::WRITE`], there are no flags,
/// and the delta is zero (`Hamlyn 2.5`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Short {
    /// Where to.
    pub to: Address,
    /// The key.
    pub key: Key,
    /// Where in the slot the data begin.
    pub offset: u64,
    /// The word of a message in fast mode; otherwise eight bytes of metadata, lowest first.
    pub word: u64,
    /// Whether the word is metadata.
    pub has_metadata: bool,
    /// The number of bytes of data, together.
    pub length_bytes: u16,
    /// The data, lowest byte first; anything beyond their length. If they do not fit, the first
    /// [`SHORT_BYTES_WITH_WORD`](crate::limits::SHORT_BYTES_WITH_WORD) of them.
    pub data: [u64; SHORT_WORDS],
}

/// A [`Short`] that lies where its sender can still write: each of its fields is asked for once at
/// most, as a second look may find something else, and what was found at first is what counts.
pub trait ShortInPlace: ShortSource {
    /// Whether the word is metadata.
    const HAS_METADATA: bool;

    /// Where to.
    fn to(&self) -> Address;
    /// The key.
    fn key(&self) -> Key;
    /// Where in the slot the data begin.
    fn offset(&self) -> u64;
    /// The word.
    fn word(&self) -> u64;

    /// A copy of all of it.
    #[inline]
    fn copied(&self) -> Short {
        let data = self.copied_data();
        Short {
            to: self.to(),
            key: self.key(),
            offset: self.offset(),
            word: self.word(),
            has_metadata: Self::HAS_METADATA,
            length_bytes: data.length_bytes as u16,
            data: data.words,
        }
    }

    /// As [`Payload::passes`](crate::memory::Payload::passes), for a packet that came the fast
    /// path.
    #[inline(always)]
    fn passes(&self, point: Point) {
        let _ = point;
    }
}

impl Short {
    /// The header of this packet.
    pub const fn header(&self) -> Header {
        Header {
            slot: self.to.slot(),
            metadata_index: self.to.metadata_index(),
            key: self.key,
            offset: self.offset,
            length_bytes: self.length_bytes as u32,
            word: if self.has_metadata { 0 } else { self.word },
            metadata_length_bytes: if self.has_metadata { 8 } else { 0 },
            flags: Flags::NONE,
            kind: Kind::WRITE,
        }
    }

    /// The data.
    pub fn bytes(&self) -> ShortBytes {
        ShortBytes {
            bytes: short_bytes(self.data),
            length_bytes: self.length_bytes,
        }
    }
}

/// The data of a short packet, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct ShortBytes {
    bytes: [u8; SHORT_BYTES_MAX],
    length_bytes: u16,
}

impl core::ops::Deref for ShortBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let length = usize::from(self.length_bytes).min(SHORT_BYTES_MAX);
        &self.bytes[..length]
    }
}

/// Words as bytes, lowest first.
pub(crate) fn short_bytes(words: [u64; SHORT_WORDS]) -> [u8; SHORT_BYTES_MAX] {
    let mut bytes = [0; SHORT_BYTES_MAX];
    for (into, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *into = word.to_le_bytes();
    }
    bytes
}

/// Bytes as words, lowest first; zero beyond them. Nothing if there are more than
/// [`SHORT_BYTES_MAX`].
///
/// The last word is loaded where the bytes end, and shifted: any length takes about as long as
/// whole words, and none a loop.
#[inline(always)]
pub fn short_words(bytes: &[u8]) -> Option<[u64; SHORT_WORDS]> {
    const WORD: usize = size_of::<u64>();
    let length = bytes.len();
    let word_at = |at: usize| {
        bytes
            .get(at..)?
            .first_chunk()
            .copied()
            .map(u64::from_le_bytes)
    };
    // What lies from `at` on; less than a word before the end, but for nothing at all.
    let rest_from = |at: usize| {
        let last = bytes.last_chunk().copied().map(u64::from_le_bytes)?;
        let missing_bits = (at + WORD - length) as u32 * u8::BITS;
        Some(last.checked_shr(missing_bits).unwrap_or(0))
    };
    Some(match length {
        0..WORD => [short_rest(bytes), 0, 0, 0],
        WORD..=16 => [word_at(0)?, rest_from(8)?, 0, 0],
        17..=24 => [word_at(0)?, word_at(8)?, rest_from(16)?, 0],
        25..=SHORT_BYTES_MAX => [word_at(0)?, word_at(8)?, word_at(16)?, rest_from(24)?],
        _ => return None,
    })
}

/// Fewer than eight bytes as a word, lowest first.
#[inline(always)]
pub fn short_rest(rest: &[u8]) -> u64 {
    let length = rest.len();
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << ((length - 4) as u32 * u8::BITS);
    }
    let byte_at =
        |at: usize| u64::from(rest.get(at).copied().unwrap_or(0)) << (at as u32 * u8::BITS);
    match length.checked_sub(1) {
        None => 0,
        Some(last) => byte_at(0) | byte_at(length / 2) | byte_at(last),
    }
}
