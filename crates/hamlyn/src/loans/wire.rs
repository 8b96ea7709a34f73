//! What publishers and readers say to each other. What is read here comes from a peer that is not
//! trusted: any bytes give a value or nothing.
//!
//! A reader is given a *lane*: a slot for its greeting and its good-bye, and a *board*, where it
//! gives samples back. It brings a slot of its own, its *list*, to which the publisher writes where
//! messages lie; or, where it must have copies, a lane of buffers ([`crate::lane`]).

use hamlyn_host::Destination;

use super::options::{DEPTH_MAX, PublisherOptions, pool_bytes};
use crate::lane::{LaneSeed, SEED_BYTES};
use crate::ticket::{TICKET_BYTES, Ticket};

/// Bytes of a message of two words.
const PAIR_BYTES: usize = 2 * size_of::<u64>();
/// Bytes of a lane as it travels, without the number of the pool.
const LANE_BYTES: usize = 2 * TICKET_BYTES + 12;
const POOL_NUMBER_BYTES: usize = size_of::<u64>();

/// Words of messages to a lane.
pub(super) const GREETING_FOR_VIEWS: u64 = 1;
pub(super) const GREETING_FOR_COPIES: u64 = 2;
pub(super) const FAREWELL: u64 = 3;
/// The reader has the pool.
pub(super) const FETCHED: u64 = 4;
/// Bytes before a message that is copied: its number.
pub(super) const NUMBER_BYTES: usize = size_of::<u64>();
/// Bytes of the longest greeting.
pub(super) const GREETING_BYTES: usize = SEED_BYTES;
const _: () = assert!(GREETING_BYTES >= TICKET_BYTES);
/// Where the data of a greeting lie: those of a good-bye (none) lie before.
pub(super) const GREETING_OFFSET: u64 = PAIR_BYTES as u64;
/// Bytes of the slot of a lane that takes both.
pub(super) const DOOR_BYTES: u64 = GREETING_OFFSET + GREETING_BYTES as u64;

/// Words of messages to a list that are no positions.
pub(super) const POOL: u64 = u64::MAX;
pub(super) const END: u64 = u64::MAX - 1;
/// Where the data of a good-bye (none) and of the pool lie in a list, before the entries.
const END_OFFSET: u64 = 0;
pub(super) const POOL_OFFSET: u64 = PAIR_BYTES as u64;
const ENTRIES_OFFSET: u64 = 2 * PAIR_BYTES as u64;
const _: () = assert!(END_OFFSET + PAIR_BYTES as u64 <= POOL_OFFSET);

/// Bytes of a list.
pub(super) const fn list_bytes(depth: u16) -> u64 {
    ENTRIES_OFFSET + board_bytes(depth)
}

/// Where the entry of that position lies in a list.
#[inline]
pub(super) fn entry_offset(position: u64, depth: u16) -> u64 {
    ENTRIES_OFFSET + board_offset(position, depth)
}

/// Bytes of a board.
pub(super) const fn board_bytes(depth: u16) -> u64 {
    depth as u64 * PAIR_BYTES as u64
}

/// Where a reader gives back the sample of that position.
#[inline]
pub(super) fn board_offset(position: u64, depth: u16) -> u64 {
    position % u64::from(depth) * PAIR_BYTES as u64
}

/// What stands there when it was given back. A board of zeroes gives nothing back.
#[inline]
pub(super) fn given_back(position: u64) -> u64 {
    position + 1
}

/// Two words as data.
#[inline]
pub(super) fn pair(first: u64, second: u64) -> [u8; PAIR_BYTES] {
    let mut data = [0; PAIR_BYTES];
    data[..8].copy_from_slice(&first.to_le_bytes());
    data[8..].copy_from_slice(&second.to_le_bytes());
    data
}

/// Where a message lies: its chunk and its length, as the first word of an entry. The second is its
/// number.
#[inline]
pub(super) fn place(chunk: u32, length_bytes: usize) -> u64 {
    u64::from(chunk) | (length_bytes as u64) << 32
}

