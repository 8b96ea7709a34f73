//! The start and the end of the library, its limits and settings.

use std::ffi::{c_char, c_int};

use hamlyn::ManagerOptions;
use hamlyn::host::process::Options;

use crate::boundary::{call, call_outside, protect, put, text, wait_of};
use crate::dispatch;
use crate::library::{LONG_BYTES_MAX, MEDIUM_BYTES_MAX, close, current, forget_of_parent, open};
use crate::policy::{self, Policy};
use crate::state::Dialect;
use crate::status::{Code, Failure};

/// Starts the library, or counts one start more.
fn start(dialect: c_int, name: Option<&str>) -> Result<(), Failure> {
    forget_of_parent();
    let dialect = Dialect::of(dialect)?;
    let library = match current() {
        Ok(library) if name.is_some() => {
            drop(library);
            return Err(Failure::new(
                Code::InUse,
                "the library is started already: AMX_InitNamed comes before AM_Init",
            ));
        }
        Ok(library) if library.dialect != dialect => {
            return Err(Failure::bad(
                "the program started the library by am.h and by am1996.h: all of it uses one of them",
            ));
        }
        Ok(library) => library,
        Err(failure) if failure.code == Code::NotInit => {
            let host = name.map_or_else(Options::default, Options::named);
            open(dialect, host, ManagerOptions::default())?
        }
        Err(failure) => return Err(failure),
    };
    library.started.set(library.started.get().saturating_add(1));
    Ok(())
}

/// `AM_Init`, by a header with these numbers.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_init(dialect: c_int) -> c_int {
    protect(|| start(dialect, None))
}

/// `AMX_InitNamed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_init_named(dialect: c_int, name: *const c_char) -> c_int {
    protect(|| start(dialect, Some(text(name)?)))
}

/// `AM_Terminate`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_terminate() -> c_int {
    forget_of_parent();
    call_outside(|library| {
        let left = library.started.get().saturating_sub(1);
        library.started.set(left);
        if left == 0 {
            close(library);
        }
        Ok(())
    })
}

/// `AMX_SetDeadline`: milliseconds for which a request may wait; below 0 for ever.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_deadline(milliseconds: i64) -> c_int {
    call(|library| {
        library.deadline.set(wait_of(milliseconds));
        Ok(())
    })
}

/// `AMX_SetReturnPolicy`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_return_policy(policy: c_int) -> c_int {
    call(|_| {
        policy::set(Policy::of(policy)?);
        Ok(())
    })
}

/// `AMX_statistics_t`.
#[repr(C)]
#[derive(Debug)]
pub struct CStatistics {
    requests_sent: u64,
    requests_taken: u64,
    replies_sent: u64,
    replies_taken: u64,
    empty_replies: u64,
    sent_again: u64,
    returned: u64,
    replies_rejected: u64,
    violations: u64,
}

/// `AMX_GetStatistics`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_statistics(statistics: *mut CStatistics) -> c_int {
    call_outside(|library| {
        let counts = library.node.statistics()?;
        put(
            statistics,
            CStatistics {
                requests_sent: counts.requests_sent,
                requests_taken: counts.requests_taken,
                replies_sent: counts.replies_sent,
                replies_taken: counts.replies_taken,
                empty_replies: counts.empty_replies,
                sent_again: counts.sent_again,
                returned: counts.returned + library.own_returned.get(),
                replies_rejected: counts.replies_rejected,
                violations: counts.violations,
            },
        )
    })
}

/// `AM_MaxMedium`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_max_medium() -> c_int {
    MEDIUM_BYTES_MAX as c_int
}

/// `AM_MaxLong`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_max_long() -> c_int {
    LONG_BYTES_MAX as c_int
}

/// True while a handler runs in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_in_handler() -> c_int {
    dispatch::is_running().into()
}
