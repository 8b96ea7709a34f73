//! Options of servers and clients.

use hamlyn_am::Tag;

use crate::error::LockError;

/// Limits of what clients can make a server pay for. A request that goes beyond one is refused by
/// name ([`Refusal`](crate::Refusal)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clients, 1 to 65,535. Default 4,096.
    pub clients: usize,
    /// Clients of one process (one link), 1 to 24: each takes one of the 31 requests that a link
    /// may have outstanding. Default 8.
    pub clients_of_link: usize,
    /// Locks of a client, at least 1. Default 1,024.
    pub locks: usize,
    /// Locks of a client that wait at a time, at least 1. Default 64.
    pub waiting: usize,
    /// Locks of a resource, held or waiting; one that is converted counts twice while it waits. At
    /// least 2. Default 1,024.
    pub locks_of_resource: usize,
    /// Resources of the server that have a lock, at least 1. Default 65,536.
    pub resources: usize,
    /// Bytes of a name, 1 to 200. Default 64.
    pub name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 4_096,
            clients_of_link: 8,
            locks: 1_024,
            waiting: 64,
            locks_of_resource: 1_024,
            resources: 65_536,
            name_bytes: 64,
        }
    }
}

/// Bytes of the longest name that a server can be told to take.
pub(crate) const NAME_BYTES_MAX: usize = 200;

impl Limits {
    pub(crate) fn check(&self) -> Result<(), LockError> {
        let settings = [
            ("clients", self.clients, 1..=65_535),
            ("clients_of_link", self.clients_of_link, 1..=24),
            ("locks", self.locks, 1..=1 << 24),
            ("waiting", self.waiting, 1..=1 << 24),
            ("locks_of_resource", self.locks_of_resource, 2..=1 << 24),
            ("resources", self.resources, 1..=1 << 24),
            ("name_bytes", self.name_bytes, 1..=NAME_BYTES_MAX),
        ];
        let bad = settings
            .into_iter()
            .find(|(_, value, range)| !range.contains(value));
        match bad {
            Some((setting, value, _)) => Err(LockError::Setting { setting, value }),
            None => Ok(()),
        }
    }
}

/// Options of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServerOptions {
    /// The limits.
    pub limits: Limits,
    /// The tag that clients must know. Default [`Tag::Any`]: every program that reaches the node may lock.
    pub tag: Tag,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            tag: Tag::Any,
        }
    }
}
