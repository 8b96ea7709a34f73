//! Errors of the library. Each names the object and, where there is one, the remedy.

use hamlyn_engine::metadata::BadEntryCount;
use hamlyn_engine::notification::{Overrun, QueueError};
use hamlyn_engine::port::PortError;
use hamlyn_engine::slot::SlotError;
use hamlyn_engine::terminus::{PostError, TerminusError};
use hamlyn_host::{Destination, HostError};

use crate::forks::from_forked;
use crate::group::member::MemberError;
pub use crate::peer::{PeerLost, PeerName, Undelivered};
use crate::protocol::Protocol;
use crate::ticket::{OutsideTicket, TicketError};

/// Not everything that was sent before a fence is known to be in its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// Packets that were sent since the fence before were refused. Packets that were sent to the
    /// same interfaces and not refused are in their place, unless the next fence says otherwise.
    #[error("{count} of the packets that were sent were refused, the last: {last}")]
    Refused {
        /// How many packets. A message may have several.
        count: u64,
        /// The last of one link; [`crate::Interface::next_undelivered`] tells of each of them.
        last: Undelivered,
    },
    /// The peer is gone, and it is not known what it has taken.
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// The peer had not taken everything when the time was over.
    #[error(
        "{} had not taken everything that was sent to it when the time was over: wait longer, or see whether it still receives",
        PeerName(*peer)
    )]
    TimedOut {
        /// Who; of several, one.
        peer: Destination,
    },
    /// The link ended so long ago that it is not known whither it led.
    #[error("there is no such link: it ended, and another has its place")]
    NoSuchLink,
    /// What waited could not be sent, as its sender says.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Something could not be opened or set up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The host could not provide it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A slot could not be opened.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A terminus could not be opened or changed.
    #[error(transparent)]
    Terminus(#[from] TerminusError),
    /// A notification queue could not be opened.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A metadata area could not be made.
    #[error(transparent)]
    Metadata(#[from] BadEntryCount),
    /// The memory of a publisher could not be had.
    #[error(transparent)]
    Pool(#[from] hamlyn_ring::pool::PoolError),
    /// The manager's notification queue has no room for that many more messages.
    #[error(
        "{needed} more notifications may be outstanding, but the manager's queue of {capacity} has room for {left}: open the manager with a longer queue"
    )]
    QueueRoom {
        /// Notifications that the new end point may have outstanding.
        needed: usize,
        /// Length of the queue.
        capacity: usize,
        /// What is left of it.
        left: usize,
    },
    /// A service for more clients than the manager's notification queue has room for.
    #[error(
        "a service of {clients} clients with {outstanding} calls each may have {needed} notifications outstanding, but the manager's queue has {capacity} entries: bind it for fewer clients or calls, or open the manager with more queue entries"
    )]
    ServiceRoom {
        /// Clients at a time.
        clients: u16,
        /// Calls that each may have outstanding.
        outstanding: u16,
        /// Notifications that all of them may have outstanding.
        needed: usize,
        /// Length of the queue.
        capacity: usize,
    },
    /// An end point of this manager is bound to that item already.
    #[error(
        "an end point is bound to the item {item:?} already: drop it first, or choose another item"
    )]
    ItemTaken {
        /// Which item.
        item: String,
    },
    /// An item to which nothing can be bound.
    #[error("nothing can be bound to the item {item:?}: {reason}")]
    BadItem {
        /// Which item.
        item: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A setting that cannot be used.
    #[error("{setting} cannot be {value}: {reason}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// What was asked.
        value: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// A message was not sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// It would have had to wait longer than allowed; nothing was sent.
    #[error("no room at present for a message to {}: try again, or wait longer", PeerName(*peer))]
    WouldBlock {
        /// Whom it was for.
        peer: Destination,
    },
    /// The time was over when the message was partly sent: the receiver has a part
    /// of it and will not be notified. It must re-arm its entry.
    #[error(
        "the message to {} was cut after {sent_bytes} bytes: its receiver must re-arm the entry", PeerName(*peer)
    )]
    Cut {
        /// Whom it was for.
        peer: Destination,
        /// Bytes sent.
        sent_bytes: u64,
    },
    /// The peer is gone.
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// The message does not lie in the ticket's bounds.
    #[error(transparent)]
    OutsideTicket(#[from] OutsideTicket),
    /// The terminus refused it.
    #[error(transparent)]
    Refused(#[from] PostError),
    /// A record is larger than the receiver will ever make room for.
    #[error(
        "a record of {length_bytes} bytes, but the receiver takes at most {limit_bytes}: send it in parts, or raise the receiver's limit"
    )]
    RecordTooLarge {
        /// Length of the record.
        length_bytes: u64,
        /// What the receiver allows.
        limit_bytes: u64,
    },
    /// The receiving end closed the stream.
    #[error("the receiver closed the stream")]
    ClosedByReceiver,
    /// The ticket is not one by which stores are counted.
    #[error(
        "the ticket of {} names no entry of 64 bits by which stores are counted: ask for one of a slot that counts stores", PeerName(*peer)
    )]
    NotCounted {
        /// Whose ticket it is.
        peer: Destination,
    },
    /// This end point was closed, or everything of its share was sent.
    #[error("this sender is finished")]
    Finished,
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl SendError {
    /// Whether the message can only be sent by a call that may send a part of it.
    pub(crate) fn is_too_long_to_queue(&self) -> bool {
        matches!(self, Self::Refused(PostError::TooLongToQueue { .. }))
    }
}

