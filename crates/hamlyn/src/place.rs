//! A place for one message or group at a time: a slot with one one-shot entry, over memory
//! that changes hands with it (`Hamlyn 2.7`). What datagram and group have in common.

use hamlyn_engine::counting::Counting;
use hamlyn_engine::metadata::MetadataEntry;
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
    losses_seen: u64,
}

impl Place {
    /// A place of that size. Its entry is not armed, and lets nothing in until it is given a permission.
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
        let place = Self {
            slot,
            reader,
            class,
            losses_seen,
        };
        if let Some(entry) = place.entry() {
            entry.set_receive_class(class.to_bits());
        }
        Ok(place)
    }

    pub(crate) fn entry(&self) -> Option<&MetadataEntry> {
        self.slot.metadata()?.entry(ENTRY)
    }

    /// A ticket for the whole place, once its entry has a permission for all of it.
    pub(crate) fn ticket(&self) -> Ticket {
        self.slot
            .ticket(ENTRY, 0, self.slot.length_bytes())
            .unwrap_or_else(|_| unreachable!("the entry covers the slot"))
    }

    /// Waits until a message is complete; false if none was in time. The loss of any peer
    /// interrupts the wait, once.
    #[inline]
    pub(crate) fn await_message<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        wait: Wait,
    ) -> Result<bool, ReceiveError> {
        let mut patience = Patience::new(wait);
        while manager.next_arrival(self.class)?.is_none() {
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
