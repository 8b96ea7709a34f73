//! Tagged remote write (`Hamlyn 3.3`): a deposit at a place of the sender's choosing,
//! and a tag that is queued at the receiver. Fast mode, so a message is one
//! packet; order is not guaranteed.
//!
//! Nothing bounds the number of tags but the sender's discipline; so each receiver has a
//! notification queue of its own, where an overrun hurts nobody else, is detected, and is counted.

use std::collections::VecDeque;

use hamlyn_engine::slot::SlotInfo;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;
use hamlyn_ring::area::Area;

use crate::error::{FenceError, GrowError, OpenError, ReceiveError, SendError};
use crate::interface::Queue;
use crate::manager::{Entered, Holder, Manager};
use crate::message::{Message, Target};
use crate::remains::{Leaving, Remains};
use crate::slot::{NewSlot, Slot};
use crate::ticket::{OutsideTicket, Ticket};
use crate::wait::{Patience, Wait};

/// The receiving end: an area to be written, and a queue of tags.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    tags: Tags,
    manager: Holder<H>,
}

/// What a receiver has, but for its manager.
#[derive(Debug)]
struct Tags {
    slot: Slot,
    area: Area,
    queue: Queue,
    /// Tags that were passed over while a specific one was sought.
    passed: VecDeque<u64>,
    passed_max: usize,
    /// Tags that found no room among those.
    passed_lost: u64,
    leaving: Leaving,
}

impl Drop for Tags {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.slot.name()],
            queue: Some(self.queue.id()),
            ..Remains::default()
        });
    }
}

impl<H: Host> Receiver<H> {
    /// A receiver with an area of that size, and room for that many tags that have not been taken.
    pub fn new(manager: &Manager<H>, area_bytes: u64, tags: usize) -> Result<Self, OpenError> {
        let mut interface = manager.interface();
        let area = interface.allocate(area_bytes)?;
        let queue = interface.open_queue(tags)?;
        let slot = match interface.open_slot(NewSlot::new(&area).queue(&queue)) {
            Ok(slot) => slot,
            Err(error) => {
                interface.close_queue(queue);
                return Err(error);
            }
        };
        let passed_max = queue.capacity();
        Ok(Self {
            tags: Tags {
                slot,
                area,
                queue,
                passed: VecDeque::with_capacity(passed_max),
                passed_max,
                passed_lost: 0,
                leaving: interface.leaving.clone(),
            },
            manager: manager.hold(),
        })
    }

    /// The memory that senders write. Read it with [`Area::read_at`]; it may change at any time.
    pub fn area(&self) -> &Area {
        &self.tags.area
    }

    /// A ticket for the whole area.
    pub fn ticket(&self) -> Ticket {
        let slot = &self.tags.slot;
        slot.fast_ticket(0, slot.length_bytes())
            .unwrap_or_else(|_| unreachable!("the slot covers itself"))
    }

    /// A ticket for a part of the area. Its holder's library keeps to the part; the
    /// interface enforces the whole area only, since fast mode has no entry to hold narrower limits.
    pub fn ticket_for(&self, offset: u64, length_bytes: u64) -> Result<Ticket, OutsideTicket> {
        self.tags.slot.fast_ticket(offset, length_bytes)
    }

    /// The next tag. Nothing if none came in time.
    #[inline(always)]
    pub fn get_tag(&mut self, wait: Wait) -> Result<Option<u64>, ReceiveError> {
        let tags = &mut self.tags;
        let mut manager = self.manager.enter();
        // While tags were passed over, the queue is not known to be empty.
        if let Some(notification) = manager.interface_mut().take_at_hand(&tags.queue) {
            return Ok(Some(notification.word));
        }
        tags.next_tag(&mut manager, wait)
    }

