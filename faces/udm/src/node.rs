//! The things that a program, a handler and a task can do with a node, whatever its host.

use std::ffi::c_void;

use hamlyn::Wait;
use hamlyn_udm::{AtomError, Error, InjectError, Message, Mode, Statistics};

use crate::status::{Code, Failure};

/// `udm_function`.
pub(crate) type CFunction = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// A function of the program with its end point and its argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub(crate) udm: *mut c_void,
    pub(crate) function: CFunction,
    pub(crate) argument: *mut c_void,
}

// SAFETY: the first pointer is a number; the other one is not followed here, and the header says in
// which thread the function gets it.
unsafe impl Send for Function {}

/// The state that handlers share with the face.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// A handler that ended without extracting its message.
    pub(crate) undisposed: Option<u16>,
    /// Signals run handlers.
    pub(crate) is_by_signal: bool,
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
    fn inject_bulk(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        data: &[u8],
        at: usize,
    ) -> Result<(), InjectError>;
    fn area(&mut self) -> &mut [u8];
    fn space_available(&mut self, to: u32) -> Result<usize, InjectError>;
    /// The message that the next extraction gives.
    fn peek(&mut self) -> Result<Option<&Message>, Failure>;
    fn extract(&mut self) -> Result<&Message, Failure>;
    fn begin(&mut self, mask: u8) -> Result<(), AtomError>;
    fn end(&mut self, mask: u8) -> Result<(), Failure>;
    fn uac(&mut self) -> u8;
    fn spawn(&mut self, function: Function) -> Result<(), Failure>;
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
