//! What clients and servers of a service say to each other. What is read here comes from a peer
//! that is not trusted: any bytes give a value or nothing.

use crate::lane;
use crate::ticket::{TICKET_BYTES, Ticket};

/// Bytes of a lane as it travels.
pub(super) const LANE_BYTES: usize = 2 * TICKET_BYTES + 12;
/// Most bytes of a request or a reply.
pub const MESSAGE_BYTES_MAX: u32 = lane::BUFFER_BYTES_MAX;
/// Most calls that a client may have outstanding.
pub const OUTSTANDING_MAX: u16 = lane::BUFFERS_MAX;
/// Bits of a lane's tag that hold a status.
const STATUS_BITS: u32 = 4;
/// Numbers of calls in one buffer, before the first is used again.
pub(super) const NUMBERS: u32 = 1 << (u32::BITS - STATUS_BITS);

/// Bytes of an entry of the board, where a client gives calls up.
pub(super) const BOARD_BYTES: u64 = size_of::<u64>() as u64;

/// Where the board says which call in a buffer was given up.
pub(super) fn board_offset(index: u16) -> u64 {
    u64::from(index) * BOARD_BYTES
}

/// What stands there when this call was given up. A board of zeroes gives none up.
pub(super) fn cancellation(number: u32) -> u64 {
    u64::from(number) + 1
}

/// What a client is told of its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// The bytes are the reply.
    Answered,
    /// The server dropped the call.
    Dropped,
    /// The client had given it up.
    Cancelled,
}

/// The metadata of a request or a reply: which call it belongs to, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word {
    /// Counts the calls in one buffer, modulo [`NUMBERS`].
    pub(super) number: u32,
    pub(super) status: Status,
    pub(super) length_bytes: u32,
}

impl Word {
    pub(super) fn to_lane(self) -> lane::wire::Word {
        let status = match self.status {
            Status::Answered => 0,
            Status::Dropped => 1,
            Status::Cancelled => 2,
        };
        lane::wire::Word {
            tag: self.number << STATUS_BITS | status,
            length_bytes: self.length_bytes,
        }
    }

    pub(super) fn from_lane(word: lane::wire::Word) -> Option<Self> {
        Some(Self {
            number: word.tag >> STATUS_BITS,
            status: match word.tag & ((1 << STATUS_BITS) - 1) {
                0 => Status::Answered,
                1 => Status::Dropped,
                2 => Status::Cancelled,
                _ => return None,
            },
            length_bytes: word.length_bytes,
        })
    }
}

/// What a server gives to a client: buffers for its requests, a board on which it cancels calls,
/// and the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LaneSeed {
    pub(super) requests: Ticket,
    pub(super) board: Ticket,
    pub(super) outstanding: u16,
    pub(super) request_bytes: u32,
    pub(super) reply_bytes: u32,
}

impl LaneSeed {
    pub(super) fn to_bytes(self) -> [u8; LANE_BYTES] {
        let mut bytes = [0; LANE_BYTES];
        bytes[..TICKET_BYTES].copy_from_slice(&self.requests.to_bytes());
        bytes[TICKET_BYTES..2 * TICKET_BYTES].copy_from_slice(&self.board.to_bytes());
        let rest = &mut bytes[2 * TICKET_BYTES..];
        rest[..2].copy_from_slice(&self.outstanding.to_le_bytes());
        rest[4..8].copy_from_slice(&self.request_bytes.to_le_bytes());
        rest[8..].copy_from_slice(&self.reply_bytes.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LANE_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| {
            let bytes = bytes[2 * TICKET_BYTES + at..].first_chunk();
            bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
        };
        let seed = Self {
            requests: Ticket::of_slot(&bytes[..TICKET_BYTES]).ok()?,
            board: Ticket::of_slot(&bytes[TICKET_BYTES..2 * TICKET_BYTES]).ok()?,
            outstanding: u16::try_from(number(0)).ok()?,
            request_bytes: number(4),
            reply_bytes: number(8),
        };
        let lengths = 1..=MESSAGE_BYTES_MAX;
        let is_possible = (1..=OUTSTANDING_MAX).contains(&seed.outstanding)
            && lengths.contains(&seed.request_bytes)
            && lengths.contains(&seed.reply_bytes);
        is_possible.then_some(seed)
    }
}
