//! One direction of a link: packets into cells and payload arena, and out of them.
//!
//! The way there: data go into the cell and those after it, as far as a packet may take cells
//! (`Geometry::message_cells`); longer ones into the payload arena, copied once, straight from
//! where they lie. The way back: the first cell is copied out and checked, then the receiver's
//! engine decides, and only then do the bytes go to their place, copied once.

mod carried;
mod gathering;
mod incoming;
mod outgoing;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hamlyn_engine::limits::{PACKET_PAYLOAD_MAX, PACKET_PAYLOAD_MIN};
use hamlyn_ring::cells::SharedLine;
use hamlyn_ring::duplex::LineOrder;

use crate::LinkError;

pub use carried::Carried;
pub use incoming::{InCell, InCells};
pub(crate) use incoming::{Incoming, Stopped};
pub(crate) use outgoing::Outgoing;

pub(crate) fn check_payload_max(payload_max: usize) -> Result<(), LinkError> {
    if (PACKET_PAYLOAD_MIN..=PACKET_PAYLOAD_MAX).contains(&payload_max) {
        Ok(())
    } else {
        Err(LinkError::PayloadMax(payload_max))
    }
}

/// The duplex line of a link, as one direction of one of its ends has it.
pub(crate) struct LinePart {
    pub(crate) line: SharedLine,
    /// When this end writes it.
    pub(crate) order: LineOrder,
    /// The number of the last message that this end has taken from it.
    pub(crate) taken: Arc<AtomicU64>,
}

#[cfg(test)]
pub(crate) mod tests;
