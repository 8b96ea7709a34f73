//! Why a call has no reply.

use hamlyn_host::HostError;

use crate::error::SendError;
use crate::forks::from_forked;
use crate::peer::PeerLost;

/// A call has no reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request is longer than the service takes.
    #[error(
        "a request of {length_bytes} bytes, but {to} takes at most {limit_bytes}: send it in parts, or over a stream"
    )]
    TooLong {
        /// The service.
        to: String,
        /// Length of the request.
        length_bytes: usize,
        /// The longest.
        limit_bytes: u32,
    },
    /// The time was over. If the call had been sent, it is cancelled; the server may have carried
    /// it out.
    #[error("{to} did not answer in time: wait for longer, or ask again")]
    TimedOut {
        /// The service.
        to: String,
    },
    /// As many calls as may be outstanding are, and none of their replies came in time to make room
    /// for another.
    #[error(
        "{outstanding} calls of {to} are outstanding, which is as many as may be: take a reply, drop a call, or wait for longer"
    )]
    AllOutstanding {
        /// The service.
        to: String,
        /// How many.
        outstanding: u16,
    },
    /// The reply to this call was taken before, or it is another client's call.
    #[error(
        "this call of {to} has no reply to come: it was taken before, or the call is another client's"
    )]
    NotPending {
        /// The service.
        to: String,
    },
    /// All calls that may be outstanding have replies that are kept.
    #[error(
        "replies to all {outstanding} calls of {to} that may be outstanding are kept: drop one"
    )]
    AllKept {
        /// The service.
        to: String,
        /// How many.
        outstanding: u16,
    },
    /// The server dropped the call without an answer.
    #[error("{to} dropped the call without an answer")]
    Unanswered {
        /// The service.
        to: String,
    },
    /// The service ended, or dismissed this client.
    #[error("{to} has ended or dismissed this client: connect again")]
    Dismissed {
        /// The service.
        to: String,
    },
    /// The server is gone.
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// The server wrote something that the protocol does not allow.
    #[error("{to} broke the service protocol: {what}")]
    Malformed {
        /// The service.
        to: String,
        /// The fault that was found.
        what: &'static str,
    },
    /// The request could not be sent.
    #[error(transparent)]
    Send(SendError),
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

from_forked! {
    CallError: Self::Host;
}
