//! A session receives, and waits for a message.

use hamlyn_engine::notification::Notification;
use hamlyn_host::{Host, HostError};

use super::Session;
use crate::completions::{Completion, CompletionQueue};
use crate::error::ReceiveError;
use crate::inlet::Inlet;
use crate::interface::Outbox;
use crate::port::PortMessage;
use crate::queue::Queue;
use crate::wait::Wait;

impl<H: Host> Session<'_, H> {
    /// Like [`Interface::poll`]; besides, it does what is left to do for end points that were
    /// dropped while the manager was in hand, if there are any: so their peers hear of it.
    /// Allocates only for that.
    ///
    /// [`Interface::poll`]: crate::Interface::poll
    #[inline]
    pub fn poll(&mut self) -> usize {
        if self.is_forked() {
            return 0;
        }
        self.core.reap();
        self.core.interface.poll()
    }

    /// Waits for a message (`h_rcv_block`). Nothing if none came in time.
    pub fn rcv_block(
        &mut self,
        queue: &mut Queue,
        wait: Wait,
    ) -> Result<Option<Notification>, ReceiveError> {
        self.check()?;
        self.wait_for(wait, |session| Ok(session.next_notification(queue)?))
    }

    /// Waits for a completion. Nothing if none came in time. See [`Interface::next_completion`].
    ///
    /// [`Interface::next_completion`]: crate::Interface::next_completion
    pub fn await_completion(
        &mut self,
        queue: &CompletionQueue,
        wait: Wait,
    ) -> Result<Option<Completion>, HostError> {
        self.wait_for(wait, |session| Ok(session.next_completion(queue)))
    }

    /// Waits for a message of a port or a set of ports. Nothing if none came in time. See
    /// [`Interface::next_message`].
    ///
    /// [`Interface::next_message`]: crate::Interface::next_message
    pub fn recv_message<'a>(
        &'a mut self,
        inlet: &'a mut impl Inlet,
        wait: Wait,
    ) -> Result<Option<PortMessage<'a, H>>, ReceiveError> {
        // Found once: the sender may write it anew, and then it must not seem that none came.
        let found = self.wait_for(wait, |session| Ok::<_, ReceiveError>(session.find(inlet)))?;
        Ok(found.and_then(|in_place| self.shown(inlet, in_place)))
    }

    /// Waits until messages of a port or a set of ports are there, and hands them to `handle`, at most so many; how
    /// many, none if none came in time. `handle` sends over the manager's terminus. See
    /// [`Interface::drain_messages`].
    ///
    /// [`Interface::drain_messages`]: crate::Interface::drain_messages
    pub fn await_messages(
        &mut self,
        inlet: &mut impl Inlet,
        most: usize,
        wait: Wait,
        mut handle: impl FnMut(&PortMessage<'_, H>, &mut Outbox<'_, H>),
    ) -> Result<usize, ReceiveError> {
        let terminus = self.terminus();
        let drained = self.wait_for(wait, |session| {
            let count = session.drain_messages(inlet, terminus, most, &mut handle)?;
            Ok::<_, ReceiveError>((count > 0).then_some(count))
        })?;
        Ok(drained.unwrap_or(0))
    }
}
