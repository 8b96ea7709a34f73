//! The transmitting end of a pair link.

use std::sync::Arc;

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::{Header, PortAddress, Short};
use hamlyn_engine::transport::Return;
use hamlyn_ring::area::Area;
use hamlyn_ring::doorbell::Waker;
use hamlyn_ring::overflow::LogUse;

use super::doorbell::Doorbell;
use crate::carrier::Outgoing;
use crate::{LinkFault, Refused, TransmitEnd};

/// The transmitting end of a pair link.
pub struct PairTransmit {
    pub(super) outgoing: Outgoing,
    pub(super) waker: Waker,
    pub(super) doorbell: Arc<Doorbell>,
}

impl PairTransmit {
    #[inline(always)]
    fn wake(&mut self) {
        if self.waker.must_ring() && !self.doorbell.ring() {
            self.waker.not_rung();
        }
    }
}

impl TransmitEnd for PairTransmit {
    #[inline]
    fn payload_max_bytes(&self) -> usize {
        self.outgoing.payload_max()
    }

    fn cells_bytes_max(&self) -> u64 {
        self.outgoing.cells_bytes_max()
    }

    #[inline(always)]
    fn try_send(
        &mut self,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, Area>],
    ) -> Result<(), Unsent> {
        self.outgoing.try_send(header, metadata, parts)?;
        self.wake();
        Ok(())
    }

    #[inline(always)]
    fn try_send_short<M>(&mut self, short: M) -> bool
    where
        Short: From<M>,
    {
        let is_sent = self.outgoing.try_send_short(short).is_ok();
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_in_cells(&mut self, short: &Short, data: &[u8]) -> bool {
        let is_sent = self.outgoing.try_send_in_cells(short, data);
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_message(&mut self, to: &PortAddress, handler: u16, data: &[u8]) -> bool {
        let is_sent = self.outgoing.try_send_message(to, handler, data);
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_request(&mut self, request: &ShortRequest) -> bool {
        let is_sent = self.outgoing.try_send_request(request);
        if is_sent {
            self.wake();
        }
        is_sent
    }

    #[inline(always)]
    fn try_send_shorts(&mut self, next: impl FnMut() -> Option<Short>) -> usize {
        let count = self.outgoing.try_send_shorts(next);
        if count > 0 {
            self.wake();
        }
        count
    }

    fn fault(&self) -> Option<LinkFault> {
        self.outgoing.fault()
    }

    #[cold]
    fn await_credit(&mut self, is_needed: bool, fence: Option<u64>) {
        self.outgoing.await_credit(is_needed, fence);
    }

    #[cold]
    fn fence(&mut self) -> Result<u64, Unsent> {
        let (fence, is_sent) = self.outgoing.fence()?;
        if is_sent {
            self.wake();
        }
        Ok(fence)
    }

    fn is_answered(&mut self, fence: u64) -> Result<bool, Unsent> {
        self.outgoing.is_answered(fence)
    }

    fn may_be_answered(&self, fence: u64) -> bool {
        self.outgoing.may_be_answered(fence)
    }

    fn is_all_taken(&mut self) -> bool {
        self.outgoing.is_all_taken() == Ok(true)
    }

    fn refused(&mut self) -> Refused {
        self.outgoing.refused()
    }

    fn next_returned(&mut self) -> Option<(Header, Return)> {
        self.outgoing.next_returned()
    }

    fn forgotten(&self) -> u64 {
        self.outgoing.missed()
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn credit_came(&self) -> bool {
        self.outgoing.credit_came()
    }

    #[cold]
    fn give_back(&mut self) -> usize {
        if self.outgoing.is_in_log() {
            self.outgoing.end_idle_episode();
            self.wake();
        }
        0
    }

    fn has_spare(&self) -> bool {
        self.outgoing.is_in_log()
    }

    fn log_use(&mut self) -> Option<LogUse> {
        self.outgoing.log_use()
    }

    fn overflow_due_ns(&self) -> Option<u64> {
        self.outgoing.overflow_due_ns()
    }

    fn press(&mut self) -> bool {
        self.outgoing.press()
    }

    fn reserve(&mut self) {
        self.outgoing.reserve();
    }

    fn sent(&self) -> u64 {
        self.outgoing.sent()
    }
}
