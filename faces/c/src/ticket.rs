//! Tickets: what a receiver hands to chosen peers, by whatever way, so that they can send to it.

use hamlyn::ticket::TICKET_BYTES;

use crate::boundary::{Room, call, room, to_travel, travelled};
use crate::status::{Error, Failure, Status};

/// Bytes of a ticket.
pub const TICKET_LENGTH_BYTES: usize = 64;
/// Of these so many are used.
pub const TICKET_USED_BYTES: usize = 52;
const _: () = assert!(TICKET_USED_BYTES == TICKET_BYTES && TICKET_LENGTH_BYTES >= TICKET_BYTES);

/// A ticket: the place in the receiver's memory, and the key that guards it. Who has it can send there, until the receiver takes it
/// back. May be copied and sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_TICKET_USED_BYTES alone; the others are 0.
    pub bytes: [u8; TICKET_LENGTH_BYTES],
}

impl Ticket {
    pub(crate) fn of(ticket: &hamlyn::Ticket) -> Self {
        let bytes = to_travel(&ticket.to_bytes());
        Self { bytes }
    }
}

/// A ticket of the caller.
pub(crate) fn read(ticket: *const Ticket) -> Result<hamlyn::Ticket, Failure> {
    let bytes = travelled::<TICKET_BYTES, TICKET_LENGTH_BYTES>("the ticket", ticket.cast())?;
    Ok(hamlyn::Ticket::from_bytes(&bytes)?)
}

pub(crate) fn put(place: Room<Ticket>, ticket: &hamlyn::Ticket) {
    place.put(Ticket::of(ticket));
}

/// A ticket for a part of the place: `length_bytes` from `offset` on. For delegates that are to write there only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_narrow_ticket(
    ticket: *const Ticket,
    offset: u64,
    length_bytes: u64,
    narrowed: *mut Ticket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the ticket", narrowed)?;
        let narrowed = read(ticket)?.narrow(offset, length_bytes);
        put(
            place,
            &narrowed.map_err(|outside| Failure::of(Status::Invalid, &outside))?,
        );
        Ok(())
    })
}
