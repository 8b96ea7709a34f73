//! Regions: memory of a slot that others map.
//!
//! The owner allocates an area with [`Area::shared`](crate::Area::shared), opens a slot over it,
//! and shares whole pages of the slot with [`Interface::share`](crate::Interface::share): for
//! reading, or for reading and writing; with one peer, or with all that are linked. It sends the
//! [`RegionTicket`] in messages. A peer that has a link to the owner takes it with
//! [`Session::attach`](crate::Session::attach). From then on, for that part of the slot:
//!
//! * messages of [`PLACED_BYTES_MIN`] and more are stored by the sender, and only their headers
//!   travel;
//! * the operations of [initiators](crate::one_sided) are loads, stores and locked instructions of
//!   this process, if the slot grants [`Rights::READ`] alone, or everything;
//! * [`Attached::window`] is a handle for layers that want no more than a few instructions for each
//!   access.
//!
//! Nothing else changes for either side. A peer that attaches nothing sends packets.
//!
//! **The cost in trust.** While a region lasts, its holders may read it, and with
//! [`Access::Writable`] write it, at any time, also bytes that were announced already. An owner
//! that must not see bytes change copies them out before it looks at them twice. Keys guard
//! packets, not mappings: a slot that gets a new key keeps its holders. After
//! [`Interface::revoke`](crate::Interface::revoke) has returned, nothing that they do changes the
//! area any more.
//!
//! **The end.** A word in a page that only the owner can write says whether the region lasts.
//! Holders look at it, and send packets when it has ended. Bytes that were stored at that very
//! moment may be lost.

use std::sync::Arc;

use hamlyn_engine::grant::{GrantId, GrantRefused};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::slot::{Rights, SlotError};
use hamlyn_host::{ConnectError, HostError};
pub use hamlyn_ring::area::{AreaError, SharedOptions};
pub use hamlyn_ring::region::{AdoptError, REGION_BYTES_MAX};
use hamlyn_ring::region::{AttachedRegion, ShareError as MemoryError};
pub use hamlyn_ring::shared::{Access, DirectWindow, OutOfRange};

use crate::forks::from_forked;
use crate::peer::LinkEnd;
use crate::ticket::{FIELDS_BYTES, Ticket, TicketError, TicketKind, check_sum};

/// Shorter messages go as copies although their place is in an attached region: what lies in a cell
/// or beside one arrives with it, and stored bytes are fetched only after it.
pub const PLACED_BYTES_MIN: u64 = 512;
/// Regions that one interface shares.
pub const REGIONS_MAX: usize = 256;
/// Regions of others that one interface has attached.
pub const ATTACHED_MAX: usize = 4096;
/// Bytes of a region ticket as it travels.
pub const REGION_TICKET_BYTES: usize = 4 + FIELDS_BYTES + 8 + 4;

const VERSION: u8 = 0x83;
const SUM_AT: usize = REGION_TICKET_BYTES - 4;
const SECRET_AT: usize = SUM_AT - 8;

/// The peers that may attach a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holders {
    /// The peer of that link. It fetches the region once.
    One(LinkId),
    /// Every peer of this host that is linked, as often as it likes.
    Linked,
}

/// A region in its owner's hands. It lasts until [`Interface::revoke`](crate::Interface::revoke),
/// until its slot is closed, or until its one holder is gone. Dropping this ends nothing.
#[derive(Debug)]
#[must_use = "without it the region cannot be revoked"]
pub struct Region {
    pub(crate) id: GrantId,
    pub(crate) ticket: RegionTicket,
}

impl Region {
    /// The ticket with which peers attach it.
    pub fn ticket(&self) -> RegionTicket {
        self.ticket
    }
}

/// The right to attach a region. Only the peers with which it is shared can use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionTicket {
    /// The right to send to that part of the slot, in fast mode.
    pub ticket: Ticket,
    /// The rights that the slot granted when it was shared.
    pub rights: Rights,
    /// The number under which the memory is fetched.
    pub secret: u64,
}

impl RegionTicket {
    /// The access for which the region is mapped. A slot that grants writing is shared for that.
    pub fn access(&self) -> Access {
        match self.rights.grant(Rights::WRITE) {
            true => Access::Writable,
            false => Access::ReadOnly,
        }
    }

