//! Lanes: buffers of one size for the messages of one peer, and pools of buffers for those of many.
//!
//! A message is copied when it is received, and its buffer given back at once: Python reads most bytes by copies anyway, and a view that
//! keeps a buffer would keep its sender's credit.

use std::collections::BTreeMap;
use std::sync::Arc;

use hamlyn::engine::key::Key;
use hamlyn::engine::memory::LinkId;
use hamlyn::error::{NotSent, SendError};
use hamlyn::lane::{
    LaneOptions, LaneSeed, LaneSender as Sending, SEED_BYTES, SharedLane as Pool, SharedLaneOptions,
};
use hamlyn::{NewPort, PeerIdentity, Session, Wait};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::aio;
use crate::bytes::{check, with_bytes};
use crate::connecting::{self, Connect};
use crate::error::Failure;
use crate::figures::MailboxInfo;
use crate::figures::refusals;
use crate::gate::Guarded;
use crate::host::{Handle, Host};
use crate::manager::Manager;
use crate::number;
use crate::peer::Peer;
use crate::slot::Target;
use crate::ticket::Ticket;
use crate::waiting::{Timeout, found, or_wait, wait_for};

/// A message that came, or was kept.
struct Came {
    data: Vec<u8>,
    tag: u32,
    sender: Option<PeerIdentity>,
}

impl Came {
    fn new(session: &mut Session<'_, Host>, data: &[u8], tag: u32, link: Option<LinkId>) -> Self {
        Self {
            data: data.to_vec(),
            tag,
            sender: link.and_then(|link| session.identity_of(link)),
        }
    }

    fn into_message(self, py: Python<'_>) -> LaneMessage {
        LaneMessage {
            data: PyBytes::new(py, &self.data).unbind(),
            tag: self.tag,
            sender: self.sender,
        }
    }
}

/// A message of a lane or of a shared lane, or one that a sender kept. Its buffer was given back when it was received.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct LaneMessage {
    data: Py<PyBytes>,
    tag: u32,
    sender: Option<PeerIdentity>,
}

#[pymethods]
impl LaneMessage {
    /// Its bytes.
    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyBytes> {
        self.data.clone_ref(py)
    }

    /// The number that its sender gave it.
    #[getter]
    fn tag(&self) -> u32 {
        self.tag
    }

    /// Who sent it; None if the link over which it came ended long ago, and of a message that was kept.
    #[getter]
    fn sender(&self) -> Option<Peer> {
        self.sender.map(Peer::new)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let length = self.data.as_bytes(py).len();
        format!("<hamlyn.LaneMessage of {length} bytes, tag {}>", self.tag)
    }
}

/// Closes an end: the other one is told.
fn close<T>(
    manager: &Guarded<Handle>,
    end: &Guarded<T>,
    close: impl FnOnce(T, &mut Session<'_, Host>),
) -> PyResult<()> {
    let manager = manager.enter()?;
    // SAFETY: the gate was passed, and there is no other reference.
    if let Some(end) = unsafe { end.take() } {
        close(end, &mut manager.session());
    }
    Ok(())
}

/// The receiving end of a lane: buffers of one size, which one peer fills without asking. Each message waits in its buffer until it is
/// received; a sender without a free buffer waits.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Lane {
    owner: Py<Manager>,
    manager: Arc<Guarded<Handle>>,
    lane: Guarded<hamlyn::lane::Lane>,
}

impl Lane {
    pub(crate) fn open(
        owner: Py<Manager>,
        manager: &Arc<Guarded<Handle>>,
        options: LaneOptions,
    ) -> PyResult<Self> {
        let lane = hamlyn::lane::Lane::open(&mut manager.enter()?.session(), options);
        Ok(Self {
            owner,
            manager: Arc::clone(manager),
            lane: Guarded::new(manager.gate(), "lane", lane.map_err(Failure::from)?),
        })
    }
}

#[pymethods]
impl Lane {
    /// The manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.owner.clone_ref(py)
    }

    /// The seed of its sender, 60 bytes, to be used by one peer, once.
    #[getter]
    fn seed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let seed: [u8; SEED_BYTES] = self.lane.enter()?.seed().to_bytes();
        Ok(PyBytes::new(py, &seed))
    }

    /// The next message; None if none came in time. Closed if the sender has ended and everything was received; PeerGone if it is gone.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<LaneMessage>> {
        let came = wait_for(py, &self.manager, timeout, |manager, wait| {
            // SAFETY: the gate was passed with the manager, whose it is.
            let lane = unsafe { self.lane.behind_or_closed() }?;
            let mut session = manager.session();
            let Some(message) = lane.recv(&mut session, wait)? else {
                return Ok(None);
            };
            let (tag, link) = (message.tag(), lane.link());
            let came = Came::new(&mut session, lane.bytes(&message), tag, link);
            lane.give_back(&mut session, message);
            Ok(Some(came))
        })?;
        Ok(came.map(|came| came.into_message(py)))
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

    /// Closes it; its sender is told.
    fn close(&self) -> PyResult<()> {
        close(&self.manager, &self.lane, hamlyn::lane::Lane::close)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}

