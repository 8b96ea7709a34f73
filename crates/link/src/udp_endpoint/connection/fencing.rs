//! Fences of a connection, and what its peer refused (decision 0020).

use hamlyn_engine::memory::Unsent;

use super::super::{UdpEndpoint, lock};
use super::{Connection, State};
use crate::Refused;
use crate::udp::datagram_socket::DatagramSocket;

impl<S: DatagramSocket> Connection<S> {
    pub(in crate::udp_endpoint) fn refused(&self) -> Refused {
        lock(&self.state).refused
    }

    /// Sends what waits for more of its kind, and marks what was accepted so far.
    pub(in crate::udp_endpoint) fn fence(&self, endpoint: &UdpEndpoint<S>) -> Result<u64, Unsent> {
        let mut state = lock(&self.state);
        if state.association.close_reason().is_some() {
            return Err(Unsent::Gone);
        }
        let fence = state.association.mark();
        self.run_timers_locked(&mut state, endpoint, endpoint.now_ns());
        Ok(fence)
    }

    /// Whether everything before that fence was acknowledged, or came back. If not, the caller is
    /// woken when it is.
    pub(in crate::udp_endpoint) fn is_answered(&self, fence: u64) -> Result<bool, Unsent> {
        let mut state = lock(&self.state);
        if state.answered_fence == Some(fence) {
            return Ok(true);
        }
        if state.association.close_reason().is_some() {
            return Err(Unsent::Gone);
        }
        let is_answered = state.association.is_settled(fence);
        if !is_answered {
            state.fence.get_or_insert(fence);
        }
        Ok(is_answered)
    }

    /// Whether everything that was sent is known to have been taken.
    pub(in crate::udp_endpoint) fn is_all_taken(&self) -> bool {
        let mut state = lock(&self.state);
        let mark = state.association.mark();
        !state.has_lost && state.association.is_settled(mark)
    }
}

impl<S: DatagramSocket> State<S> {
    /// Whether the fence that somebody waits for is answered just now.
    pub(super) fn answer_fence(&mut self) -> bool {
        let association = &self.association;
        let is_answered = |fence: &mut u64| {
            association.close_reason().is_none() && association.is_settled(*fence)
        };
        let answered = self.fence.take_if(is_answered);
        self.answered_fence = answered.or(self.answered_fence);
        answered.is_some()
    }
}
