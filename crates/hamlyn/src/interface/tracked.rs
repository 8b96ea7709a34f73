//! The completion queues of an interface, and what they track ([`crate::completions`]).

use std::collections::VecDeque;

use hamlyn_engine::table::{Name, Table};
use hamlyn_engine::terminus::SendHandle;

use super::fence::Fence;
use crate::completions::{
    COMPLETION_QUEUES_MAX, Completion, CompletionError, CompletionQueue, TrackError,
};
use crate::one_sided::Tracked;

/// The completions of a queue.
pub(super) struct Completions {
    /// Places that are not taken.
    pub(super) free: usize,
    pub(super) ready: VecDeque<Completion>,
}

/// All that an interface tracks.
pub(super) struct Tracking {
    pub(super) queues: Table<Completions>,
    pub(super) sends: VecDeque<(Tracked, SendHandle)>,
    pub(super) fences: VecDeque<(Tracked, Fence)>,
    /// The queue that is told of packets that came back.
    pub(super) refusals_to: Option<Name>,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            queues: Table::new(COMPLETION_QUEUES_MAX, u32::MAX),
            sends: VecDeque::new(),
            fences: VecDeque::new(),
            refusals_to: None,
        }
    }
}

impl Tracking {
    /// True if a poll is to look.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        !self.sends.is_empty() || !self.fences.is_empty()
    }

    /// Takes a place.
    pub(super) fn take(
        &mut self,
        queue: &CompletionQueue,
        context: u64,
    ) -> Result<Tracked, TrackError> {
        let completions = self.queues.get_mut(queue.name);
        let completions = completions.ok_or(TrackError::NoSuchQueue)?;
        let places = queue.places();
        let free = completions.free.checked_sub(1);
        completions.free = free.ok_or(TrackError::Full { places })?;
        Ok(Tracked {
            queue: queue.name,
            context,
        })
    }

    /// The place was not needed.
    pub(super) fn give_back(&mut self, tracked: &Tracked) {
        if let Some(completions) = self.queues.get_mut(tracked.queue) {
            completions.free += 1;
        }
    }

    /// Nobody is told if the queue is gone.
    pub(super) fn complete(&mut self, tracked: Tracked, result: Result<u64, CompletionError>) {
        if let Some(completions) = self.queues.get_mut(tracked.queue) {
            let context = tracked.context;
            completions.ready.push_back(Completion { context, result });
        }
    }

    pub(super) fn next(&mut self, queue: &CompletionQueue) -> Option<Completion> {
        let completions = self.queues.get_mut(queue.name)?;
        let completion = completions.ready.pop_front()?;
        completions.free += 1;
        Some(completion)
    }

    pub(super) fn is_ready(&self, queue: Name) -> bool {
        let completions = self.queues.get(queue);
        completions.is_some_and(|completions| !completions.ready.is_empty())
    }

    pub(super) fn close(&mut self, queue: Name) {
        self.queues.remove(queue);
        self.sends.retain(|(tracked, _)| tracked.queue != queue);
        self.fences.retain(|(tracked, _)| tracked.queue != queue);
        self.refusals_to.take_if(|to| *to == queue);
    }
}
