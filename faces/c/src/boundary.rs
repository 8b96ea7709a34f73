//! The boundary to C: a panic stops here, an error becomes a status and a text, and arguments are checked before they are used.

use std::ffi::{CStr, c_char, c_void};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hamlyn::Wait;
use hamlyn::engine::limits::DIRECT_BYTES_MAX;

use crate::status::{ERROR_TEXT_BYTES, Error, FOREVER, Failure, Status};

/// Carries out a function of the header.
#[inline(always)]
pub(crate) fn call(error: *mut Error, act: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => tell(error, failure),
        Err(_) => tell(
            error,
            Failure::new(
                Status::Fault,
                "the library has a fault; please report it with what is on standard error",
            ),
        ),
    }
}

/// Writes what the caller asked for.
#[cold]
#[inline(never)]
pub(crate) fn tell(error: *mut Error, failure: Failure) -> Status {
    if !error.is_null() {
        let text = cut(&failure.text, ERROR_TEXT_BYTES - 1);
        // SAFETY: an error that is not null is writable, as the header demands. It may not be set yet, so no reference is made to it.
        unsafe {
            (&raw mut (*error).status).write(failure.status);
            let to = (&raw mut (*error).text).cast::<u8>();
            to.copy_from_nonoverlapping(text.as_ptr(), text.len());
            to.add(text.len()).write(0);
        }
    }
    failure.status
}

/// As much of a text as so many bytes hold.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &[u8] {
    let mut length = text.len().min(bytes_max);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    &text.as_bytes()[..length]
}

/// Room of the caller for a text and a zero; null if nobody reads it.
pub(crate) struct TextRoom<'a>(&'a mut [u8]);

impl<'a> TextRoom<'a> {
    pub(crate) fn of(text: *mut c_char, text_bytes: usize) -> Result<Self, Failure> {
        match text.is_null() {
            true => Ok(Self(&mut [])),
            false => bytes_mut(text.cast(), text_bytes).map(Self),
        }
    }

    /// Writes what something says for people, as far as there is room.
    pub(crate) fn put(self, said: &impl std::fmt::Display) {
        let Some(length_max) = self.0.len().checked_sub(1) else {
            return;
        };
        let said = said.to_string();
        let said = cut(&said, length_max);
        self.0[..said.len()].copy_from_slice(said);
        self.0[said.len()] = 0;
    }
}

/// How long a call may wait, in nanoseconds. A time that is over, as the rest of a deadline may be, is no wait; only
/// [`FOREVER`] is for ever.
#[inline(always)]
pub(crate) fn wait_of(wait_ns: i64) -> Wait {
    match wait_ns {
        FOREVER => Wait::Forever,
        1.. => Wait::For(Duration::from_nanos(wait_ns as u64)),
        _ => Wait::Poll,
    }
}

/// A text of the caller.
pub(crate) fn text<'a>(what: &'static str, text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: a text that is not null ends with a zero, and stays as it is during the call, as the header demands.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::of(Status::Invalid, &format_args!("{what} is not valid UTF-8")))
}

/// The same, or nothing for null.
pub(crate) fn text_or_none<'a>(
    what: &'static str,
    pointer: *const c_char,
) -> Result<Option<&'a str>, Failure> {
    match pointer.is_null() {
        true => Ok(None),
        false => text(what, pointer).map(Some),
    }
}

/// Bytes of the caller, to be read during the call.
#[inline(always)]
pub(crate) fn bytes<'a>(data: *const c_void, length_bytes: usize) -> Result<&'a [u8], Failure> {
    if length_bytes == 0 {
        return Ok(&[]);
    }
    if data.is_null() || length_bytes > isize::MAX as usize {
        return Err(Failure::new(
            Status::Invalid,
            "the data are null, or longer than memory can be",
        ));
    }
    // SAFETY: so many bytes can be read at that place during the call, and nobody writes them meanwhile, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length_bytes) })
}

