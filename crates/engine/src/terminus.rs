//! Send termini (`Hamlyn 2.3`): send-buffer areas named by tags, and the sequence of messages by
//! which the application asks whether buffers are its own again. What waits to be sent is the
//! `backlog` module's.

use alloc::vec::Vec;

use crate::counting::ShareTooSmall;
use crate::limits::{
    DIRECT_BYTES_MAX, GATHER_PIECES_MAX, SEND_AREAS, SEND_AREAS_MAX, TERMINI_MAX,
    USER_METADATA_BYTES, WORK_QUEUE_BYTES, WORK_QUEUE_ENTRIES, WORK_QUEUE_ENTRIES_MAX,
};
use crate::memory::Area;
use crate::table::Name;

/// Names a terminus of an interface. Never used twice for different termini.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TerminusId(u64);

impl TerminusId {
    /// No terminus has this name.
    pub(crate) const NOBODY: Self = Self(u64::MAX);

    /// As one number, so that it is compared at once.
    pub(crate) const fn new(name: Name) -> Self {
        Self(name.to_bits())
    }

    /// Its name in the table.
    #[inline(always)]
    pub(crate) const fn name(self) -> Name {
        Name::from_bits(self.0)
    }
}

/// Names one of the send-buffer areas of a terminus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SendTag(pub u16);

/// What a terminus is opened with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminusOptions {
    /// Messages that may be queued for each destination, 1 to 4,095; the paper's and the default:
    /// 63.
    pub queue_entries: usize,
    /// Bytes that are kept for each destination, of messages longer than
    /// [`DIRECT_BYTES_MAX`] that were given to the interface or
    /// copied; one message alone may be longer. Default 16 MiB.
    pub queue_bytes: usize,
    /// Send-buffer areas that may be bound at a time, at most 1,024; default 8.
    pub send_areas: usize,
    /// Packets sent per turn relative to other termini that send to the same destination, 1 to 255;
    /// default 1.
    pub priority: u8,
}

impl Default for TerminusOptions {
    fn default() -> Self {
        Self {
            queue_entries: WORK_QUEUE_ENTRIES,
            queue_bytes: WORK_QUEUE_BYTES,
            send_areas: SEND_AREAS,
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
    /// Its sequence number among all messages of the interface, from 1.
    pub sequence: u64,
}

/// What became of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Still in the work queue: its buffers must stay as they are.
    Pending,
    /// Handed to the link whole; its buffers are free.
    Sent,
    /// Its link was lost before all of it was handed over, or became too narrow for a fast-mode
    /// message, which is one packet; its buffers are free.
    Failed,
}

/// A message was not accepted by its terminus. Nothing of it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The interface is that of the process from which the caller was forked.
    #[error(
        "the terminus is of an interface that was opened before this process was forked: open a manager of its own in the child"
    )]
    Forked,
    /// The work queue for that destination has no entry left, or keeps as many bytes as it may.
    #[error(
        "the terminus' work queue for that destination is full: try again when a message to it has completed"
    )]
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
        /// The number that was asked for.
        asked: usize,
    },
    /// The number of send-buffer areas is impossible.
    #[error("a terminus has up to {SEND_AREAS_MAX} send-buffer areas, not {asked}")]
    SendAreas {
        /// The number that was asked for.
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
    #[error(
        "all {areas} send-buffer areas of the terminus are in use: unbind one, or open a terminus with more"
    )]
    TooManyAreas {
        /// How many it has.
        areas: usize,
    },
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
    /// The interface is that of the process from which the caller was forked.
    #[error(
        "the terminus is of an interface that was opened before this process was forked: open a manager of its own in the child"
    )]
    Forked,
    /// Messages that use the area are still queued.
    #[error("messages in the work queue still use send-buffer area {0}: wait for them", tag.0)]
    InUse {
        /// The tag.
        tag: SendTag,
    },
}

#[derive(Debug)]
struct SendArea<A> {
    area: A,
    base: u64,
    length_bytes: u64,
}

/// One terminus.
#[derive(Debug)]
pub(crate) struct Terminus<A> {
    /// By their tags, as far as any was bound.
    areas: Vec<Option<SendArea<A>>>,
    areas_max: usize,
    /// Messages that may wait for each link.
    pub(crate) queue_entries: usize,
    /// Bytes that may be kept for each link.
    pub(crate) queue_bytes: usize,
    pub(crate) priority: u8,
}

impl<A: Area> Terminus<A> {
    pub(crate) fn new(options: TerminusOptions) -> Result<Self, TerminusError> {
        if !(1..=WORK_QUEUE_ENTRIES_MAX).contains(&options.queue_entries) {
            return Err(TerminusError::QueueEntries {
                asked: options.queue_entries,
            });
        }
        if options.send_areas > SEND_AREAS_MAX {
            return Err(TerminusError::SendAreas {
                asked: options.send_areas,
            });
        }
        if options.priority == 0 {
            return Err(TerminusError::Priority);
        }
        Ok(Self {
            areas: Vec::new(),
            areas_max: options.send_areas,
            queue_entries: options.queue_entries,
            queue_bytes: options.queue_bytes,
            priority: options.priority,
        })
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
        let bound = Some(SendArea {
            area,
            base,
            length_bytes,
        });
        let place = match self.areas.iter().position(Option::is_none) {
            Some(place) => {
                self.areas[place] = bound;
                place
            }
            None if self.areas.len() < self.areas_max => {
                self.areas.push(bound);
                self.areas.len() - 1
            }
            None => {
                let areas = self.areas_max;
                return Err(TerminusError::TooManyAreas { areas });
            }
        };
        Ok(SendTag(place as u16))
    }

    /// Takes a send-buffer area away; `is_used` says whether a message that waits needs it.
    pub(crate) fn unbind(&mut self, tag: SendTag, is_used: bool) -> Result<(), TerminusError> {
        let place = self
            .areas
            .get_mut(usize::from(tag.0))
            .filter(|place| place.is_some())
            .ok_or(TerminusError::NoSuchArea { tag })?;
        if is_used {
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

    /// Checks the pieces of a gather list; how many bytes they are together.
    pub(crate) fn measure(&self, pieces: &[GatherPiece]) -> Result<u64, PostError> {
        if pieces.len() > GATHER_PIECES_MAX {
            return Err(PostError::TooManyPieces {
                pieces: pieces.len(),
            });
        }
        let mut data_bytes = 0_u64;
        for piece in pieces {
            self.locate(piece)?;
            data_bytes = data_bytes
                .checked_add(piece.length_bytes)
                .ok_or(PostError::TooLong)?;
        }
        Ok(data_bytes)
    }
}
