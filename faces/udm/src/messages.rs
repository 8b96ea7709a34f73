//! Messages: injected, shown, extracted.

use std::ffi::{c_int, c_void};

use hamlyn_boundary::{bytes, words};
use hamlyn_udm::{Message, WORDS_MAX};

use crate::boundary::{inside, put, put_if_wanted, showing};
use crate::status::{Code, Failure};

/// `udm_message`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CMessage {
    source: u32,
    handler: u16,
    words: u16,
    length_bytes: usize,
    data: *const c_void,
    bulk_at: usize,
    bulk_bytes: usize,
}

impl CMessage {
    fn of(message: &Message) -> Self {
        let place = message.place().unwrap_or(0..0);
        Self {
            source: message.source(),
            handler: message.handler(),
            words: message.words() as u16,
            length_bytes: message.len(),
            data: message.as_bytes().as_ptr().cast(),
            bulk_at: place.start,
            bulk_bytes: place.len(),
        }
    }
}

const NULL_WORDS: &str = "the words are null or not aligned";

#[inline]
fn inject(
    udm: *mut c_void,
    to: u32,
    handler: u16,
    (count, values): (usize, *const u32),
    waits: bool,
) -> c_int {
    inside(udm, |udm| {
        let words = message_words(count, values)?;
        udm.inject(to, handler, words, waits)
    })
}

/// The words of a message.
#[inline]
fn message_words<'a>(count: usize, values: *const u32) -> Result<&'a [u32], Failure> {
    if count > WORDS_MAX {
        return Err(TOO_MANY);
    }
    Ok(words(values, count, WORDS_MAX, NULL_WORDS)?)
}

const NO_COPY: Failure = Failure::new(
    Code::InHandler,
    "a handler that a signal runs cannot send data of the own area, which are copied first",
);
const TOO_MANY: Failure = Failure::new(
    Code::TooLong,
    "a message has at most 14 words (UDM_WORDS_MAX): send more as bytes (udm_inject_bytes)",
);

/// `udm_inject`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_inject(
    udm: *mut c_void,
    to: u32,
    handler: u16,
    count: usize,
    values: *const u32,
) -> c_int {
    inject(udm, to, handler, (count, values), true)
}

/// `udm_injectc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_injectc(
    udm: *mut c_void,
    to: u32,
    handler: u16,
    count: usize,
    values: *const u32,
) -> c_int {
    inject(udm, to, handler, (count, values), false)
}

/// `udm_inject_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_inject_bytes(
    udm: *mut c_void,
    to: u32,
    handler: u16,
    data: *const c_void,
    length_bytes: usize,
) -> c_int {
    inside(udm, |udm| {
        udm.inject_bytes(to, handler, bytes(data, length_bytes)?, true)
    })
}

/// `udm_injectc_bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_injectc_bytes(
    udm: *mut c_void,
    to: u32,
    handler: u16,
    data: *const c_void,
    length_bytes: usize,
) -> c_int {
    inside(udm, |udm| {
        udm.inject_bytes(to, handler, bytes(data, length_bytes)?, false)
    })
}

/// `udm_bytes_max`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_bytes_max(
    udm: *mut c_void,
    to: u32,
    length_bytes: *mut usize,
) -> c_int {
    inside(udm, |udm| put(length_bytes, udm.bytes_max(to)?))
}

/// `udm_inject_bulk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_inject_bulk(
    udm: *mut c_void,
    to: u32,
    handler: u16,
    count: usize,
    values: *const u32,
    data: *const c_void,
    length_bytes: usize,
    at: usize,
) -> c_int {
    inside(udm, |udm| {
        let words = message_words(count, values)?;
        let data = bytes(data, length_bytes)?;
        let own = udm.area().as_ptr_range();
        let given = data.as_ptr_range();
        if given.start < own.end && own.start < given.end {
            if hamlyn_boundary::is_interrupt() {
                return Err(NO_COPY);
            }
            // Handlers may write the own area while the call waits.
            let copy: Box<[u8]> = data.into();
            return Ok(udm.inject_bulk(to, handler, words, &copy, at)?);
        }
        Ok(udm.inject_bulk(to, handler, words, data, at)?)
    })
}

/// `udm_bulk_area`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_bulk_area(
    udm: *mut c_void,
    area: *mut *mut c_void,
    length_bytes: *mut usize,
) -> c_int {
    inside(udm, |udm| {
        let all = udm.area();
        put_if_wanted(length_bytes, all.len())?;
        put(area, all.as_mut_ptr().cast())
    })
}

/// `udm_space_available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_space_available(
    udm: *mut c_void,
    to: u32,
    words: *mut usize,
) -> c_int {
    inside(udm, |udm| put(words, udm.space_available(to)?))
}

/// `udm_available`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_available(udm: *mut c_void, is_there: *mut c_int) -> c_int {
    inside(udm, |udm| put(is_there, udm.peek()?.is_some().into()))
}

/// `udm_peek`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_peek(udm: *mut c_void, message: *mut CMessage) -> c_int {
    showing(udm, |udm| {
        let shown = udm.peek()?.ok_or(crate::node::NOTHING)?;
        put(message, CMessage::of(shown))
    })
}

/// `udm_extract`; without a place for the message `udm_dispose`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_extract(udm: *mut c_void, message: *mut CMessage) -> c_int {
    showing(udm, |udm| {
        put_if_wanted(message, CMessage::of(udm.extract()?))
    })
}
