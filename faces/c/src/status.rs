//! What a function returns, and what it says of an error.

use std::borrow::Cow;
use std::ffi::c_char;

use hamlyn::engine::notification::QueueError;
use hamlyn::engine::slot::SlotError;
use hamlyn::engine::terminus::{PostError, TerminusError};
use hamlyn::error::{ConnectError, FenceError, OpenError, PeerLost, ReceiveError, SendError};
use hamlyn::host::HostError;
use hamlyn::port::PortError;

/// What became of a call. Zero is success; all others are errors, of which hamlyn_error has a text with the remedy.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// It was not done in the time that it was given; trying again may help. Nothing is lost.
    TimedOut = 1,
    /// An argument cannot be used: null, a length, a setting, a name.
    Invalid = 2,
    /// A handle that was closed, is of another kind, is that of the process from which this one was
    /// forked, or is none.
    BadHandle = 3,
    /// The handle belongs to another thread, or another thread uses it now.
    OtherThread = 4,
    /// A message of this handle is held, or a view: release it first. Or none is held that could be released. Or another has what is asked for.
    Held = 5,
    /// Nobody is there under that name, or nothing under that item.
    NotFound = 6,
    /// The other side, or its access list or ours, does not want it.
    Refused = 7,
    /// The peer is gone.
    PeerLost = 8,
    /// The stream, service or sender has come to its end in good order.
    Finished = 9,
    /// The message is too long for its receiver.
    TooLong = 10,
    /// A peer broke the rules of the protocol.
    Malformed = 11,
    /// Notifications were lost: the manager's queue is too short.
    Overrun = 12,
    /// A part of the message was sent when the time was over: its receiver must make itself ready again.
    Cut = 13,
    /// The name, item, stream, group or address is taken.
    Taken = 14,
    /// The system has no more memory or descriptors, or failed otherwise.
    System = 15,
    /// The library has a fault; please report it. The handle cannot be used any more.
    Fault = 16,
    /// A limit of the library is reached: give something back first, as the text says.
    Limit = 17,
}

/// So long may a call wait that waits for ever.
pub const FOREVER: i64 = -1;
/// So long a call that does not wait.
pub const POLL: i64 = 0;

/// Bytes of the text of an error, its zero included.
pub const ERROR_TEXT_BYTES: usize = 508;

/// Room for what is said of an error. It need not be set before a call, and is not changed by a call that succeeds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// As the function returned it.
    pub status: Status,
    /// What happened to which object, and the remedy; ends with a zero.
    pub text: [c_char; ERROR_TEXT_BYTES],
}

/// An error on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: Cow<'static, str>,
}

impl Failure {
    pub(crate) const fn new(status: Status, text: &'static str) -> Self {
        Self {
            status,
            text: Cow::Borrowed(text),
        }
    }

    #[cold]
    pub(crate) fn of(status: Status, error: &impl std::fmt::Display) -> Self {
        Self {
            status,
            text: Cow::Owned(error.to_string()),
        }
    }

    /// Nothing came, or there was no room, in time. Does not allocate, as programs that poll meet it often.
    pub(crate) const fn timed_out(text: &'static str) -> Self {
        Self::new(Status::TimedOut, text)
    }
}

/// For what could not be sent in time.
pub(crate) const NO_ROOM: Failure =
    Failure::timed_out("no room at present: try again, or wait longer");

fn of_host(error: &HostError) -> Status {
    match error {
        HostError::NameInUse { .. } => Status::Taken,
        HostError::BadName { .. }
        | HostError::BadSetting { .. }
        | HostError::BadOffer { .. }
        | HostError::Network(_) => Status::Invalid,
        HostError::LinksFull { .. }
        | HostError::OffersFull { .. }
        | HostError::RegionsFull { .. }
        | HostError::RegionsShare { .. } => Status::Limit,
        HostError::Forked => Status::BadHandle,
        _ => Status::System,
    }
}

fn of_open(error: &OpenError) -> Status {
    match error {
        OpenError::Host(host) => of_host(host),
        OpenError::ItemTaken { .. } => Status::Taken,
        OpenError::Slot(slot) => of_slot(slot),
        OpenError::Terminus(terminus) => of_terminus(terminus),
        OpenError::Port(port) => of_port(port),
        OpenError::Queue(QueueError::TooMany) => Status::Limit,
        OpenError::Queue(_)
        | OpenError::Metadata(_)
        | OpenError::BadItem { .. }
        | OpenError::Setting { .. }
        | OpenError::QueueRoom { .. } => Status::Invalid,
        _ => Status::System,
    }
}

