//! The way out to handlers and tasks of the program, and the calls that they make.

use std::cell::Cell;
use std::ffi::c_void;

use hamlyn::Host;
use hamlyn::forks::Birth;
use hamlyn_udm::{Arrival, AtomError, Call, Context, InjectError, Message};

use crate::node::{Function, Inside, NOTHING, State};
use crate::status::{Code, FORKED, Failure};

/// Runs a function; its calls for its end point go to `inside` meanwhile.
fn run(function: Function, inside: &mut dyn Inside) {
    let inside: *mut (dyn Inside + '_) = inside;
    // SAFETY: the same type, for longer than it is there; it is taken away below.
    let inside: *mut (dyn Inside + 'static) = unsafe { std::mem::transmute(inside) };
    let before = RUNNING.replace(Some((function.udm, inside, Birth::here())));
    // SAFETY: the program gave it as a function of this type.
    unsafe { (function.function)(function.udm, function.argument) };
    RUNNING.set(before);
}

/// With the process in which the function runs.
type Running = (*mut c_void, *mut (dyn Inside + 'static), Birth);

thread_local! {
    static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
}

/// The handler or the task that runs in this thread for that end point, if one does. An error in a
/// child that it has forked.
#[inline]
pub(crate) fn running_of<'a>(udm: *const c_void) -> Result<Option<&'a mut dyn Inside>, Failure> {
    let Some((own, inside, birth)) = RUNNING.get() else {
        return Ok(None);
    };
    if own.cast_const() == udm && !birth.is_here() {
        return Err(FORKED);
    }
    // SAFETY: the function runs, so that is there, and nobody else uses it: the call from which the
    // function runs holds it for that, and of the function's calls there is one at a time, during
    // which no function runs.
    Ok((own.cast_const() == udm).then(|| unsafe { &mut *inside }))
}

const NO_SPAWN: Failure = Failure::new(
    Code::InHandler,
    "a handler that a signal runs spawns no task",
);

/// The handler of a message, for the layer. It extracts further ones into `next`.
pub(crate) fn handler<H: Host + 'static>(
    function: Function,
    mut next: Message,
) -> impl for<'a> FnMut(Arrival<'a, State, H>) -> Call<'a, State, H> + Send + 'static {
    move |mut arrival| {
        let is_interrupt = arrival.context().is_interrupt();
        let mut handling = Handling {
            stage: Stage::Arrived(arrival),
            next: &mut next,
        };
        match is_interrupt {
            true => hamlyn_boundary::in_interrupt(|| run(function, &mut handling)),
            false => run(function, &mut handling),
        }
        match handling.stage {
            Stage::Extracted(call) => call,
            Stage::Arrived(arrival) => {
                let number = arrival.peek().handler();
                let mut call = arrival.extract();
                call.state().undisposed.get_or_insert(number);
                call
            }
            // `extract` leaves none of this.
            Stage::Between => unreachable!("a message was lost while it was extracted"),
        }
    }
}

/// A task, for the layer.
pub(crate) fn task<H: Host + 'static>(
    function: Function,
) -> impl FnOnce(&mut Context<State, H>) + Send + 'static {
    // All of it moves: its parts alone may not.
    move |context| {
        let function: Function = function;
        run(function, &mut Task(context));
    }
}

enum Stage<'a, H: Host + 'static> {
    Arrived(Arrival<'a, State, H>),
    Extracted(Call<'a, State, H>),
    Between,
}

/// The message of a handler, and those that it takes after that.
struct Handling<'a, 'm, H: Host + 'static> {
    stage: Stage<'a, H>,
    next: &'m mut Message,
}

impl<H: Host + 'static> Handling<'_, '_, H> {
    #[inline]
    fn context(&mut self) -> &mut Context<State, H> {
        match &mut self.stage {
            Stage::Arrived(arrival) => arrival.context(),
            Stage::Extracted(call) => call,
            Stage::Between => unreachable!("a message was lost while it was extracted"),
        }
    }
}

