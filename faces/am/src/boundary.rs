//! The way in from C: it finds the library of this thread.

use std::ffi::c_int;
use std::rc::Rc;

pub(crate) use hamlyn_boundary::{bytes, bytes_mut, protect, text, wait_of};

use crate::dispatch;
use crate::library::{Library, current};
use crate::status::Failure;

const IN_HANDLER: Failure = Failure::resource(
    "a handler is running: it may reply, ask about its token, and read settings; \
     make this call when AM_Poll has returned",
);

/// Carries out a function that handlers may call.
#[inline]
pub(crate) fn call(act: impl FnOnce(&Rc<Library>) -> Result<(), Failure>) -> c_int {
    protect(|| act(&current()?))
}

/// Carries out a function that handlers may not call.
#[inline]
pub(crate) fn call_outside(act: impl FnOnce(&Rc<Library>) -> Result<(), Failure>) -> c_int {
    call(|library| match dispatch::is_running() {
        true => Err(IN_HANDLER),
        false => act(library),
    })
}

/// Writes a result where the caller wants it.
#[inline]
pub(crate) fn put<T>(place: *mut T, value: T) -> Result<(), Failure> {
    Ok(hamlyn_boundary::put(place, value)?)
}

/// A count that may be set: 1 to `most`. `otherwise` is the text of the error.
pub(crate) fn count_of(
    count: c_int,
    most: usize,
    otherwise: &'static str,
) -> Result<usize, Failure> {
    let count = usize::try_from(count).ok();
    let count = count.filter(|count| (1..=most).contains(count));
    count.ok_or(Failure::bad(otherwise))
}

/// The arguments of a message. More than a message has are an error of the layer.
#[inline]
pub(crate) fn arguments<'a>(arguments: *const u32, count: c_int) -> Result<&'a [u32], Failure> {
    const FEW: &str = "a message has 0 to 16 arguments, and they are not null";
    let count = usize::try_from(count).map_err(|_| Failure::bad(FEW))?;
    let most = hamlyn_am::ARGUMENTS_MAX;
    Ok(hamlyn_boundary::words(arguments, count, most, FEW)?)
}
