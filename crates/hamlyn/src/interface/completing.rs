//! An interface tells the ends of one-sided operations by counters and notifications of the
//! initiator ([`CompletionCounter`], decision 0037).
//!
//! A poll takes the answers of operations whose ends are to be told. It only looks at answers that
//! lie in their queues already, so it takes no other packets because of it.

use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::notification::Notification;
use hamlyn_host::Host;

use super::Interface;
use crate::one_sided::{
    ANSWERS_MAX, Announcement, CompletionCounter, Ended, Initiator, Operation, OperationError,
    Operations,
};
use crate::peer::PeerLost;
use crate::queue::Queue;

impl<H: Host> Interface<H> {
    /// Has the end of an operation announced in `queue`, a queue of this interface: a notification
    /// with the initiator's slot ([`Initiator::slot`]) and `word`. It comes when
    /// [`Session::finish`](crate::Session::finish) no longer waits, which tells whether the
    /// operation was carried out; until then it is outstanding. Of several that end at a time, the
    /// order is not said. A queue that is too short loses announcements, as it loses messages. The
    /// first such call of an initiator allocates.
    pub fn announce_completion(
        &mut self,
        initiator: &mut Initiator,
        operation: Operation,
        queue: &Queue,
        word: u64,
    ) -> Result<(), OperationError> {
        self.check()?;
        let announcement = Announcement {
            queue: queue.id(),
            word,
        };
        let operations = self.operating.of(initiator)?;
        operations.announce(operation, announcement)?;
        self.operating.is_completing = true;
        self.tell_completions();
        Ok(())
    }

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
            while let Some(ended) = operations.next_ready() {
                match ended {
                    Ended::Tracked(tracked, result) => {
                        self.tracking.complete(tracked, result.map_err(Into::into));
                    }
                    Ended::Announced(Announcement { queue, word }) => {
                        let notification = Notification {
                            slot: operations.slot.name,
                            metadata_index: FAST_INDEX,
                            word,
                            from: link,
                        };
                        // There is nothing to fetch of an initiator that is gone.
                        if !operations.is_left {
                            self.inbound
                                .lock(|inbound| inbound.receiver.announce(queue, notification));
                        }
                    }
                }
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
