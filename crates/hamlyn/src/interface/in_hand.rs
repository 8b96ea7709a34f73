//! An interface in the hands of a call that waits. The interface by itself is nobody else's meanwhile; that of a manager which threads
//! share is used by the others. So what waits is written once, for either.

use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_host::{Host, HostError};

use super::Interface;
use crate::error::SendError;
use crate::message::{Message, Target};
use crate::wait::{Wait, WaitState};

/// See the module.
pub(crate) trait InHand<H: Host> {
    /// The interface. After each wait it may be another's in between.
    fn interface(&mut self) -> &mut Interface<H>;

    /// One step of a wait: false when its time is over.
    fn pause(&mut self, wait_state: &mut WaitState) -> Result<bool, HostError>;

    /// Lets others use the interface, if there are any, while `act` runs.
    fn let_others<R>(&mut self, act: impl FnOnce() -> R) -> R;

    /// See [`Interface::send_msg`].
    fn send_msg(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError>;
}

impl<H: Host> InHand<H> for Interface<H> {
    #[inline(always)]
    fn interface(&mut self) -> &mut Self {
        self
    }

    #[inline]
    fn pause(&mut self, wait_state: &mut WaitState) -> Result<bool, HostError> {
        self.pause(wait_state)
    }

    fn let_others<R>(&mut self, act: impl FnOnce() -> R) -> R {
        act()
    }

    #[inline(always)]
    fn send_msg(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        self.send_here(terminus, target, message, wait)
    }
}
