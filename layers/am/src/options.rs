//! Options of a node.

use std::time::Duration;

use hamlyn::region::REGION_TICKET_BYTES;
use hamlyn::ticket::TICKET_BYTES;

use crate::error::Error;
use crate::wire::{OVERHEAD_BYTES, RECORDS};

/// Bytes of the longest data of a message that the layer sends for itself.
const TICKETS_BYTES: u32 = (TICKET_BYTES + REGION_TICKET_BYTES) as u32;

/// Options of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeOptions {
    /// Requests that an endpoint may have outstanding for each translation: K, 1 to 24. Default 16,
    /// by the rule of `V 4.2` for this kind of machine: round trip over gap, to the next power of
    /// two.
    pub credits: u16,
    /// Bytes of the request queue of an endpoint, 512 to 2^30; one link may take half of it. A
    /// request counts 64 for each 64 bytes that it begins. Requests that find no room are sent
    /// again. Default 1 MiB, which takes memory only as it is used.
    pub queue_bytes: u32,
    /// Bytes of the queue of replies of the whole node, in the same way. Default 8 MiB.
    pub reply_queue_bytes: u32,
    /// Bytes of data of the longest medium message and reply; fewer for a link whose packets are
    /// shorter. It fits half of each queue with 120 bytes beside. Default 8,000: on one host a
    /// longer message waits until its receiver has given back the memory of the one before.
    pub medium_bytes_max: u32,
    /// Endpoints that are resident at a time, 1 to 32,767. Default 1,024.
    pub frames: u16,
    /// Messages that a visit of an endpoint takes at most: 2^k (`V 4.1`), 1 to 65,535. An endpoint
    /// that was loaded stays until it has taken as many, or has none. Default 64.
    pub visit: u16,
    /// Time for which a message may be refused, for want of room or of a frame, until it comes back
    /// ([`Reason::Congestion`](crate::Reason::Congestion)). Default 10 s.
    pub congestion: Duration,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            credits: 16,
            queue_bytes: 1 << 20,
            reply_queue_bytes: 8 << 20,
            medium_bytes_max: 8_000,
            frames: 1024,
            visit: 64,
            congestion: Duration::from_secs(10),
        }
    }
}

impl NodeOptions {
    /// The paper's setting (`V 4.1`, `V 4.2`): K = 4, queues of 16 short messages, mediums of 256
    /// bytes, 7 frames, visits of 2^8 messages.
    pub fn paper() -> Self {
        Self {
            credits: 4,
            queue_bytes: 16 * 64,
            medium_bytes_max: 256,
            frames: 7,
            visit: 256,
            ..Self::default()
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        // The layer's own messages have a ticket, or the tickets of a segment.
        let data_bytes = self.medium_bytes_max.max(TICKETS_BYTES);
        let message_bytes = u64::from(data_bytes) + OVERHEAD_BYTES as u64;
        let half = |bytes: u32| u64::from(bytes / 2) / 64 * 64;
        let (credits, frames) = (u64::from(self.credits), u64::from(self.frames));
        let settings = [
            ("credits", credits, (1..=RECORDS as u64).contains(&credits)),
            ("frames", frames, (1..=32_767).contains(&frames)),
            ("visit", self.visit.into(), self.visit > 0),
            (
                "queue_bytes",
                self.queue_bytes.into(),
                half(self.queue_bytes) >= message_bytes,
            ),
            (
                "reply_queue_bytes",
                self.reply_queue_bytes.into(),
                half(self.reply_queue_bytes) >= message_bytes,
            ),
        ];
        match settings.into_iter().find(|(_, _, is_good)| !is_good) {
            Some((setting, value, _)) => Err(Error::Setting { setting, value }),
            None => Ok(()),
        }
    }
}
