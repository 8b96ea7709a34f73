//! A bell between two threads of a process: one waits, the other rings if it does.
//!
//! The waiting side announces itself, looks once more at what it waits for, and only then
//! sleeps; the ringing side changes that first and then looks whether anybody waits. Both pass a full barrier
//! in between, so at least one of them sees the other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use crate::HostError;
use crate::process::clock;

/// See the module.
#[derive(Debug)]
pub struct Bell {
    waits: AtomicBool,
    event: OwnedFd,
}

impl Bell {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            waits: AtomicBool::new(false),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Announces that this side is about to wait. Afterwards it must look once more.
    pub fn prepare(&self) {
        self.waits.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether the other side waits, or is about to.
    pub fn is_awaited(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// Waits until the bell is rung or `deadline_ns` passes. May return early.
    pub fn wait(&self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        match clock::wait_once(&self.event, deadline_ns) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(HostError::System {
                call: "ppoll",
                errno: crate::Errno(errno.raw_os_error()),
            }),
        }
    }

    /// Ends what [`Bell::prepare`] began.
    pub fn end(&self) {
        self.waits.store(false, Ordering::Relaxed);
        // Nothing to read is no error: nobody rang.
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }

    /// Rings if the other side waits, or is about to. To be called after what it waits for was changed.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.waits.load(Ordering::Relaxed) {
            self.ring_now();
        }
    }

    #[cold]
    fn ring_now(&self) {
        // Once for each wait.
        if self.waits.swap(false, Ordering::Relaxed) {
            // It can only fail when 2^64 rings are waiting.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// Readable when rung.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
