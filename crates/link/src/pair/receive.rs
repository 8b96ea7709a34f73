//! The receiving end of a pair link.

use std::sync::Arc;

use hamlyn_engine::operation::ShortRequest;
use hamlyn_engine::packet::Header;
use hamlyn_engine::refusal::Refusal;
use hamlyn_ring::doorbell::Attention;
use hamlyn_ring::overflow::LogNews;
use hamlyn_ring::wake::WakeWord;

use super::doorbell::{Doorbell, Notifier};
use crate::carrier::{Carried, InCell, InCells, Incoming, Stopped};
use crate::message_cell::MessageHead;
use crate::{LinkFault, MessageInPlace, ReceiveEnd, Shortcut};

/// The receiving end of a pair link.
pub struct PairReceive {
    pub(super) incoming: Incoming,
    pub(super) attention: Attention,
    pub(super) wake_word: WakeWord,
    pub(super) doorbell: Arc<Doorbell>,
    pub(super) ready_bit: u32,
    pub(super) _lease: Option<Box<dyn Send>>,
    /// The first fault; nothing comes out of this end from then on.
    pub(super) fault: Option<LinkFault>,
}

impl PairReceive {
    /// The word at which the receiver of this link may sleep.
    pub fn wake_word(&self) -> &WakeWord {
        &self.wake_word
    }

    #[inline(always)]
    fn ring_if(&mut self, rings: bool) {
        if rings {
            self.doorbell.ring();
        }
    }

    #[inline(always)]
    fn receive_by<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Result<Option<R>, LinkFault> {
        if self.incoming.is_credit_due() {
            self.return_due_credit();
        }
        let found = loop {
            match self.incoming.next() {
                Ok(found) => break found,
                Err(Stopped::Message(head)) => {
                    return self.receive_message(head, take, refusal_of).map(Some);
                }
                Err(Stopped::Passed { rings }) => self.pass(rings),
                Err(Stopped::Fault(fault)) => return Err(self.condemn(fault)),
            }
        };
        let Some(found) = found else {
            return Ok(None);
        };
        let (result, rings) = self.incoming.take(found, take, refusal_of);
        self.ring_if(rings);
        Ok(Some(result))
    }

    /// Apart, so that the way of other packets stays short.
    #[inline(never)]
    fn receive_message<R>(
        &mut self,
        head: MessageHead,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
        refusal_of: impl FnOnce(&R) -> Option<Refusal>,
    ) -> Result<R, LinkFault> {
        let found = self.incoming.message(head);
        let found = found.map_err(|fault| self.condemn(fault))?;
        let (result, rings) = self.incoming.take(found, take, refusal_of);
        self.ring_if(rings);
        Ok(result)
    }

    /// What came was no packet. Several in a row break the rules, so this ends.
    #[cold]
    #[inline(never)]
    fn pass(&mut self, rings: bool) {
        self.ring_if(rings);
        self.return_due_credit();
    }

    #[cold]
    #[inline(never)]
    fn condemn(&mut self, fault: LinkFault) -> LinkFault {
        self.incoming.close();
        *self.fault.get_or_insert(fault)
    }
}

impl Shortcut for PairReceive {
    type InCell<'a, const HAS_METADATA: bool> = InCell<'a, HAS_METADATA>;
    type InCells<'a, const HAS_METADATA: bool> = InCells<'a, HAS_METADATA>;

