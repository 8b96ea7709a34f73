//! The words of a lane. What is read here comes from a peer that is not trusted: any bytes give a
//! value or nothing.

use super::BUFFERS_MAX;
use crate::error::ConnectError;
use crate::ticket::{TICKET_BYTES, Ticket};

/// Most bytes of a buffer that a seed may speak of.
pub(crate) const LENGTH_BYTES_MAX: u32 = 1 << 31;

/// The metadata of a message to a buffer: a tag, and the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    pub(crate) tag: u32,
    pub(crate) length_bytes: u32,
}

impl Word {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.length_bytes)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            tag: (bits >> 32) as u32,
            length_bytes: bits as u32,
        }
    }
}

/// Bytes of the entry of a board that belongs to one buffer.
pub(super) const BOARD_BYTES: u64 = size_of::<u64>() as u64;

/// Bytes of a seed as it travels.
pub const SEED_BYTES: usize = TICKET_BYTES + 8;

/// All that a sender needs to fill a lane ([`super::LaneSender::connect`]). Whoever has its bytes
/// may be the lane's sender, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneSeed {
    /// The first buffer; the others lie behind it.
    pub(crate) ticket: Ticket,
    /// Number of buffers.
    pub buffers: u16,
    /// Bytes of each.
    pub buffer_bytes: u32,
}

impl LaneSeed {
    /// The seed as bytes.
    pub fn to_bytes(&self) -> [u8; SEED_BYTES] {
        let mut bytes = [0; SEED_BYTES];
        bytes[..TICKET_BYTES].copy_from_slice(&self.ticket.to_bytes());
        bytes[TICKET_BYTES..][..4].copy_from_slice(&u32::from(self.buffers).to_le_bytes());
        bytes[TICKET_BYTES + 4..].copy_from_slice(&self.buffer_bytes.to_le_bytes());
        bytes
    }

    /// The seed that these bytes are. Any bytes give an answer.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Seed`] and [`ConnectError::Ticket`] if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ConnectError> {
        let malformed = ConnectError::Seed {
            what: "malformed lane descriptor",
        };
        let Ok(bytes) = <&[u8; SEED_BYTES]>::try_from(bytes) else {
            return Err(malformed);
        };
        let number = |at: usize| {
            let bytes = bytes[TICKET_BYTES + at..].first_chunk();
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let seed = Self {
            ticket: Ticket::of_slot(&bytes[..TICKET_BYTES])?,
            buffers: number(0) as u16,
            buffer_bytes: number(4),
        };
        let is_possible = (1..=u32::from(BUFFERS_MAX)).contains(&number(0))
            && (1..=LENGTH_BYTES_MAX).contains(&seed.buffer_bytes);
        is_possible.then_some(seed).ok_or(malformed)
    }
}
