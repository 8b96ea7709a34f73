//! The transmitting half of the interface: takes messages, gives packets, and
//! shares each link fairly among termini (`Hamlyn 2.3`).
//!
//! It never waits: a packet that a link does not take stays where it is, and holds up nothing that goes to
//! another link. It does not look at what comes in, so that reception cannot depend on it.
//!
//! Every message goes out by one decision, [`Transmitter::post`] and its likes for gathered and placed data; beside it
//! stands [`Transmitter::post_short`], which sends or does nothing.

mod offering;
mod pump;
mod streaming;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::backlog::{Backlog, Source, Work, offer};
use crate::counting::Share;
use crate::limits::{MESSAGE_BYTES_MAX, SHORT_BYTES_MAX, TERMINI_MAX, USER_METADATA_BYTES};
use crate::memory::{Area, LinkId, TxLinks, Unsent};
use crate::packet::{Flags, Header, Short};
use crate::point::Point;
use crate::segment::Segmenter;
use crate::table::Table;
use crate::terminus::{
    Completion, GatherPiece, PostError, SendHandle, SendTag, Terminus, TerminusError, TerminusId,
    TerminusOptions,
};

pub use streaming::SendProgress;

/// A message to be sent: where it goes and how it is counted. Of the header, the
/// packet length is computed; the word is used in fast mode only.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The link to its receiver.
    pub link: LinkId,
    /// Slot, metadata index, key, offset, flags, kind; in fast mode the word.
    pub header: Header,
    /// Its share of the receiver's count; [`Share::whole`] for a message alone.
    pub share: Share,
}

/// What [`Transmitter::post`] did with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Posted {
    /// To ask for its completion.
    pub handle: SendHandle,
    /// Whether it is out already, its buffers free.
    pub sent: bool,
}

/// What [`Transmitter::pump`] achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pumped {
    /// Packets that links took.
    pub packets: usize,
    /// Whether messages are still waiting.
    pub waiting: bool,
}

/// The transmitting half. See the module for what it does.
///
/// * For the application: `open_terminus`, `close_terminus`, `bind_area`, `unbind_area`,
///   `post`, `post_placed`, `post_gather`, `begin_streaming`, `continue_streaming`, `finish_streaming`, `completion`.
/// * For the host: `pump`, `link_ended`, `shrink`.
#[derive(Debug)]
pub struct Transmitter<A> {
    termini: Table<Terminus<A>>,
    /// The terminus that was used last, as long as it is open and no message waits for any link: then what is posted
    /// there goes at once.
    at_hand: TerminusId,
    /// Messages accepted so far: the sequence number of the last.
    accepted: u64,
    /// What waits for each link, by the link's index.
    backlogs: Vec<Backlog>,
    /// Indices of links that messages wait for, in the order in which they are served.
    listed: VecDeque<u32>,
    /// Messages that wait for all links.
    waiting: usize,
    pumps: u32,
}

impl<A: Area> Default for Transmitter<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Area> Transmitter<A> {
    /// A half without termini.
    pub fn new() -> Self {
        Self {
            // The last generation is nobody's.
            termini: Table::new(TERMINI_MAX, u32::MAX - 1),
            at_hand: TerminusId::NOBODY,
            accepted: 0,
            backlogs: Vec::new(),
            listed: VecDeque::new(),
            waiting: 0,
            pumps: 0,
        }
    }

    /// Opens a terminus.
    pub fn open_terminus(&mut self, options: TerminusOptions) -> Result<TerminusId, TerminusError> {
        let terminus = Terminus::new(options)?;
        self.termini
            .insert(terminus)
            .map(TerminusId::new)
            .ok_or(TerminusError::TooMany)
    }

    /// Closes a terminus; what is still queued is dropped.
    pub fn close_terminus(&mut self, id: TerminusId) -> Result<(), TerminusError> {
        self.termini
            .remove(id.name())
            .ok_or(TerminusError::NoSuchTerminus)?;
        self.at_hand = TerminusId::NOBODY;
        for backlog in &mut self.backlogs {
            self.waiting -= backlog.drop_lane(id);
        }
        Ok(())
    }

