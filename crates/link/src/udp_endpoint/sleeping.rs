//! Threads that sleep at the endpoint's socket, and the host's thread that polls in their stead,
//! are told of what others do there.

use std::sync::atomic::Ordering;

use super::UdpEndpoint;
use crate::udp::datagram_socket::DatagramSocket;

impl<S: DatagramSocket> UdpEndpoint<S> {
    /// A link has room again, or something came back over it.
    pub(crate) fn signal(&self) {
        self.signalled.store(true, Ordering::Relaxed);
        self.tell_listener();
    }

    /// What a thread that sleeps at the socket may wait for is no longer there: it was taken here.
    pub(super) fn tell_listener(&self) {
        if self.listens.load(Ordering::SeqCst)
            && !self.untold.swap(true, Ordering::SeqCst)
            && self.is_asleep()
        {
            (self.notify)();
        }
    }

    /// A thread is about to sleep at the socket: what other threads take from there from now on, it
    /// is to be told of. To be called before it looks for the last time.
    pub fn listen(&self) {
        self.untold.store(false, Ordering::SeqCst);
        self.listens.store(true, Ordering::SeqCst);
    }

    /// That thread is awake.
    pub fn end_listening(&self) {
        self.listens.store(false, Ordering::SeqCst);
    }

    /// Whether another thread has taken something since [`UdpEndpoint::listen`].
    pub fn is_untold(&self) -> bool {
        self.untold.load(Ordering::SeqCst)
    }

    /// The same, once: who asks tells the thread that sleeps.
    pub fn take_untold(&self) -> bool {
        self.is_untold() && self.untold.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn report_end(&self) {
        (self.notify)();
    }

    /// Somebody wants to be looked after at that time.
    pub(crate) fn request_wakeup(&self, deadline_ns: u64) {
        let before_ns = self.deadline_ns.fetch_min(deadline_ns, Ordering::SeqCst);
        if deadline_ns < before_ns
            && (self.is_asleep() || deadline_ns < self.driven_until_ns.load(Ordering::SeqCst))
        {
            // The sleeper does not know of it.
            (self.notify)();
        }
    }

    /// The thread that polls in the application's stead is about to sleep, until the deadline that
    /// it is told; it is notified of an earlier one, until it calls
    /// [`UdpEndpoint::end_driver_sleep`].
    pub fn begin_driver_sleep(&self) -> Option<u64> {
        loop {
            let deadline_ns = self.deadline_ns.load(Ordering::SeqCst);
            self.driven_until_ns.store(deadline_ns, Ordering::SeqCst);
            // One that came in between was told to nobody.
            if self.deadline_ns.load(Ordering::SeqCst) >= deadline_ns {
                return (deadline_ns != u64::MAX).then_some(deadline_ns);
            }
        }
    }

    /// That thread is awake, or polls no more.
    pub fn end_driver_sleep(&self) {
        self.driven_until_ns.store(0, Ordering::SeqCst);
    }

    /// The thread that sleeps at the socket notifies when it is awake, once. Returns whether it
    /// sleeps still.
    pub fn ask_for_waking(&self) -> bool {
        self.tells_waking.store(true, Ordering::SeqCst);
        self.is_asleep()
    }

    /// Whether the polling thread sleeps at the socket.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// Notes that the polling thread is about to sleep at the socket, before it asks for the
    /// deadline; or that it is awake.
    pub fn note_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
        if !asleep
            && self.tells_waking.load(Ordering::SeqCst)
            && self.tells_waking.swap(false, Ordering::SeqCst)
        {
            (self.notify)();
        }
    }
}
