//! An interface receives (`Hamlyn 3.2`, `h_rcv` and `h_rcv_block`) and waits.

use hamlyn_engine::notification::{Notification, Overrun};
use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::QueueId;
use hamlyn_host::{Host, HostError};
use hamlyn_link::Link;

use super::{Interface, Queue};
use crate::error::ReceiveError;
use crate::links::LinkEnd;
use crate::wait::{Next, Patience, Wait};

/// Packets taken from one link before the next link has its turn.
pub(super) const RECEIVE_BURST: u32 = 32;
/// Packets of queued messages sent per poll.
const PUMP_BURST: usize = 64;

impl<H: Host> Interface<H> {
    /// Looks for a message (`h_rcv`, `Hamlyn 3.2`). Does not block.
    #[inline(always)]
    pub fn rcv(&mut self, queue: &mut Queue) -> Result<Option<Notification>, ReceiveError> {
        Ok(self.next_notification(queue)?)
    }

    /// As [`Interface::rcv`]; nothing else can go wrong.
    #[inline(always)]
    pub(crate) fn next_notification(
        &mut self,
        queue: &mut Queue,
    ) -> Result<Option<Notification>, Overrun> {
        // Known to be empty, and only a packet can change that: what the next one announces
        // need not go through the queue.
        if queue.empty_at == self.receiver.announced()
            && let Some(notification) = self.take_handed(queue.id)
        {
            return Ok(Some(notification));
        }
        self.rcv_slowly(queue)
    }

    /// As [`Interface::next_notification`], the shortest way for messages to one-shot entries.
    #[inline(always)]
    pub(crate) fn next_guarded(
        &mut self,
        queue: &mut Queue,
    ) -> Result<Option<Notification>, Overrun> {
        if queue.empty_at == self.receiver.announced()
            && let Some(notification) = self.take_guarded(queue.id)
        {
            return Ok(Some(notification));
        }
        self.rcv_slowly(queue)
    }

    /// As [`Interface::take_handed`], for a message to a one-shot entry.
    #[inline(always)]
    fn take_guarded(&mut self, queue: QueueId) -> Option<Notification> {
        let burst_left = self.burst_left.checked_sub(1)?;
        let live = self.links.at(self.turn)?;
        let short = live.link.peek_worded()?;
        let notification = self.receiver.receive_guarded(&short, queue)?;
        live.link.short_done();
        self.burst_left = burst_left;
        Some(notification)
    }

    /// The next packet of the link whose turn it is, if it announces itself in `queue`, which is empty.
    #[inline(always)]
    fn take_handed(&mut self, queue: QueueId) -> Option<Notification> {
        // At the end of its turn the rest of the interface is looked after.
        let burst_left = self.burst_left.checked_sub(1)?;
        let live = self.links.at(self.turn)?;
        let short = live.link.peek_bare()?;
        let notification = self.receiver.receive_short(&short, queue)?;
        live.link.short_done();
        self.burst_left = burst_left;
        Some(notification)
    }

    #[inline(never)]
    fn rcv_slowly(&mut self, queue: &mut Queue) -> Result<Option<Notification>, Overrun> {
        if let Some(notification) = queue.reader.pop()? {
            return Ok(Some(notification));
        }
        queue.empty_at = self.receiver.announced();
        match self.poll_for(Some(queue.id)) {
            (_, Some(notification)) => Ok(Some(notification)),
            // Only a packet brings a notification.
            (0, None) => Ok(None),
            (_, None) => queue.reader.pop(),
        }
    }

    /// Waits for a message (`h_rcv_block`). Nothing if none came in time. The loss of a peer
    /// interrupts the wait, once per loss.
    pub fn rcv_block(
        &mut self,
        queue: &mut Queue,
        wait: Wait,
    ) -> Result<Option<Notification>, ReceiveError> {
        let mut patience = Patience::new(wait);
        loop {
            if let Some(notification) = self.rcv(queue)? {
                return Ok(Some(notification));
            }
            if let Some(lost) = self.next_loss(&mut queue.losses_seen) {
                return Err(lost.into());
            }
            if !self.pause(&mut patience)? {
                return Ok(None);
            }
        }
    }

    /// Moves packets: takes what has come, sends what is queued, learns of
    /// connections and losses. Returns the number of packets taken. Does not block.
    pub fn poll(&mut self) -> usize {
        self.poll_for(None).0
    }

    /// As [`Interface::poll`], but stops at the first packet that announces itself in `waiting`,
    /// which must be empty, and returns that notification.
    fn poll_for(&mut self, waiting: Option<QueueId>) -> (usize, Option<Notification>) {
        self.attend_if_asked();
        if self.watching.is_any_unwatched() {
            self.watching.heed(&mut self.links);
        }
        if self.burst_left == 0 {
            self.next_turn();
        }
        let before = self.activity();
        let mut handed = None;
        for _ in 0..self.watching.turns() {
            handed = self.poll_link(self.turn, waiting);
            if handed.is_some() {
                break;
            }
            self.next_turn();
        }
        let packets = (self.activity() - before) as usize;
        if self.transmitter.is_waiting() {
            self.turns_activity +=
                self.transmitter.pump(&mut self.links, PUMP_BURST).packets as u64;
        }
        (packets, handed)
    }