    /// Makes a part of an area a send-buffer area of the terminus (`Hamlyn 2.3`).
    pub fn bind_area(
        &mut self,
        id: TerminusId,
        area: A,
        base: u64,
        length_bytes: u64,
    ) -> Result<SendTag, TerminusError> {
        let terminus = self.termini.get_mut(id.name());
        let terminus = terminus.ok_or(TerminusError::NoSuchTerminus)?;
        terminus.bind(area, base, length_bytes)
    }

    /// Takes a send-buffer area away again; refused while messages use it.
    pub fn unbind_area(&mut self, id: TerminusId, tag: SendTag) -> Result<(), TerminusError> {
        let is_used = self.backlogs.iter().any(|backlog| backlog.uses(id, tag));
        let terminus = self.termini.get_mut(id.name());
        let terminus = terminus.ok_or(TerminusError::NoSuchTerminus)?;
        terminus.unbind(tag, is_used)
    }

    /// What became of a message: whether its buffers may be used again. A failure is remembered until as many later
    /// messages to the same destination failed as the queue holds.
    pub fn completion(&self, handle: SendHandle) -> Result<Completion, TerminusError> {
        let (id, sequence) = (handle.terminus, handle.sequence);
        if !self.termini.contains(id.name()) {
            return Err(TerminusError::NoSuchTerminus);
        }
        if sequence > self.accepted {
            return Ok(Completion::Pending);
        }
        let known = |backlog: &Backlog| backlog.completion(id, sequence);
        Ok(self
            .backlogs
            .iter()
            .find_map(known)
            .unwrap_or(Completion::Sent))
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether any message waits.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waiting != 0
    }

    /// Whether any message waits for that link.
    #[inline]
    pub fn is_waiting_for(&self, link: LinkId) -> bool {
        self.waiting != 0 && self.backlog(link).is_some()
    }

    /// How many messages were accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether any of the first `accepted` messages waits for that link.
    pub fn waits_before(&self, link: LinkId, accepted: u64) -> bool {
        self.waiting != 0
            && self
                .backlog(link)
                .is_some_and(|backlog| backlog.waits_before(accepted))
    }

    /// What waits for that link, if anything does.
    fn backlog(&self, link: LinkId) -> Option<&Backlog> {
        let backlog = self.backlogs.get(link.index as usize)?;
        (backlog.link == link && backlog.waiting() != 0).then_some(backlog)
    }

    /// Sends a message of bytes at hand (direct I/O). If the link has no room, or messages wait for it,
    /// up to [`DIRECT_BYTES_MAX`](crate::limits::DIRECT_BYTES_MAX) bytes are copied into the work queue; longer
    /// ones are refused. Never blocks; allocates only as a queue grows.
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

    /// As [`Transmitter::post`], of a message that is made when it is looked at, and so need not lie in memory.
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

