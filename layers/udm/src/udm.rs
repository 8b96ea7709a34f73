//! An end point: handlers, state, and the calls of the model.

use std::collections::VecDeque;

use hamlyn::engine::point::{Point, UdmPoint};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};

use crate::endpoint::Endpoint;
use crate::error::{AtomError, Error, InjectError};
use crate::event::{Mode, Statistics};
use crate::group::Group;
use crate::handler::{Arrival, Call, Context, Handler};
use crate::limits::{HANDLERS_MAX, VISIT, VISITS_MAX};
use crate::message::Message;
use crate::options::{Interrupt, UdmOptions};
use crate::uac::{ATOMICITY_EXTEND, INTERRUPT_DISABLE};

/// An end point of User Direct Messaging: a node's handlers with the state that they share. It
/// belongs to one thread at a time; with [`Udm::with_upcalls`] handlers have another one. Once it is
/// dropped, messages for it are refused.
pub struct Udm<S: 'static, H: Host = ProcessHost> {
    pub(crate) context: Context<S, H>,
    handlers: Vec<Option<Handler<S, H>>>,
    pub(crate) interrupt: Interrupt,
    /// An error of a section that was dropped.
    failure: Option<Error>,
}

impl<S: 'static, H: Host> Udm<S, H> {
    /// Opens the end point of that name at this node. Blocks until all nodes of the group have
    /// opened theirs, as long as `wait` says for each. Allocates.
    ///
    /// Handlers run in calls of this node only: set them ([`Udm::on`]) before the first. Others may
    /// still be opening theirs when it returns: a node that may end soon begins with a barrier.
    ///
    /// # Errors
    ///
    /// A node could not be reached in time, or there is no memory.
    pub fn open(
        group: &Group<H>,
        name: &str,
        options: UdmOptions,
        state: S,
        wait: Wait,
    ) -> Result<Self, Error> {
        let endpoint = Endpoint::open(group.shared(), name, &options, wait)?;
        Ok(Self {
            context: Context {
                endpoint,
                state,
                tasks: VecDeque::new(),
                message: Message::new(),
            },
            handlers: Vec::new(),
            interrupt: options.interrupt,
            failure: None,
        })
    }

    /// Sets the handler of that number. It runs in an atomic section, and must extract its message:
    /// it returns what [`Arrival::extract`] gives. Allocates.
    ///
    /// ```compile_fail
    /// # fn set(udm: &mut hamlyn_udm::Udm<u32>) {
    /// // It does not extract its message.
    /// let _ = udm.on(3, |arrival| arrival);
    /// # }
    /// ```
    pub fn on(
        &mut self,
        handler: u16,
        run: impl for<'a> FnMut(Arrival<'a, S, H>) -> Call<'a, S, H> + Send + 'static,
    ) -> Result<(), Error> {
        if handler >= HANDLERS_MAX {
            return Err(Error::BadHandler { handler });
        }
        let place = usize::from(handler);
        if self.handlers.len() <= place {
            self.handlers.resize_with(place + 1, || None);
        }
        self.handlers[place] = Some(Box::new(run));
        Ok(())
    }

    /// The number of this node.
    #[inline]
    pub fn me(&self) -> u32 {
        self.context.endpoint.group.me
    }

    /// The number of nodes.
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.context.endpoint.group.nodes()
    }

    /// Injects a message of up to [`WORDS_MAX`](crate::WORDS_MAX) words for a handler of a node,
    /// this one included. When it returns, the message is committed whole, and will be extracted
    /// once, unless its destination ends, or this node ends before it has handed the message over
    /// ([`Udm::flush`]); those of one node arrive in order. Waits for room as long
    /// as the options say; handlers run meanwhile ([`Interrupt::Safepoint`]). Does not allocate for
    /// a node of the own host.
    #[inline]
    pub fn inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        self.injecting(|endpoint, wait| endpoint.inject(to, handler, words, wait))
    }

    /// The same if there is room, without a wait (`T 3`, injectc).
    #[inline]
    pub fn try_inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        self.context.endpoint.inject(to, handler, words, Wait::Poll)
    }

    /// Injects a message of bytes if there is room, without a wait.
    pub fn try_inject_bytes(
        &mut self,
        to: u32,
        handler: u16,
        bytes: &[u8],
    ) -> Result<(), InjectError> {
        self.context.endpoint.send(to, handler, bytes, Wait::Poll)
    }

    /// Injects a message of bytes, up to [`Udm::bytes_max`]. Otherwise like [`Udm::inject`].
    pub fn inject_bytes(&mut self, to: u32, handler: u16, bytes: &[u8]) -> Result<(), InjectError> {
        self.injecting(|endpoint, wait| endpoint.send(to, handler, bytes, wait))
    }

    /// Brings data into the area of a node ([`UdmOptions::area_bytes`]), from `at` on, and injects
    /// a message of words that runs its handler when all of them are there; the handler is told their
    /// place ([`Message::place`]). The data are the caller's again when it returns. They go as
    /// messages of 32 KiB at most, in order with all others of this node; each waits for room as
    /// [`Udm::inject`] does, and if one has found none in time, those before it are written there,
    /// and no handler runs. Allocates a piece once.
    ///
    /// # Errors
    ///
    /// Those of [`Udm::inject`], and [`InjectError::OutsideArea`].
    pub fn inject_bulk(
        &mut self,
        to: u32,
        handler: u16,
        words: &[u32],
        data: &[u8],
        at: usize,
    ) -> Result<(), InjectError> {
        let bulk = self
            .context
            .endpoint
            .bulk(to, handler, words, (data, at), false)?;
        bulk.each(|piece| self.injecting(|endpoint, wait| endpoint.send_piece(to, piece, wait)))
    }

    /// The memory of this node into which others bring data.
    #[inline]
    pub fn area(&self) -> &[u8] {
        &self.context.endpoint.area
    }

    /// The same, to change it. Data are written there in calls of this end point only.
    #[inline]
    pub fn area_mut(&mut self) -> &mut [u8] {
        &mut self.context.endpoint.area
    }

    /// Injects, and runs handlers while there is no room where they run of themselves.
    #[inline(always)]
    fn injecting(
        &mut self,
        mut inject: impl FnMut(&mut Endpoint<H>, Wait) -> Result<(), InjectError>,
    ) -> Result<(), InjectError> {
        let wait = self.first_wait();
        match inject(&mut self.context.endpoint, wait) {
            Err(error) if self.is_to_wait(wait, &error) => self.between_handlers(error, inject),
            injected => injected,
        }
    }

    /// Words that a message to that node may have so that [`Udm::try_inject`] finds room for it
    /// now: [`WORDS_MAX`](crate::WORDS_MAX), or none (`T 3`, the space available). Injects nothing,
    /// and does not block; moves packets once if there is no room at first. An error if the node is
    /// gone or refuses messages, or there is no such one.
    pub fn space_available(&mut self, to: u32) -> Result<usize, InjectError> {
        self.context.space_available(to)
    }

    /// The wait of the first attempt of an injection: no time where handlers run while there
    /// is no room. It is a wait all the same, so that it is slowed as others are.
    #[inline]
    fn first_wait(&self) -> Wait {
        match self.context.endpoint.wait {
            wait if wait == Wait::Poll || !self.runs_handlers() => wait,
            _ => FIRST_WAIT,
        }
    }

    /// True if an injection that has not waited found no room.
    #[inline(never)]
    fn is_to_wait(&self, wait: Wait, error: &InjectError) -> bool {
        let finds_no_room = matches!(
            error,
            InjectError::WouldBlock { .. } | InjectError::Quota { .. }
        );
        finds_no_room && wait == FIRST_WAIT && self.runs_handlers()
    }

    /// Injects, and runs handlers while there is no room.
    #[inline(never)]
    fn between_handlers(
        &mut self,
        mut error: InjectError,
        mut inject: impl FnMut(&mut Endpoint<H>, Wait) -> Result<(), InjectError>,
    ) -> Result<(), InjectError> {
        let mut slices = Slices::new(self.context.endpoint.wait);
        while let Some(wait) = slices.next() {
            if let Err(error) = self.run(VISIT, true) {
                // It is told by the next call that runs handlers.
                self.fail_later(error);
            }
            error = match inject(&mut self.context.endpoint, wait) {
                Err(error) if self.is_to_wait(FIRST_WAIT, &error) => error,
                injected => return injected,
            };
        }
        Err(error)
    }

    /// Bytes that a message to that node has at most.
    pub fn bytes_max(&self, to: u32) -> Result<usize, InjectError> {
        self.context.endpoint.bytes_max(to)
    }

    /// The case in which messages to that node are delivered, on the own host.
    pub fn mode(&self, to: u32) -> Mode {
        self.context.endpoint.mode(to)
    }

    /// True if a message is there (`T 3`, the message-available flag). It may be one of the layer,
    /// or one that waits for its turn, so that [`Udm::extract`] gives none after all.
    pub fn is_available(&mut self) -> Result<bool, Error> {
        Ok(self.context.endpoint.is_available()?)
    }

    /// Waits until a message is there ([`Udm::is_available`]), or a node is lost, as long as `wait`
    /// says; true if a message is there. Runs no handler.
    pub fn await_message(&mut self, wait: Wait) -> Result<bool, Error> {
        self.context.endpoint.await_news(wait)?;
        self.is_available()
    }

    /// Shows the next message, if there is one (`T 3`, peek): it stays the next one, and was loaded,
    /// so it shows the same again.
    pub fn peek(&mut self) -> Result<Option<&Message>, Error> {
        self.check()?;
        Ok(self.context.endpoint.peek()?)
    }

    /// The next message, if there is one: its handler does not run.
    pub fn extract(&mut self) -> Result<Option<&Message>, Error> {
        self.check()?;
        let Context {
            endpoint, message, ..
        } = &mut self.context;
        if !endpoint.next(message)? {
            return Ok(None);
        }
        endpoint.extracted();
        Ok(Some(message))
    }

    /// Runs the handlers of messages that are there, at most so many; how many ran. Tasks that they
    /// spawned run, too, unless this is in a section. Does not block.
    #[inline]
    pub fn poll(&mut self, most: usize) -> Result<usize, Error> {
        self.run(most, false)
    }

    /// Interrupts the program (`T 3`): runs the handlers of messages that are there, unless it is
    /// in a section, whose end runs them then. For those that bring interrupts of their own; how
    /// many ran.
    pub fn upcall(&mut self, most: usize) -> Result<usize, Error> {
        if self.context.endpoint.uac.is_atomic() {
            if self.context.endpoint.is_available()? {
                self.context.endpoint.uac.extend();
            }
            return Ok(0);
        }
        self.run(most, true)
    }

    /// Waits until a message is there or a node is lost, and runs the handlers of those that are
    /// there; how many ran. Polls for some microseconds and then sleeps.
    pub fn serve(&mut self, wait: Wait) -> Result<usize, Error> {
        let ran = self.run_first_of_all(false)?;
        if ran > 0 || !self.context.endpoint.await_news(wait)? {
            return Ok(ran);
        }
        self.run_first_of_all(false)
    }

    /// Runs a visit's handlers, looking for the first one beyond messages that no handler sees.
    pub(crate) fn run_first_of_all(&mut self, is_upcall: bool) -> Result<usize, Error> {
        for _ in 0..VISITS_MAX {
            let ran = self.run(VISIT, is_upcall)?;
            if ran > 0 || !self.context.endpoint.has_more() {
                return Ok(ran);
            }
        }
        Ok(0)
    }

    /// Begins a section by its mask (`T 4.1`, beginatom): UAC := UAC or mask.
    #[inline]
    pub fn begin_atomic(&mut self, mask: u8) -> Result<(), AtomError> {
        self.context.endpoint.begin_atomic(mask)
    }

    /// Ends a section by its mask (`T 4.1`, endatom), and runs handlers that have waited for that.
    #[inline]
    pub fn end_atomic(&mut self, mask: u8) -> Result<(), Error> {
        let is_extended = self.context.endpoint.end_atomic(mask)?;
        if is_extended || self.runs_handlers() {
            let ran = self.run(VISIT, true)?;
            self.context.endpoint.statistics.extended += u64::from(is_extended && ran > 0);
        }
        Ok(())
    }

    /// The bits of the register of atomicity.
    pub fn uac(&self) -> u8 {
        self.context.endpoint.uac.bits()
    }

    /// Runs `task` when handlers run next outside of a section, after those that were spawned
    /// before. Allocates.
    pub fn spawn(&mut self, task: impl FnOnce(&mut Context<S, H>) + Send + 'static) {
        self.context.tasks.push_back(Box::new(task));
    }

    /// The state that handlers share.
    #[inline]
    pub fn state(&self) -> &S {
        &self.context.state
    }

    /// The same, to change it. Handlers run in calls of this end point only.
    #[inline]
    pub fn state_mut(&mut self) -> &mut S {
        &mut self.context.state
    }

    /// The counts of this end point.
    pub fn statistics(&self) -> Statistics {
        self.context.endpoint.statistics
    }

    /// Why a node is gone, if it is. Moves no packets.
    pub fn lost(&self, node: u32) -> Option<hamlyn::LinkEnd> {
        let group = &self.context.endpoint.group;
        group.hear(&mut group.manager.session());
        group.lost(node)
    }

    /// Waits until everything that was injected has been handed to its links, as long as `wait`
    /// says; false if the time was over first. A program that ends calls this last.
    pub fn flush(&mut self, wait: Wait) -> Result<bool, Error> {
        Ok(self.context.endpoint.group.manager.session().flush(wait)?)
    }

    /// A section has panicked: as if a handler had.
    pub(crate) fn break_off(&mut self) {
        self.context.endpoint.is_in_handler = true;
    }

    /// Ends a section where no handlers are to run.
    #[inline]
    pub(crate) fn end_section(&mut self) {
        if let Err(error) = self.context.endpoint.end_atomic(INTERRUPT_DISABLE) {
            self.fail_later(error.into());
        }
    }

    /// True if the end of a section may run handlers.
    #[inline]
    pub(crate) fn has_to_run_at_end(&self) -> bool {
        let is_extended = self.context.endpoint.uac.bits() & ATOMICITY_EXTEND != 0;
        self.interrupt == Interrupt::Safepoint || is_extended
    }

    /// True if handlers run now of themselves.
    #[inline]
    fn runs_handlers(&self) -> bool {
        self.interrupt == Interrupt::Safepoint && !self.context.endpoint.uac.is_atomic()
    }

    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.failure.take() {
            None if self.context.endpoint.is_in_handler => Err(Error::HandlerPanicked),
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    pub(crate) fn fail_later(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    #[inline]
    pub(crate) fn run(&mut self, most: usize, is_upcall: bool) -> Result<usize, Error> {
        if self.failure.is_some() || self.context.endpoint.is_in_handler {
            self.check()?;
        }
        let mut count = 0;
        let Context {
            endpoint, message, ..
        } = &mut self.context;
        if most > 0 && endpoint.next(message)? {
            count = self.run_handlers(most, is_upcall)?;
        }
        if !self.context.tasks.is_empty() && !self.context.endpoint.uac.is_atomic() {
            self.run_tasks();
        }
        Ok(count)
    }

    /// Runs the handler of the message that was taken, and those of the next ones.
    fn run_handlers(&mut self, most: usize, is_upcall: bool) -> Result<usize, Error> {
        let mut count = 0;
        loop {
            let number = usize::from(self.context.message.handler());
            match self.handlers.get_mut(number) {
                Some(Some(handler)) => handle(&mut self.context, handler, is_upcall),
                _ => self.context.endpoint.statistics.unhandled += 1,
            }
            count += 1;
            let Context {
                endpoint, message, ..
            } = &mut self.context;
            if count >= most || !endpoint.next(message)? {
                return Ok(count);
            }
        }
    }

    #[inline(never)]
    fn run_tasks(&mut self) {
        if self.context.endpoint.is_interrupt {
            // They allocate and free, and wait for the end of a section.
            return;
        }
        // Those that they spawn are next.
        while let Some(task) = self.context.tasks.pop_front() {
            task(&mut self.context);
        }
    }
}

/// Runs a handler, which is a section.
#[inline]
fn handle<S, H: Host>(context: &mut Context<S, H>, handler: &mut Handler<S, H>, is_upcall: bool) {
    if is_upcall {
        context.endpoint.statistics.upcalls += 1;
        H::passes(Point::Udm(UdmPoint::Upcall));
    }
    let before = context.endpoint.uac.enter_handler();
    context.endpoint.is_in_handler = true;
    H::passes(Point::Udm(UdmPoint::HandlerBegun));
    let Call { context } = handler(Arrival { context });
    H::passes(Point::Udm(UdmPoint::HandlerEnded));
    context.endpoint.is_in_handler = false;
    context.endpoint.uac.leave_handler(before);
}

impl<S: 'static, H: Host> std::fmt::Debug for Udm<S, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Udm")
            .field("me", &self.me())
            .field("nodes", &self.nodes())
            .finish_non_exhaustive()
    }
}

/// A wait in pieces, between which handlers run.
struct Slices {
    left: Option<u128>,
}

const SLICE_MS: u64 = 1;
/// Before them.
const FIRST_WAIT: Wait = Wait::millis(0);

impl Slices {
    fn new(wait: Wait) -> Self {
        let left = match wait {
            Wait::Poll => Some(0),
            Wait::For(span) => Some(span.as_millis().div_ceil(SLICE_MS.into()).max(1)),
            Wait::Forever => None,
        };
        Self { left }
    }

    fn next(&mut self) -> Option<Wait> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        Some(Wait::millis(SLICE_MS))
    }
}
