//! What went wrong, on its way to the exception that a program sees: a kind that programs act on, and the library's text, which names
//! the object and the remedy. The exceptions are defined in `hamlyn/errors.py`.

use std::borrow::Cow;

use hamlyn::engine::terminus::PostError;
use hamlyn::error::{ConnectError, FenceError, OpenError, PeerLost, ReceiveError, SendError};
use hamlyn::group::{BeginError, MemberError, SplitError};
use hamlyn::host::HostError;
use hamlyn::loans::LoanError;
use hamlyn::one_sided::OperationError;
use hamlyn::service::{CallError, ReplyError};
use hamlyn::ticket::{OutsideTicket, TicketError};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

/// What programs act on: the exceptions of `hamlyn/errors.py`, by name, and one of Python's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    TimedOut,
    PeerGone,
    NotFound,
    Refused,
    Closed,
    TooLong,
    Malformed,
    Overrun,
    Cut,
    Taken,
    Invalid,
    InUse,
    Forked,
    HandleClosed,
    Released,
    SystemFailed,
    /// A view is alive.
    Buffer,
}

impl Kind {
    fn class_name(self) -> &'static str {
        match self {
            Self::TimedOut => "TimedOut",
            Self::PeerGone => "PeerGone",
            Self::NotFound => "NotFound",
            Self::Refused => "Refused",
            Self::Closed => "Closed",
            Self::TooLong => "TooLong",
            Self::Malformed => "Malformed",
            Self::Overrun => "Overrun",
            Self::Cut => "Cut",
            Self::Taken => "Taken",
            Self::Invalid => "Invalid",
            Self::InUse => "InUse",
            Self::Forked => "Forked",
            Self::HandleClosed => "HandleClosed",
            Self::Released => "Released",
            Self::SystemFailed => "SystemFailed",
            Self::Buffer => "BufferError",
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) text: Cow<'static, str>,
}

impl Failure {
    pub(crate) const fn new(kind: Kind, text: &'static str) -> Self {
        Self {
            kind,
            text: Cow::Borrowed(text),
        }
    }

    #[cold]
    pub(crate) fn of(kind: Kind, error: &impl std::fmt::Display) -> Self {
        Self {
            kind,
            text: Cow::Owned(error.to_string()),
        }
    }
}

static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Returns true for an exception of the package's own.
pub(crate) fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
    let base = ERRORS
        .get(py)
        .map(|errors| errors.bind(py).getattr("Error"));
    matches!(base, Some(Ok(base)) if error.is_instance(py, &base))
}

