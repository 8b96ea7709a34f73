//! How one end of a pair link wakes the other.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_ring::Errno;
use hamlyn_ring::forks::Uninherited;
use hamlyn_ring::wake::WakeWord;
use rustix::net::{SendFlags, send};

/// Wakes the peer.
pub(super) struct Doorbell {
    /// At which it sleeps, as a rule.
    pub(super) word: WakeWord,
    pub(super) notifier: Notifier,
    /// The peer waits to be rung for, but that could not be done.
    is_owed: AtomicBool,
}

/// What a sleeper hears that does not wait at the word.
pub(super) enum Notifier {
    /// A socket to it.
    Socket(Uninherited),
    /// Of an interface that is linked to itself: an eventfd.
    EventFd(OwnedFd),
}

impl Doorbell {
    pub(super) fn new(word: WakeWord, notifier: Notifier) -> Self {
        Self {
            word,
            notifier,
            is_owed: AtomicBool::new(false),
        }
    }

    /// Rings. False if that failed; then the receiving end tries again whenever it returns credit:
    /// at each look at the link that finds nothing, and before a sleep.
    #[cold]
    #[inline(never)]
    pub(super) fn ring(&self) -> bool {
        // Before ringing: the other half, in another thread, may find that its own ring fails
        // meanwhile.
        self.is_owed.swap(false, Ordering::AcqRel);
        let is_rung = self.try_ring();
        if !is_rung {
            self.is_owed.store(true, Ordering::Release);
        }
        is_rung
    }

    #[inline(always)]
    pub(super) fn is_owed(&self) -> bool {
        self.is_owed.load(Ordering::Relaxed)
    }

    fn try_ring(&self) -> bool {
        if self.word.ring() {
            return true;
        }
        loop {
            let rung = match &self.notifier {
                Notifier::Socket(socket) => {
                    send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
                }
                Notifier::EventFd(event) => rustix::io::write(event, &1_u64.to_ne_bytes()),
            };
            match rung {
                Err(Errno::INTR) => {}
                // A full one has rings that were not yet heard: the peer will wake.
                // A closed one has nobody behind it.
                Ok(_) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => {
                    return true;
                }
                Err(_) => return false,
            }
        }
    }
}
