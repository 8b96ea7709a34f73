//! Frames that one call received and that wait in the receive queue.
//!
//! If they fill half of what a call can bring, they keep the memory in which they came, and are
//! read where they lie; of fewer, the packets are copied, so that no more than twice as much memory
//! waits as bytes in it.

use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Cursor, Packet, Packets, ReceiveToken};

use crate::udp::batch::{INBOX_BYTES, Inbox};

/// So many bytes of packets keep the memory in which they came.
const WHOLE_BYTES_MIN: usize = INBOX_BYTES / 2;
/// Memory of either kind that is kept for later.
const SPARE_MAX: usize = 16;

/// A frame that was let in.
pub(super) struct ReceivedFrame {
    token: ReceiveToken,
    /// Where its packets lie.
    start: usize,
    end: usize,
}

impl ReceivedFrame {
    /// Of a frame that begins there.
    #[inline]
    pub(super) fn new(token: ReceiveToken, frame_at: usize) -> Self {
        let packets = token.range();
        Self {
            start: frame_at + packets.start,
            end: frame_at + packets.end,
            token,
        }
    }

    #[inline]
    pub(super) fn packet_bytes(&self) -> usize {
        self.end - self.start
    }
}

/// See the module. Frames and their packets are read in order.
#[derive(Default)]
pub(in crate::udp_endpoint) struct ReceivedBatch {
    memory: Vec<u8>,
    frames: Vec<ReceivedFrame>,
    packet_bytes: usize,
    /// Those before it were read to their end.
    at: usize,
    /// How far that one was read, and which of its packets is the next.
    cursor: Cursor,
    index: u16,
    /// Frame and packet that were read last.
    last: (usize, u16),
    /// Packets that were not welcome: frame, packet, why. In order.
    refusals: Vec<(usize, u16, Refusal)>,
}

impl ReceivedBatch {
    /// Bytes of all packets.
    pub(super) fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// The next packet.
    #[inline]
    pub(in crate::udp_endpoint) fn next(&mut self) -> Option<Packet<'_>> {
        let frame = self.frames.get(self.at)?;
        let bytes = self.memory.get(frame.start..frame.end)?;
        let mut packets = Packets::resume(bytes, self.cursor);
        let packet = packets.next()?;
        self.last = (self.at, self.index);
        self.index += 1;
        if self.index < frame.token.count() {
            self.cursor = packets.cursor(self.cursor);
        } else {
            self.at += 1;
            (self.cursor, self.index) = (Cursor::default(), 0);
        }
        Some(packet)
    }

    /// Whether all packets of all frames were read.
    #[inline]
    pub(in crate::udp_endpoint) fn is_through(&self) -> bool {
        self.at >= self.frames.len()
    }

    /// The packet that was read last is not welcome.
    #[cold]
    pub(in crate::udp_endpoint) fn note_refusal(&mut self, refusal: Refusal) {
        self.refusals.push((self.last.0, self.last.1, refusal));
    }

    /// Gives out the frames that were read to their end, each with its refused packets, and forgets
    /// them.
    pub(super) fn take_through(
        &mut self,
        mut take: impl FnMut(ReceiveToken, &[(usize, u16, Refusal)]),
    ) {
        let mut refusals = &self.refusals[..];
        for (at, frame) in self.frames.drain(..self.at).enumerate() {
            let of_it = refusals.iter().take_while(|refusal| refusal.0 == at);
            let (refused, rest) = refusals.split_at(of_it.count());
            refusals = rest;
            take(frame.token, refused);
        }
        self.at = 0;
        self.refusals.clear();
    }

    /// All frames that were not taken.
    pub(super) fn into_tokens(self) -> impl Iterator<Item = ReceiveToken> {
        self.frames.into_iter().map(|frame| frame.token)
    }
}

/// Memory for the next frames.
#[derive(Default)]
pub(super) struct Spare {
    /// As long as what a call brings.
    whole: Vec<ReceivedBatch>,
    /// As long as the frames that were copied into it.
    small: Vec<ReceivedBatch>,
}

impl Spare {
    /// Keeps frames that lie in an inbox, which is given other memory if it needs that.
    pub(super) fn keep(
        &mut self,
        fresh: &mut Vec<ReceivedFrame>,
        inbox: &mut Inbox,
    ) -> ReceivedBatch {
        let packet_bytes: usize = fresh.iter().map(ReceivedFrame::packet_bytes).sum();
        // The rest of the inbox is for other connections.
        let is_whole = packet_bytes >= WHOLE_BYTES_MIN && inbox.is_empty();
        let spare = match is_whole {
            true => &mut self.whole,
            false => &mut self.small,
        };
        let mut batch = spare.pop().unwrap_or_default();
        if is_whole {
            inbox.exchange(&mut batch.memory);
        } else {
            batch.memory.clear();
            for frame in &mut *fresh {
                let start = batch.memory.len();
                let packets = inbox.bytes().get(frame.start..frame.end);
                batch.memory.extend_from_slice(packets.unwrap_or_default());
                (frame.start, frame.end) = (start, batch.memory.len());
            }
        }
        core::mem::swap(&mut batch.frames, fresh);
        batch.packet_bytes = packet_bytes;
        batch
    }

    /// They were taken.
    pub(super) fn put(&mut self, batch: ReceivedBatch) {
        let spare = match batch.memory.len() {
            INBOX_BYTES => &mut self.whole,
            _ => &mut self.small,
        };
        if batch.frames.is_empty() && spare.len() < SPARE_MAX {
            spare.push(batch);
        }
    }

    /// Gives the memory back; how many bytes.
    pub(super) fn give_back(&mut self) -> usize {
        let bytes = self.whole.iter().chain(&self.small);
        let bytes = bytes.map(|batch| batch.memory.capacity()).sum();
        *self = Self::default();
        bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.small.is_empty()
    }
}
