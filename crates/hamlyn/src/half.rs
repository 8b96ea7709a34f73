//! A half of an interface, in the hands of one thread or lent between two
//! (ARCHITECTURE.md, strategies).

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// A value that can be a half.
pub(crate) trait Lendable {
    /// True if there is something to do for those who poll.
    fn is_pending(&self) -> bool;
}

/// The transmit or the receive half. With a tag of its own, which is told in fewer instructions
/// than a value that the half itself never has.
#[repr(u8)]
pub(crate) enum Half<T: Lendable> {
    /// The application's alone.
    Own(T),
    /// The network processor's, which steps aside when the application wants it.
    Shared(Arc<HandoffLock<T>>),
    /// The application's, which the network processor borrows now and then, or which has several
    /// threads, one of which sends while another one receives ([`crate::sending_half`]).
    Lent(Arc<HandoffLock<T>>),
}

/// Uses a half for a fast path, if it is the application's: alone or, if that has several threads
/// (`among_threads`, a constant), lent. Otherwise nothing. No function, so that what is done is a
/// part of its caller in either case.
macro_rules! at_once {
    ($half:expr, $among_threads:expr, |$held:ident| $act:expr) => {
        if $among_threads {
            match &mut $half {
                $crate::half::Half::Lent(handoff_lock) => {
                    let $held = &mut *handoff_lock.enter_soon();
                    $act
                }
                _ => None,
            }
        } else {
            match &mut $half {
                $crate::half::Half::Own($held) => $act,
                _ => None,
            }
        }
    };
}
pub(crate) use at_once;

/// Which thread has a half most of the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The application, alone.
    Application,
    /// The application, and the network processor borrows it.
    Lender,
    /// The network processor.
    Processor,
}

impl<T: Lendable> Half<T> {
    /// The half, if it is the application's alone.
    #[inline(always)]
    pub(crate) fn own(&mut self) -> Option<&mut T> {
        match self {
            Half::Own(half) => Some(half),
            Half::Shared(_) | Half::Lent(_) => None,
        }
    }

    /// True if there may be something to do for those who poll. Takes no lock.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        match self {
            Half::Own(half) => half.is_pending(),
            Half::Shared(handoff_lock) | Half::Lent(handoff_lock) => handoff_lock.is_pending(),
        }
    }

    /// Uses the half, if it is the application's, lent or not. Not for the fast path: what is done
    /// is compiled twice, and so is not made part of its caller.
    pub(crate) fn with_own<R>(&mut self, act: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self {
            Half::Own(half) => Some(act(half)),
            Half::Lent(handoff_lock) => Some(act(&mut handoff_lock.enter_soon())),
            Half::Shared(_) => None,
        }
    }

    /// Whether the network processor has it.
    #[inline(always)]
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Half::Shared(_))
    }

    /// A half; and if it is not the application's alone, the network processor's share in it.
    ///
    /// `lets_others` is [`hamlyn_host::Host::LETS_OTHERS`].
    pub(crate) fn new(
        half: T,
        holder: Holder,
        lets_others: Option<fn()>,
    ) -> (Self, Option<Arc<HandoffLock<T>>>) {
        if holder == Holder::Application {
            return (Half::Own(half), None);
        }
        let handoff_lock = Arc::new(HandoffLock {
            half: Mutex::new(half),
            wanted: AtomicU32::new(0),
            pending: AtomicBool::new(false),
            lets_others,
        });
        let theirs = Arc::clone(&handoff_lock);
        let ours = match holder {
            Holder::Processor => Half::Shared(handoff_lock),
            _ => Half::Lent(handoff_lock),
        };
        (ours, Some(theirs))
    }

    /// Uses the half, however it is held. May wait until the network processor has finished a poll.
    #[inline]
    pub(crate) fn lock<R>(&mut self, act: impl FnOnce(&mut T) -> R) -> R {
        match self {
            Half::Own(half) => act(half),
            Half::Shared(handoff_lock) => act(&mut handoff_lock.enter()),
            Half::Lent(handoff_lock) => act(&mut handoff_lock.enter_soon()),
        }
    }

    /// Reads the half, however it is held.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        match self {
            Half::Own(half) => read(half),
            Half::Shared(handoff_lock) => read(&handoff_lock.enter()),
            Half::Lent(handoff_lock) => read(&handoff_lock.enter_soon()),
        }
    }
}

/// A lock whose one holder, the network processor, has it nearly all the time and
/// steps aside when it is wanted; or only borrows it, when it is free.
pub(crate) struct HandoffLock<T: Lendable> {
    half: Mutex<T>,
    /// Threads of the application that want it, or are about to have it.
    wanted: AtomicU32,
    /// There was something to do for those who poll when the half was given back last.
    pending: AtomicBool,
    /// How to wait for it, where that is not the system's business.
    lets_others: Option<fn()>,
}

/// A half in somebody's hands.
pub(crate) struct Taken<'a, T: Lendable> {
    half: MutexGuard<'a, T>,
    pending: &'a AtomicBool,
}

impl<T: Lendable> Deref for Taken<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.half
    }
}

impl<T: Lendable> DerefMut for Taken<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.half
    }
}

impl<T: Lendable> Drop for Taken<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let is_pending = self.half.is_pending();
        if self.pending.load(Ordering::Relaxed) != is_pending {
            self.pending.store(is_pending, Ordering::Relaxed);
        }
    }
}

impl<T: Lendable> HandoffLock<T> {
    fn taken<'a>(&'a self, half: MutexGuard<'a, T>) -> Taken<'a, T> {
        let pending = &self.pending;
        Taken { half, pending }
    }

    fn lock(&self) -> Taken<'_, T> {
        if let Some(lets_others) = self.lets_others {
            while let Err(TryLockError::WouldBlock) = self.half.try_lock() {
                lets_others();
            }
        }
        // A half is whole after each of its calls, whatever became of the caller.
        self.taken(self.half.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// For the application: has the other side step aside.
    pub(crate) fn enter(&self) -> Taken<'_, T> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let half = self.lock();
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        half
    }

    /// For the application, if it is the holder: it is free nearly always.
    pub(crate) fn enter_soon(&self) -> Taken<'_, T> {
        self.try_enter().unwrap_or_else(|| self.enter())
    }

    /// For a network processor that borrows it: only if it can be had at once.
    pub(crate) fn try_in_background(&self) -> Option<Taken<'_, T>> {
        let free = match self.is_wanted() {
            true => None,
            false => self.try_enter(),
        };
        if let (None, Some(lets_others)) = (&free, self.lets_others) {
            lets_others();
        }
        free
    }

    /// For the application: only if it can be had at once.
    pub(crate) fn try_enter(&self) -> Option<Taken<'_, T>> {
        match self.half.try_lock() {
            Ok(half) => Some(self.taken(half)),
            // As above.
            Err(TryLockError::Poisoned(half)) => Some(self.taken(half.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// True if there may be something to do for those who poll.
    #[inline(always)]
    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Whether a thread waits for it.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// For the network processor: lets those who want it go first.
    pub(crate) fn lock_in_background(&self) -> Taken<'_, T> {
        while self.is_wanted() {
            self.lets_others.unwrap_or(std::thread::yield_now)();
        }
        self.lock()
    }
}
