//! An end point: handlers, state, and the calls of the model.

use hamlyn::engine::point::{Point, UdmPoint};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Host, Wait};

use crate::barrier::Barrier;
use crate::endpoint::Endpoint;
use crate::error::{AtomError, Error, InjectError};
use crate::event::{Mode, Statistics};
use crate::group::Group;
use crate::handler::{Arrival, Call, Context, Handler, Tasks};
use crate::limits::{BARRIER, HANDLERS_MAX};
use crate::message::Message;
use crate::options::{Interrupt, UdmOptions};

/// Messages that are taken in one go.
const VISIT: usize = 64;

/// An end point of User Direct Messaging: a node's handlers with the state that they share. It
/// stays in its thread.
pub struct Udm<S: 'static, H: Host = ProcessHost> {
    pub(crate) endpoint: Endpoint<H>,
    handlers: Vec<Option<Handler<S, H>>>,
    state: S,
    tasks: Tasks<S, H>,
    /// The message of the handler that runs, or that was extracted last.
    message: Message,
    interrupt: Interrupt,
    pub(crate) barrier: Barrier,
    /// An error of a section that was dropped.
    failure: Option<Error>,
}

impl<S: 'static, H: Host> Udm<S, H> {
    /// Opens the end point of that name at this node. Blocks until all nodes of the group have
    /// opened theirs, as long as `wait` says for each. Allocates.
    ///
    /// Handlers run for the first time when this node polls, injects or ends a section: set them
    /// ([`Udm::on`]) before.
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
        let barrier = Barrier::new(group.nodes());
        Ok(Self {
            endpoint,
            handlers: Vec::new(),
            state,
            tasks: Tasks::new(),
            message: Message::new(),
            interrupt: options.interrupt,
            barrier,
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
        run: impl for<'a> FnMut(Arrival<'a, S, H>) -> Call<'a, S, H> + 'static,
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
        self.endpoint.group.me
    }

    /// The number of nodes.
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.endpoint.group.nodes()
    }

    /// Injects a message of up to [`WORDS_MAX`](crate::WORDS_MAX) words for a handler of a node,
    /// this one included. When it returns, the message is committed whole, and will be extracted
    /// once unless its destination ends; those of one node arrive in order. Waits for room as long
    /// as the options say; handlers may run before ([`Interrupt::Safepoint`]). Does not allocate
    /// for a node of the own host.
    #[inline]
    pub fn inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        match self.begin_injection() {
            wait if wait == self.endpoint.wait => self.endpoint.inject(to, handler, words, wait),
            _ => self.between_handlers(|endpoint, wait| endpoint.inject(to, handler, words, wait)),
        }
    }

    /// The same if there is room, without a wait (`T 3`, injectc).
    #[inline]
    pub fn try_inject(&mut self, to: u32, handler: u16, words: &[u32]) -> Result<(), InjectError> {
        self.endpoint.inject(to, handler, words, Wait::Poll)
    }

    /// Injects a message of bytes, up to [`Udm::bytes_max`]. Otherwise like [`Udm::inject`].
    pub fn inject_bytes(&mut self, to: u32, handler: u16, bytes: &[u8]) -> Result<(), InjectError> {
        match self.begin_injection() {
            wait if wait == self.endpoint.wait => self.endpoint.send(to, handler, bytes, wait),
            _ => self.between_handlers(|endpoint, wait| endpoint.send(to, handler, bytes, wait)),
        }
    }

    /// How long the first attempt of an injection waits: not at all where handlers run while there
    /// is no room.
    #[inline]
    fn begin_injection(&mut self) -> Wait {
        match self.runs_handlers() {
            true => Wait::Poll,
            false => self.endpoint.wait,
        }
    }

    /// Injects, and runs handlers while there is no room.
    fn between_handlers(
        &mut self,
        mut inject: impl FnMut(&mut Endpoint<H>, Wait) -> Result<(), InjectError>,
    ) -> Result<(), InjectError> {
        let mut slices = Slices::new(self.endpoint.wait);
        let mut wait = Wait::Poll;
        loop {
            let injected = inject(&mut self.endpoint, wait);
            match injected {
                Err(InjectError::WouldBlock { .. } | InjectError::Quota { .. }) => {}
                injected => return injected,
            }
            let Some(next) = slices.next() else {
                return injected;
            };
            wait = next;
            if let Err(error) = self.run(VISIT, true) {
                // It is told by the next call that runs handlers.
                self.fail_later(error);
            }
        }
    }

    /// Bytes that a message to that node has at most.
    pub fn bytes_max(&self, to: u32) -> Result<usize, InjectError> {
        self.endpoint.bytes_max(to)
    }

    /// The case in which messages to that node are delivered, on the own host.
    pub fn mode(&self, to: u32) -> Mode {
        self.endpoint.mode(to)
    }

    /// True if a message is there (`T 3`, the message-available flag).
    pub fn is_available(&mut self) -> Result<bool, Error> {
        Ok(self.endpoint.is_available()?)
    }

    /// The next message, if there is one: its handler does not run.
    pub fn extract(&mut self) -> Result<Option<&Message>, Error> {
        self.check()?;
        while self.endpoint.next(&mut self.message)? {
            if !self.take_own() {
                self.endpoint.extracted();
                return Ok(Some(&self.message));
            }
        }
        Ok(None)
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
        if self.endpoint.uac.is_atomic() {
            if self.endpoint.is_available()? {
                self.endpoint.uac.extend();
            }
            return Ok(0);
        }
        self.run(most, true)
    }

    /// Waits until a message is there or a node is lost, and runs the handlers of those that are
    /// there; how many ran. Polls for some microseconds and then sleeps.
    pub fn serve(&mut self, wait: Wait) -> Result<usize, Error> {
        let ran = self.run(VISIT, false)?;
        if ran > 0 || !self.endpoint.await_news(wait)? {
            return Ok(ran);
        }
        self.run(VISIT, false)
    }

    /// Begins a section by its mask (`T 4.1`, beginatom): UAC := UAC or mask.
    #[inline]
    pub fn begin_atomic(&mut self, mask: u8) -> Result<(), AtomError> {
        self.endpoint.begin_atomic(mask)
    }

    /// Ends a section by its mask (`T 4.1`, endatom), and runs handlers that have waited for that.
    #[inline]
    pub fn end_atomic(&mut self, mask: u8) -> Result<(), Error> {
        let is_extended = self.endpoint.end_atomic(mask)?;
        if is_extended || self.runs_handlers() {
            let ran = self.run(VISIT, true)?;
            self.endpoint.statistics.extended += u64::from(is_extended && ran > 0);
        }
        Ok(())
    }

    /// The bits of the register of atomicity.
    pub fn uac(&self) -> u8 {
        self.endpoint.uac.bits()
    }

    /// Runs `task` when atomicity ends, after those that were spawned before: at once at the next
    /// poll, outside of a section. Allocates.
    pub fn spawn(&mut self, task: impl FnOnce(&mut Context<'_, S, H>) + 'static) {
        self.tasks.push_back(Box::new(task));
    }

    /// The state that handlers share.
    #[inline]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The same, to change it. Handlers run in calls of this end point only.
    #[inline]
    pub fn state_mut(&mut self) -> &mut S {
        &mut self.state
    }

    /// What it has done so far.
    pub fn statistics(&self) -> Statistics {
        self.endpoint.statistics
    }

    /// Why a node is gone, if it is. Moves no packets.
    pub fn lost(&self, node: u32) -> Option<hamlyn::LinkEnd> {
        let group = &self.endpoint.group;
        group.hear(&mut group.manager.session());
        group.lost(node)
    }

    /// Waits until everything that was injected has been handed to its links, as long as `wait`
    /// says; false if the time was over first. A program that ends calls this last.
    pub fn flush(&mut self, wait: Wait) -> Result<bool, Error> {
        Ok(self.endpoint.group.manager.session().flush(wait)?)
    }

    /// Closes the end point: messages for it are refused from now on, and tasks do not run.
    pub fn close(self) {
        self.endpoint.close();
    }

    /// True if handlers run now of themselves.
    #[inline]
    fn runs_handlers(&self) -> bool {
        self.interrupt == Interrupt::Safepoint && !self.endpoint.uac.is_atomic()
    }

    fn check(&mut self) -> Result<(), Error> {
        match self.failure.take() {
            None if self.endpoint.is_in_handler => Err(Error::HandlerPanicked),
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    pub(crate) fn fail_later(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    #[inline]
    pub(crate) fn run(&mut self, most: usize, is_upcall: bool) -> Result<usize, Error> {
        if self.failure.is_some() || self.endpoint.is_in_handler {
            self.check()?;
        }
        let mut count = 0;
        while count < most && self.endpoint.next(&mut self.message)? {
            if !self.take_own() {
                self.handle(is_upcall);
                count += 1;
            }
        }
        if !self.tasks.is_empty() && !self.endpoint.uac.is_atomic() {
            self.run_tasks();
        }
        Ok(count)
    }

    /// Runs the handler of the message that was taken.
    #[inline]
    fn handle(&mut self, is_upcall: bool) {
        if is_upcall {
            self.endpoint.statistics.upcalls += 1;
            H::passes(Point::Udm(UdmPoint::Upcall));
        }
        let number = usize::from(self.message.handler());
        let Some(Some(handler)) = self.handlers.get_mut(number) else {
            self.endpoint.statistics.unhandled += 1;
            return;
        };
        let before = self.endpoint.uac.enter_handler();
        self.endpoint.is_in_handler = true;
        H::passes(Point::Udm(UdmPoint::HandlerBegun));
        handler(Arrival {
            call: Call {
                message: &self.message,
                context: Context {
                    state: &mut self.state,
                    endpoint: &mut self.endpoint,
                    tasks: &mut self.tasks,
                },
            },
        });
        H::passes(Point::Udm(UdmPoint::HandlerEnded));
        self.endpoint.is_in_handler = false;
        self.endpoint.uac.leave_handler(before);
    }

    /// Takes a message of the layer.
    #[inline]
    fn take_own(&mut self) -> bool {
        let is_own = self.message.handler() == BARRIER;
        if is_own {
            let (source, round) = (self.message.source(), self.message.word(0));
            self.barrier.came(self.endpoint.group.me, source, round);
            self.endpoint.extracted();
        }
        is_own
    }

    #[inline(never)]
    fn run_tasks(&mut self) {
        // Those that they spawn are next.
        while let Some(task) = self.tasks.pop_front() {
            task(&mut Context {
                state: &mut self.state,
                endpoint: &mut self.endpoint,
                tasks: &mut self.tasks,
            });
        }
    }
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
