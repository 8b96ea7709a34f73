//! Cutting a message into packets (`Hamlyn 2.3`): the offset is adjusted in
//! each, all metadata travel in the first, and the deltas sum to the message's share.

use crate::counting::{Share, ShareTooSmall, packets_needed};
use crate::packet::Header;

/// A message on its way out: what its next packet is.
#[derive(Clone, Copy, Debug)]
pub struct Segmenter {
    /// Header of the first packet; `word` is kept for fast mode.
    template: Header,
    share: Share,
    /// The terminus' packet counter (`Hamlyn 2.5`).
    counter: u64,
    data_bytes: u64,
    sent_bytes: u64,
    started: bool,
}

/// One packet of a message.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Its header.
    pub header: Header,
    /// Where in the message its data begin.
    pub start: u64,
    /// Whether it is the last.
    pub last: bool,
}

impl Segmenter {
    /// A message of `data_bytes` bytes with the header of its first packet, of
    /// which offset, metadata length and the other names are used. Refused if the share
    /// cannot count its packets. A placed message is one packet, so it must have less than 4 GiB.
    #[inline(always)]
    pub fn new(
        template: Header,
        share: Share,
        data_bytes: u64,
        payload_max_bytes: usize,
    ) -> Result<Self, ShareTooSmall> {
        let metadata_bytes = usize::from(template.metadata_length_bytes);
        let packets = if template.flags.is_placed() {
            1
        } else {
            packets_needed(data_bytes, metadata_bytes, payload_max_bytes)
        };
        share.check(packets)?;
        Ok(Self {
            template,
            share,
            counter: share.counter(),
            data_bytes,
            sent_bytes: 0,
            started: false,
        })
    }

    /// The next packet, for a link whose packets carry at most `payload_max_bytes`.
    /// The same until [`Segmenter::advance`].
    #[inline(always)]
    pub fn next(&self, payload_max_bytes: usize) -> Segment {
        let metadata_length_bytes = if self.started {
            0
        } else {
            self.template.metadata_length_bytes
        };
        let room = payload_max_bytes - usize::from(metadata_length_bytes);
        let left = self.data_bytes - self.sent_bytes;
        // What is in its place already needs no room.
        let last = left <= room as u64 || self.template.flags.is_placed();
        let length_bytes = if last { left as u32 } else { room as u32 };
        let word = match (self.template.is_fast(), last) {
            (true, _) => self.template.word,
            (false, true) => self.counter,
            (false, false) => 1,
        };
        Segment {
            header: Header {
                offset: self.template.offset + self.sent_bytes,
                length_bytes,
                word,
                metadata_length_bytes,
                ..self.template
            },
            start: self.sent_bytes,
            last,
        }
    }

    /// The packet was taken.
    #[inline]
    pub fn advance(&mut self, segment: &Segment) {
        self.started = true;
        self.sent_bytes += u64::from(segment.header.length_bytes);
        self.counter = self.share.decrement(self.counter);
    }

    /// Whether what is left can go in packets of that payload: a message in fast mode is one
    /// packet, whatever its link has become since it was accepted.
    #[inline]
    pub fn fits(&self, payload_max_bytes: usize) -> bool {
        !self.template.is_fast()
            || self.template.flags.is_placed()
            || self.data_bytes <= payload_max_bytes as u64
    }

    /// Whether a packet of the message was taken already.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Bytes of data that were taken.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}
