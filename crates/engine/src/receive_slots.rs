//! Calls of the owner of a receiving half: queues, slots and grants.

use core::ops::Range;

use crate::grant::{GrantId, GrantRefused, Holder};
use crate::key::Key;
use crate::memory::{Area, LinkId};
use crate::notification::{NotificationReader, QueueError, queue};
use crate::packet::SlotName;
use crate::receive::Receiver;
use crate::receive_observer::{ReceiveEvent, ReceiveObserver, SlotChange};
use crate::slot::{Mode, QueueId, SlotError, SlotInfo, SlotOptions, SlotTable};

impl<A: Area, O: ReceiveObserver<A>> Receiver<A, O> {
    /// Opens a notification queue of at least `entries` entries. Allocates.
    pub fn open_queue(
        &mut self,
        entries: usize,
    ) -> Result<(QueueId, NotificationReader), QueueError> {
        let (writer, reader) = queue(entries)?;
        let name = self.queues.insert(writer).ok_or(QueueError::TooMany)?;
        Ok((QueueId::new(name), reader))
    }

    /// Closes a queue. Slots that still name it announce nothing any more.
    pub fn close_queue(&mut self, queue: QueueId) {
        self.queues.remove(queue.name());
    }

    /// Opens a slot (`Hamlyn 2.2`). Allocates.
    pub fn open_slot(&mut self, options: SlotOptions<A>) -> Result<SlotName, SlotError> {
        if let Some(queue) = options.queue
            && !self.queues.contains(queue.name())
        {
            return Err(SlotError::NoSuchQueue);
        }
        let told = O::LISTENS.then(|| options.clone());
        let name = self.slots.open(options)?;
        if let Some(options) = told {
            self.tell(|| ReceiveEvent::SlotOpened { name, options });
        }
        Ok(name)
    }

    /// Closes a slot: its name will never be good again.
    pub fn close_slot(&mut self, name: SlotName) -> Result<(), SlotError> {
        self.change_slot(name, SlotChange::Closed, |slots| slots.close(name))
    }

    /// Changes a slot's key; messages with the old one are refused. Undoes a revocation.
    pub fn rekey_slot(&mut self, name: SlotName, key: Key) -> Result<(), SlotError> {
        self.change_slot(name, SlotChange::Rekeyed(key), |slots| {
            slots.change(name, |slot| {
                slot.key = key;
                slot.revoked = false;
            })
        })
    }

    /// Refuses all messages to the slot until it is re-keyed.
    pub fn revoke_slot(&mut self, name: SlotName) -> Result<(), SlotError> {
        self.change_slot(name, SlotChange::Revoked, |slots| {
            slots.change(name, |slot| slot.revoked = true)
        })
    }

    /// Notes that others map that range of the slot, and which of them may store there. Allocates.
    pub fn grant(
        &mut self,
        name: SlotName,
        range: Range<u64>,
        holder: Holder,
    ) -> Result<GrantId, GrantRefused> {
        let slot = self
            .slots
            .get_mut(name)
            .ok_or(GrantRefused::NotOpen(name))?;
        if slot.mode != Mode::Normal {
            return Err(GrantRefused::Paranoid(name));
        }
        let serial = self.grants_made;
        slot.grants
            .add(slot.length_bytes, range.clone(), holder, serial)?;
        self.grants_made += 1;
        let grant = GrantId { slot: name, serial };
        self.tell(|| ReceiveEvent::Granted {
            grant,
            slot: name,
            range,
            holder,
        });
        Ok(grant)
    }

    /// The area of a slot, and where in it the slot begins.
    pub fn slot_place(&self, name: SlotName) -> Result<(&A, u64), SlotError> {
        let slot = self
            .slots
            .named(name)
            .map_err(|_| SlotError::NotOpen(name))?;
        Ok((&slot.area, slot.base))
    }

    /// Ends a grant: placed packets that come from now on are refused. False if it had ended,
    /// with its slot or by itself.
    pub fn end_grant(&mut self, grant: GrantId) -> bool {
        self.tell(|| ReceiveEvent::GrantEnded(grant));
        self.slots
            .get_mut(grant.slot)
            .is_some_and(|slot| slot.grants.end(grant.serial))
    }

    /// Ends all grants to a peer that is gone.
    pub fn end_grants_of(&mut self, peer: LinkId) {
        self.tell(|| ReceiveEvent::GrantsEndedOf(peer));
        for slot in self.slots.iter_mut() {
            slot.grants.end_all_of(peer);
        }
    }

    /// The settings and the state of a slot.
    pub fn slot_info(&self, name: SlotName) -> Result<SlotInfo, SlotError> {
        self.slots.info(name)
    }

    /// Number of slots open.
    pub fn slots_open(&self) -> usize {
        self.slots.open_count()
    }

    /// Makes a change of a slot, and tells who watches.
    fn change_slot<R>(
        &mut self,
        name: SlotName,
        change: SlotChange,
        make: impl FnOnce(&mut SlotTable<A>) -> Result<R, SlotError>,
    ) -> Result<R, SlotError> {
        let made = make(&mut self.slots);
        self.tell(|| ReceiveEvent::SlotChanged {
            name,
            change,
            was_open: made.is_ok(),
        });
        made
    }
}
