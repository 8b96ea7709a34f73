//! Those who watch an interface receive: the receiving half tells them each thing it does.
//!
//! A half is watched from the time it is made, by a type. Nobody is the usual one: then no event is
//! made, and the half is compiled as if this module were not there. A simulator has a model judge
//! every packet this way (decision 0036). An observer changes nothing: it has no access to the
//! half. [`crate::send_observer`] is the other half's.

use core::fmt::Debug;
use core::ops::Range;

use crate::grant::{GrantId, Holder};
use crate::key::Key;
use crate::memory::{Area, LinkId, Payload};
use crate::notification::Notification;
use crate::packet::{Header, PortName, Short, SlotName};
use crate::port::{Arrived, PortOptions};
use crate::receive::{Received, ShortReceived};
use crate::refusal::{Refusal, Refusals};
use crate::slot::{QueueId, SlotOptions};

/// What a receiving half does. Of a packet two events tell: it came, and what became of it; nothing
/// but [`ReceiveEvent::Announced`] is between them.
pub enum ReceiveEvent<'a, A: Area> {
    /// Packets are let in from now on, or not.
    Enabled(bool),
    /// The owner opened a slot.
    SlotOpened {
        /// Its name.
        name: SlotName,
        /// What it was opened with.
        options: SlotOptions<A>,
    },
    /// The owner asked for a change of a slot.
    SlotChanged {
        /// The slot.
        name: SlotName,
        /// Which change.
        change: SlotChange,
        /// Whether the half said that the slot is open.
        was_open: bool,
    },
    /// The owner let others map a part of a slot.
    Granted {
        /// The grant.
        grant: GrantId,
        /// The slot.
        slot: SlotName,
        /// Which bytes of the slot.
        range: Range<u64>,
        /// Those who may store there.
        holder: Holder,
    },
    /// It ended a grant.
    GrantEnded(GrantId),
    /// It ended all grants of a peer.
    GrantsEndedOf(LinkId),
    /// The owner opened a port.
    PortOpened {
        /// Its name.
        name: PortName,
        /// What it was opened with.
        options: PortOptions,
    },
    /// The owner changed a port that was open.
    PortChanged {
        /// The port.
        name: PortName,
        /// Which change.
        change: PortChange,
    },
    /// The owner took out a message that waited at a port.
    MessagePopped {
        /// The port.
        name: PortName,
        /// The message.
        arrived: Arrived,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// A packet came.
    Came {
        /// The packet.
        header: &'a Header,
        /// Its bytes.
        payload: &'a dyn Payload<A>,
        /// Over which link.
        from: LinkId,
        /// The queue whose next notification is handed over.
        waiting: Option<QueueId>,
    },
    /// A short packet came to the fast path.
    CameShort {
        /// The packet.
        short: Short,
        /// The queue whose next notification is handed over.
        waiting: QueueId,
        /// Whether its entry is known, and its message is announced nowhere.
        is_awaited: bool,
    },
    /// An answer to a one-sided operation was sent as a whole.
    Answered(LinkId),
    /// A link is gone, with the answers that waited for it.
    LinkEnded(LinkId),
    /// A message was announced in a queue.
    Announced(QueueId, Notification),
    /// What became of the packet that came last.
    Done {
        /// The answer to its link.
        reception: Result<Received, Refusal>,
        /// All that the half has refused so far, this packet too.
        refusals: &'a Refusals,
    },
    /// What became of the short packet that came last; nothing, if the fast path left it.
    DoneShort(Option<ShortReceived>),
}

/// A change of a slot that is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotChange {
    /// It was closed.
    Closed,
    /// It has another key, and is not revoked.
    Rekeyed(Key),
    /// It was revoked.
    Revoked,
}

/// A change of a port that was open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortChange {
    /// It was closed.
    Closed,
    /// It has another key.
    Rekeyed(Key),
    /// It was parked, or that was ended.
    Parked(bool),
    /// It is in that set of ports, by the queue that stands for it, or in none.
    Joined(Option<QueueId>),
}

/// See the module.
pub trait ReceiveObserver<A: Area>: Debug {
    /// Whether it listens. If not, it is told nothing.
    const LISTENS: bool;

    /// The half does that.
    fn observe(&mut self, event: ReceiveEvent<'_, A>);
}

/// Nobody watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unobserved;

impl<A: Area> ReceiveObserver<A> for Unobserved {
    const LISTENS: bool = false;

    fn observe(&mut self, _: ReceiveEvent<'_, A>) {}
}
