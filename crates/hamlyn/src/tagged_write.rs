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
use hamlyn_ring::area::Area;

use crate::error::{GrowError, OpenError, ReceiveError, SendError};
use crate::interface::Queue;
use crate::manager::Manager;
use crate::message::{Message, Target};
use crate::remains::{Leaving, Remains};
use crate::slot::{NewSlot, Slot};
use crate::ticket::{OutsideTicket, Ticket};
use crate::wait::{Patience, Wait};

/// The receiving end: an area to be written, and a queue of tags.
#[derive(Debug)]
pub struct Receiver {
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

impl Drop for Receiver {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            slots: vec![self.slot.name()],
            queue: Some(self.queue.id()),
            ..Remains::default()
        });
    }
}

impl Receiver {
    /// A receiver with an area of that size, and room for that many tags that have not been taken.
    pub fn new<H: Host>(
        manager: &mut Manager<H>,
        area_bytes: u64,
        tags: usize,
    ) -> Result<Self, OpenError> {
        let interface = manager.interface_mut();
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
            slot,
            area,
            queue,
            passed: VecDeque::with_capacity(passed_max),
            passed_max,
            passed_lost: 0,
            leaving: interface.leaving.clone(),
        })
    }

    /// The memory that senders write. Read it with [`Area::read_at`]; it may change at any time.
    pub fn area(&self) -> &Area {
        &self.area
    }

    /// A ticket for the whole area.
    pub fn ticket(&self) -> Ticket {
        self.slot
            .fast_ticket(0, self.slot.length_bytes())
            .unwrap_or_else(|_| unreachable!("the slot covers itself"))
    }

    /// A ticket for a part of the area. Its holder's library keeps to the part; the
    /// interface enforces the whole area only, since fast mode has no entry to hold narrower limits.
    pub fn ticket_for(&self, offset: u64, length_bytes: u64) -> Result<Ticket, OutsideTicket> {
        self.slot.fast_ticket(offset, length_bytes)
    }

    /// The next tag. Nothing if none came in time.
    #[inline(always)]
    pub fn get_tag<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        wait: Wait,
    ) -> Result<Option<u64>, ReceiveError> {
        if let Some(tag) = self.passed.pop_front() {
            return Ok(Some(tag));
        }
        if let Some(notification) = manager.interface_mut().rcv(&mut self.queue)? {
            return Ok(Some(notification.word));
        }
        if wait == Wait::Poll {
            return Ok(None);
        }
        let found = manager.interface_mut().rcv_block(&mut self.queue, wait)?;
        Ok(found.map(|notification| notification.word))
    }

    /// Waits for that very tag; others that come meanwhile stay queued, in order.
    pub fn get_specific_tag<H: Host>(
        &mut self,
        manager: &mut Manager<H>,
        tag: u64,
        wait: Wait,
    ) -> Result<Option<u64>, ReceiveError> {
        if let Some(index) = self.passed.iter().position(|&passed| passed == tag) {
            return Ok(self.passed.remove(index));
        }
        let mut patience = Patience::new(wait);
        loop {
            while let Some(notification) = manager.interface_mut().rcv(&mut self.queue)? {
                if notification.word == tag {
                    return Ok(Some(tag));
                }
                if self.passed.len() == self.passed_max {
                    // As when the queue itself is overrun: the oldest is lost, and said to be.
                    self.passed.pop_front();
                    self.passed.push_back(notification.word);
                    self.passed_lost += 1;
                    return Err(hamlyn_engine::notification::Overrun { lost: 1 }.into());
                }
                self.passed.push_back(notification.word);
            }
            if !manager.pause(&mut patience)? {
                return Ok(None);
            }
        }
    }

    /// Tags lost to overrun so far.
    pub fn lost(&self) -> u64 {
        self.queue.lost() + self.passed_lost
    }

    /// Gives the area a fresh key: tickets handed out before are worthless.
    pub fn revoke<H: Host>(&mut self, manager: &mut Manager<H>) -> Result<(), OpenError> {
        manager.interface_mut().rekey_slot(&mut self.slot)
    }

    /// Packets refused at this receiver, by reason, and more.
    pub fn info<H: Host>(&self, manager: &Manager<H>) -> Result<SlotInfo, OpenError> {
        Ok(manager.interface().slot_info(&self.slot)?)
    }

    /// Closes the receiver; its tickets are worthless.
    pub fn close<H: Host>(self, manager: &mut Manager<H>) -> Result<(), OpenError> {
        drop(self);
        manager.settle();
        Ok(())
    }
}

/// The sending end: a ticket made usable.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    target: Target,
}

impl Sender {
    /// Makes a ticket usable here; connects if need be.
    pub fn grow<H: Host>(
        manager: &mut Manager<H>,
        ticket: &Ticket,
        wait: Wait,
    ) -> Result<Self, GrowError> {
        Ok(Self {
            target: manager.interface_mut().target(ticket, wait)?,
        })
    }

    /// Writes `data` (one packet's worth at most) to `offset` and queues `tag` at the receiver.
    #[inline(always)]
    pub fn send<H: Host>(
        &self,
        manager: &mut Manager<H>,
        offset: u64,
        data: &[u8],
        tag: u64,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let terminus = manager.terminus();
        let message = Message::new(data).at(offset).word(tag);
        manager
            .interface_mut()
            .send_msg(terminus, &self.target, &message, wait)
    }
}
