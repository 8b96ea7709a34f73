//! Errors. Each names the object and the remedy.

use crate::id::{NODES_MAX, RegionId};

/// Bytes of a region, at most.
pub const REGION_BYTES_MAX: usize = 1 << 20;

/// An operation failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrlError {
    /// No such region.
    #[error("there is no {region}: it was never created, or it was destroyed")]
    NoRegion {
        /// Its name.
        region: RegionId,
    },
    /// A node has the region mapped, so it is not destroyed.
    #[error(
        "node {node} has {region} mapped: unmap it there (drop its `Region`s), then destroy it"
    )]
    Mapped {
        /// Its name.
        region: RegionId,
        /// The first node that was found to have it mapped.
        node: u32,
    },
    /// An operation of this node is open, which the new one would have to wait for.
    #[error("{region} has an operation open on this node: end it first (drop its guard)")]
    Open {
        /// Its name.
        region: RegionId,
    },
    /// There is no such operation to end.
    #[error("no such operation is open on {region}: begin it first")]
    NotOpen {
        /// Its name.
        region: RegionId,
    },
    /// The home of the region is lost, or the node that held the only copy.
    #[error("{region} is lost with node {node}, {}: create another one",
        if *node == region.home() { "its home" } else { "which had the only copy" })]
    Lost {
        /// Its name.
        region: RegionId,
        /// The node that is lost.
        node: u32,
    },
    /// Operations of all nodes together are impossible from now on.
    #[error("node {node} is lost, and cannot come to an operation of all nodes: end the program")]
    NodeLost {
        /// The node that is lost.
        node: u32,
    },
    /// More bytes than may be.
    #[error("{bytes} bytes: {what} has {most_bytes} at most, so divide it")]
    TooLarge {
        /// A region, or a broadcast.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// As many as it may have.
        most_bytes: usize,
    },
    /// There is no memory.
    #[error("no memory for a region of {bytes} bytes: destroy or unmap others")]
    Memory {
        /// Its bytes.
        bytes: usize,
    },
    /// The region has other bytes than a sequence of these values.
    #[error("{bytes} bytes are no sequence of values of {value_bytes} bytes: use another type")]
    Values {
        /// Bytes of the region.
        bytes: usize,
        /// Bytes of a value.
        value_bytes: usize,
    },
    /// A broadcast has another length than its receiver expects.
    #[error("a broadcast of {bytes} bytes was received as one of {expected_bytes}: agree on one")]
    BroadcastLength {
        /// Its bytes.
        bytes: usize,
        /// Bytes that the receiver expected.
        expected_bytes: usize,
    },
    /// The operation did not end within the time of the options.
    #[error(
        "{what} was not granted in time: a node that is to answer is stopped or does not call the library; wait longer (`CrlOptions::patience`)"
    )]
    TimedOut {
        /// The operation.
        what: &'static str,
    },
    /// The other nodes were not met.
    #[error("this node cannot join its program: {cause}")]
    Join {
        /// The reason.
        cause: String,
    },
    /// Messages cannot be carried any more.
    #[error("messages of this node cannot be carried any more, {cause}: open another one")]
    Messages {
        /// The reason.
        cause: String,
    },
    /// The number of nodes cannot be.
    #[error("node {me} of {nodes}: a program has 1 to {NODES_MAX} nodes, numbered from 0 on")]
    Nodes {
        /// The number of this node.
        me: u32,
        /// Of so many.
        nodes: u32,
    },
}

impl CrlError {
    pub(crate) fn join(cause: &(impl std::fmt::Display + ?Sized)) -> Self {
        let cause = cause.to_string();
        Self::Join { cause }
    }
}