/// The exception of that kind.
pub(crate) fn class_of(py: Python<'_>, kind: Kind) -> PyResult<Bound<'_, PyAny>> {
    let errors = ERRORS.get_or_try_init(py, || py.import("hamlyn.errors").map(Bound::unbind))?;
    errors.bind(py).getattr(kind.class_name())
}

impl From<Failure> for PyErr {
    #[cold]
    fn from(failure: Failure) -> Self {
        let text = failure.text.into_owned();
        match failure.kind {
            Kind::Buffer => PyBufferError::new_err(text),
            kind => Python::attach(|py| {
                let made = class_of(py, kind).and_then(|class| class.call1((text,)));
                made.map_or_else(|error| error, PyErr::from_value)
            }),
        }
    }
}

fn of_host(error: &HostError) -> Kind {
    match error {
        HostError::NameInUse { .. } => Kind::Taken,
        HostError::BadName { .. } | HostError::BadSetting { .. } | HostError::BadOffer { .. } => {
            Kind::Invalid
        }
        HostError::Forked => Kind::Forked,
        _ => Kind::SystemFailed,
    }
}

fn of_open(error: &OpenError) -> Kind {
    match error {
        OpenError::Host(host) => of_host(host),
        OpenError::ItemTaken { .. } => Kind::Taken,
        OpenError::Pool(_) => Kind::SystemFailed,
        _ => Kind::Invalid,
    }
}

fn of_send(error: &SendError) -> Kind {
    match error {
        SendError::WouldBlock { .. } => Kind::TimedOut,
        SendError::Cut { .. } => Kind::Cut,
        SendError::PeerLost(_) => Kind::PeerGone,
        SendError::RecordTooLarge { .. }
        | SendError::OutsideTicket(_)
        | SendError::Refused(PostError::FastTooLong { .. }) => Kind::TooLong,
        SendError::ClosedByReceiver | SendError::Finished => Kind::Closed,
        SendError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    }
}

fn of_reach(error: &hamlyn::host::ConnectError) -> Kind {
    use hamlyn::host::ConnectError as Reach;
    match error {
        Reach::Absent { .. } | Reach::NotOffered { .. } | Reach::NotShared { .. } => Kind::NotFound,
        Reach::UnknownHost { .. } | Reach::NoNetwork { .. } => Kind::NotFound,
        Reach::AbsentHere { .. } | Reach::OtherName { .. } | Reach::SameName { .. } => {
            Kind::NotFound
        }
        Reach::Gone { .. } => Kind::PeerGone,
        Reach::Stalled { .. } => Kind::TimedOut,
        Reach::Refused { .. }
        | Reach::NotAllowed { .. }
        | Reach::OtherUser { .. }
        | Reach::Version { .. } => Kind::Refused,
        Reach::Invalid { .. } => Kind::Malformed,
        Reach::Host(host) => of_host(host),
        _ => Kind::SystemFailed,
    }
}

/// Makes failures of errors of the library: each error, and its kind.
macro_rules! failures {
    ($($error:ty, $named:ident => $kind:expr;)*) => {
        $(impl From<$error> for Failure {
            #[cold]
            fn from($named: $error) -> Self {
                Self::of($kind, &$named)
            }
        })*
    };
}

failures! {
    HostError, error => of_host(&error);
    OpenError, error => of_open(&error);
    SendError, error => of_send(&error);
    PeerLost, error => Kind::PeerGone;
    ReceiveError, error => match &error {
        ReceiveError::Overrun(_) => Kind::Overrun,
        ReceiveError::PeerLost(_) | ReceiveError::Incomplete => Kind::PeerGone,
        ReceiveError::Closed => Kind::Closed,
        ReceiveError::Malformed { .. } => Kind::Malformed,
        ReceiveError::Open(open) => of_open(open),
        ReceiveError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    };
    ConnectError, error => match &error {
        ConnectError::Reach(reach) => of_reach(reach),
        ConnectError::NotBound { .. } => Kind::NotFound,
        ConnectError::OtherProtocol { .. }
        | ConnectError::OtherType { .. }
        | ConnectError::Version { .. } => Kind::Refused,
        ConnectError::Taken { .. } => Kind::Taken,
        ConnectError::Open(open) => of_open(open),
        ConnectError::Send(send) => of_send(send),
        _ => Kind::Invalid,
    };
    hamlyn::host::ConnectError, error => of_reach(&error);
    FenceError, error => match &error {
        FenceError::Refused { .. } => Kind::Refused,
        FenceError::PeerLost(_) | FenceError::NoSuchLink => Kind::PeerGone,
        FenceError::TimedOut { .. } => Kind::TimedOut,
        FenceError::Send(send) => of_send(send),
        FenceError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    };
    CallError, error => match &error {
        CallError::TooLong { .. } => Kind::TooLong,
        CallError::TimedOut { .. } | CallError::AllOutstanding { .. } => Kind::TimedOut,
        CallError::NotPending { .. } => Kind::Released,
        CallError::AllKept { .. } => Kind::Buffer,
        CallError::Unanswered { .. } => Kind::Refused,
        CallError::Dismissed { .. } => Kind::Closed,
        CallError::PeerLost(_) => Kind::PeerGone,
        CallError::Malformed { .. } => Kind::Malformed,
        CallError::Send(send) => of_send(send),
        CallError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    };
    ReplyError, error => match &error {
        ReplyError::TooLong { .. } => Kind::TooLong,
        ReplyError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    };
    LoanError, error => match &error {
        LoanError::TooLong { .. } => Kind::TooLong,
        LoanError::AllInUse { .. } => Kind::TimedOut,
        LoanError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    };
    OperationError, error => match &error {
        OperationError::Refused(_) | OperationError::RefusedOtherwise(_) => Kind::Refused,
        OperationError::WouldBlock | OperationError::TimedOut => Kind::TimedOut,
        OperationError::OutsideTicket(_) | OperationError::OutsideLanding { .. } => Kind::TooLong,
        OperationError::NotOutstanding => Kind::Released,
        OperationError::Abandoned => Kind::HandleClosed,
        OperationError::Flooded => Kind::Malformed,
        OperationError::PeerLost(_) => Kind::PeerGone,
        OperationError::Host(host) => of_host(host),
        _ => Kind::Invalid,
    };
    BeginError, error => match &error {
        BeginError::Open(open) => of_open(open),
        _ => Kind::Invalid,
    };
    TicketError, error => Kind::Invalid;
    MemberError, error => Kind::Invalid;
    SplitError, error => Kind::Invalid;
    OutsideTicket, error => Kind::TooLong;
}
