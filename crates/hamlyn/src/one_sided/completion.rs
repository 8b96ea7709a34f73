//! How an initiator hears of completions without asking for each: by counters (decision 0037) and
//! completion queues (decision 0050). It holds no lock and reads no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hamlyn_engine::table::Name;

use super::error::{OPERATIONS_MAX, OperationError};

/// Counts completions of the operations that were given to it by
/// [`Interface::count_completion`](crate::Interface::count_completion), of one initiator or
/// several. Clones are the same counter, which any thread may read. It only grows: wait for what it
/// was before, and as many as were begun since.
#[derive(Clone, Debug, Default)]
pub struct CompletionCounter {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    completed: AtomicU64,
    failed: AtomicU64,
}

impl CompletionCounter {
    /// A counter that stands at 0. Allocates.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations were carried out.
    pub fn completed(&self) -> u64 {
        // What an operation read is there once it is counted.
        self.counts.completed.load(Ordering::Acquire)
    }

    /// How many were refused, or are lost with their target.
    pub fn failed(&self) -> u64 {
        self.counts.failed.load(Ordering::Acquire)
    }

    /// How many came to an end, well or not.
    pub fn ended(&self) -> u64 {
        self.completed().saturating_add(self.failed())
    }

    fn count(&self, is_failed: bool) {
        let count = match is_failed {
            false => &self.counts.completed,
            true => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Release);
    }
}

/// Something that a completion queue tracks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracked {
    pub(crate) queue: Name,
    pub(crate) context: u64,
}

/// How an operation's end is told.
#[derive(Clone, Debug, Default)]
enum Report {
    /// The program asks.
    #[default]
    None,
    Count(CompletionCounter),
    /// With its word, if it has one.
    Track(Tracked, bool),
}

/// The ends of an initiator's operations that are still to be told.
#[derive(Debug, Default)]
pub(crate) struct Completing {
    /// By the index of the operation; empty until the first is asked for.
    reports: Vec<Report>,
    /// How many of them there are.
    waiting: usize,
    /// Operations that have ended, of which completion queues are to be told.
    ready: Vec<(Tracked, Result<u64, OperationError>)>,
}

impl Completing {
    /// Whether anything is to be told, now or later.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.waiting == 0 && self.ready.is_empty()
    }

    pub(super) fn count(&mut self, index: usize, counter: &CompletionCounter) {
        self.insert(index, Report::Count(counter.clone()));
    }

    pub(super) fn track(&mut self, index: usize, tracked: Tracked, has_word: bool) {
        self.insert(index, Report::Track(tracked, has_word));
    }

    fn insert(&mut self, index: usize, report: Report) {
        if self.reports.is_empty() {
            self.reports.resize_with(OPERATIONS_MAX, Report::default);
            self.ready.reserve(OPERATIONS_MAX);
        }
        if let Some(place) = self.reports.get_mut(index) {
            let before = std::mem::replace(place, report);
            self.waiting += usize::from(matches!(before, Report::None));
        }
    }

    /// An operation has ended so; `word` reads what it returned.
    #[inline]
    pub(super) fn ended(
        &mut self,
        index: usize,
        end: Result<(), OperationError>,
        word: impl FnOnce() -> u64,
    ) {
        if self.waiting > 0 {
            self.tell(index, end, word);
        }
    }

    #[inline(never)]
    fn tell(&mut self, index: usize, end: Result<(), OperationError>, word: impl FnOnce() -> u64) {
        let report = self.reports.get_mut(index).map(std::mem::take);
        match report {
            None | Some(Report::None) => return,
            Some(Report::Count(counter)) => counter.count(end.is_err()),
            Some(Report::Track(tracked, has_word)) => {
                let result = end.map(|()| if has_word { word() } else { 0 });
                self.ready.push((tracked, result));
            }
        }
        self.waiting -= 1;
    }

    /// No more answers come: every operation whose end is to be told has failed so. `each` is given
    /// their indices.
    pub(super) fn all_failed(&mut self, why: &OperationError, mut each: impl FnMut(usize)) {
        for index in 0..self.reports.len() {
            if !matches!(self.reports[index], Report::None) {
                self.tell(index, Err(why.clone()), || 0);
                each(index);
            }
        }
    }

    /// The next that is to be told.
    pub(super) fn next_ready(&mut self) -> Option<(Tracked, Result<u64, OperationError>)> {
        self.ready.pop()
    }
}
