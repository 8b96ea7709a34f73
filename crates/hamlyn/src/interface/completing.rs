//! An interface tells the ends of one-sided operations, by counters ([`CompletionCounter`],
//! decision 0037) and completion queues.
//!
//! A poll takes the answers of operations whose ends are to be told. It only looks at answers that
//! lie in their queues already, so it takes no other packets because of it.

use hamlyn_host::Host;

use super::Interface;
use crate::one_sided::{
    ANSWERS_MAX, CompletionCounter, Initiator, Operation, OperationError, Operations,
};
use crate::peer::PeerLost;

impl<H: Host> Interface<H> {
    /// Gives an operation to a counter: when it ends, the counter counts it, and its place is free.
    /// It cannot be [finished](crate::Session::finish) any more, so this is for operations without
    /// a value: what reads have read lies in the landing memory. If the initiator is dropped
    /// before, it counts as failed. The first such call of an initiator allocates.
    pub fn count_completion(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        counter: &CompletionCounter,
    ) -> Result<(), OperationError> {
        self.check()?;
        self.operating.of(initiator)?.count(operation, counter)?;
        self.operating.is_completing = true;
        Ok(())
    }

    /// Tells the ends of operations whose answers are there.
    #[cold]
    pub(super) fn tell_completions(&mut self) {
        let mut is_any = false;
        for index in 0..self.operating.initiators.len() {
            // Taken out so that the interface can be called meanwhile; nothing that is called takes
            // packets.
            let is_it = |operations: &mut Box<Operations>| operations.is_completing();
            let taken = self.operating.initiators[index].take_if(is_it);
            let Some(mut operations) = taken else {
                continue;
            };
            // Asked before the look, so that what came before the end of the link is seen.
            let link = operations.link;
            let is_gone = self.is_drained(link) && self.link_end(link).is_some();
            self.take_answers_at_hand(&mut operations);
            if is_gone {
                let (peer, end) = (
                    operations.ticket.destination,
                    self.why_gone(link, &operations.ticket.destination),
                );
                let lost = OperationError::PeerLost(PeerLost { peer, end });
                operations.all_ended(&lost);
            } else if operations.is_flooded() {
                operations.all_ended(&OperationError::Flooded);
            }
            while let Some((tracked, result)) = operations.next_ready() {
                self.tracking.complete(tracked, result.map_err(Into::into));
                // A sleep that is being prepared does not begin.
                self.other_activity += 1;
            }
            is_any |= operations.is_completing();
            self.operating.initiators[index] = Some(operations);
        }
        self.operating.is_completing = is_any;
    }

    /// Takes the answers that lie in the queue of an initiator.
    fn take_answers_at_hand(&mut self, operations: &mut Operations) {
        for _ in 0..ANSWERS_MAX {
            match operations.queue.reader.pop() {
                Ok(Some(notification)) => {
                    if self.operating.answered(operations, notification.word) {
                        // A counter has moved, perhaps.
                        self.other_activity += 1;
                    }
                }
                Ok(None) => break,
                Err(_) => operations.note_flood(),
            }
        }
    }
}
