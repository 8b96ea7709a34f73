//! Errors. Each names the object and the remedy.

use hamlyn::{LinkEnd, OpenError, PeerLost, ReceiveError, TicketError};

use crate::limits::{HANDLERS_MAX, WORDS_MAX};

/// The layer could not do something.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The description of the group cannot be.
    #[error(
        "a group of {nodes} nodes has no node {me}: it has 1 to {most} nodes, numbered from 0 on"
    )]
    BadGroup {
        /// The number of this node.
        me: u32,
        /// The number of nodes.
        nodes: usize,
        /// As many as there may be.
        most: u32,
    },
    /// No handler has that number.
    #[error("there is no handler {handler}: they are numbered from 0 to {}", HANDLERS_MAX - 1)]
    BadHandler {
        /// The number.
        handler: u16,
    },
    /// An end point of that name is open at this node.
    #[error(
        "an end point of this name is open at this node: use it, or choose another name at all nodes"
    )]
    NameInUse,
    /// Two nodes say that they are the same interface.
    #[error("nodes {node} and {other} have the same interface: let each have one of its own")]
    SameInterface {
        /// One of them.
        node: u32,
        /// The other one.
        other: u32,
    },
    /// A handler panicked, or a section, and what they share may be changed in part.
    #[error(
        "a handler or a section panicked: this end point is of no use any more, open one of another name at all nodes"
    )]
    HandlerPanicked,
    /// Handlers need a thread of their own.
    #[error("the system has no thread left for the handlers: end some, or poll instead")]
    NoThread,
    /// No handlers may run by that signal.
    #[error(
        "signal {signal} cannot run handlers: choose SIGURG, SIGIO, SIGUSR1 or SIGUSR2, as others queue up, or stop or end processes"
    )]
    BadSignal {
        /// Its number.
        signal: i32,
    },
    /// The program, or another library in it, handles that signal.
    #[error("signal {signal} has a handler already: choose another one (`SignalOptions::signal`)")]
    SignalInUse {
        /// Its number.
        signal: i32,
    },
    /// Signals cannot run the handlers of this end point.
    #[error("signals cannot run the handlers of this end point: {reason}; or use upcalls")]
    NoSignals {
        /// Why not, and the remedy.
        reason: &'static str,
    },
    /// A section of the program lasts, or a handler runs.
    #[error("a section of this end point is open in this thread: end it first")]
    SectionOpen,
    /// A node is gone, and with it what is waited for.
    #[error("node {node} is gone ({end}): go on without it, or end the job")]
    Lost {
        /// Its number.
        node: u32,
        /// Why.
        end: LinkEnd,
    },
    /// The time was over.
    #[error("node {node} has not come to the barrier in time: wait longer")]
    BarrierTimeout {
        /// The first node that was missing.
        node: u32,
    },
    /// There is no memory for the area.
    #[error("no memory for an area of {area_bytes} bytes: choose a smaller one (`area_bytes`)")]
    NoMemory {
        /// Its bytes.
        area_bytes: usize,
    },
    /// A handler ran in a section that must not end yet, or a bit is not the program's.
    #[error(transparent)]
    Atom(#[from] AtomError),
    /// The message could not be sent.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// A node of the group could not be reached.
    #[error("node {node} could not be reached: {cause}")]
    Connect {
        /// Its number.
        node: u32,
        /// The reason.
        cause: hamlyn::host::ConnectError,
    },
    /// A node offers something else under the name of this end point.
    #[error("node {node} offers no end point of this version under that name: {cause}")]
    Offer {
        /// Its number.
        node: u32,
        /// The reason.
        cause: TicketError,
    },
    /// Something could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Messages could not be received.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] hamlyn::host::HostError),
}

/// A message was not injected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// The data do not lie in the area of the destination.
    #[error(
        "{length_bytes} bytes at {at} do not lie in the area of node {to}, which has {area_bytes}: let it have a larger one (`area_bytes`)"
    )]
    OutsideArea {
        /// For whom they were.
        to: u32,
        /// Their place there.
        at: usize,
        /// Their number.
        length_bytes: usize,
        /// Bytes of the area; 0 if there is none.
        area_bytes: u64,
    },
    /// There is no room for it at present.
    #[error("no room at present for a message to node {to}: try again, or wait longer")]
    WouldBlock {
        /// For whom it was.
        to: u32,
    },
    /// The memory that the destination lends is full, and it takes nothing.
    #[error(
        "node {to} takes nothing, and {waiting_bytes} bytes wait there of {limit_bytes}: let it lend more (`buffer_bytes_per_peer`), or go on when it has taken them"
    )]
    Quota {
        /// For whom it was.
        to: u32,
        /// Bytes that wait there.
        waiting_bytes: u64,
        /// Bytes that it lends.
        limit_bytes: u64,
    },
    /// The destination is gone.
    #[error("node {to} is gone ({end}): go on without it, or end the job")]
    Lost {
        /// For whom it was.
        to: u32,
        /// Why.
        end: LinkEnd,
    },
    /// The destination refused a message of before, so that what follows is out of order.
    #[error("node {to} refused a message ({reason}): its port has another group, or no room")]
    Refused {
        /// For whom it was.
        to: u32,
        /// Why.
        reason: hamlyn::engine::transport::Return,
    },
    /// No node has that number.
    #[error("there is no node {to} in a group of {nodes}: they are numbered from 0 on")]
    NoSuchNode {
        /// The number.
        to: u32,
        /// The number of nodes.
        nodes: u32,
    },
    /// No handler has that number.
    #[error("there is no handler {handler}: they are numbered from 0 to {}", HANDLERS_MAX - 1)]
    BadHandler {
        /// The number.
        handler: u16,
    },
    /// More than a message has.
    #[error(
        "{length_bytes} bytes in one message, which has {most_bytes} at most: send them in parts; {WORDS_MAX} words go as words, more as bytes"
    )]
    TooLong {
        /// The number of bytes.
        length_bytes: usize,
        /// As many as it may have.
        most_bytes: usize,
    },
    /// The interface could not send it.
    #[error(transparent)]
    Send(#[from] hamlyn::SendError),
}

/// A section cannot begin or end so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtomError {
    /// The handler's message is still to be extracted (`T 4.1`, dispose-failure).
    #[error("the section cannot end: extract the message of the handler first")]
    DisposeFailure,
    /// A bit that only the layer changes (`T 4.1`, protection-violation).
    #[error("the mask {mask:#x} has a bit of the layer: use interrupt-disable and timer-force")]
    KernelBit {
        /// The mask.
        mask: u8,
    },
}

impl From<PeerLost> for InjectError {
    fn from(lost: PeerLost) -> Self {
        Self::Send(lost.into())
    }
}
