//! A peer as the registry has it.

use std::sync::Arc;

use hamlyn_link::either::EitherLink;
use hamlyn_link::pair::PairLink;
use hamlyn_link::udp_endpoint::{Connection, UdpLink};
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::wake::WakeWord;
use rustix::fd::OwnedFd;

use crate::process::exchange::{close_control, drain};
use crate::{Destination, LossCause, Peer};

/// The peer of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PeerKey {
    pub(crate) interface: u64,
    /// The other host; 0 for this one, where the kernel says who is who. So nobody elsewhere takes
    /// a neighbour's place.
    pub(crate) node: u32,
    /// From the kernel, or from the other host.
    pub(crate) user: u32,
}

impl PeerKey {
    /// Of an interface of this host.
    pub(crate) const fn neighbour(interface: u64, user: u32) -> Self {
        Self {
            interface,
            node: 0,
            user,
        }
    }

    /// Of a peer, as hosts name them.
    pub(crate) fn of(peer: &Destination) -> Self {
        Self {
            interface: peer.interface,
            node: peer.node,
            user: peer.user,
        }
    }
}
pub(super) struct Entry {
    pub(super) key: PeerKey,
    pub(super) handle: PeerHandle,
    pub(super) lost: bool,
}

/// How the registry reaches a peer, beside its link.
pub(super) enum PeerHandle {
    /// One of this host.
    Local(Neighbour),
    /// One of another host.
    Remote(Arc<Connection>),
}

/// A peer of this host.
pub(super) struct Neighbour {
    pub(super) control: Arc<Uninherited>,
    pub(super) process: Option<OwnedFd>,
    /// As the kernel calls it.
    pub(super) process_number: u32,
    pub(super) wake_word: WakeWord,
    /// It has said that it ends.
    pub(super) goodbye: bool,
}

impl Neighbour {
    /// Drains its control socket; returns whether the peer closed.
    pub(super) fn drain_control(&mut self) -> bool {
        let drained = drain(&self.control);
        self.goodbye |= drained.goodbye;
        drained.peer_closed
    }

    /// Why it is gone.
    pub(super) fn cause(&self) -> LossCause {
        match self.goodbye {
            true => LossCause::Closed,
            false => LossCause::Died,
        }
    }
}

impl Entry {
    pub(super) fn neighbour(&mut self) -> Option<&mut Neighbour> {
        match &mut self.handle {
            PeerHandle::Local(neighbour) => Some(neighbour),
            PeerHandle::Remote(_) => None,
        }
    }

    pub(super) fn close_control(&self) {
        match &self.handle {
            PeerHandle::Local(neighbour) => close_control(&neighbour.control),
            PeerHandle::Remote(connection) => connection.close(),
        }
    }
}

/// A new link, ready to be entered.
pub(crate) struct NewLink {
    pub(super) peer: Peer,
    pub(super) handle: PeerHandle,
    pub(super) link: EitherLink,
}

impl NewLink {
    /// Of this host.
    pub(crate) fn local(
        peer: Peer,
        control: Arc<Uninherited>,
        process: Option<OwnedFd>,
        link: PairLink,
    ) -> Self {
        let handle = PeerHandle::Local(Neighbour {
            control,
            process,
            process_number: peer.process,
            wake_word: link.receive.wake_word().clone(),
            goodbye: false,
        });
        let link = EitherLink::Pair(link);
        Self { peer, handle, link }
    }

    /// Of another host.
    pub(crate) fn remote(peer: Peer, link: UdpLink) -> Self {
        Self {
            peer,
            handle: PeerHandle::Remote(Arc::clone(link.connection())),
            link: EitherLink::Udp(link),
        }
    }
}
