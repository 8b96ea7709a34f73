//! The words of a lane. What is read here comes from a peer that is not trusted: any bytes give a
//! value or nothing.

use super::{BUFFER_BYTES_MAX, BUFFERS_MAX};
use crate::error::ConnectError;
use crate::ticket::{TICKET_BYTES, Ticket};

/// Bits of a word that hold a length.
const LENGTH_BITS: u32 = 28;

const _: () = assert!(BUFFER_BYTES_MAX < 1 << LENGTH_BITS);

/// The metadata of a message to a buffer: a tag of 36 bits, and the length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    pub(crate) tag: u64,
    pub(crate) length_bytes: u32,
}

impl Word {
    pub(crate) fn to_bits(self) -> u64 {
        self.tag << LENGTH_BITS | u64::from(self.length_bytes)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            tag: bits >> LENGTH_BITS,
            length_bytes: bits as u32 & ((1 << LENGTH_BITS) - 1),
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
    pub(super) ticket: Ticket,
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
            && (1..=BUFFER_BYTES_MAX).contains(&seed.buffer_bytes);
        is_possible.then_some(seed).ok_or(malformed)
    }
}
