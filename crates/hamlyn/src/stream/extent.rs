//! The receiver's memory of a stream: pieces, each with a one-shot entry, and which of
//! them are whose.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::CELLS_BYTES_MAX;
use hamlyn_engine::metadata::{MetadataArea, MetadataEntry};
use hamlyn_engine::packet::{Address, SlotName};
use hamlyn_engine::receive::Awaited;
use hamlyn_host::{Host, HostError};
use hamlyn_ring::area::{Area, HandoverReader};

use super::control::Control;
use super::options::StreamOptions;
use super::wire::{self, ExtentNote, Kind, LIMIT_BYTES_MAX, StreamSeed};
use crate::arrival::ClassId;
use crate::core::Core;
use crate::error::OpenError;
use crate::one_shot::OneShotSlot;
use crate::session::Session;
use crate::slot::{NewSlot, Slot};

/// Bytes of sparse memory that are read before their pages go back.
const SPARSE_REPORT_BYTES: u32 = 64 << 10;

/// See the module. Positions count pieces since the extent was opened.
#[derive(Debug)]
pub(crate) struct Extent {
    slot: Slot,
    metadata: MetadataArea,
    reader: HandoverReader,
    key: Key,
    pieces: u32,
    piece_bytes: u32,
    /// Pages appear when they are written, and go back when their pieces are opened again.
    is_sparse: bool,
    /// Pieces that have arrived and were not delivered,
    arrived: Box<[bool]>,
    /// and how many.
    arrivals_held: u32,
    /// Pieces that were passed over and hold nothing; they go back with those before them. And how
    /// many have not gone back.
    skipped: Box<[bool]>,
    skips_held: u32,
    /// Next piece to deliver.
    pub(crate) next: u64,
    next_index: u32,
    /// What the entry of that piece permits.
    awaited: Awaited,
    /// Pieces that the application is done with.
    pub(crate) released: u64,
    /// Pieces opened to the interface again: not one by one, but all that were released when the
    /// sender is told of it.
    opened: u64,
    opened_index: u32,
    /// Nothing comes here from this position on.
    pub(crate) end: Option<u64>,
}

/// What stands at the delivery position.
pub(crate) enum Head {
    /// Not there yet.
    Missing,
    /// A record or a filled piece.
    Filled {
        kind: Kind,
        /// Bytes.
        length_bytes: u32,
        /// Pieces that it takes.
        pieces: u32,
    },
    /// Something that no correct sender writes.
    Malformed(&'static str),
}

/// The next piece is no short record.
pub(crate) struct NotFastPath;

impl Extent {
    pub(crate) fn open<H: Host>(
        session: &mut Session<'_, H>,
        class: ClassId,
        options: &StreamOptions,
    ) -> Result<Self, OpenError> {
        let &StreamOptions {
            pieces,
            piece_bytes,
            ahead: is_sparse,
            ..
        } = options;
        let (area, mut reader) = match is_sparse {
            true => {
                let length_bytes = u64::from(pieces) * u64::from(piece_bytes);
                Area::sparse_handover(pieces, piece_bytes)
                    .map_err(HostError::memory(length_bytes))?
            }
            false => session.allocate_handover(pieces, piece_bytes)?,
        };
        let new = NewSlot::over(area).range(0..u64::from(pieces) * u64::from(piece_bytes));
        let opened = OneShotSlot::open(session, class, new, pieces as usize)?;
        reader.open(0..pieces);
        let mut low = 0;
        for entry in opened.metadata.entries(0..pieces) {
            let high = low + u64::from(piece_bytes);
            opened.permit(entry, low..high);
            entry.arm();
            low = high;
        }
        let OneShotSlot {
            slot,
            metadata,
            key,
        } = opened;
        let to = Address::new(slot.name(), 0);
        Ok(Self {
            slot,
            metadata,
            reader,
            key,
            pieces,
            piece_bytes,
            is_sparse,
            arrived: vec![false; pieces as usize].into(),
            arrivals_held: 0,
            skipped: vec![false; pieces as usize].into(),
            skips_held: 0,
            next: 0,
            next_index: 0,
            awaited: Awaited {
                to,
                key,
                low: 0,
                length_bytes: u64::from(piece_bytes).min(CELLS_BYTES_MAX as u64),
            },
            released: 0,
            opened: 0,
            opened_index: 0,
            end: None,
        })
    }

