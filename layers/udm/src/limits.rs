//! Limits.

/// Words that a message has in one cell: with the header and the handler these are the paper's
/// sixteen (`T 4.1`).
pub const WORDS_MAX: usize = 14;
/// Their bytes.
pub(crate) const SHORT_BYTES_MAX: usize = WORDS_MAX * size_of::<u32>();
/// Bytes of a message at most, between processes of one host; between hosts as many as a packet of
/// the link has.
pub const BYTES_MAX: usize = 4096;
/// Bytes of data in a message of the layer that brings some for an area, on one host.
pub(crate) const BULK_PIECE_BYTES_MAX: usize = 32 << 10;
/// Handlers of an end point, numbered from 0 on. Those after them are the layer's.
pub const HANDLERS_MAX: u16 = HANDLERS_OF_PORT - 2;
pub(crate) const HANDLERS_OF_PORT: u16 = 1 << 12;
/// The handler of barriers.
pub(crate) const BARRIER: u16 = HANDLERS_MAX;
/// The handler of data for an area.
pub(crate) const BULK: u16 = HANDLERS_MAX + 1;
/// Nodes of a group.
pub const NODES_MAX: u32 = 1 << 16;
/// Messages that are taken in one go.
pub(crate) const VISIT: usize = 64;
/// Visits to messages that are at hand, after which those that come are left for later.
pub(crate) const VISITS_MAX: usize = 64;
