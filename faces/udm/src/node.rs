//! The things that a program, a handler and a task can do with a node, for each type of host.

use std::time::Instant;

use hamlyn::{Host, Wait};
use hamlyn_udm::{AtomError, Error, InjectError, Message, Mode, Statistics, Udm};

use crate::running::{Function, handler, task};
use crate::status::{Code, Failure};

/// The state that handlers share with the face.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// A handler that ended without extracting its message.
    pub(crate) undisposed: Option<u16>,
}

pub(crate) const NOTHING: Failure = Failure::new(
    Code::BadDispose,
    "there is no message to extract: ask udm_available, or wait for one (udm_await)",
);

/// Things that handlers and tasks can do, too.
pub(crate) trait Inside {
    fn me(&mut self) -> u32;
    fn nodes(&mut self) -> u32;
    fn inject(&mut self, to: u32, handler: u16, words: &[u32], waits: bool) -> Result<(), Failure>;
    fn inject_bytes(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        waits: bool,
    ) -> Result<(), Failure>;
    fn bytes_max(&mut self, to: u32) -> Result<usize, InjectError>;
    /// The message that the next extraction gives.
    fn peek(&mut self) -> Result<Option<&Message>, Failure>;
    fn extract(&mut self) -> Result<&Message, Failure>;
    fn begin(&mut self, mask: u8) -> Result<(), AtomError>;
    fn end(&mut self, mask: u8) -> Result<(), Failure>;
    fn uac(&mut self) -> u8;
    fn spawn(&mut self, function: Function);
}

/// Things that the program alone can do.
pub(crate) trait Outside: Inside {
    fn on(&mut self, number: u16, function: Function) -> Result<(), Error>;
    fn poll(&mut self, most: usize) -> Result<usize, Error>;
    fn serve(&mut self, wait: Wait) -> Result<usize, Error>;
    fn await_message(&mut self, wait: Wait) -> Result<bool, Error>;
    fn barrier(&mut self, wait: Wait) -> Result<(), Error>;
    fn flush(&mut self, wait: Wait) -> Result<bool, Error>;
    fn lost(&self, node: u32) -> Option<hamlyn::LinkEnd>;
    fn mode(&self, node: u32) -> Mode;
    fn statistics(&self) -> Statistics;
    /// Fails if a handler has ended without extracting its message since this was asked last.
    fn check_handlers(&mut self) -> Result<(), Failure>;
}

impl<H: Host + 'static> Inside for Udm<State, H> {
    fn me(&mut self) -> u32 {
        Udm::me(self)
    }

    fn nodes(&mut self) -> u32 {
        Udm::nodes(self)
    }

    #[inline]
    fn inject(&mut self, to: u32, handler: u16, words: &[u32], waits: bool) -> Result<(), Failure> {
        Ok(match waits {
            true => Udm::inject(self, to, handler, words),
            false => self.try_inject(to, handler, words),
        }?)
    }

    fn inject_bytes(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
        waits: bool,
    ) -> Result<(), Failure> {
        Ok(match waits {
            true => Udm::inject_bytes(self, to, handler, bytes),
            false => self.try_inject_bytes(to, handler, bytes),
        }?)
    }

    fn bytes_max(&mut self, to: u32) -> Result<usize, InjectError> {
        Udm::bytes_max(self, to)
    }

    fn peek(&mut self) -> Result<Option<&Message>, Failure> {
        Ok(Udm::peek(self)?)
    }

    fn extract(&mut self) -> Result<&Message, Failure> {
        Udm::extract(self)?.ok_or(NOTHING)
    }

    fn begin(&mut self, mask: u8) -> Result<(), AtomError> {
        self.begin_atomic(mask)
    }

    fn end(&mut self, mask: u8) -> Result<(), Failure> {
        self.end_atomic(mask)?;
        self.check_handlers()
    }

    fn uac(&mut self) -> u8 {
        Udm::uac(self)
    }

    fn spawn(&mut self, function: Function) {
        Udm::spawn(self, task(function));
    }
}

impl<H: Host + 'static> Outside for Udm<State, H> {
    fn on(&mut self, number: u16, function: Function) -> Result<(), Error> {
        Udm::on(self, number, handler(function))
    }

    #[inline]
    fn poll(&mut self, most: usize) -> Result<usize, Error> {
        Udm::poll(self, most)
    }

    fn serve(&mut self, wait: Wait) -> Result<usize, Error> {
        Udm::serve(self, wait)
    }

    /// A message of a barrier, which the layer says is there, is not what the program waits for.
    fn await_message(&mut self, wait: Wait) -> Result<bool, Error> {
        let begun = Instant::now();
        let mut left = wait;
        loop {
            if Udm::peek(self)?.is_some() {
                return Ok(true);
            }
            if left == Wait::Poll || !Udm::await_message(self, left)? {
                return Ok(false);
            }
            if let Wait::For(span) = wait {
                let rest = span.saturating_sub(begun.elapsed());
                left = match rest.is_zero() {
                    true => Wait::Poll,
                    false => Wait::For(rest),
                };
            }
        }
    }

    fn barrier(&mut self, wait: Wait) -> Result<(), Error> {
        Udm::barrier(self, wait)
    }

    fn flush(&mut self, wait: Wait) -> Result<bool, Error> {
        Udm::flush(self, wait)
    }

    fn lost(&self, node: u32) -> Option<hamlyn::LinkEnd> {
        Udm::lost(self, node)
    }

    fn mode(&self, node: u32) -> Mode {
        Udm::mode(self, node)
    }

    fn statistics(&self) -> Statistics {
        Udm::statistics(self)
    }

    #[inline]
    fn check_handlers(&mut self) -> Result<(), Failure> {
        match self.state_mut().undisposed.take() {
            None => Ok(()),
            Some(number) => Err(undisposed(number)),
        }
    }
}

#[cold]
fn undisposed(number: u16) -> Failure {
    let text = format!(
        "handler {number} ended without extracting its message, which is disposed of now: let it call udm_extract or udm_dispose"
    );
    Failure::of(Code::DisposeFailure, &text)
}
