//! A half of an interface, in the hands of one thread or lent between two
//! (ARCHITECTURE.md, strategies).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The transmit or the receive half. With a tag of its own, which is told in fewer instructions than a value
/// that the half itself never has.
#[repr(u8)]
pub(crate) enum Half<T> {
    /// The application's alone.
    Own(T),
    /// Lent between the application and the network processor.
    Shared(Arc<HandoffLock<T>>),
}

impl<T> Half<T> {
    /// The half, if it is the application's alone.
    #[inline(always)]
    pub(crate) fn own(&mut self) -> Option<&mut T> {
        match self {
            Half::Own(half) => Some(half),
            Half::Shared(_) => None,
        }
    }

    /// A half; and if it is to be lent, what the network processor gets of it.
    ///
    /// `lets_others` is [`hamlyn_host::Host::LETS_OTHERS`].
    pub(crate) fn new(
        half: T,
        lent: bool,
        lets_others: Option<fn()>,
    ) -> (Self, Option<Arc<HandoffLock<T>>>) {
        if !lent {
            return (Half::Own(half), None);
        }
        let handoff_lock = Arc::new(HandoffLock {
            half: Mutex::new(half),
            wanted: AtomicU32::new(0),
            lets_others,
        });
        (Half::Shared(Arc::clone(&handoff_lock)), Some(handoff_lock))
    }

    /// Uses the half, however it is held. May wait until the network processor has finished a poll.
    #[inline]
    pub(crate) fn lock<R>(&mut self, act: impl FnOnce(&mut T) -> R) -> R {
        match self {
            Half::Own(half) => act(half),
            Half::Shared(handoff_lock) => act(&mut handoff_lock.enter()),
        }
    }

    /// Reads the half, however it is held.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        match self {
            Half::Own(half) => read(half),
            Half::Shared(handoff_lock) => read(&handoff_lock.enter()),
        }
    }
}

/// A lock whose one holder, the network processor, has it nearly all the time and
/// steps aside when it is wanted.
pub(crate) struct HandoffLock<T> {
    half: Mutex<T>,
    /// Threads of the application that want it, or are about to have it.
    wanted: AtomicU32,
    /// How to wait for it, where that is not the system's business.
    lets_others: Option<fn()>,
}

impl<T> HandoffLock<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        if let Some(lets_others) = self.lets_others {
            while let Err(TryLockError::WouldBlock) = self.half.try_lock() {
                lets_others();
            }
        }
        // A half is whole after each of its calls, whatever became of the caller.
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the application: has the other side step aside.
    pub(crate) fn enter(&self) -> MutexGuard<'_, T> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let half = self.lock();
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        half
    }

    /// For the application: only if it can be had at once.
    pub(crate) fn try_enter(&self) -> Option<MutexGuard<'_, T>> {
        self.half.try_lock().ok()
    }

    /// Whether a thread waits for it.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// For the network processor: lets those who want it go first.
    pub(crate) fn lock_in_background(&self) -> MutexGuard<'_, T> {
        while self.is_wanted() {
            self.lets_others.unwrap_or(std::thread::yield_now)();
        }
        self.lock()
    }
}
