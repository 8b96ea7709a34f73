//! What became of packets that were let in.

use crate::memory::LinkId;
use crate::notification::Notification;
use crate::packet::Address;

/// What became of a packet that was let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Deposited; more of its message or group is to come.
    Deposited,
    /// Deposited, and its message or group is complete; announced, if it was to be.
    Complete,
    /// Complete, and the announcement is here instead of in the queue: see
    /// [`Receiver::receive`](crate::receive::Receiver::receive).
    Handed(Notification),
    /// A message to a port, which waits in its queue.
    Queued,
    /// A one-sided operation was asked for, and its answer waits to be sent
    /// ([`Receiver::answer`](crate::receive::Receiver::answer)).
    Asked,
}

/// A short packet that came the fast path
/// ([`Receiver::receive_short`](crate::receive::Receiver::receive_short)): deposited, complete, and
/// to be announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortReceived {
    /// Its address.
    pub to: Address,
    /// What its notification says: in fast mode its word, otherwise its entry's receive class. Zero
    /// if it was awaited: then nothing is announced.
    pub word: u64,
    /// Its metadata, unless it is in fast mode.
    pub metadata: u64,
    /// Where in the slot its data begin, unless it is in fast mode.
    pub offset: u64,
    /// How many bytes of data, unless it is in fast mode.
    pub length_bytes: usize,
}

impl ShortReceived {
    /// Its notification, if it came over that link.
    #[inline(always)]
    pub const fn notification(&self, from: LinkId) -> Notification {
        Notification {
            slot: self.to.slot(),
            metadata_index: self.to.metadata_index(),
            word: self.word,
            from,
        }
    }
}
