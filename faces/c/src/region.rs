//! Regions: memory of a slot that others map. Messages of 512 bytes and more are then stored by their sender, and one-sided operations are
//! loads and stores.
//!
//! While a region lasts, its holders may access it at any time, also bytes that were announced already.

use hamlyn::engine::memory::LinkId;
use hamlyn::region::{Access, REGION_TICKET_BYTES};
use hamlyn::ticket::TicketError;
use hamlyn::{AttachError, Attached, Holders, Region, RegionTicket as EngineTicket, ShareError};

use crate::boundary::{call, room, to_travel, travelled, wait_of};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_beside, make_lower, on, with_interface};
use crate::manager::{ManagerHandle, each};
use crate::slot::SlotHandle;
use crate::status::{Error, Failure, Status};

/// Bytes of the ticket of a region.
pub const REGION_TICKET_LENGTH_BYTES: usize = 64;
/// Number of its bytes that are significant.
pub const REGION_TICKET_USED_BYTES: usize = 64;
const _: () = assert!(
    REGION_TICKET_USED_BYTES == REGION_TICKET_BYTES
        && REGION_TICKET_LENGTH_BYTES >= REGION_TICKET_USED_BYTES
);

/// Holders read the region. The slot grants HAMLYN_RIGHT_READ alone.
pub const REGION_READ_ONLY: u32 = 0;
/// Holders read and write the region. The slot grants HAMLYN_RIGHT_WRITE.
pub const REGION_WRITABLE: u32 = 1;
/// In place of a link: every peer of this host that is linked.
pub const ALL_LINKED: u64 = u64::MAX;

/// The right to attach a region, for the peers with which it is shared. May be copied and sent as bytes.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionTicket {
    /// Meaningful to the library only. Programs in Rust and Python take the first HAMLYN_REGION_TICKET_USED_BYTES alone; the others are 0.
    pub bytes: [u8; REGION_TICKET_LENGTH_BYTES],
}

/// A region, in the hands of the slot's owner.
#[derive(Debug)]
pub struct RegionHandle {
    _of_the_library: [u8; 0],
}

kind!(RegionHandle, Lower<Region>, 23, "region");

/// A region of a peer that this manager has attached.
#[derive(Debug)]
pub struct AttachedHandle {
    _of_the_library: [u8; 0],
}

kind!(AttachedHandle, Lower<Attached>, 24, "attached region");

impl From<ShareError> for Failure {
    fn from(error: ShareError) -> Self {
        match error {
            ShareError::Host(host) => host.into(),
            ShareError::Slot(slot) => slot.into(),
            ShareError::NoLink(_) => Self::of(Status::PeerLost, &error),
            ShareError::TooMany => Self::of(Status::Limit, &error),
            other => Self::of(Status::Invalid, &other),
        }
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Fetch(reach) => hamlyn::ConnectError::from(reach).into(),
            AttachError::NotLinked => Self::of(Status::NotFound, &error),
            AttachError::TooMany => Self::of(Status::Limit, &error),
            other => Self::of(Status::Invalid, &other),
        }
    }
}

impl From<TicketError> for Failure {
    fn from(error: TicketError) -> Self {
        Self::of(Status::Invalid, &error)
    }
}

/// The peer of that link, or all.
pub(crate) fn holders_of(link: u64) -> Holders {
    match link {
        ALL_LINKED => Holders::Linked,
        link => Holders::One(LinkId::from_bits(link)),
    }
}

/// Lets the peer of a link, or with HAMLYN_ALL_LINKED every peer of this host that is linked, attach whole pages of the slot, over an area of
/// HAMLYN_AREA_SHARED or HAMLYN_AREA_SPARSE; `access` is HAMLYN_REGION_READ_ONLY or HAMLYN_REGION_WRITABLE. `ticket` is given the ticket with
/// which they attach it; one peer does so once. Allocates; copies the pages if they are not all of the area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_share_region(
    slot: *mut SlotHandle,
    offset: u64,
    length_bytes: u64,
    access: u32,
    link: u64,
    region: *mut *mut RegionHandle,
    ticket: *mut RegionTicket,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the region", region)?;
        let ticket_place = room("the place for the ticket", ticket)?;
        let end = offset.checked_add(length_bytes).ok_or(Failure::new(
            Status::Invalid,
            "the pages end beyond all memory",
        ))?;
        let access = match access {
            REGION_READ_ONLY => Access::ReadOnly,
            REGION_WRITABLE => Access::Writable,
            _ => {
                return Err(Failure::new(
                    Status::Invalid,
                    "the access is neither HAMLYN_REGION_READ_ONLY nor HAMLYN_REGION_WRITABLE",
                ));
            }
        };
        let mut bytes = [0; REGION_TICKET_LENGTH_BYTES];
        let result: Result<(), Failure> = make_beside!(slot, place, (interface, slot) => {
            let region = interface.share(slot, offset..end, access, holders_of(link))?;
            bytes = to_travel(&region.ticket().to_bytes());
            region
        });
        result?;
        ticket_place.put(RegionTicket { bytes });
        Ok(())
    })
}

/// Ends a region: when this has returned, nothing that its holders do changes the area any more. Copies the pages that are there. If there is no
/// memory for that, holders may still write: free some, and call this again. The handle is to be closed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_revoke_region(
    region: *mut RegionHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(region, |of| {
            Ok(on!(of, (interface, region) => interface.revoke(region))?)
        })
    })
}

/// Closes the handle of a region, which lasts until it is revoked or its slot is closed. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_region(
    region: *mut RegionHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(region).map(drop))
}

/// Attaches a region of a peer. There must be a link to the peer (hamlyn_open_target makes one). From then on messages of 512 bytes and more to
/// that part of the slot are stored in place, and initiators on it operate in memory if the slot grants HAMLYN_RIGHT_READ alone or everything.
/// Blocks for `wait_ns` at most. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_attach_region(
    manager: *mut ManagerHandle,
    ticket: *const RegionTicket,
    wait_ns: i64,
    attached: *mut *mut AttachedHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the attached region", attached)?;
        let bytes = travelled::<REGION_TICKET_USED_BYTES, REGION_TICKET_LENGTH_BYTES>(
            "the ticket",
            ticket.cast(),
        )?;
        let ticket = EngineTicket::from_bytes(&bytes)?;
        make_lower!(manager, place, interface => interface.attach(&ticket, wait_of(wait_ns))?)
    })
}

/// HAMLYN_OK if an attached region still lasts and there is a link to its owner, otherwise HAMLYN_PEER_LOST. It may end right after the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_check_attached(
    attached: *mut AttachedHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(attached, |of| match each!(of, of => of.object.lasts()) {
            true => Ok(()),
            false => Err(Failure::new(
                Status::PeerLost,
                "the region has ended: its owner has revoked it, or is gone",
            )),
        })
    })
}

/// Detaches a region: messages and operations go as packets again. Windows on it stay mapped until they are closed. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_attached(
    attached: *mut AttachedHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        if let Some(of) = handle::close(attached)? {
            each!(of, of => of.manager.session().detach(&of.object));
        }
        Ok(())
    })
}

/// How many regions are shared and not taken back, and how many of others are attached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_regions(
    manager: *mut ManagerHandle,
    shared: *mut usize,
    attached: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let shared = room("the place for the number shared", shared)?;
        let attached = room("the place for the number attached", attached)?;
        with_interface!(manager, interface => {
            shared.put(interface.regions_shared());
            attached.put(interface.regions_attached());
            Ok(())
        })
    })
}
