//! Reasons for which a server refuses.

/// Why a server refused an operation: the lock is as it was before.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The lock cannot be had at once.
    #[error("another lock is in the way")]
    Busy,
    /// The client would wait for itself.
    #[error("waiting would close a circle of clients that wait for each other: release locks")]
    Deadlock,
    /// See [`Limits::locks`](crate::Limits::locks).
    #[error("the client has as many locks as it may have: release one")]
    TooManyLocks,
    /// See [`Limits::waiting`](crate::Limits::waiting).
    #[error("as many locks of the client wait as may: release one")]
    TooManyWaiting,
    /// See [`Limits::locks_of_resource`](crate::Limits::locks_of_resource).
    #[error("the resource has as many locks as it may have: try again later")]
    ResourceFull,
    /// See [`Limits::resources`](crate::Limits::resources).
    #[error("the server has as many resources as it may have: try again later")]
    TooManyResources,
    /// See [`Limits::name_bytes`](crate::Limits::name_bytes).
    #[error("the name is longer than the server takes: use a shorter one")]
    NameTooLong,
    /// See [`Limits::clients`](crate::Limits::clients).
    #[error("the server has as many clients as it may have: try again later")]
    TooManyClients,
    /// See [`Limits::clients_of_link`](crate::Limits::clients_of_link).
    #[error("this process has as many clients of the server as it may have: drop one")]
    TooManyClientsOfLink,
    /// The client was given other servers than this one.
    #[error("the server is one of other servers than the client was given: give all the same")]
    OtherServers,
    /// The client speaks another version.
    #[error("the server speaks another version: use the same")]
    Version,
    /// The server does not know the client.
    #[error("the server has ended the client: its locks are released")]
    NoSuchClient,
    /// The client has no such lock.
    #[error("the client has no such lock")]
    NoSuchLock,
    /// The client has another lock of that handle.
    #[error("the client has another lock of that handle")]
    HandleInUse,
    /// The lock waits already.
    #[error("the lock waits already: cancel that, or release it")]
    Waits,
    /// The request is none.
    #[error("the request is none")]
    BadRequest,
}

const REFUSALS: [Refusal; 16] = [
    Refusal::Busy,
    Refusal::Deadlock,
    Refusal::TooManyLocks,
    Refusal::TooManyWaiting,
    Refusal::ResourceFull,
    Refusal::TooManyResources,
    Refusal::NameTooLong,
    Refusal::TooManyClients,
    Refusal::TooManyClientsOfLink,
    Refusal::OtherServers,
    Refusal::Version,
    Refusal::NoSuchClient,
    Refusal::NoSuchLock,
    Refusal::HandleInUse,
    Refusal::Waits,
    Refusal::BadRequest,
];

impl Refusal {
    pub(crate) fn code(self) -> u32 {
        self as u32 + 1
    }

    pub(crate) fn of_code(code: u32) -> Self {
        let known = REFUSALS.get((code as usize).wrapping_sub(1)).copied();
        known.unwrap_or(Self::BadRequest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_keep_their_codes() {
        for (code, refusal) in (1..).zip(REFUSALS) {
            assert_eq!(refusal.code(), code);
            assert_eq!(Refusal::of_code(code), refusal);
        }
    }
}
