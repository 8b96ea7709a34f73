//! Links: how packets move between two interfaces.
//!
//! A link moves packets and knows nothing of slots, keys or messages. It
//! refuses to interpret what it carries; it checks only what it needs in order
//! not to be harmed by the other end.

use hamlyn_engine::memory::{Part, Payload, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_ring::area::Area;

/// The other end broke the rules of the link. The link is dead; no other link
/// is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkFault {
    /// A cell's flag had a value that no correct sender writes.
    #[error("the peer wrote an impossible cell flag")]
    Flag,
    /// A cell placed its payload outside the shared memory, or was longer than agreed.
    #[error("the peer placed a payload outside the memory it shares with us")]
    Placement,
    /// The peer returned credit for cells that it never received, or took some back.
    #[error("the peer returned impossible credit")]
    Credit,
}

/// One link of an interface: both directions to one peer.
pub trait Link {
    /// The bytes that came with a packet.
    type Payload<'a>: Payload<Area>
    where
        Self: 'a;

    /// The largest payload of an outgoing packet, metadata and data together, in bytes.
    fn payload_max_bytes(&self) -> usize;

    /// Offers a packet. Does not block, does not allocate; a system call is
    /// made only to wake a peer that sleeps.
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent>;

    /// Takes the next packet, if there is one, shows it to `take` once, and
    /// gives its room back to the peer. Does not block.
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Self::Payload<'_>) -> R,
    ) -> Result<Option<R>, LinkFault>;

    /// Whether `receive` would find something (a packet or a fault).
    fn is_pending(&self) -> bool;

    /// Returns all credit that is still held back. To be called when a poll found nothing.
    fn settle(&mut self);
}
