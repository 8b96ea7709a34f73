//! The transmitting half of the interface: takes messages, gives packets, and
//! shares the links fairly among termini (`Hamlyn 2.3`).
//!
//! It never waits: a packet that a link does not take stays where it is. It
//! does not look at what comes in, so that reception cannot depend on it.

mod placed;
mod single;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::counting::Share;
use crate::limits::{
    BORROWED_BURST, DIRECT_BYTES_MAX, GATHER_PIECES_MAX, MESSAGE_BYTES_MAX, PACKET_PAYLOAD_MIN,
    TERMINI_MAX, USER_METADATA_BYTES,
};
use crate::memory::{Area, LinkId, Outlet, Part, Unsent};
use crate::packet::{Header, Short};
use crate::segment::Segmenter;
use crate::terminus::{
    CompletionWord, GatherPiece, PartList, PostError, SendHandle, SendTag, Terminus, TerminusError,
    TerminusId, TerminusOptions,
};

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

impl Posted {
    #[inline(always)]
    fn new(terminus: TerminusId, sequence: u64, sent: bool) -> Self {
        Self {
            handle: SendHandle { terminus, sequence },
            sent,
        }
    }
}

/// What [`Transmitter::pump`] achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pumped {
    /// Packets that links took.
    pub packets: usize,
    /// Whether messages are still waiting.
    pub waiting: bool,
}

/// What an attempt to send a packet brought.
enum Step {
    /// A packet is out.
    Sent,
    /// A message whose link is gone was given up.
    Dropped,
    /// Nothing to send, or no room.
    Blocked,
}

/// A message that is sent from where it lies, at the place of its terminus among the others.
struct Guest<'a> {
    place: usize,
    link: LinkId,
    segmenter: &'a mut Segmenter,
    metadata: &'a [u8],
    data: &'a [u8],
    /// Packets that it may still send before it yields.
    burst_left: usize,
    /// How it stands; full until it is known better.
    state: Borrowed,
}

impl Guest<'_> {
    /// Sends one packet of it.
    fn send_one<A: Area, O: Outlet<A>>(&mut self, outlet: &mut O) -> Step {
        let Some(payload_max_bytes) = outlet.payload_max_bytes(self.link) else {
            self.state = Borrowed::Gone;
            return Step::Dropped;
        };
        let segment = self.segmenter.next(payload_max_bytes);
        let start = segment.start as usize;
        let bytes = &self.data[start..start + segment.header.length_bytes as usize];
        let metadata = &self.metadata[..usize::from(segment.header.metadata_length_bytes)];
        match outlet.offer(self.link, &segment.header, metadata, &[Part::Bytes(bytes)]) {
            Ok(()) => {
                self.segmenter.advance(&segment);
                self.burst_left -= 1;
                if segment.last {
                    self.state = Borrowed::Sent;
                } else if self.burst_left == 0 {
                    self.state = Borrowed::More;
                }
                Step::Sent
            }
            Err(Unsent::Full) => Step::Blocked,
            Err(Unsent::Gone) => {
                self.state = Borrowed::Gone;
                Step::Dropped
            }
        }
    }
}

/// How a borrowed message stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Borrowed {
    /// All of it was taken.
    Sent,
    /// As many packets as allowed were taken; there are more.
    More,
    /// The link has no room at present.
    Full,
    /// The link is gone.
    Gone,
}

