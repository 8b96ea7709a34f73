//! The state of a link to another host: for people, and for programs that choose by it. Reading it
//! changes nothing.

use std::net::SocketAddr;

use hamlyn_engine::transport::{CloseReason, PathStatistics, Statistics};

/// A link to another host, as one of its sides sees it at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConnectionState {
    /// Where this side's frames come from, over its first path.
    pub local: SocketAddr,
    /// Where they go.
    pub peer: SocketAddr,
    /// Whether frames are encrypted and authenticated; otherwise they are in the clear.
    pub is_encrypted: bool,
    /// How it ended, if it has.
    pub end: Option<CloseReason>,
    /// The longest frame at present, in bytes: what the ways are known to carry.
    pub frame_bytes: usize,
    /// What the transport did. The counters never go down.
    pub transport: Statistics,
    /// Packets that came back, were not fetched, and were forgotten because there were too many.
    /// The counter never goes down.
    pub forgotten: u64,
    /// What counts of each path: round trips, losses.
    pub paths: Vec<PathStatistics>,
}
