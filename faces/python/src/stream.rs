//! Streams: records in order, from one sender to one receiver, read where they landed.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hamlyn::error::SendError;
use hamlyn::stream::{self, Record as Lending, StreamOptions};
use hamlyn::{PeerIdentity, ReceiveError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::aio;
use crate::borrowing::Borrowing;
use crate::bytes::{check, with_bytes, with_writable};
use crate::endpoint::{EndPoint, NoMessage};
use crate::error::{Kind, class_of};
use crate::gate::Closing;
use crate::host::Host;
use crate::lending::{End, Holding, Lent};
use crate::manager::Manager;
use crate::message::{Message, sender};
use crate::peer::Peer;
use crate::waiting::{NOT_FLUSHED, SLICE, Timeout, fence, found, or_wait, wait_for, wait_long};

impl Lent<stream::Receiver<Host>> for Lending<'static, Host> {
    const NAME: &'static str = "record";

    fn keep(self) -> Result<Box<dyn Any>, Self> {
        Ok(Box::new(Lending::keep(self)))
    }

    fn peer(&self) -> Option<PeerIdentity> {
        self.sender()
    }
}

type Receiving = End<stream::Receiver<Host>, Lending<'static, Host>>;

/// What a stream is opened with.
pub(crate) fn stream_options(
    pieces: Option<u32>,
    piece_bytes: Option<u32>,
    limit_bytes: Option<u64>,
    ahead: bool,
) -> StreamOptions {
    let default = StreamOptions::default();
    StreamOptions {
        pieces: pieces.unwrap_or(default.pieces),
        piece_bytes: piece_bytes.unwrap_or(default.piece_bytes),
        limit_bytes: limit_bytes.unwrap_or(default.limit_bytes),
        ahead,
    }
}

/// A record, where it landed. One of which a view is alive when the next is received is kept by itself. Records may be released in any
/// order, but their sender is told of memory in order.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Record;

#[pymethods]
impl Record {
    /// Who sent it.
    #[getter]
    fn sender(slf: Bound<'_, Self>) -> PyResult<Option<Peer>> {
        sender(&slf.as_super().get().0)
    }

    /// Keeps it beyond the next receive, until it is released.
    fn keep(slf: Bound<'_, Self>) -> PyResult<()> {
        Ok(slf.as_super().get().0.keep()?)
    }
}

/// The receiving end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct StreamReceiver {
    end: Arc<Receiving>,
    seed: [u8; stream::SEED_BYTES],
}

impl StreamReceiver {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: stream::Receiver<Host>,
    ) -> PyResult<Py<Self>> {
        let seed = end.make_seed().to_bytes();
        let end = End::new(manager.get().gate(), "receiver of a stream", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self { end, seed }, base))
    }

    fn receive(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Borrowing>> {
        wait_for(py, &self.end.held, timeout, |held, wait| {
            let came = held.hold(|end| Ok(end.recv(wait)?))?;
            Ok(came.map(|(bytes, state)| {
                Borrowing::new(self.end.clone(), state, Some(bytes), bytes.len())
            }))
        })
    }
}

#[pymethods]
impl StreamReceiver {
    /// The next record; None if none came in time. Closed when the sender has closed and everything is received; PeerGone when it is gone.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Py<Record>>> {
        match self.receive(py, timeout)? {
            Some(borrowing) => Py::new(py, (Record, Message(borrowing))).map(Some),
            None => Ok(None),
        }
    }

    /// A copy of the next record, which is released at once; None if none came in time.
    #[pyo3(signature = (timeout=None))]
    fn recv_bytes<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let came = wait_for(py, &self.end.held, timeout, |held, wait| {
            held.bring(|end| Ok(end.recv(wait)?))
        })?;
        came.map(|it| it.into_object(py, || self.end.clone()))
            .transpose()
    }

    /// Receives into a buffer that can be written: how many bytes; None if none came in time. TooLong if the buffer is too short: the
    /// next receive gives the record.
    #[pyo3(signature = (buffer, timeout=None))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<usize>> {
        with_writable(buffer, "the buffer", |into| {
            wait_for(py, &self.end.held, timeout, |held, wait| {
                held.receive_into(into, |end| Ok(end.recv(wait)?))
            })
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

    /// Ends when the sender has closed.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Record>>> {
        let came = wait_for(py, &self.end.held, None, |held, wait| {
            let mut is_over = false;
            let came = held.hold(|end| match end.recv(wait) {
                Err(ReceiveError::Closed) => {
                    is_over = true;
                    Ok(None)
                }
                came => Ok(came?),
            })?;
            let came = came.map(|(bytes, state)| {
                Some(Borrowing::new(
                    self.end.clone(),
                    state,
                    Some(bytes),
                    bytes.len(),
                ))
            });
            Ok(if is_over { Some(None) } else { came })
        })?;
        match came.flatten() {
            Some(borrowing) => Py::new(py, (Record, Message(borrowing))).map(Some),
            None => Ok(None),
        }
    }

    /// What the sending end grows from, for one sender: bytes for `connect_stream`.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.seed)
    }

    /// Who sends, once the sender has presented itself. The record before is released.
    #[getter]
    fn sender(&self) -> PyResult<Option<Peer>> {
        Ok(self.end.held.enter()?.end()?.sender().map(Peer::new))
    }

    /// Bytes of memory that the stream has at present. The record before is released.
    #[getter]
    fn memory_bytes(&self) -> PyResult<u64> {
        Ok(self.end.held.enter()?.end()?.memory_bytes())
    }

    /// Gives back the memory of kept records that were released, as the next receive would.
    fn reclaim(&self) -> PyResult<()> {
        self.end.held.enter()?.end()?.reclaim();
        Ok(())
    }
}

