//! What happens to an interface that no call is bound to: peers come and go, messages are refused,
//! notifications are lost. A receive does not fail because of any of it; a program that cares asks
//! here.

use std::fmt;

use crate::peer::{LinkEnd, PeerIdentity, Undelivered};

/// The way of messages that wait in the memory which their receiver lends for those that it does
/// not take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Those of this program to the peer.
    Outgoing,
    /// Those of the peer to this program.
    Incoming,
}

/// What happened. Each is told once, peers in the order in which they came and went.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// There is a link to a peer, which either side made.
    PeerArrived {
        /// Who it is, as the kernel or the handshake vouches.
        peer: PeerIdentity,
    },
    /// A peer is gone, and all that it had sent has been taken or is about to be.
    PeerLeft {
        /// Who it was.
        peer: PeerIdentity,
        /// Why.
        end: LinkEnd,
    },
    /// A packet of this interface was not delivered. The newest of each link are kept until the
    /// program asks for them. On one host a refusal alone wakes no task that waits for events: see
    /// [`crate::Interface::next_undelivered`].
    Refused(Undelivered),
    /// Messages between a peer of this host and this program fill half of the memory that their
    /// receiver lends for those which it does not take. From three quarters on, calls of the sender
    /// that wait for room are slowed; once it is full, its messages to this receiver find no room.
    ///
    /// Both ends are told, by a look at their links: the sender when that much waits, the receiver
    /// when it comes there while it takes messages. So this wakes no task that waits for events.
    Buffering {
        /// The other end: their sender, or the one that is to take them.
        peer: PeerIdentity,
        /// Which of these.
        direction: Direction,
        /// Bytes that wait there. Those that come in are counted by the peer, which may lie.
        waiting_bytes: u64,
        /// Bytes for which there is room.
        limit_bytes: u64,
    },
    /// After that: all of them were taken.
    Drained {
        /// The other end: their sender, or the one that took them.
        peer: PeerIdentity,
        /// Which of these.
        direction: Direction,
    },
    /// Notifications were lost, because the manager's queue was full: receiver classes of the
    /// application's own making take too little room ([`crate::Manager::register`]).
    Overrun {
        /// How many.
        lost: u64,
    },
    /// Peers came and went faster than this was asked for.
    Missed {
        /// How many arrivals and departures are not told.
        count: u64,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerArrived { peer } => write!(f, "{peer} arrived"),
            Self::PeerLeft { peer, end } => write!(f, "{peer} left: {end}"),
            Self::Refused(undelivered) => undelivered.fmt(f),
            Self::Buffering {
                peer,
                direction: Direction::Outgoing,
                waiting_bytes,
                limit_bytes,
            } => write!(
                f,
                "{peer} takes nothing: {waiting_bytes} bytes wait for it, of {limit_bytes} at most"
            ),
            Self::Buffering {
                peer,
                direction: Direction::Incoming,
                waiting_bytes,
                limit_bytes,
            } => write!(
                f,
                "{waiting_bytes} bytes of {peer} were not taken, of {limit_bytes} at most: receive more often"
            ),
            Self::Drained {
                peer,
                direction: Direction::Outgoing,
            } => write!(f, "{peer} has taken what waited for it"),
            Self::Drained {
                peer,
                direction: Direction::Incoming,
            } => write!(f, "all that waited of {peer} was taken"),
            Self::Overrun { lost } => write!(
                f,
                "{lost} notifications were lost: open the manager with a longer queue"
            ),
            Self::Missed { count } => write!(
                f,
                "{count} arrivals and departures were missed: ask for events more often"
            ),
        }
    }
}
