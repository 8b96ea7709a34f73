//! Grants (decision 6): a chosen peer stores longer messages into pages of a slot by itself, and sends only their headers.
//!
//! While a grant lasts its holder may write those pages at any time, also those that were announced already.

use hamlyn::engine::memory::LinkId;
use hamlyn::grant::{AcceptError, Grant, GrantError, GrantTicket as EngineTicket};

use crate::boundary::{call, room, to_travel, travelled, wait_of};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_beside, on, with_interface};
use crate::manager::ManagerHandle;
use crate::slot::SlotHandle;
use crate::status::{Error, Failure, Status};

/// Bytes of the ticket of a grant.
pub const GRANT_TICKET_LENGTH_BYTES: usize = 64;
/// Of these so many are used.
pub const GRANT_TICKET_USED_BYTES: usize = 52;
const _: () = assert!(
    GRANT_TICKET_USED_BYTES == hamlyn::grant::GRANT_TICKET_BYTES
        && GRANT_TICKET_LENGTH_BYTES >= GRANT_TICKET_USED_BYTES
);

/// The right to fetch granted pages, once, for the one peer that they were granted to. May be sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrantTicket {
    /// Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_GRANT_TICKET_USED_BYTES alone; the others are 0.
    pub bytes: [u8; GRANT_TICKET_LENGTH_BYTES],
}

impl GrantTicket {
    fn read(ticket: *const Self) -> Result<EngineTicket, Failure> {
        let bytes = travelled::<GRANT_TICKET_USED_BYTES, GRANT_TICKET_LENGTH_BYTES>(
            "the ticket",
            ticket.cast(),
        )?;
        Ok(EngineTicket::from_bytes(&bytes)?)
    }
}

/// A grant, in the hands of the slot's owner.
#[derive(Debug)]
pub struct GrantHandle {
    _of_the_library: [u8; 0],
}

kind!(GrantHandle, Lower<Grant>, 26, "grant");

impl From<GrantError> for Failure {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Host(host) => host.into(),
            GrantError::NoLink(_) => Self::of(Status::PeerLost, &error),
            GrantError::TooMany => Self::of(Status::Limit, &error),
            other => Self::of(Status::Invalid, &other),
        }
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Fetch(reach) => hamlyn::ConnectError::from(reach).into(),
            AcceptError::NotLinked => Self::of(Status::NotFound, &error),
            AcceptError::TooMany => Self::of(Status::Limit, &error),
            other => Self::of(Status::Invalid, &other),
        }
    }
}

/// Lets the peer of a link store into whole pages of the slot, over an area of HAMLYN_AREA_GRANTABLE, by itself. `ticket` is told what it takes
/// them up with. Copies the pages, and allocates as much.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grant_pages(
    slot: *mut SlotHandle,
    offset: u64,
    length_bytes: u64,
    link: u64,
    grant: *mut *mut GrantHandle,
    ticket: *mut GrantTicket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the grant", grant)?;
        let ticket_place = room("the place for the ticket", ticket)?;
        let end = offset.checked_add(length_bytes);
        let end = end.ok_or(Failure::new(
            Status::Invalid,
            "the pages end beyond all memory",
        ))?;
        let mut bytes = [0; GRANT_TICKET_LENGTH_BYTES];
        let result: Result<(), Failure> = make_beside!(slot, place, (interface, slot) => {
            let grant = interface.grant(slot, offset..end, LinkId::from_bits(link))?;
            bytes = to_travel(&grant.ticket().to_bytes());
            grant
        });
        result?;
        ticket_place.put(GrantTicket { bytes });
        Ok(())
    })
}

/// Ends a grant: when this has returned, nothing that its holder does changes the area any more. Copies the pages. If there is no memory for
/// that, the holder may still write: free some, and call this again. The handle is to be closed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_grant(grant: *mut GrantHandle, error: *mut Error) -> Status {
    call(error, || {
        handle::with(grant, |of| {
            Ok(on!(of, (interface, grant) => interface.revoke_grant(grant))?)
        })
    })
}

/// Closes the handle of a grant, which lasts until it is revoked or its slot is closed. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_grant(grant: *mut GrantHandle, error: *mut Error) -> Status {
    call(error, || handle::close(grant).map(drop))
}

/// Takes up a grant: from now on messages of 512 bytes and more to that part of the slot are stored in place. There must be a link to its owner
/// (hamlyn_open_target makes one). Blocks for `wait_ns` at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_accept_grant(
    manager: *mut ManagerHandle,
    ticket: *const GrantTicket,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let ticket = GrantTicket::read(ticket)?;
        with_interface!(manager, interface => {
            Ok(interface.accept_grant(&ticket, wait_of(wait_ns))?)
        })
    })
}

/// Lets go of a grant that was taken up: messages go as copies again. HAMLYN_NOT_FOUND if it was not there (any more).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_drop_grant(
    manager: *mut ManagerHandle,
    ticket: *const GrantTicket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let ticket = GrantTicket::read(ticket)?;
        with_interface!(manager, interface => match interface.drop_grant(&ticket) {
            true => Ok(()),
            false => Err(Failure::new(
                Status::NotFound,
                "no such grant is taken up: it was dropped before, or has ended",
            )),
        })
    })
}

/// How many grants were made and not taken back, and how many of others were taken up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_grants(
    manager: *mut ManagerHandle,
    made: *mut usize,
    accepted: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let made = room("the place for the number made", made)?;
        let accepted = room("the place for the number taken up", accepted)?;
        with_interface!(manager, interface => {
            made.put(interface.grants_made());
            accepted.put(interface.grants_accepted());
            Ok(())
        })
    })
}
