//! Managers: opening one, binding and connecting its end points, and what is asked of it as a whole.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use hamlyn::host::Supply;
use hamlyn::host::process::Options as HostOptions;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::address::To;
use crate::aio;
use crate::bytes::with_bytes;
use crate::connecting;
use crate::datagram::DatagramReceiver;
use crate::ending::{Streams, warn};
use crate::error::{Failure, Kind};
use crate::event::Event;
use crate::figures::refusals;
use crate::gate::{Carried, Gate, Guarded};
use crate::group::{GroupReceiver, counting};
use crate::host::Handle;
use crate::interface::Interface;
use crate::lending::End;
use crate::loans::{Publisher, publisher_options};
use crate::mailbox::{MailboxReceiver, mailbox_options};
use crate::number;
use crate::options::{access, manager_options, network_use, span};
use crate::peer::Peer;
use crate::service::Service;
use crate::sleep::{Sleep, Sleeper};
use crate::stream::{StreamReceiver, stream_options};
use crate::tagged_write::TaggedWriteReceiver;
use crate::waiting::{NOT_FLUSHED, SLICE, Timeout, fence, found, wait_for, wait_long};

/// An interface and its end points, found by others under its name. It is closed by `close` or at the end of a `with`, with all its end
/// points. One thread at a time uses it and them: open one for each thread.
#[pyclass(frozen, weakref, module = "hamlyn")]
pub(crate) struct Manager {
    gate: Arc<Gate>,
    manager: Arc<Guarded<Handle>>,
    /// Another handle of it, with which event loops sleep.
    sleeper: Arc<Sleeper>,
    name: Option<String>,
    descriptor: i32,
    /// There may be other handles of it, for other threads.
    is_shared: bool,
    /// Streams whose records may be kept here when it ends.
    streams: Streams,
}

/// Opens a manager. Named, others find it; otherwise its peers are those that it connects to, or that have its tickets.
///
/// `strategy` says who drives the interface: "proc", the program's thread in its calls; "np", a thread of the library; "inject" and
/// "receive", in between. `users`, `groups` and `anyone` say who may be linked to it: the same user and root, otherwise. `network` is a
/// Network, False, or None for what the environment says. `buffer_bytes_per_peer`: memory in which each peer of this host goes on when its
/// ring is full and this manager takes nothing, a power of two from 1 MiB to 512 MiB; `patience`, in seconds: how long such a ring of a peer
/// is waited for. `shared`: other threads use it by handles of their own, `Manager.share`.
#[pyfunction]
#[pyo3(signature = (name=None, *, namespace=None, strategy="proc", queue_entries=None, spin_ns=None, users=None, groups=None, anyone=false, links_max=None, handshake_timeout=None, cells=None, arena_bytes=None, buffer_bytes_per_peer=None, buffer_bytes_total=None, patience=None, network=None, shared=false))]
#[expect(clippy::too_many_arguments, reason = "they are keywords")]
pub(crate) fn open(
    py: Python<'_>,
    name: Option<String>,
    namespace: Option<String>,
    strategy: &str,
    #[pyo3(from_py_with = number::queue_entries)] queue_entries: Option<usize>,
    #[pyo3(from_py_with = number::spin_ns)] spin_ns: Option<u64>,
    #[pyo3(from_py_with = number::users)] users: Option<Vec<u32>>,
    #[pyo3(from_py_with = number::groups)] groups: Option<Vec<u32>>,
    anyone: bool,
    #[pyo3(from_py_with = number::links_max)] links_max: Option<u32>,
    #[pyo3(from_py_with = number::handshake_timeout)] handshake_timeout: Option<f64>,
    #[pyo3(from_py_with = number::cells)] cells: Option<u32>,
    #[pyo3(from_py_with = number::arena_bytes)] arena_bytes: Option<u32>,
    #[pyo3(from_py_with = number::buffer_bytes_per_peer)] buffer_bytes_per_peer: Option<u32>,
    #[pyo3(from_py_with = number::buffer_bytes_total)] buffer_bytes_total: Option<u64>,
    #[pyo3(from_py_with = number::patience)] patience: Option<f64>,
    network: Option<&Bound<'_, PyAny>>,
    shared: bool,
) -> PyResult<Manager> {
    let mut host = HostOptions::default();
    host.name.clone_from(&name);
    host.namespace = namespace;
    host.spin_ns = spin_ns;
    host.access = access(users, groups, anyone)?;
    host.network = network_use(network)?;
    if let Some(links) = links_max {
        host.links_max = links;
    }
    if let Some(seconds) = handshake_timeout {
        host.handshake_timeout = span("handshake_timeout", seconds)?;
    }
    if let Some(cells) = cells {
        host.cells = cells;
    }
    if let Some(bytes) = arena_bytes {
        host.arena_bytes = bytes;
    }
    if let Some(bytes) = buffer_bytes_per_peer {
        host.buffer_bytes_per_peer = bytes;
    }
    if let Some(bytes) = buffer_bytes_total {
        host.buffer_bytes_total = bytes;
    }
    if let Some(seconds) = patience {
        host.patience = span("patience", seconds)?;
    }
    let options = manager_options(strategy, queue_entries)?;
    let opened = py.detach(move || hamlyn::open_shared(host, options).map(Carried));
    let manager = opened.map_err(Failure::from)?.into_inner();
    Ok(Manager::around(manager, name, shared))
}

