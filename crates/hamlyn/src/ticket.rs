//! Tickets (`Hamlyn 3.2`): everything a sender needs for a message to one place.
//!
//! A ticket is a capability: any process that holds its bytes may use it
//! until its key is changed. It can travel in a message. Its bounds may be narrower than
//! its slot's; the sender's library keeps to them, and with a paranoid slot the
//! receiver's interface enforces them too.

use std::fmt;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Destination;

/// Bytes of a ticket as it travels.
pub const TICKET_BYTES: usize = 52;
/// Bytes of its fields, before the check sum.
pub(crate) const FIELDS_BYTES: usize = TICKET_BYTES - 4;
/// Version of that form.
const VERSION: u8 = 1;
/// Flag: the slot's accumulators have 64 bits.
const WIDE: u8 = 1;
/// Flag: the place is a port.
const PORT: u8 = 2;

// A datagram's metadata are eight bytes and a reply ticket.
const _: () = assert!(TICKET_BYTES + 8 <= USER_METADATA_BYTES);

/// The kind of place that a ticket leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TicketKind {
    /// A part of a slot.
    #[default]
    Slot,
    /// A port ([`crate::port`]). Its name is in the field of the slot, its group in that of the
    /// base, and the length is that of the longest message.
    Port,
}

impl fmt::Display for TicketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slot => "slot",
            Self::Port => "port",
        })
    }
}

/// The right to send to one place. See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// The interface that the place belongs to.
    pub destination: Destination,
    /// Its slot.
    pub slot: SlotName,
    /// The metadata entry; all ones for fast mode.
    pub metadata_index: u16,
    /// The key that opens the slot or the entry.
    pub key: Key,
    /// Where in the slot this ticket's place begins.
    pub base: u64,
    /// How many bytes it has.
    pub length_bytes: u64,
    /// Width of the slot's accumulators.
    pub counting: Counting,
    /// The kind of place.
    pub kind: TicketKind,
}

/// Bytes that are no ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// The length is wrong: the ticket was cut, or it is something else.
    #[error(
        "a ticket has {TICKET_BYTES} bytes, this has {length_bytes}: it was cut, or it is none"
    )]
    Length {
        /// Bytes given.
        length_bytes: usize,
    },
    /// The check sum is wrong: it was changed on its way or made up.
    #[error("the ticket's check sum is wrong: it was damaged or made up")]
    Damaged,
    /// It has another form.
    #[error("the ticket has version {found}, this library reads {VERSION}")]
    Version {
        /// Its version.
        found: u8,
    },
    /// It leads to another kind of place than is sent to.
    #[error(
        "the ticket leads to a {found}, not to a {expected}: connect to its end point as the kind that it is"
    )]
    Kind {
        /// Where it leads.
        found: TicketKind,
        /// Where it had to lead.
        expected: TicketKind,
    },
    /// A field has a value that no ticket has.
    #[error("the ticket's {field} is impossible")]
    Impossible {
        /// Which field.
        field: &'static str,
    },
}

/// A part of a ticket was asked for that it does not cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{length_bytes} bytes at {offset} do not lie in the {ticket_bytes} bytes of the ticket")]
pub struct OutsideTicket {
    /// Where it was to begin.
    pub offset: u64,
    /// How long it was to be.
    pub length_bytes: u64,
    /// What the ticket covers.
    pub ticket_bytes: u64,
}

impl Ticket {
    /// An error if it does not lead to a place of that kind.
    pub(crate) fn expect(&self, expected: TicketKind) -> Result<(), TicketError> {
        let found = self.kind;
        match found == expected {
            true => Ok(()),
            false => Err(TicketError::Kind { found, expected }),
        }
    }

    /// A ticket for a part of this one's place.
    pub fn narrow(&self, offset: u64, length_bytes: u64) -> Result<Ticket, OutsideTicket> {
        self.place(offset, length_bytes)?;
        Ok(Ticket {
            base: self.base.wrapping_add(offset),
            length_bytes,
            ..*self
        })
    }