/// The same, if they can be read, and are so few that a send which does not wait takes them as one that waits does: longer ones it would
/// copy to where they wait, or refuse.
#[inline(always)]
pub(crate) fn bytes_at_once<'a>(data: *const c_void, length_bytes: usize) -> Option<&'a [u8]> {
    if length_bytes > DIRECT_BYTES_MAX {
        return None;
    }
    // Not one test of both, which would take more instructions.
    black_box(());
    if data.is_null() {
        return None;
    }
    // SAFETY: as in `bytes`.
    Some(unsafe { std::slice::from_raw_parts(data.cast(), length_bytes) })
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
        return Err(Failure::new(
            Status::Invalid,
            "the room is null, or longer than memory can be",
        ));
    }
    // SAFETY: so many bytes can be written at that place, by nobody else meanwhile, and hold values, as the header demands.
    Ok(unsafe { std::slice::from_raw_parts_mut(into.cast(), length_bytes) })
}

/// Lengths of the caller. Allocates.
pub(crate) fn lengths(lengths_bytes: *const u64, count: usize) -> Result<Vec<u64>, Failure> {
    if !lengths_bytes.is_null() && !lengths_bytes.is_aligned() {
        return Err(Failure::new(Status::Invalid, "the lengths are not aligned"));
    }
    let lengths = bytes(lengths_bytes.cast(), count.saturating_mul(size_of::<u64>()))?;
    Ok(lengths
        .chunks_exact(size_of::<u64>())
        .filter_map(|bytes| bytes.try_into().ok().map(u64::from_ne_bytes))
        .collect())
}

/// Settings of the caller, or nothing for null.
pub(crate) fn read_or_default<T: Copy>(settings: *const T) -> Option<T> {
    // SAFETY: settings that are not null can be read, are aligned, and were set, as the header demands.
    unsafe { settings.as_ref() }.copied()
}

/// Bytes that travelled, of the caller: a copy of those that are used.
pub(crate) fn travelled<const USED: usize, const LENGTH: usize>(
    what: &'static str,
    from: *const [u8; LENGTH],
) -> Result<[u8; USED], Failure> {
    const { assert!(USED <= LENGTH) };
    if from.is_null() {
        return Err(null(what));
    }
    // SAFETY: what is not null can be read, as the header demands; any bytes will do, they need no alignment, and there are as many.
    Ok(unsafe { *from.cast() })
}

/// Bytes that are to travel, and zeros for the others of their structure.
pub(crate) fn to_travel<const USED: usize, const LENGTH: usize>(
    bytes: &[u8; USED],
) -> [u8; LENGTH] {
    const { assert!(USED <= LENGTH) };
    let mut all = [0; LENGTH];
    all[..USED].copy_from_slice(bytes);
    all
}

/// Where the caller wants a result.
#[inline(always)]
pub(crate) fn room<T>(what: &'static str, place: *mut T) -> Result<Room<T>, Failure> {
    match place.is_aligned() {
        true => room_at_once(place).ok_or_else(|| null(what)),
        false => Err(null(what)),
    }
}

/// The same of a result for which null says that nobody asks. Calls look before they do anything:
/// what is done cannot be refused any more.
#[inline(always)]
pub(crate) fn room_if_asked<T>(
    what: &'static str,
    place: *mut T,
) -> Result<Option<Room<T>>, Failure> {
    match place.is_null() {
        true => Ok(None),
        false => room(what, place).map(Some),
    }
}

/// The same, if it is not null.
#[inline(always)]
pub(crate) fn room_at_once<T>(place: *mut T) -> Option<Room<T>> {
    match place.is_null() {
        true => None,
        false => Some(Room(place)),
    }
}

/// See [`room`].
#[derive(Debug)]
pub(crate) struct Room<T>(*mut T);

impl<T> Room<T> {
    #[inline(always)]
    pub(crate) fn put(self, value: T) {
        // SAFETY: it is not null, and writable and aligned for its type, as the header demands.
        unsafe { self.0.write(value) };
    }
}

#[cold]
fn null(what: &'static str) -> Failure {
    Failure::of(Status::Invalid, &format_args!("{what} is null"))
}
