//! Arguments of C: checked as far as they can be, before they are used.
//!
//! Each function here trusts the header of its face for the rest: a pointer that is not null can be
//! read, or written, for as many bytes as the call says, during the call.
#![expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the header of each face says once what all functions demand of pointers"
)]

use std::ffi::{CStr, c_char, c_void};

use hamlyn::Wait;

use crate::status::BadArgument;

/// Writes a result where the caller wants it.
#[inline]
pub fn put<T>(place: *mut T, value: T) -> Result<(), BadArgument> {
    match place.is_null() || !place.is_aligned() {
        true => Err(BadArgument::new("the place for the result is null")),
        false => {
            // SAFETY: it is not null, and writable and aligned for its type, as the header
            // demands.
            unsafe { place.write(value) };
            Ok(())
        }
    }
}

/// Options of the caller; those given here if there are none.
pub fn options_or<T>(options: *const T, default: &T) -> &T {
    match options.is_null() || !options.is_aligned() {
        true => default,
        // SAFETY: options that are not null can be read during the call, as the header demands.
        false => unsafe { &*options },
    }
}

/// A wait of so many milliseconds; below 0 for ever.
pub fn wait_of(milliseconds: i64) -> Wait {
    u64::try_from(milliseconds).map_or(Wait::Forever, Wait::millis)
}

/// Bytes of the caller, to be read during the call.
#[inline]
pub fn bytes<'a>(data: *const c_void, length_bytes: usize) -> Result<&'a [u8], BadArgument> {
    if length_bytes == 0 {
        return Ok(&[]);
    }
    if data.is_null() || length_bytes > isize::MAX as usize {
        return Err(BadArgument::new(
            "the data are null, or longer than memory can be",
        ));
    }
    // SAFETY: so many bytes can be read at that place during the call, and nobody writes them
    // meanwhile, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length_bytes) })
}

/// Bytes of the caller, to be written during the call.
pub fn bytes_mut<'a>(into: *mut c_void, length_bytes: usize) -> Result<&'a mut [u8], BadArgument> {
    if length_bytes == 0 {
        return Ok(&mut []);
    }
    if into.is_null() || length_bytes > isize::MAX as usize {
        return Err(BadArgument::new(
            "the room is null, or longer than memory can be",
        ));
    }
    // SAFETY: so many bytes can be written at that place, by nobody else meanwhile, and hold
    // values, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts_mut(into.cast(), length_bytes) })
}

/// The words of a message, of which it has `most` at most. `otherwise` is the text of the error.
#[inline]
pub fn words<'a>(
    words: *const u32,
    count: usize,
    most: usize,
    otherwise: &'static str,
) -> Result<&'a [u32], BadArgument> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > most || words.is_null() || !words.is_aligned() {
        return Err(BadArgument::new(otherwise));
    }
    // SAFETY: so many can be read during the call, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts(words, count) })
}

/// A text of the caller.
pub fn text<'a>(text: *const c_char) -> Result<&'a str, BadArgument> {
    if text.is_null() {
        return Err(BadArgument::new("the text is null"));
    }
    // SAFETY: a text that is not null ends with a zero, and stays as it is during the call, as the
    // header demands.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| BadArgument::new("the text is not valid UTF-8"))
}
