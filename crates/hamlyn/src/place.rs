//! A place for one message or group at a time: a slot with one one-shot entry, over memory
//! that changes hands with it (`Hamlyn 2.7`). What datagram and group have in common.

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::SHORT_BYTES;
use hamlyn_engine::metadata::{MetadataArea, MetadataEntry, Permission};
use hamlyn_engine::packet::Address;
use hamlyn_engine::receive::Awaited;
use hamlyn_engine::slot::{Mode, SlotInfo};
use hamlyn_host::Host;
use hamlyn_ring::area::HandoverReader;

use crate::error::{OpenError, ReceiveError};
use crate::manager::{ClassId, Manager};
use crate::slot::{NewSlot, Slot};
use crate::ticket::Ticket;
use crate::wait::{Patience, Wait};

/// The only metadata entry of a place.
const ENTRY: u16 = 0;

/// See the module.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) slot: Slot,
    pub(crate) reader: HandoverReader,
    pub(crate) class: ClassId,
    /// What its entry permits.
    awaited: Awaited,
    metadata: MetadataArea,
    losses_seen: u64,
}

impl Place {
    /// A place of that size. Its entry is not armed, and has a key that nobody knows.
    pub(crate) fn open<H: Host>(
        manager: &mut Manager<H>,
        length_bytes: u32,
        counting: Counting,
    ) -> Result<Self, OpenError> {
        let class = manager.register_queued(1)?;
        let opened = Self::open_for(manager, length_bytes, counting, class);
        if opened.is_err() {
            manager.unregister(class);
        }
        opened
    }

    fn open_for<H: Host>(
        manager: &mut Manager<H>,
        length_bytes: u32,
        counting: Counting,
        class: ClassId,
    ) -> Result<Self, OpenError> {
        let queue = manager.queue().id();
        let interface = manager.interface_mut();
        let key = interface.new_key()?;
        let piece_bytes = length_bytes.next_power_of_two().max(64);
        let (area, reader) = interface.allocate_handover(1, piece_bytes)?;
        let mut new = NewSlot::over(area)
            .range(0..u64::from(length_bytes))
            .mode(Mode::ParanoidOneShot)
            .entries(1)
            .counting(counting);
        new.queue = Some(queue);
        let slot = interface.open_slot(new)?;
        let losses_seen = interface.loss_count();
        let Some(metadata) = slot.metadata().cloned() else {
            unreachable!("the slot was opened with an entry");
        };
        let awaited = Awaited {
            to: Address::new(slot.name(), ENTRY),
            key,
            low: 0,
            spread: u64::from(length_bytes).saturating_sub(SHORT_BYTES as u64),
        };
        let mut place = Self {
            slot,
            reader,
            class,
            awaited,
            metadata,
            losses_seen,
        };
        place.permit(key);
        if let Some(entry) = place.entry() {
            entry.set_receive_class(class.to_bits());
        }
        Ok(place)
    }

    #[inline]
    pub(crate) fn entry(&self) -> Option<&MetadataEntry> {
        self.metadata.entry(ENTRY)
    }

    /// A ticket for the whole place.
    pub(crate) fn ticket(&self) -> Ticket {
        self.slot
            .ticket(ENTRY, 0, self.slot.length_bytes())
            .unwrap_or_else(|_| unreachable!("the entry covers the slot"))
    }

    /// Lets messages with that key in, anywhere in the place.
    pub(crate) fn permit(&mut self, key: Key) {
        self.awaited.key = key;
        let high = self.slot.length_bytes();
        if let Some(entry) = self.entry() {
            entry.permit(Permission { key, low: 0, high });
        }
    }

    /// Lets one message in. The place is its sender's until it has come.
    #[inline]
    pub(crate) fn arm(&mut self) {
        self.reader.open_one(0);
        if let Some(entry) = self.entry() {
            entry.arm();
        }
    }

    /// The word of metadata of a message of that and 16 bytes of data, if it is what comes next.
    #[inline(always)]
    pub(crate) fn short_at_hand<H: Host>(&self, manager: &mut Manager<H>) -> Option<u64> {
        manager.awaited_at_hand(&self.awaited)
    }

    /// Waits until a message is complete; false if none was in time. The loss of any peer
    /// interrupts the wait, once.
    #[inline(never)]
    pub(crate) fn await_message<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        wait: Wait,
    ) -> Result<bool, ReceiveError> {
        if manager.interface_mut().look_again() && self.short_at_hand(manager).is_some() {
            return Ok(true);
        }
        let mut patience = Patience::new(wait);
        // While it waits, the shortest way is tried first: what comes then should be seen soon.
        while self.short_at_hand(manager).is_none() && manager.next_arrival(self.class)?.is_none() {
            if wait != Wait::Poll
                && let Some(lost) = manager.interface().next_loss(&mut self.losses_seen)
            {
                return Err(lost.into());
            }
            if !manager.pause(&mut patience)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn info<H: Host>(&self, manager: &Manager<H>) -> Result<SlotInfo, OpenError> {
        Ok(manager.interface().slot_info(&self.slot)?)
    }

    pub(crate) fn close<H: Host>(self, manager: &mut Manager<H>) -> Result<(), OpenError> {
        manager.interface_mut().close_slot(self.slot)?;
        manager.unregister(self.class);
        Ok(())
    }
}
