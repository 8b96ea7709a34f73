//! Announcing what is in its place already (direct placement, decision 0006).

use crate::limits::PACKET_PAYLOAD_MIN;
use crate::memory::{Area, Outlet, Unsent};
use crate::packet::{Flags, Header};
use crate::terminus::{PostError, TerminusId};

use super::{Message, Posted, Transmitter, segmenter};

impl<A: Area> Transmitter<A> {
    /// Announces a message of `data_bytes` bytes that are in their place already, by a grant of
    /// the receiver (decision 0006): one packet without data. It waits in the work queue if it cannot go at
    /// once. The stores to the place must come before. Never blocks, never allocates.
    pub fn post_placed<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data_bytes: u32,
        outlet: &mut O,
    ) -> Result<Posted, PostError> {
        let message = Message {
            header: Header {
                flags: message.header.flags.with(Flags::PLACED),
                ..message.header
            },
            ..*message
        };
        let segmenter = segmenter(&message, metadata, u64::from(data_bytes), outlet)?;
        // The order among termini is kept, and that within this one.
        let nobody_waits = self.queued == 0;
        let terminus = self.posting(id)?;
        if nobody_waits {
            let segment = segmenter.next(PACKET_PAYLOAD_MIN);
            match outlet.offer(message.link, &segment.header, metadata, &[]) {
                Ok(()) => {
                    return Ok(Posted::new(id, terminus.sent_at_once(), true));
                }
                Err(Unsent::Gone) => return Err(PostError::LinkGone),
                Err(Unsent::Full) => {}
            }
        }
        self.queue_direct(id, message.link, segmenter, metadata, &[])
    }

    /// Whether a message to that terminus would be taken: its queue has room.
    pub fn has_room(&self, id: TerminusId) -> Result<bool, PostError> {
        match self.termini.get(id.0 as usize) {
            Some(Some(terminus)) => Ok(!terminus.is_full()),
            _ => Err(PostError::NoSuchTerminus),
        }
    }
}
