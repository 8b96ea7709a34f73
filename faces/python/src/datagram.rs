//! Datagrams: one message into one buffer, if the receiver is ready for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hamlyn::datagram::{self, Datagram as Lending};
use hamlyn::{PeerIdentity, Wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::aio;
use crate::borrowing::Borrowing;
use crate::bytes::{with_bytes, with_writable};
use crate::endpoint::{EndPoint, NoMessage};
use crate::error::Failure;
use crate::figures::refusals;
use crate::host::{Handle, Host};
use crate::lending::{End, Holding, Lent, released};
use crate::manager::Manager;
use crate::message::{Message, sender};
use crate::number;
use crate::peer::Peer;
use crate::ticket::Ticket;
use crate::waiting::{Timeout, detached, fence, found, or_wait, wait_for};

impl Lent<datagram::Receiver<Host>> for Lending<'static, Host> {
    const NAME: &'static str = "datagram";

    fn peer(&self) -> Option<PeerIdentity> {
        self.sender()
    }
}

type Receiving = End<datagram::Receiver<Host>, Lending<'static, Host>>;

/// A datagram, where it landed. Its receiver is ready for the next one when it is released.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Datagram(Arc<Receiving>);

#[pymethods]
impl Datagram {
    /// Who sent it; None if the link over which it came ended long ago.
    #[getter]
    fn sender(slf: Bound<'_, Self>) -> PyResult<Option<Peer>> {
        sender(&slf.as_super().get().0)
    }

    /// Where in the buffer it lies.
    #[getter]
    fn offset(slf: Bound<'_, Self>) -> PyResult<u32> {
        Ok(slf.get().ask(&slf, |datagram| datagram.offset())?)
    }

    /// Where the sender awaits an answer, if it said so.
    #[getter]
    fn reply_ticket(slf: Bound<'_, Self>) -> PyResult<Option<Ticket>> {
        let ticket = slf.get().ask(&slf, |datagram| datagram.reply_ticket())?;
        Ok(ticket.map(Ticket))
    }
}

impl Datagram {
    fn ask<R>(
        &self,
        slf: &Bound<'_, Self>,
        ask: impl FnOnce(&Lending<'static, Host>) -> R,
    ) -> Result<R, Failure> {
        let state = slf.as_super().get().0.state();
        let mut held = self.0.held.enter()?;
        held.message_of(state)
            .map(|datagram| ask(datagram))
            .ok_or_else(|| released(Lending::NAME))
    }
}

/// The receiving end: it has one buffer, and is ready from when it is bound until a datagram comes, and again when that is released. A
/// datagram that comes while it is not ready is refused.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct DatagramReceiver {
    end: Arc<Receiving>,
    ticket: Mutex<hamlyn::Ticket>,
}

impl DatagramReceiver {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        mut end: datagram::Receiver<Host>,
    ) -> PyResult<Py<Self>> {
        end.ready();
        let ticket = Mutex::new(end.ticket());
        let end = End::new(manager.get().gate(), "receiver of datagrams", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self { end, ticket }, base))
    }
}

