//! What a connection receives: frames that wait to be taken.

use std::sync::atomic::Ordering;

use hamlyn_engine::transport::{Incoming, NackReason};

use super::receive_queue::{ReceivedBatch, ReceivedFrame};
use super::{Connection, State, share_bytes};
use crate::udp::batch::{Datagram, Inbox};
use crate::udp::datagram_socket::{ConnectionStep, DatagramSocket};
use crate::udp::packet_header::{Kind, PACKET_HEADER_BYTES, association_of};
use crate::udp_endpoint::{UdpEndpoint, lock};

impl<S: DatagramSocket> Connection<S> {
    /// The frames that wait for longest, all that came with them.
    pub(in crate::udp_endpoint) fn next_batch(&self) -> Option<ReceivedBatch> {
        if !self.has_frames() {
            return None;
        }
        let mut state = lock(&self.state);
        let batch = state.receive_queue.pop_front();
        let bytes = batch.as_ref().map_or(0, ReceivedBatch::packet_bytes);
        state.waiting_bytes -= bytes;
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.waiting
            .store(state.receive_queue.len(), Ordering::Release);
        batch
    }

    /// All packets of these frames were received. Frames that came together are acknowledged
    /// together.
    pub(in crate::udp_endpoint) fn taken(
        &self,
        endpoint: &UdpEndpoint<S>,
        mut batch: ReceivedBatch,
    ) {
        let mut state = lock(&self.state);
        // Their acknowledgements are due no later than if the frames had been received at once.
        let received_ns = state.received_ns;
        state.take(received_ns, &mut batch);
        state.spare.put(batch);
        let due_ns = state
            .association
            .acknowledgement_due_ns()
            .unwrap_or(u64::MAX);
        if due_ns <= received_ns {
            self.run_timers_locked(&mut state, endpoint, endpoint.now_ns());
        } else if due_ns < self.deadline_ns() {
            // Nothing else has changed.
            self.request_wakeup(endpoint, due_ns);
        }
    }

    /// Acknowledges received frames as soon as possible.
    pub(in crate::udp_endpoint) fn acknowledge(&self, endpoint: &UdpEndpoint<S>) {
        self.run_timers(endpoint, endpoint.now_ns());
    }

    /// Nobody takes the rest of these frames.
    pub(in crate::udp_endpoint) fn nack(&self, mut batch: ReceivedBatch) {
        let mut state = lock(&self.state);
        let received_ns = state.received_ns;
        state.take(received_ns, &mut batch);
        state.nack(received_ns, batch);
    }

    /// Takes in the next datagram of the inbox, which is for this connection, and those after it as
    /// long as they are, too; and sends what is to be sent then. Whether there is something to be
    /// taken.
    pub(in crate::udp_endpoint) fn take_in(
        &self,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        late_ns: u64,
        inbox: &mut Inbox,
    ) -> bool {
        let mut state = lock(&self.state);
        let state = &mut *state;
        state.share_bytes =
            share_bytes(self.queued_bytes.load(Ordering::Relaxed)).min(endpoint.waiting_bytes_max);
        while let Some(datagram) = inbox.next() {
            state.take_in(endpoint, now_ns, late_ns, datagram);
            if inbox.peek().and_then(association_of) != Some(self.number) {
                break;
            }
        }
        let came = !state.fresh.is_empty();
        if came {
            let batch = state.spare.keep(&mut state.fresh, inbox);
            self.queued_bytes
                .fetch_add(batch.packet_bytes(), Ordering::Relaxed);
            state.receive_queue.push_back(batch);
            self.waiting
                .store(state.receive_queue.len(), Ordering::Release);
            self.announcer.announce();
        }
        // If full frames wait for more, nothing is due yet: the sender that fills these frames
        // sends them soon, with the acknowledgements.
        state.follow(now_ns);
        let due_ns = state.due_ns();
        if due_ns <= now_ns || state.is_closing {
            self.run_timers_locked(state, endpoint, now_ns);
        } else {
            self.leave_until(state, endpoint, now_ns, due_ns);
        }
        came
    }
}

impl<S: DatagramSocket> State<S> {
    /// A datagram has come.
    fn take_in(
        &mut self,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        late_ns: u64,
        datagram: Datagram<'_>,
    ) {
        let datagram_bytes = datagram.bytes.len();
        let Ok(opened) = self.rx_protection.unprotect(datagram.bytes) else {
            return;
        };
        self.received_ns = now_ns;
        (self.unreachable_reports, self.answered) = (0, self.tx_protection.packets());
        let (path, plain) = (opened.path, opened.frame);
        match opened.kind {
            Kind::Data => {}
            Kind::Probe => return self.probing.came(path, plain, datagram_bytes),
            Kind::ProbeAnswer => return self.probing.answered(now_ns, path, plain),
            _ => return,
        }
        if let Some(tap) = &self.tap {
            let to = self.own_address(endpoint, path);
            tap.came(path, datagram.source.unwrap_or(to), to, plain);
        }
        S::observe(self.number, || ConnectionStep::Came(plain));
        let association = &mut self.association;
        let incoming = association.take_delayed_frame(now_ns, late_ns, path, plain);
        let Incoming::Packets(token) = incoming else {
            return;
        };
        if self.is_closing || self.waiting_bytes >= self.share_bytes {
            let why = match self.is_closing {
                true => NackReason::Leaving,
                false => NackReason::NoRoom,
            };
            self.association.nack(now_ns, token, why);
            return;
        }
        S::observe(self.number, || ConnectionStep::Queued {
            channel: token.channel(),
            sequence: token.sequence(),
        });
        let received = ReceivedFrame::new(token, datagram.at + PACKET_HEADER_BYTES);
        self.waiting_bytes += received.packet_bytes();
        self.fresh.push(received);
    }

    /// The interface has seen all packets of those frames that were read to their end.
    fn take(&mut self, now_ns: u64, batch: &mut ReceivedBatch) {
        batch.take_through(|token, refusals| {
            for &(_, index, refusal) in refusals {
                self.association.refused(&token, index, refusal);
            }
            self.association.taken(now_ns, token);
        });
    }

    /// Nobody takes these frames, as far as they were not taken yet.
    pub(super) fn nack(&mut self, received_ns: u64, batch: ReceivedBatch) {
        for token in batch.into_tokens() {
            let nobody = NackReason::Leaving;
            self.association.nack(received_ns, token, nobody);
        }
    }
}