/// The sending end of a lane.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct LaneSender {
    owner: Py<Manager>,
    manager: Arc<Guarded<Handle>>,
    sender: Guarded<Sending>,
}

/// Connects to a lane by its seed.
pub(crate) fn connecting(seed: &Bound<'_, PyAny>) -> PyResult<Connect> {
    let seed = with_bytes(seed, "the seed", |bytes| {
        Ok(LaneSeed::from_bytes(bytes).map_err(Failure::from)?)
    })?;
    Ok(connecting::fetching(
        move |handle, wait| Sending::connect(&mut handle.session(), &seed, wait),
        |manager, sender| {
            let guarded = manager.get().guarded();
            let sender = LaneSender {
                owner: manager.clone().unbind(),
                manager: Arc::clone(guarded),
                sender: Guarded::new(guarded.gate(), "sender of a lane", sender),
            };
            Ok(Py::new(manager.py(), sender)?.into_any())
        },
    ))
}

impl LaneSender {
    fn check_buffer(&self, buffer: u16) -> PyResult<()> {
        match buffer < self.sender.enter()?.buffers() {
            true => Ok(()),
            false => Err(PyIndexError::new_err("the lane has no such buffer")),
        }
    }

    fn send_by(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
        mut send: impl FnMut(
            &mut Sending,
            &mut Session<'_, Host>,
            &[u8],
            Wait,
        ) -> Result<u16, SendError>,
    ) -> PyResult<u16> {
        with_bytes(data, "a message", |bytes| {
            let sent = wait_for(py, &self.manager, timeout, |manager, wait| {
                // SAFETY: the gate was passed with the manager, whose it is.
                let sender = unsafe { self.sender.behind_or_closed() }?;
                let mut session = manager.session();
                or_wait(send(sender, &mut session, bytes, wait))
            })?;
            found(sent, None)
        })
    }
}

#[pymethods]
impl LaneSender {
    /// The manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.owner.clone_ref(py)
    }

    /// Sends any object with a contiguous buffer, of `buffer_bytes` at most, and waits until a buffer is free and the link has room: the
    /// number of the buffer. Closed if the receiver has closed the lane. TimedOut: nothing was sent.
    #[pyo3(signature = (data, tag=0, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::tag)] tag: u32,
        timeout: Option<Timeout>,
    ) -> PyResult<u16> {
        self.send_by(py, data, timeout, |sender, session, bytes, wait| {
            sender.send(session, tag, bytes, wait)
        })
    }

    /// The same to a buffer of the program's choice, as soon as that is free.
    #[pyo3(signature = (buffer, data, tag=0, timeout=None))]
    fn send_to(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::buffer)] buffer: u16,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::tag)] tag: u32,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        self.check_buffer(buffer)?;
        let sent = self.send_by(py, data, timeout, |sender, session, bytes, wait| {
            sender.send_to(session, buffer, tag, bytes, wait)
        });
        sent.map(drop)
    }

    /// The same as `send`, and a copy is kept until credit comes for it: `take_kept`.
    #[pyo3(signature = (data, tag=0, timeout=None))]
    fn send_kept(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::tag)] tag: u32,
        timeout: Option<Timeout>,
    ) -> PyResult<u16> {
        let mut copy = None;
        self.send_by(py, data, timeout, |sender, session, bytes, wait| {
            let data = copy.take().unwrap_or_else(|| bytes.to_vec());
            let sent = sender.send_kept(session, tag, data, wait);
            sent.map_err(|NotSent { error, data }| {
                copy = Some(data);
                error
            })
        })
    }

    /// Like `send`, awaited in the running event loop of asyncio.
    #[pyo3(signature = (data, tag=0))]
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        data: Bound<'py, PyAny>,
        #[pyo3(from_py_with = number::tag)] tag: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "a message")?;
        aio::send(slf.as_any(), (data, tag))
    }

    /// The messages that were to be kept and for which no credit came, the oldest first. They are kept no longer; the receiver may have had
    /// them.
    fn take_kept(&self, py: Python<'_>) -> PyResult<Vec<LaneMessage>> {
        let kept = self.sender.enter()?.take_kept();
        let message = |kept: hamlyn::lane::Kept| {
            let came = Came {
                data: kept.data,
                tag: kept.tag,
                sender: None,
            };
            came.into_message(py)
        };
        Ok(kept.into_iter().map(message).collect())
    }

    /// Number of buffers.
    #[getter]
    fn buffers(&self) -> PyResult<u16> {
        Ok(self.sender.enter()?.buffers())
    }

    /// Bytes of each: the longest message.
    #[getter]
    fn buffer_bytes(&self) -> PyResult<u32> {
        Ok(self.sender.enter()?.buffer_bytes())
    }

    /// Number of free buffers, as far as credit has come.
    #[getter]
    fn credits(&self) -> PyResult<usize> {
        Ok(self.sender.enter()?.credits())
    }

    /// True if that buffer is free: it was never filled, or given back since.
    fn is_free(&self, #[pyo3(from_py_with = number::buffer)] buffer: u16) -> PyResult<bool> {
        self.check_buffer(buffer)?;
        Ok(self.sender.enter()?.is_free(buffer))
    }

    /// The receiver's end, for `Interface.fence_link` and `CompletionQueue.track_fence`.
    #[getter]
    fn target(&self) -> PyResult<Target> {
        Ok(Target(*self.sender.enter()?.target()))
    }

    /// Closes it: the receiver gets all that was sent, and then learns that nothing more comes.
    fn close(&self) -> PyResult<()> {
        close(&self.manager, &self.sender, Sending::close)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}

