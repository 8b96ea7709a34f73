//! Send termini (`Hamlyn 2.3`): a FIFO work queue, send-buffer areas named by
//! tags, and the completion word that tells the application which buffers are its own again.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use crate::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::counting::ShareTooSmall;
use crate::limits::{
    DIRECT_BYTES_MAX, GATHER_PIECES_MAX, SEND_AREAS, TERMINI_MAX, USER_METADATA_BYTES,
    WORK_QUEUE_ENTRIES, WORK_QUEUE_ENTRIES_MAX,
};
use crate::memory::{Area, LinkId, Part};
use crate::segment::{Segment, Segmenter};

/// Names a terminus of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TerminusId(pub(crate) u32);

/// Names one of the send-buffer areas of a terminus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendTag(pub u8);

/// What a terminus is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminusOptions {
    /// Messages that may be queued, 1 to 4,095; the paper's and the default: 63.
    pub queue_entries: usize,
    /// Packets sent per turn relative to other termini, 1 to 255; default 1.
    pub priority: u8,
}

impl Default for TerminusOptions {
    fn default() -> Self {
        Self {
            queue_entries: WORK_QUEUE_ENTRIES,
            priority: 1,
        }
    }
}

/// A tuple of a gather list: a part of a send-buffer area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatherPiece {
    /// Which area.
    pub tag: SendTag,
    /// Where in it, from its base.
    pub offset: u64,
    /// How many bytes.
    pub length_bytes: u64,
}

/// Says which message of which terminus, so that one can ask whether its buffers are free.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendHandle {
    /// The terminus.
    pub terminus: TerminusId,
    /// Its sequence number, from 1.
    pub sequence: u64,
}

/// What became of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Still in the work queue: its buffers must stay as they are.
    Pending,
    /// Handed to the link whole; its buffers are free.
    Sent,
    /// Its link was lost before all of it was handed over; its buffers are free.
    Failed,
}

/// A message was not accepted by its terminus. Nothing of it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The work queue has no entry left.
    #[error("the work queue of the terminus is full: try again when a message has completed")]
    QueueFull,
    /// No such terminus.
    #[error("the terminus is not open")]
    NoSuchTerminus,
    /// The link is gone.
    #[error("the link to the peer is gone")]
    LinkGone,
    /// Too much metadata.
    #[error("{length_bytes} bytes of metadata, but a message may carry {USER_METADATA_BYTES}")]
    MetadataTooLong {
        /// How much was given.
        length_bytes: usize,
    },
    /// A message too large for direct I/O that has no send-buffer area.
    #[error(
        "{length_bytes} bytes cannot wait in the work queue, which holds {DIRECT_BYTES_MAX}: send them from a send-buffer area"
    )]
    TooLongToQueue {
        /// How long the message is.
        length_bytes: u64,
    },
    /// Too many parts.
    #[error("{pieces} gather pieces, but a message may have {GATHER_PIECES_MAX}")]
    TooManyPieces {
        /// How many were given.
        pieces: usize,
    },
    /// The tag names no send-buffer area.
    #[error("send-buffer tag {0} names no area of this terminus: bind one first", tag.0)]
    NoSuchArea {
        /// The tag.
        tag: SendTag,
    },
    /// A piece exceeds its send-buffer area.
    #[error("{length_bytes} bytes at {offset} exceed send-buffer area {0} of {area_bytes} bytes", tag.0)]
    OutsideArea {
        /// The area's tag.
        tag: SendTag,
        /// Where the piece was to begin.
        offset: u64,
        /// How long it was to be.
        length_bytes: u64,
        /// How long the area is.
        area_bytes: u64,
    },
    /// A fast-mode message that does not fit one packet, or carries metadata besides its word.
    #[error(
        "a fast-mode message is one packet of at most {payload_max_bytes} bytes without metadata; this one has {length_bytes}"
    )]
    FastTooLong {
        /// How long it is.
        length_bytes: u64,
        /// How much one packet of the link carries.
        payload_max_bytes: usize,
    },
    /// The message would end beyond the 64-bit offsets, or is longer than any message may be.
    #[error("the message ends beyond what offsets can name")]
    TooLong,
    /// The share is too small.
    #[error(transparent)]
    Share(#[from] ShareTooSmall),
}