/// The transmitting half. See the module for what it does.
///
/// * For the application: `open_terminus`, `close_terminus`, `bind_area`, `unbind_area`,
///   `post`, `post_placed`, `post_gather`, `begin_borrowed`, `continue_borrowed`, `completions`.
/// * For the host: `pump`.
#[derive(Debug)]
pub struct Transmitter<A> {
    /// Each apart, so that one is found without a multiplication.
    termini: Vec<Option<Box<Terminus<A>>>>,
    /// Places of the open termini; who had a whole turn most recently is last.
    order: Vec<u16>,
    /// Messages queued in all termini.
    queued: usize,
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
            termini: Vec::new(),
            order: Vec::new(),
            queued: 0,
        }
    }

    /// Opens a terminus. Allocates its whole work queue.
    pub fn open_terminus(&mut self, options: TerminusOptions) -> Result<TerminusId, TerminusError> {
        let terminus = Terminus::new(options)?;
        let place = match self.termini.iter().position(Option::is_none) {
            Some(place) => place,
            None if self.termini.len() == TERMINI_MAX => return Err(TerminusError::TooMany),
            None => {
                self.termini.push(None);
                self.termini.len() - 1
            }
        };
        self.termini[place] = Some(Box::new(terminus));
        self.order.push(place as u16);
        Ok(TerminusId(place as u32))
    }

    /// Closes a terminus; what is still queued is dropped.
    pub fn close_terminus(&mut self, id: TerminusId) -> Result<(), TerminusError> {
        let terminus = self.terminus_mut(id)?;
        let queued = terminus.queued();
        while !terminus.is_idle() {
            terminus.finish(true);
        }
        self.queued -= queued;
        self.termini[id.0 as usize] = None;
        self.order.retain(|&place| u32::from(place) != id.0);
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
        self.terminus_mut(id)?.bind(area, base, length_bytes)
    }

    /// Takes a send-buffer area away again; refused while messages use it.
    pub fn unbind_area(&mut self, id: TerminusId, tag: SendTag) -> Result<(), TerminusError> {
        self.terminus_mut(id)?.unbind(tag)
    }

    /// The completion word, to be looked at from anywhere.
    pub fn completions(&self, id: TerminusId) -> Result<Arc<CompletionWord>, TerminusError> {
        match self.termini.get(id.0 as usize) {
            Some(Some(terminus)) => Ok(terminus.completion_word().clone()),
            _ => Err(TerminusError::NoSuchTerminus),
        }
    }

    /// Whether any message waits.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.queued != 0
    }

    /// Sends a message of bytes at hand (direct I/O). If the link has no room, others
    /// have to go first, or messages of this terminus wait, up to [`DIRECT_BYTES_MAX`] bytes are
    /// copied into the work queue; longer ones are refused. Never blocks, never allocates.
    #[inline(always)]
    pub fn post<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data: &[u8],
        outlet: &mut O,
    ) -> Result<Posted, PostError> {
        let Some(Some(terminus)) = self.termini.get_mut(id.0 as usize) else {
            return Err(PostError::NoSuchTerminus);
        };
        // The common case, without a look at the link's limits: all of it in one
        // packet of the smallest kind, and nobody waits.
        if self.queued == 0
            && metadata.len() + data.len() <= PACKET_PAYLOAD_MIN
            && metadata.len() <= USER_METADATA_BYTES
            && (metadata.is_empty() || !message.header.is_fast())
        {
            let header = Header {
                length_bytes: data.len() as u32,
                metadata_length_bytes: metadata.len() as u8,
                word: if message.header.is_fast() {
                    message.header.word
                } else {
                    message.share.counter()
                },
                ..message.header
            };
            if header.offset.checked_add(data.len() as u64).is_none() {
                return Err(PostError::TooLong);
            }
            match outlet.offer(message.link, &header, metadata, &[Part::Bytes(data)]) {
                Ok(()) => {
                    return Ok(Posted::new(id, terminus.sent_at_once(), true));
                }
                Err(Unsent::Gone) => return Err(PostError::LinkGone),
                Err(Unsent::Full) => {}
            }
        }
        self.post_slowly(id, message, metadata, data, outlet)
    }

    /// As [`Transmitter::post`], for a message that is a short packet, which is asked for only when it can
    /// go. Nothing if it cannot go at once, for whatever reason; [`Transmitter::post`] knows what to do then.
    #[inline(always)]
    pub fn post_short<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        short: impl FnOnce() -> Short,
        outlet: &mut O,
    ) -> Option<SendHandle> {
        if self.queued != 0 {
            return None;
        }
        let terminus = self.termini.get_mut(id.0 as usize)?.as_mut()?;
        outlet.offer_short(link, short).then(|| SendHandle {
            terminus: id,
            sequence: terminus.sent_at_once(),
        })
    }

    /// As [`Transmitter::post_short`], for one after the other, each asked for only when it can go at once. How
    /// many went, and the handle of the last; nothing if none did.
    #[inline(always)]
    pub fn post_shorts<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        next: impl FnMut() -> Option<Short>,
        outlet: &mut O,
    ) -> Option<(usize, SendHandle)> {
        if self.queued != 0 {
            return None;
        }
        let terminus = self.termini.get_mut(id.0 as usize)?.as_mut()?;
        let count = outlet.offer_shorts(link, next);
        if count == 0 {
            return None;
        }
        let handle = SendHandle {
            terminus: id,
            sequence: terminus.many_sent_at_once(count),
        };
        Some((count, handle))
    }

    #[inline(never)]
    fn post_slowly<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data: &[u8],
        outlet: &mut O,
    ) -> Result<Posted, PostError> {
        let mut segmenter = segmenter(message, metadata, data.len() as u64, outlet)?;
        if self.posting(id)?.is_idle() {
            // Only a message of one packet, or one that may wait in the queue, goes at once: if the
            // link filled up half-way, the rest would have to wait in a buffer that is not ours.
            let payload_max_bytes = outlet
                .payload_max_bytes(message.link)
                .ok_or(PostError::LinkGone)?;
            if segmenter.next(payload_max_bytes).last || data.len() <= DIRECT_BYTES_MAX {
                match self.continue_borrowed(
                    id,
                    message.link,
                    &mut segmenter,
                    metadata,
                    data,
                    outlet,
                )? {
                    Borrowed::Sent => {
                        let sequence = self.posting(id)?.sent_at_once();
                        return Ok(Posted::new(id, sequence, true));
                    }
                    // Too few packets for a burst, so there is never more.
                    Borrowed::Full | Borrowed::More => {}
                    Borrowed::Gone => return Err(PostError::LinkGone),
                }
            }
            if data.len() > DIRECT_BYTES_MAX {
                return Err(PostError::TooLongToQueue {
                    length_bytes: data.len() as u64,
                });
            }
        } else if data.len() > DIRECT_BYTES_MAX {
            return Err(PostError::QueueFull);
        }
        self.queue_direct(id, message.link, segmenter, metadata, data)
    }

    /// Queues a message whose data, at most [`DIRECT_BYTES_MAX`] bytes, the entry holds itself.
    fn queue_direct(
        &mut self,
        id: TerminusId,
        link: LinkId,
        segmenter: Segmenter,
        metadata: &[u8],
        data: &[u8],
    ) -> Result<Posted, PostError> {
        let terminus = self.posting(id)?;
        if terminus.is_full() {
            return Err(PostError::QueueFull);
        }
        let sequence = terminus.enqueue_direct(link, segmenter, metadata, data);
        self.queued += 1;
        Ok(Posted::new(id, sequence, false))
    }

    /// Queues a message whose data, and metadata if wanted, are gathered from
    /// send-buffer areas; then sends what the links take. Never blocks, never allocates.
    pub fn post_gather<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        pieces: &[GatherPiece],
        outlet: &mut O,
    ) -> Result<Posted, PostError> {
        if pieces.len() > GATHER_PIECES_MAX {
            return Err(PostError::TooManyPieces {
                pieces: pieces.len(),
            });
        }
        let terminus = self.posting(id)?;
        let mut data_bytes = 0_u64;
        for piece in pieces {
            terminus.locate(piece)?;
            data_bytes = data_bytes
                .checked_add(piece.length_bytes)
                .ok_or(PostError::TooLong)?;
        }
        let full = terminus.is_full();
        let segmenter = segmenter(message, metadata, data_bytes, outlet)?;
        if full {
            return Err(PostError::QueueFull);
        }
        let terminus = self.posting(id)?;
        let sequence = terminus.enqueue_gather(message.link, segmenter, metadata, pieces);
        let word = terminus.completion_word().clone();
        self.queued += 1;
        self.pump(outlet, usize::MAX);
        Ok(Posted::new(id, sequence, word.done() >= sequence))
    }

    /// Copies up to 60 bytes of metadata out of a send-buffer area, so that metadata may
    /// be gathered too. They then travel with the request (`Hamlyn 6.2` suggests so).
    pub fn gather_metadata(
        &self,
        id: TerminusId,
        piece: &GatherPiece,
        into: &mut [u8; USER_METADATA_BYTES],
    ) -> Result<usize, PostError> {
        let Some(Some(terminus)) = self.termini.get(id.0 as usize) else {
            return Err(PostError::NoSuchTerminus);
        };
        let length_bytes = usize::try_from(piece.length_bytes).unwrap_or(usize::MAX);
        let kept = into
            .get_mut(..length_bytes)
            .ok_or(PostError::MetadataTooLong { length_bytes })?;
        let (area, offset) = terminus.locate(piece)?;
        area.read(offset, kept).map_err(|_| PostError::TooLong)?;
        Ok(length_bytes)
    }

    /// Begins a message whose bytes stay the caller's and are sent from where
    /// they are, by calls of [`Transmitter::continue_borrowed`]. The queue of the
    /// terminus must be empty, as order within a terminus is kept.
    pub fn begin_borrowed<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        message: &Message,
        metadata: &[u8],
        data_bytes: u64,
        outlet: &O,
    ) -> Result<Segmenter, PostError> {
        if !self.posting(id)?.is_idle() {
            return Err(PostError::QueueFull);
        }
        segmenter(message, metadata, data_bytes, outlet)
    }

    /// Sends as many packets of a borrowed message as the link takes, at most
    /// [`BORROWED_BURST`]. Whoever waits in a queue has its turns meanwhile, as in
    /// [`Transmitter::pump`]. When it is all sent, the caller reports it with [`Transmitter::finish_borrowed`].
    pub fn continue_borrowed<O: Outlet<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        segmenter: &mut Segmenter,
        metadata: &[u8],
        data: &[u8],
        outlet: &mut O,
    ) -> Result<Borrowed, PostError> {
        self.posting(id)?;
        let mut guest = Guest {
            place: id.0 as usize,
            link,
            segmenter,
            metadata,
            data,
            burst_left: BORROWED_BURST,
            state: Borrowed::Full,
        };
        if self.queued == 0 {
            while matches!(guest.send_one(outlet), Step::Sent) && guest.state == Borrowed::Full {}
        } else {
            self.take_turns(outlet, usize::MAX, Some(&mut guest));
        }
        Ok(guest.state)
    }

    /// Accounts for a borrowed message that is all sent. If messages were posted to the
    /// terminus meanwhile, they complete first: the queue is "full" until then.
    pub fn finish_borrowed(&mut self, id: TerminusId) -> Result<SendHandle, PostError> {
        let terminus = self.posting(id)?;
        if !terminus.is_idle() {
            return Err(PostError::QueueFull);
        }
        let sequence = terminus.sent_at_once();
        Ok(SendHandle {
            terminus: id,
            sequence,
        })
    }

    /// Offers queued packets to the links, at most `packets_max`. Termini take turns:
    /// each may send as many packets per turn as its priority says, so a message waits at most
    /// for one turn of every other terminus, whatever they send. A terminus whose link is full
    /// keeps what is left of its turn and holds up nobody who uses another link.
    pub fn pump<O: Outlet<A>>(&mut self, outlet: &mut O, packets_max: usize) -> Pumped {
        Pumped {
            packets: self.take_turns(outlet, packets_max, None),
            waiting: self.queued != 0,
        }
    }

    /// Sends packets in order of turns until nobody can. Who had its turn goes to the end of the
    /// order, who is blocked stays where it is; so each link serves those who want it in turn,
    /// however little room it has at a time and whatever other links do.
    fn take_turns<O: Outlet<A>>(
        &mut self,
        outlet: &mut O,
        packets_max: usize,
        mut guest: Option<&mut Guest<'_>>,
    ) -> usize {
        let mut packets = 0;
        let mut at = 0;
        while packets < packets_max && (self.queued != 0 || guest.is_some()) {
            let Some(&place) = self.order.get(at) else {
                break;
            };
            let place = usize::from(place);
            let step = match &mut guest {
                Some(guest) if guest.place == place => guest.send_one(outlet),
                _ => self.send_one(place, outlet),
            };
            match step {
                Step::Sent => {
                    packets += 1;
                    if let Some(Some(terminus)) = self.termini.get_mut(place)
                        && terminus.ends_turn()
                    {
                        self.order[at..].rotate_left(1);
                    }
                }
                Step::Dropped => {}
                Step::Blocked => at += 1,
            }
            if guest
                .as_ref()
                .is_some_and(|guest| guest.state != Borrowed::Full)
            {
                break;
            }
        }
        packets
    }

    /// Sends one packet of the queue of that terminus.
    fn send_one<O: Outlet<A>>(&mut self, place: usize, outlet: &mut O) -> Step {
        let Some(Some(terminus)) = self.termini.get_mut(place) else {
            return Step::Blocked;
        };
        let before = terminus.queued();
        let step = match terminus.wanted(|link| outlet.payload_max_bytes(link)) {
            None => Step::Blocked,
            Some(Err(_)) => {
                terminus.finish(true);
                Step::Dropped
            }
            Some(Ok(wanted)) => {
                let mut parts = PartList::new();
                let metadata = terminus.parts(&wanted.segment, &mut parts);
                match outlet.offer(
                    wanted.link,
                    &wanted.segment.header,
                    metadata,
                    parts.as_slice(),
                ) {
                    Ok(()) => {
                        terminus.advance(&wanted.segment);
                        Step::Sent
                    }
                    Err(Unsent::Full) => Step::Blocked,
                    Err(Unsent::Gone) => {
                        terminus.finish(true);
                        Step::Dropped
                    }
                }
            }
        };
        self.queued -= before - terminus.queued();
        step
    }

    fn terminus_mut(&mut self, id: TerminusId) -> Result<&mut Terminus<A>, TerminusError> {
        match self.termini.get_mut(id.0 as usize) {
            Some(Some(terminus)) => Ok(terminus),
            _ => Err(TerminusError::NoSuchTerminus),
        }
    }

    fn posting(&mut self, id: TerminusId) -> Result<&mut Terminus<A>, PostError> {
        self.terminus_mut(id).map_err(|_| PostError::NoSuchTerminus)
    }
}

/// Checks a message and makes it ready to be cut.
fn segmenter<A: Area, O: Outlet<A>>(
    message: &Message,
    metadata: &[u8],
    data_bytes: u64,
    outlet: &O,
) -> Result<Segmenter, PostError> {
    if metadata.len() > USER_METADATA_BYTES {
        return Err(PostError::MetadataTooLong {
            length_bytes: metadata.len(),
        });
    }
    if data_bytes > MESSAGE_BYTES_MAX || message.header.offset.checked_add(data_bytes).is_none() {
        return Err(PostError::TooLong);
    }
    let payload_max_bytes = outlet
        .payload_max_bytes(message.link)
        .ok_or(PostError::LinkGone)?;
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