/// One pool of buffers for the messages of many peers, each of which has a target with the `ticket` and sends with `word` as the tag. A
/// message that finds no room in the queue is refused.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct SharedLane {
    owner: Py<Manager>,
    manager: Arc<Guarded<Handle>>,
    pub(crate) lane: Guarded<Pool>,
}

/// Settings of a shared lane.
pub(crate) fn shared_options(
    port: NewPort,
    key: Option<u64>,
    buffer_bytes: u32,
    peer_bytes: Option<u32>,
) -> SharedLaneOptions {
    SharedLaneOptions {
        // Each message is copied, and its buffer given back, before the next is taken.
        buffers: 1,
        buffer_bytes,
        port: NewPort {
            key: key.map(Key::from_bits),
            peer_bytes,
            ..port
        },
    }
}

impl SharedLane {
    pub(crate) fn open(
        owner: Py<Manager>,
        manager: &Arc<Guarded<Handle>>,
        options: SharedLaneOptions,
    ) -> PyResult<Self> {
        let lane = Pool::open(&mut manager.enter()?.session(), options);
        Ok(Self {
            owner,
            manager: Arc::clone(manager),
            lane: Guarded::new(manager.gate(), "shared lane", lane.map_err(Failure::from)?),
        })
    }

    fn port_info(&self) -> PyResult<hamlyn::port::PortInfo> {
        let manager = self.manager.enter()?;
        // SAFETY: the gate was passed with the manager, whose it is.
        let lane = unsafe { self.lane.behind_or_closed() }?;
        Ok(manager
            .session()
            .port_info(lane.port())
            .map_err(hamlyn::OpenError::from)
            .map_err(Failure::from)?)
    }
}

#[pymethods]
impl SharedLane {
    /// The manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.owner.clone_ref(py)
    }

    /// A ticket for it. Good until it is closed.
    #[getter]
    fn ticket(&self) -> PyResult<Ticket> {
        Ok(Ticket(self.lane.enter()?.ticket()))
    }

    /// The next message; None if none came in time.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<LaneMessage>> {
        let came = wait_for(py, &self.manager, timeout, |manager, wait| {
            // SAFETY: the gate was passed with the manager, whose it is.
            let lane = unsafe { self.lane.behind_or_closed() }?;
            let mut session = manager.session();
            let Some(message) = lane.recv(&mut session, wait)? else {
                return Ok(None);
            };
            let (tag, from) = (message.tag().into(), message.from());
            let came = Came::new(&mut session, &message, tag, Some(from));
            lane.give_back(message);
            Ok(Some(came))
        })?;
        Ok(came.map(|came| came.into_message(py)))
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

    /// The state of its queue, as of a mailbox, and the packets that were refused.
    #[getter]
    fn info(&self) -> PyResult<MailboxInfo> {
        Ok(MailboxInfo(self.port_info()?))
    }

    /// Packets refused here, by reason.
    #[getter]
    fn refusals(&self) -> PyResult<BTreeMap<String, u64>> {
        Ok(refusals(&self.port_info()?.refusals))
    }

    /// Messages that were dropped because they are longer than a buffer: their senders did not keep to the ticket.
    #[getter]
    fn too_long(&self) -> PyResult<u64> {
        Ok(self.lane.enter()?.too_long())
    }

    /// Closes it. Messages that wait are gone.
    fn close(&self) -> PyResult<()> {
        close(&self.manager, &self.lane, |lane, _| drop(lane))
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}
