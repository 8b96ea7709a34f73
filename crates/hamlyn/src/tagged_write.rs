//! Tagged remote write (`Hamlyn 3.3`): a deposit at a place of the sender's choosing,
//! and a tag that is queued at the receiver. Fast mode, so a message is one
//! packet; order is not guaranteed.
//!
//! Nothing bounds the number of tags but the sender's discipline; so each receiver has a
//! notification queue of its own, where an overrun hurts no other receiver, is detected, and is
//! counted.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::slot::SlotInfo;
use hamlyn_engine::terminus::SendHandle;
use hamlyn_host::process::ProcessHost;
use hamlyn_host::{Host, Supply};
use hamlyn_ring::area::Area;

use crate::error::{ConnectError, FenceError, OpenError, ReceiveError, SendError};

use crate::item::{Bound, EndPoint, ItemHeader, Protocol, TypeName};
use crate::manager::{Manager, ManagerRef};
use crate::message::{Message, Target};
use crate::peer::PeerIdentity;
use crate::queue::Queue;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::slot::{NewSlot, Slot};
use crate::tasks::Interest;
use crate::ticket::{OutsideTicket, Ticket, TicketKind};
use crate::wait::Wait;

/// The receiving end: an area to be written, and a queue of tags.
#[derive(Debug)]
pub struct Receiver<H: Host = ProcessHost> {
    tags: Tags,
    /// The item under which others find it.
    bound: Option<Bound>,
    manager: ManagerRef<H>,
}

/// A tag that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag {
    /// The tag.
    pub tag: u64,
    /// The link over which it, or the last packet of its message, came: [`Receiver::sender`].
    pub from: LinkId,
}

impl Tag {
    #[inline(always)]
    fn of(notification: &Notification) -> Self {
        Self {
            tag: notification.word,
            from: notification.from,
        }
    }
}

const HEADER: ItemHeader = ItemHeader::new(Protocol::TaggedWrite, TypeName::BYTES);

/// What a receiver has, but for its manager.
#[derive(Debug)]
struct Tags {
    slot: Slot,
    area: Area,
    queue: Queue,
    /// Tags that were passed over while a specific one was sought.
    passed: VecDeque<Tag>,
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
        let mut session = manager.enter()?;
        let area = session.allocate(area_bytes)?;
        let queue = session.open_queue(tags)?;
        let slot = match session.open_slot(NewSlot::new(&area).queue(&queue)) {
            Ok(slot) => slot,
            Err(error) => {
                session.close_queue(queue);
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
                leaving: session.leaving.clone(),
            },
            bound: None,
            manager: manager.hold(),
        })
    }

    /// A receiver that others find under `item`.
    pub(crate) fn bind(
        manager: &Manager<H>,
        item: &str,
        area_bytes: u64,
        tags: usize,
    ) -> Result<Self, OpenError> {
        let mut receiver = Self::new(manager, area_bytes, tags)?;
        let ticket = receiver.ticket().to_bytes();
        let bound = manager
            .enter()?
            .core
            .bind(item, HEADER, &ticket, Supply::Always)?;
        receiver.bound = Some(bound);
        Ok(receiver)
    }

    /// The memory that senders write. Read it with [`Area::read_at`]; it may change at any time.
    pub fn area(&self) -> &Area {
        &self.tags.area
    }

    /// A ticket for the whole area.
    pub fn ticket(&self) -> Ticket {
        self.tags.ticket()
    }

    /// A ticket for a part of the area. Its holder's library keeps to the part; the interface
    /// enforces the whole area only, since fast mode has no entry to hold narrower limits.
    pub fn ticket_for(&self, offset: u64, length_bytes: u64) -> Result<Ticket, OutsideTicket> {
        self.tags.slot.fast_ticket(offset, length_bytes)
    }

    /// The next tag, and who sent it. Nothing if none came in time. Does not allocate.
    #[inline(always)]
    pub fn recv(&mut self, wait: Wait) -> Result<Option<Tag>, ReceiveError> {
        let mut session = self.manager.enter()?;
        // While tags were passed over, the queue is not known to be empty.
        if let Some(notification) = session.take_at_hand(&self.tags.queue) {
            return Ok(Some(Tag::of(&notification)));
        }
        drop(session);
        self.recv_slowly(wait)
    }

    #[inline(never)]
    fn recv_slowly(&mut self, wait: Wait) -> Result<Option<Tag>, ReceiveError> {
        self.tags.await_tag(&mut self.manager.enter()?, wait)
    }

    /// As [`Receiver::recv`], for a task: it is woken when there may be a tag
    /// ([`Manager::register_waker`]). Does not block, nor allocate.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<Tag, ReceiveError>> {
        let tags = &mut self.tags;
        self.manager.poll_look_for(context, |session| {
            let found = tags.await_tag(session, Wait::Poll)?;
            Ok(found.ok_or_else(|| Interest::Messages(tags.queue.reader.unread(), None)))
        })
    }

    /// As [`Receiver::recv`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). Dropping it loses nothing.
    pub async fn recv_async(&mut self) -> Result<Tag, ReceiveError> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// As [`Receiver::recv`], the tag alone (`Hamlyn 3.3`).
    #[inline(always)]
    pub fn get_tag(&mut self, wait: Wait) -> Result<Option<u64>, ReceiveError> {
        Ok(self.recv(wait)?.map(|tag| tag.tag))
    }

    /// Waits for that very tag (`Hamlyn 3.3`); others that come meanwhile stay queued, in order.
    pub fn get_specific_tag(&mut self, tag: u64, wait: Wait) -> Result<Option<u64>, ReceiveError> {
        let tags = &mut self.tags;
        if let Some(index) = tags.passed.iter().position(|passed| passed.tag == tag) {
            return Ok(tags.passed.remove(index).map(|tag| tag.tag));
        }
        let mut session = self.manager.enter()?;
        let came = session.wait_for(wait, |session| tags.seek(session, Some(tag)));
        if !tags.passed.is_empty() {
            // So that what comes next is not taken before them.
            tags.queue.empty_at = u64::MAX;
        }
        Ok(came?.map(|tag| tag.tag))
    }

    /// Tags lost to overrun so far.
    pub fn lost(&self) -> u64 {
        self.tags.queue.lost() + self.tags.passed_lost
    }

    /// Who sent a tag, as the kernel or the handshake vouches. Nothing if its link ended long ago.
    pub fn sender(&self, tag: &Tag) -> Option<PeerIdentity> {
        self.manager.enter().ok()?.identity_of(tag.from)
    }

    /// Gives the area a fresh key: tickets handed out before are worthless. A receiver with a name
    /// is found with the new key by those who connect from now on.
    pub fn revoke(&mut self) -> Result<(), OpenError> {
        let mut session = self.manager.enter()?;
        session.rekey_slot(&mut self.tags.slot)?;
        match &self.bound {
            Some(bound) => {
                let ticket = self.tags.ticket().to_bytes();
                session.core.offer_bound(bound, &ticket, Supply::Always)
            }
            None => Ok(()),
        }
    }

    /// Packets refused at this receiver, by reason, and more.
    pub fn info(&self) -> Result<SlotInfo, OpenError> {
        Ok(self.manager.enter()?.slot_info(&self.tags.slot)?)
    }
}

