//! Frames that one call sends from where they are kept: nothing is copied but by the system.
//!
//! Only what goes in the clear: what is encrypted must stay as it is where it is kept, as it may be sent again, or come back.

use std::io::IoSlice;

use hamlyn_engine::limits::{CARRIER_HEAD_BYTES, CARRIER_TAIL_BYTES};
use hamlyn_engine::transport::{Association, Kept};

use crate::udp::DATAGRAM_BYTES_MAX;
use crate::udp::batch::{BATCH_DATAGRAMS, Batch};
use crate::udp::envelope::ENVELOPE_BYTES;
use crate::udp::seal::CHECKSUM_BYTES;
use crate::udp::socket::Flow;

const _: () = assert!(ENVELOPE_BYTES <= CARRIER_HEAD_BYTES && CHECKSUM_BYTES <= CARRIER_TAIL_BYTES);

/// See the module.
#[derive(Default)]
pub(super) struct Run {
    frames: Vec<Kept>,
    path: u8,
    bytes: usize,
    /// Of each datagram but the last, which may be shorter.
    segment_bytes: usize,
    is_last_shorter: bool,
}

/// A frame as a datagram, envelope and checksum included.
fn datagram<'a>(association: &'a Association, kept: &Kept) -> &'a [u8] {
    association.kept_among(kept, ENVELOPE_BYTES, CHECKSUM_BYTES)
}

impl Run {
    /// The flow that it is for.
    pub(super) fn path(&self) -> u8 {
        self.path
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether one call can send so many bytes more, as one datagram over that path.
    #[inline]
    pub(super) fn has_room(&self, path: u8, datagram_bytes: usize) -> bool {
        self.is_empty()
            || self.path == path
                && self.frames.len() < BATCH_DATAGRAMS
                && !self.is_last_shorter
                && datagram_bytes <= self.segment_bytes
                && self.bytes + datagram_bytes <= DATAGRAM_BYTES_MAX
    }

    /// One more, for which there is room.
    #[inline]
    pub(super) fn push(&mut self, path: u8, kept: Kept) {
        let datagram_bytes = kept.length_bytes() + ENVELOPE_BYTES + CHECKSUM_BYTES;
        if self.is_empty() {
            (self.path, self.segment_bytes) = (path, datagram_bytes);
        }
        self.is_last_shorter = datagram_bytes < self.segment_bytes;
        self.bytes += datagram_bytes;
        self.frames.push(kept);
    }

    /// Sends all of it, or nothing.
    pub(super) fn send(&self, association: &Association, flow: &mut Flow) -> bool {
        let mut slices = [IoSlice::new(&[]); BATCH_DATAGRAMS];
        for (slice, kept) in slices.iter_mut().zip(&self.frames) {
            *slice = IoSlice::new(datagram(association, kept));
        }
        let slices = slices.get(..self.frames.len()).unwrap_or_default();
        flow.send_gathered(slices, self.segment_bytes)
    }

    /// The same, to be sent from there.
    pub(super) fn copy(&self, association: &Association, batch: &mut Batch) {
        for kept in &self.frames {
            let datagram = datagram(association, kept);
            if let Some(room) = batch.room(datagram.len()) {
                room.copy_from_slice(datagram);
                batch.push(datagram.len());
            }
        }
    }

    /// It is done with.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        (self.bytes, self.is_last_shorter) = (0, false);
    }
}
