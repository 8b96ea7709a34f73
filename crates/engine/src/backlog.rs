//! What waits to be sent, apart for each link (`Hamlyn 2.3`): a FIFO queue for each terminus that
//! has messages for it.
//!
//! A message never waits behind one for another link, and the queue of one link never uses up the
//! entries of another. Termini that send to the same link take turns.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::limits::{DIRECT_BYTES_MAX, GATHER_PIECES_HELD, USER_METADATA_BYTES};
use crate::memory::{Area, LinkId, Part, TxLinks, Unsent};
use crate::packet::Header;
use crate::point::Point;
use crate::segment::{Segment, Segmenter};
use crate::send_observer::{SendEvent, SendObserver};
use crate::terminus::{Completion, GatherPiece, PostError, SendTag, Terminus, TerminusId};

/// Where the data of a message are.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// At hand: direct I/O.
    Bytes(&'a [u8]),
    /// At hand, and copied if they must wait.
    Copied(&'a [u8]),
    /// The same, but moved out if they must wait.
    Owned(&'a mut Vec<u8>),
    /// In their place already, so many (direct placement, decision 0006).
    Placed(u32),
    /// In send-buffer areas, to be pulled.
    Pieces(&'a [GatherPiece]),
}

impl Source<'_> {
    /// The data, if they are at hand.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Source::Bytes(bytes) | Source::Copied(bytes) => Some(bytes),
            Source::Owned(bytes) => Some(bytes),
            Source::Placed(_) | Source::Pieces(_) => None,
        }
    }

    /// Bytes that a work queue keeps for it besides its entry.
    pub(crate) fn kept_bytes(&self) -> usize {
        match self {
            Source::Copied(bytes) => bytes.len(),
            Source::Owned(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Whether all of it can wait in a work queue.
    pub(crate) fn can_wait(&self) -> bool {
        !matches!(self, Source::Bytes(bytes) if bytes.len() > DIRECT_BYTES_MAX)
    }

    /// How many bytes they are, if what they are gathered from is there.
    #[inline(always)]
    pub(crate) fn length_bytes<A: Area>(&self, terminus: &Terminus<A>) -> Result<u64, PostError> {
        match self {
            Source::Bytes(bytes) | Source::Copied(bytes) => Ok(bytes.len() as u64),
            Source::Owned(bytes) => Ok(bytes.len() as u64),
            Source::Placed(data_bytes) => Ok(u64::from(*data_bytes)),
            Source::Pieces(pieces) => terminus.measure(pieces),
        }
    }
}

/// Where the data of a message that waits are; as [`Source`], but its own.
#[derive(Debug)]
enum Data {
    Bytes {
        length: u8,
        bytes: [u8; DIRECT_BYTES_MAX],
    },
    Kept(Vec<u8>),
    Placed,
    Pieces {
        count: u8,
        pieces: [GatherPiece; GATHER_PIECES_HELD],
    },
    ManyPieces(Box<[GatherPiece]>),
}

const _: () = assert!(DIRECT_BYTES_MAX <= u8::MAX as usize);

/// The parts of one packet.
pub(crate) struct PartList<'a, A> {
    held: [Part<'a, A>; GATHER_PIECES_HELD],
    /// Of those that are held.
    count: usize,
    /// All, if they are more.
    many: Vec<Part<'a, A>>,
}

impl<'a, A: Area> PartList<'a, A> {
    const fn new() -> Self {
        Self {
            held: [const { Part::Bytes(&[]) }; GATHER_PIECES_HELD],
            count: 0,
            many: Vec::new(),
        }
    }

    fn push(&mut self, part: Part<'a, A>) {
        if let Some(place) = self.held.get_mut(self.count) {
            *place = part;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            let held = self.held.iter_mut();
            let parts = held.map(|part| core::mem::replace(part, Part::Bytes(&[])));
            self.many.extend(parts);
        }
        self.many.push(part);
    }

    /// The parts of that packet of a gathered message.
    fn of_pieces(terminus: &'a Terminus<A>, pieces: &[GatherPiece], segment: &Segment) -> Self {
        let mut list = Self::new();
        let mut start = segment.start;
        let mut left = u64::from(segment.header.length_bytes);
        for piece in pieces {
            if left == 0 {
                break;
            }
            if start >= piece.length_bytes {
                start -= piece.length_bytes;
                continue;
            }
            let take = left.min(piece.length_bytes - start);
            // Checked when it was posted, and its area cannot be unbound since.
            if let Ok((area, offset)) = terminus.locate(piece) {
                list.push(Part::Area {
                    area,
                    offset: offset + start,
                    length_bytes: take as u32,
                });
            }
            left -= take;
            start = 0;
        }
        list
    }

    /// The parts of all of a gathered message.
    pub(crate) fn of_all(terminus: &'a Terminus<A>, pieces: &[GatherPiece]) -> Self {
        let mut list = Self::new();
        for piece in pieces {
            if let Ok((area, offset)) = terminus.locate(piece) {
                list.push(Part::Area {
                    area,
                    offset,
                    length_bytes: piece.length_bytes as u32,
                });
            }
        }
        list
    }

    pub(crate) fn as_slice(&self) -> &[Part<'a, A>] {
        match self.many.is_empty() {
            true => &self.held[..self.count],
            false => &self.many,
        }
    }
}

/// What a packet of a terminus is offered to, and who watches.
pub(crate) struct Offered<'a, A: Area, S> {
    id: TerminusId,
    pub(crate) link: LinkId,
    terminus: &'a Terminus<A>,
    observer: &'a mut S,
}

impl<'a, A: Area, S: SendObserver<A>> Offered<'a, A, S> {
    #[inline(always)]
    pub(crate) fn new(
        id: TerminusId,
        link: LinkId,
        terminus: &'a Terminus<A>,
        observer: &'a mut S,
    ) -> Self {
        Self {
            id,
            link,
            terminus,
            observer,
        }
    }

    /// Offers the link the packet that the segment says.
    #[inline(always)]
    pub(crate) fn offer<O: TxLinks<A>>(
        self,
        tx_links: &mut O,
        source: &Source<'_>,
        segment: &Segment,
        metadata: &[u8],
    ) -> Result<(), Unsent> {
        let header = &segment.header;
        let metadata = &metadata[..usize::from(header.metadata_length_bytes)];
        let is_fetched = matches!(source, Source::Pieces(_));
        pass_cut(tx_links, header, segment.start == 0, is_fetched);
        if let Some(bytes) = source.bytes() {
            let start = segment.start as usize;
            let bytes = &bytes[start..start + header.length_bytes as usize];
            self.offer_parts(tx_links, header, metadata, &[Part::Bytes(bytes)])
        } else if let Source::Pieces(pieces) = source {
            let parts = PartList::of_pieces(self.terminus, pieces, segment);
            self.offer_parts(tx_links, header, metadata, parts.as_slice())
        } else {
            self.offer_parts(tx_links, header, metadata, &[])
        }?;
        if segment.last {
            pass_out(tx_links, header);
        }
        Ok(())
    }

    #[inline(always)]
    fn offer_parts<O: TxLinks<A>>(
        self,
        tx_links: &mut O,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, A>],
    ) -> Result<(), Unsent> {
        let link = self.link;
        tx_links.offer(link, header, metadata, parts)?;
        if S::LISTENS {
            self.observer.observe(SendEvent::Left {
                terminus: self.id,
                link,
                header,
                metadata,
                parts,
            });
        }
        Ok(())
    }
}

/// Passes what is done for a packet before a link is offered it.
#[inline(always)]
pub(crate) fn pass_cut<A: Area, O: TxLinks<A>>(
    tx_links: &O,
    header: &Header,
    is_first: bool,
    is_fetched: bool,
) {
    if is_first {
        tx_links.passes(Point::RequestRead);
    }
    tx_links.passes(match header.kind.is_request() {
        true => Point::Asked,
        false => Point::PacketCut,
    });
    if is_fetched {
        if header.metadata_length_bytes != 0 {
            tx_links.passes(Point::MetadataFetched(header.metadata_length_bytes.into()));
        }
        tx_links.passes(Point::DataFetched(header.length_bytes));
    }
}

/// Passes what is done when the last packet of a message has gone.
#[inline(always)]
pub(crate) fn pass_out<A: Area, O: TxLinks<A>>(tx_links: &O, header: &Header) {
    tx_links.passes(match header.kind.is_request() {
        true => Point::RequestOut,
        false => Point::MessageOut,
    });
}

/// A message that waits.
#[derive(Debug)]
pub(crate) struct Work {
    sequence: u64,
    pub(crate) segmenter: Segmenter,
    metadata: [u8; USER_METADATA_BYTES],
    data: Data,
}

impl Work {
    pub(crate) fn new(
        sequence: u64,
        segmenter: Segmenter,
        metadata: &[u8],
        source: Source<'_>,
    ) -> Self {
        let mut kept = [0; USER_METADATA_BYTES];
        kept[..metadata.len()].copy_from_slice(metadata);
        let data = match source {
            Source::Bytes(data) => {
                let mut bytes = [0; DIRECT_BYTES_MAX];
                bytes[..data.len()].copy_from_slice(data);
                Data::Bytes {
                    length: data.len() as u8,
                    bytes,
                }
            }
            Source::Copied(data) => Data::Kept(data.to_vec()),
            Source::Owned(data) => Data::Kept(core::mem::take(data)),
            Source::Placed(_) => Data::Placed,
            Source::Pieces(list) if list.len() > GATHER_PIECES_HELD => {
                Data::ManyPieces(list.into())
            }
            Source::Pieces(list) => {
                let mut pieces = [GatherPiece {
                    tag: SendTag(0),
                    offset: 0,
                    length_bytes: 0,
                }; GATHER_PIECES_HELD];
                pieces[..list.len()].copy_from_slice(list);
                Data::Pieces {
                    count: list.len() as u8,
                    pieces,
                }
            }
        };
        Self {
            sequence,
            segmenter,
            metadata: kept,
            data,
        }
    }

    /// Offers the link the packet that the segment says.
    pub(crate) fn offer<A: Area, S: SendObserver<A>, O: TxLinks<A>>(
        &self,
        offered: Offered<'_, A, S>,
        tx_links: &mut O,
        segment: &Segment,
    ) -> Result<(), Unsent> {
        let source = match &self.data {
            Data::Bytes { length, bytes } => Source::Bytes(&bytes[..usize::from(*length)]),
            Data::Kept(bytes) => Source::Bytes(bytes),
            Data::Placed => Source::Placed(0),
            Data::Pieces { .. } | Data::ManyPieces(_) => Source::Pieces(self.pieces()),
        };
        offered.offer(tx_links, &source, segment, &self.metadata)
    }

    fn kept_bytes(&self) -> usize {
        match &self.data {
            Data::Kept(bytes) => bytes.len(),
            _ => 0,
        }
    }

    fn pieces(&self) -> &[GatherPiece] {
        match &self.data {
            Data::Pieces { count, pieces } => &pieces[..usize::from(*count)],
            Data::ManyPieces(pieces) => pieces,
            _ => &[],
        }
    }
}

/// What one terminus has for one link.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) terminus: TerminusId,
    priority: u8,
    /// Packets that it may still send before others have their turn.
    left_in_turn: u8,
    pub(crate) queue: VecDeque<Work>,
    /// Bytes of long messages in the queue.
    kept_bytes: usize,
    /// Sequence numbers of its messages that failed, the latest last: as many as the queue holds.
    failed: Vec<u64>,
    failed_max: usize,
}

