//! Send termini (`Hamlyn 2.3`): work queues by which a program sends, and the areas from which it gathers.

use hamlyn::engine::terminus::{
    SendTag, TerminusError, TerminusId, TerminusOptions as EngineOptions,
};

use crate::area::AreaHandle;
use crate::boundary::{call, room};
use crate::handle::{self, kind};
use crate::lower::{Lower, make_lower, on};
use crate::manager::{ManagerHandle, each};
use crate::status::{Error, Failure, Status, of_terminus};

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

/// Opens a terminus. `queue_entries` messages may wait for each destination, 1 to 4,095; 0: 63. `priority`: so many packets are sent per
/// turn relative to other termini that send to the same destination, 1 to 255; 0: 1. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_terminus(
    manager: *mut ManagerHandle,
    queue_entries: u32,
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
        if priority != 0 {
            options.priority = priority;
        }
        make_lower!(manager, place, interface => interface.open_terminus(options)?)
    })
}

/// Makes a part of an area a send-buffer area of a terminus, up to 8 of them: `tag` is told its name for hamlyn_send_gather.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_area(
    terminus: *mut TerminusHandle,
    area: *mut AreaHandle,
    offset: u64,
    length_bytes: u64,
    tag: *mut u8,
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

/// Undoes hamlyn_bind_area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_unbind_area(
    terminus: *mut TerminusHandle,
    tag: u8,
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
            each!(of, of => of.manager.interface().close_terminus(of.object))?;
        }
        Ok(())
    })
}
