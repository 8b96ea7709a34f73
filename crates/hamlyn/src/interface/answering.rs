//! An interface takes the answers to the requests of its initiators, closes those that were
//! dropped, and answers the requests of others.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Host;

use super::Interface;
use crate::answers;
use crate::half::Half;
use crate::one_sided::{ANSWERS_MAX, Operation, Operations};

impl<H: Host> Interface<H> {
    /// Takes the answers that have come for an initiator, as far as that of an operation that is
    /// awaited, and moves packets.
    pub(super) fn take_answers(&mut self, slot: SlotName, awaited: Option<Operation>) {
        let place = usize::from(slot.index());
        let taken = self.operating.initiators.get_mut(place);
        let Some(mut operations) = taken.and_then(Option::take) else {
            return;
        };
        // A turn: what comes faster than it is taken keeps nobody here for ever.
        for _ in 0..ANSWERS_MAX {
            match self.next_answer(&mut operations.queue) {
                Ok(Some(notification)) => {
                    let is_whole = self.operating.answered(&mut operations, notification.word);
                    if is_whole && awaited.is_some_and(|operation| operations.is_done(operation)) {
                        break;
                    }
                }
                Ok(None) => break,
                Err(_) => operations.note_flood(),
            }
        }
        let is_left = self.operating.left_meanwhile.take_if(|left| *left == slot);
        if is_left.is_some() {
            operations.leave();
        }
        // A poll meanwhile did not see it.
        self.operating.is_completing |= operations.is_completing();
        self.operating.initiators[place] = Some(operations);
    }

    /// The same for all initiators over that link: their requests share its window.
    pub(super) fn take_answers_of_link(&mut self, link: LinkId) {
        self.close_left_initiators();
        for index in 0..self.operating.initiators.len() {
            let operations = self.operating.initiators[index].as_ref();
            if let Some(operations) = operations.filter(|operations| operations.link == link) {
                let slot = operations.slot.name;
                self.take_answers(slot, None);
            }
        }
    }

    /// An initiator was dropped.
    pub(super) fn leave_initiator(&mut self, slot: SlotName) {
        let place = self.operating.initiators.get_mut(usize::from(slot.index()));
        match place {
            Some(Some(operations)) if operations.slot.name == slot => {
                operations.leave();
                self.operating.is_completing |= operations.is_completing();
            }
            // Its answers are being taken just now.
            _ => self.operating.left_meanwhile = Some(slot),
        }
        self.operating.left += 1;
        // Its operations are over, which a counter may tell.
        self.other_activity += 1;
    }

    /// Closes the slots of initiators that were dropped, and of which all that they asked is
    /// answered; and tells the ends of operations of others.
    #[inline]
    pub(super) fn close_left_initiators(&mut self) {
        if self.operating.left > 0 {
            self.close_answered_initiators();
        }
        if self.operating.is_completing {
            self.tell_completions();
        }
    }

    #[cold]
    pub(super) fn close_answered_initiators(&mut self) {
        // What is called here polls, and comes here again.
        self.operating.left = 0;
        for index in 0..self.operating.initiators.len() {
            let operations = self.operating.initiators[index].as_ref();
            let Some(operations) = operations.filter(|operations| operations.is_left) else {
                continue;
            };
            let (slot, link) = (operations.slot.name, operations.link);
            self.take_answers(slot, None);
            let is_gone = self.link_end(link).is_some();
            // Its ends are told first.
            let is_over = |operations: &mut Box<Operations>| {
                (is_gone || operations.requests() == 0) && !operations.is_completing()
            };
            if let Some(operations) = self.operating.initiators[index].take_if(is_over) {
                let Operations { slot, queue, .. } = *operations;
                if let Err(error) = self.close_slot(slot) {
                    tracing::debug!(%error, "closing the slot of an initiator that is gone");
                }
                self.close_queue(queue);
            }
        }
        let left = self.operating.initiators.iter().flatten();
        self.operating.left = left.filter(|operations| operations.is_left).count();
    }

    /// Sends what others are to be answered, as far as there is room.
    #[inline]
    pub(super) fn answer(&mut self) {
        let sent = match (&mut self.inbound, &self.processor) {
            (Half::Own(inbound), _) => {
                if !inbound.receiver.owes_answers() {
                    return;
                }
                self.outbound
                    .lock(|outbound| answers::answer(inbound, outbound))
            }
            (Half::Shared(handoff_lock) | Half::Lent(handoff_lock), Some(processor)) => {
                if !processor.exchange.takes_owed() {
                    return;
                }
                let mut inbound = handoff_lock.enter();
                let sent = self
                    .outbound
                    .lock(|outbound| answers::answer(&mut inbound, outbound));
                if inbound.receiver.owes_answers() {
                    processor.exchange.owe();
                }
                sent
            }
            (Half::Shared(_) | Half::Lent(_), None) => 0,
        };
        self.other_activity += sent as u64;
    }
}
