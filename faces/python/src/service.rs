//! Request and reply: a service answers calls of many clients, now or later.

use std::any::Any;
use std::sync::Arc;

use hamlyn::service::{
    self, Answered, Call as Lending, CallError, Deferred, Reply as LendingReply, ReplyError,
};
use hamlyn::{PeerIdentity, Wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::aio;
use crate::borrowing::Borrowing;
use crate::bytes::{check, with_bytes};
use crate::endpoint::EndPoint;
use crate::error::{Failure, Kind};
use crate::gate::{Carried, Guarded, forked};
use crate::host::Host;
use crate::lending::{End, Holding, Lent, State, released};
use crate::manager::Manager;
use crate::message::Message;
use crate::peer::Peer;
use crate::waiting::{Timeout, found, wait_for};

/// A call that is answered after others were received.
struct Later {
    deferred: Deferred,
    client: Option<PeerIdentity>,
}

impl Lent<service::Service<Host>> for Lending<'static, Host> {
    const NAME: &'static str = "call";
    // Its memory goes with its client.
    const IS_DEFERRED: bool = true;

    fn keep(self) -> Result<Box<dyn Any>, Self> {
        let client = self.client();
        let deferred = self.defer();
        Ok(Box::new(Later { deferred, client }))
    }

    fn peer(&self) -> Option<PeerIdentity> {
        self.client()
    }

    fn read_kept(
        end: &mut service::Service<Host>,
        kept: &dyn Any,
        offset: usize,
        into: &mut [u8],
    ) -> bool {
        let request = kept
            .downcast_ref::<Later>()
            .and_then(|later| end.request(&later.deferred));
        let from = request.and_then(|bytes| bytes.get(offset..offset.checked_add(into.len())?));
        from.map(|from| into.copy_from_slice(from)).is_some()
    }
}

type Serving = End<service::Service<Host>, Lending<'static, Host>>;

/// A call of a client. It reads as the bytes of the request. It is answered by `reply`, once, at any time and in any order; if it is
/// deleted without a reply, its client is told so. Views of it must be gone when the next call is received, and when it is answered.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Call {
    end: Arc<Serving>,
    reply_bytes: u32,
}

#[pymethods]
impl Call {
    /// Who asks; None if the client has just gone.
    #[getter]
    fn client(slf: Bound<'_, Self>) -> PyResult<Option<Peer>> {
        let base = slf.as_super().get();
        if let Some(later) = base
            .0
            .state()
            .own()
            .kept()
            .and_then(|kept| kept.downcast_ref::<Later>())
        {
            return Ok(later.client.map(Peer::new));
        }
        Ok(base.0.peer()?.map(Peer::new))
    }

    /// Whether the client has given the call up, as far as is known before the next call is received.
    #[getter]
    fn is_cancelled(slf: Bound<'_, Self>) -> PyResult<bool> {
        let mut held = slf.get().end.held.enter()?;
        let call = held.message_of(slf.as_super().get().0.state());
        Ok(call.is_some_and(|call| call.is_cancelled()))
    }

    /// Answers with any object with a contiguous buffer; does not block. "sent", "cancelled" if the client had given the call up, or
    /// "client_gone".
    #[pyo3(signature = (data=None))]
    fn reply(slf: Bound<'_, Self>, data: Option<&Bound<'_, PyAny>>) -> PyResult<&'static str> {
        let this = slf.get();
        let state = slf.as_super().get().0.state();
        let answer = |bytes: &[u8]| -> PyResult<&'static str> {
            // The library would drop the call, and its client be told that there is no answer.
            let limit_bytes = this.reply_bytes;
            if bytes.len() > limit_bytes as usize {
                let length_bytes = bytes.len();
                return Err(Failure::from(ReplyError::TooLong {
                    length_bytes,
                    limit_bytes,
                })
                .into());
            }
            let mut held = this.end.held.enter()?;
            let answered = if held.message_of(state).is_some() {
                let call = held.use_up(state)?;
                call.reply(bytes)
            } else {
                let end = held.end()?;
                let later = state.own().take_kept::<Later>();
                let later = later.ok_or_else(|| released("call"))?;
                end.reply(later.deferred, bytes)
            };
            Ok(match answered.map_err(Failure::from)? {
                Answered::Sent => "sent",
                Answered::Cancelled => "cancelled",
                Answered::ClientGone => "client_gone",
            })
        };
        match data {
            // The request as the reply: its memory goes with the call.
            Some(data) if slf.is(data) => {
                let copy = slf.as_super().get().__bytes__(slf.py())?;
                answer(copy.as_bytes())
            }
            Some(data) => with_bytes(data, "a reply", answer),
            None => answer(&[]),
        }
    }
}

