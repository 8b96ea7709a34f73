//! How the end points of one manager share it: within one thread, where that costs a flag, or among
//! several, where it costs a lock. A host says which, so a program decides once, by the type of
//! host that it opens.

use std::cell::{RefCell, RefMut};
use std::ops::DerefMut;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::HostError;

/// A way to share.
pub trait Sharing: 'static {
    /// True if several threads may use what is shared.
    const AMONG_THREADS: bool;

    /// What is shared.
    type Shared<T: 'static>: Shared<T>;
}

/// A value that several owners use in turn.
pub trait Shared<T: 'static>: Clone + 'static {
    /// The value, in the hands of one of them.
    type Guard<'a>: DerefMut<Target = T>;

    /// Shares a value.
    fn new(value: T) -> Self;

    /// Takes the value in hand. Among threads this waits for the one that has it.
    ///
    /// # Panics
    ///
    /// Within one thread, if the caller has it in hand already.
    fn enter(&self) -> Self::Guard<'_>;

    /// As [`Shared::enter`]; nothing if another thread holds it.
    fn try_enter(&self) -> Option<Self::Guard<'_>>;

    /// The value, if this is its only owner.
    fn into_inner(self) -> Result<T, Self>;

    /// Lets others have the value while `act` runs, if there can be any.
    fn let_others<R>(guard: &mut Self::Guard<'_>, act: impl FnOnce() -> R) -> R;

    /// Lets others have the value until one of them calls [`Shared::notify`], or until the time is
    /// over.
    fn await_others(&self, guard: &mut Self::Guard<'_>, span: Option<Duration>);

    /// Ends all [`Shared::await_others`].
    fn notify(&self);
}

/// Waits until something can be read from the descriptor, or until the time is over. May end early.
/// Whether something can be read.
pub fn await_readable(
    descriptor: BorrowedFd<'_>,
    span: Option<Duration>,
) -> Result<bool, HostError> {
    let span = span.and_then(|span| Timespec::try_from(span).ok());
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    match poll(&mut polled, span.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(HostError::system("poll", 0, errno)),
    }
}

/// Within one thread: a manager and its end points stay in the thread that opened it.
#[derive(Debug)]
pub enum OneThread {}

impl Sharing for OneThread {
    const AMONG_THREADS: bool = false;

    type Shared<T: 'static> = Rc<RefCell<T>>;
}

#[cold]
#[inline(never)]
#[track_caller]
fn in_hand() -> ! {
    panic!(
        "this manager is in use: drop what `Manager::session` returned, and make no call of it \
         from within a receiver class, before the next call of the manager or of its end points"
    )
}

impl<T: 'static> Shared<T> for Rc<RefCell<T>> {
    type Guard<'a> = RefMut<'a, T>;

    fn new(value: T) -> Self {
        Rc::new(RefCell::new(value))
    }

    #[inline(always)]
    #[track_caller]
    fn enter(&self) -> RefMut<'_, T> {
        match self.try_borrow_mut() {
            Ok(guard) => guard,
            Err(_) => in_hand(),
        }
    }

    fn try_enter(&self) -> Option<RefMut<'_, T>> {
        self.try_borrow_mut().ok()
    }

    fn into_inner(self) -> Result<T, Self> {
        Rc::try_unwrap(self).map(RefCell::into_inner)
    }

    #[inline(always)]
    fn let_others<R>(_: &mut RefMut<'_, T>, act: impl FnOnce() -> R) -> R {
        act()
    }

    fn await_others(&self, _: &mut RefMut<'_, T>, _: Option<Duration>) {}

    #[inline(always)]
    fn notify(&self) {}
}

/// Among threads: a manager and its end points may be used by any thread, one at a time, for the
/// price of a lock.
#[derive(Debug)]
pub enum AnyThread {}

impl Sharing for AnyThread {
    const AMONG_THREADS: bool = true;

    type Shared<T: 'static> = Arc<Locked<T>>;
}

/// A value under a lock, and those that wait for it to change.
#[derive(Debug)]
pub struct Locked<T> {
    value: Mutex<T>,
    /// Threads that wait for it.
    wanted: AtomicU32,
    changed: Condvar,
}

/// How often a thread looks for the lock before it sleeps. Its holders have it for a short time.
const LOOKS: u32 = 256;
/// For how many of them a thread that comes later leaves it to those who wait: or else one that
/// calls again and again, as those do who poll, would have it each time.
const LOOKS_LEFT_TO_OTHERS: u32 = 8;

impl<T> Locked<T> {
    #[cold]
    #[inline(never)]
    fn enter_in_turn(&self) -> MutexGuard<'_, T> {
        let others = self.wanted.fetch_add(1, Relaxed);
        let from = if others > 0 { LOOKS_LEFT_TO_OTHERS } else { 0 };
        let found = (0..LOOKS).find_map(|look| {
            std::hint::spin_loop();
            (look >= from).then(|| self.value.try_lock()).flatten()
        });
        let value = found.unwrap_or_else(|| self.value.lock());
        self.wanted.fetch_sub(1, Relaxed);
        value
    }
}

impl<T: 'static> Shared<T> for Arc<Locked<T>> {
    type Guard<'a> = MutexGuard<'a, T>;

    fn new(value: T) -> Self {
        Arc::new(Locked {
            value: Mutex::new(value),
            wanted: AtomicU32::new(0),
            changed: Condvar::new(),
        })
    }

    #[inline]
    fn enter(&self) -> MutexGuard<'_, T> {
        match self.wanted.load(Relaxed) {
            0 => self.value.try_lock(),
            _ => None,
        }
        .unwrap_or_else(|| self.enter_in_turn())
    }

    fn try_enter(&self) -> Option<MutexGuard<'_, T>> {
        self.value.try_lock()
    }

    fn into_inner(self) -> Result<T, Self> {
        Arc::try_unwrap(self).map(|locked| locked.value.into_inner())
    }

    fn let_others<R>(guard: &mut MutexGuard<'_, T>, act: impl FnOnce() -> R) -> R {
        MutexGuard::unlocked_fair(guard, act)
    }

    fn await_others(&self, guard: &mut MutexGuard<'_, T>, span: Option<Duration>) {
        match span.and_then(|span| Instant::now().checked_add(span)) {
            Some(until) => drop(self.changed.wait_until(guard, until)),
            None => self.changed.wait(guard),
        }
    }

    fn notify(&self) {
        self.changed.notify_all();
    }
}
