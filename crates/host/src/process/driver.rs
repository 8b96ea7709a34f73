//! The part of the process host that whoever drives the interface has: events of the
//! registry, and sleeping until a peer rings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use hamlyn_link::pair::PairLink;
use hamlyn_ring::doorbell::SleepWord;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

use super::{Interior, clock, exchange};
use crate::{Driver, Event, HostError};

/// How long we sleep at most when peers may have missed that we sleep.
const UNANNOUNCED_SLEEP_NS: u64 = 1_000_000;

/// See the module.
pub struct ProcessDriver {
    interior: Arc<Interior>,
    word: SleepWord,
    /// The last announcement may not have reached every sender.
    unannounced: bool,
    /// Nobody was asked to ring since rings were last taken.
    rings_taken: bool,
}

impl ProcessDriver {
    pub(super) fn new(interior: Arc<Interior>, word: SleepWord) -> Self {
        Self {
            interior,
            word,
            unannounced: false,
            rings_taken: true,
        }
    }

    fn take_rings(&mut self) -> Result<(), HostError> {
        self.rings_taken = true;
        match self.interior.registry.take_rings() {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(exchange::system("epoll_wait", 0, errno)),
        }
    }
}

impl Driver for ProcessDriver {
    type Link = PairLink;

    #[inline]
    fn attention(&self) -> &Arc<AtomicBool> {
        self.interior.registry.attention()
    }

    fn next_event(&mut self) -> Option<Event<PairLink>> {
        self.interior.registry.next_event()
    }

    fn prepare_sleep(&mut self) {
        self.rings_taken = false;
        let lender = &self.interior.lender;
        let mut unannounced = false;
        self.word.prepare(|| {
            // For those that pass a barrier of their own, and for our own next look.
            fence(Ordering::SeqCst);
            if lender.takes_barriers() {
                // For those that do not.
                unannounced = membarrier(MembarrierCommand::GlobalExpedited).is_err();
            }
        });
        self.unannounced = unannounced;
    }

    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        if self.attention().load(Ordering::Relaxed) {
            return Ok(());
        }
        let deadline_ns = if self.unannounced {
            let soon_ns = clock::now_ns().saturating_add(UNANNOUNCED_SLEEP_NS);
            Some(deadline_ns.map_or(soon_ns, |deadline_ns| deadline_ns.min(soon_ns)))
        } else {
            deadline_ns
        };
        let bells = self.interior.registry.bells();
        match clock::wait_once(bells, deadline_ns) {
            Ok(_) | Err(Errno::INTR) => self.take_rings(),
            Err(errno) => Err(exchange::system("ppoll", 0, errno)),
        }
    }

    fn end_sleep(&mut self) {
        self.word.end();
        if !self.rings_taken {
            // What cannot be taken now only makes the next sleep short.
            let _ = self.take_rings();
        }
    }

    fn alarm(&self) -> Box<dyn Fn() + Send + Sync> {
        let interior = Arc::clone(&self.interior);
        Box::new(move || interior.registry.alarm())
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn spin_ns(&self) -> u64 {
        self.interior.settings.spin_ns
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.interior.registry.bells())
    }
}
