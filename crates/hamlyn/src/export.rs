//! Exported memory (decision 0037): all of a slot, mapped by any number of peers, whose one-sided
//! operations are then loads, stores and locked instructions.
//!
//! The owner allocates an area with [`Area::exportable`](crate::Area::exportable), opens a slot
//! over all of it, exports that ([`Interface::export`](crate::Interface::export)) and sends the
//! [`ExportTicket`] to its peers in messages. A peer that has a link to the owner takes it up with
//! [`Session::import`](crate::Session::import). From then on the operations of initiators that it
//! opens on tickets of this slot are made in the memory itself, and [`Import::window`] is a handle
//! for layers that want no more than a few instructions for each access. Other peers of the same
//! slot send packets as before.
//!
//! **What it costs in trust.** Importers see all of the area, now and later, and with the right to
//! write they may write all of it at any time. What the kernel enforces is the difference between
//! reading and writing: a slot with [`Rights::READ`] alone is mapped for reading only. So rights
//! between these are not exported. Keys guard packets, not mappings: a slot that gets a new key
//! keeps its importers, until [`Interface::revoke_export`](crate::Interface::revoke_export) has
//! returned. From then on nothing that they do changes the area.
//!
//! **What importers are told.** A word in a page that only the owner can write says whether the
//! export lasts. Operations look at it and go as packets when it has ended. What was stored at that
//! very moment may be lost.

use std::sync::Arc;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::slot::{Rights, SlotError};
use hamlyn_host::{ConnectError, HostError};
pub use hamlyn_ring::export::{EXPORTED_BYTES_MAX, ExportableError, ExportableOptions};
use hamlyn_ring::export::{ExportError as MemoryError, ImportedArea};
pub use hamlyn_ring::shared::{DirectWindow, OutOfRange};

use crate::forks::from_forked;
use crate::ticket::{FIELDS_BYTES, Ticket, TicketError, TicketKind, check_sum};

/// Areas of others that one interface has imported.
pub const IMPORTS_MAX: usize = 4096;
/// Bytes of an export ticket as it travels.
pub const EXPORT_TICKET_BYTES: usize = 4 + FIELDS_BYTES + 8 + 4;

const VERSION: u8 = 0x82;
const SUM_AT: usize = EXPORT_TICKET_BYTES - 4;
const SECRET_AT: usize = SUM_AT - 8;

/// An export, in its owner's hands. It lasts until
/// [`Interface::revoke_export`](crate::Interface::revoke_export), or until its slot is closed;
/// dropping this ends nothing.
#[derive(Debug)]
#[must_use = "without it the export cannot be revoked"]
pub struct Export {
    pub(crate) ticket: ExportTicket,
}

impl Export {
    /// With this, peers take it up.
    pub fn ticket(&self) -> ExportTicket {
        self.ticket
    }
}

/// The right to map the memory of a slot, for every peer that holds it and has a link to the owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportTicket {
    /// The right to send to all of the slot, in fast mode.
    pub ticket: Ticket,
    /// What the slot granted when it was exported.
    pub rights: Rights,
    /// The number under which the memory is fetched.
    pub secret: u64,
}

