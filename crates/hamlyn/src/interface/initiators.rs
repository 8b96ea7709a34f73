//! Initiators of an interface: what they asked for, and what is under way over each link.

use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::SlotName;
use hamlyn_engine::terminus::TerminusId;

use super::regions::AttachedRegions;
use crate::one_sided::{Atomic, Initiator, Operation, OperationError, Operations};

/// What an interface knows of its initiators.
#[derive(Debug, Default)]
pub(super) struct Operating {
    /// By the index of their slots.
    pub(super) initiators: Vec<Option<Box<Operations>>>,
    /// Requests under way over each link, by its index: never more than its peer keeps answers for.
    windows: Vec<(Option<LinkId>, u32)>,
    /// Initiators that were dropped, and of which not all is answered as far as was seen.
    pub(super) left: usize,
    /// One that was dropped while its answers were being taken.
    pub(super) left_meanwhile: Option<SlotName>,
    /// By which requests are left to a network processor.
    pub(super) terminus: Option<TerminusId>,
    /// True if ends of operations are to be told by counters or completion queues.
    pub(super) is_completing: bool,
}

impl Operating {
    pub(super) fn insert(&mut self, operations: Operations) {
        let index = usize::from(operations.slot.name.index());
        if self.initiators.len() <= index {
            self.initiators.resize_with(index + 1, || None);
        }
        self.initiators[index] = Some(Box::new(operations));
    }

    /// Has initiators over that link operate in memory where regions are attached. The first region
    /// of an initiator stays the one.
    #[cold]
    pub(super) fn attach(&self, link: LinkId, attached: &AttachedRegions) {
        let all = self.initiators.iter().flatten();
        for operations in all.filter(|operations| operations.link == link) {
            if operations.direct.get().is_none()
                && let Some(window) = attached.window(link, &operations.ticket)
            {
                let _ = operations.direct.set(window);
            }
        }
    }

    pub(super) fn of(&mut self, initiator: &Initiator) -> Result<&mut Operations, OperationError> {
        self.initiators
            .get_mut(usize::from(initiator.slot.index()))
            .and_then(Option::as_deref_mut)
            .filter(|operations| operations.slot.name == initiator.slot)
            .ok_or(OperationError::NotOutstanding)
    }

    #[inline]
    pub(super) fn window(&mut self, link: LinkId) -> &mut u32 {
        let index = link.index as usize;
        let is_open = |(of, _): &(Option<LinkId>, u32)| *of == Some(link);
        if !self.windows.get(index).is_some_and(is_open) {
            self.open_window(link);
        }
        &mut self.windows[index].1
    }

    /// A packet of an answer came to an initiator. Whether its request is answered as a whole.
    #[inline]
    pub(super) fn answered(&mut self, operations: &mut Operations, word: u64) -> bool {
        let is_whole = operations.answered(word);
        if is_whole {
            let window = self.window(operations.link);
            *window = window.saturating_sub(1);
        }
        is_whole
    }

    #[cold]
    fn open_window(&mut self, link: LinkId) {
        let index = link.index as usize;
        if self.windows.len() <= index {
            self.windows.resize(index + 1, (None, 0));
        }
        self.windows[index] = (Some(link), 0);
    }
}

/// What is asked for.
pub(crate) enum Asking<'a> {
    /// To read to that place of the slot for answers.
    Read(u64),
    Put(&'a [u8]),
    Atomic(Atomic),
}

/// What became of an operation that was begun.
pub(crate) enum Begun<'a> {
    /// It is asked for as a whole.
    Asked(Operation),
    /// Nothing of it is.
    ToBeAsked(Operation, Asking<'a>),
}
