//! Errors. Each names the object and the remedy.

use hamlyn_am::{Error, Reason};

use crate::mode::Mode;
use crate::refusal::Refusal;

/// An operation on a lock failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The server refused it. A lock that was held is held as before.
    #[error("{server} refused it: {refusal}")]
    Refused {
        /// The server.
        server: String,
        /// Its reason.
        refusal: Refusal,
    },
    /// It was not granted in time, and was cancelled.
    #[error("the lock was not granted in time: wait for longer, or try again")]
    TimedOut,
    /// The server has ended or has not taken requests for long: all locks that it has granted are
    /// lost.
    #[error("the server {server} is lost, and all locks of it: lock again when it is there")]
    ServerLost {
        /// The server.
        server: String,
        /// Why a request came back, if one did.
        reason: Option<Reason>,
    },
    /// Only a holder in PW or EX writes the value.
    #[error("a value is written by a lock in PW or EX, this one is in {mode:?}: convert it first")]
    NoValue {
        /// Its mode, if it is held.
        mode: Option<Mode>,
    },
    /// A value that is too long.
    #[error("{length_bytes} bytes: a value has {most_bytes} at most")]
    ValueTooLong {
        /// Its bytes.
        length_bytes: usize,
        /// As many as it may have.
        most_bytes: usize,
    },
    /// A name that is too long for any server.
    #[error("a name of {length_bytes} bytes: one has {most_bytes} at most")]
    NameTooLong {
        /// Its bytes.
        length_bytes: usize,
        /// As many as it may have.
        most_bytes: usize,
    },
    /// The servers that were given are none, or are given twice, or lack this one.
    #[error("the list of servers is wrong: {what}")]
    Servers {
        /// Its fault.
        what: &'static str,
    },
    /// A limit that cannot be.
    #[error("the limit {setting} cannot be {value}: see its documentation")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: usize,
    },
    /// The messages failed.
    #[error(transparent)]
    Messages(#[from] Error),
}
