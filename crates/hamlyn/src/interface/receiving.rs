//! An interface receives (`Hamlyn 3.2`, `h_rcv` and `h_rcv_block`).

use hamlyn_engine::metadata::MetadataEntry;
use hamlyn_engine::notification::{Notification, Overrun};
use hamlyn_engine::point::Point;
use hamlyn_engine::receive::{Awaited, Receiver};
use hamlyn_engine::receive_observer::ReceiveObserver;
use hamlyn_engine::slot::QueueId;
use hamlyn_host::Host;
use hamlyn_link::ReceiveEnd;
use hamlyn_ring::area::Area;

use super::Interface;
use crate::answers;
use crate::arrival::ShortArrival;
use crate::error::ReceiveError;
use crate::half::{Half, at_once};
use crate::inbound::{Inbound, Polled};
use crate::outbound::Outbound;
use crate::processor::Strategy;
use crate::queue::Queue;

impl<H: Host> Interface<H> {
    /// Looks for a message (`h_rcv`, `Hamlyn 3.2`). Does not block. If there is none, and one link
    /// only, the processor pauses once, some tens of nanoseconds: those who look in a loop would
    /// disturb the sender otherwise.
    #[inline(always)]
    pub fn rcv(&mut self, queue: &mut Queue) -> Result<Option<Notification>, ReceiveError> {
        self.check()?;
        let next = self.next_notification(queue)?;
        if self.sleepers.is_any() {
            // It may be what a task that sleeps awaits.
            self.wake_sleepers_if_active();
        }
        Ok(next)
    }

    /// Takes the messages that are there, at most so many, as [`Interface::rcv`] would one by one,
    /// but short ones for less. How many: fewer than `most` only if there were no more. Does not
    /// block. If notifications were lost, that is an error as soon as it is found; those before it
    /// have been shown to `each`.
    #[inline]
    pub fn receive_many(
        &mut self,
        queue: &mut Queue,
        most: usize,
        mut each: impl FnMut(Notification),
    ) -> Result<usize, ReceiveError> {
        self.check()?;
        let mut count = 0;
        let mut taken = |notification| {
            H::passes(Point::Taken);
            each(notification);
        };
        while count < most {
            if let Half::Own(inbound) = &mut self.inbound
                && queue.empty_at == inbound.receiver.announced()
            {
                count += inbound.take_many_handed(queue.id, most - count, &mut taken);
                if count == most || inbound.continues_turn() {
                    continue;
                }
            }
            match self.rcv_slowly(queue) {
                Ok(Some(notification)) => {
                    taken(notification);
                    count += 1;
                }
                Ok(None) => break,
                Err(overrun) => {
                    self.wake_sleepers_if_active();
                    return Err(overrun.into());
                }
            }
            if let Half::Own(inbound) = &mut self.inbound
                && queue.empty_at == inbound.receiver.announced()
            {
                count += inbound.take_more(queue.id, most - count, &mut taken);
            }
        }
        self.wake_sleepers_if_active();
        Ok(count)
    }

    /// As [`Interface::rcv`]; nothing else can go wrong.
    #[inline(always)]
    pub(crate) fn next_notification(
        &mut self,
        queue: &mut Queue,
    ) -> Result<Option<Notification>, Overrun> {
        match self.take_at_hand(queue) {
            Some(notification) => Ok(Some(notification)),
            None => self.next_slowly(queue),
        }
    }

    /// The next message of all, if it is a short one in fast mode for that queue. The queue is
    /// known to be empty, which only a packet can change, so what is announced there need not go
    /// through it.
    #[inline(always)]
    pub(crate) fn take_at_hand(&mut self, queue: &Queue) -> Option<Notification> {
        Self::taken(at_hand(&mut self.inbound, queue))
    }

    /// As [`Interface::next_notification`], for the answers to one-sided operations: it says which
    /// of them was answered, and the program has no message to take.
    #[inline(always)]
    pub(super) fn next_answer(
        &mut self,
        queue: &mut Queue,
    ) -> Result<Option<Notification>, Overrun> {
        match at_hand(&mut self.inbound, queue) {
            Some(notification) => Ok(Some(notification)),
            None => self.rcv_slowly(queue),
        }
    }

    /// As [`Interface::next_notification`], after a message that was not at hand.
    #[inline(always)]
    pub(crate) fn next_slowly(
        &mut self,
        queue: &mut Queue,
    ) -> Result<Option<Notification>, Overrun> {
        self.rcv_slowly(queue).map(Self::taken)
    }

    /// What was found, if anything was: the application has it.
    #[inline(always)]
    fn taken<T>(found: Option<T>) -> Option<T> {
        if found.is_some() {
            H::passes(Point::Taken);
        }
        found
    }