impl Manager {
    fn around(manager: Handle, name: Option<String>, is_shared: bool) -> Self {
        let gate = Gate::new();
        let descriptor = manager
            .descriptor()
            .map_or(-1, |descriptor| descriptor.as_raw_fd());
        Self {
            sleeper: End::new(&gate, "manager", manager.clone()),
            manager: Arc::new(Guarded::new(&gate, "manager", manager)),
            gate,
            name,
            descriptor,
            is_shared,
            streams: Streams::default(),
        }
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    fn enter<R>(&self, act: impl FnOnce(&Handle) -> Result<R, Failure>) -> PyResult<R> {
        Ok(act(&*self.manager.enter()?)?)
    }

    /// Another handle of it.
    pub(crate) fn handle(&self) -> PyResult<Handle> {
        self.enter(|manager| Ok(manager.clone()))
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    pub(crate) fn guarded(&self) -> &Arc<Guarded<Handle>> {
        &self.manager
    }
}

#[pymethods]
impl Manager {
    /// The name under which others find it.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Another handle of a manager that was opened as shared, for another thread. End points belong to the handle that they were opened
    /// with, and are closed with it; the manager ends with its last handle.
    fn share(&self) -> PyResult<Self> {
        if !self.is_shared {
            return Err(Failure::new(
                Kind::Invalid,
                "this manager was not opened as shared: open it with shared=True, or a manager for each thread",
            )
            .into());
        }
        let handle = self.handle()?;
        Ok(Self::around(handle, self.name.clone(), true))
    }

    /// Whether other threads may use it by handles of their own.
    #[getter]
    fn shared(&self) -> bool {
        self.is_shared
    }

    /// Closes it and its end points. Views of messages stay good. Nothing if it was closed before.
    fn close(&self) {
        self.gate.close_ends();
        self.manager.shut();
        let manager = Arc::clone(&self.manager);
        // SAFETY: `run` has passed the gate.
        self.gate.run(move || drop(unsafe { manager.take() }));
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.manager.is_shut()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Closes it. Waits until receivers have room for the rest, 5 s at most, and after an
    /// exception not at all; then a RuntimeWarning says how much was lost.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_failed = exception.get_item(0).is_ok_and(|class| !class.is_none());
        if is_failed || self.closed() || self.gate.is_forked() {
            self.close();
            return Ok(());
        }
        let ended = self.streams.end(py, &self.manager);
        self.close();
        warn(py, ended)
    }

    fn __repr__(&self) -> String {
        let state = if self.closed() { ", closed" } else { "" };
        match &self.name {
            Some(name) => format!("<hamlyn.Manager {name:?}{state}>"),
            None => format!("<hamlyn.Manager without a name{state}>"),
        }
    }

    /// A receiver of datagrams of up to `buffer_bytes`, ready for the first. Others connect to it as name/item.
    #[pyo3(signature = (item, buffer_bytes=4096))]
    fn bind_datagram(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::buffer_bytes)] buffer_bytes: u32,
    ) -> PyResult<Py<DatagramReceiver>> {
        let end = slf
            .get()
            .enter(|it| Ok(it.bind_datagram(item, buffer_bytes)?))?;
        DatagramReceiver::new(slf, end)
    }

