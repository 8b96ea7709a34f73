//! What became of packets that were let in.

use crate::memory::LinkId;
use crate::notification::Notification;
use crate::packet::{Address, Header};

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

/// A packet that is no deposit was let in.
pub(crate) enum NoDeposit {
    /// It was a request.
    Asked,
    /// It was a message to a port, and waits there.
    Queued,
    /// It was the message that was waited for.
    Handed,
}

impl NoDeposit {
    /// The same for the link, of a packet with that header.
    #[inline]
    pub(crate) fn received(self, from: LinkId, header: &Header) -> Received {
        match self {
            Self::Asked => Received::Asked,
            Self::Queued => Received::Queued,
            Self::Handed => Received::Handed(Notification {
                slot: header.slot,
                metadata_index: header.metadata_index,
                word: header.word << 32 | u64::from(header.length_bytes),
                from,
            }),
        }
    }
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
