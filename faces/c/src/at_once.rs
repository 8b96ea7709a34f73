//! The short way of the calls that programs make for each message: with a handle of this thread, and for what is there or has room without
//! waiting.
//!
//! It refuses nothing itself. A handle that is another's, an argument that is null, and a call that would wait leave no trace, and the whole
//! call is made, which waits or says what is wrong. Handles of shared managers always take that way.

use hamlyn::SendError;

use crate::boundary::tell;
use crate::handle::{self, Kind, OfThisThread};
use crate::holding::Holding;
use crate::manager::Of;
use crate::status::{Error, Failure, POLL, Status};

/// What became of the attempt. `None`: nothing was done. `TimedOut`: nothing is there, or there is no room.
pub(crate) type AtOnce = Option<Status>;

/// What the whole call takes, too: all of it lies in memory during the attempt, which has more use for registers.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<A> {
    /// What it takes besides.
    pub(crate) others: A,
    pub(crate) wait_ns: i64,
    pub(crate) error: *mut Error,
}

/// Where the caller wants to be told of an error, in memory.
pub(crate) type ErrorPlace<'a> = &'a *mut Error;

/// Tries it; makes the whole call if nothing was done, or if the caller waits longer.
#[inline(always)]
pub(crate) fn at_once<K: Kind, A: Copy>(
    handle: *const K,
    arguments: Arguments<A>,
    act: impl FnOnce(OfThisThread<'_, K::Value>, ErrorPlace<'_>) -> AtOnce,
    nothing: Failure,
    whole_call: impl FnOnce(A, i64, *mut Error) -> Status,
) -> Status {
    in_memory(&arguments);
    let error = &arguments.error;
    match handle::with_at_once(handle, move |value| act(value, error)) {
        Some(Status::TimedOut) if arguments.wait_ns == POLL => tell(*error, nothing),
        Some(Status::TimedOut) | None => whole_call(arguments.others, arguments.wait_ns, *error),
        Some(status) => status,
    }
}

/// From here on it is read from memory where it is used.
#[inline(always)]
fn in_memory<T>(value: &T) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: it does nothing; the compiler takes it for code that may read and write memory, and no more.
    unsafe {
        std::arch::asm!("/* {} */", in(reg) value, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(value);
}

/// What became of a send that did not wait.
#[inline(always)]
pub(crate) fn sent<T>(error: ErrorPlace<'_>, result: Result<T, SendError>) -> AtOnce {
    match result {
        Ok(_) => Some(Status::Ok),
        Err(SendError::WouldBlock { .. }) => Some(Status::TimedOut),
        Err(why) => failed(error, why),
    }
}

/// What became of a receive that did not wait.
#[inline(always)]
pub(crate) fn received<M, E: Into<Failure>>(
    error: ErrorPlace<'_>,
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
    handle::with_at_once(handle, move |end| {
        end.alone(of).release().ok().map(|_| Status::Ok)
    })
}

/// It failed for good.
#[cold]
#[inline(never)]
fn failed<E: Into<Failure>>(error: ErrorPlace<'_>, why: E) -> AtOnce {
    Some(tell(*error, why.into()))
}
