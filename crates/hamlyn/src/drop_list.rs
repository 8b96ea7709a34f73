//! Handles that leave a note when they are dropped. Their owner reads the notes in its next call: a
//! drop has no manager at hand, may happen in any thread, and must not wait.

use std::sync::{Arc, Mutex, PoisonError};

use hamlyn_ring::forks::Birth;

/// The notes of one owner's handles. A clone is the same list: each handle holds one.
#[derive(Debug)]
pub(crate) struct DropList<T>(Arc<Notes<T>>);

#[derive(Debug)]
struct Notes<T> {
    notes: Mutex<Vec<T>>,
    birth: Birth,
}

impl<T> Default for DropList<T> {
    fn default() -> Self {
        Self(Arc::new(Notes {
            notes: Mutex::default(),
            birth: Birth::here(),
        }))
    }
}

impl<T> Clone for DropList<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> DropList<T> {
    pub(crate) fn note(&self, note: T) {
        // In a forked child nobody reads it, and the lock may be a thread's that is not there.
        if self.0.birth.is_here() {
            self.notes(|notes| notes.push(note));
        }
    }

    /// All notes since this was last called.
    pub(crate) fn take(&self) -> Vec<T> {
        self.notes(std::mem::take)
    }

    /// Looks at all notes, and keeps some for later. Does not allocate.
    pub(crate) fn retain(&self, is_kept: impl FnMut(&mut T) -> bool) {
        self.notes(|notes| notes.retain_mut(is_kept));
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.notes(|notes| notes.is_empty())
    }

    /// True if there are handles, each of which may leave a note at any time.
    pub(crate) fn has_handles(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether both are the list of one owner.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn notes<R>(&self, with: impl FnOnce(&mut Vec<T>) -> R) -> R {
        with(&mut self.0.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