impl ExportTicket {
    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; EXPORT_TICKET_BYTES] {
        let mut bytes = [0; EXPORT_TICKET_BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.rights.to_bits();
        bytes[4..SECRET_AT].copy_from_slice(&self.ticket.fields());
        bytes[SECRET_AT..SUM_AT].copy_from_slice(&self.secret.to_le_bytes());
        let sum = check_sum(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads an export ticket. Total: any bytes give one or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TicketError> {
        let length_bytes = bytes.len();
        let bytes: &[u8; EXPORT_TICKET_BYTES] = bytes
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
        let rights = rights.filter(|rights| [Rights::READ, Rights::ALL].contains(rights));
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

/// An area of a peer that this interface has mapped. Dropping this changes nothing: see
/// [`Interface::drop_import`](crate::Interface::drop_import).
#[derive(Clone, Debug)]
pub struct Import {
    pub(crate) link: LinkId,
    pub(crate) ticket: ExportTicket,
    pub(crate) area: Arc<ImportedArea>,
}

impl Import {
    /// A window on all of the slot. It stays mapped as long as it lives.
    pub fn window(&self) -> DirectWindow {
        self.part(0, self.ticket.ticket.length_bytes)
            .expect("an import is as long as its ticket says")
    }

    /// A window on a part of the slot, if it lies there.
    pub(crate) fn part(&self, offset: u64, length_bytes: u64) -> Option<DirectWindow> {
        let end = offset.checked_add(length_bytes)?;
        self.area.direct_window(offset..end)
    }

    /// What it was taken up with.
    pub fn ticket(&self) -> &ExportTicket {
        &self.ticket
    }

    /// Whether the export still lasts and there is a link to its owner, as far as this side was
    /// told.
    pub fn lasts(&self) -> bool {
        self.area.lasts()
    }

    pub(crate) fn is_of(&self, link: LinkId, slot: SlotName) -> bool {
        self.link == link && self.ticket.ticket.slot == slot
    }
}

/// A slot was not exported, or its memory was not taken back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The slot is not open.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// The slot is a part of its area, and importers would see all of it.
    #[error(
        "the slot has {slot_bytes} of the {area_bytes} bytes of its area, and importers see all of it: open a slot over the whole area"
    )]
    NotWhole {
        /// What the slot has.
        slot_bytes: u64,
        /// What the area has.
        area_bytes: u64,
    },
    /// What the slot grants is neither to read nor everything.
    #[error(
        "a mapping allows to read or everything, and the slot grants something else: open it with READ or ALL"
    )]
    Rights,
    /// The memory cannot be exported, or there is no fresh memory to put in its place.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The export is another interface's, or was revoked.
    #[error("this interface has no such export: it was revoked, or is another's")]
    NoSuchExport,
    /// The host could not hold it ready.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// An export could not be taken up. Operations then go as packets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no link to its owner.
    #[error("there is no link to the owner of the export: make its ticket usable first")]
    NotLinked,
    /// It is this interface's own.
    #[error("the export is this interface's own: use the area")]
    Loopback,
    /// As many as there can be are there.
    #[error("{IMPORTS_MAX} areas are imported already: drop one")]
    TooMany,
    /// The memory is not as long as the ticket says.
    #[error("the export has {found_bytes} bytes, its ticket says {expected_bytes}")]
    Length {
        /// What came.
        found_bytes: u64,
        /// What the ticket says.
        expected_bytes: u64,
    },
    /// The memory could not be fetched.
    #[error(transparent)]
    Fetch(#[from] ConnectError),
}

from_forked! {
    ExportError: Self::Host;
    ImportError: Self::Fetch;
}

#[cfg(test)]
mod tests {
    use hamlyn_engine::counting::Counting;
    use hamlyn_engine::key::Key;
    use hamlyn_engine::limits::FAST_INDEX;
    use hamlyn_host::Destination;
    use proptest::prelude::*;

    use super::*;

    fn ticket(rights: Rights) -> ExportTicket {
        ExportTicket {
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
        for rights in [Rights::READ, Rights::ALL] {
            let ticket = ticket(rights);
            assert_eq!(ExportTicket::from_bytes(&ticket.to_bytes()), Ok(ticket));
        }
    }

    #[test]
    fn impossible_tickets_are_refused() {
        let refused = |at: usize, byte: u8| {
            let mut bytes = ticket(Rights::ALL).to_bytes();
            bytes[at] = byte;
            let sum = check_sum(&bytes[..SUM_AT]);
            bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
            ExportTicket::from_bytes(&bytes).unwrap_err()
        };
        assert_eq!(refused(0, 1), TicketError::Version { found: 1 });
        assert_eq!(refused(2, 1), TicketError::Impossible { field: "flags" });
        for rights in [0, 1, 3, 4, 8, 0xff] {
            let impossible = TicketError::Impossible { field: "rights" };
            assert_eq!(refused(1, rights), impossible);
        }
        assert_eq!(refused(4, 9), TicketError::Version { found: 9 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = ExportTicket::from_bytes(&bytes);
        }

        #[test]
        fn damaged_tickets_are_refused(at in 0..EXPORT_TICKET_BYTES, flip in 1u8..) {
            let mut bytes = ticket(Rights::ALL).to_bytes();
            bytes[at] ^= flip;
            prop_assert_eq!(ExportTicket::from_bytes(&bytes), Err(TicketError::Damaged));
        }
    }
}
