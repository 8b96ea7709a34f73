//! The lower layer: areas, slots with their keys, queues, messages to tickets, and what peers are given of memory.

use std::sync::Arc;

use hamlyn::{Message, NewSlot, Wait};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::Handle;
use crate::area::{Area, allocate};
use crate::bytes::with_bytes;
use crate::error::{Failure, Kind};
use crate::export::{Export, ExportTicket, Import};
use crate::gate::Guarded;
use crate::grant::{Grant, GrantTicket};
use crate::manager::Manager;
use crate::one_sided::Initiator;
use crate::peer::Peer;
use crate::slot::{Notification, Queue, Slot, Target, mode_of, rights_of};
use crate::ticket::Ticket;
use crate::waiting::{
    LONG_SLICE, Timeout, detached, found, or_try_again, or_wait, wait_for, wait_long,
};

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

/// What is behind another gate is refused before it is touched.
#[expect(
    clippy::mut_from_ref,
    reason = "callers have passed the gate, and ask once for each object in a call"
)]
pub(crate) fn of_same<'a, T>(
    manager: &Guarded<Handle>,
    guarded: &'a Guarded<T>,
) -> Result<&'a mut T, Failure> {
    let value = match Arc::ptr_eq(manager.gate(), guarded.gate()) {
        // SAFETY: callers have passed the gate with their manager, and ask once for each object.
        true => unsafe { guarded.behind() },
        false => None,
    };
    value.ok_or(Failure::new(
        Kind::Invalid,
        "this slot, queue or initiator was closed, or is another manager's",
    ))
}

