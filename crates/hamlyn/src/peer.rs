//! A peer: its identity, how its link ended, and what came back from it.

use std::fmt;

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::{Header, Kind, PortName, SlotName};
use hamlyn_engine::transport::Return;
use hamlyn_host::{Destination, LossCause};

use crate::ticket::TicketKind;

/// Why there is no link any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkEnd {
    /// The host lost the peer.
    #[error("{0}")]
    Lost(#[from] LossCause),
    /// The peer broke the rules of the link.
    #[error("it broke the rules of the link ({0})")]
    Fault(#[from] hamlyn_link::LinkFault),
    /// The peer presented too many wrong keys.
    #[error("it presented too many wrong keys")]
    BadKeys,
    /// We closed the link.
    #[error("this side closed the link")]
    ClosedHere,
}

/// The identity of the peer at the other end of a link, also after its end. The kernel vouches for
/// it on one host, the handshake between hosts. The name that a peer gives itself is not in here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PeerIdentity {
    /// The link over which it is reached; [`crate::Interface::disconnect`] ends it.
    pub link: LinkId,
    /// Its interface: host, user, and a number that no other interface has.
    pub interface: Destination,
    /// Its group; 0 if it is on another host.
    pub group: u32,
    /// Its process; 0 if that is not visible here.
    pub process: u32,
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            0 => write!(f, "interface {:016x}", self.interface.interface)?,
            process => write!(f, "process {process}")?,
        }
        write!(f, " of user {}", self.interface.user)?;
        match self.interface.node {
            0 => Ok(()),
            node => write!(f, " on host {node}"),
        }
    }
}

/// Shows a destination the way the library names interfaces in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerName(pub Destination);

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "interface {:016x} of user {}",
            self.0.interface, self.0.user
        )
    }
}

/// A peer is gone, and with it everything that depended on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} is gone: {end}", PeerName(*peer))]
pub struct PeerLost {
    /// Which.
    pub peer: Destination,
    /// Why.
    pub end: LinkEnd,
}

/// A packet that was refused by its receiver, or came back (`virtual-networks 3.1`: return to
/// sender). A message of several packets may come back in several parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{length_bytes} bytes for {} of {} came back: {reason}", self.place(), to.map_or("an interface".to_owned(), |to| PeerName(to).to_string()))]
pub struct Undelivered {
    /// The link that it was sent over, which may have ended.
    pub link: LinkId,
    /// For whom it was, unless its link ended so long ago that this is not known any more.
    pub to: Option<Destination>,
    /// The kind of place that it was for.
    pub kind: TicketKind,
    /// For which slot; a port's name is in this field, too.
    pub slot: SlotName,
    /// For which metadata entry; `FAST_INDEX` in fast mode.
    pub metadata_index: u16,
    /// For which place in the slot; of a port, its group.
    pub offset: u64,
    /// How many bytes of data.
    pub length_bytes: u32,
    /// Its word in fast mode, its handler, or its delta.
    pub word: u64,
    /// Why.
    pub reason: Return,
}

impl Undelivered {
    pub(crate) fn new(
        link: LinkId,
        to: Option<Destination>,
        header: &Header,
        reason: Return,
    ) -> Self {
        Self {
            link,
            to,
            kind: match header.kind {
                Kind::MESSAGE => TicketKind::Port,
                _ => TicketKind::Slot,
            },
            slot: header.slot,
            metadata_index: header.metadata_index,
            offset: header.offset,
            length_bytes: header.length_bytes,
            word: header.word,
            reason,
        }
    }

    fn place(&self) -> String {
        match self.kind {
            TicketKind::Slot => self.slot.to_string(),
            TicketKind::Port => PortName::from_bits(self.slot.to_bits()).to_string(),
        }
    }
}