/// A task of the program.
struct Task<'a, H: Host + 'static>(&'a mut Context<State, H>);

const IN_TASK: Failure = Failure::new(
    Code::InHandler,
    "a task extracts no messages: they are for their handlers, or for the program in a section",
);

impl<H: Host + 'static> Task<'_, H> {
    fn context(&mut self) -> &mut Context<State, H> {
        self.0
    }
}

/// The calls that go to the surroundings of a handler or a task.
macro_rules! by_context {
    () => {
        fn me(&mut self) -> u32 {
            self.context().me()
        }

        fn nodes(&mut self) -> u32 {
            self.context().nodes()
        }

        #[inline]
        fn inject(
            &mut self,
            to: u32,
            handler: u16,
            words: &[u32],
            waits: bool,
        ) -> Result<(), Failure> {
            let context = self.context();
            Ok(match waits {
                true => context.inject(to, handler, words),
                false => context.try_inject(to, handler, words),
            }?)
        }

        fn inject_bytes(
            &mut self,
            to: u32,
            handler: u16,
            bytes: &[u8],
            waits: bool,
        ) -> Result<(), Failure> {
            let context = self.context();
            Ok(match waits {
                true => context.inject_bytes(to, handler, bytes),
                false => context.try_inject_bytes(to, handler, bytes),
            }?)
        }

        fn bytes_max(&mut self, to: u32) -> Result<usize, InjectError> {
            self.context().bytes_max(to)
        }

        fn inject_bulk(
            &mut self,
            to: u32,
            handler: u16,
            words: &[u32],
            data: &[u8],
            at: usize,
        ) -> Result<(), InjectError> {
            self.context().inject_bulk(to, handler, words, data, at)
        }

        fn area(&mut self) -> &mut [u8] {
            self.context().area()
        }

        fn space_available(&mut self, to: u32) -> Result<usize, InjectError> {
            self.context().space_available(to)
        }

        fn begin(&mut self, mask: u8) -> Result<(), AtomError> {
            self.context().begin_atomic(mask)
        }

        fn end(&mut self, mask: u8) -> Result<(), Failure> {
            Ok(self.context().end_atomic(mask)?)
        }

        fn uac(&mut self) -> u8 {
            self.context().uac()
        }

        fn spawn(&mut self, function: Function) -> Result<(), Failure> {
            if hamlyn_boundary::is_interrupt() {
                return Err(NO_SPAWN);
            }
            self.context().spawn(task(function));
            Ok(())
        }
    };
}

impl<H: Host + 'static> Inside for Handling<'_, '_, H> {
    fn peek(&mut self) -> Result<Option<&Message>, Failure> {
        match &mut self.stage {
            Stage::Arrived(arrival) => Ok(Some(arrival.peek())),
            Stage::Extracted(call) => Ok(call.peek_next()?),
            Stage::Between => unreachable!("a message was lost while it was extracted"),
        }
    }

    fn extract(&mut self) -> Result<&Message, Failure> {
        let is_first = matches!(self.stage, Stage::Arrived(_));
        self.stage = match std::mem::replace(&mut self.stage, Stage::Between) {
            Stage::Arrived(arrival) => Stage::Extracted(arrival.extract()),
            other => other,
        };
        let Stage::Extracted(call) = &mut self.stage else {
            return Err(NOTHING);
        };
        if is_first {
            return Ok(call.message());
        }
        match call.extract_next(self.next)? {
            true => Ok(self.next),
            false => Err(NOTHING),
        }
    }

    by_context!();
}

impl<H: Host + 'static> Inside for Task<'_, H> {
    fn peek(&mut self) -> Result<Option<&Message>, Failure> {
        Err(IN_TASK)
    }

    fn extract(&mut self) -> Result<&Message, Failure> {
        Err(IN_TASK)
    }

    by_context!();
}
