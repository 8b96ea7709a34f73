//! The lower layer: areas, slots with their keys, queues, messages to tickets, and what peers are given of memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use hamlyn::one_sided::OperationError;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::aio;
use crate::area::{Area, allocate};
use crate::completions::CompletionQueue;
use crate::connecting;
use crate::error::Failure;
use crate::fencing::{self, Linked, link_of};
use crate::figures::{ConnectionState, SlotInfo};
use crate::gate::{Guarded, of_same};
use crate::handover::{self, HandoverReader};
use crate::host::Handle;
use crate::lanes::{self, Lane, SharedLane};
use crate::manager::Manager;
use crate::number;
use crate::one_sided::{Initiator, UNANSWERED};
use crate::operation::CompletionCounter;
use crate::peer::Peer;
use crate::pool::{self, Pool, PoolOwner};
use crate::region::{Attached, Region, RegionTicket};
use crate::sending::{self, Beside, SendHandle, Sent, Way};
use crate::slot::{Notification, Queue, Slot, Target, mode_of, receive_many, rights_of};
use crate::sources::{self, SourceOf};
use crate::terminus::{self, Terminus};
use crate::ticket::Ticket;
use crate::waiting::{self, Timeout, found, wait_for};

/// The lower layer of a manager.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Interface {
    owner: Py<Manager>,
    manager: Arc<Guarded<Handle>>,
}

impl Interface {
    pub(crate) fn new(owner: &Bound<'_, Manager>, manager: Arc<Guarded<Handle>>) -> Self {
        Self {
            owner: owner.clone().unbind(),
            manager,
        }
    }
}

impl Interface {
    fn way<'a>(&'a self, target: &'a Target, terminus: Option<&'a Terminus>) -> Way<'a> {
        Way {
            manager: &self.manager,
            terminus,
            target,
        }
    }
}

