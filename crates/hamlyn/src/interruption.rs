//! A manager in a signal handler of its own thread.

use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;

use crate::manager::Manager;

/// A signal handler has the manager ([`Manager::interrupt`]). Until it is dropped, calls of the
/// manager leave to later calls all that allocates or frees memory: peers that came or went, links
/// that ended. So a handler that has interrupted the allocator may make them.
///
/// That holds for a manager of one thread whose [`Strategy`](crate::Strategy) is `proc`, for looks
/// at ports that memory was reserved for ([`Interface::reserve_for_interrupts`]), for messages to
/// ports of this host, and for [`Interface::listen`]. Other calls and end points allocate.
///
/// [`Interface::reserve_for_interrupts`]: crate::Interface::reserve_for_interrupts
/// [`Interface::listen`]: crate::Interface::listen
#[derive(Debug)]
pub struct Interruption<'a, H: Host = ProcessHost> {
    manager: &'a Manager<H>,
}

impl<H: Host> Manager<H> {
    /// Begins the work of a signal handler that has interrupted this thread. Nothing if a call of
    /// the manager was interrupted, which has it in hand: try again when that is over. Nothing in a
    /// forked child. Does not block or allocate.
    pub fn interrupt(&self) -> Option<Interruption<'_, H>> {
        self.try_session()?.set_interrupt(true);
        Some(Interruption { manager: self })
    }
}

impl<H: Host> Drop for Interruption<'_, H> {
    fn drop(&mut self) {
        // A handler that panicked in a call has let go of it.
        if let Some(mut session) = self.manager.try_session() {
            session.set_interrupt(false);
        }
    }
}
