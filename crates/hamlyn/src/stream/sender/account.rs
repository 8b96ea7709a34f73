//! What a stream's sender knows of its receiver's memory, and what it has asked for: counts, and no
//! messages. Whatever the receiver says, in whatever order and however often, it leads to an
//! account that is possible: never more is released than was filled, never less than before, and no
//! answer counts but that to the grow request under way.

use crate::stream::wire::{Credit, EXTENT_MASK, ExtentNote, GrowRequest, StreamPosition, after};

/// See the module.
#[derive(Debug)]
pub(super) struct Account {
    /// Pieces of the extent being filled, and its serial number.
    pub(super) pieces: u64,
    extent: u64,
    /// Next piece to fill, and pieces that came back; both since the extent was opened.
    pub(super) next: u64,
    pub(super) next_index: u32,
    pub(super) released: u64,
    /// Grow requests made so far, modulo 2^16, and whether the last one is not answered.
    grow_requests: u16,
    is_asking: bool,
    /// Length of the record for which that one was made in this extent, if it is longer than the
    /// extent;
    too_long_bytes: Option<u64>,
    /// and of the record to which room was refused.
    refused_bytes: Option<u64>,
    /// The receiver speaks of the next extent, whose announcement is on its way.
    is_moving: bool,
    is_held: bool,
    /// The receiver closed the stream.
    pub(super) closed: bool,
}

impl Account {
    /// An account of the first extent.
    pub(super) fn new(pieces: u32) -> Self {
        Self {
            pieces: u64::from(pieces),
            extent: 0,
            next: 0,
            next_index: 0,
            released: 0,
            grow_requests: 0,
            is_asking: false,
            too_long_bytes: None,
            refused_bytes: None,
            is_moving: false,
            is_held: false,
            closed: false,
        }
    }

    /// The next piece was filled.
    #[inline]
    pub(super) fn fill(&mut self) {
        self.next += 1;
        self.next_index = after(self.next_index, self.pieces as u32);
    }

    /// Pieces that could be filled, if nothing else is in the way.
    #[inline]
    pub(super) fn free(&self) -> u64 {
        self.pieces - (self.next - self.released)
    }

    /// Whether the receiver keeps up, so that packing would only delay.
    #[inline]
    pub(super) fn is_ahead_little(&self) -> bool {
        (self.next - self.released) * 2 < self.pieces
    }

    /// How far the sender has come.
    pub(super) fn place(&self) -> StreamPosition {
        StreamPosition {
            extent: self.extent,
            position: self.next,
        }
    }

    /// Whether nothing may be filled now: the receiver may let the extent end where the grow
    /// request said that it ends. A grow request made in an earlier extent is no reason.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// The grow request that may be made now for a record of that length. One at a time: the
    /// receiver has one entry for them.
    pub(super) fn grow_request(&self, record_bytes: u64) -> Option<GrowRequest> {
        (!self.is_asking && !self.is_moving).then_some(GrowRequest {
            place: self.place(),
            record_bytes,
        })
    }

    /// That grow request was made, for a record of so many pieces.
    pub(super) fn grow_requested(&mut self, grow_request: GrowRequest, pieces_needed: u64) {
        self.grow_requests = self.grow_requests.wrapping_add(1);
        self.is_asking = true;
        self.is_held = true;
        self.too_long_bytes = (pieces_needed > self.pieces).then_some(grow_request.record_bytes);
    }

    /// Whether room for a record no longer than that was refused for good. Says it once: it may be
    /// asked again.
    pub(super) fn take_refusal(&mut self, record_bytes: u64) -> bool {
        let refused = self
            .refused_bytes
            .is_some_and(|bytes| bytes <= record_bytes);
        if refused {
            self.refused_bytes = None;
        }
        refused
    }

    /// Takes in the receiver's newest word; or an older one, which says less.
    #[inline(always)]
    pub(super) fn apply_credit(&mut self, credit: Credit) {
        self.closed |= credit.closed;
        if credit.extent == self.extent as u16 & EXTENT_MASK {
            let behind = (self.next as u32).wrapping_sub(credit.released);
            // Hostile: never more than was filled, never less than before.
            if let Some(released) = self.next.checked_sub(u64::from(behind)) {
                self.released = self.released.max(released);
            }
        } else if credit.extent == self.extent.wrapping_add(1) as u16 & EXTENT_MASK {
            self.is_moving = true;
            self.is_held = true;
        }
        if self.is_asking && credit.answers == self.grow_requests {
            self.is_asking = false;
            self.is_held = self.is_moving;
            self.refused_bytes = self.too_long_bytes.filter(|_| credit.denied);
        }
    }

    /// Takes in the announcement of an extent; whether it is news.
    pub(super) fn go_over(&mut self, note: &ExtentNote) -> bool {
        if note.serial != self.extent.wrapping_add(1) {
            return false;
        }
        // Otherwise the grow request was left behind, and its answer comes by itself.
        self.is_asking &= note.answers != self.grow_requests;
        self.extent = note.serial;
        self.pieces = u64::from(note.pieces);
        self.next = 0;
        self.next_index = 0;
        self.released = 0;
        self.too_long_bytes = None;
        self.refused_bytes = None;
        self.is_moving = false;
        self.is_held = false;
        true
    }
}

#[cfg(test)]
mod tests;
