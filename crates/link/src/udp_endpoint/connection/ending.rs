//! How a connection ends.

use std::sync::atomic::Ordering;

use hamlyn_engine::transport::{CloseReason, Return};

use super::{Connection, RETURNED_MAX, State};
use crate::udp::datagram_socket::{ConnectionStep, DatagramSocket};
use crate::udp_endpoint::{UdpEndpoint, lock};

/// Reports in a row that nobody listens at the peer's port, after which it is believed if the peer
/// says nothing. Linux sends six of them to a host at once, and then one in a second.
const UNREACHABLE_REPORTS_MAX: u32 = 8;
/// How long the peer must have said nothing for that.
const UNREACHABLE_NS: u64 = 300_000_000;
/// For how long one that ended here says so: its peer asks, if it is silent, each two seconds.
const LINGER_NS: u64 = 5_000_000_000;

impl<S: DatagramSocket> Connection<S> {
    /// How the link ended, if it has.
    pub fn end(&self) -> Option<CloseReason> {
        self.end.get().copied()
    }

    /// Delivers the frames in flight if the peer answers; then tells the peer that the link is
    /// closed.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closing = true;
        self.held.store(false, Ordering::Release);
        let received_ns = state.received_ns;
        while let Some(batch) = state.receive_queue.pop_front() {
            self.queued_bytes
                .fetch_sub(batch.packet_bytes(), Ordering::Relaxed);
            state.nack(received_ns, batch);
        }
        self.waiting.store(0, Ordering::Release);
        // The next poll does the rest.
        self.set_deadline(0);
        self.timers.note_change();
    }

    /// The peer has given the link up without a word that came: it asks for another.
    pub fn abort(&self, endpoint: &UdpEndpoint<S>) {
        let mut state = lock(&self.state);
        state.association.fail(CloseReason::ClosedByPeer);
        self.leave(&mut state, endpoint, endpoint.now_ns());
    }

    /// True if it has ended, and nobody has it.
    pub(in crate::udp_endpoint) fn is_over(&self) -> bool {
        self.end().is_some() && !self.is_held()
    }

    /// True if it is over, and still says so to a peer that has not heard it.
    pub(in crate::udp_endpoint) fn lingers(&self, now_ns: u64) -> bool {
        now_ns < self.forget_ns.load(Ordering::Relaxed)
    }

    /// True if it was one of those that linger.
    pub(in crate::udp_endpoint) fn has_lingered(&self) -> bool {
        self.forget_ns.load(Ordering::Relaxed) != 0
    }

    /// Whether somebody has the link.
    pub(in crate::udp_endpoint) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// To be called before the lock is given back.
    pub(super) fn leave(&self, state: &mut State<S>, endpoint: &UdpEndpoint<S>, now_ns: u64) {
        state.follow(now_ns);
        let due_ns = state.due_ns();
        self.leave_until(state, endpoint, now_ns, due_ns);
    }

    /// As [`Connection::leave`], if frames are as long as the paths carry, and it is known when it
    /// wants to be looked after.
    pub(super) fn leave_until(
        &self,
        state: &mut State<S>,
        endpoint: &UdpEndpoint<S>,
        now_ns: u64,
        due_ns: u64,
    ) {
        if let Some(close_reason) = state.association.close_reason() {
            S::observe(self.number, || ConnectionStep::Ended(close_reason));
        }
        while let Some(returned) = state.association.next_return() {
            S::observe(self.number, || ConnectionStep::Returned(returned));
            if state.returned.len() == RETURNED_MAX {
                state.returned.pop_front();
                state.forgotten += 1;
            }
            let back = (returned.header, returned.reason);
            if let Return::Ended(_) = back.1 {
                state.has_lost = true;
            } else {
                state.refused.packets += 1;
                state.refused.last = Some(back);
            }
            state.returned.push_back(back);
            endpoint.signal();
        }
        // After what came back, which an answered fence must know of.
        if state.answer_fence() {
            endpoint.signal();
        }
        let payload_max_bytes = state.association.payload_max_bytes();
        self.payload_max_bytes
            .store(payload_max_bytes, Ordering::Relaxed);
        if !self.has_room.load(Ordering::Relaxed) && state.association.has_room() {
            self.has_room.store(true, Ordering::Relaxed);
            endpoint.signal();
        }
        if state.unreachable_reports >= UNREACHABLE_REPORTS_MAX
            && now_ns.saturating_sub(state.received_ns) > UNREACHABLE_NS
        {
            state.association.fail(CloseReason::PeerDead);
        }
        if let Some(close_reason) = state.association.close_reason()
            && self.end().is_none()
        {
            if close_reason == CloseReason::Closed && endpoint.admits_lingering() {
                let forget_ns = now_ns.saturating_add(LINGER_NS);
                self.forget_ns.store(forget_ns, Ordering::Relaxed);
                state.spare.give_back();
                state.association.give_back();
            }
            // Last, as it may be forgotten then.
            let _ = self.end.set(close_reason);
            self.timers.note_change();
            endpoint.report_end();
        }
        let mut due_ns = due_ns;
        if state.is_closing && self.end().is_some() {
            let forget_ns = self.forget_ns.load(Ordering::Relaxed);
            if forget_ns <= now_ns {
                self.timers.note_change();
            }
            due_ns = due_ns.min(forget_ns.max(now_ns));
        }
        self.request_wakeup(endpoint, due_ns);
    }
}