/// The answering end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct Service {
    end: Arc<Serving>,
    reply_bytes: u32,
}

impl Service {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: service::Service<Host>,
        reply_bytes: u32,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "service", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self { end, reply_bytes }, base))
    }
}

#[pymethods]
impl Service {
    /// The next call; None if none came in time. Clients that come, vanish or misbehave are no error. The call before can be answered
    /// later; BufferError if a view of it is alive.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Py<Call>>> {
        let came = wait_for(py, &self.end.held, timeout, |held, wait| {
            let came = held.hold(|end| Ok(end.next(wait)?))?;
            Ok(came.map(|(bytes, state)| {
                Borrowing::new(self.end.clone(), state, Some(bytes), bytes.len())
            }))
        })?;
        match came {
            Some(borrowing) => {
                let call = Call {
                    end: Arc::clone(&self.end),
                    reply_bytes: self.reply_bytes,
                };
                Py::new(py, (call, Message(borrowing))).map(Some)
            }
            None => Ok(None),
        }
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

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Call>>> {
        self.recv(py, None)
    }

    /// Takes away what a client has here: its calls fail, and those it makes from now on. Whether it had anything.
    fn dismiss(&self, client: &Peer) -> PyResult<bool> {
        Ok(self.end.held.enter()?.end()?.dismiss(client.identity.link))
    }

    /// Clients that were thrown out because they broke the protocol.
    #[getter]
    fn misbehaved(&self) -> PyResult<u64> {
        Ok(self.end.held.enter()?.end()?.misbehaved())
    }
}

impl Lent<service::Client<Host>> for LendingReply<'static, Host> {
    const NAME: &'static str = "reply";

    fn keep(self) -> Result<Box<dyn Any>, Self> {
        Ok(Box::new(LendingReply::keep(self)))
    }
}

type Calling = End<service::Client<Host>, LendingReply<'static, Host>>;

/// A reply, where it landed. One of which a view is alive at the client's next call or reply is kept by itself. Until it is released, the
/// client may have one call less outstanding.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Reply;

#[pymethods]
impl Reply {
    /// Keeps it beyond the client's next call, until it is released.
    fn keep(slf: Bound<'_, Self>) -> PyResult<()> {
        Ok(slf.as_super().get().0.keep()?)
    }
}

/// A call whose reply has not been taken. If it is deleted, the call is cancelled.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Pending(Guarded<service::Pending>);

#[pymethods]
impl Pending {
    /// Cancels the call: its server learns of it at the client's next call.
    fn cancel(&self) -> PyResult<()> {
        if self.0.gate().is_forked() {
            return Err(forked().into());
        }
        let _passed = self.0.gate().pass().map_err(PyErr::from)?;
        // SAFETY: the gate was passed.
        drop(unsafe { self.0.take() });
        Ok(())
    }
}

/// The calling end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct Client(Arc<Calling>);

impl Client {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: service::Client<Host>,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "client of a service", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self(end), base))
    }
}

type Held = Holding<service::Client<Host>, LendingReply<'static, Host>>;

