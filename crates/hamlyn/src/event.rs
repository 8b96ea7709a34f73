//! What happens to an interface that no call is bound to: peers come and go, messages are refused,
//! notifications are lost. A receive does not fail because of any of it; a program that cares asks
//! here.

use std::fmt;

use crate::peer::{LinkEnd, PeerIdentity, Undelivered};

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
    /// The messages to a peer of this host that takes nothing fill half of the memory that it lends
    /// for them. Once it is full, messages to this peer find no room. Told by a look at the links,
    /// so it wakes no task that waits for events.
    Buffering {
        /// To whom.
        peer: PeerIdentity,
        /// Bytes that wait there.
        waiting_bytes: u64,
        /// Bytes for which there is room.
        limit_bytes: u64,
    },
    /// After that: it has taken all of them.
    Drained {
        /// Which peer.
        peer: PeerIdentity,
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
                waiting_bytes,
                limit_bytes,
            } => write!(
                f,
                "{peer} takes nothing: {waiting_bytes} bytes wait for it, of {limit_bytes} at most"
            ),
            Self::Drained { peer } => write!(f, "{peer} has taken what waited for it"),
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
