//! The bytes by which the ends of a soak's connections find each other.

use anyhow::{Context, Result, bail};
use hamlyn::Ticket;
use hamlyn::stream::StreamSeed;
use hamlyn::ticket::TICKET_BYTES;

use super::orders::Life;

/// What the ticket of a process's registration is offered as.
pub(super) const REGISTRATION: &str = "registration";
/// A process's registration has a place for each host.
pub(super) const REGISTRATION_PLACE_BYTES: u64 = 64;
/// What lies there: the tag of the request, and the ticket to which the answer goes.
pub(super) const REQUEST_BYTES: usize = 8 + TICKET_BYTES;

const _: () = assert!(REQUEST_BYTES as u64 <= REGISTRATION_PLACE_BYTES);

/// Tags of one connection that may be without an answer. Each has a place of its own.
pub(super) const TAGS_MAX: u64 = 64;
/// The place of a tag.
pub(super) const TAG_PLACE_BYTES: u64 = 1_024;
/// Records of one connection that may be without an answer.
pub(super) const RECORDS_MAX: u64 = 256;

/// The name of a process, as others reach it.
pub(super) fn process_name(host: usize) -> String {
    format!("soak-{host}")
}

/// A request names its sender and counts its requests.
pub(super) fn request(life: Life, round: u16) -> u64 {
    (life.host as u64) << 48 | u64::from(life.number) << 16 | u64::from(round)
}

pub(super) fn requester(tag: u64) -> Life {
    Life {
        host: (tag >> 48) as usize,
        number: (tag >> 16) as u32,
    }
}

/// The answer to a request: the other ends of a connection.
pub(super) struct Bundle {
    pub(super) connection: u64,
    /// Of its receiver.
    pub(super) number: u32,
    pub(super) datagrams: Ticket,
    pub(super) tags: Ticket,
    pub(super) records: StreamSeed,
}

const BUNDLE_HEAD_BYTES: usize = 12;

impl Bundle {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.connection.to_le_bytes().to_vec();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.datagrams.to_bytes());
        bytes.extend(self.tags.to_bytes());
        bytes.extend(self.records.to_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() < BUNDLE_HEAD_BYTES + 2 * TICKET_BYTES {
            bail!("a bundle of {} bytes", bytes.len());
        }
        let (head, rest) = bytes.split_at(BUNDLE_HEAD_BYTES);
        let (datagrams, rest) = rest.split_at(TICKET_BYTES);
        let (tags, records) = rest.split_at(TICKET_BYTES);
        Ok(Self {
            connection: u64::from_le_bytes(head[..8].try_into()?),
            number: u32::from_le_bytes(head[8..].try_into()?),
            datagrams: Ticket::from_bytes(datagrams)?,
            tags: Ticket::from_bytes(tags)?,
            records: StreamSeed::from_bytes(records)?,
        })
    }
}

/// The answer to a datagram: what has come over its connection so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) connection: u64,
    pub(super) datagrams: u64,
    /// All tags below this one.
    pub(super) tags_below: u64,
    pub(super) records: u64,
}

impl Answer {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let words = [
            self.connection,
            self.datagrams,
            self.tags_below,
            self.records,
        ];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bytes: &[u8; 32] = bytes.try_into().context("an answer of another length")?;
        let (words, _) = bytes.as_chunks();
        let [connection, datagrams, tags_below, records] =
            [0, 1, 2, 3].map(|at| u64::from_le_bytes(words[at]));
        Ok(Self {
            connection,
            datagrams,
            tags_below,
            records,
        })
    }
}
