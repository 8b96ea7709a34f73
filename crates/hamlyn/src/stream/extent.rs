//! The receiver's memory of a stream: pieces, each with a one-shot entry, and which of
//! them are whose.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::metadata::{MetadataEntry, Permission};
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::slot::Mode;
use hamlyn_host::Host;
use hamlyn_ring::area::HandoverReader;

use super::wire::{self, CONTROL_ENTRIES, Kind, StreamSeed};
use crate::error::OpenError;
use crate::manager::{ClassId, Manager};
use crate::slot::{NewSlot, Slot};

/// See the module. Positions count pieces since the extent was opened.
#[derive(Debug)]
pub(crate) struct Extent {
    slot: Slot,
    reader: HandoverReader,
    key: Key,
    pieces: u32,
    piece_bytes: u32,
    /// Pieces that have arrived and were not delivered.
    arrived: Box<[bool]>,
    /// Pieces that were passed over and hold nothing; they go back with those before them.
    skipped: Box<[bool]>,
    /// Next piece to deliver.
    pub(crate) next: u64,
    next_index: u32,
    /// Pieces given back to the sender.
    pub(crate) released: u64,
    released_index: u32,
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

impl Extent {
    pub(crate) fn open<H: Host>(
        manager: &mut Manager<H>,
        class: ClassId,
        pieces: u32,
        piece_bytes: u32,
    ) -> Result<Self, OpenError> {
        let queue = manager.queue().id();
        let interface = manager.interface_mut();
        let key = interface.new_key()?;
        let (area, reader) = interface.allocate_handover(pieces, piece_bytes)?;
        let length = u64::from(pieces) * u64::from(piece_bytes);
        let mut new = NewSlot::over(area)
            .range(0..length)
            .mode(Mode::ParanoidOneShot)
            .entries((pieces + CONTROL_ENTRIES) as usize);
        new.queue = Some(queue);
        let slot = interface.open_slot(new)?;
        let mut extent = Self {
            slot,
            reader,
            key,
            pieces,
            piece_bytes,
            arrived: vec![false; pieces as usize].into(),
            skipped: vec![false; pieces as usize].into(),
            next: 0,
            next_index: 0,
            released: 0,
            released_index: 0,
            end: None,
        };
        for index in 0..pieces + CONTROL_ENTRIES {
            // Control messages have no data, so their limits are empty.
            let low = u64::from(index.min(pieces)) * u64::from(piece_bytes);
            let high = if index < pieces {
                low + u64::from(piece_bytes)
            } else {
                low
            };
            if let Some(entry) = extent.entry(index) {
                entry.set_receive_class(class.to_bits());
                entry.permit(Permission {
                    key: extent.key,
                    low,
                    high,
                });
            }
            extent.arm(index);
        }
        Ok(extent)
    }

    pub(crate) fn close<H: Host>(
        self,
        manager: &mut Manager<H>,
        class: ClassId,
    ) -> Result<(), OpenError> {
        manager.interface_mut().close_slot(self.slot)?;
        manager.unreserve(class, (self.pieces + CONTROL_ENTRIES) as usize);
        Ok(())
    }

    pub(crate) fn seed(&self, identity: hamlyn_host::Destination) -> StreamSeed {
        StreamSeed {
            ticket: crate::ticket::Ticket {
                destination: identity,
                slot: self.slot.name(),
                metadata_index: 0,
                key: self.key,
                base: 0,
                length_bytes: self.slot.length_bytes(),
                counting: hamlyn_engine::counting::Counting::Bits32,
            },
            pieces: self.pieces,
            piece_bytes: self.piece_bytes,
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

    #[inline]
    pub(crate) fn entry(&self, index: u32) -> Option<&MetadataEntry> {
        self.slot.metadata()?.entry(u16::try_from(index).ok()?)
    }

    /// Opens a piece, or a control entry, for one more message.
    #[inline]
    pub(crate) fn arm(&mut self, index: u32) {
        if index < self.pieces {
            self.reader.open(index..index + 1);
        }
        if let Some(entry) = self.entry(index) {
            entry.arm();
        }
    }

    /// Metadata of a control entry.
    pub(crate) fn control(&self, which: u32, into: &mut [u8; USER_METADATA_BYTES]) -> usize {
        self.entry(self.pieces + which)
            .map_or(0, |entry| entry.metadata(into))
    }

    /// Notes an arrival; tells which control entry it was, if it was one.
    #[inline]
    pub(crate) fn note_arrival(&mut self, index: u32) -> Option<u32> {
        match self.arrived.get_mut(index as usize) {
            Some(arrived) => {
                *arrived = true;
                None
            }
            None => Some(index - self.pieces),
        }
    }

    /// What stands at the delivery position.
    #[inline]
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

    /// Moves the delivery position on.
    #[inline]
    pub(crate) fn deliver(&mut self, pieces: u32) {
        for _ in 0..pieces {
            self.arrived[self.next_index as usize] = false;
            self.next_index = wire::after(self.next_index, self.pieces);
        }
        self.next += u64::from(pieces);
    }

    /// Where the piece at the delivery position begins.
    #[inline]
    pub(crate) fn next_offset(&self) -> u64 {
        u64::from(self.next_index) * u64::from(self.piece_bytes)
    }

    /// The bytes there, if they are in our hands.
    #[inline]
    pub(crate) fn view(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.reader.view(offset, length)
    }

    /// Moves the delivery position past a piece that holds nothing.
    pub(crate) fn skip(&mut self) {
        self.skipped[self.next_index as usize] = true;
        self.deliver(1);
        self.release_to(self.released);
    }

    /// Gives pieces back up to (not including) `position`, and those passed over after them.
    pub(crate) fn release_to(&mut self, position: u64) {
        while self.released < self.next {
            let index = self.released_index;
            let skipped = std::mem::take(&mut self.skipped[index as usize]);
            if self.released >= position && !skipped {
                return;
            }
            self.arm(index);
            self.released += 1;
            self.released_index = wire::after(index, self.pieces);
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

    /// Whether a position that the sender names can be where it ended.
    pub(crate) fn may_end_at(&self, position: u64) -> bool {
        position >= self.next && position <= self.released + u64::from(self.pieces)
    }
}
