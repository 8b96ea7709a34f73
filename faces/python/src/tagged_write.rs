//! Tagged remote writes: a deposit at a place of the sender's choosing, and a tag that is queued at the receiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use hamlyn::tagged_write;
use pyo3::prelude::*;

use crate::aio;
use crate::area::Area;
use crate::bytes::{check, with_bytes};
use crate::endpoint::{EndPoint, NoMessage};
use crate::error::Failure;
use crate::figures::refusals;
use crate::host::Host;
use crate::lending::End;
use crate::manager::Manager;
use crate::number;
use crate::peer::Peer;
use crate::ticket::Ticket;
use crate::waiting::{Timeout, fence, found, or_wait, wait_for};

type Receiving = End<tagged_write::Receiver<Host>, NoMessage>;

/// A tag that came: a number, `int(tag)`, and who sent it.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Tag {
    tag: tagged_write::Tag,
    end: Arc<Receiving>,
}

#[pymethods]
impl Tag {
    /// The tag.
    #[getter]
    fn tag(&self) -> u64 {
        self.tag.tag
    }

    /// Who sent it; None if its link ended long ago.
    #[getter]
    fn sender(&self) -> PyResult<Option<Peer>> {
        Ok(self
            .end
            .held
            .enter()?
            .end()?
            .sender(&self.tag)
            .map(Peer::new))
    }

    fn __int__(&self) -> u64 {
        self.tag.tag
    }

    fn __index__(&self) -> u64 {
        self.tag.tag
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .extract::<u64>()
            .is_ok_and(|other| other == self.tag.tag)
    }

    fn __hash__(&self) -> u64 {
        self.tag.tag
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Tag {}>", self.tag.tag)
    }
}

/// The receiving end: an area to be written, and a queue of tags.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct TaggedWriteReceiver(Arc<Receiving>);

impl TaggedWriteReceiver {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: tagged_write::Receiver<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "receiver of tagged writes", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }
}

#[pymethods]
impl TaggedWriteReceiver {
    /// The next tag; None if none came in time. Overrun if tags were lost: their queue was too short.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Tag>> {
        let tag = wait_for(py, &self.0.held, timeout, |held, wait| {
            Ok(held.end()?.recv(wait)?)
        })?;
        Ok(tag.map(|tag| Tag {
            tag,
            end: Arc::clone(&self.0),
        }))
    }

    /// The next tag as a number; None if none came in time.
    #[pyo3(signature = (timeout=None))]
    fn get_tag(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<u64>> {
        wait_for(py, &self.0.held, timeout, |held, wait| {
            Ok(held.end()?.get_tag(wait)?)
        })
    }

    /// Waits for that very tag; others that come meanwhile stay queued, in order. None if it did not come in time.
    #[pyo3(signature = (tag, timeout=None))]
    fn get_specific_tag(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::tag)] tag: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<u64>> {
        wait_for(py, &self.0.held, timeout, |held, wait| {
            Ok(held.end()?.get_specific_tag(tag, wait)?)
        })
    }

    /// As `recv`, awaited in the running event loop of asyncio.
    fn recv_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::recv(slf.as_any())
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::next(slf.as_any())
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Tag>> {
        self.recv(py, None)
    }

    /// The memory that senders write; it may change at any time.
    #[getter]
    fn area(&self) -> PyResult<Area> {
        let mut held = self.0.held.enter()?;
        let end = held.end()?;
        let length_bytes = end.ticket().length_bytes;
        Ok(Area::new(
            self.0.held.gate(),
            end.area().clone(),
            length_bytes,
        ))
    }

    /// A ticket for the whole area.
    #[getter]
    fn ticket(&self) -> PyResult<Ticket> {
        Ok(Ticket(self.0.held.enter()?.end()?.ticket()))
    }

    /// A ticket for a part of the area. Its holder's library keeps to the part; the receiver enforces the whole area only.
    fn ticket_for(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: u64,
    ) -> PyResult<Ticket> {
        let ticket = self.0.held.enter()?.end()?.ticket_for(offset, length);
        Ok(Ticket(ticket.map_err(Failure::from)?))
    }

    /// Tags lost to overrun so far.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        Ok(self.0.held.enter()?.end()?.lost())
    }

    /// Gives the area a fresh key: tickets given out before are worthless.
    fn revoke(&self) -> PyResult<()> {
        Ok(self
            .0
            .held
            .enter()?
            .end()?
            .revoke()
            .map_err(Failure::from)?)
    }

    /// Packets refused here, by reason.
    #[getter]
    fn refusals(&self) -> PyResult<BTreeMap<String, u64>> {
        let info = self.0.held.enter()?.end()?.info();
        Ok(refusals(&info.map_err(Failure::from)?.refusals))
    }
}

type Sending = End<tagged_write::Sender<Host>, NoMessage>;

/// The sending end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct TaggedWriteSender(Arc<Sending>);

impl TaggedWriteSender {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: tagged_write::Sender<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "sender of tagged writes", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }
}

#[pymethods]
impl TaggedWriteSender {
    /// Writes data of one packet at most to `offset`, and queues `tag` at the receiver. TimedOut: nothing was sent.
    #[pyo3(signature = (offset, data, tag, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::tag)] tag: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "what is written", |bytes| {
            let sent = wait_for(py, &self.0.held, timeout, |held, wait| {
                or_wait(held.end()?.send(offset, bytes, tag, wait))
            })?;
            found(sent.map(drop), None)
        })
    }

    /// As `send`, awaited in the running event loop of asyncio.
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: Bound<'py, PyAny>,
        #[pyo3(from_py_with = number::tag)] tag: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "what is written")?;
        aio::send(slf.as_any(), (offset, data, tag))
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
        let sender = slf.get().0.held.enter()?.end()?.clone();
        let future = Box::pin(async move { Ok(sender.fence_async().await?) });
        aio::drive(slf.as_any(), slf.get().0.held.gate(), future, false)
    }
}