#[pymethods]
impl DatagramReceiver {
    /// The next datagram; None if none came in time. The one before is released: BufferError if a view of it is alive.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Py<Datagram>>> {
        let came = wait_for(py, &self.end.held, timeout, |held, wait| {
            let came = held.hold(|end| Ok(end.recv(wait)?))?;
            Ok(came.map(|(bytes, state)| {
                Borrowing::new(self.end.clone(), state, Some(bytes), bytes.len())
            }))
        })?;
        let Some(borrowing) = came else {
            return Ok(None);
        };
        Py::new(py, (Datagram(Arc::clone(&self.end)), Message(borrowing))).map(Some)
    }

    /// A copy of the next datagram, which is released at once; None if none came in time. The quickest way for short ones.
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
    /// next receive gives the datagram.
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

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Datagram>>> {
        self.recv(py, None)
    }

    /// A ticket for the whole buffer, with which others send without a name. Good until `revoke`.
    #[getter]
    fn ticket(&self) -> Ticket {
        Ticket(*self.ticket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it waits for a datagram: not while one is held.
    #[getter]
    fn is_ready(&self) -> PyResult<bool> {
        Ok(!self.end.held.enter()?.is_held())
    }

    /// Changes the key: tickets given out before are worthless, and when this returns nothing sent with them is written any more. The
    /// datagram before is released.
    fn revoke(&self) -> PyResult<()> {
        let mut held = self.end.held.enter()?;
        let end = held.end()?;
        end.revoke().map_err(Failure::from)?;
        *self.ticket.lock().unwrap_or_else(PoisonError::into_inner) = end.ticket();
        Ok(())
    }

    /// Forgets a datagram that came only in part, because its sender died or gave up.
    fn reset(&self) -> PyResult<()> {
        self.end.held.enter()?.end()?.reset();
        Ok(())
    }

    /// Packets refused here, by reason. The datagram before is released.
    #[getter]
    fn refusals(&self) -> PyResult<BTreeMap<String, u64>> {
        let info = self.end.held.enter()?.end()?.info();
        Ok(refusals(&info.map_err(Failure::from)?.refusals))
    }
}

/// A sender, and the manager with which it waits.
pub(crate) struct SenderEnd {
    sender: datagram::Sender<Host>,
    manager: Handle,
}

type Sending = End<SenderEnd, NoMessage>;

/// The sending end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct DatagramSender(Arc<Sending>);

impl DatagramSender {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        sender: datagram::Sender<Host>,
        handle: Handle,
    ) -> PyResult<Py<Self>> {
        let end = SenderEnd {
            sender,
            manager: handle,
        };
        let end = End::new(manager.get().gate(), "sender of datagrams", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }
}

/// How long a sender waits until it looks again whether there is room for the next part of a long datagram.
const ROOM_WAIT: Duration = Duration::from_micros(200);

#[pymethods]
impl DatagramSender {
    /// Sends any object with a contiguous buffer, and waits for room. Returned means accepted: if the receiver is not ready when the
    /// datagram comes, it is refused there, which `fence` tells. TimedOut if there was no room. If a signal or the time ends the sending
    /// of a long one in between, its receiver has a part of it, and needs its `reset`.
    #[pyo3(signature = (data, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "a datagram", |bytes| {
            // The rest of a long one is this call's alone.
            let mut begun = None;
            let sent = wait_for(py, &self.0.held, timeout, |held, wait| {
                let end = held.end()?;
                if begun.is_none() && or_wait(end.sender.send(bytes, Wait::Poll))?.is_some() {
                    return Ok(Some(()));
                }
                let sender = begun.get_or_insert_with(|| end.sender.clone());
                send_slowly(&end.manager, sender, bytes, wait)
            })?;
            found(sent, None)
        })
    }

    /// As `send`, to `offset` in the buffer, with a ticket at which an answer is awaited, of a receiver of this manager. Signals do not
    /// end it.
    #[pyo3(signature = (offset, data, reply=None, timeout=None))]
    fn send_to(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u32,
        data: &Bound<'_, PyAny>,
        reply: Option<PyRef<'_, Ticket>>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        let reply = reply.map(|ticket| ticket.0);
        let wait = Timeout::wait(timeout);
        with_bytes(data, "a datagram", |bytes| {
            let send = |held: &mut Holding<SenderEnd, NoMessage>| {
                or_wait(
                    held.end()?
                        .sender
                        .send_to(offset, bytes, reply.as_ref(), wait),
                )
            };
            found(detached(py, &self.0.held, send)?.map(drop), None)
        })
    }

    /// As `send`, awaited in the running event loop of asyncio.
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        data: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // A long one goes in several parts, so nobody may change it meanwhile.
        let bytes = with_bytes(&data, "a datagram", |bytes| Ok(bytes.to_vec()))?;
        let mut sender = slf.get().0.held.enter()?.end()?.sender.clone();
        let future = Box::pin(async move {
            sender.send_async(&bytes).await?;
            Ok(())
        });
        aio::drive(slf.as_any(), slf.get().0.held.gate(), future, false)
    }

    /// Waits until everything that was sent to the receiver's manager is in its place there. Refused if some was not accepted, with the
    /// reason.
    #[pyo3(signature = (timeout=None))]
    fn fence(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        fence(py, &self.0.held, timeout, |held, wait| {
            Ok(held.end()?.sender.fence(wait)?)
        })
    }

    /// As `fence`, awaited in the running event loop of asyncio.
    fn fence_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let sender = slf.get().0.held.enter()?.end()?.sender.clone();
        let future = Box::pin(async move { Ok(sender.fence_async().await?) });
        aio::drive(slf.as_any(), slf.get().0.held.gate(), future, false)
    }
}

/// Sends what there is room for, and waits. The sender notes how much of it is sent.
fn send_slowly(
    manager: &Handle,
    sender: &mut datagram::Sender<Host>,
    bytes: &[u8],
    wait: Wait,
) -> Result<Option<()>, Failure> {
    let mut context = Context::from_waker(Waker::noop());
    let until = match wait {
        Wait::For(span) => Some(Instant::now() + span),
        Wait::Poll | Wait::Forever => None,
    };
    loop {
        match sender.poll_send(&mut context, bytes) {
            Poll::Ready(Ok(_)) => return Ok(Some(())),
            Poll::Ready(Err(error)) => return Err(error.into()),
            Poll::Pending => {}
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        match left {
            Some(left) if !left.is_zero() => {
                manager.wait(Wait::For(left.min(ROOM_WAIT)))?;
            }
            _ => return Ok(None),
        }
    }
}