    /// A receiver without a name, for answers: its `ticket` is where to send. Ready for the first datagram.
    #[pyo3(signature = (buffer_bytes=4096))]
    fn open_datagram(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = number::buffer_bytes)] buffer_bytes: u32,
    ) -> PyResult<Py<DatagramReceiver>> {
        let end = slf
            .get()
            .enter(|it| Ok(hamlyn::datagram::Receiver::new(it, buffer_bytes)?))?;
        DatagramReceiver::new(slf, end)
    }

    /// Connects to a receiver of datagrams: by an address, "name/item" or "host/name/item", or by a ticket. Waits until it is there.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_datagram(
        slf: &Bound<'_, Self>,
        to: To,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::datagram(to), timeout)
    }

    /// As `connect_datagram`, awaited in the running event loop of asyncio. Other tasks use the manager meanwhile. If the task is cancelled,
    /// nothing is connected; if the peer is there and is to answer, the task ends when it has, after a second at most.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_datagram_async<'py>(
        slf: &Bound<'py, Self>,
        to: To,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::datagram(to), timeout)
    }

    /// The receiving end of a stream, for the one sender that connects first. It begins with `pieces` of `piece_bytes`, and grows up to
    /// `limit_bytes`, which bounds a record, too. With `ahead` the sender may use all of `limit_bytes` from the beginning, so that it goes
    /// on while this program reads nothing; `pieces` is not used, and pieces have 4 KiB or more. This memory takes pages as records come,
    /// and gives them back as they are read.
    #[pyo3(signature = (item, *, pieces=None, piece_bytes=None, limit_bytes=None, ahead=false))]
    fn bind_stream(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::pieces)] pieces: Option<u32>,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: Option<u32>,
        #[pyo3(from_py_with = number::limit_bytes)] limit_bytes: Option<u64>,
        ahead: bool,
    ) -> PyResult<Py<StreamReceiver>> {
        let options = stream_options(pieces, piece_bytes, limit_bytes, ahead);
        let end = slf.get().enter(|it| Ok(it.bind_stream(item, options)?))?;
        StreamReceiver::new(slf, end)
    }

    /// The same without a name: its `seed` is for its one sender.
    #[pyo3(signature = (*, pieces=None, piece_bytes=None, limit_bytes=None, ahead=false))]
    fn open_stream(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = number::pieces)] pieces: Option<u32>,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: Option<u32>,
        #[pyo3(from_py_with = number::limit_bytes)] limit_bytes: Option<u64>,
        ahead: bool,
    ) -> PyResult<Py<StreamReceiver>> {
        let options = stream_options(pieces, piece_bytes, limit_bytes, ahead);
        let end = slf
            .get()
            .enter(|it| Ok(hamlyn::stream::Receiver::new(it, options)?))?;
        StreamReceiver::new(slf, end)
    }

    /// Connects to a stream as its only sender: by an address, or by a seed in bytes.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_stream(
        slf: &Bound<'_, Self>,
        to: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::stream(to)?, timeout)
    }

    /// As `connect_stream`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_stream_async<'py>(
        slf: &Bound<'py, Self>,
        to: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::stream(to)?, timeout)
    }

    /// An area of so many bytes which any number of senders write, and room for so many tags that have not been taken.
    #[pyo3(signature = (item, area_bytes, tags=1024))]
    fn bind_tagged_write(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::area_bytes)] area_bytes: u64,
        #[pyo3(from_py_with = number::tags)] tags: usize,
    ) -> PyResult<Py<TaggedWriteReceiver>> {
        let end = slf
            .get()
            .enter(|it| Ok(it.bind_tagged_write(item, area_bytes, tags)?))?;
        TaggedWriteReceiver::new(slf, end)
    }

    /// Connects to an area that is written with tags: by an address, or by a ticket for a part of it.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_tagged_write(
        slf: &Bound<'_, Self>,
        to: To,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::tagged_write(to), timeout)
    }

    /// As `connect_tagged_write`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_tagged_write_async<'py>(
        slf: &Bound<'py, Self>,
        to: To,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::tagged_write(to), timeout)
    }

    /// A mailbox for messages of any number of senders, each of one packet at most. Messages that
    /// are not received in turn wait in a queue of `queue_bytes`, 64 to 2^30, where a message
    /// counts 64 for each 64 bytes that it begins, and 64 at least. Those of one peer may take
    /// `peer_bytes` of it, half of it otherwise. Others connect to it as name/item.
    #[pyo3(signature = (item, *, queue_bytes=1048576, peer_bytes=None))]
    fn bind_mailbox(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::queue_bytes)] queue_bytes: u32,
        #[pyo3(from_py_with = number::peer_bytes)] peer_bytes: Option<u32>,
    ) -> PyResult<Py<MailboxReceiver>> {
        let options = mailbox_options(queue_bytes, peer_bytes);
        let end = slf.get().enter(|it| Ok(it.bind_mailbox(item, options)?))?;
        MailboxReceiver::new(slf, end)
    }

    /// The same without a name: its `ticket` is where to send.
    #[pyo3(signature = (*, queue_bytes=1048576, peer_bytes=None))]
    fn open_mailbox(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = number::queue_bytes)] queue_bytes: u32,
        #[pyo3(from_py_with = number::peer_bytes)] peer_bytes: Option<u32>,
    ) -> PyResult<Py<MailboxReceiver>> {
        let options = mailbox_options(queue_bytes, peer_bytes);
        let end = slf
            .get()
            .enter(|it| Ok(hamlyn::mailbox::Receiver::new(it, options)?))?;
        MailboxReceiver::new(slf, end)
    }

    /// Connects to a mailbox: by an address, or by a ticket. Waits until it is there.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_mailbox(
        slf: &Bound<'_, Self>,
        to: To,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::mailbox(to), timeout)
    }

    /// Like `connect_mailbox`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_mailbox_async<'py>(
        slf: &Bound<'py, Self>,
        to: To,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::mailbox(to), timeout)
    }

    /// A group with a buffer of that size: one message, made of the parts of many senders. `begin_shared` offers the parts. `counting` is
    /// 32 or 64 bits: how finely it can be divided.
    #[pyo3(signature = (item, buffer_bytes, counting=32))]
    fn bind_group(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::buffer_bytes)] buffer_bytes: u32,
        #[pyo3(from_py_with = number::counting)] counting: u32,
    ) -> PyResult<Py<GroupReceiver>> {
        let counting = self::counting(counting)?;
        let end = slf
            .get()
            .enter(|it| Ok(it.bind_group(item, buffer_bytes, counting)?))?;
        GroupReceiver::new(slf, end)
    }

    /// Connects to a group as the next of its members: by an address, or by a Member.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_group(
        slf: &Bound<'_, Self>,
        to: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::group(to)?, timeout)
    }

    /// As `connect_group`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_group_async<'py>(
        slf: &Bound<'py, Self>,
        to: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::group(to)?, timeout)
    }

    /// A service that answers calls of many clients, each of which may have `outstanding` calls at a time. With `clients=0` it has as
    /// many clients at a time as the manager's `queue_entries` hold, 256 at most.
    #[pyo3(signature = (item, *, request_bytes=4096, reply_bytes=4096, outstanding=8, clients=0))]
    fn bind_service(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::request_bytes)] request_bytes: u32,
        #[pyo3(from_py_with = number::reply_bytes)] reply_bytes: u32,
        #[pyo3(from_py_with = number::outstanding)] outstanding: u16,
        #[pyo3(from_py_with = number::clients)] clients: u16,
    ) -> PyResult<Py<Service>> {
        let options = hamlyn::service::ServiceOptions {
            request_bytes,
            reply_bytes,
            outstanding,
            clients,
        };
        let end = slf.get().enter(|it| Ok(it.bind_service(item, options)?))?;
        Service::new(slf, end, reply_bytes)
    }

    /// Connects to a service.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_service(
        slf: &Bound<'_, Self>,
        to: String,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::service(to), timeout)
    }

    /// As `connect_service`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (to, timeout=None))]
    fn connect_service_async<'py>(
        slf: &Bound<'py, Self>,
        to: String,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::service(to), timeout)
    }

    /// A publisher of messages of up to `message_bytes` that readers read where they were written. `chunks`: messages at a time; `depth`:
    /// those that a reader may hold; `slow_readers`: "block" waits for them, "lose" leaves them out, "latest" gives them the newest.
    #[pyo3(signature = (item, *, message_bytes=1048576, chunks=16, depth=4, readers=64, slow_readers="block"))]
    fn bind_publisher(
        slf: &Bound<'_, Self>,
        item: &str,
        #[pyo3(from_py_with = number::message_bytes)] message_bytes: u32,
        #[pyo3(from_py_with = number::chunks)] chunks: u32,
        #[pyo3(from_py_with = number::depth)] depth: u16,
        #[pyo3(from_py_with = number::readers)] readers: u16,
        slow_readers: &str,
    ) -> PyResult<Py<Publisher>> {
        let options = publisher_options(message_bytes, chunks, depth, readers, slow_readers)?;
        let end = slf
            .get()
            .enter(|it| Ok(it.bind_publisher(item, options)?))?;
        Publisher::new(slf, end, options)
    }

    /// Connects to a publisher, as one of its readers. With `trust_publisher` views of messages are views of the publisher's memory, which
    /// it can change at any time; otherwise of a copy.
    #[pyo3(signature = (to, timeout=None, *, trust_publisher=false))]
    fn connect_subscriber(
        slf: &Bound<'_, Self>,
        to: String,
        timeout: Option<Timeout>,
        trust_publisher: bool,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::subscriber(to, trust_publisher), timeout)
    }

    /// As `connect_subscriber`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (to, timeout=None, *, trust_publisher=false))]
    fn connect_subscriber_async<'py>(
        slf: &Bound<'py, Self>,
        to: String,
        timeout: Option<Timeout>,
        trust_publisher: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::subscriber(to, trust_publisher), timeout)
    }

    /// The lower layer: areas, slots, queues, messages, and one-sided operations. What it opens belongs to this handle of the manager.
    #[getter]
    fn interface(slf: &Bound<'_, Self>) -> Interface {
        Interface::new(slf, Arc::clone(&slf.get().manager))
    }

    /// The next event; None if there was none in time.
    #[pyo3(signature = (timeout=None))]
    fn next_event(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Event>> {
        let event = wait_for(py, &self.manager, timeout, |manager, wait| {
            Ok(manager.next_event(wait)?)
        })?;
        Ok(event.map(Event::new))
    }

    /// As `next_event`, awaited in the running event loop of asyncio.
    fn next_event_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::next_event(slf.as_any())
    }

    /// Takes in what has come, and sends what waits. For programs that compute for long, and whose strategy is "proc".
    fn poll(&self) -> PyResult<bool> {
        self.enter(|manager| Ok(manager.poll_nowait()?))
    }

    /// Waits until something has happened, or the time is over, 50 ms at most: then ask the end points.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        // The library does not tell whether the time was over, so each slice ends it.
        wait_long(py, &self.manager, timeout, SLICE, |manager, wait| {
            manager.wait(wait)?;
            Ok(Some(()))
        })?;
        Ok(())
    }

    /// Waits until everything that was sent has left this program. TimedOut if it had not in time.
    #[pyo3(signature = (timeout=None))]
    fn flush(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        let flushed = wait_for(py, &self.manager, timeout, |manager, wait| {
            Ok(manager.flush(wait)?.then_some(()))
        })?;
        found(flushed, Some(NOT_FLUSHED))
    }

    /// Waits until everything that was sent to anybody is in its place there. Refused if some was not accepted, with the reason.
    #[pyo3(signature = (timeout=None))]
    fn fence(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        fence(py, &self.manager, timeout, |manager, wait| {
            Ok(manager.fence(wait)?)
        })
    }

    /// As `flush`, awaited in the running event loop of asyncio.
    fn flush_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "flush", (slf,))
    }

    /// As `fence`, awaited in the running event loop of asyncio.
    fn fence_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let handle = slf.get().handle()?;
        let future = Box::pin(async move { Ok(handle.fence_async().await?) });
        aio::drive(slf.as_any(), &slf.get().gate, future, false)
    }

    /// Offers bytes, a ticket say, to peers that ask for `item`: to all of them, or to one if `once`.
    #[pyo3(signature = (item, data, once=false))]
    fn offer(&self, item: &str, data: &Bound<'_, PyAny>, once: bool) -> PyResult<()> {
        let supply = if once { Supply::Once } else { Supply::Always };
        with_bytes(data, "an offer", |bytes| {
            self.enter(|manager| Ok(manager.session().offer(item, supply, bytes)?))
        })
    }

    /// Takes back what is offered under `item`.
    fn withdraw(&self, item: &str) -> PyResult<()> {
        self.enter(|manager| {
            manager.session().withdraw(item);
            Ok(())
        })
    }

    /// Asks for what the manager `name` offers under `item`. Waits until it does.
    #[pyo3(signature = (name, item, timeout=None))]
    fn ask(
        slf: &Bound<'_, Self>,
        name: String,
        item: String,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(slf, connecting::offer(name, item), timeout)
    }

    /// As `ask`, awaited: see `connect_datagram_async`.
    #[pyo3(signature = (name, item, timeout=None))]
    fn ask_async<'py>(
        slf: &Bound<'py, Self>,
        name: String,
        item: String,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(slf, connecting::offer(name, item), timeout)
    }

    /// Ends the link to a peer.
    fn disconnect(&self, peer: &Peer) -> PyResult<()> {
        self.enter(|manager| {
            manager.session().disconnect(peer.identity.link);
            Ok(())
        })
    }

    /// Packets refused by this manager, by reason.
    #[getter]
    fn refusals(&self) -> PyResult<BTreeMap<String, u64>> {
        self.enter(|manager| Ok(refusals(&manager.session().refusals())))
    }

    /// The descriptor for `select`, `epoll` and their like. It says something only during a `Sleep`.
    fn fileno(&self) -> PyResult<i32> {
        self.enter(|_| Ok(self.descriptor))
    }

    /// Prepares to wait for the descriptor among others: None if something has happened since, so that the end points are to be asked;
    /// otherwise a Sleep, which is ended when the program is awake.
    #[pyo3(signature = (timeout=None))]
    fn prepare_sleep(&self, timeout: Option<Timeout>) -> PyResult<Option<Sleep>> {
        Sleep::prepare(&self.sleeper, Timeout::wait(timeout))
    }
}
