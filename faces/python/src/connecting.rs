//! Connecting: what end points connect to, and one attempt after another until they have.
//!
//! The library connects in the thread that calls it, and has no form for tasks. So a task looks in its loop while nobody is there, which
//! takes no time. While a peer is to answer, a thread of the loop's executor waits, for a second at most, with a handle of the manager of
//! its own; other tasks use the manager meanwhile. What is connected becomes an object in the thread of the loop.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hamlyn::Wait;
use hamlyn::error::ConnectError;
use hamlyn::host::{Address, ConnectError as Reach};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::address::{To, address_of};
use crate::aio;
use crate::bytes::with_bytes;
use crate::datagram::DatagramSender;
use crate::error::Failure;
use crate::gate::{Closing, Gate, closed, forked};
use crate::group::GroupSender;
use crate::host::Handle;
use crate::loans::Subscriber;
use crate::mailbox::MailboxSender;
use crate::manager::Manager;
use crate::service::Client;
use crate::slot::Target;
use crate::stream::StreamSender;
use crate::tagged_write::TaggedWriteSender;
use crate::ticket::{Member, Ticket};
use crate::waiting::{
    Deadline, LONG_SLICE, Timeout, found, or_look_again, or_try_again, wait_long,
};

/// What was connected: it makes an object of it that belongs to a manager.
type Made = Box<dyn FnOnce(&Bound<'_, Manager>) -> PyResult<Py<PyAny>> + Send>;
/// Connects, for as long as the wait says.
type Attempt = Box<dyn FnMut(&Handle, Wait) -> Result<Made, Failure> + Send>;

/// What is to be connected.
pub(crate) struct Connect {
    /// Who has it, if a program said so by name.
    name: Option<String>,
    /// What is not there may come yet.
    awaits_absent: bool,
    attempt: Attempt,
}

impl Connect {
    /// One attempt. Nothing if another may succeed; then `last` says why this one did not.
    fn attempt(
        &mut self,
        handle: &Handle,
        wait: Wait,
        last: &mut Option<Failure>,
    ) -> Result<Option<Made>, Failure> {
        let made = (self.attempt)(handle, wait);
        match self.awaits_absent {
            true => or_try_again(made, last),
            false => or_look_again(made, last),
        }
    }
}

/// Connects by `connect`, and makes an object by `make`.
fn connecting<E: Send + 'static>(
    name: Option<String>,
    connect: impl FnMut(&Handle, Wait) -> Result<E, ConnectError> + Send + 'static,
    make: impl Fn(&Bound<'_, Manager>, E) -> PyResult<Py<PyAny>> + Copy + Send + 'static,
) -> Connect {
    Connect {
        name,
        awaits_absent: true,
        ..fetching(connect, make)
    }
}

/// Fetches by `connect` what a peer has, or has not, and makes an object of it by `make`.
pub(crate) fn fetching<E: Send + 'static, F: Into<Failure>>(
    mut connect: impl FnMut(&Handle, Wait) -> Result<E, F> + Send + 'static,
    make: impl Fn(&Bound<'_, Manager>, E) -> PyResult<Py<PyAny>> + Copy + Send + 'static,
) -> Connect {
    let attempt = move |handle: &Handle, wait| {
        let end = connect(handle, wait).map_err(Into::into)?;
        let made: Made = Box::new(move |manager| make(manager, end));
        Ok(made)
    };
    Connect {
        name: None,
        awaits_absent: false,
        attempt: Box::new(attempt),
    }
}

/// Whose end point has that address; nothing if it is none, which the attempt says.
fn name_of(address: &str) -> Option<String> {
    let (name, _) = address.rsplit_once('/')?;
    (name.matches('/').count() <= 1).then(|| name.to_owned())
}

impl To {
    fn name(&self) -> Option<String> {
        match self {
            Self::Address(address) => name_of(address),
            Self::Ticket(_) => None,
        }
    }
}

pub(crate) fn datagram(to: To) -> Connect {
    connecting(
        to.name(),
        move |it, wait| match &to {
            To::Address(address) => it.connect_datagram(address, wait),
            To::Ticket(ticket) => hamlyn::datagram::Sender::grow(it, ticket, wait),
        },
        |manager, end| {
            let handle = manager.get().handle()?;
            Ok(DatagramSender::new(manager, end, handle)?.into_any())
        },
    )
}

pub(crate) fn stream(to: &Bound<'_, PyAny>) -> PyResult<Connect> {
    let make = |manager: &Bound<'_, Manager>, end| Ok(StreamSender::new(manager, end)?.into_any());
    if let Ok(address) = to.extract::<String>() {
        let name = name_of(&address);
        let connect = move |it: &Handle, wait| it.connect_stream(&address, wait);
        return Ok(connecting(name, connect, make));
    }
    let seed = with_bytes(to, "where to connect to, if it is no str,", |bytes| {
        Ok(hamlyn::stream::StreamSeed::from_bytes(bytes).map_err(Failure::from)?)
    })?;
    let connect = move |it: &Handle, wait| hamlyn::stream::Sender::grow(it, &seed, wait);
    Ok(connecting(None, connect, make))
}

pub(crate) fn tagged_write(to: To) -> Connect {
    connecting(
        to.name(),
        move |it, wait| match &to {
            To::Address(address) => it.connect_tagged_write(address, wait),
            To::Ticket(ticket) => hamlyn::tagged_write::Sender::grow(it, ticket, wait),
        },
        |manager, end| Ok(TaggedWriteSender::new(manager, end)?.into_any()),
    )
}

pub(crate) fn mailbox(to: To) -> Connect {
    connecting(
        to.name(),
        move |it, wait| match &to {
            To::Address(address) => it.connect_mailbox(address, wait),
            To::Ticket(ticket) => hamlyn::mailbox::Sender::grow(it, ticket, wait),
        },
        |manager, end| Ok(MailboxSender::new(manager, end)?.into_any()),
    )
}

pub(crate) fn group(to: &Bound<'_, PyAny>) -> PyResult<Connect> {
    let make = |manager: &Bound<'_, Manager>, end| Ok(GroupSender::new(manager, end)?.into_any());
    if let Ok(member) = to.cast::<Member>() {
        let member = member.get().0;
        let connect = move |it: &Handle, wait| hamlyn::group::Sender::grow(it, &member, wait);
        return Ok(connecting(None, connect, make));
    }
    let address = address_of(to, "a Member")?;
    let name = name_of(&address);
    let connect = move |it: &Handle, wait| it.connect_group(&address, wait);
    Ok(connecting(name, connect, make))
}

pub(crate) fn service(to: String) -> Connect {
    connecting(
        name_of(&to),
        move |it, wait| it.connect_service(&to, wait),
        |manager, end| Ok(Client::new(manager, end)?.into_any()),
    )
}

pub(crate) fn subscriber(to: String, trusts_publisher: bool) -> Connect {
    connecting(
        name_of(&to),
        move |it, wait| it.connect_subscriber(&to, wait),
        move |manager, end| Ok(Subscriber::new(manager, end, trusts_publisher)?.into_any()),
    )
}

/// What the manager `name` offers under an item.
pub(crate) fn offer(name: String, item: String) -> Connect {
    connecting(
        Some(name.clone()),
        move |it, wait| it.ask(Address::Name(&name), &item, wait),
        |manager, bytes| Ok(PyBytes::new(manager.py(), &bytes).into_any().unbind()),
    )
}

pub(crate) fn target(ticket: &Ticket) -> Connect {
    let ticket = ticket.0;
    connecting(
        None,
        move |it, wait| Ok(it.session().target(&ticket, wait)?),
        |manager, target| Ok(Py::new(manager.py(), Target(target))?.into_any()),
    )
}

/// Connects in the calling thread.
pub(crate) fn wait(
    manager: &Bound<'_, Manager>,
    mut connect: Connect,
    timeout: Option<Timeout>,
) -> PyResult<Py<PyAny>> {
    let mut last = None;
    let guarded = manager.get().guarded();
    let made = wait_long(
        manager.py(),
        guarded,
        timeout,
        LONG_SLICE,
        |handle, wait| connect.attempt(handle, wait, &mut last),
    )?;
    found(made, last)?(manager)
}

/// A coroutine that connects.
pub(crate) fn begin<'py>(
    manager: &Bound<'py, Manager>,
    connect: Connect,
    timeout: Option<Timeout>,
) -> PyResult<Bound<'py, PyAny>> {
    let gate = manager.get().gate();
    let progress = Arc::new(Progress {
        gate: Arc::clone(gate),
        state: Mutex::new(State::Looking(Attempts {
            handle: manager.get().handle()?,
            connect,
            deadline: timeout.map_or(Deadline::NEVER, Timeout::deadline),
            last: None,
        })),
    });
    let closing: Arc<dyn Closing> = progress.clone();
    gate.register(&closing);
    let connecting = Connecting {
        manager: manager.clone().unbind(),
        progress,
    };
    aio::coroutine(manager.py(), "connect", (connecting,))
}

