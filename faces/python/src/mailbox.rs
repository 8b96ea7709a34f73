//! Mailboxes: messages of many senders, each of one packet at most, which wait for their receiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use hamlyn::PeerIdentity;
use hamlyn::mailbox::{self, Mail as Lending, MailboxOptions};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::aio;
use crate::borrowing::Borrowing;
use crate::bytes::{check, with_bytes, with_writable};
use crate::endpoint::{EndPoint, NoMessage};
use crate::error::Failure;
use crate::figures::MailboxInfo;
use crate::figures::refusals;
use crate::host::Host;
use crate::lending::{BorrowsShared, End, Lent};
use crate::manager::Manager;
use crate::message::{Message, sender};
use crate::peer::Peer;
use crate::ticket::Ticket;
use crate::waiting::{Timeout, fence, found, or_wait, wait_for};

impl Lent<mailbox::Receiver<Host>> for Lending<'static, Host> {
    const NAME: &'static str = "mail";

    fn peer(&self) -> Option<PeerIdentity> {
        self.sender()
    }
}

// SAFETY: it has references to the port and the manager of its receiver, both shared.
unsafe impl BorrowsShared for Lending<'static, Host> {}

type Receiving = End<mailbox::Receiver<Host>, Lending<'static, Host>>;

/// The queue of a mailbox that is to be opened.
pub(crate) fn mailbox_options(queue_bytes: u32, peer_bytes: Option<u32>) -> MailboxOptions {
    MailboxOptions {
        queue_bytes,
        peer_bytes,
    }
}

/// A message of a mailbox, in memory of its receiver's own: its sender cannot change it any more.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Mail;

#[pymethods]
impl Mail {
    /// Who sent it; None if the link over which it came ended long ago.
    #[getter]
    fn sender(slf: Bound<'_, Self>) -> PyResult<Option<Peer>> {
        sender(&slf.as_super().get().0)
    }
}

/// The receiving end. Its senders need not wait until it is ready: what they send meanwhile waits
/// in its queue, on one host in the order of each sender. A message that finds no room there is
/// refused.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct MailboxReceiver(Arc<Receiving>);

impl MailboxReceiver {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: mailbox::Receiver<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "mailbox", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }

    /// The state of the mailbox. Needs no release of the mail that is held.
    fn port_info(&self) -> PyResult<hamlyn::port::PortInfo> {
        let held = self.0.held.enter()?;
        Ok(held.beside().info().map_err(Failure::from)?)
    }
}

#[pymethods]
impl MailboxReceiver {
    /// The next mail; None if none came in time. The one before is released: BufferError if a view
    /// of it is alive.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Py<Mail>>> {
        let came = wait_for(py, &self.0.held, timeout, |held, wait| {
            let came = held.hold(|end| Ok(end.recv(wait)?))?;
            Ok(came.map(|(bytes, state)| {
                Borrowing::new(self.0.clone(), state, Some(bytes), bytes.len())
            }))
        })?;
        let Some(borrowing) = came else {
            return Ok(None);
        };
        Py::new(py, (Mail, Message(borrowing))).map(Some)
    }

    /// A copy of the next mail, which is released at once; None if none came in time. The quickest
    /// way for short ones.
    #[pyo3(signature = (timeout=None))]
    fn recv_bytes<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let came = wait_for(py, &self.0.held, timeout, |held, wait| {
            held.bring(|end| Ok(end.recv(wait)?))
        })?;
        came.map(|it| it.into_object(py, || self.0.clone()))
            .transpose()
    }

    /// Receives into a buffer that can be written, and returns the number of bytes; None if none
    /// came in time. TooLong if the buffer is too short: the next receive gives the mail.
    #[pyo3(signature = (buffer, timeout=None))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<usize>> {
        with_writable(buffer, "the buffer", |into| {
            wait_for(py, &self.0.held, timeout, |held, wait| {
                held.receive_into(into, |end| Ok(end.recv(wait)?))
            })
        })
    }

    /// Like `recv`, awaited in the running event loop of asyncio.
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

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Mail>>> {
        self.recv(py, None)
    }

    /// A ticket for it, with which others send without a name. Good until `revoke`.
    #[getter]
    fn ticket(&self) -> PyResult<Ticket> {
        Ok(Ticket(self.0.held.enter()?.beside().ticket()))
    }

    /// Changes the key: tickets given out before are worthless, and messages that were sent with
    /// them and have not come are refused. Those that wait stay. The mail before is released.
    fn revoke(&self) -> PyResult<()> {
        let mut held = self.0.held.enter()?;
        Ok(held.end()?.revoke().map_err(Failure::from)?)
    }

    /// The state of its queue, and the packets it refused.
    #[getter]
    fn info(&self) -> PyResult<MailboxInfo> {
        Ok(MailboxInfo(self.port_info()?))
    }

    /// Packets refused here, by reason.
    #[getter]
    fn refusals(&self) -> PyResult<BTreeMap<String, u64>> {
        Ok(refusals(&self.port_info()?.refusals))
    }
}

type Sending = End<mailbox::Sender<Host>, NoMessage>;

/// The sending end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct MailboxSender(Arc<Sending>);

impl MailboxSender {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: mailbox::Sender<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "sender to a mailbox", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }
}

#[pymethods]
impl MailboxSender {
    /// Sends any object with a contiguous buffer, of `message_bytes_max` at most, and waits until
    /// the link has room. Returned means accepted: if the mailbox has no room when the message
    /// comes, it is refused there, and `fence` raises. TimedOut: nothing was sent.
    #[pyo3(signature = (data, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "a message", |bytes| {
            let sent = wait_for(py, &self.0.held, timeout, |held, wait| {
                or_wait(held.end()?.send(bytes, wait))
            })?;
            found(sent.map(drop), None)
        })
    }

    /// Like `send`, awaited in the running event loop of asyncio.
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        data: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "a message")?;
        aio::send(slf.as_any(), (data,))
    }

    /// Bytes of the longest message that the link takes at present: 64 KiB on one host, unless set
    /// otherwise; what a datagram of the network has room for, between hosts. None if the link has
    /// ended.
    #[getter]
    fn message_bytes_max(&self) -> PyResult<Option<usize>> {
        Ok(self.0.held.enter()?.end()?.message_bytes_max())
    }

    /// Waits until everything that was sent to the receiver's manager has come. Refused if some
    /// was not accepted, with the reason.
    #[pyo3(signature = (timeout=None))]
    fn fence(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        fence(py, &self.0.held, timeout, |held, wait| {
            Ok(held.end()?.fence(wait)?)
        })
    }

    /// Like `fence`, awaited in the running event loop of asyncio.
    fn fence_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let sender = slf.get().0.held.enter()?.end()?.clone();
        let future = Box::pin(async move { Ok(sender.fence_async().await?) });
        aio::drive(slf.as_any(), slf.get().0.held.gate(), future, false)
    }
}
