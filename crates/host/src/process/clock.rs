//! The host's clock, and waiting for a descriptor until an instant of it.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use rustix::time::{ClockId, clock_gettime};

/// Time since the system started, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// The span from now until `deadline_ns`, zero if that has passed.
pub(crate) fn until(deadline_ns: u64) -> Timespec {
    let span = deadline_ns.saturating_sub(now_ns());
    Timespec {
        tv_sec: (span / 1_000_000_000) as i64,
        tv_nsec: (span % 1_000_000_000) as i64,
    }
}

/// That instant, for calls that take one.
pub(crate) fn instant(deadline_ns: u64) -> Timespec {
    Timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as i64,
        tv_nsec: (deadline_ns % 1_000_000_000) as i64,
    }
}

/// Waits until `descriptor` has something to read, or its other end closed.
/// False when the deadline passed before.
pub(crate) fn wait_readable(
    descriptor: impl AsFd,
    deadline_ns: u64,
) -> Result<bool, rustix::io::Errno> {
    loop {
        match wait_once(&descriptor, Some(deadline_ns)) {
            Err(rustix::io::Errno::INTR) => {}
            waited => return waited,
        }
    }
}

/// The same, but a signal ends it, too.
pub(crate) fn wait_once(
    descriptor: impl AsFd,
    deadline_ns: Option<u64>,
) -> Result<bool, rustix::io::Errno> {
    let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
    let span = deadline_ns.map(until);
    rustix::event::poll(&mut polled, span.as_ref()).map(|ready| ready > 0)
}

/// Sleeps until something that an epoll set watches comes, or the deadline passes.
pub(crate) fn wait_for_events(
    set: impl AsFd,
    deadline_ns: Option<u64>,
) -> Result<(), rustix::io::Errno> {
    // One is enough to wake; which it is, is looked at later.
    let mut room = [const { std::mem::MaybeUninit::uninit() }; 1];
    let span = deadline_ns.map(until);
    rustix::event::epoll::wait(set, &mut room, span.as_ref()).map(|_| ())
}

/// Whether `descriptor` reports any of `flags` at once.
pub(crate) fn shows(descriptor: impl AsFd, flags: PollFlags) -> bool {
    let mut polled = [PollFd::new(&descriptor, flags)];
    let at_once = Timespec::default();
    let polled_one = rustix::event::poll(&mut polled, Some(&at_once)).is_ok();
    polled_one && polled[0].revents().intersects(flags)
}
