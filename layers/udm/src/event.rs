//! Events, counts, and the case in which a node is.

use hamlyn::engine::transport::Return;
use hamlyn::{Direction, LinkEnd};

/// Something that no call is bound to. Each is told once.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A node is gone, and its messages were taken out of the network: handlers of the last ones may
    /// still be to run.
    Lost {
        /// Its number.
        node: u32,
        /// Why.
        end: LinkEnd,
    },
    /// A node has refused a message of this one, for a port of the group.
    Refused {
        /// Its number.
        node: u32,
        /// Why.
        reason: Return,
    },
    /// A node takes nothing, and messages for it fill half of the memory that it lends; or this one
    /// took nothing of another's.
    Buffering {
        /// The number of the other node.
        node: u32,
        /// The way of these messages.
        direction: Direction,
        /// Bytes that wait there.
        waiting_bytes: u64,
        /// Bytes of that memory.
        limit_bytes: u64,
    },
    /// After that: all of them were taken.
    Drained {
        /// The number of the other node.
        node: u32,
        /// The way of these messages.
        direction: Direction,
    },
    /// Events came faster than they were asked for, and so many are not told.
    Missed {
        /// Their number.
        count: u64,
    },
}

/// The case of delivery to a node (`T 1`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Messages go to where its processor takes them.
    Direct,
    /// Messages wait in its memory.
    Buffered {
        /// Their bytes: an upper bound.
        bytes: u64,
    },
}

/// The counts of an end point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Messages injected.
    pub sent: u64,
    /// Messages extracted.
    pub received: u64,
    /// Handlers that interrupted the program.
    pub upcalls: u64,
    /// Sections at whose end handlers ran that had waited for it.
    pub extended: u64,
    /// Messages for handlers that nobody has set: they were disposed of.
    pub unhandled: u64,
    /// Messages of interfaces that are no nodes of the group: they were disposed of.
    pub strangers: u64,
    /// Messages of nodes that do not follow the rules, and the rest of data of which a part was
    /// refused: they were disposed of.
    pub wrong: u64,
}
