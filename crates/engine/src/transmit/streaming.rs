//! Messages that are sent from where they lie, as far as their link takes them, in the turns of
//! their terminus.

use crate::backlog::{Offered, Source};
use crate::limits::STREAMING_BURST;
use crate::memory::{Area, LinkId, TxLinks, Unsent};
use crate::segment::Segmenter;
use crate::send_observer::{SendEvent, SendObserver};
use crate::terminus::{PostError, SendHandle, TerminusId};

use super::posting::segmenter;
use super::{Message, Transmitter, backlog_of, posted};

/// How a streaming send stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendProgress {
    /// All of it was taken.
    Sent,
    /// As many packets as allowed were taken; there are more.
    More,
    /// The link has no room at present.
    Full,
    /// The link is gone.
    Gone,
}

/// A message that is sent from where it lies, in the turns of its terminus.
pub(super) struct StreamingSend<'a> {
    pub(super) id: TerminusId,
    segmenter: &'a mut Segmenter,
    metadata: &'a [u8],
    data: &'a [u8],
    /// Packets that it may still send before it yields.
    burst_left: usize,
    /// How it stands; full until it is known better.
    pub(super) state: SendProgress,
}

impl StreamingSend<'_> {
    /// Offers one packet of it; whether the link took it.
    pub(super) fn send_one<A: Area, S: SendObserver<A>, O: TxLinks<A>>(
        &mut self,
        offered: Offered<'_, A, S>,
        tx_links: &mut O,
    ) -> bool {
        let Some(payload_max_bytes) = tx_links.payload_max_bytes(offered.link) else {
            self.state = SendProgress::Gone;
            return false;
        };
        let segment = self.segmenter.next(payload_max_bytes);
        let source = Source::Bytes(self.data);
        match offered.offer(tx_links, &source, &segment, self.metadata) {
            Ok(()) => {
                self.segmenter.advance(&segment);
                self.burst_left -= 1;
                if segment.last {
                    self.state = SendProgress::Sent;
                } else if self.burst_left == 0 {
                    self.state = SendProgress::More;
                }
                true
            }
            Err(Unsent::Full) => false,
            Err(Unsent::Gone) => {
                self.state = SendProgress::Gone;
                false
            }
        }
    }
}

impl<A: Area, S: SendObserver<A>> Transmitter<A, S> {
    /// Begins a message whose bytes stay the caller's and are sent from where they are, by calls of
    /// [`Transmitter::continue_streaming`]. Nothing of the terminus may wait for the same link, as
    /// their order is kept.
    pub fn begin_streaming<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data_bytes: u64,
        tx_links: &O,
    ) -> Result<Segmenter, PostError> {
        if !self.termini.contains(id.name()) {
            return Err(PostError::NoSuchTerminus);
        }
        let backlog = self.backlog(message.link);
        if backlog.is_some_and(|backlog| backlog.waiting_of(id) != 0) {
            return Err(PostError::QueueFull);
        }
        let payload_max_bytes = tx_links.payload_max_bytes(message.link);
        let payload_max_bytes = payload_max_bytes.ok_or(PostError::LinkGone)?;
        let segmenter = segmenter(message, metadata, data_bytes, payload_max_bytes)?;
        self.tell(|| SendEvent::StreamingBegun {
            terminus: id,
            message,
            metadata,
        });
        Ok(segmenter)
    }

    /// Sends as many packets of a streaming send as the link takes, at most [`STREAMING_BURST`].
    /// Other termini whose messages wait for the link have their turns meanwhile. When it is all
    /// sent, the caller reports it with [`Transmitter::finish_streaming`].
    pub fn continue_streaming<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        segmenter: &mut Segmenter,
        metadata: &[u8],
        data: &[u8],
        tx_links: &mut O,
    ) -> Result<SendProgress, PostError> {
        self.tell(|| SendEvent::StreamingContinued {
            terminus: id,
            link,
            data,
        });
        let terminus = self
            .termini
            .get(id.name())
            .ok_or(PostError::NoSuchTerminus)?;
        if let Some(payload_max_bytes) = tx_links.payload_max_bytes(link)
            && !segmenter.fits(payload_max_bytes)
        {
            return Err(PostError::FastTooLong {
                length_bytes: data.len() as u64,
                payload_max_bytes,
            });
        }
        let mut streaming_send = StreamingSend {
            id,
            segmenter,
            metadata,
            data,
            burst_left: STREAMING_BURST,
            state: SendProgress::Full,
        };
        if self.is_waiting_for(link) {
            backlog_of(&mut self.backlogs, &mut self.waiting, link).enter(id, terminus);
            self.serve(link.index, usize::MAX, Some(&mut streaming_send), tx_links);
        } else {
            let observer = &mut self.observer;
            while streaming_send.send_one(Offered::new(id, link, terminus, observer), tx_links)
                && streaming_send.state == SendProgress::Full
            {}
        }
        Ok(streaming_send.state)
    }

    /// Accounts for a streaming send that is all sent.
    pub fn finish_streaming(&mut self, id: TerminusId) -> Result<SendHandle, PostError> {
        if !self.termini.contains(id.name()) {
            return Err(PostError::NoSuchTerminus);
        }
        let handle = posted(id, self.accept(1), true).handle;
        self.tell(|| SendEvent::StreamingFinished(handle));
        Ok(handle)
    }
}