/// What a task connects with.
struct Attempts {
    handle: Handle,
    connect: Connect,
    deadline: Deadline,
    /// Why the attempt before came to nothing.
    last: Option<Failure>,
}

/// What came of a look.
enum Look {
    Made(Made),
    /// Nobody is there.
    Absent,
    /// Somebody is there, who has not answered.
    Unanswered,
}

impl Attempts {
    /// Looks without waiting whether anybody is there. It asks for an item under which nothing is offered: an attempt that has no
    /// time to end may take a member of a group, and lose it.
    fn look(&mut self) -> Result<Look, Failure> {
        let is_over = self.deadline.left(LONG_SLICE).is_none();
        if let Some(last) = self.last.take_if(|_| is_over) {
            return Err(last);
        }
        let Some(name) = &self.connect.name else {
            return Ok(Look::Unanswered);
        };
        match self.handle.ask(Address::Name(name), NOTHING, Wait::Poll) {
            Err(ConnectError::Reach(why @ (Reach::Absent { .. } | Reach::UnknownHost { .. }))) => {
                self.last = Some(why.into());
                Ok(Look::Absent)
            }
            // Another name could be wrong, which the attempt says.
            _ => Ok(Look::Unanswered),
        }
    }

    /// Waits for an answer.
    fn wait(&mut self) -> Result<Look, Failure> {
        let wait = match self.deadline.left(LONG_SLICE) {
            Some(left) => Wait::For(left),
            // It is tried once in any case.
            None if self.last.is_none() => Wait::Poll,
            None => return Ok(Look::Unanswered),
        };
        let made = self.connect.attempt(&self.handle, wait, &mut self.last)?;
        Ok(made.map_or(Look::Unanswered, Look::Made))
    }
}

