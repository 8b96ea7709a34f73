//! Codes of errors, and the text of the last one.

use std::borrow::Cow;
use std::ffi::{c_char, c_int};

use hamlyn::host::HostError;
use hamlyn_am::{CallError, Error};
use hamlyn_boundary::BadArgument;

/// Result of a call: the numbers of `am.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    NotInit = 1,
    BadArg = 2,
    Resource = 3,
    NotSent = 4,
    InUse = 5,
}

/// An error on its way to C.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) text: Cow<'static, str>,
}

impl Failure {
    pub(crate) const fn new(code: Code, text: &'static str) -> Self {
        Self {
            code,
            text: Cow::Borrowed(text),
        }
    }

    #[cold]
    pub(crate) fn of(code: Code, error: &impl std::fmt::Display) -> Self {
        Self {
            code,
            text: Cow::Owned(error.to_string()),
        }
    }

    pub(crate) const fn bad(text: &'static str) -> Self {
        Self::new(Code::BadArg, text)
    }

    pub(crate) const fn resource(text: &'static str) -> Self {
        Self::new(Code::Resource, text)
    }
}

pub(crate) const TOO_MANY: Failure =
    Failure::resource("a million of these are there: free some, or answer requests");

pub(crate) const NOT_SENT: Failure = Failure::new(
    Code::NotSent,
    "the message was not sent: it has no credit or no room now; poll the bundle, and send it again",
);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            // Programs that poll meet it often: no text is made.
            Error::WouldBlock(_) => return NOT_SENT,
            Error::NotMapped { .. }
            | Error::TooManyArguments { .. }
            | Error::ReservedHandler
            | Error::TooLong { .. }
            | Error::NoTag
            | Error::OutsideSegment { .. }
            | Error::OtherNode { .. }
            | Error::Setting { .. }
            | Error::Name(_) => Code::BadArg,
            Error::Host(HostError::Forked) => Code::NotInit,
            _ => Code::Resource,
        };
        Self::of(code, &error)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let code = match error {
            CallError::TooManyArguments { .. }
            | CallError::ReservedHandler
            | CallError::TooLong { .. } => Code::BadArg,
            _ => Code::Resource,
        };
        Self::of(code, &error)
    }
}

impl From<BadArgument> for Failure {
    fn from(bad: BadArgument) -> Self {
        Self {
            code: Code::BadArg,
            text: bad.0,
        }
    }
}

impl hamlyn_boundary::Failure for Failure {
    const FAULT: c_int = Code::Resource as c_int;

    fn into_parts(self) -> (c_int, Cow<'static, str>) {
        (self.code as c_int, self.text)
    }
}

/// The text of the last error of this thread, with the remedy.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_error_text() -> *const c_char {
    hamlyn_boundary::error_text()
}
