//! An interface tells the ends of what is tracked in completion queues ([`crate::completions`],
//! decision 50).
//!
//! A poll looks at some sends and fences, in turn; at all of them before a sleep, and at all sends
//! when a link ends. Operations tell of their ends by themselves, as their answers are taken.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::terminus::{Completion as SendState, SendHandle};
use hamlyn_host::Host;

use super::Interface;
use super::fence::Fence;
use super::tracked::Completions;
use crate::completions::{
    COMPLETION_QUEUES_MAX, COMPLETIONS_MAX, Completion, CompletionError, CompletionQueue,
    TrackError,
};
use crate::error::OpenError;
use crate::one_sided::{Initiator, Operation, Tracked};
use crate::outbound::Outbound;

/// The end of a message, if it has one.
fn end_of(state: SendState) -> Option<Result<u64, CompletionError>> {
    match state {
        SendState::Pending => None,
        SendState::Sent => Some(Ok(0)),
        SendState::Failed => Some(Err(CompletionError::NotSent)),
    }
}

/// Sends and fences that a poll looks at, of each.
const LOOKS: usize = 32;

impl<H: Host> Interface<H> {
    /// Opens a completion queue of 1 to 65,536 places. Allocates.
    pub fn open_completions(&mut self, places: usize) -> Result<CompletionQueue, OpenError> {
        self.check()?;
        // Those that were dropped have their places no longer.
        self.drain_events_if_asked();
        if !(1..=COMPLETIONS_MAX).contains(&places) {
            return Err(OpenError::Setting {
                setting: "the places of a completion queue",
                value: places as u64,
                reason: "it has 1 to 65,536",
            });
        }
        let completions = Completions {
            free: places,
            ready: std::collections::VecDeque::with_capacity(places),
        };
        let name = self.tracking.queues.insert(completions);
        let name = name.ok_or(OpenError::Setting {
            setting: "the number of completion queues",
            value: COMPLETION_QUEUES_MAX as u64 + 1,
            reason: "an interface has at most 4,096: drop one",
        })?;
        Ok(CompletionQueue::new(name, places, self.leaving.clone()))
    }

    fn place_in(&mut self, queue: &CompletionQueue, context: u64) -> Result<Tracked, TrackError> {
        match queue.is_of(&self.leaving) {
            true => self.tracking.take(queue, context),
            false => Err(TrackError::NoSuchQueue),
        }
    }

    /// Completes when the message is handed to its link whole, so that its buffers are free: at
    /// once if it is, and most are. Does not block; may allocate.
    pub fn track_send(
        &mut self,
        queue: &CompletionQueue,
        handle: SendHandle,
        context: u64,
    ) -> Result<(), TrackError> {
        self.check()?;
        let accepted = |outbound: &Outbound<_, _>| outbound.transmitter.accepted();
        if handle.sequence > self.outbound.read(accepted) {
            return Err(TrackError::NoSuchMessage);
        }
        let state = self.completion(handle)?;
        let tracked = self.place_in(queue, context)?;
        match end_of(state) {
            Some(result) => {
                self.tracking.complete(tracked, result);
                self.other_activity += 1;
                self.wake_sleepers_if_active();
            }
            None => self.tracking.sends.push_back((tracked, handle)),
        }
        Ok(())
    }

    /// Completes when everything that was accepted for that link before is in its place at its
    /// receiver, or was refused: then with the error that [`Session::fence_link`] would have. So a
    /// message that is followed by this is complete when it is delivered, and one fence answers for
    /// all messages before it. Does not block; allocates.
    ///
    /// [`Session::fence_link`]: crate::Session::fence_link
    pub fn track_fence(
        &mut self,
        queue: &CompletionQueue,
        link: LinkId,
        context: u64,
    ) -> Result<(), TrackError> {
        self.check()?;
        let fence = self.begin_fence_of(link)?;
        let tracked = self.place_in(queue, context)?;
        self.look_at_fence(tracked, fence);
        self.wake_sleepers_if_active();
        self.wake_sleepers_for_credit();
        Ok(())
    }

    /// Gives an operation to a queue: it cannot be [finished](crate::Session::finish) any more, and
    /// its place among the initiator's is free when it ends. What a read has read lies in the
    /// landing memory when it is complete. If the initiator is dropped before, the completion says
    /// so. Does not block. The first such call of an initiator allocates.
    pub fn track_operation(
        &mut self,
        queue: &CompletionQueue,
        initiator: &mut Initiator,
        operation: Operation,
        context: u64,
    ) -> Result<(), TrackError> {
        self.track(queue, initiator, operation, context, false)
    }

