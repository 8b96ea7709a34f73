//! The way in from C: it finds the library of this thread, catches panics, and turns an error into
//! its code.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use hamlyn::Wait;

use crate::dispatch;
use crate::library::{Library, current};
use crate::status::{Failure, tell};

const FAULT: Failure =
    Failure::resource("the library has a fault; please report it with what is on standard error");
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

/// Carries out a function that needs no library.
#[inline]
pub(crate) fn protect(act: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => tell(failure),
        Err(_) => tell(FAULT),
    }
}

/// Writes a result where the caller wants it.
#[inline]
pub(crate) fn put<T>(place: *mut T, value: T) -> Result<(), Failure> {
    match place.is_null() || !place.is_aligned() {
        true => Err(Failure::bad("the place for the result is null")),
        false => {
            // SAFETY: it is not null, and writable and aligned for its type, as the header
            // demands.
            unsafe { place.write(value) };
            Ok(())
        }
    }
}

/// A wait of so many milliseconds; below 0 for ever.
pub(crate) fn wait_of(milliseconds: i64) -> Wait {
    u64::try_from(milliseconds).map_or(Wait::Forever, Wait::millis)
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

/// Bytes of the caller, to be read during the call.
#[inline]
pub(crate) fn bytes<'a>(data: *const c_void, length_bytes: usize) -> Result<&'a [u8], Failure> {
    if length_bytes == 0 {
        return Ok(&[]);
    }
    if data.is_null() || length_bytes > isize::MAX as usize {
        return Err(Failure::bad(
            "the data are null, or longer than memory can be",
        ));
    }
    // SAFETY: so many bytes can be read at that place during the call, and nobody writes them
    // meanwhile, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length_bytes) })
}

/// Bytes of the caller, to be written during the call.
pub(crate) fn bytes_mut<'a>(
    into: *mut c_void,
    length_bytes: usize,
) -> Result<&'a mut [u8], Failure> {
    if length_bytes == 0 {
        return Ok(&mut []);
    }
    if into.is_null() || length_bytes > isize::MAX as usize {
        return Err(Failure::bad(
            "the room is null, or longer than memory can be",
        ));
    }
    // SAFETY: so many bytes can be written at that place, by nobody else meanwhile, and hold
    // values, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts_mut(into.cast(), length_bytes) })
}

/// The arguments of a message. More than a message has are an error of the layer.
#[inline]
pub(crate) fn arguments<'a>(arguments: *const u32, count: c_int) -> Result<&'a [u32], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    let is_few = (1..=hamlyn_am::ARGUMENTS_MAX as c_int).contains(&count);
    if !is_few || arguments.is_null() || !arguments.is_aligned() {
        return Err(Failure::bad(
            "a message has 0 to 16 arguments, and they are not null",
        ));
    }
    // SAFETY: so many can be read during the call, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts(arguments, count as usize) })
}

/// A text of the caller.
pub(crate) fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::bad("the text is null"));
    }
    // SAFETY: a text that is not null ends with a zero, and stays as it is during the call, as the
    // header demands.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::bad("the text is not valid UTF-8"))
}
