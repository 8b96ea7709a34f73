//! Who a peer is.

use hamlyn::PeerIdentity;

use crate::boundary::Room;
use crate::status::{Failure, Status};

/// A peer, as the kernel vouches on one host and the handshake between hosts. The name that a peer gives itself is not in here.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Peer {
    /// The number of its host; 0 is this one.
    pub node: u32,
    /// Its user.
    pub user: u32,
    /// Its group; 0 if it is on another host.
    pub group: u32,
    /// Its process; 0 if that is not visible here.
    pub process: u32,
    /// The number of its interface, which no other has.
    pub interface_number: u64,
    /// The link over which it is reached (hamlyn_disconnect, hamlyn_check_link).
    pub link: u64,
}

impl From<PeerIdentity> for Peer {
    fn from(identity: PeerIdentity) -> Self {
        Self {
            node: identity.interface.node,
            user: identity.interface.user,
            group: identity.group,
            process: identity.process,
            interface_number: identity.interface.interface,
            link: identity.link.to_bits(),
        }
    }
}

/// Writes it, if it is known.
pub(crate) fn put(place: Room<Peer>, identity: Option<PeerIdentity>) -> Result<(), Failure> {
    let Some(identity) = identity else {
        return Err(Failure::new(
            Status::NotFound,
            "the peer is not known: nobody has sent yet, or the link has ended long ago",
        ));
    };
    place.put(identity.into());
    Ok(())
}
