//! Handlers: what they are called with, and what they can do.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};

use crate::endpoint::Endpoint;
use crate::error::{AtomError, Error, InjectError};
use crate::message::Message;

/// A handler of messages.
pub(crate) type Handler<S, H> = Box<dyn for<'a> FnMut(Arrival<'a, S, H>) -> Call<'a, S, H> + Send>;
/// Work that runs when atomicity ends.
type Task<S, H> = Box<dyn FnOnce(&mut Context<S, H>) + Send>;

/// A message that has come, for the handler that it names. The handler must extract it: it has to
/// return the [`Call`], which only [`Arrival::extract`] gives.
pub struct Arrival<'a, S: 'static, H: Host = ProcessHost> {
    pub(crate) context: &'a mut Context<S, H>,
}

/// The message of a handler in its hands, and all that a [`Context`] has. It is one atomic section.
pub struct Call<'a, S: 'static, H: Host = ProcessHost> {
    pub(crate) context: &'a mut Context<S, H>,
}

/// The surroundings of handlers and tasks: the state that they share, and the network to inject
/// messages.
pub struct Context<S: 'static, H: Host = ProcessHost> {
    pub(crate) endpoint: Endpoint<H>,
    pub(crate) state: S,
    pub(crate) tasks: VecDeque<Task<S, H>>,
    /// The message of the handler that runs, or that was extracted last.
    pub(crate) message: Message,
}

impl<'a, S, H: Host> Arrival<'a, S, H> {
    /// The message, before it is extracted (`T 3`, peek).
    #[inline]
    pub fn peek(&self) -> &Message {
        &self.context.message
    }

    /// The surroundings, for a handler that injects before it extracts.
    #[inline]
    pub fn context(&mut self) -> &mut Context<S, H> {
        self.context
    }

    /// Extracts the message: the next one shows.
    #[inline]
    pub fn extract(self) -> Call<'a, S, H> {
        self.context.endpoint.extracted();
        Call {
            context: self.context,
        }
    }
}

impl<S: 'static, H: Host> Call<'_, S, H> {
    /// The message that was extracted.
    #[inline]
    pub fn message(&self) -> &Message {
        &self.context.message
    }

    /// The node that sent it.
    #[inline]
    pub fn source(&self) -> u32 {
        self.context.message.source()
    }

    /// One of its words; 0 beyond its end.
    #[inline]
    pub fn word(&self, number: usize) -> u32 {
        self.context.message.word(number)
    }

    /// The message, and beside it the state.
    #[inline]
    pub fn parts(&mut self) -> (&Message, &mut S) {
        (&self.context.message, &mut self.context.state)
    }

    /// The data that its sender has brought into the area ([`Message::place`]), if any, and beside
    /// them the state.
    pub fn data(&mut self) -> (&mut [u8], &mut S) {
        let Context {
            endpoint,
            state,
            message,
            ..
        } = &mut *self.context;
        let place = message.place().unwrap_or(0..0);
        (&mut endpoint.area[place], state)
    }

    /// Shows the next message, like [`Udm::peek`](crate::Udm::peek).
    pub fn peek_next(&mut self) -> Result<Option<&Message>, Error> {
        Ok(self.context.endpoint.peek()?)
    }

    /// Extracts the next message, if one is there, into `message`: a handler may take several.
    pub fn extract_next(&mut self, message: &mut Message) -> Result<bool, Error> {
        let endpoint = &mut self.context.endpoint;
        let is_there = endpoint.next(message)?;
        if is_there {
            endpoint.extracted();
        }
        Ok(is_there)
    }
}

impl<S: 'static, H: Host> Deref for Call<'_, S, H> {
    type Target = Context<S, H>;

    #[inline]
    fn deref(&self) -> &Context<S, H> {
        self.context
    }
}

impl<S: 'static, H: Host> DerefMut for Call<'_, S, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Context<S, H> {
        self.context
    }
}

