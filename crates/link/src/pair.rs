//! The link between two processes of a host: one ring in each direction.
//!
//! Each side makes the memory that it receives in; the other writes there. The
//! peer is trusted in nothing (ARCHITECTURE.md, trust): what it writes is checked by the ring
//! and by [`crate::cell::decode`], and the first thing that no correct peer does ends this
//! link, and only this one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_ring::Errno;
use hamlyn_ring::area::Area;
use hamlyn_ring::doorbell::{Fence, Waker};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::shared::Mapping;
use rustix::net::{SendFlags, send};

use crate::carrier::{Carried, Incoming, Outgoing, check_payload_max};
use crate::{Link, LinkError, LinkFault};

/// Payload limit of a link that was not told otherwise.
pub const PAYLOAD_MAX_DEFAULT_BYTES: usize = 64 << 10;

/// What a link is made of.
pub struct PairParts {
    /// Our memory, in which the peer writes.
    pub receive: Mapping,
    /// Its layout.
    pub receive_geometry: Geometry,
    /// The peer's memory, in which we write.
    pub send: Mapping,
    /// The file of the peer's memory: more bulk is reserved when it is first needed.
    pub send_file: OwnedFd,
    /// Its layout.
    pub send_geometry: Geometry,
    /// The peer's bell page, mapped for loads.
    pub bell: Mapping,
    /// Who pays for the barrier of the sleep protocol.
    pub fence: Fence,
    /// A socket to the peer: a byte in it wakes the peer.
    pub doorbell: OwnedFd,
    /// Largest payload of a packet, in either direction. The peer's memory must have
    /// [`Geometry::reserved_bytes`] for it.
    pub payload_max_bytes: usize,
}

/// A link to another process of this host.
pub struct PairLink {
    outgoing: Outgoing,
    incoming: Incoming,
    waker: Waker,
    doorbell: OwnedFd,
    /// The first fault; both directions are closed from then on.
    fault: Option<LinkFault>,
}

impl PairLink {
    /// A link over unused memory.
    pub fn new(parts: PairParts) -> Result<Self, LinkError> {
        let payload_max = parts.payload_max_bytes;
        check_payload_max(payload_max)?;
        let outgoing = Outgoing::new(
            Arc::new(parts.send),
            parts.send_geometry,
            payload_max,
            Some(parts.send_file),
        )?;
        let receive = Arc::new(parts.receive);
        Ok(Self {
            outgoing,
            incoming: Incoming::new(receive, parts.receive_geometry, payload_max)?,
            waker: Waker::new(Arc::new(parts.bell), parts.fence)?,
            doorbell: parts.doorbell,
            fault: None,
        })
    }

    /// What the peer did wrong, if it did.
    pub fn fault(&self) -> Option<LinkFault> {
        self.fault
    }

    /// Ends both directions; the first fault is the one that is reported.
    #[cold]
    #[inline(never)]
    fn condemn(&mut self, fault: LinkFault) -> LinkFault {
        self.outgoing.close();
        self.incoming.close();
        *self.fault.get_or_insert(fault)
    }

    #[cold]
    #[inline(never)]
    fn not_sent(&mut self, reason: Unsent) -> Unsent {
        if self.outgoing.is_closed() {
            self.condemn(LinkFault::Credit);
        }
        reason
    }

    /// Wakes the peer.
    #[cold]
    #[inline(never)]
    fn ring(&mut self) {
        loop {
            match send(
                &self.doorbell,
                &[1],
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Err(Errno::INTR) => {}
                // A full socket has bytes that the peer has not read: it will wake.
                // A closed one has nobody behind it.
                Ok(_) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    return;
                }
                Err(_) => return self.waker.not_rung(),
            }
        }
    }
}

impl Link for PairLink {
    type Payload<'a> = Carried<'a>;

    #[inline]
    fn payload_max_bytes(&self) -> usize {
        self.outgoing.payload_max()
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        if let Err(reason) = self.outgoing.try_send(header, metadata, parts) {
            return Err(self.not_sent(reason));
        }
        if self.waker.must_ring() {
            self.ring();
        }
        Ok(())
    }

    #[inline(always)]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        match self.incoming.receive(take) {
            Ok(Some((result, rings))) => {
                if rings {
                    self.ring();
                }
                Ok(Some(result))
            }
            Ok(None) => Ok(None),
            Err(fault) => Err(self.condemn(fault)),
        }
    }

    #[inline]
    fn is_pending(&self) -> bool {
        self.incoming.is_pending()
    }

    #[inline]
    fn settle(&mut self) {
        if self.incoming.settle() {
            self.ring();
        }
    }

    #[cold]
    fn await_credit(&mut self) {
        self.outgoing.await_credit();
    }

    fn credit_came(&self) -> bool {
        self.outgoing.credit_came()
    }
}

#[cfg(test)]
mod tests;
