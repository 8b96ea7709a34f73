//! The part of the process host for the thread that drives the interface: events of the
//! registry, and sleeping until a peer wakes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hamlyn_link::either::EitherLink;
use hamlyn_ring::forks::Birth;
use hamlyn_ring::wake::WaitSet;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use super::registry::watch_udp;
use super::{Interior, clock};
use crate::{Driver, Event, HostError};

/// See the module.
pub struct ProcessDriver {
    interior: Arc<Interior>,
    /// Peers may have rung since rings were last taken.
    rung: bool,
    /// The words at which to sleep.
    wait_set: WaitSet,
    /// All of them are there, so descriptors need not be waited at.
    has_words: bool,
    /// The system does not let us wait at words.
    no_words: bool,
    /// The waker's count at the last check.
    wakes_seen: u32,
    /// A datagram at the endpoint ends a sleep.
    polls_udp: bool,
    /// The program sleeps at the endpoint, as that was told.
    is_at_endpoint: bool,
    /// The process that opened the interface.
    birth: Birth,
}

impl ProcessDriver {
    pub(super) fn new(interior: Arc<Interior>) -> Self {
        Self {
            interior,
            rung: false,
            wait_set: WaitSet::new(),
            has_words: false,
            no_words: false,
            wakes_seen: 0,
            polls_udp: false,
            is_at_endpoint: false,
            birth: Birth::here(),
        }
    }

    /// A datagram at the endpoint is to end the sleep that begins now. When the endpoint's timers
    /// are due, which the thread that wakes then runs.
    fn watch_endpoint(&mut self) -> Result<Option<u64>, HostError> {
        let interior = &self.interior;
        let Some(network) = &interior.network else {
            return Ok(None);
        };
        // Not those that are only brought to their end: the program polls none of them.
        let has_links = interior.registry.has_remote_links();
        if has_links != self.polls_udp {
            let doorbells = interior.registry.doorbells().as_fd();
            let heard = watch_udp(doorbells, &network.endpoint, has_links);
            heard.map_err(|errno| HostError::system("epoll_ctl", 0, errno))?;
            self.polls_udp = has_links;
        }
        if !has_links {
            // The endpoint driver polls it.
            return Ok(None);
        }
        network.endpoint.note_asleep(true);
        self.is_at_endpoint = true;
        if network.endpoint.is_untold() {
            // Who took it found nobody asleep.
            return Ok(Some(0));
        }
        Ok(network.endpoint.deadline_ns())
    }

    /// Ends what [`ProcessDriver::watch_endpoint`] began.
    fn leave_endpoint(&mut self) {
        if std::mem::take(&mut self.is_at_endpoint)
            && let Some(network) = &self.interior.network
        {
            network.endpoint.note_asleep(false);
        }
    }

    fn drain_doorbells(&self) -> Result<(), HostError> {
        match self.interior.registry.drain_doorbells() {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(HostError::system("epoll_wait", 0, errno)),
        }
    }

    fn sleep_here(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        if self.has_words {
            let own = self.interior.registry.waker().word();
            match self.wait_set.sleep(own, self.wakes_seen, deadline_ns) {
                Ok(()) => return Ok(()),
                // Before Linux 5.16, or in a sandbox.
                Err(Errno::NOSYS | Errno::PERM) => self.no_words = true,
                // A peer may have made the pages of its word unusable.
                Err(_) => {}
            }
        }
        // Peers found nobody at a word, so they ring the doorbell socket.
        let doorbells = self.interior.registry.doorbells().as_fd();
        // What was rung for is looked at first; the rings themselves are taken before the next
        // sleep.
        match clock::wait_for_events(doorbells, deadline_ns) {
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
            let _ = self.drain_doorbells();
        }
        if let Some(network) = &self.interior.network {
            network.endpoint.listen();
        }
        // The sleep is announced after this, so all rings for it change these.
        let registry = &self.interior.registry;
        self.wait_set.clear();
        self.wakes_seen = registry.waker().wakes();
        self.has_words = !self.no_words && registry.add_words(&mut self.wait_set);
    }

    fn pass_barrier(&mut self) -> Option<u64> {
        self.interior.pass_barrier()
    }

    fn sleep(&mut self, deadline_ns: Option<u64>) -> Result<(), HostError> {
        self.birth.check()?;
        if self.attention().load(Ordering::Relaxed) {
            return Ok(());
        }
        let wants_ns = self.watch_endpoint()?;
        let deadline_ns = deadline_ns.into_iter().chain(wants_ns).min();
        let slept = self.sleep_here(deadline_ns);
        self.leave_endpoint();
        slept
    }

    fn sleep_elsewhere(&mut self) -> Option<u64> {
        // If the system has no room for the watch, the endpoint driver polls, and wakes the
        // sleeper.
        self.watch_endpoint().unwrap_or_default()
    }

    fn end_sleep(&mut self) {
        self.leave_endpoint();
        if let Some(network) = &self.interior.network {
            network.endpoint.end_listening();
        }
        self.wait_set.clear();
        self.rung = true;
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let interior = Arc::clone(&self.interior);
        Box::new(move || interior.registry.waker().wake())
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn descriptor(&self) -> Option<&Arc<OwnedFd>> {
        Some(self.interior.registry.doorbells())
    }

    fn take_rings(&mut self) {
        // Those of the sleep before are among them; others may follow.
        self.rung = true;
        // A ring that cannot be taken now is taken before the next sleep.
        let _ = self.drain_doorbells();
    }

    fn each_doorbell(&self, act: &mut dyn FnMut(BorrowedFd<'_>)) {
        self.interior.registry.each_doorbell(act);
    }

    fn park(&mut self, span_ns: u64) {
        // Each look has paused for itself.
        if span_ns > 0 {
            std::thread::park_timeout(Duration::from_nanos(span_ns));
        }
    }
}