    /// As [`Interface::next_notification`], the fast path for messages to one-shot entries. Written
    /// out beside its twin: with the way as an argument, a message took 39 instructions more.
    #[inline(always)]
    pub(crate) fn next_one_shot(
        &mut self,
        queue: &mut Queue,
    ) -> Result<Option<Notification>, Overrun> {
        if let Half::Own(inbound) = &mut self.inbound
            && queue.empty_at == inbound.receiver.announced()
            && inbound.may_look()
            && let Some(notification) = inbound.take_one_shot(queue.id)
        {
            return Ok(Self::taken(Some(notification)));
        }
        self.next_slowly(queue)
    }

    /// The message that is awaited, if it is the next thing to be received at all and can take the
    /// fast path, in one cell or in several. It is not announced in the queue, which its slot names.
    #[inline(always)]
    pub(crate) fn next_awaited<const IN_CELLS: bool>(
        &mut self,
        queue: &Queue,
        awaited: &Awaited,
        entry: &MetadataEntry,
    ) -> Option<ShortArrival> {
        if let Half::Own(inbound) = &mut self.inbound
            && queue.empty_at == inbound.receiver.announced()
        {
            return Self::taken(inbound.take_awaited::<IN_CELLS>(&queue.id, awaited, entry));
        }
        None
    }

    /// Whether what is awaited may be at hand after all: it was not while credit was due.
    #[inline]
    pub(crate) fn look_again(&mut self) -> bool {
        match &mut self.inbound {
            Half::Own(inbound) => inbound.continues_turn(),
            Half::Shared(_) | Half::Lent(_) => false,
        }
    }

    /// As [`Interface::rcv`], after a message that was not at hand. The caller passes
    /// [`Point::Taken`].
    #[inline(never)]
    fn rcv_slowly(&mut self, queue: &mut Queue) -> Result<Option<Notification>, Overrun> {
        self.host.looks();
        // Still empty, so what is next may be handed over. First, as it need not be asked then
        // whether there is nothing.
        if let Half::Own(inbound) = &mut self.inbound
            && queue.empty_at == inbound.receiver.announced()
            && let Some(notification) = inbound
                .take_in_cells(queue.id)
                .or_else(|| inbound.take_next_handed(queue.id))
        {
            return Ok(Some(notification));
        }
        if self.is_silent(queue) {
            return Ok(None);
        }
        if let Some(notification) = self.pop(queue)? {
            return Ok(Some(notification));
        }
        let is_own = match &self.inbound {
            Half::Own(inbound) => {
                queue.empty_at = inbound.receiver.announced();
                true
            }
            Half::Shared(_) | Half::Lent(_) => false,
        };
        match self.poll_for(Some(queue.id)) {
            Polled {
                handed: Some(notification),
                ..
            } => Ok(Some(notification)),
            // Only a packet brings a notification, and nobody else takes any.
            Polled { packets: 0, .. } if is_own => Ok(None),
            _ => self.pop(queue),
        }
    }

    /// The next notification that waits in a queue. A network processor told of its link before it
    /// took the message: whoever learns of the message knows of the link.
    pub(crate) fn pop(&mut self, queue: &mut Queue) -> Result<Option<Notification>, Overrun> {
        let next = queue.reader.pop()?;
        if next.is_some() {
            self.drain_events_if_asked();
        }
        Ok(next)
    }

    /// Whether a poll would do nothing, told in a few instructions where there is but one link: a
    /// caller that waits for that link looks all the more often.
    fn is_silent(&mut self, queue: &Queue) -> bool {
        self.is_silent_while(|receiver| queue.empty_at == receiver.announced())
    }

    /// The same, for a caller that knows as long as `is_empty` that nothing waits for it.
    #[inline(always)]
    pub(super) fn is_silent_while(
        &mut self,
        is_empty: impl FnOnce(&Receiver<Area, H::ReceiveObserver>) -> bool,
    ) -> bool {
        if self.is_asked() {
            return false;
        }
        let Half::Own(inbound) = &mut self.inbound else {
            return false;
        };
        is_empty(&inbound.receiver)
            && !inbound.receiver.owes_answers()
            && inbound.is_silent()
            && !self.outbound.is_pending()
    }

    /// Moves packets: takes what has come, sends what is queued, learns of connections and losses.
    /// Returns the number of packets taken here. Does not block, but for a poll of the network
    /// processor, if there is one.
    pub fn poll(&mut self) -> usize {
        if self.is_forked() {
            return 0;
        }
        let packets = self.poll_for(None).packets as usize;
        if self.announced_credit_waits.is_some() {
            self.note_credit_waits();
        }
        packets
    }

