//! Event loops: a program waits for the descriptor of a manager among other things.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::boundary::{call, room, wait_of};
use crate::handle;
use crate::manager::{Manager, ManagerHandle, each};
use crate::status::{Error, Status};

/// The descriptor of a manager, for poll, epoll and their like. It stays the same, and is the library's to close. It says something only
/// between hamlyn_prepare_sleep and hamlyn_end_sleep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_descriptor(
    manager: *mut ManagerHandle,
    descriptor: *mut c_int,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the descriptor", descriptor)?;
        handle::with(manager, |Manager(manager)| {
            place.put(each!(manager, manager => manager.end()?.as_fd().as_raw_fd()));
            Ok(())
        })
    })
}

/// Prepares to wait elsewhere, with the descriptor of the manager among other things. Polls for a few microseconds, and for `wait_ns` at
/// most. `timeout_ns` is for how long to wait at most; negative: there is no limit. Then call hamlyn_end_sleep as soon as the program is
/// awake, and ask each end point until it has nothing. It is 0 if something has happened already. A clock of coarser units must round up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_prepare_sleep(
    manager: *mut ManagerHandle,
    wait_ns: i64,
    timeout_ns: *mut i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the time", timeout_ns)?;
        handle::with(manager, |Manager(manager)| {
            let timeout = each!(manager, manager => {
                let sleep = manager.hold(|manager| Ok(manager.prepare_sleep(wait_of(wait_ns))?))?;
                sleep.map(|sleep| sleep.timeout())
            });
            let nothing_to_wait_for = Some(Duration::ZERO);
            place.put(
                timeout
                    .unwrap_or(nothing_to_wait_for)
                    .map_or(-1, nanoseconds),
            );
            Ok(())
        })
    })
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Ends what hamlyn_prepare_sleep began, if it began a sleep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_end_sleep(
    manager: *mut ManagerHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(manager, |Manager(manager)| {
            each!(manager, manager => manager.drop_held());
            Ok(())
        })
    })
}