    /// As [`Interface::track_operation`], for an operation with a word: the completion has what it
    /// was before the change, or what was read.
    pub fn track_word(
        &mut self,
        queue: &CompletionQueue,
        initiator: &mut Initiator,
        operation: Operation,
        context: u64,
    ) -> Result<(), TrackError> {
        self.track(queue, initiator, operation, context, true)
    }

    fn track(
        &mut self,
        queue: &CompletionQueue,
        initiator: &mut Initiator,
        operation: Operation,
        context: u64,
        has_word: bool,
    ) -> Result<(), TrackError> {
        self.check()?;
        let tracked = self.place_in(queue, context)?;
        let operations = self.operating.of(initiator);
        let given =
            operations.and_then(|operations| operations.track(operation, tracked, has_word));
        if let Err(error) = given {
            self.tracking.give_back(&tracked);
            return Err(error.into());
        }
        self.operating.is_completing = true;
        self.tell_completions();
        self.wake_sleepers_if_active();
        Ok(())
    }

    /// From now on the queue also tells of packets that came back, as
    /// [`Interface::next_undelivered`] would, whenever nothing else is complete; instead of the
    /// queue before, if there was one. They take no places. Their context is that of the link
    /// ([`Interface::set_link_context`]).
    pub fn track_refusals(&mut self, queue: &CompletionQueue) -> Result<(), TrackError> {
        self.check()?;
        if !queue.is_of(&self.leaving) {
            return Err(TrackError::NoSuchQueue);
        }
        self.tracking.refusals_to = Some(queue.name);
        self.other_activity += 1;
        self.wake_sleepers_if_active();
        Ok(())
    }

    /// The next completion. If there is none, packets are moved once ([`Interface::poll`]). Does
    /// not block or allocate.
    pub fn next_completion(&mut self, queue: &CompletionQueue) -> Option<Completion> {
        if self.is_forked() || !queue.is_of(&self.leaving) {
            return None;
        }
        let ready = self.tracking.next(queue);
        ready.or_else(|| self.next_completion_slowly(queue))
    }

    #[inline(never)]
    fn next_completion_slowly(&mut self, queue: &CompletionQueue) -> Option<Completion> {
        self.poll_beside_processor();
        if let Some(completion) = self.tracking.next(queue) {
            return Some(completion);
        }
        if self.tracking.refusals_to != Some(queue.name) {
            return None;
        }
        let (returned, context) = self.next_returned()?;
        Some(Completion {
            context,
            result: Err(returned.into()),
        })
    }

    /// Looks at some of what is tracked.
    #[cold]
    pub(super) fn advance_tracked(&mut self) {
        self.look_at_tracked(LOOKS);
        if self.sleepers.is_any() {
            // They are rung only for the fences that were asked before they announced themselves.
            self.wake_sleepers_for_credit();
        }
    }

    /// Looks at all that is tracked: a program that sleeps is rung for what it has asked before,
    /// once.
    pub(super) fn advance_all_tracked(&mut self) {
        if self.tracking.is_pending() {
            self.look_at_tracked(usize::MAX);
        }
    }

    fn look_at_tracked(&mut self, looks: usize) {
        self.complete_sends(looks);
        for _ in 0..self.tracking.fences.len().min(looks) {
            if let Some((tracked, fence)) = self.tracking.fences.pop_front() {
                self.look_at_fence(tracked, fence);
            }
        }
    }

    /// Tells the end of a fence, or keeps it.
    fn look_at_fence(&mut self, tracked: Tracked, mut fence: Fence) {
        if self.advance_fence(&mut fence) {
            let result = self.end_fence(fence).map(|()| 0);
            self.tracking.complete(tracked, result.map_err(Into::into));
            self.other_activity += 1;
        } else {
            self.tracking.fences.push_back((tracked, fence));
        }
    }

    /// Looks at some sends; at all, if none waits any more.
    pub(super) fn complete_sends(&mut self, looks: usize) {
        if self.tracking.sends.is_empty() {
            return;
        }
        let mut sends = std::mem::take(&mut self.tracking.sends);
        let tracking = &mut self.tracking;
        let completed = self.outbound.read(|outbound| {
            let transmitter = &outbound.transmitter;
            let looks = match transmitter.is_waiting() {
                true => looks.min(sends.len()),
                false => sends.len(),
            };
            let mut completed = 0;
            for _ in 0..looks {
                let Some((tracked, handle)) = sends.pop_front() else {
                    break;
                };
                // A terminus that was closed has dropped what waited.
                let state = transmitter.completion(handle).unwrap_or(SendState::Failed);
                match end_of(state) {
                    Some(result) => {
                        tracking.complete(tracked, result);
                        completed += 1;
                    }
                    None => sends.push_back((tracked, handle)),
                }
            }
            completed
        });
        self.tracking.sends = sends;
        // A sleep that is being prepared does not begin.
        self.other_activity += completed;
    }
}