/// An item under which nothing is offered.
const NOTHING: &str = "hamlyn.nothing-is-offered-under-this";

/// How far a task is.
enum State {
    Looking(Attempts),
    /// An attempt is under way.
    Trying,
    Made(Made),
    /// It has its object, has failed, was given up, or its manager was closed.
    Over,
}

struct Progress {
    gate: Arc<Gate>,
    /// Not locked while an attempt is under way.
    state: Mutex<State>,
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was connected is closed; what an attempt connects that is under way, when that is over.
    fn give_up(&self) {
        // In a forked child it is the parent's, and a thread of the parent's may have had the lock.
        if self.gate.is_forked() {
            return;
        }
        let given_up = mem::replace(&mut *self.lock(), State::Over);
        drop(given_up);
    }

    fn advance(
        &self,
        look: impl FnOnce(&mut Attempts) -> Result<Look, Failure>,
    ) -> Result<&'static str, Failure> {
        let mut attempts = {
            let mut state = self.lock();
            match mem::replace(&mut *state, State::Trying) {
                State::Looking(attempts) => attempts,
                other => {
                    *state = other;
                    return Err(closed("manager"));
                }
            }
        };
        let looked = look(&mut attempts);
        let mut state = self.lock();
        if !matches!(&*state, State::Trying) {
            // What was connected is closed without the lock.
            drop(state);
            return Err(closed("manager"));
        }
        let (next, said) = match looked {
            Ok(Look::Made(made)) => (State::Made(made), Ok("connected")),
            Ok(Look::Absent) => (State::Looking(attempts), Ok("absent")),
            Ok(Look::Unanswered) => (State::Looking(attempts), Ok("unanswered")),
            Err(failure) => (State::Over, Err(failure)),
        };
        *state = next;
        said
    }
}

impl Closing for Progress {
    fn close(self: Arc<Self>) {
        self.give_up();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.gate.is_forked() {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            mem::forget(mem::replace(state, State::Over));
        }
    }
}

/// An end point that a task connects.
#[pyclass(frozen, name = "_Connecting", module = "hamlyn")]
pub(crate) struct Connecting {
    manager: Py<Manager>,
    progress: Arc<Progress>,
}

impl Connecting {
    fn advance(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&mut Attempts) -> Result<Look, Failure> + Send,
    ) -> PyResult<&'static str> {
        let progress = &self.progress;
        if progress.gate.is_forked() {
            return Err(forked().into());
        }
        // Attempts and what they connect are dropped without the interpreter's lock, too: the last handle closes the manager.
        Ok(py.detach(|| progress.advance(look))?)
    }
}

#[pymethods]
impl Connecting {
    /// Looks without waiting: "absent", nobody is there; or "unanswered", somebody may be.
    fn look(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.advance(py, Attempts::look)
    }

    /// Waits for an answer, for a second at most: "connected" or "unanswered". For another thread.
    fn wait(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.advance(py, Attempts::wait)
    }

    /// What was connected. To be asked once.
    fn made(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.progress.gate.is_forked() {
            return Err(forked().into());
        }
        let state = mem::replace(&mut *self.progress.lock(), State::Over);
        match state {
            State::Made(made) => made(self.manager.bind(py)),
            _ => Err(closed("manager").into()),
        }
    }

    /// Connects no more, and closes what was connected.
    fn give_up(&self, py: Python<'_>) {
        py.detach(|| self.progress.give_up());
    }
}