/// A terminus could not be opened or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminusError {
    /// The queue length is impossible.
    #[error("a work queue has 1 to {WORK_QUEUE_ENTRIES_MAX} entries, not {asked}")]
    QueueEntries {
        /// What was asked.
        asked: usize,
    },
    /// A priority of zero would never be served.
    #[error("a terminus' priority is 1 to 255")]
    Priority,
    /// All termini are in use.
    #[error("all {TERMINI_MAX} termini are in use: close one")]
    TooMany,
    /// No such terminus.
    #[error("the terminus is not open")]
    NoSuchTerminus,
    /// All tags are in use.
    #[error("all {SEND_AREAS} send-buffer areas of the terminus are in use: unbind one")]
    TooManyAreas,
    /// The tag names nothing.
    #[error("send-buffer tag {0} names no area of this terminus", tag.0)]
    NoSuchArea {
        /// The tag.
        tag: SendTag,
    },
    /// The range does not lie in the area.
    #[error("{length_bytes} bytes at {base} do not fit the area of {area_bytes} bytes")]
    DoesNotFit {
        /// Where the send-buffer area was to begin.
        base: u64,
        /// How long it was to be.
        length_bytes: u64,
        /// How long the area is.
        area_bytes: u64,
    },
    /// Messages that use the area are still queued.
    #[error("messages in the work queue still use send-buffer area {0}: wait for them", tag.0)]
    InUse {
        /// The tag.
        tag: SendTag,
    },
}

/// The completion word of a terminus (`Hamlyn 2.3`), and beside it which of
/// the latest messages failed. Read by the application, written by the interface.
#[derive(Debug)]
pub struct CompletionWord {
    done: AtomicU64,
    /// Sequence number of the last failed message in each place of the queue.
    failed: Box<[AtomicU64]>,
}

