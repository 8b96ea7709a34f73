//! Calls of a manager and of its interface that wait: other threads use it meanwhile, while there is no room for what is sent, too.

use std::time::Duration;

use hamlyn_engine::segment::Segmenter;
use hamlyn_engine::terminus::{SendHandle, TerminusId};
use hamlyn_host::{Host, HostError};

use super::Entered;
use crate::error::SendError;
use crate::interface::{InHand, Interface};
use crate::message::{Message, Target};
use crate::wait::{Wait, WaitState};

impl<H: Host> Entered<'_, H> {
    /// Sends a message over the manager's terminus.
    #[inline(always)]
    pub(crate) fn send_msg(
        &mut self,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let terminus = self.terminus();
        InHand::send_msg(self, terminus, target, message, wait)
    }

    /// As [`Interface::send_msg`], and other threads use the manager while there is no room.
    fn send_among_threads(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        let mut wait_state = WaitState::new(wait);
        let mut rest = None;
        loop {
            let sent = self.send_some(terminus, target, message, &mut rest);
            if !matches!(
                sent,
                Err(SendError::WouldBlock { .. } | SendError::Cut { .. })
            ) {
                return sent;
            }
            self.interface.poll();
            if !self.pause(&mut wait_state)? {
                self.interface.keep_cut(rest);
                return sent;
            }
        }
    }

    /// Sends a message as far as there is room, without waiting: all that is left of it after [`SendError::Cut`], which is in
    /// `rest`.
    pub(crate) fn send_some(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        rest: &mut Option<Segmenter>,
    ) -> Result<SendHandle, SendError> {
        if let Some(rest) = rest {
            if self.interface.send_rest(terminus, target, rest, message)? {
                return self.interface.finish_rest(terminus);
            }
            self.interface.wake_sleepers_for_credit();
            return Err(SendError::Cut {
                peer: target.ticket().destination,
                sent_bytes: rest.sent_bytes(),
            });
        }
        // Not to wait within the interface, but to begin a message that is too long to be queued.
        let at_once = Wait::For(Duration::ZERO);
        let sent = self.interface.send_here(terminus, target, message, at_once);
        if let Err(SendError::Cut { .. }) = sent {
            *rest = self.interface.take_cut();
        }
        sent
    }
}

impl<H: Host> InHand<H> for Entered<'_, H> {
    #[inline(always)]
    fn interface(&mut self) -> &mut Interface<H> {
        &mut self.guard.interface
    }

    #[inline]
    fn pause(&mut self, wait_state: &mut WaitState) -> Result<bool, HostError> {
        self.pause(wait_state)
    }

    fn let_others<R>(&mut self, act: impl FnOnce() -> R) -> R {
        self.let_others(act)
    }

    #[inline(always)]
    fn send_msg(
        &mut self,
        terminus: TerminusId,
        target: &Target,
        message: &Message<'_>,
        wait: Wait,
    ) -> Result<SendHandle, SendError> {
        if Self::AMONG_THREADS && wait != Wait::Poll {
            return self.send_among_threads(terminus, target, message, wait);
        }
        self.interface.send_here(terminus, target, message, wait)
    }
}
