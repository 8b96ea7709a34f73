//! The short way of the calls that programs make for each message: with a handle of this thread, and for what is there or has room without
//! waiting.
//!
//! It refuses nothing itself. A handle that is another's, an argument that is null, and a call that would wait leave no trace, and the whole
//! call is made, which waits or says what is wrong. Handles of shared managers always take that way.

use hamlyn::SendError;

use crate::boundary::tell;
use crate::handle::{self, Kind};
use crate::holding::Holding;
use crate::manager::Of;
use crate::status::{Error, Failure, POLL, Status};

/// What became of the attempt. `None`: nothing was done. `TimedOut`: nothing is there, or there is no room.
pub(crate) type AtOnce = Option<Status>;

/// Tries it; makes the whole call if nothing was done, or if the caller waits longer.
#[inline(always)]
pub(crate) fn at_once<K: Kind>(
    (handle, wait_ns, error): (*const K, i64, *mut Error),
    act: impl FnOnce(&mut K::Value) -> AtOnce,
    nothing: Failure,
    whole_call: impl FnOnce() -> Status,
) -> Status {
    match handle::with_at_once(handle, act) {
        Some(Status::TimedOut) if wait_ns == POLL => tell(error, nothing),
        Some(Status::TimedOut) | None => whole_call(),
        Some(status) => status,
    }
}

/// What became of a send that did not wait.
#[inline(always)]
pub(crate) fn sent<T>(error: *mut Error, result: Result<T, SendError>) -> AtOnce {
    match result {
        Ok(_) => Some(Status::Ok),
        Err(SendError::WouldBlock { .. }) => Some(Status::TimedOut),
        Err(why) => failed(error, why),
    }
}

/// What became of a receive that did not wait.
#[inline(always)]
pub(crate) fn received<M, E: Into<Failure>>(
    error: *mut Error,
    result: Result<Option<M>, E>,
    put: impl FnOnce(M),
) -> AtOnce {
    match result {
        Ok(Some(message)) => {
            put(message);
            Some(Status::Ok)
        }
        Ok(None) => Some(Status::TimedOut),
        Err(why) => failed(error, why),
    }
}

/// Gives a message back that is held.
#[inline(always)]
pub(crate) fn release_at_once<K: Kind, E: 'static, M: 'static, S: 'static>(
    handle: *const K,
    of: impl FnOnce(&mut K::Value) -> &mut Of<Holding<E, M>, S>,
) -> AtOnce {
    handle::with_at_once(handle, move |value| match of(value) {
        Of::Alone(end) => end.release().ok().map(|_| Status::Ok),
        Of::Shared(_) => None,
    })
}

/// It failed for good.
#[cold]
#[inline(never)]
pub(crate) fn failed<E: Into<Failure>>(error: *mut Error, why: E) -> AtOnce {
    Some(tell(error, why.into()))
}
