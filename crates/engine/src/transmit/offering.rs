//! Messages that are one packet and go at once: nothing is made ready to be cut, or to wait.

use crate::backlog::{Offered, Source, pass_cut, pass_out};
use crate::limits::USER_METADATA_BYTES;
use crate::memory::{Area, LinkId, Part, TxLinks, Unsent};
use crate::packet::Header;
use crate::send_observer::{SendEvent, SendObserver};
use crate::terminus::TerminusId;

use super::posting::segmenter;
use super::{Message, Transmitter};

impl<A: Area, S: SendObserver<A>> Transmitter<A, S> {
    /// Offers the link a message that is one packet, if it may go at once; whatever else it may be
    /// is left to [`Transmitter::dispatch_rest`].
    #[inline(always)]
    pub(super) fn offer_bytes<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data: &[u8],
        tx_links: &mut O,
    ) -> Option<Result<(), Unsent>> {
        let link = message.link;
        let room = tx_links
            .payload_max_bytes(link)?
            .checked_sub(metadata.len())?;
        if data.len() > room || !self.sends_at_once(id, link) {
            return None;
        }
        let header = &whole(message, metadata, data.len() as u32)?;
        pass_cut(tx_links, header, true, false);
        let parts = &[Part::Bytes(data)];
        let offered = tx_links.offer(link, header, metadata, parts);
        if offered.is_ok() {
            self.tell_left(id, link, header, metadata, parts);
            pass_out(tx_links, header);
        }
        Some(offered)
    }

    /// The same of a message whose data are in their place, and so need no room.
    #[inline(always)]
    pub(super) fn offer_placed<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data_bytes: u32,
        tx_links: &mut O,
    ) -> Option<Result<(), Unsent>> {
        let link = message.link;
        if !self.sends_at_once(id, link) {
            return None;
        }
        let header = &whole(message, metadata, data_bytes)?;
        pass_cut(tx_links, header, true, false);
        let offered = tx_links.offer(link, header, metadata, &[]);
        if offered.is_ok() {
            self.tell_left(id, link, header, metadata, &[]);
            pass_out(tx_links, header);
        }
        Some(offered)
    }

    /// Tells who watches of a packet that left.
    #[inline(always)]
    fn tell_left(
        &mut self,
        terminus: TerminusId,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, A>],
    ) {
        self.tell(|| SendEvent::Left {
            terminus,
            link,
            header,
            metadata,
            parts,
        });
    }

    /// The same of a message that is gathered.
    #[inline(always)]
    pub(super) fn offer_gathered<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        source: &Source<'_>,
        tx_links: &mut O,
    ) -> Option<Result<(), Unsent>> {
        let link = message.link;
        let terminus = self.termini.get(id.name())?;
        let data_bytes = source.length_bytes(terminus).ok()?;
        let payload_max_bytes = tx_links.payload_max_bytes(link)?;
        let segmenter = segmenter(message, metadata, data_bytes, payload_max_bytes).ok()?;
        let segment = segmenter.next(payload_max_bytes);
        if !segment.last || self.is_waiting_for(link) {
            return None;
        }
        let offered = Offered::new(id, link, terminus, &mut self.observer);
        Some(offered.offer(tx_links, source, &segment, metadata))
    }
}

/// The header of a message that is one packet, unless something is wrong with it.
#[inline(always)]
fn whole(message: &Message, metadata: &[u8], data_bytes: u32) -> Option<Header> {
    let header = &message.header;
    let is_fast = header.is_fast();
    if metadata.len() > USER_METADATA_BYTES
        || is_fast && !metadata.is_empty()
        || header.ends_beyond(u64::from(data_bytes))
    {
        return None;
    }
    Some(Header {
        length_bytes: data_bytes,
        word: if is_fast {
            header.word
        } else {
            message.share.counter()
        },
        metadata_length_bytes: metadata.len() as u8,
        ..*header
    })
}
