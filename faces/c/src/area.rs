//! Areas: memory of this program into which others send, or from which it sends (`Hamlyn 2.2, 2.3`).
//!
//! Peers write areas at any time, so a program copies in and out, and loads and stores words; it has no pointer to an area. What lies
//! outside of an area is refused.

use std::ffi::c_void;

use hamlyn::region::{AreaError, SharedOptions};
use hamlyn::{Area, NewSlot};

use crate::boundary::{bytes, bytes_mut, call, room, room_if_asked};
use crate::handle::{self, kind};
use crate::handover::HANDED_OVER;
use crate::lower::with_interface;
use crate::manager::{ManagerHandle, manager_is_shared};
use crate::one_sided::AtomicChange;
use crate::status::{Error, Failure, Status};

/// Memory that only this program maps: for receiving and sending. The default.
pub const AREA_PRIVATE: u32 = 0;
/// Whole pages that may be shared with peers (hamlyn_share_region), present in full.
pub const AREA_SHARED: u32 = 1;
/// Whole pages that may be shared with peers. They appear when they are touched.
pub const AREA_SPARSE: u32 = 2;

/// Memory for messages. Other objects that use it keep it when its handle is closed.
#[derive(Debug)]
pub struct AreaHandle {
    _of_the_library: [u8; 0],
}

kind!(AreaHandle, Area, 16, "area");

impl From<AreaError> for Failure {
    fn from(error: AreaError) -> Self {
        let status = match &error {
            AreaError::Length(_) | AreaError::Address(_) => Status::Invalid,
            AreaError::Occupied { .. } => Status::Taken,
            _ => Status::System,
        };
        Self::of(status, &error)
    }
}

/// Refuses what would write an area that a slot has to itself.
fn check_writes(area: &Area) -> Result<(), Failure> {
    match area.may_write() {
        true => Ok(()),
        false => Err(HANDED_OVER),
    }
}

fn outside(error: impl std::fmt::Display) -> Failure {
    Failure::of(Status::Invalid, &error)
}

/// Allocates an area, zeroed: HAMLYN_AREA_PRIVATE, HAMLYN_AREA_SHARED or HAMLYN_AREA_SPARSE; the last two are rounded up to whole
/// pages. HAMLYN_SYSTEM if there is no memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_allocate_area(
    manager: *mut ManagerHandle,
    length_bytes: u64,
    area_kind: u32,
    area: *mut *mut AreaHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the area", area)?;
        let is_shared = manager_is_shared(manager)?;
        let made = with_interface!(manager, interface => match area_kind {
            AREA_PRIVATE => Ok(interface.allocate(length_bytes)?),
            AREA_SHARED => Ok(Area::shared(SharedOptions::reserved(length_bytes))?),
            AREA_SPARSE => Ok(Area::shared(SharedOptions::sparse(length_bytes))?),
            _ => Err(Failure::new(
                Status::Invalid,
                "the kind of area is none of HAMLYN_AREA_PRIVATE, HAMLYN_AREA_SHARED and HAMLYN_AREA_SPARSE",
            )),
        })?;
        place.put(handle::make(made, is_shared));
        Ok(())
    })
}

/// Allocates an area of HAMLYN_AREA_SPARSE at a chosen address, a multiple of 4,096: for programs whose peers map it at the same one.
/// HAMLYN_TAKEN if something is mapped in that range already, which stays as it is. HAMLYN_SYSTEM if there is no memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_allocate_area_at(
    manager: *mut ManagerHandle,
    length_bytes: u64,
    address: *mut c_void,
    area: *mut *mut AreaHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the area", area)?;
        if address.is_null() {
            return Err(Failure::new(
                Status::Invalid,
                "the address is null: hamlyn_allocate_area leaves it to the system",
            ));
        }
        let is_shared = manager_is_shared(manager)?;
        let address = Some(address.addr());
        let made = Area::shared(SharedOptions {
            address,
            ..SharedOptions::sparse(length_bytes)
        })?;
        place.put(handle::make(made, is_shared));
        Ok(())
    })
}

/// How many bytes an area has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_area_bytes(
    area: *mut AreaHandle,
    length_bytes: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        handle::with(area, |area| {
            place.put(NewSlot::new(area).range.end);
            Ok(())
        })
    })
}

/// Copies out of an area. Bytes that peers write meanwhile come out old or new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_copy_from_area(
    area: *mut AreaHandle,
    offset: u64,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(area, |area| area.read_at(offset, into).map_err(outside))
    })
}

/// Copies into an area. HAMLYN_HELD if it changes hands and was handed over to a slot (hamlyn_allocate_handover); so for all that write it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_copy_to_area(
    area: *mut AreaHandle,
    offset: u64,
    data: *const c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(area, |area| {
            check_writes(area)?;
            area.write_at(offset, data).map_err(outside)
        })
    })
}

/// Fills a part of an area with one value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fill_area(
    area: *mut AreaHandle,
    offset: u64,
    length_bytes: u64,
    value: u8,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(area, |area| {
            check_writes(area)?;
            area.fill(offset, length_bytes, value).map_err(outside)
        })
    })
}

/// The word at `offset`, whole if that is a multiple of 8. It is loaded before whatever the program loads afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_load_from_area(
    area: *mut AreaHandle,
    offset: u64,
    value: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the word", value)?;
        handle::with(area, |area| {
            place.put(area.load_u64(offset).map_err(outside)?);
            Ok(())
        })
    })
}

/// Stores a word at `offset`, whole if that is a multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_store_to_area(
    area: *mut AreaHandle,
    offset: u64,
    value: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(area, |area| {
            check_writes(area)?;
            area.store_u64(offset, value).map_err(outside)
        })
    })
}

/// Changes the word at `offset`, a multiple of its width, as one-sided operations of peers do, and says what it was. Null for
/// `before`: nobody asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_change_area(
    area: *mut AreaHandle,
    offset: u64,
    change: *const AtomicChange,
    before: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let atomic = AtomicChange::read(change)?;
        let place = room_if_asked("the place for the word", before)?;
        handle::with(area, |area| {
            check_writes(area)?;
            let was = area.change_at(offset, &atomic).map_err(outside)?;
            if let Some(place) = place {
                place.put(was);
            }
            Ok(())
        })
    })
}

/// Closes an area's handle. Its memory goes with the last slot, terminus or window that uses it. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_area(area: *mut AreaHandle, error: *mut Error) -> Status {
    call(error, || handle::close(area).map(drop))
}
