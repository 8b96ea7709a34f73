//! What one thread of a process wakes another with, wherever that sleeps: at a word of this process,
//! or at a descriptor.
//!
//! As with the words of links ([`hamlyn_ring::wake`]), nobody says which it is: the descriptor is rung if nobody was woken
//! at the word.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::thread::futex;

/// A descriptor to ring.
#[derive(Debug)]
pub(crate) struct Event(Arc<OwnedFd>);

impl Event {
    pub(crate) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(|event| Self(Arc::new(event)))
    }

    pub(crate) fn ring(&self) {
        // It can only fail when 2^64 rings are waiting.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Readable when rung, until [`Event::clear`].
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The same, to be kept.
    pub(crate) fn shared(&self) -> &Arc<OwnedFd> {
        &self.0
    }

    /// Takes all rings.
    pub(crate) fn clear(&self) {
        // Nothing to read is no error: nobody rang.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Alarm {
    rings: AtomicU32,
    pub(crate) event: Event,
}

impl Alarm {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            rings: AtomicU32::new(0),
            event: Event::new()?,
        })
    }

    /// Ends the sleep of whoever sleeps here, or keeps it from beginning. To be called after what
    /// the sleeper is to find was stored.
    pub(crate) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::Release);
        if !matches!(futex::wake(&self.rings, futex::Flags::PRIVATE, 1), Ok(1..)) {
            self.event.ring();
        }
    }

    /// The word to sleep at.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.rings
    }

    /// How often it was rung: to be noted before the last look, and compared when falling asleep.
    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::Acquire)
    }
}
