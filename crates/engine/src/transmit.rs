//! The transmitting half of the interface: takes messages, gives packets, and
//! shares each link fairly among termini (`Hamlyn 2.3`).
//!
//! It never waits: a packet that a link does not take stays where it is, and holds up nothing that
//! goes to another link. It does not look at what comes in, so that reception cannot depend on it.
//!
//! Every message goes out by one decision, [`Transmitter::post`] and its likes for gathered and
//! placed data; beside it stand [`Transmitter::post_short`] and [`Transmitter::post_in_cells`],
//! which send or do nothing.

mod offering;
mod posting;
mod pump;
mod streaming;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::backlog::{Backlog, Work};
use crate::counting::Share;
use crate::limits::{TERMINI_MAX, USER_METADATA_BYTES};
use crate::memory::{Area, LinkId, TxLinks};
use crate::packet::{Header, PortAddress, Short};
use crate::receive_observer::Unobserved;
use crate::send_observer::{SendEvent, SendObserver};
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
/// * For the application: `open_terminus`, `close_terminus`, `bind_area`, `unbind_area`, `post`,
///   `post_owned`, `post_placed`, `post_gather`, `begin_streaming`, `continue_streaming`,
///   `finish_streaming`, `completion`.
/// * For the host: `pump`, `link_ended`, `shrink`.
///
/// `S` watches it; see [`crate::send_observer`].
#[derive(Debug)]
pub struct Transmitter<A, S = Unobserved> {
    termini: Table<Terminus<A>>,
    /// The terminus that was used last, as long as it is open and no message waits for any link:
    /// then what is posted there goes at once.
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
    observer: S,
}

impl<A: Area> Default for Transmitter<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Area> Transmitter<A> {
    /// A half without termini.
    pub fn new() -> Self {
        Self::observed(Unobserved)
    }
}

impl<A: Area, S: SendObserver<A>> Transmitter<A, S> {
    /// The same, of a half that somebody watches.
    pub fn observed(observer: S) -> Self {
        Self {
            observer,
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

    /// Tells who watches.
    #[inline(always)]
    fn tell<'a>(&mut self, event: impl FnOnce() -> SendEvent<'a, A>)
    where
        A: 'a,
    {
        if S::LISTENS {
            self.observer.observe(event());
        }
    }

    /// Opens a terminus.
    pub fn open_terminus(&mut self, options: TerminusOptions) -> Result<TerminusId, TerminusError> {
        let terminus = Terminus::new(options)?;
        let queue_entries = terminus.queue_entries;
        let name = self
            .termini
            .insert(terminus)
            .ok_or(TerminusError::TooMany)?;
        let terminus = TerminusId::new(name);
        self.tell(|| SendEvent::TerminusOpened {
            terminus,
            queue_entries,
        });
        Ok(terminus)
    }

    /// Closes a terminus; what is still queued is dropped.
    pub fn close_terminus(&mut self, id: TerminusId) -> Result<(), TerminusError> {
        self.termini
            .remove(id.name())
            .ok_or(TerminusError::NoSuchTerminus)?;
        self.tell(|| SendEvent::TerminusClosed(id));
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

    /// What became of a message: whether its buffers may be used again. A failure is remembered
    /// until as many later messages to the same destination failed as the queue holds.
    pub fn completion(&self, handle: SendHandle) -> Result<Completion, TerminusError> {
        let completion = self.found(handle)?;
        if S::LISTENS {
            self.observer.told(handle, completion);
        }
        Ok(completion)
    }

    fn found(&self, handle: SendHandle) -> Result<Completion, TerminusError> {
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

    /// True if the terminus keeps so many bytes more for that link: as many as its options say, or
    /// one message alone.
    fn has_room_to_keep(
        &self,
        id: TerminusId,
        link: LinkId,
        length_bytes: usize,
    ) -> Result<bool, PostError> {
        let terminus = self.termini.get(id.name());
        let terminus = terminus.ok_or(PostError::NoSuchTerminus)?;
        let backlog = self.backlog(link);
        let kept_bytes = backlog.map_or(0, |backlog| backlog.kept_bytes_of(id));
        let room = terminus.queue_bytes.saturating_sub(kept_bytes);
        Ok(kept_bytes == 0 || length_bytes <= room)
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

    /// As [`Transmitter::post`], for a message that is a short packet, which is made only when it
    /// can go: by a conversion, which is part of the caller's code as a closure need not be.
    /// Nothing if it cannot go at once, for whatever reason; [`Transmitter::post`] knows what to do
    /// then.
    #[inline(always)]
    pub fn post_short<O: TxLinks<A>, M>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        short: M,
        tx_links: &mut O,
    ) -> Option<SendHandle>
    where
        Short: From<M>,
    {
        if !self.sends_at_once(id, link) {
            return None;
        }
        let (is_sent, told) = if S::LISTENS {
            let short = Short::from(short);
            (tx_links.offer_short::<Short>(link, short), Some(short))
        } else {
            (tx_links.offer_short(link, short), None)
        };
        is_sent.then(|| self.short_left(id, link, told, 1))
    }

    /// As [`Transmitter::post_short`], for a message that is one packet in several cells, of whose
    /// `data` `short` has the first words.
    #[inline]
    pub fn post_in_cells<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        short: &Short,
        data: &[u8],
        tx_links: &mut O,
    ) -> Option<SendHandle> {
        let goes = self.sends_at_once(id, link) && tx_links.offer_in_cells(link, short, data);
        goes.then(|| self.short_left(id, link, None, 1))
    }

    /// As [`Transmitter::post_short`], for a message to a port, which is one packet.
    #[inline(always)]
    pub fn post_message<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        to: &PortAddress,
        handler: u16,
        data: &[u8],
        tx_links: &mut O,
    ) -> Option<SendHandle> {
        // An observer is shown what goes as a packet.
        let goes = !S::LISTENS
            && self.sends_at_once(id, link)
            && tx_links.offer_message(link, to, handler, data);
        goes.then(|| self.short_left(id, link, None, 1))
    }

    /// Short packets left, the last of which is `told`, if somebody watches.
    #[inline(always)]
    fn short_left(
        &mut self,
        id: TerminusId,
        link: LinkId,
        told: Option<Short>,
        count: usize,
    ) -> SendHandle {
        let handle = SendHandle {
            terminus: id,
            sequence: self.accept(count),
        };
        if let Some(short) = told {
            self.tell(|| SendEvent::LeftShort {
                short,
                count,
                link,
                handle,
            });
        }
        handle
    }

    /// As [`Transmitter::post_short`], for one after the other, each asked for only when it can go
    /// at once. How many went, and the handle of the last; nothing if none did.
    #[inline(always)]
    pub fn post_shorts<O: TxLinks<A>>(
        &mut self,
        id: TerminusId,
        link: LinkId,
        mut next: impl FnMut() -> Option<Short>,
        tx_links: &mut O,
    ) -> Option<(usize, SendHandle)> {
        if !self.sends_at_once(id, link) {
            return None;
        }
        let mut told = None;
        let count = tx_links.offer_shorts(link, || {
            let short = next();
            if S::LISTENS && short.is_some() {
                told = short;
            }
            short
        });
        if count == 0 {
            return None;
        }
        Some((count, self.short_left(id, link, told, count)))
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
        self.tell(|| SendEvent::LinkEnded(link));
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