impl Tags {
    fn ticket(&self) -> Ticket {
        self.slot.whole_fast()
    }

    /// The next tag, which was not at hand.
    #[inline(never)]
    fn await_tag<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        wait: Wait,
    ) -> Result<Option<Tag>, ReceiveError> {
        if let Some(tag) = self.passed.pop_front() {
            return Ok(Some(tag));
        }
        match session.next_slowly(&mut self.queue)? {
            Some(notification) => Ok(Some(Tag::of(&notification))),
            None => session.wait_for(wait, |session| self.seek(session, None)),
        }
    }

    /// Looks for the next tag, or for that one. Others stay queued, in order.
    fn seek<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
        sought: Option<u64>,
    ) -> Result<Option<Tag>, ReceiveError> {
        while let Some(notification) = session.next_notification(&mut self.queue)? {
            let tag = Tag::of(&notification);
            if sought.is_none_or(|sought| sought == tag.tag) {
                return Ok(Some(tag));
            }
            let is_full = self.passed.len() == self.passed_max;
            if is_full {
                // As when the queue itself is overrun: the oldest is lost, and said to be.
                self.passed.pop_front();
                self.passed_lost += 1;
            }
            self.passed.push_back(tag);
            if is_full {
                return Err(hamlyn_engine::notification::Overrun { lost: 1 }.into());
            }
        }
        Ok(None)
    }
}

/// The sending end: a ticket made usable.
#[derive(Debug)]
pub struct Sender<H: Host = ProcessHost> {
    target: Target,
    manager: ManagerRef<H>,
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
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let connect = |session: &mut Session<'_, H>, ticket: &[u8], left| {
            let ticket = Ticket::from_bytes(ticket)?;
            ticket.expect(TicketKind::Slot)?;
            Ok((session.target(&ticket, left)?, None))
        };
        Ok(Self {
            target: manager.enter()?.connect_to(to, HEADER, wait, connect)?,
            manager: manager.hold(),
        })
    }

    /// Makes a ticket usable here; connects if need be.
    pub fn grow(manager: &Manager<H>, ticket: &Ticket, wait: Wait) -> Result<Self, ConnectError> {
        ticket.expect(TicketKind::Slot)?;
        Ok(Self {
            target: manager.enter()?.target(ticket, wait)?,
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
        self.manager.send(&self.target, &message, wait)
    }

    /// As [`Sender::send`], for a task: it is woken when there may be room
    /// ([`Manager::register_waker`]), and the call is to be made again. Does not block.
    pub fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        offset: u64,
        data: &[u8],
        tag: u64,
    ) -> Poll<Result<SendHandle, SendError>> {
        let message = Message::new(data).at(offset).word(tag);
        self.manager.poll_look(context, |session| {
            let terminus = session.terminus();
            session.try_send(terminus, &self.target, &message)
        })
    }

    /// As [`Sender::send`], as a future. An event loop or a task must drive the manager
    /// ([`Manager::register_waker`]). If it is dropped before it is done, nothing is sent.
    pub async fn send_async(
        &mut self,
        offset: u64,
        data: &[u8],
        tag: u64,
    ) -> Result<SendHandle, SendError> {
        poll_fn(|context| self.poll_send(context, offset, data, tag)).await
    }

    /// Waits until everything that was sent to the receiver's interface, by whichever sender of
    /// this manager, is in its place there, or says what was refused since the fence before. Blocks
    /// for as long as `wait` says. See [`Session::fence`].
    pub fn fence(&self, wait: Wait) -> Result<(), FenceError> {
        self.manager.enter()?.fence_to(&self.target, wait)
    }

    /// As [`Sender::fence`], as a future, for what was sent before it was first polled. An event
    /// loop or a task must drive the manager ([`Manager::register_waker`]). If it is dropped before
    /// it is done, the next fence tells what it would have told.
    pub async fn fence_async(&self) -> Result<(), FenceError> {
        self.manager.fence_async(&self.target).await
    }
}