impl Lane {
    /// What became of a message that the terminus had accepted, if it was this lane's and is not
    /// simply sent.
    fn completion(&self, sequence: u64) -> Option<Completion> {
        if self.failed.binary_search(&sequence).is_ok() {
            return Some(Completion::Failed);
        }
        let found = self
            .queue
            .binary_search_by_key(&sequence, |work| work.sequence);
        found.ok().map(|_| Completion::Pending)
    }

    fn pop(&mut self) -> Option<Work> {
        let work = self.queue.pop_front()?;
        self.kept_bytes -= work.kept_bytes();
        Some(work)
    }

    fn fail_first(&mut self) {
        if let Some(work) = self.pop() {
            if self.failed.len() == self.failed_max {
                self.failed.remove(0);
            }
            self.failed.push(work.sequence);
        }
    }
}

/// See the module: what waits for one link.
#[derive(Debug)]
pub(crate) struct Backlog {
    pub(crate) link: LinkId,
    /// In the order of their turns: the lane that had a whole turn most recently is last.
    lanes: Vec<Lane>,
    /// Messages in all lanes.
    waiting: usize,
    /// Whether the transmitter has it among those that are to be served.
    pub(crate) is_listed: bool,
}

impl Backlog {
    pub(crate) fn new(link: LinkId) -> Self {
        Self {
            link,
            lanes: Vec::new(),
            waiting: 0,
            is_listed: false,
        }
    }

