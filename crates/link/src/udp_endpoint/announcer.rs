//! How a link over UDP that is polled seldom says that something has come for it: a bit of the
//! interface's own ready bitmap, as a near peer would set it (decision 0005).
//!
//! One link polls for all; the others are asked for what has come. An interface with many peers
//! asks most of them seldom, and without the bit a message waits for eight times as many polls as
//! there are such links.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use hamlyn_ring::doorbell::MarkReady;
use hamlyn_ring::ready_bitmap::{READY_BITS_MAX, ReadyBit, ReadyBits, ReadyMarker};

/// See the module.
pub(super) struct Announcer {
    marker: ReadyMarker,
    bit: Option<ReadyBit>,
    is_wanted: AtomicBool,
}

impl Announcer {
    /// With one of these bits; if there are none, or none is left, it says nothing.
    pub(super) fn new(bits: Option<&ReadyBits>) -> Self {
        let bit = bits.map(ReadyBits::lend);
        let marker = bits.zip(bit.as_ref());
        Self {
            marker: marker.map_or_else(ReadyMarker::none, |(bits, bit)| bits.marker(bit)),
            bit,
            is_wanted: AtomicBool::new(false),
        }
    }

    /// The number of its bit; [`READY_BITS_MAX`] is none.
    pub(super) fn bit(&self) -> u32 {
        self.bit.as_ref().map_or(READY_BITS_MAX, ReadyBit::number)
    }

    /// The link is polled seldom from now on, or often. In the first case the caller must look once
    /// for what came before.
    pub(super) fn set_wanted(&self, is_wanted: bool) {
        self.is_wanted.store(is_wanted, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether the link is polled seldom.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Something has come, and a look at the link finds it.
    pub(super) fn announce(&self) {
        fence(Ordering::SeqCst);
        if self.is_wanted.load(Ordering::SeqCst) {
            self.marker.mark();
        }
    }
}