impl<S: 'static, H: Host> Context<S, H> {
    /// The state that handlers and sections share.
    #[inline]
    pub fn state(&mut self) -> &mut S {
        &mut self.state
    }

    /// The number of this node.
    #[inline]
    pub fn me(&self) -> u32 {
        self.endpoint.group.me
    }

    /// The number of nodes.
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.endpoint.group.nodes()
    }

    /// True if a signal has interrupted the program to run this handler
    /// ([`Signals`](crate::Signals)), so that it must do nothing but what a signal handler may do.
    #[inline]
    pub fn is_interrupt(&self) -> bool {
        self.endpoint.is_interrupt
    }

    /// Injects a message, like [`Udm::inject`](crate::Udm::inject); no handler runs meanwhile.
    /// Messages that come while it waits for room go to the queue of the end point.
    #[inline]
    pub fn inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        self.endpoint.inject(to, handler, words, self.endpoint.wait)
    }

    /// The same for bytes, like [`Udm::inject_bytes`](crate::Udm::inject_bytes).
    #[inline]
    pub fn inject_bytes(&mut self, to: u32, handler: u16, bytes: &[u8]) -> Result<(), InjectError> {
        self.endpoint.send(to, handler, bytes, self.endpoint.wait)
    }

    /// Brings data into the area of a node, like [`Udm::inject_bulk`](crate::Udm::inject_bulk).
    pub fn inject_bulk(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        data: &[u8],
        at: usize,
    ) -> Result<(), InjectError> {
        let wait = self.endpoint.wait;
        let bulk = self.endpoint.bulk(to, handler, words, (data, at), true)?;
        bulk.each(|piece| self.endpoint.send_piece(to, piece, wait))
    }

    /// The memory of this node into which others bring data.
    #[inline]
    pub fn area(&mut self) -> &mut [u8] {
        &mut self.endpoint.area
    }

    /// Injects if there is room, like [`Udm::try_inject`](crate::Udm::try_inject).
    #[inline]
    pub fn try_inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        self.endpoint.inject(to, handler, words, Wait::Poll)
    }

    /// Words that find room now, like [`Udm::space_available`](crate::Udm::space_available).
    pub fn space_available(&mut self, to: u32) -> Result<usize, InjectError> {
        self.endpoint.space_available(to)
    }

    /// The same for bytes.
    #[inline]
    pub fn try_inject_bytes(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
    ) -> Result<(), InjectError> {
        self.endpoint.send(to, handler, bytes, Wait::Poll)
    }

    /// Bytes that a message to that node has at most.
    pub fn bytes_max(&self, to: u32) -> Result<usize, InjectError> {
        self.endpoint.bytes_max(to)
    }

    /// The bits of the register of atomicity.
    pub fn uac(&self) -> u8 {
        self.endpoint.uac.bits()
    }

    /// Sets bits of the register (`T 4.1`, beginatom), like
    /// [`Udm::begin_atomic`](crate::Udm::begin_atomic).
    pub fn begin_atomic(&mut self, mask: u8) -> Result<(), AtomError> {
        self.endpoint.begin_atomic(mask)
    }

    /// Clears bits of the register (`T 4.1`, endatom). A handler is one section until it returns,
    /// so no other one runs in this call, and its bits are those of before when it has returned.
    ///
    /// # Errors
    ///
    /// The handler's message is still to be extracted.
    pub fn end_atomic(&mut self, mask: u8) -> Result<(), AtomError> {
        if self.endpoint.end_atomic(mask)? {
            // Those that wait do so until the end of the section around the handler.
            self.endpoint.uac.extend();
        }
        Ok(())
    }

    /// Turns the rest of a handler into a thread (`T 3`): `task` runs to its end when atomicity has
    /// ended: with the handlers that run next outside of a section, after those that were spawned
    /// before. Allocates.
    pub fn spawn(&mut self, task: impl FnOnce(&mut Context<S, H>) + Send + 'static) {
        self.tasks.push_back(Box::new(task));
    }
}