    /// The offset in the slot of a message at `offset` in the ticket. A port has none but zero, for
    /// which it has its group.
    #[inline]
    pub(crate) fn place(&self, offset: u64, length_bytes: u64) -> Result<u64, OutsideTicket> {
        let is_place = self.kind == TicketKind::Slot || offset == 0;
        match offset.checked_add(length_bytes) {
            // It wraps only if the fields were made up here; then the place is wrong, no more.
            Some(end) if end <= self.length_bytes && is_place => Ok(self.base.wrapping_add(offset)),
            _ => Err(OutsideTicket {
                offset,
                length_bytes,
                ticket_bytes: self.length_bytes,
            }),
        }
    }

    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; TICKET_BYTES] {
        let mut bytes = [0; TICKET_BYTES];
        bytes[..FIELDS_BYTES].copy_from_slice(&self.fields());
        let sum = check_sum(&bytes[..FIELDS_BYTES]);
        bytes[FIELDS_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// That form without its check sum.
    pub(crate) fn fields(&self) -> [u8; FIELDS_BYTES] {
        let mut bytes = [0; FIELDS_BYTES];
        bytes[0] = VERSION;
        bytes[1] = match (self.kind, self.counting) {
            (TicketKind::Port, _) => PORT,
            (TicketKind::Slot, Counting::Bits64) => WIDE,
            (TicketKind::Slot, Counting::Bits32) => 0,
        };
        bytes[2..4].copy_from_slice(&self.metadata_index.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.destination.node.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.destination.user.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.slot.to_bits().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.destination.interface.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.key.to_bits().to_le_bytes());
        bytes[32..40].copy_from_slice(&self.base.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.length_bytes.to_le_bytes());
        bytes
    }

    /// Reads a ticket. Total: any bytes give a ticket or an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Ticket, TicketError> {
        let bytes: &[u8; TICKET_BYTES] = bytes.try_into().map_err(|_| TicketError::Length {
            length_bytes: bytes.len(),
        })?;
        let (fields, sum) = bytes.split_at(FIELDS_BYTES);
        if sum != check_sum(fields).to_le_bytes() {
            return Err(TicketError::Damaged);
        }
        Self::from_fields(fields)
    }

    /// Like [`Ticket::from_bytes`], for those who need a slot's.
    pub(crate) fn of_slot(bytes: &[u8]) -> Result<Ticket, TicketError> {
        let ticket = Self::from_bytes(bytes)?;
        ticket.expect(TicketKind::Slot)?;
        Ok(ticket)
    }

    /// Reads what [`Ticket::fields`] wrote, whose check sum was verified.
    pub(crate) fn from_fields(bytes: &[u8]) -> Result<Ticket, TicketError> {
        let bytes: &[u8; FIELDS_BYTES] = bytes.try_into().map_err(|_| TicketError::Length {
            length_bytes: bytes.len(),
        })?;
        let word = |at: usize| -> u64 {
            bytes[at..at + 8]
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        let half = |at: usize| word(at) as u32;
        if bytes[0] != VERSION {
            return Err(TicketError::Version { found: bytes[0] });
        }
        let (kind, counting) = match bytes[1] {
            0 => (TicketKind::Slot, Counting::Bits32),
            WIDE => (TicketKind::Slot, Counting::Bits64),
            PORT => (TicketKind::Port, Counting::Bits32),
            _ => return Err(TicketError::Impossible { field: "flags" }),
        };
        let (base, length_bytes) = (word(32), word(40));
        let metadata_index = u16::from_le_bytes([bytes[2], bytes[3]]);
        if kind == TicketKind::Port && metadata_index != FAST_INDEX {
            return Err(TicketError::Impossible { field: "entry" });
        }
        if kind == TicketKind::Slot && base.checked_add(length_bytes).is_none() {
            return Err(TicketError::Impossible { field: "bounds" });
        }
        Ok(Ticket {
            destination: Destination {
                node: half(4),
                user: half(8),
                interface: word(16),
            },
            slot: SlotName::from_bits(half(12)),
            metadata_index,
            key: Key::from_bits(word(24)),
            base,
            length_bytes,
            counting,
            kind,
        })
    }
}

/// FNV-1a. It finds accidents; forgery is what the key is for.
pub(crate) fn check_sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
