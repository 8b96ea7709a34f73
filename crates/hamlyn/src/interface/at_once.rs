//! The fast paths of one-sided operations: a request that fits the duplex line, and an answer that
//! is the next message of all. What neither is takes the general way of
//! [`operating`](super::operating), which refuses what is to be refused.

use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::operation::{RESPONSES_PER_LINK, ShortRequest};
use hamlyn_engine::packet::{Address, Kind};
use hamlyn_host::Host;

use super::Interface;
use super::initiators::Asking;
use super::operating::{ONE_REQUEST_BYTES, clear_value};
use super::pieces::Pieces;
use super::receiving::at_hand;
use crate::half::at_once;
use crate::message::Target;
use crate::one_sided::{Initiator, Operation};

impl<H: Host> Interface<H> {
    /// The fast path for an operation of one request that fits the duplex line, if that is due;
    /// whether it was sent.
    #[inline(always)]
    pub(super) fn ask_at_once(
        &mut self,
        initiator: &Initiator,
        operation: Operation,
        pieces: &Pieces<'_>,
        asking: &Asking<'_>,
    ) -> bool {
        let Target { link, ticket, .. } = &initiator.target;
        if pieces.length_bytes == 0 {
            return false;
        }
        let (place, bytes) = pieces.at(0);
        let (kind, argument) = match asking {
            Asking::Read(to) => (Kind::READ, to | bytes << 32),
            Asking::Atomic(atomic) if atomic.request_bytes() == ShortRequest::BYTES => {
                (atomic.kind(), atomic.operand)
            }
            _ => return false,
        };
        let window = *self.operating.window(*link);
        let Ok(operations) = self.operating.of(initiator) else {
            return false;
        };
        if bytes != pieces.length_bytes
            || bytes > ONE_REQUEST_BYTES
            || window >= RESPONSES_PER_LINK as u32
        {
            return false;
        }
        if let Asking::Atomic(_) = asking {
            clear_value(initiator, operation);
        }
        let request = ShortRequest {
            kind,
            to: Address::new(ticket.slot, FAST_INDEX),
            key: ticket.key,
            // It wraps only if the ticket was made up here; then the place is wrong, no more.
            offset: ticket.base.wrapping_add(place),
            word: u64::from(operations.slot.name.to_bits()) << 32 | u64::from(operation.token),
            data: [operations.slot.key.to_bits(), argument],
        };
        let sent = at_once!(self.outbound, Self::AMONG_THREADS, |outbound| {
            let is_sent = outbound.tx_links.offer_request(*link, &request);
            is_sent.then_some(())
        });
        if sent.is_some() {
            operations.asked_at_once(operation);
            *self.operating.window(*link) += 1;
        }
        sent.is_some()
    }

    /// The fast path for an operation that was asked for in one request: whether the next message
    /// of all answers it as a whole, and no end of an operation is to be told of.
    #[inline(always)]
    pub(super) fn finish_at_hand(&mut self, initiator: &Initiator, operation: Operation) -> bool {
        let place = usize::from(initiator.slot.index());
        let Some(Some(operations)) = self.operating.initiators.get_mut(place) else {
            return false;
        };
        let is_alone = operations.slot.name == initiator.slot && !operations.is_completing();
        if !is_alone || !operations.is_asked_at_once(operation) {
            return false;
        }
        let Some(notification) = at_hand(&mut self.inbound, &operations.queue) else {
            return false;
        };
        let link = operations.link;
        let is_finished = operations.finish_at_once(operation, notification.word);
        if is_finished {
            let window = self.operating.window(link);
            *window = window.saturating_sub(1);
        } else if let Some(mut operations) = self.operating.initiators[place].take() {
            self.operating.answered(&mut operations, notification.word);
            self.operating.initiators[place] = Some(operations);
        }
        is_finished
    }
}
