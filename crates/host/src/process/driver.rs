//! The part of the process host that whoever drives the interface has: events of the
//! registry, and sleeping until a peer rings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use hamlyn_link::either::EitherLink;
use hamlyn_ring::wake::Lookout;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

use super::registry::watch_udp;
use super::{Interior, clock};
use crate::{Driver, Event, HostError};

/// How long we sleep at most when peers may have missed that we sleep.
const UNANNOUNCED_SLEEP_NS: u64 = 1_000_000;

/// See the module.
pub struct ProcessDriver {
    interior: Arc<Interior>,
    /// The last announcement may not have reached every sender.
    unannounced: bool,
    /// Peers may have rung since rings were last taken.
    rung: bool,
    /// The words at which to sleep.
    lookout: Lookout,
    /// All of them are there, so descriptors need not be waited at.
    has_words: bool,
    /// The system does not let us wait at words.
    no_words: bool,
    /// How often the alarm had been rung.
    alarm_rings: u32,
    /// What comes to the wire ends a sleep.
    hears_wire: bool,
    /// The process that opened the interface.
    process: u32,
}

impl ProcessDriver {
    pub(super) fn new(interior: Arc<Interior>) -> Self {
        Self {
            interior,
            unannounced: false,
            rung: false,
            lookout: Lookout::new(),
            has_words: false,
            no_words: false,
            alarm_rings: 0,
            hears_wire: false,
            process: std::process::id(),
        }
    }

    fn take_rings(&self) -> Result<(), HostError> {
        match self.interior.registry.take_rings() {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(HostError::system("epoll_wait", 0, errno)),
        }
    }

    fn sleep_here(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        let deadline_ns = deadline_ns.into_iter().chain(self.sleep_until_ns()).min();
        if self.has_words {
            let own = self.interior.registry.alarm().word();
            match self.lookout.sleep(own, self.alarm_rings, deadline_ns) {
                Ok(()) => return Ok(()),
                // Before Linux 5.16, or in a sandbox.
                Err(Errno::NOSYS | Errno::PERM) => self.no_words = true,
                // A peer may have made the pages of its word unusable.
                Err(_) => {}
            }
        }
        // Nobody was found at a word, so whoever rings does so here.
        let bells = self.interior.registry.bells().as_fd();
        // What was rung for is looked at first; the rings themselves are taken before the next sleep.
        match clock::wait_for_events(bells, deadline_ns) {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(HostError::system("epoll_wait", 0, errno)),
        }
    }
}

impl Driver for ProcessDriver {
    type Link = EitherLink;

    #[inline]
    fn attention(&self) -> &Arc<AtomicBool> {
        self.interior.registry.attention()
    }

    fn next_event(&mut self) -> Option<Event<EitherLink>> {
        self.interior.registry.next_event()
    }

    fn prepare_sleep(&mut self) {
        if self.rung {
            // Of the sleep before this one. What cannot be taken now only makes this one short.
            self.rung = false;
            let _ = self.take_rings();
        }
        // The sleep is announced after this, so all rings for it change these.
        let registry = &self.interior.registry;
        self.lookout.clear();
        self.alarm_rings = registry.alarm().rings();
        self.has_words = !self.no_words && registry.add_words(&mut self.lookout);
    }

    fn pass_barrier(&mut self) {
        // For those that pass a barrier of their own, and for our own next look.
        fence(Ordering::SeqCst);
        // For those that do not, if there are any: it interrupts every processor that runs a process like us.
        let interior = &self.interior;
        self.unannounced = interior.lender.takes_barriers()
            && interior.registry.has_rings()
            && membarrier(MembarrierCommand::GlobalExpedited).is_err();
    }

    fn sleep_until_ns(&self) -> Option<u64> {
        self.unannounced
            .then(|| clock::now_ns().saturating_add(UNANNOUNCED_SLEEP_NS))
    }

    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        if self.process != std::process::id() {
            return Err(HostError::Forked);
        }
        if self.attention().load(Ordering::Relaxed) {
            return Ok(());
        }
        let interior = Arc::clone(&self.interior);
        let Some(network) = &interior.network else {
            return self.sleep_here(deadline_ns);
        };
        let has_links = network.endpoint.has_links();
        if has_links != self.hears_wire {
            let bells = interior.registry.bells().as_fd();
            let heard = watch_udp(bells, &network.endpoint, has_links);
            heard.map_err(|errno| HostError::system("epoll_ctl", 0, errno))?;
            self.hears_wire = has_links;
        }
        if !has_links {
            // The keeper looks after it.
            return self.sleep_here(deadline_ns);
        }
        // What the wire wants at a time, whoever wakes for it sees to.
        network.endpoint.note_asleep(true);
        let wants_ns = network.endpoint.deadline_ns();
        let deadline_ns = deadline_ns.into_iter().chain(wants_ns).min();
        let slept = self.sleep_here(deadline_ns);
        network.endpoint.note_asleep(false);
        slept
    }

    fn end_sleep(&mut self) {
        self.lookout.clear();
        self.rung = true;
    }
    fn alarm(&self) -> Box<dyn Fn() + Send + Sync> {
        let interior = Arc::clone(&self.interior);
        Box::new(move || interior.registry.alarm().ring())
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        Some(self.interior.registry.bells())
    }

    fn stand_back(&mut self, span_ns: u64) {
        // Each look has paused for itself.
        if span_ns > 0 {
            std::thread::park_timeout(Duration::from_nanos(span_ns));
        }
    }
}