pub(crate) fn of_slot(error: &SlotError) -> Status {
    match error {
        SlotError::TooMany => Status::Limit,
        _ => Status::Invalid,
    }
}

pub(crate) fn of_terminus(error: &TerminusError) -> Status {
    match error {
        TerminusError::TooMany | TerminusError::TooManyAreas { .. } => Status::Limit,
        _ => Status::Invalid,
    }
}

fn of_port(error: &PortError) -> Status {
    match error {
        PortError::TooMany => Status::Limit,
        PortError::Forked => Status::BadHandle,
        _ => Status::Invalid,
    }
}

fn of_send(error: &SendError) -> Status {
    match error {
        SendError::WouldBlock { .. } => Status::TimedOut,
        SendError::Cut { .. } => Status::Cut,
        SendError::PeerLost(_) => Status::PeerLost,
        SendError::RecordTooLarge { .. }
        | SendError::OutsideTicket(_)
        | SendError::Refused(PostError::FastTooLong { .. }) => Status::TooLong,
        SendError::ClosedByReceiver | SendError::Finished => Status::Finished,
        SendError::Host(host) => of_host(host),
        _ => Status::Invalid,
    }
}

fn of_reach(error: &hamlyn::host::ConnectError) -> Status {
    use hamlyn::host::ConnectError as Reach;
    match error {
        Reach::Absent { .. }
        | Reach::Gone { .. }
        | Reach::NotOffered { .. }
        | Reach::NotShared { .. }
        | Reach::AbsentHere { .. }
        | Reach::OtherName { .. }
        | Reach::SameName { .. } => Status::NotFound,
        Reach::Stalled { .. } => Status::TimedOut,
        Reach::Host(error) => of_host(error),
        Reach::Refused { .. }
        | Reach::NotAllowed { .. }
        | Reach::OtherUser { .. }
        | Reach::Version { .. } => Status::Refused,
        _ => Status::System,
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        Self::of(of_host(&error), &error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::of(of_open(&error), &error)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self::of(of_port(&error), &error)
    }
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        if let SendError::WouldBlock { .. } = error {
            return NO_ROOM;
        }
        Self::of(of_send(&error), &error)
    }
}

impl From<PeerLost> for Failure {
    fn from(error: PeerLost) -> Self {
        Self::of(Status::PeerLost, &error)
    }
}

impl From<ReceiveError> for Failure {
    fn from(error: ReceiveError) -> Self {
        let status = match &error {
            ReceiveError::Overrun(_) => Status::Overrun,
            ReceiveError::PeerLost(_) | ReceiveError::Incomplete => Status::PeerLost,
            ReceiveError::Closed => Status::Finished,
            ReceiveError::Malformed { .. } => Status::Malformed,
            ReceiveError::Open(open) => of_open(open),
            ReceiveError::Host(host) => of_host(host),
            _ => Status::Invalid,
        };
        Self::of(status, &error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let status = match &error {
            ConnectError::Reach(reach) => of_reach(reach),
            ConnectError::NotBound { .. } => Status::NotFound,
            ConnectError::OtherProtocol { .. }
            | ConnectError::OtherType { .. }
            | ConnectError::Version { .. } => Status::Refused,
            ConnectError::Taken { .. } => Status::Taken,
            ConnectError::Open(open) => of_open(open),
            ConnectError::Send(send) => of_send(send),
            _ => Status::Invalid,
        };
        Self::of(status, &error)
    }
}

impl From<FenceError> for Failure {
    fn from(error: FenceError) -> Self {
        let status = match &error {
            FenceError::Refused { .. } => Status::Refused,
            FenceError::PeerLost(_) | FenceError::NoSuchLink => Status::PeerLost,
            FenceError::TimedOut { .. } => Status::TimedOut,
            FenceError::Send(send) => of_send(send),
            FenceError::Host(host) => of_host(host),
            _ => Status::Invalid,
        };
        Self::of(status, &error)
    }
}
