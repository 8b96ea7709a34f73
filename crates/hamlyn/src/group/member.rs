//! Members of a group: capabilities for a part of its buffer and of its count.

use hamlyn_engine::counting::{DivideError, Share, packets_needed};
use hamlyn_engine::limits::{PACKET_PAYLOAD_MIN, USER_METADATA_BYTES};

use crate::ticket::{
    FIELDS_BYTES, OutsideTicket, TICKET_BYTES, Ticket, TicketError, TicketKind, check_sum,
};

/// Bytes of a member as it travels.
pub const MEMBER_BYTES: usize = TICKET_BYTES + 8;

const _: () = assert!(MEMBER_BYTES <= USER_METADATA_BYTES);

/// Bytes of a member before its check sum.
const SUMMED_BYTES: usize = MEMBER_BYTES - 4;

/// Bytes that are no member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// The length is wrong.
    #[error(
        "a member has {MEMBER_BYTES} bytes, this has {length_bytes}: it was cut, or it is none"
    )]
    Length {
        /// Bytes given.
        length_bytes: usize,
    },
    /// The ticket in it, or its share, is none.
    #[error("the member is damaged: {0}")]
    Ticket(#[from] TicketError),
}

/// A part of a group: a range of its buffer and a share of the count. A capability, like a ticket;
/// to be used by one holder, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The range of the buffer.
    pub ticket: Ticket,
    /// Its share.
    pub share: Share,
}

/// A member could not be divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SplitError {
    /// The parts are longer than the member's range.
    #[error(transparent)]
    Outside(#[from] OutsideTicket),
    /// The share does not suffice.
    #[error(transparent)]
    Share(#[from] DivideError),
}

impl Member {
    /// Divides range and share into consecutive parts of the given lengths, each with enough
    /// share for its bytes on any link. Refused if the lengths exceed the range, or if the share
    /// cannot count that much: then fewer parts, or 64-bit accumulators, are the remedy.
    pub fn divide(&self, lengths_bytes: &[u64]) -> Result<Vec<Member>, SplitError> {
        let mut parts = Vec::with_capacity(lengths_bytes.len());
        let mut offset = 0_u64;
        for &length_bytes in lengths_bytes {
            parts.push(self.ticket.narrow(offset, length_bytes)?);
            offset += length_bytes;
        }
        let needed: Vec<u64> = lengths_bytes
            .iter()
            .map(|&bytes| packets_most(bytes))
            .collect();
        let mut shares = Vec::with_capacity(parts.len());
        self.share.divide(&needed, |share| shares.push(share))?;
        Ok(parts
            .into_iter()
            .zip(shares)
            .map(|(ticket, share)| Member { ticket, share })
            .collect())
    }

    /// The form in which it travels: the ticket's fields, the share, and a check sum of both.
    pub fn to_bytes(&self) -> [u8; MEMBER_BYTES] {
        let mut bytes = [0; MEMBER_BYTES];
        bytes[..FIELDS_BYTES].copy_from_slice(&self.ticket.fields());
        bytes[FIELDS_BYTES..SUMMED_BYTES].copy_from_slice(&self.share.minus_one().to_le_bytes());
        let sum = check_sum(&bytes[..SUMMED_BYTES]);
        bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a member. Total: any bytes give a member or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Member, MemberError> {
        let bytes: &[u8; MEMBER_BYTES] = bytes.try_into().map_err(|_| MemberError::Length {
            length_bytes: bytes.len(),
        })?;
        let (fields, rest) = bytes.split_at(FIELDS_BYTES);
        let (share, sum) = rest.split_at(SUMMED_BYTES - FIELDS_BYTES);
        if sum != check_sum(&bytes[..SUMMED_BYTES]).to_le_bytes() {
            return Err(TicketError::Damaged.into());
        }
        let ticket = Ticket::from_fields(fields)?;
        ticket.expect(TicketKind::Slot)?;
        let share = share
            .iter()
            .rev()
            .fold(0, |share, &byte| share << 8 | u64::from(byte));
        let share = Share::from_minus_one(share, ticket.counting)
            .ok_or(TicketError::Impossible { field: "share" })?;
        Ok(Member { ticket, share })
    }
}

/// Packets that so many bytes may take on the link with the smallest packets.
pub(super) fn packets_most(bytes: u64) -> u64 {
    packets_needed(bytes, USER_METADATA_BYTES, PACKET_PAYLOAD_MIN)
}