    /// The next link has its turn.
    fn next_turn(&mut self) {
        self.turns_activity += u64::from(RECEIVE_BURST - self.burst_left);
        let is_silent = self.burst_left == RECEIVE_BURST;
        self.burst_left = RECEIVE_BURST;
        self.turn = self.watching.next(&mut self.links, is_silent);
    }

    /// Takes packets of that link until there is none, the turn is over, or one announces itself
    /// in `waiting`.
    fn poll_link(&mut self, index: usize, waiting: Option<QueueId>) -> Option<Notification> {
        while self.burst_left > 0 {
            let live = self.links.at(index)?;
            let receiver = &mut self.receiver;
            let taken = live
                .link
                .receive(|header, payload| receiver.receive_for(header, payload, waiting));
            match taken {
                Ok(Some(received)) => {
                    self.burst_left -= 1;
                    match received {
                        Ok(Received::Handed(notification)) => return Some(notification),
                        Ok(_) => {}
                        Err(refusal) => self.refused(index, refusal),
                    }
                }
                Ok(None) => {
                    live.link.settle_bulk();
                    if let Some(cause) = live.lost {
                        self.remove_link(index, LinkEnd::Lost(cause));
                    }
                    return None;
                }
                Err(fault) => {
                    self.remove_link(index, LinkEnd::Fault(fault));
                    return None;
                }
            }
        }
        None
    }

    /// A packet of that link was refused.
    #[cold]
    fn refused(&mut self, index: usize, refusal: Refusal) {
        if matches!(refusal, Refusal::BadKey | Refusal::BadEntryKey)
            && let Some(live) = self.links.at(index)
        {
            live.bad_keys += 1;
            if live.bad_keys > self.bad_keys_max {
                self.remove_link(index, LinkEnd::BadKeys);
            }
        }
    }

    /// One step of a wait: false when its time is over.
    #[inline]
    pub(crate) fn pause(&mut self, patience: &mut Patience) -> Result<bool, HostError> {
        match patience.next(self.habit.spin_ns(), || self.host.now_ns()) {
            Next::Stop => Ok(false),
            Next::Spin => {
                if !patience.is_eager() {
                    self.host.relax();
                }
                Ok(true)
            }
            Next::Yield => {
                self.host.yield_processor();
                Ok(true)
            }
            Next::Sleep(deadline_ns) => {
                // Only if nothing at all changed while the caller looked: what it looked at
                // first may have changed by what it did last.
                if patience.is_news(self.activity()) {
                    return Ok(true);
                }
                self.sleep(deadline_ns)?;
                let waited_ns = patience.waited_ns(self.host.now_ns());
                self.habit.slept(waited_ns, self.host.spin_ns());
                Ok(true)
            }
        }
    }

    #[cold]
    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        let before = self.activity();
        self.prepare_wait();
        // Whoever saw us awake has sent by now: look once more. Whatever that look changes,
        // the caller has not seen yet.
        self.poll();
        let result = if self.activity() == before
            && !self.host.attention()
            && !self.links.starving().any(|live| live.link.credit_came())
        {
            self.host.sleep(deadline_ns)
        } else {
            Ok(())
        };
        self.end_wait();
        result
    }

    /// Counts what happens here: packets taken and sent from queues, connections, losses. An event
    /// loop compares it to know that nothing came since it last looked at its queues.
    pub fn activity(&self) -> u64 {
        self.turns_activity + u64::from(RECEIVE_BURST - self.burst_left)
    }

    /// For event loops of others: announces that this program is about to wait on
    /// [`Interface::descriptor`]. In order: note [`Interface::activity`]; look at your queues and
    /// end points; call this; [`Interface::poll`]; wait only if the activity is still the same; and
    /// call [`Interface::end_wait`] in any case.
    pub fn prepare_wait(&mut self) {
        self.links.settle();
        for live in self.links.starving() {
            live.link.await_credit();
        }
        self.watching.announce_sleep(&mut self.links);
        self.host.prepare_sleep();
        self.watching.look_everywhere(&mut self.links);
    }

    /// Ends what [`Interface::prepare_wait`] began.
    pub fn end_wait(&mut self) {
        self.host.end_sleep();
        self.watching.end_sleep(&mut self.links);
        for live in self.links.starving() {
            live.starving = false;
        }
    }

    /// A descriptor that becomes readable when there may be something to do,
    /// between [`Interface::prepare_wait`] and [`Interface::end_wait`].
    pub fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.host.descriptor()
    }
}
