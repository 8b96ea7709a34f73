//! Slots in their owner's hands (`Hamlyn 2.2`), and the tickets minted from them (`3.2`).

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::slot::{Mode, QueueId, Rights};
use hamlyn_host::Destination;
use hamlyn_ring::area::Area;

use crate::queue::Queue;
use crate::ticket::{OutsideTicket, Ticket, TicketKind};

/// An open slot, in its owner's hands. Closed by [`crate::Interface::close_slot`]; dropping this
/// closes nothing.
#[derive(Debug)]
pub struct Slot {
    pub(crate) name: SlotName,
    pub(crate) key: Key,
    pub(crate) length_bytes: u64,
    pub(crate) mode: Mode,
    pub(crate) counting: Counting,
    pub(crate) destination: Destination,
    pub(crate) metadata: Option<MetadataArea>,
}

/// A slot to be opened: by default the whole area, normal mode, write right,
/// no metadata entries, no queue.
#[derive(Clone, Debug)]
pub struct NewSlot {
    /// The message area.
    pub area: Area,
    /// Which part of it.
    pub range: std::ops::Range<u64>,
    /// What holders of the key may do.
    pub rights: Rights,
    /// Mode of operation.
    pub mode: Mode,
    /// Metadata entries; 0 for fast mode and silent messages only.
    pub entries: usize,
    /// Where arrivals are announced.
    pub queue: Option<QueueId>,
    /// Width of the accumulators.
    pub counting: Counting,
}

impl NewSlot {
    /// A slot over the whole of `area`, which others may have too.
    pub fn new(area: &Area) -> Self {
        Self::over(area.clone())
    }

    /// A slot over the whole of `area`, which becomes the slot's own. So it must be
    /// with a handover area, which only one slot can write.
    pub fn over(area: Area) -> Self {
        use hamlyn_engine::memory::Area as _;
        Self {
            range: 0..area.length_bytes(),
            area,
            rights: Rights::WRITE,
            mode: Mode::Normal,
            entries: 0,
            queue: None,
            counting: Counting::Bits32,
        }
    }

    /// Announces arrivals in `queue`.
    #[must_use]
    pub fn queue(mut self, queue: &Queue) -> Self {
        self.queue = Some(queue.id);
        self
    }

    /// With that many metadata entries.
    #[must_use]
    pub fn entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Counts what is stored into it ([`crate::Session::store`]), apart for as many sources as have
    /// entries. Each source is given a ticket with an entry of its own. Such a slot has no queue: a
    /// store is announced by its count alone.
    #[must_use]
    pub fn counting_stores(mut self, entries: usize) -> Self {
        self.entries = entries;
        self.counting = Counting::Bits64;
        self.queue = None;
        self
    }

    /// With those rights of key holders.
    #[must_use]
    pub fn rights(mut self, rights: Rights) -> Self {
        self.rights = rights;
        self
    }

    /// In that mode.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Over that part of the area.
    #[must_use]
    pub fn range(mut self, range: std::ops::Range<u64>) -> Self {
        self.range = range;
        self
    }

    /// With accumulators of that width.
    #[must_use]
    pub fn counting(mut self, counting: Counting) -> Self {
        self.counting = counting;
        self
    }
}

impl Slot {
    /// Its name in packets.
    pub fn name(&self) -> SlotName {
        self.name
    }

    /// Bytes that it covers.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Its metadata entries.
    pub fn metadata(&self) -> Option<&MetadataArea> {
        self.metadata.as_ref()
    }

    /// How many bytes were stored here under that entry so far ([`NewSlot::counting_stores`]);
    /// nothing if there is no such entry. When the count has reached the sum of all bytes that a
    /// source has stored, all of them are in their place. One load; whichever thread receives keeps
    /// the count. The source says how many bytes a store has, so a count is as good as its word.
    #[inline]
    pub fn stored_bytes(&self, entry: u16) -> Option<u64> {
        let area = self.metadata.as_ref()?;
        let entry = (usize::from(entry) < area.len()).then(|| area.entry(entry))?;
        Some(entry?.counted())
    }

    /// A ticket for fast mode, for the part of the slot at `offset`.
    pub fn fast_ticket(&self, offset: u64, length_bytes: u64) -> Result<Ticket, OutsideTicket> {
        self.whole_fast().narrow(offset, length_bytes)
    }

    /// A ticket for fast mode to all of it.
    pub(crate) fn whole_fast(&self) -> Ticket {
        self.whole(FAST_INDEX, self.key)
    }

    /// A ticket for the metadata entry of that index and the part of the slot at `offset`. In the
    /// paranoid modes it carries the entry's key, and its bounds must lie within the entry's
    /// limits.
    pub fn ticket(
        &self,
        index: u16,
        offset: u64,
        length_bytes: u64,
    ) -> Result<Ticket, OutsideTicket> {
        let outside = OutsideTicket {
            offset,
            length_bytes,
            ticket_bytes: 0,
        };
        let entry = self
            .metadata
            .as_ref()
            .filter(|area| usize::from(index) < area.len())
            .and_then(|area| area.entry(index))
            .ok_or(outside)?;
        if self.mode == Mode::Normal {
            return self.whole(index, self.key).narrow(offset, length_bytes);
        }
        let permission = entry.permission().ok_or(outside)?;
        let ticket = self
            .whole(index, permission.key)
            .narrow(offset, length_bytes)?;
        if offset < permission.low || offset + length_bytes > permission.high {
            return Err(OutsideTicket {
                ticket_bytes: permission.high.saturating_sub(permission.low),
                ..outside
            });
        }
        Ok(ticket)
    }

    /// A ticket for all of it, with that entry and key.
    pub(crate) fn whole(&self, metadata_index: u16, key: Key) -> Ticket {
        Ticket {
            destination: self.destination,
            slot: self.name,
            metadata_index,
            key,
            base: 0,
            length_bytes: self.length_bytes,
            counting: self.counting,
            kind: TicketKind::Slot,
        }
    }
}