/// What a publisher gives to a reader: where it greets and gives samples back, and the limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lane {
    pub(super) door: Ticket,
    pub(super) board: Ticket,
    pub(super) message_bytes: u32,
    pub(super) chunks: u32,
    pub(super) depth: u16,
    /// Of a publisher with [`Latest`](super::SlowReaders::Latest): under which its pool, which has
    /// a head, is fetched.
    pub(super) pool: Option<u64>,
}

impl Lane {
    pub(super) fn new(
        door: Ticket,
        board: Ticket,
        options: &PublisherOptions,
        pool: Option<u64>,
    ) -> Self {
        Self {
            door,
            board,
            message_bytes: options.message_bytes,
            chunks: options.pool_chunks(),
            depth: options.depth,
            pool,
        }
    }

    pub(super) fn is_latest(&self) -> bool {
        self.pool.is_some()
    }

    /// Bytes of the publisher's pool, if there can be such a pool.
    pub(super) fn pool_bytes(&self) -> Option<usize> {
        pool_bytes(self.message_bytes, self.chunks, self.is_latest())
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; LANE_BYTES];
        bytes[..TICKET_BYTES].copy_from_slice(&self.door.to_bytes());
        bytes[TICKET_BYTES..2 * TICKET_BYTES].copy_from_slice(&self.board.to_bytes());
        let rest = &mut bytes[2 * TICKET_BYTES..];
        rest[..4].copy_from_slice(&self.message_bytes.to_le_bytes());
        rest[4..8].copy_from_slice(&self.chunks.to_le_bytes());
        rest[8..10].copy_from_slice(&self.depth.to_le_bytes());
        rest[10] = u8::from(self.is_latest());
        bytes.extend(self.pool.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (bytes, pool) = bytes.split_first_chunk::<LANE_BYTES>()?;
        let pool = match pool.len() {
            0 => None,
            POOL_NUMBER_BYTES => Some(u64::from_le_bytes(*pool.first_chunk()?)),
            _ => return None,
        };
        let rest = &bytes[2 * TICKET_BYTES..];
        let number = |at: usize| rest[at..].first_chunk().map(|it| u32::from_le_bytes(*it));
        let lane = Self {
            door: Ticket::of_slot(&bytes[..TICKET_BYTES]).ok()?,
            board: Ticket::of_slot(&bytes[TICKET_BYTES..2 * TICKET_BYTES]).ok()?,
            message_bytes: number(0)?,
            chunks: number(4)?,
            depth: u16::from_le_bytes([rest[8], rest[9]]),
            pool,
        };
        let is_possible = lane.pool_bytes().is_some()
            && (1..=DEPTH_MAX).contains(&lane.depth)
            && lane.door.destination == lane.board.destination
            && rest[10] == u8::from(pool.is_some())
            && rest[11] == 0;
        is_possible.then_some(lane)
    }
}

/// How a reader wants its messages.
#[derive(Clone, Copy, Debug)]
pub(super) enum Greeting {
    /// In place; their places go to this list.
    Views(Ticket),
    /// Over this lane: the number, then the message.
    Copies(LaneSeed),
}

impl Greeting {
    /// The interface that it comes from, as it says.
    pub(super) fn to(&self) -> Destination {
        match self {
            Self::Views(ticket) => ticket.destination,
            Self::Copies(seed) => seed.ticket.destination,
        }
    }

    /// Reads a greeting of that word. What follows is not looked at.
    pub(super) fn read(word: u64, bytes: &[u8; GREETING_BYTES]) -> Option<Self> {
        match word {
            GREETING_FOR_VIEWS => {
                let ticket = Ticket::of_slot(&bytes[..TICKET_BYTES]);
                ticket.ok().map(Self::Views)
            }
            GREETING_FOR_COPIES => LaneSeed::from_bytes(bytes).ok().map(Self::Copies),
            _ => None,
        }
    }
}
