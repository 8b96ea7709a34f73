//! Send termini (`Hamlyn 2.3`): work queues by which a program sends, and the areas from which it gathers.

use std::ffi::c_void;

use hamlyn::engine::terminus::{
    SendTag, TerminusError, TerminusId, TerminusOptions as EngineOptions,
};

use crate::area::AreaHandle;
use crate::boundary::{bytes_mut, call, room};
use crate::entry::METADATA_BYTES;
use crate::handle::{self, kind};
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::status::{Error, Failure, Status, of_terminus};
use crate::target::Piece;

/// A send terminus.
#[derive(Debug)]
pub struct TerminusHandle {
    _of_the_library: [u8; 0],
}

kind!(TerminusHandle, Lower<TerminusId>, 19, "terminus");

impl From<TerminusError> for Failure {
    fn from(error: TerminusError) -> Self {
        Self::of(of_terminus(&error), &error)
    }
}

/// Opens a terminus. `queue_entries` messages may wait for each destination, 1 to 4,095; 0: 63. `send_areas` may be bound at a time, up to
/// 1,024; 0: 8. `priority`: so many packets are sent per turn relative to other termini that send to the same destination, 1 to 255; 0: 1.
/// Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_terminus(
    manager: *mut ManagerHandle,
    queue_entries: u32,
    send_areas: u32,
    priority: u8,
    terminus: *mut *mut TerminusHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the terminus", terminus)?;
        let mut options = EngineOptions::default();
        if queue_entries != 0 {
            options.queue_entries = queue_entries as usize;
        }
        if send_areas != 0 {
            options.send_areas = send_areas as usize;
        }
        if priority != 0 {
            options.priority = priority;
        }
        make_lower!(manager, place, interface => interface.open_terminus(options)?)
    })
}

/// Makes a part of an area a send-buffer area of a terminus, as many as it was opened with: `tag` is told its name for hamlyn_send_gather.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_area(
    terminus: *mut TerminusHandle,
    area: *mut AreaHandle,
    offset: u64,
    length_bytes: u64,
    tag: *mut u16,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the tag", tag)?;
        let area = handle::with(area, |area| Ok(area.clone()))?;
        let end = offset.checked_add(length_bytes);
        let end = end.ok_or(Failure::new(
            Status::Invalid,
            "the part of the area ends beyond all memory",
        ))?;
        handle::with(terminus, |of| {
            let tag = on!(of, (interface, terminus) => {
                interface.bind_area(*terminus, &area, offset..end)?
            });
            place.put(tag.0);
            Ok(())
        })
    })
}

/// Copies up to HAMLYN_METADATA_BYTES of metadata for a message out of a send-buffer area, `piece` into `room_bytes` bytes of the program.
/// HAMLYN_TOO_LONG if there is less room, or the piece is longer than metadata can be. Does not block, and does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_gather_metadata(
    terminus: *mut TerminusHandle,
    piece: *const Piece,
    into: *mut c_void,
    room_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let piece = Piece::read(piece)?;
        let into = bytes_mut(into, room_bytes)?;
        if piece.length_bytes > room_bytes.min(METADATA_BYTES) as u64 {
            return Err(Failure::new(
                Status::TooLong,
                "the piece is longer than the room for it, or than metadata can be: HAMLYN_METADATA_BYTES",
            ));
        }
        let mut metadata = [0; METADATA_BYTES];
        let length_bytes = handle::with(terminus, |of| {
            Ok(on!(of, (interface, terminus) => {
                interface.gather_metadata(*terminus, &piece, &mut metadata)
            })?)
        })?;
        into[..length_bytes].copy_from_slice(&metadata[..length_bytes]);
        Ok(())
    })
}

/// Undoes hamlyn_bind_area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_unbind_area(
    terminus: *mut TerminusHandle,
    tag: u16,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(terminus, |of| {
            let tag = SendTag(tag);
            Ok(on!(of, (interface, terminus) => interface.unbind_area(*terminus, tag))?)
        })
    })
}

/// Closes a terminus; messages that wait are dropped, and its targets are of no use any more. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_terminus(
    terminus: *mut TerminusHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        if let Some(of) = handle::close(terminus)? {
            each!(of, of => of.manager.session().close_terminus(of.object))?;
        }
        Ok(())
    })
}
