//! Sending by the lower layer: one message, many, gathered ones, stores; and what became of them.

use std::sync::Arc;

use hamlyn::engine::limits::DIRECT_BYTES_MAX;
use hamlyn::engine::terminus::{
    Completion, GatherPiece, SendHandle as Handled, SendTag, TerminusId,
};
use hamlyn::error::SendError;
use hamlyn::{Message, Wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{HeldBytes, check, with_bytes};
use crate::error::{Failure, Kind};
use crate::gate::{Gate, Guarded};
use crate::host::Handle;
use crate::number;
use crate::slot::Target;
use crate::terminus::{Terminus, terminus_of};
use crate::waiting::{NO_ROOM, Timeout, detached, found, or_wait, wait_for};

/// A message for `Interface.send_many`: any object with a contiguous buffer, where in the ticket's place it goes, and what goes with it.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct OutgoingMessage {
    data: Py<PyAny>,
    offset: u64,
    word: u64,
    metadata: Option<Py<PyBytes>>,
    silent: bool,
}

#[pymethods]
impl OutgoingMessage {
    /// `word`: that of fast mode. `metadata`: up to 60 bytes, to an entry. `silent`: it lands unannounced.
    #[new]
    #[pyo3(signature = (data, offset=0, *, word=0, metadata=None, silent=false))]
    fn new(
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::word)] word: u64,
        metadata: Option<Py<PyBytes>>,
        silent: bool,
    ) -> PyResult<Self> {
        check(data, "a message")?;
        Ok(Self {
            data: data.clone().unbind(),
            offset,
            word,
            metadata,
            silent,
        })
    }
}

/// Says which message was sent, so that `Interface.completion` tells what became of it.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct SendHandle {
    handle: Handled,
    gate: Arc<Gate>,
}

#[pymethods]
impl SendHandle {
    /// Its number among all messages of the manager, from 1.
    #[getter]
    fn sequence(&self) -> u64 {
        self.handle.sequence
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.SendHandle of message {}>", self.handle.sequence)
    }
}

/// What `Interface.send_many` has sent.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Sent {
    count: usize,
    last: Option<Py<SendHandle>>,
    stopped_by: Option<Py<PyAny>>,
}

#[pymethods]
impl Sent {
    /// How many messages.
    #[getter]
    fn count(&self) -> usize {
        self.count
    }

    /// The last of them: what is done for it is done for those before.
    #[getter]
    fn last(&self, py: Python<'_>) -> Option<Py<SendHandle>> {
        self.last.as_ref().map(|last| last.clone_ref(py))
    }

    /// The exception for which the next one was not sent; None if all were.
    #[getter]
    fn stopped_by(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.stopped_by.as_ref().map(|error| error.clone_ref(py))
    }

    fn __repr__(&self) -> String {
        let stopped = match self.stopped_by {
            Some(_) => ", and not all",
            None => "",
        };
        format!("<hamlyn.Sent of {} messages{stopped}>", self.count)
    }
}

/// Where messages go, and by what.
pub(crate) struct Way<'a> {
    pub(crate) manager: &'a Arc<Guarded<Handle>>,
    pub(crate) terminus: Option<&'a Terminus>,
    pub(crate) target: &'a Target,
}

/// What goes with the data of a message.
pub(crate) struct Beside<'a> {
    pub(crate) offset: u64,
    pub(crate) word: u64,
    pub(crate) metadata: Option<&'a [u8]>,
    pub(crate) silent: bool,
}

impl Beside<'_> {
    fn message<'m>(&'m self, data: &'m [u8]) -> Message<'m> {
        let mut message = Message::new(data).at(self.offset).word(self.word);
        message.metadata = self.metadata.unwrap_or_default();
        message.silent = self.silent;
        message
    }
}

/// A message that is longer may be cut when the time is over, so it is sent in one call.
fn is_long(message: &Message<'_>) -> bool {
    message.data.len() + message.metadata.len() > DIRECT_BYTES_MAX
}

