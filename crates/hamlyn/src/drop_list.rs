//! Handles that leave a note when they are dropped. Their owner reads the notes in its next call: a
//! drop has no manager at hand, may happen in any thread, and must not wait. A task that waits for
//! the owner is woken.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use hamlyn_ring::forks::Birth;

/// The notes of one owner's handles. A clone is the same list: each handle holds one.
#[derive(Debug)]
pub(crate) struct DropList<T>(Arc<Notes<T>>);

#[derive(Debug)]
struct Notes<T> {
    left: Mutex<Left<T>>,
    birth: Birth,
}

#[derive(Debug)]
struct Left<T> {
    notes: Vec<T>,
    /// The task that the next note wakes.
    waker: Option<Waker>,
}

impl<T> Default for DropList<T> {
    fn default() -> Self {
        let (notes, waker) = (Vec::new(), None);
        Self(Arc::new(Notes {
            left: Mutex::new(Left { notes, waker }),
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
        if !self.0.birth.is_here() {
            return;
        }
        let waker = self.left(|left| {
            left.notes.push(note);
            left.waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next note wakes that task, if there are handles: to be called before it looks, so that
    /// nothing is missed in between.
    pub(crate) fn will_wake(&self, waker: &Waker) {
        if self.has_handles() {
            let new = waker.clone();
            let before = self.left(|left| left.waker.replace(new));
            // A task may be dropped with its waker, and a handle with the task.
            drop(before);
        }
    }

    /// All notes since this was last called.
    pub(crate) fn take(&self) -> Vec<T> {
        self.left(|left| std::mem::take(&mut left.notes))
    }

    /// Looks at all notes, and keeps some for later. Does not allocate.
    pub(crate) fn retain(&self, is_kept: impl FnMut(&mut T) -> bool) {
        self.left(|left| left.notes.retain_mut(is_kept));
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.left(|left| left.notes.is_empty())
    }

    /// True if there are handles, each of which may leave a note at any time.
    fn has_handles(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether both are the list of one owner.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn left<R>(&self, with: impl FnOnce(&mut Left<T>) -> R) -> R {
        with(&mut self.0.left.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
