//! What a packet says of itself (`Hamlyn 2.2, Table 1`).
//!
//! Every packet names its own place in the receiver's memory, so packets may
//! arrive in any order. A header here is a value; how it lies on the wire is
//! each link's affair.

use crate::key::Key;
use crate::limits::FAST_INDEX;

/// A slot as peers name it: 16 bits of index and 16 bits of generation. An
/// index is used again only under a new generation, so a stale name never
/// reaches somebody else's memory.
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

/// What a packet asks for. Open: a value that this version does not know is
/// data, and is refused by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Kind(pub u8);

impl Kind {
    /// Deposit the payload at the named place.
    pub const WRITE: Kind = Kind(0);
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

    /// The data are in their place already: the sender, who was granted that, has stored them there
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
    /// Bytes of data in this packet, metadata not counted. Zero is legal. Of a placed packet, the bytes
    /// that were stored.
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
}
