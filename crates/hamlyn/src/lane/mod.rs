//! Lanes: buffers of one size for the messages of one peer.
//!
//! The receiver opens a [`Lane`] of n buffers and gives its [`LaneSeed`] to a peer, which becomes
//! its [`LaneSender`]. The sender fills any free buffer, without asking; the receiver reads the
//! message where it landed, and gives the buffer back, which is a store into the sender's memory: a
//! *credit*. So no message needs room that was not promised, several may be on their way at a time,
//! and they are received and given back in any order.
//!
//! Each buffer takes one message and no other until it was given back: one that comes nevertheless
//! is refused ([`Refusal::EntrySpent`]), and hurts nobody but its sender. A sender that breaks the
//! protocol otherwise ends its lane: the receiver's calls fail from then on, and name the reason.
//!
//! ```
//! use hamlyn::lane::{Lane, LaneOptions, LaneSender};
//! use hamlyn::{ReceiveError, SendError, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let here = hamlyn::open_unnamed()?;
//! let mut session = here.session();
//! let mut lane = Lane::open(&mut session, LaneOptions { buffers: 4, buffer_bytes: 1024 })?;
//! // Usually in another process, to which the bytes of the seed were sent.
//! let mut sender = LaneSender::connect(&mut session, &lane.seed(), Wait::Forever)?;
//! sender.send(&mut session, 7, b"hello", Wait::Forever)?;
//! let message = lane.recv(&mut session, Wait::Forever)?.ok_or("nothing came")?;
//! assert_eq!((message.tag(), lane.bytes(&message)), (7, &b"hello"[..]));
//! lane.give_back(&mut session, message);
//! # Ok(())
//! # }
//! ```
//!
//! A [`SharedLane`] is one pool of buffers for many peers.
//!
//! [`Refusal::EntrySpent`]: crate::engine::refusal::Refusal::EntrySpent

pub(crate) mod buffers;
mod receiver;
mod sender;
mod shared;
pub(crate) mod wire;

pub use receiver::{Lane, LaneMessage};
pub(crate) use sender::nothing_follows;
pub use sender::{Kept, LaneSender};
pub use shared::{SharedLane, SharedLaneOptions, SharedMessage};
pub use wire::{LaneSeed, SEED_BYTES};

use crate::error::OpenError;

/// Most buffers of a lane.
pub const BUFFERS_MAX: u16 = 4096;
/// Most bytes of a buffer.
pub const BUFFER_BYTES_MAX: u32 = 1 << 27;

/// Options of a lane. It takes `buffers * buffer_bytes` bytes of memory, each buffer rounded up to
/// a power of two of 64 bytes at least, of which it costs only what messages have touched; and
/// `buffers + 2` entries of the manager's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneOptions {
    /// Number of buffers, 1 to 4,096. Default 16.
    pub buffers: u16,
    /// Bytes of each, 1 to 128 MiB. Default 4,096.
    pub buffer_bytes: u32,
}

impl Default for LaneOptions {
    fn default() -> Self {
        Self {
            buffers: 16,
            buffer_bytes: 4096,
        }
    }
}

impl LaneOptions {
    fn check(&self) -> Result<(), OpenError> {
        check_sizes(
            [
                ("a lane's buffers", self.buffers.into(), BUFFERS_MAX.into()),
                (
                    "the bytes of a lane's buffers",
                    self.buffer_bytes,
                    BUFFER_BYTES_MAX,
                ),
            ],
            "a lane has 1 to 4,096 buffers of 1 byte to 128 MiB",
        )
    }
}

/// Refuses settings that are 0 or more than the most, each with its name.
fn check_sizes(
    settings: [(&'static str, u32, u32); 2],
    reason: &'static str,
) -> Result<(), OpenError> {
    for (setting, value, most) in settings {
        if !(1..=most).contains(&value) {
            let value = u64::from(value);
            return Err(OpenError::Setting {
                setting,
                value,
                reason,
            });
        }
    }
    Ok(())
}
