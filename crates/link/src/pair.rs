//! The link between two processes of a host: one ring in each direction.
//!
//! Each side makes the memory that it receives in; the other writes there. The
//! peer is trusted in nothing (ARCHITECTURE.md, trust): what it writes is checked by the ring
//! and by [`crate::cell::decode`], and the first thing that no correct peer does ends this
//! link, and only this one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_ring::Errno;
use hamlyn_ring::area::Area;
use hamlyn_ring::doorbell::{Attention, Fence, Waker};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::notes::{NOTES_MAX, NotePad, SharedNotes};
use hamlyn_ring::shared::Mapping;
use rustix::net::{SendFlags, send};

use crate::carrier::{Carried, Incoming, Outgoing, check_payload_max};
use crate::{Link, LinkError, LinkFault};

/// Payload limit of a link that was not told otherwise.
pub const PAYLOAD_MAX_DEFAULT_BYTES: usize = 16 << 10;

/// What a link is made of.
pub struct PairParts {
    /// Our memory, in which the peer writes.
    pub receive: Mapping,
    /// Its layout.
    pub receive_geometry: Geometry,
    /// The peer's memory, in which we write.
    pub send: Mapping,
    /// The file of the peer's memory: more of it is reserved when it is needed, and given back.
    pub send_file: OwnedFd,
    /// Its layout.
    pub send_geometry: Geometry,
    /// The page in which the peer's senders leave notes.
    pub notes: Mapping,
    /// Our number there.
    pub note: u32,
    /// The peer's number in our page.
    pub peer_note: u32,
    /// Dropped with the link: gives the peer's number back to whoever gave it out.
    pub peer_note_lease: Option<Box<dyn Send>>,
    /// Who pays for the barrier of the sleep protocol.
    pub fence: Fence,
    /// A socket to the peer: a byte in it wakes the peer.
    pub doorbell: OwnedFd,
    /// Largest payload of a packet, in either direction. The peer's memory must have
    /// [`Geometry::reserved`] for it.
    pub payload_max_bytes: usize,
}

/// A link to another process of this host, to another interface of this one, or
/// ([`PairLink::to_itself`]) to the same interface.
pub struct PairLink {
    outgoing: Outgoing,
    incoming: Incoming,
    waker: Waker,
    /// None if the peer is this interface itself, and never asleep when it sends.
    attention: Option<Attention>,
    peer_note: u32,
    _peer_note_lease: Option<Box<dyn Send>>,
    /// None if the peer is this interface itself.
    doorbell: Option<OwnedFd>,
    /// The first fault; both directions are closed from then on.
    fault: Option<LinkFault>,
}

impl PairLink {
    /// A link over unused memory.
    pub fn new(parts: PairParts) -> Result<Self, LinkError> {
        let payload_max = parts.payload_max_bytes;
        check_payload_max(payload_max)?;
        let send = Arc::new(parts.send);
        let notes = NotePad::new(SharedNotes::new(Arc::new(parts.notes))?, parts.note);
        let waker = Waker::new(Arc::clone(&send), parts.send_geometry, parts.fence, notes)?;
        let file = Some(parts.send_file);
        let outgoing = Outgoing::new(send, parts.send_geometry, payload_max, file)?;
        let receive = Arc::new(parts.receive);
        let attention = Attention::new(Arc::clone(&receive), parts.receive_geometry)?;
        let incoming = Incoming::new(receive, parts.receive_geometry, payload_max)?;
        Ok(Self {
            attention: Some(attention),
            peer_note: parts.peer_note,
            _peer_note_lease: parts.peer_note_lease,
            doorbell: Some(parts.doorbell),
            ..Self::over(outgoing, incoming, waker)
        })
    }

    pub(crate) fn over(outgoing: Outgoing, incoming: Incoming, waker: Waker) -> Self {
        Self {
            outgoing,
            incoming,
            waker,
            attention: None,
            peer_note: NOTES_MAX,
            _peer_note_lease: None,
            doorbell: None,
            fault: None,
        }
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
        let Some(doorbell) = &self.doorbell else {
            return;
        };
        loop {
            match send(doorbell, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
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
    fn try_send_short(&mut self, short: &Short) -> Result<(), Unsent> {
        if let Err(reason) = self.outgoing.try_send_short(short) {
            return Err(self.not_sent(reason));
        }
        if self.waker.must_ring() {
            self.ring();
        }
        Ok(())
    }

    #[inline(always)]
    fn peek_bare(&self) -> Option<Short> {
        self.incoming.peek_bare()
    }

    #[inline(always)]
    fn peek_worded(&self) -> Option<Short> {
        self.incoming.peek_worded()
    }

    #[inline(always)]
    fn short_done(&mut self) {
        if self.incoming.short_done() {
            self.ring();
        }
    }

    #[inline]
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

    #[inline]
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

    #[inline]
    fn settle_bulk(&mut self) {
        if self.incoming.settle_bulk() {
            self.ring();
        }
    }

    fn peer_note(&self) -> u32 {
        self.peer_note
    }

    #[inline]
    fn watch(&mut self) {
        if let Some(attention) = &mut self.attention {
            attention.watch();
        }
    }

    #[cold]
    fn unwatch(&mut self) -> bool {
        match &mut self.attention {
            Some(attention) => attention.unwatch(),
            None => return false,
        }
        true
    }

    #[cold]
    fn announce_sleep(&mut self) {
        if let Some(attention) = &mut self.attention {
            attention.sleep();
        }
    }

    #[cold]
    fn give_back(&mut self) -> usize {
        self.outgoing.give_back()
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
