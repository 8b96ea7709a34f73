//! Atomic sections.

use std::ops::{Deref, DerefMut};

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};

use crate::error::{Error, InjectError};
use crate::message::Message;
use crate::uac::INTERRUPT_DISABLE;
use crate::udm::Udm;

/// An atomic section (`T 3`): no handler runs until it ends, but for those that it polls for. It
/// has the state that handlers share. Its end runs the handlers of messages that came meanwhile, 64
/// at most; the others run later.
pub struct Section<'a, S: 'static, H: Host = ProcessHost> {
    udm: &'a mut Udm<S, H>,
    /// False in a section that is within another one.
    is_outermost: bool,
}

impl<S: 'static, H: Host> Udm<S, H> {
    /// Begins an atomic section.
    #[inline]
    pub fn atomic(&mut self) -> Section<'_, S, H> {
        let is_outermost = self.uac() & INTERRUPT_DISABLE == 0;
        // The mask has no bit of the layer.
        let _ = self.begin_atomic(INTERRUPT_DISABLE);
        Section {
            udm: self,
            is_outermost,
        }
    }
}

impl<S, H: Host> Section<'_, S, H> {
    /// True if [`Section::extract`] would give a message (`T 3`, the message-available flag).
    pub fn is_available(&mut self) -> Result<bool, Error> {
        self.udm.is_available()
    }

    /// Waits until a message is there, or a node is lost ([`Udm::await_message`]).
    pub fn await_message(&mut self, wait: Wait) -> Result<bool, Error> {
        self.udm.await_message(wait)
    }

    /// Shows the next message ([`Udm::peek`]).
    pub fn peek(&mut self) -> Result<Option<&Message>, Error> {
        self.udm.peek()
    }

    /// The next message, if there is one: its handler does not run.
    pub fn extract(&mut self) -> Result<Option<&Message>, Error> {
        self.udm.extract()
    }

    /// Runs the handlers of messages that are there, at most so many; how many ran.
    pub fn poll(&mut self, most: usize) -> Result<usize, Error> {
        self.udm.poll(most)
    }

    /// Injects a message, like [`Udm::inject`]; no handler runs meanwhile.
    #[inline]
    pub fn inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        self.udm.inject(to, handler, words)
    }

    /// Ends the section, as dropping it does, which cannot tell of errors.
    pub fn end(mut self) -> Result<(), Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.is_outermost) {
            true => self.udm.end_atomic(INTERRUPT_DISABLE),
            false => Ok(()),
        }
    }
}

impl<S, H: Host> Deref for Section<'_, S, H> {
    type Target = S;

    fn deref(&self) -> &S {
        self.udm.state()
    }
}

impl<S, H: Host> DerefMut for Section<'_, S, H> {
    fn deref_mut(&mut self) -> &mut S {
        self.udm.state_mut()
    }
}

impl<S, H: Host> Section<'_, S, H> {
    /// Ends the section where handlers may run, unless it has panicked: then the state may be
    /// changed in part, and no handler sees it.
    #[inline(never)]
    fn drop_before_handlers(&mut self) {
        if std::thread::panicking() {
            self.udm.break_off();
        } else if let Err(error) = self.finish() {
            self.udm.fail_later(error);
        }
    }
}

impl<S, H: Host> Drop for Section<'_, S, H> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_outermost {
            return;
        }
        if self.udm.has_to_run_at_end() {
            self.drop_before_handlers();
        } else {
            self.udm.end_section();
        }
    }
}