    /// As [`Transmitter::post`], for a message without metadata that is too long for a short packet, if it can go at once
    /// and as one packet. Otherwise nothing was sent, and [`Transmitter::post`] must decide.
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
        let offered = self.offer_bytes(id, &message(), &[], data, tx_links)?;
        offered.ok()?;
        Some(posted(id, self.accept(1), true).handle)
    }

    /// Sends a message whose data, and metadata if wanted, are gathered from
    /// send-buffer areas. What the link does not take waits. Never blocks; allocates only as a queue grows.
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

    /// Announces a message of `data_bytes` bytes that are in their place already, by a grant of
    /// the receiver (decision 0006): one packet without data. It waits if it cannot go at
    /// once. The stores to the place must come before. Never blocks; allocates only as a queue grows.
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

    /// Whether the queue of a terminus for that link has room.
    #[inline]
    pub fn has_room(&self, id: TerminusId, link: LinkId) -> Result<bool, PostError> {
        if id == self.at_hand {
            return Ok(true);
        }
        let terminus = self
            .termini
            .get(id.name())
            .ok_or(PostError::NoSuchTerminus)?;
        let waiting = match self.waiting {
            0 => 0,
            _ => self
                .backlog(link)
                .map_or(0, |backlog| backlog.waiting_of(id)),
        };
        Ok(waiting < terminus.queue_entries)
    }

    /// The one way of a message: refused, sent as far as its link takes it, and what is left of it queued.
    #[inline(always)]
    fn dispatch<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        message: impl Fn() -> Message,
        metadata: &[u8],
        source: Source<'_>,
        tx_links: &mut O,
    ) -> Result<Posted, PostError> {
        let (pieces, data_bytes) = match source {
            Source::Bytes(data) => (0, metadata.len() + data.len()),
            Source::Placed(_) => (0, metadata.len()),
            Source::Pieces(pieces) => (pieces.len() + usize::from(!metadata.is_empty()), 0),
        };
        tx_links.passes(Point::RequestWritten {
            pieces: pieces as u32,
            data_bytes: data_bytes as u32,
        });
        let offered = match source {
            _ if !O::TAKES => None,
            Source::Bytes(data) => self.offer_bytes(id, &message(), metadata, data, tx_links),
            Source::Placed(bytes) => self.offer_placed(id, &message(), metadata, bytes, tx_links),
            Source::Pieces(_) => self.offer_gathered(id, &message(), metadata, &source, tx_links),
        };
        let (sequence, sent) = if offered == Some(Ok(())) {
            (self.accept(1), true)
        } else {
            self.dispatch_rest(id, &message(), metadata, source, offered, tx_links)?
        };
        Ok(posted(id, sequence, sent))
    }

    /// As [`Transmitter::dispatch`], for a message that did not go at once; if it was `offered`, there was no room for it.
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
            if !source.can_wait() || !self.has_room(id, link)? {
                return Err(PostError::QueueFull);
            }
        } else if !source.can_wait() {
            // If the link filled up half-way, the rest would have to wait in a buffer that is not ours.
            return Err(PostError::TooLongToQueue {
                length_bytes: data_bytes,
            });
        } else if offered.is_none() && O::TAKES {
            loop {
                let payload_max_bytes = tx_links
                    .payload_max_bytes(link)
                    .ok_or(PostError::LinkGone)?;
                let segment = segmenter.next(payload_max_bytes);
                match offer(tx_links, link, terminus, &source, &segment, metadata) {
                    Ok(()) if segment.last => return Ok((self.accept(1), true)),
                    Ok(()) => segmenter.advance(&segment),
                    Err(Unsent::Full) => break,
                    Err(Unsent::Gone) => return Err(PostError::LinkGone),
                }
            }
        }
        let sequence = self.accept(1);
        self.enqueue(id, link, Work::new(sequence, segmenter, metadata, &source));
        Ok((sequence, false))
    }

    /// Puts a message behind the others for its link.
    fn enqueue(&mut self, id: TerminusId, link: LinkId, work: Work) {
        let Some(terminus) = self.termini.get(id.name()) else {
            return;
        };
        let backlog = backlog_of(&mut self.backlogs, &mut self.waiting, link);
        backlog.push(id, terminus, work);
        self.waiting += 1;
        self.at_hand = TerminusId::NOBODY;
        if !backlog.is_listed {
            backlog.is_listed = true;
            self.listed.push_back(link.index);
        }
    }

    /// Accounts for messages that were accepted; the sequence number of the last.
    #[inline(always)]
    fn accept(&mut self, count: usize) -> u64 {
        self.accepted += count as u64;
        self.accepted
    }

    /// Whether there is a terminus of that name, and nothing waits for that link.
    #[inline(always)]
    fn sends_at_once(&mut self, id: TerminusId, link: LinkId) -> bool {
        id == self.at_hand || self.reaches(id, link.to_bits())
    }

    #[cold]
    #[inline(never)]
    fn reaches(&mut self, id: TerminusId, link_bits: u64) -> bool {
        let is_open = self.termini.contains(id.name());
        if is_open && self.waiting == 0 {
            self.at_hand = id;
        }
        is_open && !self.is_waiting_for(LinkId::from_bits(link_bits))
    }

    /// As [`Transmitter::post`], for a message that is a short packet, which is asked for only when it can
    /// go. Nothing if it cannot go at once, for whatever reason; [`Transmitter::post`] knows what to do then.
    #[inline(always)]
    pub fn post_short<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        short: impl FnOnce() -> Short,
        tx_links: &mut O,
    ) -> Option<SendHandle> {
        if !self.sends_at_once(id, link) {
            return None;
        }
        tx_links.offer_short(link, short).then(|| SendHandle {
            terminus: id,
            sequence: self.accept(1),
        })
    }

    /// As [`Transmitter::post_short`], for one after the other, each asked for only when it can go at once. How
    /// many went, and the handle of the last; nothing if none did.
    #[inline(always)]
    pub fn post_shorts<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        next: impl FnMut() -> Option<Short>,
        tx_links: &mut O,
    ) -> Option<(usize, SendHandle)> {
        if !self.sends_at_once(id, link) {
            return None;
        }
        let count = tx_links.offer_shorts(link, next);
        if count == 0 {
            return None;
        }
        let handle = SendHandle {
            terminus: id,
            sequence: self.accept(count),
        };
        Some((count, handle))
    }

    /// The area that a piece of a gather list lies in, and where in it.
    pub fn locate(&self, id: TerminusId, piece: &GatherPiece) -> Result<(&A, u64), PostError> {
        let terminus = self
            .termini
            .get(id.name())
            .ok_or(PostError::NoSuchTerminus)?;
        terminus.locate(piece)
    }

    /// Copies up to 60 bytes of metadata out of a send-buffer area, so that metadata may
    /// be gathered too. They then travel with the request (`Hamlyn 6.2` suggests so).
    pub fn gather_metadata(
        &self,
        id: TerminusId,
        piece: &GatherPiece,
        into: &mut [u8; USER_METADATA_BYTES],
    ) -> Result<usize, PostError> {
        let length_bytes = usize::try_from(piece.length_bytes).unwrap_or(usize::MAX);
        let kept = into
            .get_mut(..length_bytes)
            .ok_or(PostError::MetadataTooLong { length_bytes })?;
        let (area, offset) = self.locate(id, piece)?;
        area.read(offset, kept).map_err(|_| PostError::TooLong)?;
        Ok(length_bytes)
    }

    /// A link is gone: all that waits for it fails.
    pub fn link_ended(&mut self, link: LinkId) {
        if let Some(backlog) = self.backlogs.get_mut(link.index as usize)
            && backlog.link == link
        {
            self.waiting -= backlog.fail_all();
        }
    }

    /// Whether [`Transmitter::shrink`] would find something.
    pub fn has_spare(&self) -> bool {
        self.backlogs.iter().any(Backlog::has_spare)
    }

    /// Gives back the memory of queues in which nothing waits.
    pub fn shrink(&mut self) {
        self.backlogs.iter_mut().for_each(Backlog::shrink);
    }
}

#[inline(always)]
fn posted(terminus: TerminusId, sequence: u64, sent: bool) -> Posted {
    Posted {
        handle: SendHandle { terminus, sequence },
        sent,
    }
}

/// The backlog of that link. What still waits there for a link that had the place before fails.
fn backlog_of<'a>(
    backlogs: &'a mut Vec<Backlog>,
    waiting: &mut usize,
    link: LinkId,
) -> &'a mut Backlog {
    let index = link.index as usize;
    while backlogs.len() <= index {
        let index = backlogs.len() as u32;
        backlogs.push(Backlog::new(LinkId { index, ..link }));
    }
    let backlog = &mut backlogs[index];
    if backlog.link != link {
        *waiting -= backlog.fail_all();
        backlog.link = link;
    }
    backlog
}

/// Checks a message and makes it ready to be cut.
#[inline(always)]
fn segmenter(
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
    if data_bytes > MESSAGE_BYTES_MAX || message.header.offset.checked_add(data_bytes).is_none() {
        return Err(PostError::TooLong);
    }
    let too_long = data_bytes > payload_max_bytes as u64 && !message.header.flags.is_placed();
    if message.header.is_fast() && (too_long || !metadata.is_empty()) {
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
