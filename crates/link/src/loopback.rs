//! The link of an interface with itself: one ring, both ends here.
//!
//! It is a pair link whose two directions are the same memory, so every packet passes the same
//! cells and checks, and what holds between processes holds within one. There is nobody to wake.

use std::sync::Arc;

use hamlyn_ring::doorbell::{Fence, Waker};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::notes::NotePad;
use hamlyn_ring::shared::Access;

use crate::LinkError;
use crate::carrier::{Incoming, Outgoing, check_payload_max};
use crate::pair::PairLink;

impl PairLink {
    /// A link over new memory whose other end is the same interface.
    pub fn to_itself(geometry: Geometry, payload_max_bytes: usize) -> Result<Self, LinkError> {
        check_payload_max(payload_max_bytes)?;
        // A memory file, so that what is seldom needed is reserved when it is.
        let file = Memfd::create_ring("hamlyn-loopback", geometry, payload_max_bytes)?;
        let mapping = Arc::new(file.map(Access::Writable)?);
        let file = Some(file.into_fd());
        Ok(Self::over(
            Outgoing::new(Arc::clone(&mapping), geometry, payload_max_bytes, file)?,
            Incoming::new(Arc::clone(&mapping), geometry, payload_max_bytes)?,
            // Nobody ever announces here that he sleeps.
            Waker::new(mapping, geometry, Fence::Light, NotePad::none())?,
        ))
    }
}

#[cfg(test)]
mod tests;