    /// Waits for that very tag; others that come meanwhile stay queued, in order.
    pub fn get_specific_tag(&mut self, tag: u64, wait: Wait) -> Result<Option<u64>, ReceiveError> {
        let tags = &mut self.tags;
        if let Some(index) = tags.passed.iter().position(|&passed| passed == tag) {
            return Ok(tags.passed.remove(index));
        }
        tags.await_tag(&mut self.manager.enter(), Some(tag), wait)
    }

    /// Tags lost to overrun so far.
    pub fn lost(&self) -> u64 {
        self.tags.queue.lost() + self.tags.passed_lost
    }

    /// Gives the area a fresh key: tickets handed out before are worthless.
    pub fn revoke(&mut self) -> Result<(), OpenError> {
        self.manager
            .enter()
            .interface_mut()
            .rekey_slot(&mut self.tags.slot)
    }

    /// Packets refused at this receiver, by reason, and more.
    pub fn info(&self) -> Result<SlotInfo, OpenError> {
        Ok(self
            .manager
            .enter()
            .interface()
            .slot_info(&self.tags.slot)?)
    }
}

impl Tags {
    #[inline(never)]
    fn next_tag<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        wait: Wait,
    ) -> Result<Option<u64>, ReceiveError> {
        if let Some(tag) = self.passed.pop_front() {
            return Ok(Some(tag));
        }
        match manager.interface_mut().rcv_slowly(&mut self.queue)? {
            Some(notification) => Ok(Some(notification.word)),
            None => self.await_tag(manager, None, wait),
        }
    }

    /// Waits for the next tag, or for that one.
    #[inline(never)]
    fn await_tag<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        sought: Option<u64>,
        wait: Wait,
    ) -> Result<Option<u64>, ReceiveError> {
        let found = self.seek(manager, sought, wait);
        if !self.passed.is_empty() {
            // So that what comes next is not taken before them.
            self.queue.empty_at = u64::MAX;
        }
        found
    }

    fn seek<H: Host>(
        &mut self,
        manager: &mut Entered<'_, H>,
        sought: Option<u64>,
        wait: Wait,
    ) -> Result<Option<u64>, ReceiveError> {
        let mut patience = Patience::new(wait);
        loop {
            while let Some(notification) = manager.interface_mut().rcv(&mut self.queue)? {
                let tag = notification.word;
                if sought.is_none_or(|sought| sought == tag) {
                    return Ok(Some(tag));
                }
                if self.passed.len() == self.passed_max {
                    // As when the queue itself is overrun: the oldest is lost, and said to be.
                    self.passed.pop_front();
                    self.passed.push_back(tag);
                    self.passed_lost += 1;
                    return Err(hamlyn_engine::notification::Overrun { lost: 1 }.into());
                }
                self.passed.push_back(tag);
            }
            if !manager.pause(&mut patience)? {
                return Ok(None);
            }
        }
    }
}

/// The sending end: a ticket made usable.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    target: Target,
    manager: Holder<H>,
}

impl<H: Host> Clone for Sender<H> {
    fn clone(&self) -> Self {
        Self {
            target: self.target,
            manager: self.manager.clone(),
        }
    }
}

impl<H: Host> Sender<H> {
    /// Makes a ticket usable here; connects if need be.
    pub fn grow(manager: &Manager<H>, ticket: &Ticket, wait: Wait) -> Result<Self, GrowError> {
        Ok(Self {
            target: manager.interface().target(ticket, wait)?,
            manager: manager.hold(),
        })
    }

    /// Writes `data` (one packet's worth at most) to `offset` and queues `tag` at the receiver.
    #[inline(always)]
    pub fn send(
        &self,
        offset: u64,
        data: &[u8],
        tag: u64,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let message = Message::new(data).at(offset).word(tag);
        self.manager.enter().send_msg(&self.target, &message, wait)
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of this manager, is in its place
    /// there, or says what was refused since the fence before. Blocks for as long as `wait` says. See [`crate::Interface::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter().fence_to(&self.target, wait)
    }
}
