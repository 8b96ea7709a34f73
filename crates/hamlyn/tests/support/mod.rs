//! What the tests of the library have in common.

#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod actor;
pub(crate) mod by_hand;
pub(crate) mod control_group;
pub(crate) mod counted_tasks;
pub(crate) mod raw_link;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hamlyn::engine::memory::LinkId;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{Event, Host, Manager, ManagerOptions, PeerLost, Wait};
use rustix::time::{ClockId, clock_gettime};

/// How long a test waits for what must happen; far longer than it takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// The same for calls of the library.
pub(crate) const LONG: Wait = Wait::For(TIMEOUT);

/// Stops the threads that read the flag, however the test ends.
pub(crate) struct StopOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A namespace that no other test uses.
pub(crate) fn namespace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!(
        "l{}-{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    )
}

/// The time of a processor that this thread has used.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How many descriptors this process has open, and one more: the directory in which they are
/// counted.
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

pub(crate) fn open(namespace: &str) -> Manager<ProcessHost> {
    let options = Options::default().in_namespace(namespace);
    hamlyn::open_with(options, ManagerOptions::default()).unwrap()
}

/// A manager that several threads use.
pub(crate) fn open_shared(namespace: &str) -> Manager<ProcessHost<AnyThread>> {
    let options = Options::default().in_namespace(namespace);
    hamlyn::open_shared(options, ManagerOptions::default()).unwrap()
}

/// The next peer that was lost. Nothing if none was in time.
pub(crate) fn next_loss<H: Host>(manager: &Manager<H>, wait: Wait) -> Option<PeerLost> {
    loop {
        if let Event::PeerLeft { peer, end } = manager.next_event(wait).unwrap()? {
            let peer = peer.interface;
            return Some(PeerLost { peer, end });
        }
    }
}

/// Waits for the link to an interface.
pub(crate) fn link_to(manager: &Manager<ProcessHost>, interface: u64) -> LinkId {
    until("a link", || {
        manager.session().poll();
        let session = manager.session();
        let mut peers = session.peers();
        let found = peers.find(|(_, peer)| peer.destination.interface == interface);
        found.map(|(link, _)| link)
    })
}

/// Repeats `look` until it finds something.
pub(crate) fn until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < TIMEOUT, "{what}: it did not come");
        std::thread::yield_now();
    }
}

/// Numbers that are the same each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// Takes about as long as asked, without sleeping.
    pub(crate) fn dawdle(&mut self, at_most: Duration) {
        let span = Duration::from_nanos(self.below(at_most.as_nanos() as u64 + 1));
        let begun = Instant::now();
        while begun.elapsed() < span {
            std::hint::spin_loop();
        }
    }
}
