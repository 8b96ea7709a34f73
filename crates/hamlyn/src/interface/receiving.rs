//! An interface receives (`Hamlyn 3.2`, `h_rcv` and `h_rcv_block`) and waits.

use hamlyn_engine::grant::Holder;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::refusal::Refusal;
use hamlyn_host::{Host, HostError};
use hamlyn_link::Link;

use super::{Interface, Queue};
use crate::error::ReceiveError;
use crate::links::LinkEnd;
use crate::wait::{Next, Patience, Wait};

/// Packets taken from one link before the next link has its turn, while packets keep coming.
const RECEIVE_BURST: usize = 32;
/// Polls in a row that must have found something before more than one packet is taken at a
/// time: a lone message is handed on at once, without a look for a second.
const BURST_AFTER: u32 = 2;
/// Packets of queued messages sent per poll.
const PUMP_BURST: usize = 64;

impl<H: Host> Interface<H> {
    /// Looks for a message (`h_rcv`, `Hamlyn 3.2`). Does not block.
    #[inline]
    pub fn rcv(&mut self, queue: &mut Queue) -> Result<Option<Notification>, ReceiveError> {
        if let Some(notification) = queue.reader.pop()? {
            return Ok(Some(notification));
        }
        // Only a packet brings a notification.
        if self.poll() == 0 {
            return Ok(None);
        }
        Ok(queue.reader.pop()?)
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
    #[inline]
    pub fn poll(&mut self) -> usize {
        self.attend_if_asked();
        let burst = if self.streak >= BURST_AFTER {
            RECEIVE_BURST
        } else {
            1
        };
        let mut packets = 0;
        for index in 0..self.links.places() {
            packets += self.poll_link(index, burst);
        }
        self.streak = if packets == 0 {
            0
        } else {
            self.streak.saturating_add(1)
        };
        self.activity += packets as u64;
        if self.transmitter.is_waiting() {
            self.activity += self.transmitter.pump(&mut self.links, PUMP_BURST).packets as u64;
        }
        packets
    }

    #[inline(always)]
    fn poll_link(&mut self, index: usize, burst: usize) -> usize {
        let Some(live) = self.links.at(index) else {
            return 0;
        };
        let receiver = &mut self.receiver;
        let mut packets = 0;
        let end = loop {
            match live.link.receive(|header, payload| {
                let holder = || Some(Holder(live.peer.token));
                receiver.receive_from(holder, header, payload)
            }) {
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(refusal))) => {
                    if matches!(refusal, Refusal::BadKey | Refusal::BadEntryKey) {
                        live.bad_keys += 1;
                        if live.bad_keys > self.bad_keys_max {
                            break LinkEnd::BadKeys;
                        }
                    }
                }
                Ok(None) => {
                    // Not while there is something to do for the application.
                    if packets == 0 {
                        live.link.settle();
                    }
                    match live.lost {
                        None => return packets,
                        Some(cause) => break LinkEnd::Lost(cause),
                    }
                }
                Err(fault) => break LinkEnd::Fault(fault),
            }
            packets += 1;
            if packets == burst {
                return packets;
            }
        };
        self.remove_link(index, end);
        packets
    }

    /// One step of a wait: false when its time is over.
    #[inline]
    pub(crate) fn pause(&mut self, patience: &mut Patience) -> Result<bool, HostError> {
        match patience.next(self.host.spin_ns(), || self.host.now_ns()) {
            Next::Stop => Ok(false),
            Next::Spin => {
                if !patience.is_eager() {
                    self.host.relax();
                }
                Ok(true)
            }
            Next::Sleep(deadline_ns) => {
                // Only if nothing at all changed while the caller looked: what it looked at
                // first may have changed by what it did last.
                if patience.is_news(self.activity) {
                    return Ok(true);
                }
                self.sleep(deadline_ns).map(|()| true)
            }
        }
    }

    #[cold]
    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        let before = self.activity;
        self.prepare_wait();
        // Whoever saw us awake has sent by now: look once more. Whatever that look changes,
        // the caller has not seen yet.
        self.poll();
        let result = if self.activity == before
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
        self.activity
    }

    /// For event loops of others: announces that this program is about to wait on
    /// [`Interface::descriptor`]. In order: note [`Interface::activity`]; look at your queues and
    /// end points; call this; [`Interface::poll`]; wait only if the activity is still the same; and
    /// call [`Interface::end_wait`] in any case.
    pub fn prepare_wait(&mut self) {
        for live in self.links.starving() {
            live.link.await_credit();
        }
        self.host.prepare_sleep();
    }

    /// Ends what [`Interface::prepare_wait`] began.
    pub fn end_wait(&mut self) {
        self.host.end_sleep();
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