    /// Messages that wait.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether a message waits that was accepted as one of the first `accepted`.
    pub(crate) fn waits_before(&self, accepted: u64) -> bool {
        let first = |lane: &Lane| lane.queue.front().map(|work| work.sequence);
        self.lanes
            .iter()
            .filter_map(first)
            .any(|first| first <= accepted)
    }

    /// Messages of that terminus that wait.
    pub(crate) fn waiting_of(&self, terminus: TerminusId) -> usize {
        self.lane_of(terminus).map_or(0, |lane| lane.queue.len())
    }

    /// Bytes of long messages of that terminus that wait.
    pub(crate) fn kept_bytes_of(&self, terminus: TerminusId) -> usize {
        self.lane_of(terminus).map_or(0, |lane| lane.kept_bytes)
    }

    fn lane_of(&self, terminus: TerminusId) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.terminus == terminus)
    }

    /// The lane of that terminus; a new one has its turn last. Allocates, the first time.
    pub(crate) fn enter<A>(&mut self, id: TerminusId, terminus: &Terminus<A>) -> usize {
        if let Some(place) = self.lanes.iter().position(|lane| lane.terminus == id) {
            return place;
        }
        self.lanes.push(Lane {
            terminus: id,
            priority: terminus.priority,
            left_in_turn: terminus.priority,
            queue: VecDeque::new(),
            kept_bytes: 0,
            failed: Vec::new(),
            failed_max: terminus.queue_entries,
        });
        self.lanes.len() - 1
    }

    /// Puts a message behind the others of its terminus. Allocates as the queue grows.
    pub(crate) fn push<A>(&mut self, id: TerminusId, terminus: &Terminus<A>, work: Work) {
        let place = self.enter(id, terminus);
        let lane = &mut self.lanes[place];
        lane.kept_bytes += work.kept_bytes();
        lane.queue.push_back(work);
        self.waiting += 1;
    }

    /// The index of the lane whose turn it is: the first that has a message, or that is
    /// `streaming_send`'s.
    pub(crate) fn turn(&self, streaming_send: Option<TerminusId>) -> Option<usize> {
        self.lanes
            .iter()
            .position(|lane| !lane.queue.is_empty() || streaming_send == Some(lane.terminus))
    }

    pub(crate) fn lane(&self, place: usize) -> Option<&Lane> {
        self.lanes.get(place)
    }

    /// A packet of the first message of that lane is out; of a streaming send's, which is not in
    /// the queue, if `segment` is nothing.
    pub(crate) fn sent(&mut self, place: usize, segment: Option<&Segment>) {
        let Some(lane) = self.lanes.get_mut(place) else {
            return;
        };
        if let (Some(segment), Some(work)) = (segment, lane.queue.front_mut()) {
            work.segmenter.advance(segment);
            if segment.last {
                lane.pop();
                self.waiting -= 1;
            }
        }
        lane.left_in_turn -= 1;
        if lane.left_in_turn == 0 {
            lane.left_in_turn = lane.priority;
            self.lanes[place..].rotate_left(1);
        }
    }

    /// The first message of that lane fails.
    pub(crate) fn fail_first(&mut self, place: usize) {
        let Some(lane) = self.lanes.get_mut(place) else {
            return;
        };
        let before = lane.queue.len();
        lane.fail_first();
        self.waiting -= before - lane.queue.len();
    }

    /// The link is gone: all that waits for it fails. How many messages.
    pub(crate) fn fail_all(&mut self) -> usize {
        for lane in &mut self.lanes {
            while !lane.queue.is_empty() {
                lane.fail_first();
            }
            lane.queue = VecDeque::new();
        }
        core::mem::take(&mut self.waiting)
    }

    /// The terminus is closed: what it has here is dropped. How many messages.
    pub(crate) fn drop_lane(&mut self, terminus: TerminusId) -> usize {
        let dropped = self.waiting_of(terminus);
        self.lanes.retain(|lane| lane.terminus != terminus);
        self.waiting -= dropped;
        dropped
    }

    /// What became of a message of that terminus, if it is known here.
    pub(crate) fn completion(&self, terminus: TerminusId, sequence: u64) -> Option<Completion> {
        self.lane_of(terminus)?.completion(sequence)
    }

    /// Whether a message of that terminus that waits needs the area of that tag.
    pub(crate) fn uses(&self, terminus: TerminusId, tag: SendTag) -> bool {
        self.lane_of(terminus).is_some_and(|lane| {
            let needs = |work: &Work| work.pieces().iter().any(|piece| piece.tag == tag);
            lane.queue.iter().any(needs)
        })
    }

    /// Whether [`Backlog::shrink`] would find something.
    pub(crate) fn has_spare(&self) -> bool {
        let is_spare = |lane: &Lane| lane.queue.is_empty() && lane.queue.capacity() > 0;
        self.lanes.iter().any(is_spare)
    }

    /// Gives back memory of queues that nothing waits in.
    pub(crate) fn shrink(&mut self) {
        for lane in &mut self.lanes {
            if lane.queue.is_empty() {
                lane.queue = VecDeque::new();
            }
        }
    }
}
