//! Managers without end points, on their way to another thread.

#![expect(
    clippy::result_large_err,
    reason = "a manager that stays where it is moves twice, once in the life of a program"
)]

use hamlyn::Detached;

use crate::boundary::{call, room};
use crate::handle::{self, kind};
use crate::holding::Holding;
use crate::manager::{Manager, ManagerHandle, Of, OneThread};
use crate::status::{Error, Failure, Status};

/// A manager that no thread has.
#[derive(Debug)]
pub struct DetachedHandle {
    _of_the_library: [u8; 0],
}

kind!(DetachedHandle, Detached<OneThread>, 29, "detached manager");

/// Takes a manager from its thread, which closes its handle; hamlyn_attach gives it to another. It must have no end points and no objects of
/// the lower layer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_detach(
    manager: *mut ManagerHandle,
    detached: *mut *mut DetachedHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the manager", detached)?;
        let detached = handle::use_up(manager, |Manager(manager)| {
            let Of::Alone(holding) = manager else {
                return Err((
                    Manager(manager),
                    Failure::new(
                        Status::Invalid,
                        "a shared manager belongs to no thread: give another a handle with hamlyn_share_manager",
                    ),
                ));
            };
            let back = |holding| Manager(Of::Alone(holding));
            let manager = holding
                .into_end()
                .map_err(|holding| (back(holding), crate::datagram::IS_HELD))?;
            manager.detach().map_err(|manager| {
                let failure = Failure::new(
                    Status::Held,
                    "end points or other objects of this manager are open: close them first",
                );
                (back(Holding::new(manager)), failure)
            })
        })?;
        place.put(handle::make_for_any_thread(detached));
        Ok(())
    })
}

/// Gives a detached manager to the thread that calls this, which closes its handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_attach(
    detached: *mut DetachedHandle,
    manager: *mut *mut ManagerHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the manager", manager)?;
        let attached = handle::use_up(detached, |detached| Ok(detached.attach()))?;
        let manager = Manager(Of::Alone(Holding::new(attached)));
        place.put(handle::make(manager, false));
        Ok(())
    })
}

/// Closes a detached manager. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_detached(
    detached: *mut DetachedHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(detached).map(drop))
}