    /// What ran out of room after a sleep was announced is told to nobody: the sleep ends, and is
    /// announced anew.
    #[cold]
    fn note_credit_waits(&mut self) {
        let credit_waits = Some(self.credit_waits());
        if self.announced_credit_waits != credit_waits {
            self.announced_credit_waits = credit_waits;
            self.other_activity += 1;
        }
    }

    /// As [`Interface::poll`], but stops at the first packet that announces itself in `waiting`,
    /// which must be empty, and returns that notification.
    pub(super) fn poll_for(&mut self, waiting: Option<QueueId>) -> Polled {
        self.poll_with(waiting, waiting.is_none())
    }

    /// As [`Interface::poll`], but leaves to the network processor what it has in hand: for those
    /// who look again and again.
    pub(crate) fn poll_beside_processor(&mut self) {
        self.poll_with(None, false);
    }

    fn poll_with(&mut self, waiting: Option<QueueId>, insists: bool) -> Polled {
        self.host.looks();
        self.drain_events_if_asked();
        let polled = match (&mut self.inbound, &self.processor) {
            (Half::Own(inbound), _) => {
                let served = at_once!(self.outbound, Self::AMONG_THREADS, |outbound| {
                    answers::serve_at_once(inbound, outbound)
                });
                served.unwrap_or_else(|| inbound.poll(waiting))
            }
            (Half::Shared(handoff_lock) | Half::Lent(handoff_lock), Some(processor)) => {
                let inbound = if insists {
                    // When this returns, either thread has taken what had come.
                    Some(handoff_lock.enter())
                } else if self.strategy == Strategy::Receive {
                    // The thread that is free: perhaps the network processor is at it already.
                    processor.exchange.note_poll();
                    let inbound = handoff_lock.try_enter();
                    if inbound.is_some() {
                        H::passes(Point::HalfTaken);
                    }
                    inbound
                } else {
                    None
                };
                let is_ours = !self.outbound.is_shared();
                let polled = inbound.map_or(Polled::NOTHING, |mut inbound| {
                    let polled = inbound.poll(None);
                    if is_ours && inbound.receiver.owes_answers() {
                        processor.exchange.owe();
                    }
                    polled
                });
                if polled.packets > 0 {
                    self.other_activity += polled.packets;
                    // If it sleeps, these packets may have been what it was to be woken for, and
                    // the next ones are sent by peers that have rung already.
                    processor.exchange.wake();
                }
                polled
            }
            (Half::Shared(_) | Half::Lent(_), None) => Polled::NOTHING,
        };
        if polled.has_ended {
            self.end_ended();
        }
        self.answer();
        self.close_left_initiators();
        if self.outbound.is_pending() {
            self.pump();
        }
        if self.tracking.is_pending() {
            self.advance_tracked();
        }
        if self.sleepers.is_any() {
            self.wake_sleepers_if_active();
            if !self.outbound.is_shared() {
                self.wake_sleepers_for_credit();
            }
        }
        polled
    }

    /// Sends what is queued, if the application does that, and ends links that were found broken.
    #[inline(never)]
    fn pump(&mut self) {
        if self.outbound.is_shared() {
            return;
        }
        let pump =
            |outbound: &mut Outbound<_, _>| (outbound.pump(), outbound.tx_links.has_broken());
        let (sent, has_broken) = self.outbound.lock(pump);
        self.other_activity += sent as u64;
        if has_broken {
            self.end_broken();
        }
    }

    /// Whether there is a packet for the fast path.
    #[inline]
    pub(crate) fn is_at_hand(&mut self) -> bool {
        match &mut self.inbound {
            Half::Own(inbound) => inbound.is_at_hand(),
            Half::Shared(_) | Half::Lent(_) => false,
        }
    }

    /// Counts what happens here: packets taken and sent from queues, connections, losses. An event
    /// loop compares it to know that nothing came since it last looked at its queues.
    pub fn activity(&self) -> u64 {
        let packets = match (&self.inbound, &self.processor) {
            (Half::Own(inbound), _) => inbound.activity(),
            (_, Some(processor)) => processor.exchange.activity(),
            _ => 0,
        };
        self.other_activity + packets
    }
}

/// The next message of all, if it is a short one in fast mode for that queue, which must be empty.
#[inline(always)]
pub(super) fn at_hand<R: ReceiveEnd, O: ReceiveObserver<Area>>(
    inbound: &mut Half<Inbound<R, O>>,
    queue: &Queue,
) -> Option<Notification> {
    if let Half::Own(inbound) = inbound
        && queue.empty_at == inbound.receiver.announced()
        && inbound.may_look()
    {
        return inbound.take_handed(queue.id);
    }
    None
}
