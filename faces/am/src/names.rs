//! Names of endpoints: as values of C, as texts, and published.

use std::ffi::{c_char, c_int, c_void};
use std::fmt::Write as _;

use hamlyn_am::{NAME_BYTES, Name};

use crate::boundary::{bytes_mut, call_outside, protect, put, text, wait_of};
use crate::status::{Code, Failure};

const WORDS: usize = 8;
const TEXT_BYTES: usize = 2 * NAME_BYTES + 1;

/// `en_t`: a name, and zeros.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CName {
    words: [u64; WORDS],
}

const _: () = assert!(NAME_BYTES <= 8 * WORDS);

impl CName {
    pub(crate) fn of(name: &Name) -> Self {
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(name.to_bytes().chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        Self { words }
    }

    fn bytes(&self) -> [u8; NAME_BYTES] {
        let bytes = self.words.map(u64::to_le_bytes);
        let bytes = bytes.as_flattened().first_chunk().copied();
        bytes.unwrap_or([0; NAME_BYTES])
    }

    pub(crate) fn name(&self) -> Result<Name, Failure> {
        Name::from_bytes(&self.bytes()).map_err(|_| {
            Failure::bad(
                "the name is none: it was not set by AM_AllocateEndpoint, or was cut on its way",
            )
        })
    }
}

/// `AMX_NameToText`: two digits for each byte, and a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_name_to_text(
    name: CName,
    into: *mut c_char,
    length_bytes: usize,
) -> c_int {
    protect(|| {
        if length_bytes < TEXT_BYTES {
            return Err(Failure::bad(
                "the text of a name needs AMX_NAME_TEXT_BYTES bytes",
            ));
        }
        let mut digits = String::with_capacity(TEXT_BYTES);
        for byte in name.name()?.to_bytes() {
            // Writing to a string does not fail.
            let _ = write!(digits, "{byte:02x}");
        }
        digits.push('\0');
        let room = bytes_mut(into.cast(), digits.len())?;
        room.copy_from_slice(digits.as_bytes());
        Ok(())
    })
}

/// `AMX_NameFromText`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_name_from_text(
    digits: *const c_char,
    name: *mut CName,
) -> c_int {
    protect(|| {
        let digits = text(digits)?.as_bytes();
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
        let bytes: Option<Vec<u8>> = digits.as_chunks().0.iter().map(byte).collect();
        let bytes = bytes.filter(|_| digits.len() == TEXT_BYTES - 1);
        let found = bytes.and_then(|bytes| Name::from_bytes(&bytes).ok());
        let found = found.ok_or(Failure::bad("the text is no name of AMX_NameToText"))?;
        put(name, CName::of(&found))
    })
}

/// `AMX_Publish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_publish(endpoint: *mut c_void, item: *const c_char) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        Ok(library.node.publish(text(item)?, &endpoint.shared.name)?)
    })
}

/// `AMX_Lookup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_look_up(
    program: *const c_char,
    item: *const c_char,
    milliseconds: c_int,
    name: *mut CName,
) -> c_int {
    call_outside(|library| {
        let wait = wait_of(milliseconds.into());
        let found = library.node.look_up(text(program)?, text(item)?, wait);
        let found = found.map_err(|error| match error {
            hamlyn_am::Error::Name(error) => Failure::of(Code::BadArg, &error),
            error => Failure::of(Code::Resource, &error),
        })?;
        put(name, CName::of(&found))
    })
}