#[pymethods]
impl Interface {
    /// The manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.owner.clone_ref(py)
    }

    /// Memory, zeroed. `kind`: "private"; "shared", of which peers may be given regions; or "sparse", the same, with pages that appear when they
    /// are touched. The last two are rounded up to whole pages. A "sparse" one may lie at a chosen `address`, a multiple of 4,096: for programs whose
    /// peers map it at the same one. Taken if something is mapped in that range already, which stays as it is.
    #[pyo3(signature = (length, kind="private", *, address=None))]
    fn allocate(
        &self,
        #[pyo3(from_py_with = number::length)] length: u64,
        kind: &str,
        #[pyo3(from_py_with = number::address)] address: Option<usize>,
    ) -> PyResult<Area> {
        let manager = self.manager.enter()?;
        let (area, length) = allocate(manager.session(), length, kind, address)?;
        Ok(Area::new(self.manager.gate(), area, length))
    }

    /// Opens a queue of so many notifications.
    fn open_queue(
        &self,
        #[pyo3(from_py_with = number::entries)] entries: usize,
    ) -> PyResult<Queue> {
        let manager = self.manager.enter()?;
        let queue = manager.session().open_queue(entries);
        Ok(Queue::new(
            self.manager.gate(),
            queue.map_err(Failure::from)?,
        ))
    }

    /// Closes a queue. Close its slots first: what comes to them afterwards is not announced.
    fn close_queue(&self, queue: &Queue) -> PyResult<()> {
        let manager = self.manager.enter()?;
        of_same(&self.manager, &queue.0)?;
        // SAFETY: the gate was passed, and the reference above is not used any more.
        if let Some(reading) = unsafe { queue.0.take() } {
            manager.session().close_queue(reading.queue);
        }
        Ok(())
    }

    /// Opens a queue in which so many sends, fences and operations may end, 1 to 65,536.
    fn open_completions(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::places)] places: usize,
    ) -> PyResult<CompletionQueue> {
        CompletionQueue::open(self.owner.clone_ref(py), &self.manager, places)
    }

    /// Waits until one of several queues, completion queues and shared lanes has something: its place among them; None if none had in time.
    #[pyo3(signature = (sources, timeout=None))]
    fn await_any(
        &self,
        py: Python<'_>,
        sources: Vec<SourceOf>,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<usize>> {
        sources::await_any(py, &self.manager, &sources, timeout)
    }

    /// Has all waits with this manager look again after so many seconds at the latest, though nothing happens until then. For protocols with
    /// time-outs, which ask for it in each look, since the earliest time of all counts, once.
    fn look_within(&self, seconds: Timeout) -> PyResult<()> {
        let manager = self.manager.enter()?;
        manager.session().look_within(waiting::span(seconds));
        Ok(())
    }

    /// Opens a lane: so many buffers for the messages of one peer, 1 to 4,096, of so many bytes, up to 128 MiB.
    #[pyo3(signature = (*, buffers=16, buffer_bytes=4096))]
    fn open_lane(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::buffers)] buffers: u16,
        #[pyo3(from_py_with = number::buffer_bytes)] buffer_bytes: u32,
    ) -> PyResult<Lane> {
        let options = hamlyn::lane::LaneOptions {
            buffers,
            buffer_bytes,
        };
        Lane::open(self.owner.clone_ref(py), &self.manager, options)
    }

    /// Becomes the sender of a lane, by its seed.
    #[pyo3(signature = (seed, timeout=None))]
    fn connect_lane(
        &self,
        py: Python<'_>,
        seed: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(self.owner.bind(py), lanes::connecting(seed)?, timeout)
    }

    /// As `connect_lane`, awaited: see `Manager.connect_datagram_async`.
    #[pyo3(signature = (seed, timeout=None))]
    fn connect_lane_async<'py>(
        &self,
        py: Python<'py>,
        seed: &Bound<'py, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(self.owner.bind(py), lanes::connecting(seed)?, timeout)
    }

    /// Opens a shared lane: messages of up to `buffer_bytes`, at most 65,536, from any number of peers, which name one of so many `tags`, up to
    /// 4,096. They wait in a queue of `queue_bytes`, of which the messages of one peer may take `peer_bytes`, otherwise half. `key`: who knows it
    /// may send; otherwise a random one.
    #[pyo3(signature = (*, buffer_bytes=4096, tags=4096, key=None, group=0, queue_bytes=1048576, peer_bytes=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn open_shared_lane(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::buffer_bytes)] buffer_bytes: u32,
        #[pyo3(from_py_with = number::tags)] tags: u16,
        #[pyo3(from_py_with = number::key)] key: Option<u64>,
        #[pyo3(from_py_with = number::group)] group: u64,
        #[pyo3(from_py_with = number::queue_bytes)] queue_bytes: u32,
        #[pyo3(from_py_with = number::peer_bytes)] peer_bytes: Option<u32>,
    ) -> PyResult<SharedLane> {
        let port = hamlyn::NewPort::new().handlers(tags).group(group);
        let port = port.queue_bytes(queue_bytes);
        let options = lanes::shared_options(port, key, buffer_bytes, peer_bytes);
        SharedLane::open(self.owner.clone_ref(py), &self.manager, options)
    }

    /// Gives the link to a target or a peer a number of the program's own, which is 0 before: the context of packets that come back over it.
    fn set_link_context(
        &self,
        to: Linked<'_>,
        #[pyo3(from_py_with = number::context)] context: u64,
    ) -> PyResult<()> {
        let manager = self.manager.enter()?;
        let link = link_of(&manager, &to)?;
        match manager.session().set_link_context(link, context) {
            true => Ok(()),
            false => Err(Failure::from(hamlyn::error::FenceError::NoSuchLink).into()),
        }
    }

    /// The number of the program's own that the link to a target or a peer has.
    fn link_context(&self, to: Linked<'_>) -> PyResult<u64> {
        let manager = self.manager.enter()?;
        let link = link_of(&manager, &to)?;
        Ok(manager.session().link_context(link))
    }

    /// Memory in so many pieces that change hands, and the program's end of it. `piece_bytes` is a power of two, 16 at least. One slot can be
    /// opened over it, with `mode="paranoid_one_shot"`: a message comes into pieces that the program has opened, under an entry that it has
    /// armed for just these, and is read there in place.
    fn allocate_handover(
        &self,
        #[pyo3(from_py_with = number::pieces)] pieces: u32,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: u32,
    ) -> PyResult<(Area, HandoverReader)> {
        handover::allocate(&self.manager, pieces, piece_bytes)
    }

    /// Opens a slot over an area or a part of it. `rights`: "read", "write", "atomic", joined by "+", or "all". `mode`: "normal",
    /// "paranoid" or "paranoid_one_shot". `entries`: metadata entries. `counting_stores`: each entry counts the bytes stored under it.
    #[pyo3(signature = (area, *, offset=0, length=None, queue=None, rights="write", mode="normal", entries=0, counting_stores=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn open_slot(
        &self,
        area: &Area,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
        queue: Option<&Queue>,
        rights: &str,
        mode: &str,
        #[pyo3(from_py_with = number::entries)] entries: usize,
        counting_stores: bool,
    ) -> PyResult<Slot> {
        let manager = self.manager.enter()?;
        let length = length.unwrap_or_else(|| (area.length as u64).saturating_sub(offset));
        let (rights, mode) = (rights_of(rights)?, mode_of(mode)?);
        let queue = match queue {
            Some(queue) => Some(of_same(&self.manager, &queue.0)?),
            None => None,
        };
        let mut new = area
            .for_slot(of_same(&self.manager, &area.area)?)?
            .range(offset..offset.saturating_add(length))
            .rights(rights)
            .mode(mode)
            .entries(entries);
        if let Some(queue) = queue {
            new = new.queue(&queue.queue);
        }
        if counting_stores {
            new = new.counting_stores(entries);
        }
        let slot = manager.session().open_slot(new).map_err(Failure::from)?;
        let name = slot.name();
        let slot = Guarded::new(self.manager.gate(), "slot", slot);
        Ok(Slot { slot, name })
    }

    /// Closes a slot: its tickets are worthless.
    fn close_slot(&self, slot: &Slot) -> PyResult<()> {
        let manager = self.manager.enter()?;
        of_same(&self.manager, &slot.slot)?;
        // SAFETY: the gate was passed, and the reference above is not used any more.
        if let Some(slot) = unsafe { slot.slot.take() } {
            let closed = manager.session().close_slot(slot);
            closed.map_err(Failure::from)?;
        }
        Ok(())
    }

    /// Gives a slot a fresh key: tickets made before are worthless.
    fn rekey_slot(&self, slot: &Slot) -> PyResult<()> {
        let manager = self.manager.enter()?;
        let slot = of_same(&self.manager, &slot.slot)?;
        Ok(manager.session().rekey_slot(slot).map_err(Failure::from)?)
    }

    /// Refuses everything that is sent to a slot until it is given a fresh key.
    fn revoke_slot(&self, slot: &Slot) -> PyResult<()> {
        let manager = self.manager.enter()?;
        let slot = of_same(&self.manager, &slot.slot)?;
        let revoked = manager.session().revoke_slot(slot);
        Ok(revoked.map_err(Failure::from)?)
    }

    /// How a slot is: its rights, what was refused there.
    fn slot_info(&self, slot: &Slot) -> PyResult<SlotInfo> {
        let manager = self.manager.enter()?;
        let slot = of_same(&self.manager, &slot.slot)?;
        let info = manager.session().slot_info(slot);
        Ok(SlotInfo(info.map_err(Failure::from)?))
    }

    /// How the link to a peer on another host is; None if the link is gone, or the peer is on this host.
    fn connection_state(&self, peer: &Peer) -> PyResult<Option<ConnectionState>> {
        let manager = self.manager.enter()?;
        let state = manager.session().connection_state(peer.identity.link);
        Ok(state.map(ConnectionState))
    }

    /// The use that messages to a peer of this host have made of the memory that it lends with
    /// `buffer_bytes_per_peer`: "episodes" in which they went on there; "spilled_bytes" in all;
    /// "waiting_bytes" at present, at most, and "most_bytes"; "log_bytes", its length; "pauses",
    /// the times that messages were held back because three quarters of it waited; "pages" that
    /// are present, at most, and "most_pages". None if the link is gone, or the peer lends none.
    fn log_use(&self, peer: &Peer) -> PyResult<Option<BTreeMap<&'static str, u64>>> {
        let manager = self.manager.enter()?;
        let used = manager.session().log_use(peer.identity.link);
        Ok(used.map(|used| {
            BTreeMap::from([
                ("episodes", used.episodes),
                ("spilled_bytes", used.spilled_bytes),
                ("waiting_bytes", used.waiting_bytes),
                ("most_bytes", used.most_bytes),
                ("log_bytes", used.log_bytes),
                ("pauses", used.pauses),
                ("pages", used.pages),
                ("most_pages", used.most_pages),
            ])
        }))
    }

    /// Opens a terminus: a work queue of its own for messages, `queue_entries` for each destination, 1 to 4,095, 63 otherwise. It gathers
    /// messages from up to `send_areas` areas, at most 1,024. `priority`: so many packets are sent per turn, relative to other termini that
    /// send to the same destination, 1 to 255.
    #[pyo3(signature = (*, queue_entries=None, send_areas=8, priority=1))]
    fn open_terminus(
        &self,
        #[pyo3(from_py_with = number::queue_entries)] queue_entries: Option<usize>,
        #[pyo3(from_py_with = number::send_areas)] send_areas: usize,
        #[pyo3(from_py_with = number::priority)] priority: u8,
    ) -> PyResult<Terminus> {
        terminus::open(&self.manager, queue_entries, send_areas, priority)
    }

    /// Closes a terminus: messages that wait there are dropped.
    fn close_terminus(&self, terminus: &Terminus) -> PyResult<()> {
        terminus::close(&self.manager, terminus)
    }

    /// Makes an area, or a part of it, one from which a terminus gathers messages: the tag by which `send_gather` names it.
    #[pyo3(signature = (terminus, area, offset=0, length=None))]
    fn bind_area(
        &self,
        terminus: &Terminus,
        area: &Area,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
    ) -> PyResult<u16> {
        terminus::bind_area(&self.manager, terminus, area, offset, length)
    }

    /// A copy of up to 60 bytes of metadata for a message, out of an area that was bound to the terminus: tag, offset and length. Does not
    /// block. TooLong if they are more.
    fn gather_metadata<'py>(
        &self,
        py: Python<'py>,
        terminus: &Terminus,
        #[pyo3(from_py_with = number::piece)] piece: (u16, u64, u64),
    ) -> PyResult<Bound<'py, PyBytes>> {
        terminus::gather_metadata(py, &self.manager, terminus, piece)
    }

    /// Undoes `bind_area`. TimedOut while messages wait that are gathered from there.
    fn unbind_area(
        &self,
        terminus: &Terminus,
        #[pyo3(from_py_with = number::tag)] tag: u16,
    ) -> PyResult<()> {
        terminus::unbind_area(&self.manager, terminus, tag)
    }

    /// Waits until everything that was sent over the link to a target or a peer, by whichever sender of the manager, is in its place there.
    /// Refused if some was not accepted, with the reason; PeerGone if the link has ended.
    #[pyo3(signature = (to, timeout=None))]
    fn fence_link(&self, py: Python<'_>, to: Linked<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        fencing::wait(py, &self.manager, &to, timeout)
    }

    /// As `fence_link`, awaited in the running event loop of asyncio.
    fn fence_link_async<'py>(
        &self,
        py: Python<'py>,
        to: Linked<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        fencing::begin(self.owner.bind(py), &self.manager, &to)
    }

    /// Lets one message into the metadata entry of that index, of a slot in mode "paranoid_one_shot": with the slot's key, into that part.
    #[pyo3(signature = (slot, index, offset=0, length=None))]
    fn arm(
        &self,
        slot: &Slot,
        #[pyo3(from_py_with = number::index)] index: u16,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
    ) -> PyResult<Ticket> {
        let manager = self.manager.enter()?;
        let slot = of_same(&self.manager, &slot.slot)?;
        let high = match length {
            Some(length) => offset.saturating_add(length),
            None => slot.length_bytes(),
        };
        let key = manager.session().new_key().map_err(Failure::from)?;
        let area = slot
            .metadata()
            .filter(|area| usize::from(index) < area.len());
        let entry = area.and_then(|area| area.entry(index));
        let entry = entry.ok_or_else(|| PyIndexError::new_err("the slot has no such entry"))?;
        manager.session().between_packets(|| {
            entry.disarm();
            entry.permit(hamlyn::engine::metadata::Permission {
                key,
                low: offset,
                high,
            });
            entry.arm();
        });
        let ticket = slot.ticket(index, offset, high.saturating_sub(offset));
        Ok(Ticket(ticket.map_err(Failure::from)?))
    }

    /// Makes a ticket usable: connects if need be.
    #[pyo3(signature = (ticket, timeout=None))]
    fn target(
        &self,
        py: Python<'_>,
        ticket: &Ticket,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(self.owner.bind(py), connecting::target(ticket), timeout)
    }

    /// As `target`, awaited: see `Manager.connect_datagram_async`.
    #[pyo3(signature = (ticket, timeout=None))]
    fn target_async<'py>(
        &self,
        py: Python<'py>,
        ticket: &Ticket,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(self.owner.bind(py), connecting::target(ticket), timeout)
    }

    /// Sends a message to `offset` of a ticket's place: with a word in fast mode, with up to 60 bytes of metadata to an entry; `silent`:
    /// it lands unannounced. It is sent by the manager's terminus, or by another. Messages of more than 128 bytes are sent in one call that
    /// signals do not end.
    #[pyo3(signature = (target, data, offset=0, *, word=0, metadata=None, silent=false, terminus=None, timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn send_msg(
        &self,
        py: Python<'_>,
        target: &Target,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::word)] word: u64,
        metadata: Option<&[u8]>,
        silent: bool,
        terminus: Option<&Terminus>,
        timeout: Option<Timeout>,
    ) -> PyResult<SendHandle> {
        let beside = Beside {
            offset,
            word,
            metadata,
            silent,
        };
        self.way(target, terminus)
            .send_msg(py, data, &beside, timeout)
    }

    /// Sends messages in order, for less than one by one: objects with a contiguous buffer, or `OutgoingMessage`s. The first that cannot be
    /// sent ends the call. If it is the very first, its exception is raised; otherwise `Sent` has it, and how many went before. Signals end
    /// the call where it waits for room for a message of up to 128 bytes; then it is not told how many went.
    #[pyo3(signature = (target, messages, *, terminus=None, timeout=None))]
    fn send_many(
        &self,
        py: Python<'_>,
        target: &Target,
        messages: &Bound<'_, PyAny>,
        terminus: Option<&Terminus>,
        timeout: Option<Timeout>,
    ) -> PyResult<Sent> {
        self.way(target, terminus).send_many(py, messages, timeout)
    }

    /// Sends a message that is gathered from up to 1,024 pieces of areas that were bound to the terminus: tag, offset and length of each. Does not
    /// block: TimedOut if the work queue is full. The pieces must stay as they are until `completion` is not "pending" any more.
    #[pyo3(signature = (terminus, target, pieces, offset=0, *, word=0, metadata=None, silent=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn send_gather(
        &self,
        terminus: &Terminus,
        target: &Target,
        #[pyo3(from_py_with = number::pieces)] pieces: Vec<(u16, u64, u64)>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::word)] word: u64,
        metadata: Option<&[u8]>,
        silent: bool,
    ) -> PyResult<SendHandle> {
        let beside = Beside {
            offset,
            word,
            metadata,
            silent,
        };
        self.way(target, Some(terminus))
            .send_gather(&pieces, &beside)
    }

    /// What became of a message: "pending", "sent" (handed to its link whole: what it was gathered from is free), or "failed" (its link was
    /// lost before). Does not look at what has come.
    fn completion(&self, handle: &SendHandle) -> PyResult<&'static str> {
        sending::completion(&self.manager, handle)
    }

    /// Waits until a message is sent, or has failed, and so all that was sent before it to the same destination; "pending" if it was not in
    /// time.
    #[pyo3(signature = (handle, timeout=None))]
    fn drain(
        &self,
        py: Python<'_>,
        handle: &SendHandle,
        timeout: Option<Timeout>,
    ) -> PyResult<&'static str> {
        sending::drain(py, &self.manager, handle, timeout)
    }

    /// Stores bytes to `offset` of a ticket's place, of a slot that counts stores. Signals do not end a call with more than 128 bytes.
    #[pyo3(signature = (target, offset, data, timeout=None, *, terminus=None))]
    fn store(
        &self,
        py: Python<'_>,
        target: &Target,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
        terminus: Option<&Terminus>,
    ) -> PyResult<()> {
        self.way(target, terminus).store(py, offset, data, timeout)
    }

    /// The next arrival in a queue; None if none came in time.
    #[pyo3(signature = (queue, timeout=None))]
    fn rcv(
        &self,
        py: Python<'_>,
        queue: &Queue,
        timeout: Option<Timeout>,
    ) -> PyResult<Option<Notification>> {
        let came = wait_for(py, &self.manager, timeout, |manager, wait| {
            let reading = of_same(&self.manager, &queue.0)?;
            match reading.overrun.take() {
                Some(overrun) => Err(overrun),
                None => Ok(manager.session().rcv_block(&mut reading.queue, wait)?),
            }
        })?;
        Ok(came.map(Notification))
    }

    /// As `rcv`, awaited in the running event loop of asyncio.
    fn rcv_async<'py>(
        slf: Bound<'py, Self>,
        queue: Bound<'py, Queue>,
    ) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "rcv", (slf, queue))
    }

    /// Waits for an arrival in a queue as `rcv` does, and takes with it those that have come, up to `most` together; none if none came in time.
    /// Overrun if notifications were lost, after those that came before.
    #[pyo3(signature = (queue, most, timeout=None))]
    fn receive_many(
        &self,
        py: Python<'_>,
        queue: &Queue,
        #[pyo3(from_py_with = number::most)] most: usize,
        timeout: Option<Timeout>,
    ) -> PyResult<Vec<Notification>> {
        receive_many(py, &self.manager, queue, most, timeout)
    }

    /// Waits until so many operations that were given to the counter have ended, well or not, since it was made. TimedOut if they have not.
    #[pyo3(signature = (counter, ended, timeout=None))]
    fn await_completions(
        &self,
        py: Python<'_>,
        counter: &CompletionCounter,
        #[pyo3(from_py_with = number::ended)] ended: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        let have_ended = wait_for(py, &self.manager, timeout, |manager, wait| {
            let mut interface = manager.session();
            match interface.await_completions(&counter.0, ended, wait) {
                Err(OperationError::TimedOut) => Ok(None),
                result => Ok(Some(result?)),
            }
        })?;
        found(have_ended, Some(UNANSWERED))
    }

    /// Lets a peer of this host fetch a pool, once, with the number that this returns, `fetch_pool`. It may read the pool for as long as it
    /// likes.
    fn show_pool(&self, pool: &Pool, peer: &Peer) -> PyResult<u64> {
        pool::show(&self.manager, pool, peer)
    }

    /// A pool that was shown under that number and not fetched cannot be fetched any more.
    fn hide_pool(&self, #[pyo3(from_py_with = number::number)] number: u64) -> PyResult<()> {
        self.manager.enter()?.session().hide_pool(number);
        Ok(())
    }

    /// Fetches a pool that a linked peer of this host shows: the peer itself, or one whose ticket this is. `trust_peers`: it has the buffer
    /// protocol, see SharedPool.
    #[pyo3(signature = (owner, number, timeout=None, *, trust_peers=false))]
    fn fetch_pool(
        &self,
        py: Python<'_>,
        owner: PoolOwner<'_>,
        #[pyo3(from_py_with = number::number)] number: u64,
        timeout: Option<Timeout>,
        trust_peers: bool,
    ) -> PyResult<Py<PyAny>> {
        let pool = pool::fetching(&owner, number, trust_peers);
        connecting::wait(self.owner.bind(py), pool, timeout)
    }

    /// As `fetch_pool`, awaited: see `Manager.connect_datagram_async`.
    #[pyo3(signature = (owner, number, timeout=None, *, trust_peers=false))]
    fn fetch_pool_async<'py>(
        &self,
        py: Python<'py>,
        owner: PoolOwner<'_>,
        #[pyo3(from_py_with = number::number)] number: u64,
        timeout: Option<Timeout>,
        trust_peers: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pool = pool::fetching(&owner, number, trust_peers);
        connecting::begin(self.owner.bind(py), pool, timeout)
    }

    /// Who is at the other end of the link to a target; None if that ended long ago.
    fn peer_of(&self, target: &Target) -> PyResult<Option<Peer>> {
        let manager = self.manager.enter()?;
        let identity = manager.session().identity_of(target.0.link());
        Ok(identity.map(Peer::new))
    }

    /// Over which link an arrival came: who sent it.
    fn sender_of(&self, notification: &Notification) -> PyResult<Option<Peer>> {
        let manager = self.manager.enter()?;
        let identity = manager.session().identity_of(notification.0.from);
        Ok(identity.map(Peer::new))
    }

    /// Opens access to what a ticket names, for reading, putting and changing it. `landing_bytes`: memory into which reads land.
    #[pyo3(signature = (target, landing_bytes=65536))]
    fn open_initiator(
        &self,
        py: Python<'_>,
        target: &Target,
        #[pyo3(from_py_with = number::landing_bytes)] landing_bytes: u64,
    ) -> PyResult<Initiator> {
        let owner = self.owner.clone_ref(py);
        Initiator::open(owner, &self.manager, target, landing_bytes)
    }

    /// Lets a peer, or every peer of this host that is linked, attach whole pages of a slot over an area that is "shared" or "sparse". `access`:
    /// "write" needs a slot with that right, and "read" one with that right alone. Copies the pages unless they are all of the area.
    #[pyo3(signature = (slot, peer=None, offset=0, length=None, *, access="write"))]
    fn share(
        &self,
        py: Python<'_>,
        slot: &Slot,
        peer: Option<&Peer>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
        access: &str,
    ) -> PyResult<Region> {
        Region::make(py, &self.manager, slot, peer, (offset, length), access)
    }

    /// Attaches a region of a peer: messages of 512 bytes and more to that part of its slot are stored in place, and initiators on it operate in
    /// memory if the slot grants "read" or "all". There must be a link to its owner, which `target` makes. A region that is attached already is
    /// returned once more.
    #[pyo3(signature = (ticket, timeout=None))]
    fn attach(
        &self,
        py: Python<'_>,
        ticket: &RegionTicket,
        timeout: Option<Timeout>,
    ) -> PyResult<Py<PyAny>> {
        connecting::wait(self.owner.bind(py), Attached::attaching(ticket), timeout)
    }

    /// As `attach`, awaited: see `Manager.connect_datagram_async`.
    #[pyo3(signature = (ticket, timeout=None))]
    fn attach_async<'py>(
        &self,
        py: Python<'py>,
        ticket: &RegionTicket,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        connecting::begin(self.owner.bind(py), Attached::attaching(ticket), timeout)
    }

    /// Regions of this interface whose memory was not taken back yet.
    #[getter]
    fn regions_shared(&self) -> PyResult<usize> {
        Ok(self.manager.enter()?.session().regions_shared())
    }

    /// Regions of others that are attached.
    #[getter]
    fn regions_attached(&self) -> PyResult<usize> {
        Ok(self.manager.enter()?.session().regions_attached())
    }
}