impl Way<'_> {
    fn id(&self, manager: &Handle) -> Result<TerminusId, Failure> {
        terminus_of(self.manager, manager, self.terminus)
    }

    fn handle(&self, handle: Handled) -> SendHandle {
        SendHandle {
            handle,
            gate: Arc::clone(self.manager.gate()),
        }
    }

    /// Does something in slices, or, if it is not to be cut, in one call.
    fn send<R>(
        &self,
        py: Python<'_>,
        is_long: bool,
        timeout: Option<Timeout>,
        mut send: impl FnMut(&Handle, TerminusId, Wait) -> Result<R, SendError>,
    ) -> PyResult<R> {
        let sent = match is_long {
            false => wait_for(py, self.manager, timeout, |manager, wait| {
                or_wait(send(manager, self.id(manager)?, wait))
            }),
            true => detached(py, self.manager, |manager| {
                let wait = Timeout::wait(timeout);
                or_wait(send(manager, self.id(manager)?, wait))
            }),
        };
        found(sent?, None)
    }

    pub(crate) fn send_msg(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        beside: &Beside<'_>,
        timeout: Option<Timeout>,
    ) -> PyResult<SendHandle> {
        with_bytes(data, "a message", |bytes| {
            let message = beside.message(bytes);
            let is_long = is_long(&message);
            let sent = self.send(py, is_long, timeout, |manager, terminus, wait| {
                let mut interface = manager.session();
                interface.send_msg(terminus, &self.target.0, &message, wait)
            });
            sent.map(|handle| self.handle(handle))
        })
    }

    pub(crate) fn store(
        &self,
        py: Python<'_>,
        offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "what is stored", |bytes| {
            let is_long = bytes.len() > DIRECT_BYTES_MAX;
            self.send(py, is_long, timeout, |manager, terminus, wait| {
                let mut interface = manager.session();
                interface.store(terminus, &self.target.0, offset, bytes, wait)
            })
        })
    }

    pub(crate) fn send_many(
        &self,
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Sent> {
        // Python code may run while these are gathered, and not while they are sent.
        let mut held = Vec::new();
        for object in messages.try_iter()? {
            let object = object?;
            let (data, beside) = match object.cast::<OutgoingMessage>() {
                Ok(outgoing) => (outgoing.get().data.bind(py).clone(), Some(outgoing.clone())),
                Err(_) => (object, None),
            };
            held.push((HeldBytes::of(&data, "a message")?, beside));
        }
        let composed: Vec<Message<'_>> = held
            .iter()
            .map(|(data, outgoing)| {
                let message = Message::new(data.as_bytes());
                let Some(outgoing) = outgoing.as_ref().map(|outgoing| outgoing.get()) else {
                    return message;
                };
                let metadata = outgoing.metadata.as_ref();
                Message {
                    offset: outgoing.offset,
                    word: outgoing.word,
                    metadata: metadata.map_or(&[], |metadata| metadata.as_bytes(py)),
                    silent: outgoing.silent,
                    ..message
                }
            })
            .collect();
        let mut row = Row::default();
        let deadline = timeout.map(Timeout::deadline);
        let all = wait_for(py, self.manager, timeout, |manager, wait| {
            let terminus = self.id(manager)?;
            let all_left = || deadline.map_or(Wait::Forever, |deadline| deadline.wait());
            let done = row.go_on(&composed, |messages| {
                let sent = manager.session().send_many(
                    terminus,
                    &self.target.0,
                    messages.iter().copied(),
                    Wait::Poll,
                );
                let no_room = matches!(&sent, Err(SendError::WouldBlock { .. }));
                let Some(next) = messages.first().filter(|_| no_room && wait != Wait::Poll) else {
                    return sent;
                };
                let wait = if is_long(next) { all_left() } else { wait };
                let mut interface = manager.session();
                let handle = interface.send_msg(terminus, &self.target.0, next, wait)?;
                Ok(hamlyn::Sent {
                    count: 1,
                    last: Some(handle),
                    stopped_by: None,
                })
            });
            Ok(done.then_some(()))
        })?;
        let stopped_by = match (all, row.stopped_by) {
            (_, Some(error)) => Some(Failure::from(error)),
            (None, None) => Some(NO_ROOM),
            (Some(()), None) => None,
        };
        let stopped_by = stopped_by.map(PyErr::from);
        match stopped_by {
            Some(error) if row.count == 0 => Err(error),
            stopped_by => Ok(Sent {
                count: row.count,
                last: row
                    .last
                    .map(|last| Py::new(py, self.handle(last)))
                    .transpose()?,
                stopped_by: stopped_by.map(|error| error.into_value(py).into_any()),
            }),
        }
    }

    pub(crate) fn send_gather(
        &self,
        pieces: &[(u16, u64, u64)],
        beside: &Beside<'_>,
    ) -> PyResult<SendHandle> {
        let pieces: Vec<GatherPiece> = pieces
            .iter()
            .map(|&(tag, offset, length_bytes)| GatherPiece {
                tag: SendTag(tag),
                offset,
                length_bytes,
            })
            .collect();
        let manager = self.manager.enter()?;
        let terminus = self.id(&manager)?;
        let message = beside.message(&[]);
        let sent = manager
            .session()
            .send_gather(terminus, &self.target.0, &message, &pieces);
        Ok(self.handle(sent.map_err(Failure::from)?))
    }
}

