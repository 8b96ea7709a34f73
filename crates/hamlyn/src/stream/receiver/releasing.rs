//! The records of a stream that the application keeps, and the credit that goes back to its sender.

use hamlyn_host::Host;

use super::Receiver;
use crate::session::Session;
use crate::stream::keeping::{Delivered, Kept};

impl Receiver {
    #[inline(never)]
    pub(in crate::stream) fn release_slowly<H: Host>(&mut self, session: &mut Session<'_, H>) {
        let record = self.latest_delivered();
        if self.keeping.is_empty() {
            self.release_through(session, &record);
        } else {
            self.keeping.give_back(record);
            self.reclaim(session);
        }
    }

    /// Keeps a record that was delivered last.
    pub(in crate::stream) fn keep(&mut self) -> Kept {
        let kept = self.keeping.keep(self.latest_delivered());
        self.note_ways();
        kept
    }

    /// The bytes of a record that is kept here.
    pub(in crate::stream) fn kept(&self, kept: &Kept) -> Option<&[u8]> {
        let is_own = self.keeping.owns(kept);
        is_own.then(|| self.bytes(&kept.delivered)).flatten()
    }

    /// The bytes of the record that was delivered last.
    pub(in crate::stream) fn latest(&self) -> Option<&[u8]> {
        self.bytes(&self.latest_delivered())
    }

    /// The record that was delivered last: a short one lies in the piece before the next.
    fn latest_delivered(&self) -> Delivered {
        match (self.extents.first(), self.latest_short_bytes) {
            (Some(extent), Some(length_bytes)) => Delivered {
                extent: self.first,
                offset: extent.offset_before_next(),
                length_bytes: length_bytes as usize,
                position: extent.next - 1,
                release: extent.next,
            },
            _ => self.latest,
        }
    }

    /// Gives back what was kept until now.
    pub(in crate::stream) fn reclaim<H: Host>(&mut self, session: &mut Session<'_, H>) {
        if !self.keeping.is_empty()
            && let Some(last) = self.keeping.last_given_back()
        {
            self.release_through(session, &last);
        }
    }

    /// Gives back the memory of that record and of all that were delivered before it.
    fn release_through<H: Host>(&mut self, session: &mut Session<'_, H>, record: &Delivered) {
        while self.first < record.extent && self.first < self.delivering {
            self.drop_first_extent(session);
        }
        if record.extent == self.first
            && let Some(extent) = self.extents.first_mut()
        {
            extent.release_to(record.release);
            if self.first == self.delivering {
                self.report(session);
            } else if extent.is_given_back() {
                // The stream has moved on; nobody waits for credit here.
                self.drop_first_extent(session);
            }
        }
        self.note_ways();
    }
}
