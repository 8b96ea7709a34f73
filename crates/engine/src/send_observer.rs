//! Those who watch an interface send; as [`crate::receive_observer`] has it of the receiving half.

use core::fmt::Debug;

use crate::memory::{Area, LinkId, Part};
use crate::packet::{Header, Short};
use crate::receive_observer::Unobserved;
use crate::terminus::{Completion, SendHandle, TerminusId};
use crate::transmit::Message;

/// What a transmitting half does. Packets that leave between [`SendEvent::Posting`] and
/// [`SendEvent::Posted`] may be that message's.
pub enum SendEvent<'a, A: Area> {
    /// The owner opened a terminus.
    TerminusOpened {
        /// Its name.
        terminus: TerminusId,
        /// Messages that may wait in it for one link.
        queue_entries: usize,
    },
    /// The owner closed it.
    TerminusClosed(TerminusId),
    /// The owner posts a message.
    Posting {
        /// The message.
        message: &'a Message,
        /// Its metadata.
        metadata: &'a [u8],
        /// Its data.
        data: PostedData<'a, A>,
    },
    /// What became of that: the number of the message, if it was taken.
    Posted {
        /// Where it was posted.
        terminus: TerminusId,
        /// The number.
        sequence: Option<u64>,
    },
    /// The owner begins a message that is sent from where it lies.
    StreamingBegun {
        /// Where it is posted.
        terminus: TerminusId,
        /// The message.
        message: &'a Message,
        /// Its metadata.
        metadata: &'a [u8],
    },
    /// It goes on with one that it began.
    StreamingContinued {
        /// Where it was posted.
        terminus: TerminusId,
        /// Over which link it goes.
        link: LinkId,
        /// All of its data, each time.
        data: &'a [u8],
    },
    /// One of these is all sent.
    StreamingFinished(SendHandle),
    /// A packet left.
    Left {
        /// Whose message it is of.
        terminus: TerminusId,
        /// Over which link.
        link: LinkId,
        /// The packet.
        header: &'a Header,
        /// Its metadata.
        metadata: &'a [u8],
        /// Its data.
        parts: &'a [Part<'a, A>],
    },
    /// Short packets left, each a message. Of several this is the last.
    LeftShort {
        /// The packet.
        short: Short,
        /// How many.
        count: usize,
        /// Over which link.
        link: LinkId,
        /// The last message.
        handle: SendHandle,
    },
    /// A link ended, or was found to be gone: what waits for it fails.
    LinkEnded(LinkId),
    /// The first message that waits there is one that the link cannot carry any more: it fails.
    FirstFailed {
        /// Whose message it is.
        terminus: TerminusId,
        /// The link.
        link: LinkId,
    },
}

/// The data of a message that is posted.
#[derive(Clone, Copy)]
pub enum PostedData<'a, A> {
    /// They go with it.
    Parts(&'a [Part<'a, A>]),
    /// They are in their place already, so many.
    Placed(u32),
}

/// As [`ReceiveObserver`](crate::receive_observer::ReceiveObserver), of a transmitting half.
pub trait SendObserver<A: Area>: Debug {
    /// Whether it listens. If not, it is told nothing.
    const LISTENS: bool;

    /// The half does that.
    fn observe(&mut self, event: SendEvent<'_, A>);

    /// The owner was told what has become of a message.
    fn told(&self, handle: SendHandle, completion: Completion);
}

impl<A: Area> SendObserver<A> for Unobserved {
    const LISTENS: bool = false;

    fn observe(&mut self, _: SendEvent<'_, A>) {}

    fn told(&self, _: SendHandle, _: Completion) {}
}