impl CompletionWord {
    fn new(places: usize) -> Self {
        Self {
            done: AtomicU64::new(0),
            failed: (0..places).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Sequence number of the last message that is done. It only grows.
    #[inline]
    pub fn done(&self) -> u64 {
        self.done.load(Acquire)
    }

    /// What became of the message with that sequence number. A failure is
    /// remembered until as many messages as the queue holds came after it.
    pub fn completion(&self, sequence: u64) -> Completion {
        if self.done() < sequence {
            return Completion::Pending;
        }
        let place = (sequence % self.failed.len() as u64) as usize;
        if self.failed[place].load(Relaxed) == sequence {
            Completion::Failed
        } else {
            Completion::Sent
        }
    }
}

#[derive(Debug)]
struct SendArea<A> {
    area: A,
    base: u64,
    length_bytes: u64,
}

/// Where the data of a queued message are.
#[derive(Debug)]
enum Data {
    /// In the entry itself: direct I/O.
    Direct {
        length: u8,
        bytes: [u8; DIRECT_BYTES_MAX],
    },
    /// In send-buffer areas, to be pulled.
    Gather {
        count: u8,
        pieces: [GatherPiece; GATHER_PIECES_MAX],
    },
}

const _: () = assert!(DIRECT_BYTES_MAX <= u8::MAX as usize);

/// An entry of the work queue.
#[derive(Debug)]
struct Work {
    link: LinkId,
    segmenter: Segmenter,
    metadata: [u8; USER_METADATA_BYTES],
    data: Data,
}

/// What the head of a work queue wants to send.
pub(crate) struct Wanted {
    pub(crate) link: LinkId,
    pub(crate) segment: Segment,
}

/// The parts of one packet.
pub(crate) struct PartList<'a, A> {
    parts: [Part<'a, A>; GATHER_PIECES_MAX],
    count: usize,
}

impl<'a, A> PartList<'a, A> {
    pub(crate) fn new() -> Self {
        Self {
            parts: [const { Part::Bytes(&[]) }; GATHER_PIECES_MAX],
            count: 0,
        }
    }

    fn push(&mut self, part: Part<'a, A>) {
        if let Some(place) = self.parts.get_mut(self.count) {
            *place = part;
            self.count += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Part<'a, A>] {
        &self.parts[..self.count]
    }
}

/// One terminus.
#[derive(Debug)]
pub(crate) struct Terminus<A> {
    areas: [Option<SendArea<A>>; SEND_AREAS],
    /// Allocated once, for as many entries as it may hold.
    queue: VecDeque<Work>,
    queue_entries: usize,
    priority: u8,
    /// Packets that it may still send before others have their turn.
    left_in_turn: u8,
    word: Arc<CompletionWord>,
}

impl<A: Area> Terminus<A> {
    pub(crate) fn new(options: TerminusOptions) -> Result<Self, TerminusError> {
        if !(1..=WORK_QUEUE_ENTRIES_MAX).contains(&options.queue_entries) {
            return Err(TerminusError::QueueEntries {
                asked: options.queue_entries,
            });
        }
        if options.priority == 0 {
            return Err(TerminusError::Priority);
        }
        Ok(Self {
            areas: [const { None }; SEND_AREAS],
            queue: VecDeque::with_capacity(options.queue_entries),
            queue_entries: options.queue_entries,
            priority: options.priority,
            left_in_turn: options.priority,
            word: Arc::new(CompletionWord::new(options.queue_entries + 1)),
        })
    }

    /// Counts a packet that was sent in this turn; says whether the turn is over.
    pub(crate) fn ends_turn(&mut self) -> bool {
        self.left_in_turn -= 1;
        let over = self.left_in_turn == 0;
        if over {
            self.left_in_turn = self.priority;
        }
        over
    }

    pub(crate) fn completion_word(&self) -> &Arc<CompletionWord> {
        &self.word
    }

    pub(crate) fn bind(
        &mut self,
        area: A,
        base: u64,
        length_bytes: u64,
    ) -> Result<SendTag, TerminusError> {
        let area_bytes = area.length_bytes();
        if base
            .checked_add(length_bytes)
            .is_none_or(|end| end > area_bytes)
        {
            return Err(TerminusError::DoesNotFit {
                base,
                length_bytes,
                area_bytes,
            });
        }
        let place = self
            .areas
            .iter()
            .position(Option::is_none)
            .ok_or(TerminusError::TooManyAreas)?;
        self.areas[place] = Some(SendArea {
            area,
            base,
            length_bytes,
        });
        Ok(SendTag(place as u8))
    }

    pub(crate) fn unbind(&mut self, tag: SendTag) -> Result<(), TerminusError> {
        let place = self
            .areas
            .get_mut(usize::from(tag.0))
            .filter(|place| place.is_some())
            .ok_or(TerminusError::NoSuchArea { tag })?;
        let in_use = self.queue.iter().any(|work| match &work.data {
            Data::Direct { .. } => false,
            Data::Gather { count, pieces } => pieces[..usize::from(*count)]
                .iter()
                .any(|piece| piece.tag == tag),
        });
        if in_use {
            return Err(TerminusError::InUse { tag });
        }
        *place = None;
        Ok(())
    }

    /// Checks a piece and returns the area it lies in and where.
    pub(crate) fn locate(&self, piece: &GatherPiece) -> Result<(&A, u64), PostError> {
        let tag = piece.tag;
        let area = self
            .areas
            .get(usize::from(tag.0))
            .and_then(Option::as_ref)
            .ok_or(PostError::NoSuchArea { tag })?;
        if piece
            .offset
            .checked_add(piece.length_bytes)
            .is_none_or(|end| end > area.length_bytes)
        {
            return Err(PostError::OutsideArea {
                tag,
                offset: piece.offset,
                length_bytes: piece.length_bytes,
                area_bytes: area.length_bytes,
            });
        }
        Ok((&area.area, area.base + piece.offset))
    }

    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= self.queue_entries
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Sequence number of the message that is done next. Nobody else writes the word.
    #[inline]
    fn next_done(&self) -> u64 {
        self.word.done.load(Relaxed) + 1
    }

    /// Accounts for a message that went out without waiting in the queue,
    /// which must be empty.
    #[inline]
    pub(crate) fn sent_at_once(&mut self) -> u64 {
        self.many_sent_at_once(1)
    }

    /// The same for so many messages; the sequence number of the last.
    #[inline]
    pub(crate) fn many_sent_at_once(&mut self, count: usize) -> u64 {
        let sequence = self.word.done.load(Relaxed) + count as u64;
        self.word.done.store(sequence, Release);
        sequence
    }

    pub(crate) fn enqueue_direct(
        &mut self,
        link: LinkId,
        segmenter: Segmenter,
        metadata: &[u8],
        data: &[u8],
    ) -> u64 {
        let mut bytes = [0; DIRECT_BYTES_MAX];
        bytes[..data.len()].copy_from_slice(data);
        self.enqueue(
            link,
            segmenter,
            metadata,
            Data::Direct {
                length: data.len() as u8,
                bytes,
            },
        )
    }

    pub(crate) fn enqueue_gather(
        &mut self,
        link: LinkId,
        segmenter: Segmenter,
        metadata: &[u8],
        list: &[GatherPiece],
    ) -> u64 {
        let mut pieces = [GatherPiece {
            tag: SendTag(0),
            offset: 0,
            length_bytes: 0,
        }; GATHER_PIECES_MAX];
        pieces[..list.len()].copy_from_slice(list);
        self.enqueue(
            link,
            segmenter,
            metadata,
            Data::Gather {
                count: list.len() as u8,
                pieces,
            },
        )
    }

    fn enqueue(&mut self, link: LinkId, segmenter: Segmenter, metadata: &[u8], data: Data) -> u64 {
        let mut kept = [0; USER_METADATA_BYTES];
        kept[..metadata.len()].copy_from_slice(metadata);
        self.queue.push_back(Work {
            link,
            segmenter,
            metadata: kept,
            data,
        });
        self.word.done.load(Relaxed) + self.queue.len() as u64
    }

    /// The next packet of the head of the queue.
    pub(crate) fn wanted(
        &self,
        payload_max_bytes: impl Fn(LinkId) -> Option<usize>,
    ) -> Option<Result<Wanted, LinkId>> {
        let work = self.queue.front()?;
        let Some(payload_max_bytes) = payload_max_bytes(work.link) else {
            return Some(Err(work.link));
        };
        Some(Ok(Wanted {
            link: work.link,
            segment: work.segmenter.next(payload_max_bytes),
        }))
    }

    /// Metadata and data parts of a packet of the head of the queue.
    pub(crate) fn parts<'a>(&'a self, segment: &Segment, parts: &mut PartList<'a, A>) -> &'a [u8] {
        let Some(work) = self.queue.front() else {
            return &[];
        };
        if segment.header.flags.is_placed() {
            return &work.metadata[..usize::from(segment.header.metadata_length_bytes)];
        }
        let mut start = segment.start;
        let mut left = u64::from(segment.header.length_bytes);
        match &work.data {
            Data::Direct { length, bytes } => {
                let bytes = &bytes[..usize::from(*length)];
                let start = start as usize;
                parts.push(Part::Bytes(&bytes[start..start + left as usize]));
            }
            Data::Gather { count, pieces } => {
                for piece in &pieces[..usize::from(*count)] {
                    if left == 0 {
                        break;
                    }
                    if start >= piece.length_bytes {
                        start -= piece.length_bytes;
                        continue;
                    }
                    let take = left.min(piece.length_bytes - start);
                    // Checked when it was posted, and its area cannot be unbound since.
                    if let Ok((area, offset)) = self.locate(piece) {
                        parts.push(Part::Area {
                            area,
                            offset: offset + start,
                            length_bytes: take as u32,
                        });
                    }
                    left -= take;
                    start = 0;
                }
            }
        }
        &work.metadata[..usize::from(segment.header.metadata_length_bytes)]
    }

    /// The packet was taken.
    pub(crate) fn advance(&mut self, segment: &Segment) {
        if let Some(work) = self.queue.front_mut() {
            work.segmenter.advance(segment);
            if segment.last {
                self.finish(false);
            }
        }
    }

    /// The head of the queue is done with.
    pub(crate) fn finish(&mut self, failed: bool) {
        let sequence = self.next_done();
        self.queue.pop_front();
        if failed {
            let place = (sequence % self.word.failed.len() as u64) as usize;
            self.word.failed[place].store(sequence, Relaxed);
        }
        self.word.done.store(sequence, Release);
    }
}
