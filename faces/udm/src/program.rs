//! A node in the hands of the program, for each type of host.

use std::time::Instant;

use hamlyn::{Host, Wait};
use hamlyn_udm::{AtomError, Error, InjectError, Message, Mode, Statistics, Udm};

use crate::node::{Function, Inside, NOTHING, Outside, State};
use crate::running::{handler, task};
use crate::status::{Code, Failure};

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

    fn inject_bulk(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        data: &[u8],
        at: usize,
    ) -> Result<(), InjectError> {
        Udm::inject_bulk(self, to, handler, words, data, at)
    }

    fn area(&mut self) -> &mut [u8] {
        self.area_mut()
    }

    fn space_available(&mut self, to: u32) -> Result<usize, InjectError> {
        Udm::space_available(self, to)
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

    fn spawn(&mut self, function: Function) -> Result<(), Failure> {
        Udm::spawn(self, task(function));
        Ok(())
    }
}

impl<H: Host + 'static> Outside for Udm<State, H> {
    fn on(&mut self, number: u16, function: Function) -> Result<(), Error> {
        let next = match self.state().is_by_signal {
            true => Message::new().reserve(),
            false => Message::new(),
        };
        Udm::on(self, number, handler(function, next))
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
