//! A waker: one thread of a process wakes another with it, wherever that sleeps: at a word of this
//! process, or at a descriptor.
//!
//! As with the words of links ([`hamlyn_ring::wake`]), the waker does not know which: it signals
//! the descriptor if nobody was woken at the word.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::thread::futex;

/// An eventfd.
#[derive(Debug)]
pub(crate) struct EventFd(Arc<OwnedFd>);

impl EventFd {
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(|event| Self(Arc::new(event)))
    }

    pub(crate) fn signal(&self) {
        // It can only fail when 2^64 signals are waiting.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Readable when signalled, until [`EventFd::clear`].
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The same, to be kept.
    pub(crate) fn shared(&self) -> &Arc<OwnedFd> {
        &self.0
    }

    /// Clears it.
    pub(crate) fn clear(&self) {
        // Nothing to read is no error.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Waker {
    wakes: AtomicU32,
    pub(crate) event: EventFd,
}

impl Waker {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            wakes: AtomicU32::new(0),
            event: EventFd::new()?,
        })
    }

    /// Ends the sleep of the thread that sleeps here, or prevents it. To be called after what
    /// the sleeper is to find was stored.
    pub(crate) fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Release);
        if !matches!(futex::wake(&self.wakes, futex::Flags::PRIVATE, 1), Ok(1..)) {
            self.event.signal();
        }
    }

    /// The word to sleep at.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.wakes
    }

    /// How often it was called: to be noted before the last poll, and compared when falling asleep.
    pub(crate) fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Acquire)
    }
}
