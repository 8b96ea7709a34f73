//! A waiter: one thread of a process waits, another wakes it.
//!
//! The waiting side announces itself, looks once more at what it waits for, and only then sleeps;
//! the waking side changes that first and then looks whether anybody waits. Both pass a full
//! barrier in between, so at least one of them sees the other.
//!
//! A thread sleeps at a futex, or at a descriptor. Where there are no threads, the host says how
//! one sleeps ([`Parker`]).

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::HostError;
use crate::process::clock;
use crate::waker::EventFd;

/// Nobody waits.
const IDLE: u32 = 0;
/// Somebody waits, or is about to, and was not woken yet.
const AWAITED: u32 = 1;

/// How one sleeps where there are no threads.
pub trait Parker: Send + Sync {
    /// Sleeps until [`Parker::wake`], or `deadline_ns` of the host's clock. May end early.
    fn sleep(&self, deadline_ns: Option<u64>);

    /// Ends the sleep, if there is one.
    fn wake(&self);
}

/// Where the waiting side sleeps.
enum Backend {
    /// At the state, which is a futex; or at this descriptor. Only in the process with that
    /// identifier.
    Futex(EventFd, u32),
    Parker(Box<dyn Parker>),
}

/// See the module.
pub struct Waiter {
    state: AtomicU32,
    backend: Backend,
    /// The last wait ended at the futex, so the descriptor was not signalled. Only the waiting side
    /// uses this.
    woken: AtomicBool,
}

impl Waiter {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self::at(Backend::Futex(
            EventFd::new()?,
            std::process::id(),
        )))
    }

    /// A waiter that sleeps in another way than threads do.
    pub fn elsewhere(rest: Box<dyn Parker>) -> Self {
        Self::at(Backend::Parker(rest))
    }

    fn at(backend: Backend) -> Self {
        Self {
            state: AtomicU32::new(IDLE),
            backend,
            woken: AtomicBool::new(false),
        }
    }

    /// Announces that this side is about to wait. Afterwards it must look once more.
    pub fn prepare(&self) {
        self.woken.store(false, Ordering::Relaxed);
        self.state.store(AWAITED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether the other side waits, or is about to.
    pub fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Relaxed) == AWAITED
    }

    /// Waits until it is woken or `deadline_ns` passes. May return early.
    pub fn wait(&self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        match &self.backend {
            Backend::Parker(rest) => {
                if self.is_awaited() {
                    rest.sleep(deadline_ns);
                }
                return Ok(());
            }
            // The thread that wakes is in the other process.
            Backend::Futex(_, process) if *process != std::process::id() => {
                return Err(HostError::Forked);
            }
            Backend::Futex(..) => {}
        }
        let until = deadline_ns.map(clock::instant);
        let anybody = NonZeroU32::MAX;
        let private = futex::Flags::PRIVATE;
        match futex::wait_bitset(&self.state, private, AWAITED, until.as_ref(), anybody) {
            Ok(()) => {
                self.woken.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(errno) => Err(HostError::system("futex", 0, errno)),
        }
    }

    /// Ends what [`Waiter::prepare`] began.
    pub fn end(&self) {
        self.state.store(IDLE, Ordering::Relaxed);
        if let Backend::Futex(event, _) = &self.backend
            && !self.woken.load(Ordering::Relaxed)
        {
            event.clear();
        }
    }

    /// Wakes the other side if it waits, or is about to. To be called after what it waits for was
    /// changed.
    #[inline]
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.is_awaited() {
            self.wake_now();
        }
    }

    #[cold]
    fn wake_now(&self) {
        // Once for each wait.
        if self.state.swap(IDLE, Ordering::Release) != AWAITED {
            return;
        }
        match &self.backend {
            Backend::Futex(event, _) => {
                if !matches!(futex::wake(&self.state, futex::Flags::PRIVATE, 1), Ok(1..)) {
                    // It waits at the descriptor, or is only about to wait.
                    event.signal();
                }
            }
            Backend::Parker(rest) => rest.wake(),
        }
    }

    /// Readable when woken. None where there are no descriptors.
    pub fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        match &self.backend {
            Backend::Futex(event, _) => Some(event.shared()),
            Backend::Parker(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
