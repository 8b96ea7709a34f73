//! Errors, and reasons for which messages come back. Each error names the object and the remedy.

use std::fmt;

use hamlyn::port::PortError;
use hamlyn::{OpenError, PeerLost, ReceiveError, SendError};

use crate::wire::{ARGUMENTS_MAX, NAME_BYTES};

/// A call failed, and has sent no message. A transfer that has waited may have written some of its
/// data.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The call was made by a handler.
    #[error(
        "a handler of this node is running: it may reply or defer its reply, and nothing else; make the call when `poll` has returned"
    )]
    InHandler,
    /// The translation was unmapped, or is of another endpoint.
    #[error("the translation {number} is not mapped by this endpoint: map the name again")]
    NotMapped {
        /// Its number.
        number: u32,
    },
    /// More arguments than a message has.
    #[error("{count} arguments: a message has {ARGUMENTS_MAX} at most; send the rest as data")]
    TooManyArguments {
        /// Their number.
        count: usize,
    },
    /// Handler 0 is for messages that come back.
    #[error("handler 0 is the one for messages that come back (`on_returned`): use 1 to 255")]
    ReservedHandler,
    /// Data that are too long.
    #[error("{length_bytes} bytes of data: this message has {most_bytes} at most; {remedy}")]
    TooLong {
        /// Their number.
        length_bytes: u64,
        /// As many as it may have.
        most_bytes: u64,
        /// The remedy.
        remedy: &'static str,
    },
    /// It would have had to wait for longer than allowed.
    #[error("the request was not sent in time: {0}")]
    WouldBlock(Blocked),
    /// The name cannot be mapped with that tag.
    #[error("`Tag::None` opens no endpoint: map the name with a tag, or with `Tag::Any`")]
    NoTag,
    /// The range lies outside of the endpoint's segment.
    #[error(
        "{length_bytes} bytes at {offset} do not lie in the segment of {segment_bytes} bytes: set a longer segment (`set_segment`)"
    )]
    OutsideSegment {
        /// The first.
        offset: u64,
        /// Their number.
        length_bytes: u64,
        /// Bytes of the segment, 0 if there is none.
        segment_bytes: u64,
    },
    /// The deferred reply is no use any more.
    #[error("the request is not waiting for this reply any more: its link has ended")]
    Stale,
    /// An object of another node.
    #[error("the {what} is of another node: use one of this node")]
    OtherNode {
        /// Which object.
        what: &'static str,
    },
    /// There can be no more.
    #[error("a node has {most} {what} at most: drop one")]
    TooMany {
        /// Of which.
        what: &'static str,
        /// As many as there may be.
        most: usize,
    },
    /// An option that cannot be.
    #[error("the option {setting} of a node cannot be {value}: see its documentation")]
    Setting {
        /// Which.
        setting: &'static str,
        /// Its value.
        value: u64,
    },
    /// A name that was found is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A handler could not reply. Told by the poll that ran it.
    #[error("a handler failed: {0}")]
    Handler(#[from] CallError),
    /// The peer is gone.
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// The peer could not be reached.
    #[error(transparent)]
    Connect(#[from] hamlyn::host::ConnectError),
    /// Something could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The message could not be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Messages could not be received.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Memory of a segment that senders have mapped could not be taken back from them.
    #[error(transparent)]
    Segment(#[from] hamlyn::region::ShareError),
    /// A port is gone.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] hamlyn::host::HostError),
}

/// A request is not sent yet for want of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Blocked {
    /// The translation has no credit: as many requests are outstanding as it may have.
    Credit,
    /// All 24 records of the link are in use.
    Record,
    /// The link has no room.
    Room,
    /// As many transfers are under way as a node may have.
    Transfer,
    /// The endpoint is not resident, and no other one can be unloaded yet.
    Frame,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Credit => "the translation has no credit; poll until a request is answered",
            Self::Record => "the link has 24 requests outstanding; poll until one is answered",
            Self::Room => "the link has no room; poll, and try again",
            Self::Transfer => "too many transfers are under way; poll until one has ended",
            Self::Frame => "the endpoint is not resident; poll, and try again",
        })
    }
}

/// A handler's reply was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// There is one reply to a request.
    #[error("this request has its reply already, or it was deferred")]
    AlreadyReplied,
    /// Replies and returned messages have no reply.
    #[error("this message is a reply: it has no reply itself")]
    NotARequest,
    /// See [`Error::TooManyArguments`].
    #[error("{count} arguments: a message has {ARGUMENTS_MAX} at most; send the rest as data")]
    TooManyArguments {
        /// Their number.
        count: usize,
    },
    /// See [`Error::ReservedHandler`].
    #[error("handler 0 is the one for messages that come back (`on_returned`): use 1 to 255")]
    ReservedHandler,
    /// See [`Error::TooLong`].
    #[error("{length_bytes} bytes of data: a reply has {most_bytes} at most")]
    TooLong {
        /// Their number.
        length_bytes: usize,
        /// As many as it may have.
        most_bytes: usize,
    },
    /// For the handler's own use: it could not do its work.
    #[error("{0}")]
    Failed(&'static str),
}

/// Bytes that are no name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// They are too few or too many.
    #[error("a name has {NAME_BYTES} bytes, this has {length_bytes}: it was cut, or is none")]
    Length {
        /// Their number.
        length_bytes: usize,
    },
    /// The first four are not those of a name.
    #[error("the bytes begin with {found:#x}: they are no name, or one of another version")]
    Version {
        /// The first four.
        found: u32,
    },
}

/// Why a message came back (`V 3.1`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The endpoint has another tag.
    #[error("the endpoint has another tag")]
    BadTag,
    /// The endpoint is gone.
    #[error("the endpoint is gone")]
    BadEndpoint,
    /// The endpoint has no handler of that number for this kind of message.
    #[error("the endpoint has no such handler for this kind of message")]
    BadHandler,
    /// The endpoint has no segment, or the place begins outside of it.
    #[error("the place begins outside of the segment, or there is none")]
    BadOffset,
    /// The place ends outside of the segment, or the message is too long for its link.
    #[error("the place ends outside of the segment, or the message is too long for its link")]
    BadLength,
    /// It was only refused for as long as [`NodeOptions::congestion`](crate::NodeOptions) says.
    #[error("the receiver had no room for it all the time")]
    Congestion,
    /// The link ended before an answer came. The message may have been delivered.
    #[error("the link ended before an answer came: it may have been delivered")]
    Unreachable,
    /// The endpoint got another segment or another tag while the data were on their way, and they
    /// are not there.
    #[error("the endpoint got another segment or tag while the data were on their way")]
    Moved,
}

const REASONS: [Reason; 8] = [
    Reason::BadTag,
    Reason::BadEndpoint,
    Reason::BadHandler,
    Reason::BadOffset,
    Reason::BadLength,
    Reason::Congestion,
    Reason::Unreachable,
    Reason::Moved,
];

impl Reason {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// Any number is a reason: one that this version does not know is that the endpoint is gone.
    pub(crate) fn of_code(code: u8) -> Self {
        let known = REASONS.get(usize::from(code)).copied();
        known.unwrap_or(Self::BadEndpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_keep_their_codes() {
        for (code, reason) in REASONS.into_iter().enumerate() {
            assert_eq!(usize::from(reason.code()), code);
            assert_eq!(Reason::of_code(code as u8), reason);
        }
        assert_eq!(Reason::of_code(255), Reason::BadEndpoint);
    }
}
