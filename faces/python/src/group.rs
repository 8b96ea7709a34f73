//! Groups: one message, made of the parts of many senders, and one notification when all of it has come.

use std::sync::Arc;

use hamlyn::engine::counting::Counting;
use hamlyn::group;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::aio;
use crate::borrowing::Borrowing;
use crate::bytes::{check, with_bytes};
use crate::endpoint::{EndPoint, NoMessage};
use crate::error::Failure;
use crate::host::Host;
use crate::lending::{End, Lent};
use crate::manager::Manager;
use crate::message::Message;
use crate::number;
use crate::ticket::Member;
use crate::waiting::{Timeout, fence, found, or_wait, wait_for};

/// Bits of a group's count.
pub(crate) fn counting(bits: u32) -> PyResult<Counting> {
    match bits {
        32 => Ok(Counting::Bits32),
        64 => Ok(Counting::Bits64),
        _ => Err(PyValueError::new_err(format!(
            "counting is 32 or 64 bits, not {bits}"
        ))),
    }
}

/// What a round of a group brought.
pub(crate) struct Gathering(&'static [u8]);

impl Lent<group::Receiver<Host>> for Gathering {
    const NAME: &'static str = "gathering";
}

type Receiving = End<group::Receiver<Host>, Gathering>;

/// What all members of a group sent together, where it landed.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Gathered;

#[pymethods]
impl Gathered {}

/// The receiving end of a group.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct GroupReceiver(Arc<Receiving>);

impl GroupReceiver {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: group::Receiver<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "receiver of a group", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }
}

#[pymethods]
impl GroupReceiver {
    /// Begins a round: divides the buffer into consecutive parts of these lengths, and offers each to one of those that connect, in that
    /// order. BufferError if a view of the round before is alive.
    fn begin_shared(
        &self,
        #[pyo3(from_py_with = number::lengths)] lengths: Vec<u64>,
    ) -> PyResult<()> {
        let begun = self.0.held.enter()?.end()?.begin_shared(&lengths);
        Ok(begun.map_err(Failure::from)?)
    }

    /// Begins a round: the whole of the buffer as one member, to be divided among senders by the program.
    fn begin(&self) -> PyResult<Member> {
        let begun = self.0.held.enter()?.end()?.begin();
        Ok(Member(begun.map_err(Failure::from)?))
    }

    /// Waits until everything from all members has come; None if that was not so in time.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Py<Gathered>>> {
        let came = wait_for(py, &self.0.held, timeout, |held, wait| {
            let came = held.hold(|end| Ok(end.recv(wait)?.map(Gathering)))?;
            Ok(came.map(|(Gathering(bytes), state)| {
                Borrowing::new(self.0.clone(), state, Some(bytes), bytes.len())
            }))
        })?;
        match came {
            Some(borrowing) => Py::new(py, (Gathered, Message(borrowing))).map(Some),
            None => Ok(None),
        }
    }

    /// As `recv`, awaited in the running event loop of asyncio.
    fn recv_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::recv(slf.as_any())
    }
}

/// Parts are sent in stretches of so many bytes at most, each of which is one packet: so it is sent whole or not at all.
const STRETCH_BYTES: usize = 16 << 10;

type Sending = End<group::Sender<Host>, NoMessage>;

/// A member of a group: the sender of one part.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct GroupSender(Arc<Sending>);

impl GroupSender {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: group::Sender<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "member of a group", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }

    fn send_stretches(
        &self,
        py: Python<'_>,
        offset: u64,
        data: &Bound<'_, PyAny>,
        is_last: bool,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "a part", |bytes| {
            let mut sent = 0;
            let all = wait_for(py, &self.0.held, timeout, |held, wait| {
                let end = held.end()?;
                let most = stretch_bytes_max(end);
                loop {
                    let left = &bytes[sent..];
                    let at = offset.saturating_add(sent as u64);
                    let (stretch, rest) = left.split_at(left.len().min(most));
                    let result = match is_last && rest.is_empty() {
                        true => end.send_last(at, stretch, wait),
                        false => end.send(at, stretch, wait),
                    };
                    if or_wait(result)?.is_none() {
                        return Ok(None);
                    }
                    sent += stretch.len();
                    if rest.is_empty() {
                        return Ok(Some(()));
                    }
                }
            })?;
            found(all, None)
        })
    }
}

/// A stretch to a peer that is gone says so, however long it is.
fn stretch_bytes_max(end: &group::Sender<Host>) -> usize {
    let most = end.packet_bytes_max().unwrap_or(STRETCH_BYTES);
    most.clamp(1, STRETCH_BYTES)
}

#[pymethods]
impl GroupSender {
    /// Bytes of the longest stretch that is sent whole or not at all: one packet of the link, 16 KiB at most.
    #[getter]
    fn stretch_bytes_max(&self) -> PyResult<usize> {
        Ok(stretch_bytes_max(self.0.held.enter()?.end()?))
    }

    /// Sends a stretch of the part that is not the last. After TimedOut a beginning of it may have been sent.
    #[pyo3(signature = (offset, data, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        self.send_stretches(py, offset, data, false, timeout)
    }

    /// Sends the last stretch of the part.
    #[pyo3(signature = (offset, data, timeout=None))]
    fn send_last(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        self.send_stretches(py, offset, data, true, timeout)
    }

    /// As `send`, awaited in the running event loop of asyncio. A task that is cancelled may have sent a beginning of it.
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "a part")?;
        aio::coroutine(slf.py(), "send_part", (slf, offset, data, false))
    }

    /// As `send_last`, awaited in the running event loop of asyncio. A task that is cancelled may have sent a beginning of it.
    fn send_last_async<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "a part")?;
        aio::coroutine(slf.py(), "send_part", (slf, offset, data, true))
    }

    /// Waits until everything that was sent to the receiver's manager is in its place there. Refused if some was not accepted.
    #[pyo3(signature = (timeout=None))]
    fn fence(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        fence(py, &self.0.held, timeout, |held, wait| {
            Ok(held.end()?.fence(wait)?)
        })
    }

    /// As `fence`, awaited in the running event loop of asyncio.
    fn fence_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let fence = slf.get().0.held.enter()?.end()?.fence_async();
        let future = Box::pin(async move { Ok(fence.await?) });
        aio::drive(slf.as_any(), slf.get().0.held.gate(), future, false)
    }
}
