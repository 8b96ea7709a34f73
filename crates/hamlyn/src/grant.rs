//! Grants of pages to chosen peers (direct placement, decision 0006).
//!
//! A peer that holds a grant stores messages of [`PLACED_BYTES_MIN`] and more to that part of the
//! slot into the owner's memory by itself, and sends only the header; nothing else changes for
//! either side. The owner makes a [`Grant`] with [`crate::Interface::grant`] and sends its
//! [`GrantTicket`] to the peer, which takes it up with [`crate::Session::accept_grant`].
//!
//! **What it costs in trust**: while a grant lasts, its holder may write those pages at any time,
//! also those that were announced already. An owner that must not see bytes change copies them out
//! before it looks at them twice. After [`crate::Interface::revoke_grant`] has returned, the holder
//! changes nothing any more.

use hamlyn_engine::grant::{GrantId, GrantRefused};
use hamlyn_engine::packet::SlotName;
use hamlyn_host::{ConnectError, Destination, HostError};
use hamlyn_ring::lending::LendError;

use crate::forks::from_forked;
use crate::peer::LinkEnd;
use crate::ticket::{TicketError, check_sum};

/// Messages shorter than this go as copies, although their place was granted: what lies in a cell
/// or beside one arrives with it, and what was placed is fetched only after it.
pub const PLACED_BYTES_MIN: u64 = 512;
/// Grants of one interface that were made and not taken back.
pub const GRANTS_MAX: usize = 256;
/// Grants of others that one interface has taken up.
pub const ACCEPTED_MAX: usize = 64;
/// Bytes of a grant ticket as it travels.
pub const GRANT_TICKET_BYTES: usize = 52;

const FIELDS_BYTES: usize = GRANT_TICKET_BYTES - 4;
const VERSION: u8 = 0x81;

/// A grant, in its owner's hands. It lasts until [`crate::Interface::revoke_grant`]; dropping this
/// ends nothing.
#[derive(Debug)]
#[must_use = "without it the grant cannot be revoked"]
pub struct Grant {
    pub(crate) id: GrantId,
    pub(crate) ticket: GrantTicket,
}

impl Grant {
    /// What the peer takes it up with. Of no use to anybody else.
    pub fn ticket(&self) -> GrantTicket {
        self.ticket
    }
}

/// The right to fetch pages, once, for the one peer that they were granted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrantTicket {
    /// The interface that the pages belong to.
    pub destination: Destination,
    /// Its slot.
    pub slot: SlotName,
    /// Where in the slot they begin.
    pub start: u64,
    /// How many bytes they are.
    pub length_bytes: u64,
    /// The number under which they wait.
    pub secret: u64,
}

impl GrantTicket {
    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; GRANT_TICKET_BYTES] {
        let mut bytes = [0; GRANT_TICKET_BYTES];
        bytes[0] = VERSION;
        bytes[4..8].copy_from_slice(&self.destination.node.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.destination.user.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.slot.to_bits().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.destination.interface.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.start.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.length_bytes.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.secret.to_le_bytes());
        let sum = check_sum(&bytes[..FIELDS_BYTES]);
        bytes[FIELDS_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a grant ticket. Total: any bytes give one or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TicketError> {
        let bytes: &[u8; GRANT_TICKET_BYTES] =
            bytes.try_into().map_err(|_| TicketError::Length {
                length_bytes: bytes.len(),
            })?;
        if bytes[FIELDS_BYTES..] != check_sum(&bytes[..FIELDS_BYTES]).to_le_bytes() {
            return Err(TicketError::Damaged);
        }
        if bytes[0] != VERSION {
            return Err(TicketError::Version { found: bytes[0] });
        }
        if bytes[1..4] != [0; 3] {
            return Err(TicketError::Impossible { field: "flags" });
        }
        let half = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        let (start, length_bytes) = (word(24), word(32));
        if start.checked_add(length_bytes).is_none() {
            return Err(TicketError::Impossible { field: "bounds" });
        }
        Ok(Self {
            destination: Destination {
                node: half(4),
                user: half(8),
                interface: word(16),
            },
            slot: SlotName::from_bits(half(12)),
            start,
            length_bytes,
            secret: word(40),
        })
    }
}

/// A grant was not made, or its pages were not taken back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The slot refuses it: for its mode, its bounds, or grants that it has.
    #[error(transparent)]
    Refused(#[from] GrantRefused),
    /// The memory cannot be lent, or there is no fresh memory to put in its place.
    #[error(transparent)]
    Memory(#[from] LendError),
    /// The peer is this interface itself.
    #[error("a grant to this interface itself is of no use: it has the memory already")]
    Loopback,
    /// There is no such link any more.
    #[error("there is no link to grant to: {0}")]
    NoLink(LinkEnd),
    /// As many as there can be are there.
    #[error("all {GRANTS_MAX} grants of this interface are in use: revoke one")]
    TooMany,
    /// The grant is another interface's, or was revoked.
    #[error("this interface has no such grant: it was revoked, or is another's")]
    NoSuchGrant,
    /// The host could not hold it ready.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A grant could not be taken up. Messages then go as they went before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// There is no link to its owner: it was made for a link.
    #[error("there is no link to the owner of the grant: make its tickets usable first")]
    NotLinked,
    /// As many as there can be are there.
    #[error("{ACCEPTED_MAX} grants are in use already: drop one")]
    TooMany,
    /// The pages are not as many as the ticket says.
    #[error("the grant is of {found_bytes} bytes, its ticket says {expected_bytes}")]
    Length {
        /// What came.
        found_bytes: u64,
        /// What the ticket says.
        expected_bytes: u64,
    },
    /// The pages could not be fetched.
    #[error(transparent)]
    Fetch(#[from] ConnectError),
}

from_forked! {
    GrantError: Self::Host;
    AcceptError: Self::Fetch;
}

#[cfg(test)]
mod tests;