    /// True if a mapping allows no more than the slot, so that operations may be made in it.
    pub(crate) fn serves_operations(&self) -> bool {
        [Rights::READ, Rights::ALL].contains(&self.rights)
    }

    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; REGION_TICKET_BYTES] {
        let mut bytes = [0; REGION_TICKET_BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.rights.to_bits();
        bytes[4..SECRET_AT].copy_from_slice(&self.ticket.fields());
        bytes[SECRET_AT..SUM_AT].copy_from_slice(&self.secret.to_le_bytes());
        let sum = check_sum(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a region ticket. Total: any bytes give one or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TicketError> {
        let length_bytes = bytes.len();
        let bytes: &[u8; REGION_TICKET_BYTES] = bytes
            .try_into()
            .map_err(|_| TicketError::Length { length_bytes })?;
        if bytes[SUM_AT..] != check_sum(&bytes[..SUM_AT]).to_le_bytes() {
            return Err(TicketError::Damaged);
        }
        if bytes[0] != VERSION {
            return Err(TicketError::Version { found: bytes[0] });
        }
        if bytes[2..4] != [0; 2] {
            return Err(TicketError::Impossible { field: "flags" });
        }
        let rights = Rights::from_bits(bytes[1]);
        let rights = rights.filter(|rights| *rights == Rights::READ || rights.grant(Rights::WRITE));
        let mut secret = [0; 8];
        secret.copy_from_slice(&bytes[SECRET_AT..SUM_AT]);
        let ticket = Ticket::from_fields(&bytes[4..SECRET_AT])?;
        ticket.expect(TicketKind::Slot)?;
        Ok(Self {
            ticket,
            rights: rights.ok_or(TicketError::Impossible { field: "rights" })?,
            secret: u64::from_le_bytes(secret),
        })
    }
}

/// A region of a peer that this interface has attached. Dropping this changes nothing: see
/// [`Interface::detach`](crate::Interface::detach).
#[derive(Clone, Debug)]
pub struct Attached {
    pub(crate) link: LinkId,
    pub(crate) ticket: RegionTicket,
    pub(crate) region: Arc<AttachedRegion>,
}

impl Attached {
    /// A window on all of the region. It stays mapped as long as it lives.
    pub fn window(&self) -> DirectWindow {
        self.region
            .direct_window(0..self.region.length_bytes())
            .expect("a region has a window on all of it")
    }

    /// The ticket with which it was attached.
    pub fn ticket(&self) -> &RegionTicket {
        &self.ticket
    }

    /// True while the region lasts and there is a link to its owner, as far as this side was told.
    pub fn lasts(&self) -> bool {
        self.region.lasts()
    }
}

/// A region was not shared, or not taken back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The slot is not open.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// The slot refuses it: for its mode, its bounds, or regions that it has.
    #[error(transparent)]
    Refused(#[from] GrantRefused),
    /// The slot grants more than the region does, or not what it does.
    #[error(
        "a region for reading needs a slot that grants READ alone, and one for writing a slot that grants WRITE: open another slot over the same area"
    )]
    Rights,
    /// The memory cannot be shared, or there is no fresh memory to put in its place.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The peer is this interface itself.
    #[error(
        "a region that is shared with this interface itself is of no use: it has the memory already"
    )]
    Loopback,
    /// There is no such link any more.
    #[error("there is no link to share with: {0}")]
    NoLink(LinkEnd),
    /// As many as there can be are there.
    #[error("all {REGIONS_MAX} regions of this interface are in use: revoke one")]
    TooMany,
    /// The region is another interface's, or was revoked.
    #[error("this interface has no such region: it was revoked, or is another's")]
    NoSuchRegion,
    /// The host could not hold it ready.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// A region was not attached. Messages and operations then go as packets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no link to its owner.
    #[error("there is no link to the owner of the region: make its ticket usable first")]
    NotLinked,
    /// It is this interface's own.
    #[error("the region is this interface's own: use the area")]
    Loopback,
    /// As many as there can be are there.
    #[error("{ATTACHED_MAX} regions are attached already: detach one")]
    TooMany,
    /// The memory is not as long as the ticket says.
    #[error("the region has {found_bytes} bytes, its ticket says {expected_bytes}")]
    Length {
        /// The bytes that came.
        found_bytes: u64,
        /// The bytes that the ticket says.
        expected_bytes: u64,
    },
    /// The kernel does not confirm that the memory can be used safely.
    #[error(transparent)]
    Unusable(#[from] AdoptError),
    /// The memory could not be fetched.
    #[error(transparent)]
    Fetch(#[from] ConnectError),
}

from_forked! {
    ShareError: Self::Host;
    AttachError: Self::Fetch;
}

#[cfg(test)]
mod tests {
    use hamlyn_engine::counting::Counting;
    use hamlyn_engine::key::Key;
    use hamlyn_engine::limits::FAST_INDEX;
    use hamlyn_engine::packet::SlotName;
    use hamlyn_host::Destination;
    use proptest::prelude::*;

    use super::*;

    fn ticket(rights: Rights) -> RegionTicket {
        RegionTicket {
            ticket: Ticket {
                destination: Destination {
                    node: 1,
                    user: 2,
                    interface: 3,
                },
                slot: SlotName::from_bits(4),
                metadata_index: FAST_INDEX,
                key: Key::from_bits(5),
                base: 6,
                length_bytes: 7,
                counting: Counting::Bits32,
                kind: TicketKind::Slot,
            },
            rights,
            secret: 8 << 40,
        }
    }

    #[test]
    fn a_ticket_travels() {
        for rights in [Rights::READ, Rights::WRITE, Rights::ALL] {
            let ticket = ticket(rights);
            assert_eq!(RegionTicket::from_bytes(&ticket.to_bytes()), Ok(ticket));
        }
    }

    #[test]
    fn impossible_tickets_are_refused() {
        let refused = |at: usize, byte: u8| {
            let mut bytes = ticket(Rights::ALL).to_bytes();
            bytes[at] = byte;
            let sum = check_sum(&bytes[..SUM_AT]);
            bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
            RegionTicket::from_bytes(&bytes).unwrap_err()
        };
        assert_eq!(refused(0, 1), TicketError::Version { found: 1 });
        assert_eq!(refused(2, 1), TicketError::Impossible { field: "flags" });
        let atomic = Rights::ATOMIC.to_bits();
        for rights in [0, atomic, atomic | Rights::READ.to_bits(), 8, 0xff] {
            let impossible = TicketError::Impossible { field: "rights" };
            assert_eq!(refused(1, rights), impossible);
        }
        assert_eq!(refused(4, 9), TicketError::Version { found: 9 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = RegionTicket::from_bytes(&bytes);
        }

        #[test]
        fn damaged_tickets_are_refused(at in 0..REGION_TICKET_BYTES, flip in 1u8..) {
            let mut bytes = ticket(Rights::ALL).to_bytes();
            bytes[at] ^= flip;
            prop_assert_eq!(RegionTicket::from_bytes(&bytes), Err(TicketError::Damaged));
        }
    }
}
