//! What an endpoint over a socket of the system can do besides: be opened at an address, watched by
//! its descriptor, and drained by a thread that sleeps at it. A simulated socket has no descriptor.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::{UdpEndpoint, lock};
use crate::udp::socket::{CallFailed, Socket, SocketSettings};

impl UdpEndpoint {
    /// An endpoint at this address; port 0 lets the system choose. Otherwise as
    /// [`UdpEndpoint::over`].
    pub fn open(
        at: SocketAddr,
        settings: &SocketSettings,
        clock: fn() -> u64,
        notify: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, CallFailed> {
        let socket = Socket::bind(at, settings)?;
        socket.drain_reports();
        // Without stamps what came counts from when it was read.
        socket.stamp_arrivals();
        Ok(Self::over(socket, clock, notify))
    }

    /// Its socket, to be watched.
    pub fn with_socket<R>(&self, watch: impl FnOnce(BorrowedFd<'_>) -> R) -> R {
        watch(lock(&self.reception).socket.as_fd())
    }

    /// Drains all links that the application has dropped, as far as that can be done until then:
    /// their frames are acknowledged, or given up. Blocks.
    pub fn drain(&self, until_ns: u64) {
        self.request_wakeup(0);
        loop {
            self.poll();
            let now_ns = self.now_ns();
            if now_ns >= until_ns || !self.has_links() {
                return;
            }
            let wake_ns = self.deadline_ns().unwrap_or(until_ns).min(until_ns);
            let span_ns = wake_ns.saturating_sub(now_ns);
            let span = Timespec {
                tv_sec: (span_ns / 1_000_000_000) as i64,
                tv_nsec: (span_ns % 1_000_000_000) as i64,
            };
            self.with_socket(|socket| {
                let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
                // If it cannot wait, it looks again at once.
                let _ = rustix::event::poll(&mut polled, Some(&span));
            });
        }
    }
}
