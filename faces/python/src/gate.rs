//! The gate of an interface: one thread at a time passes it, and so uses the manager, its end points and their messages.
//!
//! A manager that is opened as shared has a gate for each of its handles; what the handles share, the library has under a lock.
//!
//! The objects of a manager share cells and counters that are not for several threads at once. Python may use and free them in any
//! thread. Behind the gate no two threads touch them at the same time, and a thread sees all that the one before it did. A call that
//! finds the gate taken is refused; a free that does is left to the call that holds it. In a forked child nothing passes.
//!
//! A thread passes a gate, leaves it, and leaves errands, only while it is attached to the interpreter; it may be detached in between. Where
//! that holds the interpreter's lock, one thread at a time does these, and plain loads and stores are enough.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use hamlyn::forks::Birth;

use crate::error::{Failure, Kind};

/// One thread at a time is attached to the interpreter.
const IS_INTERPRETER_LOCKED: bool = cfg!(not(Py_GIL_DISABLED));

/// Something that ends with its manager.
pub(crate) trait Closing: Send + Sync {
    /// Closes it. Views of its messages stay good.
    fn close(self: Arc<Self>);
}

/// What is to be done behind the gate, later.
type Errand = Box<dyn FnOnce() + Send>;

/// See the module.
pub(crate) struct Gate {
    is_taken: AtomicBool,
    has_errands: AtomicBool,
    birth: Birth,
    errands: Mutex<Vec<Errand>>,
    /// What is closed with the manager.
    ends: Mutex<Ends>,
}

/// What is closed with a manager.
#[derive(Default)]
struct Ends {
    ends: Vec<Weak<dyn Closing>>,
    /// The manager was closed.
    are_closed: bool,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            is_taken: AtomicBool::new(false),
            has_errands: AtomicBool::new(false),
            birth: Birth::here(),
            errands: Mutex::default(),
            ends: Mutex::default(),
        })
    }

    #[inline(always)]
    pub(crate) fn is_forked(&self) -> bool {
        !self.birth.is_here()
    }

    #[inline(always)]
    fn try_take(&self) -> bool {
        if IS_INTERPRETER_LOCKED {
            let is_free = !self.is_taken.load(Ordering::Relaxed);
            self.is_taken.store(true, Ordering::Relaxed);
            return is_free;
        }
        self.is_taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Passes the gate; until what this returns is dropped, no other thread does.
    #[inline(always)]
    pub(crate) fn pass(&self) -> Result<Passed<'_>, Failure> {
        if self.is_forked() {
            return Err(forked());
        }
        match self.try_take() {
            true => Ok(Passed(self)),
            false => Err(in_use()),
        }
    }

    /// Does it behind the gate: now, or, if the gate is taken, when it is free. Not at all in a forked child.
    pub(crate) fn run(&self, errand: impl FnOnce() + Send + 'static) {
        if self.is_forked() {
            std::mem::forget(errand);
        } else if self.try_take() {
            let _passed = Passed(self);
            errand();
        } else {
            let mut errands = self.errands.lock().unwrap_or_else(PoisonError::into_inner);
            errands.push(Box::new(errand));
            self.has_errands.store(true, Ordering::SeqCst);
            drop(errands);
            // The gate may have become free in between.
            if self.try_take() {
                drop(Passed(self));
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn run_errands(&self) {
        loop {
            let errands = {
                let mut errands = self.errands.lock().unwrap_or_else(PoisonError::into_inner);
                self.has_errands.store(false, Ordering::SeqCst);
                std::mem::take(&mut *errands)
            };
            if errands.is_empty() {
                return;
            }
            for errand in errands {
                errand();
            }
        }
    }

    /// Has it closed with the manager: at once, if that was closed while the call that made it was under way.
    pub(crate) fn register(&self, end: &Arc<dyn Closing>) {
        {
            let mut ends = self.lock_ends();
            if !ends.are_closed {
                let ends = &mut ends.ends;
                if ends.len() == ends.capacity() {
                    ends.retain(|end| end.strong_count() > 0);
                }
                ends.push(Arc::downgrade(end));
                return;
            }
        }
        Arc::clone(end).close();
    }

    fn lock_ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes all that belongs to the manager.
    pub(crate) fn close_ends(&self) {
        let ends = {
            let mut ends = self.lock_ends();
            ends.are_closed = true;
            std::mem::take(&mut ends.ends)
        };
        for end in ends {
            if let Some(end) = end.upgrade() {
                end.close();
            }
        }
    }
}

#[cold]
pub(crate) fn forked() -> Failure {
    Failure::new(
        Kind::Forked,
        "this object belongs to the process that was forked from: open another manager in the child",
    )
}

#[cold]
fn in_use() -> Failure {
    Failure::new(
        Kind::InUse,
        "another call uses this manager or one of its end points now: they are for one thread at a time, so open a manager for each thread, or share one, `Manager.share`",
    )
}

/// The gate was passed.
pub(crate) struct Passed<'a>(&'a Gate);

impl Drop for Passed<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        loop {
            if self.0.has_errands.load(Ordering::SeqCst) {
                self.0.run_errands();
            }
            if IS_INTERPRETER_LOCKED {
                // No errand comes meanwhile.
                self.0.is_taken.store(false, Ordering::Relaxed);
                return;
            }
            self.0.is_taken.store(false, Ordering::SeqCst);
            // An errand that came just now found the gate taken.
            if !self.0.has_errands.load(Ordering::SeqCst) || !self.0.try_take() {
                return;
            }
        }
    }
}