#[pymethods]
impl Interface {
    /// The manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.owner.clone_ref(py)
    }

    /// Memory, zeroed. `kind`: "private"; "grantable" to chosen peers, in whole pages; or "exportable", in whole pages, which appear when they
    /// are touched. The last two are rounded up.
    #[pyo3(signature = (length, kind="private"))]
    fn allocate(&self, length: u64, kind: &str) -> PyResult<Area> {
        let manager = self.manager.enter()?;
        let (area, length) = allocate(manager.interface(), length, kind)?;
        Ok(Area::new(self.manager.gate(), area, length))
    }

    /// Opens a queue of so many notifications.
    fn open_queue(&self, entries: usize) -> PyResult<Queue> {
        let manager = self.manager.enter()?;
        let queue = manager
            .interface()
            .open_queue(entries)
            .map_err(Failure::from)?;
        Ok(Queue(Guarded::new(self.manager.gate(), "queue", queue)))
    }

    /// Opens a slot over an area or a part of it. `rights`: "read", "write", "atomic", joined by "+", or "all". `mode`: "normal",
    /// "paranoid" or "paranoid_one_shot". `entries`: metadata entries. `counting_stores`: each entry counts the bytes stored under it.
    #[pyo3(signature = (area, *, offset=0, length=None, queue=None, rights="write", mode="normal", entries=0, counting_stores=false))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn open_slot(
        &self,
        area: &Area,
        offset: u64,
        length: Option<u64>,
        queue: Option<&Queue>,
        rights: &str,
        mode: &str,
        entries: usize,
        counting_stores: bool,
    ) -> PyResult<Slot> {
        let manager = self.manager.enter()?;
        let length = length.unwrap_or_else(|| (area.length as u64).saturating_sub(offset));
        let mut new = NewSlot::new(of_same(&self.manager, &area.area)?)
            .range(offset..offset.saturating_add(length))
            .rights(rights_of(rights)?)
            .mode(mode_of(mode)?)
            .entries(entries);
        if let Some(queue) = queue {
            new = new.queue(of_same(&self.manager, &queue.0)?);
        }
        if counting_stores {
            new = new.counting_stores(entries);
        }
        let slot = manager.interface().open_slot(new).map_err(Failure::from)?;
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
            let closed = manager.interface().close_slot(slot);
            closed.map_err(|error| Failure::of(Kind::Invalid, &error))?;
        }
        Ok(())
    }

    /// Gives a slot a fresh key: tickets made before are worthless.
    fn rekey_slot(&self, slot: &Slot) -> PyResult<()> {
        let manager = self.manager.enter()?;
        let slot = of_same(&self.manager, &slot.slot)?;
        Ok(manager
            .interface()
            .rekey_slot(slot)
            .map_err(Failure::from)?)
    }

    /// Lets one message into the metadata entry of that index, of a slot in mode "paranoid_one_shot": with the slot's key, into that part.
    #[pyo3(signature = (slot, index, offset=0, length=None))]
    fn arm(&self, slot: &Slot, index: u16, offset: u64, length: Option<u64>) -> PyResult<Ticket> {
        let manager = self.manager.enter()?;
        let slot = of_same(&self.manager, &slot.slot)?;
        let high = match length {
            Some(length) => offset.saturating_add(length),
            None => slot.length_bytes(),
        };
        let key = manager.interface().new_key().map_err(Failure::from)?;
        let area = slot
            .metadata()
            .filter(|area| usize::from(index) < area.len());
        let entry = area.and_then(|area| area.entry(index));
        let entry = entry.ok_or_else(|| PyIndexError::new_err("the slot has no such entry"))?;
        manager.interface().between_packets(|| {
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
    ) -> PyResult<Target> {
        let mut last = None;
        let target = wait_long(py, &self.manager, timeout, LONG_SLICE, |manager, wait| {
            or_try_again(manager.interface().target(&ticket.0, wait), &mut last)
        })?;
        Ok(Target(found(target, last)?))
    }

    /// Sends a message to `offset` of a ticket's place: with a word in fast mode, with up to 60 bytes of metadata to an entry; `silent`:
    /// it lands unannounced. A message longer than a packet is sent in one call that signals do not end.
    #[pyo3(signature = (target, data, offset=0, *, word=0, metadata=None, silent=false, timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn send_msg(
        &self,
        py: Python<'_>,
        target: &Target,
        data: &Bound<'_, PyAny>,
        offset: u64,
        word: u64,
        metadata: Option<&Bound<'_, PyBytes>>,
        silent: bool,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        let metadata = metadata.map_or(&[][..], |metadata| metadata.as_bytes());
        with_bytes(data, "a message", |bytes| {
            let mut message = Message::new(bytes).at(offset).word(word).metadata(metadata);
            message.silent = silent;
            let sent = detached(py, &self.manager, |manager| {
                let terminus = manager.terminus();
                let wait = Timeout::wait(timeout);
                or_wait(
                    manager
                        .interface()
                        .send_msg(terminus, &target.0, &message, wait),
                )
            })?;
            found(sent.map(drop), None)
        })
    }

    /// Stores bytes to `offset` of a ticket's place, of a slot that counts stores.
    #[pyo3(signature = (target, offset, data, timeout=None))]
    fn store(
        &self,
        py: Python<'_>,
        target: &Target,
        offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "what is stored", |bytes| {
            let stored = detached(py, &self.manager, |manager| {
                let terminus = manager.terminus();
                let wait = Timeout::wait(timeout);
                or_wait(
                    manager
                        .interface()
                        .store(terminus, &target.0, offset, bytes, wait),
                )
            })?;
            found(stored, None)
        })
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
            let queue = of_same(&self.manager, &queue.0)?;
            let mut interface = manager.interface();
            Ok(match wait {
                Wait::Poll => interface.rcv(queue)?,
                wait => interface.rcv_block(queue, wait)?,
            })
        })?;
        Ok(came.map(Notification))
    }

    /// Over which link an arrival came: who sent it.
    fn sender_of(&self, notification: &Notification) -> PyResult<Option<Peer>> {
        let manager = self.manager.enter()?;
        let identity = manager.interface().identity_of(notification.0.from);
        Ok(identity.map(Peer::new))
    }

    /// Opens access to what a ticket names, for reading, putting and changing it. `landing_bytes`: memory into which reads land.
    #[pyo3(signature = (target, landing_bytes=65536))]
    fn open_initiator(&self, target: &Target, landing_bytes: u64) -> PyResult<Initiator> {
        Initiator::open(&self.manager, target, landing_bytes)
    }

    /// Lets a peer store into whole pages of a slot by itself; the slot is over an area that is "grantable". Copies the pages.
    #[pyo3(signature = (slot, peer, offset=0, length=None))]
    fn grant_pages(
        &self,
        py: Python<'_>,
        slot: &Slot,
        peer: &Peer,
        offset: u64,
        length: Option<u64>,
    ) -> PyResult<Grant> {
        Grant::make(py, &self.manager, slot, peer, offset, length)
    }

    /// Takes up a grant: from now on messages of 512 bytes and more to that part of the slot are stored in place. There must be a link to its
    /// owner, which `target` makes.
    #[pyo3(signature = (ticket, timeout=None))]
    fn accept_grant(
        &self,
        py: Python<'_>,
        ticket: &GrantTicket,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        ticket.accept(py, &self.manager, timeout)
    }

    /// Lets go of a grant that was taken up: messages go as copies again. False if it was not there, or not any more.
    fn drop_grant(&self, ticket: &GrantTicket) -> PyResult<bool> {
        ticket.drop_grant(&self.manager)
    }

    /// Grants of this interface that were made and not taken back.
    #[getter]
    fn grants_made(&self) -> PyResult<usize> {
        Ok(self.manager.enter()?.interface().grants_made())
    }

    /// Grants of others that were taken up.
    #[getter]
    fn grants_accepted(&self) -> PyResult<usize> {
        Ok(self.manager.enter()?.interface().grants_accepted())
    }

    /// Lets peers map all memory of a slot, which is over all of an area that is "exportable", with the rights "read" or "all".
    fn export_slot(&self, slot: &Slot) -> PyResult<Export> {
        Export::make(&self.manager, slot)
    }

    /// Maps the memory of a slot that a peer exports. There must be a link to its owner, which `target` makes. What is taken up already is given
    /// once more.
    #[pyo3(signature = (ticket, timeout=None))]
    fn import_slot(
        &self,
        py: Python<'_>,
        ticket: &ExportTicket,
        timeout: Option<Timeout>,
    ) -> PyResult<Import> {
        Import::make(py, &self.manager, ticket, timeout)
    }

    /// Exports whose memory was not taken back yet.
    #[getter]
    fn exports_made(&self) -> PyResult<usize> {
        Ok(self.manager.enter()?.interface().exports_made())
    }

    /// Areas of others that are imported.
    #[getter]
    fn imports(&self) -> PyResult<usize> {
        Ok(self.manager.enter()?.interface().imports())
    }
}
