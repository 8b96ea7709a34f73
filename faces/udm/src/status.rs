//! Codes of errors, and their texts.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int};

use hamlyn::host::HostError;
use hamlyn_boundary::BadArgument;
use hamlyn_crl::CrlError;
use hamlyn_udm::{AtomError, Error, InjectError};

/// Codes of `udm.h` and `crl.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    NotOpen = 1,
    BadArgument = 2,
    Resource = 3,
    WouldBlock = 4,
    InUse = 5,
    Quota = 6,
    Lost = 7,
    BadHandler = 8,
    BadNode = 9,
    TooLong = 10,
    BadDispose = 11,
    DisposeFailure = 12,
    Protection = 13,
    Refused = 14,
    WrongThread = 15,
    Forked = 16,
    TimedOut = 17,
    InHandler = 18,
    Unreachable = 19,
    Outside = 20,
    NoRegion = 32,
    Mapped = 33,
    OperationOpen = 34,
    OperationNotOpen = 35,
    NotMapped = 36,
    WrongLength = 37,
    NodeLost = 38,
    Memory = 39,
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
        if hamlyn_boundary::is_interrupt() {
            // A text would be allocated, and nobody can ask for it.
            return Self::new(code, "");
        }
        Self {
            code,
            text: Cow::Owned(error.to_string()),
        }
    }

    pub(crate) const fn bad(text: &'static str) -> Self {
        Self::new(Code::BadArgument, text)
    }
}

impl hamlyn_boundary::Failure for Failure {
    const FAULT: c_int = Code::Resource as c_int;

    fn into_parts(self) -> (c_int, Cow<'static, str>) {
        (self.code as c_int, self.text)
    }
}

impl From<BadArgument> for Failure {
    fn from(bad: BadArgument) -> Self {
        Self {
            code: Code::BadArgument,
            text: bad.0,
        }
    }
}

pub(crate) const FORKED: Failure = Failure::new(
    Code::Forked,
    "this process is a forked child, and the end point its parent's: open one here under another name of a node",
);
// Programs that poll meet these often: no text is made.
const WOULD_BLOCK: Failure = Failure::new(
    Code::WouldBlock,
    "no room at present for a message to this node: try again, or wait longer (udm_inject)",
);
const QUOTA: Failure = Failure::new(
    Code::Quota,
    "the node takes nothing, and messages fill the memory that it lends (udm_mode): go on when it has taken them",
);

impl From<InjectError> for Failure {
    fn from(error: InjectError) -> Self {
        let code = match &error {
            InjectError::WouldBlock { .. } => return WOULD_BLOCK,
            InjectError::Quota { .. } => return QUOTA,
            InjectError::Lost { .. } => Code::Lost,
            InjectError::Refused { .. } => Code::Refused,
            InjectError::NoSuchNode { .. } => Code::BadNode,
            InjectError::BadHandler { .. } => Code::BadHandler,
            InjectError::TooLong { .. } => Code::TooLong,
            InjectError::OutsideArea { .. } => Code::Outside,
            _ => Code::Resource,
        };
        Self::of(code, &error)
    }
}

impl From<AtomError> for Failure {
    fn from(error: AtomError) -> Self {
        let code = match error {
            AtomError::DisposeFailure => Code::DisposeFailure,
            AtomError::KernelBit { .. } => Code::Protection,
            _ => Code::Resource,
        };
        Self::of(code, &error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Inject(error) => return error.clone().into(),
            Error::Atom(error) => return (*error).into(),
            Error::BadGroup { .. } | Error::SameInterface { .. } => Code::BadArgument,
            Error::BadHandler { .. } => Code::BadHandler,
            Error::BadSignal { .. } => Code::BadArgument,
            Error::SignalInUse { .. } => Code::InUse,
            Error::SectionOpen => Code::InHandler,
            Error::NameInUse => Code::InUse,
            Error::Lost { .. } => Code::Lost,
            Error::BarrierTimeout { .. } => Code::TimedOut,
            Error::Connect { .. } | Error::Offer { .. } => Code::Unreachable,
            Error::Host(HostError::Forked) => Code::Forked,
            _ => Code::Resource,
        };
        Self::of(code, &error)
    }
}

const OPERATION_OPEN: Failure = Failure::new(
    Code::OperationOpen,
    "an operation is open on the region at this node: end it first (rgn_end_read, rgn_end_write)",
);
const OPERATION_NOT_OPEN: Failure = Failure::new(
    Code::OperationNotOpen,
    "no such operation is open on the region: begin it first (rgn_start_read, rgn_start_write)",
);

impl From<CrlError> for Failure {
    fn from(error: CrlError) -> Self {
        let code = match &error {
            CrlError::NoRegion { .. } => Code::NoRegion,
            CrlError::Mapped { region, node } => {
                let text = format!(
                    "node {node} has {region} mapped: unmap it there (rgn_unmap), then destroy it"
                );
                return Self::of(Code::Mapped, &text);
            }
            CrlError::Open { .. } => return OPERATION_OPEN,
            CrlError::NotOpen { .. } => return OPERATION_NOT_OPEN,
            CrlError::Lost { .. } => Code::Lost,
            CrlError::NodeLost { .. } => Code::NodeLost,
            CrlError::TooLarge { .. } => Code::TooLong,
            CrlError::Memory { .. } => Code::Memory,
            CrlError::BroadcastLength { .. } => Code::WrongLength,
            CrlError::TimedOut { .. } => Code::TimedOut,
            CrlError::Nodes { .. } => Code::BadArgument,
            _ => Code::Resource,
        };
        Self::of(code, &error)
    }
}

/// The name of a code.
const fn name_of(code: c_int) -> &'static CStr {
    match code {
        0 => c"done",
        1 => c"not open",
        2 => c"bad argument",
        3 => c"the system or the interface cannot",
        4 => c"no room at present",
        5 => c"in use",
        6 => c"the memory that the node lends is full",
        7 => c"a node is gone",
        8 => c"no such handler",
        9 => c"no such node",
        10 => c"too long",
        11 => c"there is no message to extract",
        12 => c"the message of the handler was not extracted",
        13 => c"a bit that only the layer changes",
        14 => c"the node refused a message",
        15 => c"called by another thread",
        16 => c"called in a forked child",
        17 => c"not in time",
        18 => c"called in a handler or a task",
        19 => c"a node could not be reached",
        20 => c"outside of the area",
        32 => c"no such region",
        33 => c"the region is mapped",
        34 => c"an operation is open",
        35 => c"no such operation is open",
        36 => c"no region is mapped at this address",
        37 => c"a broadcast of another length",
        38 => c"a node is gone, and operations of all nodes with it",
        39 => c"no memory",
        _ => c"unknown",
    }
}

/// `udm_strerror`: what a code means, for all programs alike.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_strerror(code: c_int) -> *const c_char {
    name_of(code).as_ptr()
}

/// `udm_error_text`: the text of the last error of this thread, with the remedy.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_error_text() -> *const c_char {
    hamlyn_boundary::error_text()
}
