//! A program that computes is rung for: peers ring at its doorbells, and a signal interrupts it.
//!
//! The announcement is that of a sleep (decision 5), so senders need to know nothing of this. It
//! stands until the program sleeps in a call, or takes packets: each peer rings once for it.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use hamlyn_engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn_host::{Driver, Host};

use super::Interface;
use crate::half::Half;
use crate::port::Port;

/// The outcome of [`Interface::listen`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Listening {
    /// Nothing had come when the announcement was seen by all peers: what comes now is rung for.
    /// Otherwise look at what has come, and listen again.
    pub is_quiet: bool,
    /// Listen again after so long at the latest: a peer may not be rung for, or not have seen it.
    pub again: Option<Duration>,
}

impl<H: Host> Interface<H> {
    /// Announces to all peers that this program is to be rung for at its doorbells
    /// ([`Interface::each_doorbell`]), and moves packets once. Each peer rings once for each
    /// announcement, as for a sleep: with one byte in the socket of its link. With an interface
    /// that a network processor drives, this does nothing, and all is quiet.
    ///
    /// Does not block. Allocates and frees nothing in an [`Interruption`](crate::Interruption).
    /// [`Interface::end_wait`] takes it back.
    pub fn listen(&mut self) -> Listening {
        let mut listening = Listening {
            is_quiet: true,
            again: None,
        };
        if self.is_forked() || self.outbound.is_shared() {
            return listening;
        }
        let (Half::Own(inbound), Some(driver)) = (&mut self.inbound, &mut self.driver) else {
            return listening;
        };
        // Peers ring from the announcement on, and once: rings of before are taken first.
        driver.take_rings();
        let now_ns = self.host.now_ns();
        let (has_room, overflow_due_ns) = self.outbound.lock(|outbound| {
            let has_room = outbound.tx_links.await_credit();
            self.announced_credit_waits = Some(outbound.tx_links.credit_waits);
            (has_room, outbound.tx_links.overflow_due_ns())
        });
        let again_ns = inbound.announce_sleep(|| now_ns);
        let due_ns = [again_ns, driver.pass_barrier(), overflow_due_ns];
        inbound.listen();
        inbound.poll_all_next();
        let before = self.activity();
        self.poll();
        self.listens_since = self.activity();
        listening.is_quiet = !has_room && self.listens_since == before;
        let due_ns = due_ns.into_iter().flatten().min();
        listening.again = due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns)));
        listening
    }

    /// True if the announcement of [`Interface::listen`] stands for all peers, but for those that
    /// have rung for it: no call has slept, taken packets or heard of events since.
    pub fn is_listening(&self) -> bool {
        self.announced_credit_waits.is_some() && self.activity() == self.listens_since
    }

    /// Has `listener` called when a call that slept, or [`Interface::end_wait`], has ended what
    /// [`Interface::listen`] announced: in the middle of that call, so it must not call this
    /// interface. Nothing takes back an earlier one.
    pub fn set_listener(&mut self, listener: Option<Box<dyn Fn() + Send + Sync>>) {
        self.listener = listener;
    }

    /// Shows each descriptor at which a peer of this host rings for this program while it computes
    /// and has announced that it listens. They are sockets of the interface: they may be made to
    /// raise a signal, and nothing is to be read from them or changed otherwise. Links that are
    /// made later have others.
    pub fn each_doorbell(&self, mut act: impl FnMut(BorrowedFd<'_>)) {
        if let Some(driver) = self.driver.as_ref().filter(|_| !self.is_forked()) {
            driver.each_doorbell(&mut act);
        }
    }

    /// Reserves memory so that messages of that port are received without allocation, and messages
    /// to ports sent, over links that are there and links to come, while an
    /// [`Interruption`](crate::Interruption) lasts. Allocates about 128 KiB, and 20 KiB for each
    /// link.
    pub fn reserve_for_interrupts(&mut self, port: &mut Port) {
        if self.is_forked() {
            return;
        }
        self.inbound.lock(|inbound| inbound.reserve());
        self.outbound.lock(|outbound| outbound.tx_links.reserve());
        let buffer = &mut port.held.buffer;
        buffer.reserve(PACKET_PAYLOAD_MAX.saturating_sub(buffer.len()));
    }

    /// From now on, or no longer, a signal handler has the interface.
    pub(crate) fn set_interrupt(&mut self, is_interrupt: bool) {
        self.is_interrupt = is_interrupt;
        self.inbound
            .lock(|inbound| inbound.is_interrupt = is_interrupt);
        self.outbound
            .lock(|outbound| outbound.tx_links.is_interrupt = is_interrupt);
    }

    /// True if a signal handler has it.
    pub(crate) fn is_interrupt(&self) -> bool {
        self.is_interrupt
    }
}