    pub(crate) fn close<H: Host>(
        self,
        session: &mut Session<'_, H>,
        class: ClassId,
    ) -> Result<(), OpenError> {
        session.close_slot(self.slot)?;
        session.core.unreserve(class, self.pieces as usize);
        Ok(())
    }

    /// What a sender grows from that begins here.
    pub(crate) fn seed(&self, control: &Control, limit_bytes: u64) -> StreamSeed {
        StreamSeed {
            ticket: self.slot.whole(0, self.key),
            pieces: self.pieces,
            piece_bytes: self.piece_bytes,
            limit_bytes: limit_bytes.min(LIMIT_BYTES_MAX),
            control_slot: control.slot_name(),
            control_key: control.key(),
        }
    }

    /// What a sender needs to go on here.
    pub(crate) fn note(&self, serial: u64, answers: u16) -> ExtentNote {
        ExtentNote {
            serial,
            slot: self.slot.name(),
            key: self.key,
            pieces: self.pieces,
            piece_bytes: self.piece_bytes,
            answers,
        }
    }

    #[inline]
    pub(crate) fn slot_name(&self) -> SlotName {
        self.slot.name()
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(crate) fn pieces(&self) -> u32 {
        self.pieces
    }

    pub(crate) fn length_bytes(&self) -> u64 {
        self.slot.length_bytes()
    }

    /// Pieces that are released before they are opened again and the sender is told, if it does not
    /// wait for them.
    pub(crate) fn report_after(&self) -> u64 {
        let quarter = self.pieces.div_ceil(4);
        let most = match self.is_sparse {
            true => (SPARSE_REPORT_BYTES / self.piece_bytes).max(1),
            false => u32::MAX,
        };
        quarter.min(most).into()
    }

    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Option<&MetadataEntry> {
        self.metadata.entry(u16::try_from(index).ok()?)
    }

    /// Notes an arrival.
    pub(crate) fn note_arrival(&mut self, index: u32) {
        if let Some(arrived) = self.arrived.get_mut(index as usize) {
            self.arrivals_held += u32::from(!*arrived);
            *arrived = true;
        }
    }

    /// Whether nothing is here but what was delivered, and more may come.
    pub(crate) fn awaits_next(&self) -> bool {
        self.arrivals_held == 0 && self.end.is_none()
    }

    /// The next piece, if it is a short record, in one cell or in several, and what comes next at
    /// all, while the extent [`Extent::awaits_next`]: it is delivered; how long it is. In the error
    /// the piece has arrived and is something else.
    #[inline(always)]
    pub(crate) fn deliver_short<H: Host, const IN_CELLS: bool>(
        &mut self,
        core: &mut Core<H>,
    ) -> Result<Option<u32>, NotFastPath> {
        let Some(entry) = self.metadata.entry(self.awaited.to.metadata_index()) else {
            return Ok(None);
        };
        let Some(short) = core.next_awaited::<IN_CELLS>(&self.awaited, entry) else {
            return Ok(None);
        };
        let length_bytes = short.length_bytes as u32;
        let is_whole = short.word == wire::piece_word(wire::Kind::Whole, length_bytes);
        if !is_whole || short.offset != self.awaited.low {
            return Err(NotFastPath);
        }
        self.advance();
        Ok(Some(length_bytes))
    }

    /// Moves the delivery position to the next piece.
    #[inline(always)]
    fn advance(&mut self) {
        self.next += 1;
        self.next_index += 1;
        self.awaited.low += u64::from(self.piece_bytes);
        if self.next_index == self.pieces {
            self.next_index = 0;
            self.awaited.low = 0;
        }
        self.awaited.to = Address::new(self.slot.name(), self.next_index as u16);
    }

    /// Notes that the next piece has arrived.
    pub(crate) fn note_next(&mut self) {
        self.note_arrival(self.next_index);
    }

    /// What stands at the delivery position.
    pub(crate) fn head(&self) -> Head {
        let index = self.next_index;
        if !self.arrived[index as usize] {
            return Head::Missing;
        }
        let Some((kind, length_bytes)) = self
            .entry(index)
            .and_then(|entry| wire::read_piece_word(entry.metadata_word()))
        else {
            return Head::Malformed("a piece of unknown kind");
        };
        let fits = length_bytes <= self.piece_bytes;
        match kind {
            Kind::Whole | Kind::Packed if fits => Head::Filled {
                kind,
                length_bytes,
                pieces: 1,
            },
            Kind::Skip => Head::Filled {
                kind,
                length_bytes: 0,
                pieces: 1,
            },
            Kind::First if !fits => {
                let pieces = length_bytes.div_ceil(self.piece_bytes);
                if index + pieces > self.pieces {
                    return Head::Malformed("a record that does not fit before the end");
                }
                if !self.arrived[index as usize..(index + pieces) as usize]
                    .iter()
                    .all(|&a| a)
                {
                    return Head::Missing;
                }
                Head::Filled {
                    kind,
                    length_bytes,
                    pieces,
                }
            }
            _ => Head::Malformed("a length that does not fit its kind"),
        }
    }

    /// Moves the delivery position on, past pieces that have arrived.
    pub(crate) fn deliver(&mut self, pieces: u32) {
        self.arrivals_held -= pieces;
        for _ in 0..pieces {
            self.arrived[self.next_index as usize] = false;
            self.advance();
        }
    }

    /// Where the piece at the delivery position begins.
    #[inline]
    pub(crate) fn next_offset(&self) -> u64 {
        self.awaited.low
    }

    /// Where the piece before that begins.
    pub(crate) fn offset_before_next(&self) -> u64 {
        let last = u64::from(self.pieces - 1) * u64::from(self.piece_bytes);
        let before = self.awaited.low.checked_sub(u64::from(self.piece_bytes));
        before.unwrap_or(last)
    }

    /// The bytes there, if they are in our hands.
    #[inline]
    pub(crate) fn view(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.reader.view(offset, length)
    }

    /// Moves the delivery position past a piece that holds nothing.
    pub(crate) fn skip(&mut self) {
        self.skipped[self.next_index as usize] = true;
        self.skips_held += 1;
        self.deliver(1);
        self.release_to(self.released);
    }

    /// Takes pieces back from the application up to (not including) `position`, and those passed
    /// over after them.
    #[inline(always)]
    pub(crate) fn release_to(&mut self, position: u64) {
        self.released = self.released.max(position.min(self.next));
        if self.skips_held > 0 {
            self.release_skips();
        }
    }

    /// Takes back pieces that were passed over: those before the release position, and those right
    /// after it.
    #[cold]
    #[inline(never)]
    fn release_skips(&mut self) {
        // Not all pieces have been opened again, so no two positions share an index.
        let index_of = |position: u64| (position % u64::from(self.pieces)) as usize;
        while self.released < self.next && self.skipped[index_of(self.released)] {
            self.released += 1;
        }
        let mut held = 0;
        for position in self.opened..self.next {
            let skipped = &mut self.skipped[index_of(position)];
            *skipped &= position >= self.released;
            held += u32::from(*skipped);
        }
        self.skips_held = held;
    }

    /// Opens all released pieces to the interface, for the sender to fill again.
    pub(crate) fn open_released(&mut self) {
        while self.opened < self.released {
            let first = self.opened_index;
            let until_wrap = u64::from(self.pieces - first);
            let count = (self.released - self.opened).min(until_wrap) as u32;
            let indices = first..first + count;
            self.reader.open(indices.clone());
            for entry in self.metadata.entries(indices) {
                entry.arm();
            }
            self.opened += u64::from(count);
            self.opened_index = if first + count == self.pieces {
                0
            } else {
                first + count
            };
        }
    }

    /// Whether the piece at a position has come.
    pub(crate) fn has_come(&self, position: u64) -> bool {
        match position.checked_sub(self.next) {
            None => true,
            Some(ahead) => {
                ahead < u64::from(self.pieces) && {
                    let index = position % u64::from(self.pieces);
                    self.arrived[index as usize]
                }
            }
        }
    }

    /// Whether every piece was delivered and none was given back.
    pub(crate) fn is_held_whole(&self) -> bool {
        self.next - self.released == u64::from(self.pieces)
    }

    /// Whether all that comes here was delivered and given back.
    pub(crate) fn is_given_back(&self) -> bool {
        self.end.is_some_and(|end| self.released >= end)
    }

    /// Whether a position that the sender names can be where it ended.
    pub(crate) fn may_end_at(&self, position: u64) -> bool {
        position >= self.next && position <= self.released + u64::from(self.pieces)
    }
}