/// Messages of which some have gone.
#[derive(Default)]
struct Row {
    count: usize,
    last: Option<Handled>,
    stopped_by: Option<SendError>,
}

impl Row {
    /// Sends those that are left. False if there is no room for the next at present.
    fn go_on<'m>(
        &mut self,
        messages: &[Message<'m>],
        mut send: impl FnMut(&[Message<'m>]) -> Result<hamlyn::Sent, SendError>,
    ) -> bool {
        while self.count < messages.len() {
            match send(&messages[self.count..]) {
                Ok(sent) => {
                    self.count += sent.count;
                    self.last = sent.last.or(self.last);
                }
                Err(SendError::WouldBlock { .. }) => return false,
                Err(error) => {
                    self.stopped_by = Some(error);
                    return true;
                }
            }
        }
        true
    }
}

pub(crate) fn known(
    manager: &Arc<Guarded<Handle>>,
    handle: &SendHandle,
) -> Result<Handled, Failure> {
    match Arc::ptr_eq(manager.gate(), &handle.gate) {
        true => Ok(handle.handle),
        false => Err(Failure::new(
            Kind::Invalid,
            "another manager sent this message: ask that one",
        )),
    }
}

fn name_of(completion: Completion) -> &'static str {
    match completion {
        Completion::Pending => "pending",
        Completion::Sent => "sent",
        Completion::Failed => "failed",
    }
}

pub(crate) fn completion(
    manager: &Arc<Guarded<Handle>>,
    handle: &SendHandle,
) -> PyResult<&'static str> {
    let handle = known(manager, handle)?;
    let entered = manager.enter()?;
    let found = entered.session().completion(handle);
    Ok(name_of(found.map_err(Failure::from)?))
}

pub(crate) fn drain(
    py: Python<'_>,
    manager: &Arc<Guarded<Handle>>,
    handle: &SendHandle,
    timeout: Option<Timeout>,
) -> PyResult<&'static str> {
    let handle = known(manager, handle)?;
    let drained = wait_for(py, manager, timeout, |manager, wait| {
        Ok(match manager.session().drain(handle, wait)? {
            Completion::Pending => None,
            done => Some(done),
        })
    })?;
    Ok(name_of(drained.unwrap_or(Completion::Pending)))
}