/// Records from this length on are not tried without waiting first: what does not go at once would be copied.
const LONG_BYTES: usize = 16 << 10;

type Sending = End<stream::Sender<Host>, NoMessage>;

/// A sending end, as its manager knows it.
pub(crate) struct Outgoing {
    end: Arc<Sending>,
    /// Records that were accepted since all of them had left.
    kept: AtomicU64,
}

impl Outgoing {
    /// Closes it if some of it may be kept here, in so long a time. Returns the number of records
    /// that may be lost.
    pub(crate) fn end(&self, py: Python<'_>, timeout: Timeout) -> PyResult<u64> {
        let kept = self.kept.load(Relaxed);
        if kept == 0 || self.end.held.is_shut() {
            return Ok(0);
        }
        let closed = wait_for(py, &self.end.held, Some(timeout), |held, wait| {
            match held.end()?.close(wait) {
                // Nobody waits for it any more.
                Err(SendError::PeerLost(_) | SendError::ClosedByReceiver) => Ok(Some(())),
                closed => or_wait(closed),
            }
        })?;
        Ok(if closed.is_some() { 0 } else { kept })
    }
}

/// The sending end. One that is deleted before it is closed sends nothing more, and its receiver is told whether that was all.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct StreamSender(Arc<Outgoing>);

impl StreamSender {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: stream::Sender<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "sender of a stream", end);
        let base = EndPoint::new(manager, &end);
        let kept = AtomicU64::new(0);
        let outgoing = Arc::new(Outgoing { end, kept });
        manager.get().streams().keep(&outgoing);
        Py::new(manager.py(), (Self(outgoing), base))
    }

    fn finish(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        if self.0.end.held.is_shut() {
            return Ok(());
        }
        let closed = wait_for(py, &self.0.end.held, timeout, |held, wait| {
            or_wait(held.end()?.close(wait))
        });
        match closed {
            // There is nothing left to be done.
            Err(error) if error.is_instance(py, &class_of(py, Kind::Closed)?) => {}
            closed => found(closed?, Some(NOT_FLUSHED))?,
        }
        Closing::close(Arc::clone(&self.0.end));
        Ok(())
    }
}

#[pymethods]
impl StreamSender {
    /// Sends a record, any object with a contiguous buffer, and waits for room. TimedOut if there was none: nothing was sent. Small ones
    /// may be held back to share memory, until `flush` or a later send.
    #[pyo3(signature = (data, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "a record", |bytes| {
            let send = |held: &mut Holding<stream::Sender<Host>, NoMessage>, wait| {
                or_wait(held.end()?.send(bytes, wait))
            };
            let sent = match bytes.len() > LONG_BYTES {
                true => wait_long(py, &self.0.end.held, timeout, SLICE, send),
                false => wait_for(py, &self.0.end.held, timeout, send),
            };
            found(sent?, None)?;
            self.0.kept.fetch_add(1, Relaxed);
            Ok(())
        })
    }

    /// As `send`, awaited in the running event loop of asyncio.
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        data: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "a record")?;
        aio::send(slf.as_any(), (data,))
    }

    /// Sends what was held back.
    #[pyo3(signature = (timeout=None))]
    fn flush(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        let flushed = wait_for(py, &self.0.end.held, timeout, |held, wait| {
            or_wait(held.end()?.flush(wait))
        })?;
        found(flushed, Some(NOT_FLUSHED))?;
        self.0.kept.store(0, Relaxed);
        Ok(())
    }

    /// Sends what was held back, and waits until every record is in its place at the receiver's manager, whether its program has taken it
    /// or not.
    #[pyo3(signature = (timeout=None))]
    fn fence(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        fence(py, &self.0.end.held, timeout, |held, wait| {
            Ok(held.end()?.fence(wait)?)
        })
    }

    /// As `flush`, awaited in the running event loop of asyncio.
    fn flush_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "flush", (slf,))
    }

    /// As `fence`, awaited in the running event loop of asyncio.
    fn fence_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let fence = slf.get().0.end.held.enter()?.end()?.fence_sent_async();
        let future = Box::pin(async move { Ok(fence.await?) });
        aio::drive(slf.as_any(), slf.get().0.end.held.gate(), future, true)
    }

    /// As `close`, awaited in the running event loop of asyncio.
    fn close_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "close", (slf,))
    }

    /// Flushes and closes: the receiver learns of it after the last record. TimedOut if not everything was handed over in time: nothing
    /// is lost, and the call may be repeated.
    #[pyo3(signature = (timeout=None))]
    fn close(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        self.finish(py, timeout)
    }

    /// Closes it; after an exception without waiting.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_failed = exception.get_item(0).is_ok_and(|class| !class.is_none());
        if !is_failed {
            return self.finish(py, None);
        }
        Closing::close(Arc::clone(&self.0.end));
        Ok(())
    }

    /// Pieces of the receiver's memory that could be filled now.
    #[getter]
    fn pieces_free(&self) -> PyResult<u64> {
        Ok(self.0.end.held.enter()?.end()?.pieces_free())
    }
}
