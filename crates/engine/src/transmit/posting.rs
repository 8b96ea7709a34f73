//! A message is posted: refused, sent as far as its link takes it, and the rest of it queued.

use alloc::vec::Vec;

use crate::backlog::{Offered, PartList, Source, Work};
use crate::limits::{DIRECT_BYTES_MAX, MESSAGE_BYTES_MAX, SHORT_BYTES_MAX, USER_METADATA_BYTES};
use crate::memory::{Area, Part, TxLinks, Unsent};
use crate::packet::{Flags, Header};
use crate::point::Point;
use crate::segment::Segmenter;
use crate::send_observer::{PostedData, SendEvent, SendObserver};
use crate::terminus::{GatherPiece, PostError, SendHandle, TerminusId};

use super::{Message, Posted, Transmitter, posted};

impl<A: Area, S: SendObserver<A>> Transmitter<A, S> {
    /// Sends a message of bytes at hand (direct I/O). If the link has no room, or messages wait for
    /// it, up to [`DIRECT_BYTES_MAX`] bytes are copied into the
    /// work queue; longer ones are refused. Never blocks; allocates only as a queue grows.
    #[inline]
    pub fn post<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data: &[u8],
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        self.post_made(id, || *message, metadata, data, tx_links)
    }

    /// As [`Transmitter::post`], of a message that is made when it is looked at, and so need not
    /// lie in memory.
    #[inline(always)]
    pub fn post_made<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: impl Fn() -> Message,
        metadata: &[u8],
        data: &[u8],
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        self.dispatch(id, message, metadata, Source::Bytes(data), tx_links)
    }

    /// As [`Transmitter::post`], for a message without metadata that is too long for a short
    /// packet, if it can go at once and as one packet. Otherwise nothing was sent, and
    /// [`Transmitter::post`] must decide.
    #[inline(always)]
    pub fn post_at_once<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: impl FnOnce() -> Message,
        data: &[u8],
        tx_links: &mut O,
    ) -> Option<SendHandle> {
        if data.len() <= SHORT_BYTES_MAX {
            return None;
        }
        tx_links.passes(Point::RequestWritten {
            pieces: 0,
            data_bytes: data.len() as u32,
        });
        let message = message();
        self.tell_posting(id, &|| message, &[], &Source::Bytes(data));
        let offered = self.offer_bytes(id, &message, &[], data, tx_links);
        let is_sent = offered == Some(Ok(()));
        let sequence = is_sent.then(|| self.accept(1));
        self.tell(|| SendEvent::Posted {
            terminus: id,
            sequence,
        });
        Some(posted(id, sequence?, true).handle)
    }

    /// The same of a message of any length that is one packet: the way of a sender that may not
    /// allocate, and so can queue nothing.
    #[cold]
    #[inline(never)]
    pub fn post_or_leave<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        data: &[u8],
        tx_links: &mut O,
    ) -> Result<Option<SendHandle>, PostError> {
        self.tell_posting(id, &|| *message, &[], &Source::Bytes(data));
        let offered = self.offer_bytes(id, message, &[], data, tx_links);
        let sequence = (offered == Some(Ok(()))).then(|| self.accept(1));
        self.tell(|| SendEvent::Posted {
            terminus: id,
            sequence,
        });
        if offered == Some(Err(Unsent::Gone)) {
            return Err(PostError::LinkGone);
        }
        let payload_max_bytes = tx_links.payload_max_bytes(message.link);
        let payload_max_bytes = payload_max_bytes.ok_or(PostError::LinkGone)?;
        segmenter(message, &[], data.len() as u64, payload_max_bytes)?;
        Ok(sequence.map(|sequence| posted(id, sequence, true).handle))
    }

    /// Sends a message whose data, and metadata if wanted, are gathered from send-buffer areas.
    /// What the link does not take waits. Never blocks; allocates only as a queue grows.
    pub fn post_gather<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        pieces: &[GatherPiece],
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        self.dispatch(id, || *message, metadata, Source::Pieces(pieces), tx_links)
    }

    /// Sends a message whose bytes the work queue keeps if it must wait: it takes them out of
    /// `data`, of whatever length, and drops them when the link has taken all of them. If the link
    /// takes all at once, or the message is refused, `data` stays as it is. Beyond the bytes that
    /// the terminus keeps for the link, refused as when the queue is full; a message alone may be
    /// longer than that. Never blocks; allocates only as a queue grows.
    pub fn post_owned<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data: &mut Vec<u8>,
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        self.dispatch(id, || *message, metadata, Source::Owned(data), tx_links)
    }

    /// As [`Transmitter::post_owned`], but copies the bytes if the message must wait.
    pub fn post_copied<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data: &[u8],
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        let source = match data.len() <= DIRECT_BYTES_MAX {
            true => Source::Bytes(data),
            false => Source::Copied(data),
        };
        self.dispatch(id, || *message, metadata, source, tx_links)
    }

    /// Announces a message of `data_bytes` bytes that are in their place already, by a grant of the
    /// receiver (decision 0006): one packet without data. It waits if it cannot go at once. The
    /// stores to the place must come before. Never blocks; allocates only as a queue grows.
    #[inline(always)]
    pub fn post_placed<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: impl Fn() -> Message,
        metadata: &[u8],
        data_bytes: u32,
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        let placed = || {
            let mut message = message();
            message.header.flags = message.header.flags.with(Flags::PLACED);
            message
        };
        self.dispatch(id, placed, metadata, Source::Placed(data_bytes), tx_links)
    }

    /// The one way of a message: refused, sent as far as its link takes it, and what is left of it
    /// queued.
    #[inline(always)]
    fn dispatch<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: impl Fn() -> Message,
        metadata: &[u8],
        source: Source<'_>,
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        let (pieces, data_bytes) = match &source {
            Source::Bytes(data) | Source::Copied(data) => (0, metadata.len() + data.len()),
            Source::Owned(data) => (0, metadata.len() + data.len()),
            Source::Placed(_) => (0, metadata.len()),
            Source::Pieces(pieces) => (pieces.len() + usize::from(!metadata.is_empty()), 0),
        };
        tx_links.passes(Point::RequestWritten {
            pieces: pieces as u32,
            data_bytes: data_bytes as u32,
        });
        self.tell_posting(id, &message, metadata, &source);
        let offered = match &source {
            _ if !O::TAKES => None,
            Source::Bytes(data) | Source::Copied(data) => {
                self.offer_bytes(id, &message(), metadata, data, tx_links)
            }
            Source::Owned(data) => self.offer_bytes(id, &message(), metadata, data, tx_links),
            Source::Placed(bytes) => self.offer_placed(id, &message(), metadata, *bytes, tx_links),
            Source::Pieces(_) => self.offer_gathered(id, &message(), metadata, &source, tx_links),
        };
        let result = if offered == Some(Ok(())) {
            Ok((self.accept(1), true))
        } else {
            self.dispatch_rest(id, &message(), metadata, source, offered, tx_links)
        };
        self.tell(|| SendEvent::Posted {
            terminus: id,
            sequence: result.as_ref().ok().map(|(sequence, _)| *sequence),
        });
        let (sequence, sent) = result?;
        Ok(posted(id, sequence, sent))
    }

    /// Tells who watches of a message that is posted.
    #[inline(always)]
    fn tell_posting(
        &mut self,
        id: TerminusId,
        message: &impl Fn() -> Message,
        metadata: &[u8],
        source: &Source<'_>,
    ) {
        if !S::LISTENS {
            return;
        }
        let observer = &mut self.observer;
        let mut tell = |data| {
            observer.observe(SendEvent::Posting {
                message: &message(),
                metadata,
                data,
            });
        };
        match source {
            Source::Bytes(data) | Source::Copied(data) => {
                tell(PostedData::Parts(&[Part::Bytes(data)]));
            }
            Source::Owned(data) => tell(PostedData::Parts(&[Part::Bytes(data)])),
            Source::Placed(data_bytes) => tell(PostedData::Placed(*data_bytes)),
            Source::Pieces(pieces) => {
                if let Some(terminus) = self.termini.get(id.name())
                    && terminus.measure(pieces).is_ok()
                {
                    tell(PostedData::Parts(
                        PartList::of_all(terminus, pieces).as_slice(),
                    ));
                }
            }
        }
    }

    /// As [`Transmitter::dispatch`], for a message that did not go at once; if it was `offered`,
    /// there was no room for it.
    #[inline(never)]
    fn dispatch_rest<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        source: Source<'_>,
        offered: Option<Result<(), Unsent>>,
        tx_links: &mut O,
    ) -> Result<(u64, bool), PostError> {
        let link = message.link;
        let terminus = self
            .termini
            .get(id.name())
            .ok_or(PostError::NoSuchTerminus)?;
        let data_bytes = source.length_bytes(terminus)?;
        if offered == Some(Err(Unsent::Gone)) {
            return Err(PostError::LinkGone);
        }
        let payload_max_bytes = tx_links.payload_max_bytes(link);
        let payload_max_bytes = payload_max_bytes.ok_or(PostError::LinkGone)?;
        let mut segmenter = segmenter(message, metadata, data_bytes, payload_max_bytes)?;
        if self.is_waiting_for(link) {
            if !source.can_wait()
                || !self.has_room(id, link)?
                || !self.has_room_to_keep(id, link, source.kept_bytes())?
            {
                return Err(PostError::QueueFull);
            }
        } else if !source.can_wait() {
            // If the link filled up half-way, the rest would have to wait in a buffer that is not
            // ours.
            return Err(PostError::TooLongToQueue {
                length_bytes: data_bytes,
            });
        } else if offered.is_none() && O::TAKES {
            loop {
                let payload_max_bytes = tx_links
                    .payload_max_bytes(link)
                    .ok_or(PostError::LinkGone)?;
                let segment = segmenter.next(payload_max_bytes);
                let offered = Offered::new(id, link, terminus, &mut self.observer);
                match offered.offer(tx_links, &source, &segment, metadata) {
                    Ok(()) if segment.last => return Ok((self.accept(1), true)),
                    Ok(()) => segmenter.advance(&segment),
                    Err(Unsent::Full) => break,
                    Err(Unsent::Gone) => return Err(PostError::LinkGone),
                }
            }
        }
        let sequence = self.accept(1);
        self.enqueue(id, link, Work::new(sequence, segmenter, metadata, source));
        Ok((sequence, false))
    }
}

/// Checks a message and makes it ready to be cut.
#[inline(always)]
pub(super) fn segmenter(
    message: &Message,
    metadata: &[u8],
    data_bytes: u64,
    payload_max_bytes: usize,
) -> Result<Segmenter, PostError> {
    if metadata.len() > USER_METADATA_BYTES {
        return Err(PostError::MetadataTooLong {
            length_bytes: metadata.len(),
        });
    }
    if data_bytes > MESSAGE_BYTES_MAX || message.header.ends_beyond(data_bytes) {
        return Err(PostError::TooLong);
    }
    let too_long = data_bytes > payload_max_bytes as u64 && !message.header.flags.is_placed();
    let header = &message.header;
    let may_have_metadata = !header.is_fast() || header.kind.is_request();
    if header.is_fast() && too_long || !may_have_metadata && !metadata.is_empty() {
        return Err(PostError::FastTooLong {
            length_bytes: data_bytes,
            payload_max_bytes,
        });
    }
    let header = Header {
        metadata_length_bytes: metadata.len() as u8,
        ..message.header
    };
    Ok(Segmenter::new(
        header,
        message.share,
        data_bytes,
        payload_max_bytes,
    )?)
}