/// A message that was given to an interface was not sent; nothing of it was. Its bytes are given
/// back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotSent {
    /// The reason.
    pub error: SendError,
    /// The bytes.
    pub data: Vec<u8>,
}

/// Receiving failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// Notifications were lost.
    #[error(transparent)]
    Overrun(#[from] Overrun),
    /// The only peer that could have sent it is gone. Other losses are no errors: see
    /// [`crate::Manager::next_event`].
    #[error(transparent)]
    PeerLost(#[from] PeerLost),
    /// The sender closed the stream, or the publisher ended, and everything it sent has been
    /// received.
    #[error("the sending end was closed: nothing more comes")]
    Closed,
    /// A sender that may write here wrote something that its protocol does not allow.
    #[error("the sender's message breaks the {protocol} protocol: {what}")]
    Malformed {
        /// Which protocol.
        protocol: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// The sender of a stream ended, and some of what it had accepted was never sent: it was
    /// dropped while this receiver was busy, or failed between two records. All that came before
    /// was received.
    #[error(
        "the sender ended before all that it had accepted was sent: flush or close it before it ends"
    )]
    Incomplete,
    /// The end point is not ready: re-arm it first.
    #[error("the receiver is not ready: make it ready before receiving")]
    NotReady,
    /// More memory for the end point could not be had.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Waiting failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// An end point could not be connected to: its address leads nowhere, or a ticket or seed could not
/// be made usable here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The bytes are no ticket or seed.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The bytes under the item of a group are not a member.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// A seed's other fields are impossible.
    #[error("the seed is damaged: {what}")]
    Seed {
        /// What is wrong.
        what: &'static str,
    },
    /// The peer could not be reached, or has bound nothing to that item.
    #[error(transparent)]
    Reach(#[from] hamlyn_host::ConnectError),
    /// No address of an end point.
    #[error("{to:?} is no address of an end point: it is name/item, or host/name/item")]
    Address {
        /// What was given.
        to: String,
    },
    /// What is offered there is no end point.
    #[error("{to} offers bytes that are no end point ({what}): fetch them with `Manager::ask`")]
    NotBound {
        /// The address.
        to: String,
        /// What is wrong with them.
        what: &'static str,
    },
    /// The end point speaks another protocol.
    #[error("{to} is a {bound}, not a {asked}: connect to it as a {bound}")]
    OtherProtocol {
        /// The address.
        to: String,
        /// What is there.
        bound: Protocol,
        /// What was asked for.
        asked: Protocol,
    },
    /// The end point carries another type.
    #[error("{to} carries {bound}, not {asked}: both programs must name the same type")]
    OtherType {
        /// The address.
        to: String,
        /// What is there.
        bound: String,
        /// What was asked for.
        asked: String,
    },
    /// The program there offers its end points in another version.
    #[error(
        "{to} is offered in version {theirs}, this program knows version {ours}: update the older program"
    )]
    Version {
        /// The address.
        to: String,
        /// Its version.
        theirs: u8,
        /// Ours.
        ours: u8,
    },
    /// The end point is for one sender, or its members for one each, and all were connected to
    /// before.
    #[error(
        "{to} has been connected to already: it is for one sender; let its program bind another"
    )]
    Taken {
        /// The address.
        to: String,
    },
    /// Something of ours could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The first message could not be sent.
    #[error(transparent)]
    Send(#[from] SendError),
}

from_forked! {
    FenceError: Self::Host;
    OpenError: Self::Host;
    SendError: Self::Host;
    ReceiveError: Self::Host;
    ConnectError: Self::Reach;
}