/// Sends a request if there is room in time.
fn start(
    held: &mut Held,
    bytes: &[u8],
    wait: Wait,
    last: &mut Option<Failure>,
) -> Result<Option<service::Pending>, Failure> {
    match held.end()?.start(bytes, wait) {
        Ok(pending) => Ok(Some(pending)),
        Err(CallError::TimedOut { to } | CallError::AllOutstanding { to, .. }) => {
            let most = held.end()?.outstanding_max();
            *last = Some(Failure::of(
                Kind::TimedOut,
                &format_args!(
                    "no room in time for one more call of {to}, of which {most} may be outstanding: take a reply, cancel a call, or wait longer; the request was not sent"
                ),
            ));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

impl Client {
    fn borrow(&self, bytes: &[u8], state: Arc<State>) -> Borrowing {
        Borrowing::new(self.0.clone(), state, Some(bytes), bytes.len())
    }
}

#[pymethods]
impl Client {
    /// Sends a request, any object with a contiguous buffer, and waits for the reply. TimedOut if it did not come in time: the call is
    /// cancelled. Refused if the server dropped the call without an answer. The reply before is released, or kept if a view of it is alive;
    /// BufferError if replies to as many calls are kept as may be outstanding.
    #[pyo3(signature = (request, timeout=None))]
    fn call(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<Reply>> {
        with_bytes(request, "a request", |bytes| {
            let mut pending = None;
            let mut last = None;
            let came = wait_for(py, &self.0.held, timeout, |held, wait| {
                if pending.is_none() {
                    pending = start(held, bytes, wait, &mut last)?;
                }
                let Some(pending) = &pending else {
                    return Ok(None);
                };
                let came = held.hold(|end| Ok(end.reply(pending, wait)?))?;
                Ok(came.map(|(bytes, state)| self.borrow(bytes, state)))
            })?;
            let came = found(came, Some(last.unwrap_or(NO_ANSWER)))?;
            Py::new(py, (Reply, Message(came)))
        })
    }

    /// As `call`, and returns a copy of the reply, which is released at once. The quickest way for short ones.
    #[pyo3(signature = (request, timeout=None))]
    fn call_bytes<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        with_bytes(request, "a request", |bytes| {
            let mut pending = None;
            let mut last = None;
            let came = wait_for(py, &self.0.held, timeout, |held, wait| {
                if pending.is_none() {
                    pending = start(held, bytes, wait, &mut last)?;
                }
                let Some(pending) = &pending else {
                    return Ok(None);
                };
                held.bring(|end| Ok(end.reply(pending, wait)?))
            })?;
            let came = found(came, Some(last.unwrap_or(NO_ANSWER)))?;
            came.into_object(py, || self.0.clone())
        })
    }

    /// Sends a request without waiting for the reply, which `reply` takes. Waits if as many calls are outstanding as may be.
    #[pyo3(signature = (request, timeout=None))]
    fn start(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Pending> {
        with_bytes(request, "a request", |bytes| {
            let mut last = None;
            let begun = wait_for(py, &self.0.held, timeout, |held, wait| {
                Ok(start(held, bytes, wait, &mut last)?.map(Carried))
            })?;
            let pending = found(begun, last)?.into_inner();
            Ok(Pending(Guarded::new(self.0.held.gate(), "call", pending)))
        })
    }

    /// The reply to a call that was started; None if it did not come in time: the call goes on. Calls may be asked for in any order.
    #[pyo3(signature = (call, timeout=None))]
    fn reply(
        &self,
        py: Python<'_>,
        call: &Pending,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<Py<Reply>>> {
        let came = wait_for(py, &self.0.held, timeout, |held, wait| {
            let is_of_same = Arc::ptr_eq(call.0.gate(), self.0.held.gate());
            // SAFETY: the gate was passed, and it is that of the call; nobody else reaches the call meanwhile.
            let pending = is_of_same.then(|| unsafe { call.0.behind() }).flatten();
            let pending = pending.ok_or(NOT_PENDING)?;
            let came = held.hold(|end| Ok(end.reply(pending, wait)?))?;
            Ok(came.map(|(bytes, state)| self.borrow(bytes, state)))
        })?;
        match came {
            Some(borrowing) => Py::new(py, (Reply, Message(borrowing))).map(Some),
            None => Ok(None),
        }
    }

    /// As `call_bytes`, awaited in the running event loop of asyncio. Several may be awaited at a time.
    fn call_async<'py>(
        slf: Bound<'py, Self>,
        request: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&request, "a request")?;
        aio::call_service(slf.as_any(), request)
    }

    /// As `start`, awaited in the running event loop of asyncio.
    fn start_async<'py>(
        slf: Bound<'py, Self>,
        request: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&request, "a request")?;
        aio::coroutine(slf.py(), "start", (slf, request))
    }

    /// As `reply`, awaited in the running event loop of asyncio, and returns a copy of the reply. A task that is cancelled loses nothing: the
    /// call goes on.
    fn reply_async<'py>(
        slf: Bound<'py, Self>,
        call: Bound<'py, Pending>,
    ) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "reply", (slf, call))
    }

    /// The address of the service.
    #[getter]
    fn to(&self) -> PyResult<String> {
        Ok(self.0.held.enter()?.end()?.to().to_owned())
    }

    /// Calls that may be outstanding at a time.
    #[getter]
    fn outstanding_max(&self) -> PyResult<u16> {
        Ok(self.0.held.enter()?.end()?.outstanding_max())
    }

    /// Bytes of the longest request.
    #[getter]
    fn request_bytes_max(&self) -> PyResult<u32> {
        Ok(self.0.held.enter()?.end()?.request_bytes_max())
    }
}

/// A call that cannot be asked for.
const NOT_PENDING: Failure = Failure::new(
    Kind::Released,
    "this call has no reply to come: it was cancelled, or is another client's",
);

/// A call without a reply in time.
const NO_ANSWER: Failure = Failure::new(
    Kind::TimedOut,
    "the service did not answer in time: wait for longer, or ask again; the call was cancelled, and may have been carried out",
);
