//! What the conductor of a soak and its processes say to each other, in lines of JSON.

use serde::{Deserialize, Serialize};

/// One life of a process: the host, from 0, and the how manieth process it is there, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(super) struct Life {
    pub(super) host: usize,
    pub(super) number: u32,
}

/// What a process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// To begin: the first order.
    Begin {
        life: Life,
        /// How many hosts there are.
        hosts: usize,
        /// Who drives its interface, by the name of the strategy.
        strategy: String,
    },
    /// To send nothing new, until all that was sent has come.
    Stop,
    /// To end.
    Quit,
}

/// What a sender has to say of one connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) connection: u64,
    pub(super) from: Life,
    pub(super) to: Life,
    /// Why it ended before the end, if it did.
    pub(super) ended: Option<String>,
    pub(super) datagrams: u64,
    pub(super) tags: u64,
    pub(super) records: u64,
    /// Whether the last datagram came back.
    pub(super) datagram_came_back: bool,
    /// Tags that came back, or were never handed over, in order.
    pub(super) tags_came_back: Vec<u64>,
}

/// What a receiver has to say of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Received {
    pub(super) connection: u64,
    /// Datagrams and records, which come in order, each once, or it would be a fault.
    pub(super) datagrams: u64,
    pub(super) records: u64,
    /// All tags below this one, ...
    pub(super) tags_below: u64,
    /// ... and these.
    pub(super) tags_beyond: Vec<u64>,
}

/// What a process reports.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// It can be reached.
    Ready,
    /// Datagrams that each host has answered so far, and messages of all kinds that were received.
    Progress { answered: Vec<u64>, received: u64 },
    /// A connection is over, or the soak is.
    Sent(Sent),
    /// The same, at the other end.
    Received(Received),
    /// All that was sent has come, and all connections were reported.
    Drained,
    /// Something that must not be.
    Fault(String),
}