/// An object behind a gate.
pub(crate) struct Guarded<T: 'static> {
    gate: Arc<Gate>,
    /// What it is called, if it is closed.
    name: &'static str,
    /// The program has closed it; there may be views that keep it.
    is_shut: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

/// Moves what is behind a gate to another thread, to be used there behind the gate.
pub(crate) struct Carried<T>(pub(crate) T);

// SAFETY: what it holds is used by the one thread that has passed the gate.
unsafe impl<T> Send for Carried<T> {}

impl<T> Carried<T> {
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

// SAFETY: the value is reached by the thread alone that has passed the gate, whose flag orders what threads do; the library keeps
// nothing in a thread, so which thread that is does not matter to it.
unsafe impl<T> Send for Guarded<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) fn new(gate: &Arc<Gate>, name: &'static str, value: T) -> Self {
        Self {
            gate: Arc::clone(gate),
            name,
            is_shut: AtomicBool::new(false),
            value: UnsafeCell::new(Some(value)),
        }
    }

    /// No call uses it any more.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::SeqCst)
    }

    #[inline(always)]
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// The object, while no other thread uses any of its manager.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Result<Entered<'_, T>, Failure> {
        let passed = self.gate.pass()?;
        // SAFETY: the gate was passed, so that nobody else reaches the value until `passed` is dropped. A second `enter` in this
        // thread is refused by the gate as well.
        let value = unsafe { &mut *self.value.get() };
        match value {
            Some(value) if !self.is_shut.load(Ordering::Relaxed) => Ok(Entered {
                value,
                _passed: passed,
            }),
            _ => Err(closed(self.name)),
        }
    }

    /// Behind the gate already: the object, if it is not closed.
    ///
    /// # Safety
    ///
    /// The caller has passed the gate, and has no other reference to the value.
    #[expect(clippy::mut_from_ref, reason = "the gate excludes others")]
    pub(crate) unsafe fn behind(&self) -> Option<&mut T> {
        // SAFETY: the caller has passed the gate.
        unsafe { (*self.value.get()).as_mut() }
    }

    /// The same, or the failure that says that it is closed.
    ///
    /// # Safety
    ///
    /// As [`Guarded::behind`].
    #[expect(clippy::mut_from_ref, reason = "the gate excludes others")]
    pub(crate) unsafe fn behind_or_closed(&self) -> Result<&mut T, Failure> {
        // SAFETY: the caller has passed the gate.
        unsafe { self.behind() }.ok_or_else(|| closed(self.name))
    }

    /// Closes it: the object is dropped behind the gate.
    ///
    /// # Safety
    ///
    /// As [`Guarded::behind`].
    pub(crate) unsafe fn take(&self) -> Option<T> {
        // SAFETY: the caller has passed the gate.
        unsafe { (*self.value.get()).take() }
    }
}

/// What is behind another gate is refused before it is touched.
#[expect(
    clippy::mut_from_ref,
    reason = "callers have passed the gate, and ask once for each object in a call"
)]
pub(crate) fn of_same<'a, M, T>(
    manager: &Guarded<M>,
    guarded: &'a Guarded<T>,
) -> Result<&'a mut T, Failure> {
    let value = match Arc::ptr_eq(manager.gate(), guarded.gate()) {
        // SAFETY: callers have passed the gate with their manager, and ask once for each object.
        true => unsafe { guarded.behind() },
        false => None,
    };
    value.ok_or(Failure::new(
        Kind::Invalid,
        "this slot, queue, terminus, area, initiator, lane or completion queue was closed, or is another manager's",
    ))
}

#[cold]
pub(crate) fn closed(name: &'static str) -> Failure {
    Failure::of(
        Kind::HandleClosed,
        &format_args!("this {name} was closed: open another"),
    )
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.get_mut().take() else {
            return;
        };
        // In a forked child it is not dropped.
        let carried = Carried(ManuallyDrop::new(value));
        self.gate.run(move || {
            let carried = carried;
            drop(ManuallyDrop::into_inner(carried.into_inner()));
        });
    }
}

/// An object whose gate was passed.
pub(crate) struct Entered<'a, T> {
    value: &'a mut T,
    _passed: Passed<'a>,
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}