    #[inline(always)]
    fn peek_short<const HAS_METADATA: bool>(&self) -> Option<InCell<'_, HAS_METADATA>> {
        self.incoming.peek_short()
    }

    #[inline(always)]
    fn next_in_cells(&self) -> Option<bool> {
        self.incoming.next_in_cells()
    }

    #[inline(always)]
    fn peek_in_cells<const HAS_METADATA: bool>(&self) -> Option<(u64, InCells<'_, HAS_METADATA>)> {
        self.incoming.peek_in_cells()
    }

    #[inline(always)]
    fn peek_message(&self) -> Option<MessageInPlace<'_>> {
        self.incoming.peek_message()
    }

    #[inline(always)]
    fn message_word(&self, number: usize) -> u64 {
        self.incoming.message_word(number)
    }

    #[inline(always)]
    fn copy_message(&self, into: &mut [u8]) {
        self.incoming.copy_message(into);
    }

    #[inline(always)]
    fn message_done(&mut self, length_bytes: u16) {
        self.incoming.message_done(length_bytes);
    }

    #[inline(always)]
    fn is_blind(&self) -> bool {
        self.incoming.is_blind()
    }

    #[inline(always)]
    fn short_done(&mut self) {
        self.incoming.short_done();
    }

    #[inline(always)]
    fn cells_done(&mut self, cells: u64) {
        self.incoming.cells_done(cells);
    }

    #[inline(always)]
    fn peek_request(&self) -> Option<ShortRequest> {
        self.incoming.peek_request()
    }

    #[inline(always)]
    fn request_done(&mut self) {
        self.incoming.request_done();
    }
}

impl ReceiveEnd for PairReceive {
    type Payload<'a> = Carried<'a>;

    type Shortcut = Self;

    #[inline(always)]
    fn shortcut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    #[inline]
    fn return_due_credit(&mut self) -> bool {
        let returned = self.incoming.return_due_credit();
        self.ring_if(returned == Some(true));
        returned.is_some()
    }

    #[inline]
    fn taken(&self) -> u64 {
        self.incoming.taken()
    }

    #[inline]
    fn receive<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> R,
    ) -> Result<Option<R>, LinkFault> {
        let mut take = Some(take);
        let mut take_once = |header: &Header, payload: &Carried<'_>| {
            let take = take.take();
            take.map(|take| take(header, payload))
        };
        let taken = match self.receive_by(&mut take_once, |_| None)? {
            Some(taken) => Some(taken),
            None => {
                let from_line = self.incoming.take_from_line(take_once, |_| None);
                from_line.map_err(|fault| self.condemn(fault))?
            }
        };
        Ok(taken.flatten())
    }

    #[inline]
    fn receive_or_refuse<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        self.receive_by(take, |result| result.as_ref().err().copied())
    }

    #[inline]
    fn receive_from_line<R>(
        &mut self,
        take: impl FnOnce(&Header, &Carried<'_>) -> Result<R, Refusal>,
    ) -> Result<Option<Result<R, Refusal>>, LinkFault> {
        let refusal_of = |result: &Result<R, Refusal>| result.as_ref().err().copied();
        let taken = self.incoming.take_from_line(take, refusal_of);
        taken.map_err(|fault| self.condemn(fault))
    }

    #[inline]
    fn is_pending(&self) -> bool {
        self.incoming.is_pending()
    }

    #[inline]
    fn return_credit(&mut self) {
        let rings = self.incoming.return_credit();
        self.ring_if(rings || self.doorbell.is_owed());
    }

    #[inline]
    fn return_arena_credit(&mut self) {
        self.return_due_credit();
        let rings = self.incoming.return_arena_credit();
        self.ring_if(rings || self.doorbell.is_owed());
    }

    fn log_news(&mut self) -> Option<LogNews> {
        self.incoming.log_news()
    }

    fn reserve(&mut self) {
        self.incoming.reserve();
    }

    fn owes_ring(&self) -> bool {
        self.doorbell.is_owed()
    }

    fn ready_bit(&self) -> u32 {
        self.ready_bit
    }

    #[inline]
    fn suppress_events(&mut self) {
        self.attention.suppress_events();
    }

    #[cold]
    fn enable_events(&mut self) -> bool {
        // An interface sets no ready bits for itself.
        if let Notifier::EventFd(_) = self.doorbell.notifier {
            return false;
        }
        self.attention.enable_events();
        true
    }

    #[cold]
    fn announce_sleep(&mut self) {
        self.attention.sleep();
    }
}
