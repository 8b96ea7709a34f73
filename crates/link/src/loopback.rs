//! The link of an interface with itself: one ring, both ends here.
//!
//! It passes every packet through the same cells and checks as a pair link, so
//! that what holds between processes holds within one. There is nobody to wake.

use std::sync::Arc;

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_ring::area::Area;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::shared::Access;

use crate::carrier::{Carried, Incoming, Outgoing, check_payload_max};
use crate::{Link, LinkError, LinkFault};

/// A link whose other end is the same interface.
pub struct Loopback {
    outgoing: Outgoing,
    incoming: Incoming,
}

impl Loopback {
    /// A link over new memory.
    pub fn new(geometry: Geometry, payload_max_bytes: usize) -> Result<Self, LinkError> {
        check_payload_max(payload_max_bytes)?;
        // A memory file, so that what is seldom needed is reserved when it is.
        let file = Memfd::create_ring("hamlyn-loopback", geometry, payload_max_bytes)?;
        let mapping = Arc::new(file.map(Access::Writable)?);
        let file = Some(file.into_fd());
        Ok(Self {
            outgoing: Outgoing::new(Arc::clone(&mapping), geometry, payload_max_bytes, file)?,
            incoming: Incoming::new(mapping, geometry, payload_max_bytes)?,
        })
    }
}

impl Link for Loopback {
    type Payload<'a> = Carried<'a>;

    #[inline]
    fn payload_max_bytes(&self) -> usize {
        self.outgoing.payload_max()
    }

    #[inline]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        self.outgoing.try_send(header, metadata, parts)
    }

    #[inline]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        Ok(self.incoming.receive(take)?.map(|(result, _)| result))
    }

    #[inline]
    fn is_pending(&self) -> bool {
        self.incoming.is_pending()
    }

    #[inline]
    fn settle(&mut self) {
        // Nobody sleeps on the other side of oneself.
        let _ = self.incoming.settle();
    }

    #[inline]
    fn settle_bulk(&mut self) {
        let _ = self.incoming.settle_bulk();
    }

    #[cold]
    fn give_back(&mut self) -> usize {
        self.outgoing.give_back()
    }

    #[cold]
    fn await_credit(&mut self) {}

    fn credit_came(&self) -> bool {
        self.outgoing.credit_came()
    }
}

#[cfg(test)]
mod tests;
