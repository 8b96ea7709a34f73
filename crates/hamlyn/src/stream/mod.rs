//! The stream protocol (`Hamlyn 3.3`): records, one way, from one sender to one
//! receiver, in order, without a copy at the receiver.
//!
//! The receiver's memory is an *extent*: pieces of equal size, a one-shot
//! metadata entry for each. The sender fills pieces in order, so it knows every ticket it will
//! ever use, and all that comes back is a count of pieces released. A record
//! that is longer than a piece takes several that lie side by side; several small ones may share a piece.
//! When the receiver holds on to all pieces, or a record is longer than the
//! extent, the stream moves to a larger extent, up to the receiver's limit.
//!
//! What the sender writes is hostile to the receiver and the other way round: positions, kinds
//! and lengths are checked, and whoever breaks the protocol breaks only this stream.

mod control;
mod extent;
mod options;
mod receiver;
mod sender;
mod wire;

pub use options::StreamOptions;
pub use receiver::{Receiver, Record};
pub use sender::Sender;
pub use wire::{SEED_BYTES, StreamSeed};
