//! The lower layer: areas, slots with their keys, queues, messages to tickets.

use std::sync::Arc;

use hamlyn::engine::packet::SlotName;
use hamlyn::engine::slot::{Mode, Rights};
use hamlyn::{Message, NewSlot, Wait};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{with_bytes, with_writable};
use crate::error::{Failure, Kind};
use crate::gate::{Gate, Guarded};
use crate::manager::Manager;
use crate::one_sided::Initiator;
use crate::peer::Peer;
use crate::ticket::Ticket;
use crate::waiting::{
    LONG_SLICE, Timeout, detached, found, or_try_again, or_wait, wait_for, wait_long,
};

/// Memory that peers write, and read, as their tickets allow. It may change at any time, so it is read by copies.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Area {
    area: Guarded<hamlyn::Area>,
    length: usize,
}

impl Area {
    pub(crate) fn new(gate: &Arc<Gate>, area: hamlyn::Area, length_bytes: u64) -> Self {
        Self {
            area: Guarded::new(gate, "area", area),
            length: usize::try_from(length_bytes).unwrap_or(usize::MAX),
        }
    }
}

fn outside(_: impl Sized) -> PyErr {
    PyIndexError::new_err("that does not lie in the area")
}

#[pymethods]
impl Area {
    fn __len__(&self) -> usize {
        self.length
    }

    /// A copy of so many bytes from `offset` on.
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if length > self.length {
            return Err(outside(()));
        }
        PyBytes::new_with(py, length, |into| {
            self.area.enter()?.read_at(offset, into).map_err(outside)
        })
    }

    /// Copies from `offset` on into a buffer that can be written, all of which is filled.
    #[pyo3(signature = (buffer, offset=0))]
    fn read_into(&self, buffer: &Bound<'_, PyAny>, offset: u64) -> PyResult<()> {
        with_writable(buffer, "the buffer", |into| {
            self.area.enter()?.read_at(offset, into).map_err(outside)
        })
    }

    /// Copies any object with a contiguous buffer to `offset`.
    fn write(&self, offset: u64, data: &Bound<'_, PyAny>) -> PyResult<()> {
        with_bytes(data, "what is written", |bytes| {
            self.area.enter()?.write_at(offset, bytes).map_err(outside)
        })
    }

    /// The eight bytes at `offset`, a multiple of 8, as a number, whole.
    fn load_u64(&self, offset: u64) -> PyResult<u64> {
        self.area.enter()?.load_u64(offset).map_err(outside)
    }

    /// Stores a number in the eight bytes at `offset`, a multiple of 8, whole.
    fn store_u64(&self, offset: u64, value: u64) -> PyResult<()> {
        self.area.enter()?.store_u64(offset, value).map_err(outside)
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Area of {} bytes>", self.length)
    }
}

/// Where arrivals in slots are announced.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Queue(Guarded<hamlyn::Queue>);

#[pymethods]
impl Queue {
    /// Number of entries.
    #[getter]
    fn capacity(&self) -> PyResult<usize> {
        Ok(self.0.enter()?.capacity())
    }

    /// Notifications lost to overrun so far.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        Ok(self.0.enter()?.lost())
    }
}

/// An arrival.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Notification(hamlyn::engine::notification::Notification);

#[pymethods]
impl Notification {
    /// The number of the slot that it came to: `Slot.number`.
    #[getter]
    fn slot(&self) -> u32 {
        self.0.slot.to_bits()
    }

    /// Its metadata entry; None in fast mode.
    #[getter]
    fn metadata_index(&self) -> Option<u16> {
        (!self.0.is_fast()).then_some(self.0.metadata_index)
    }

    /// In fast mode the message's word; otherwise the receive class of its entry.
    #[getter]
    fn word(&self) -> u64 {
        self.0.word
    }

    fn __repr__(&self) -> String {
        format!(
            "<hamlyn.Notification in slot {:#x}, word {}>",
            self.slot(),
            self.0.word
        )
    }
}

/// An open slot, in its owner's hands: memory that holders of its tickets reach.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Slot {
    slot: Guarded<hamlyn::Slot>,
    name: SlotName,
}

#[pymethods]
impl Slot {
    /// A ticket for fast mode and for one-sided operations, for a part of the slot; all of it otherwise.
    #[pyo3(signature = (offset=0, length=None))]
    fn ticket(&self, offset: u64, length: Option<u64>) -> PyResult<Ticket> {
        let slot = self.slot.enter()?;
        let length = length.unwrap_or_else(|| slot.length_bytes().saturating_sub(offset));
        Ok(Ticket(
            slot.fast_ticket(offset, length).map_err(Failure::from)?,
        ))
    }

    /// A ticket for the metadata entry of that index, and a part of the slot.
    #[pyo3(signature = (index, offset=0, length=None))]
    fn entry_ticket(&self, index: u16, offset: u64, length: Option<u64>) -> PyResult<Ticket> {
        let slot = self.slot.enter()?;
        let length = length.unwrap_or_else(|| slot.length_bytes().saturating_sub(offset));
        Ok(Ticket(
            slot.ticket(index, offset, length).map_err(Failure::from)?,
        ))
    }

    /// The metadata of the message that came last to the entry of that index.
    fn metadata<'py>(&self, py: Python<'py>, index: u16) -> PyResult<Bound<'py, PyBytes>> {
        let slot = self.slot.enter()?;
        let area = slot
            .metadata()
            .filter(|area| usize::from(index) < area.len());
        let entry = area.and_then(|area| area.entry(index));
        let entry = entry.ok_or_else(|| PyIndexError::new_err("the slot has no such entry"))?;
        let mut bytes = [0; hamlyn::engine::limits::USER_METADATA_BYTES];
        let length = entry.metadata(&mut bytes);
        Ok(PyBytes::new(py, &bytes[..length]))
    }

    /// How many bytes were stored under that entry so far, of a slot that counts stores.
    fn stored_bytes(&self, index: u16) -> PyResult<Option<u64>> {
        Ok(self.slot.enter()?.stored_bytes(index))
    }

    /// Its number, as notifications name it.
    #[getter]
    fn number(&self) -> u32 {
        self.name.to_bits()
    }

    fn __len__(&self) -> PyResult<usize> {
        let length = self.slot.enter()?.length_bytes();
        Ok(usize::try_from(length).unwrap_or(usize::MAX))
    }
}

/// A ticket that has been made usable here.
#[pyclass(frozen, module = "hamlyn")]
#[derive(Clone, Copy)]
pub(crate) struct Target(pub(crate) hamlyn::Target);

#[pymethods]
impl Target {
    /// The ticket.
    #[getter]
    fn ticket(&self) -> Ticket {
        Ticket(*self.0.ticket())
    }
}

/// The lower layer of a manager.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Interface {
    owner: Py<Manager>,
    manager: Arc<Guarded<hamlyn::Manager>>,
}

impl Interface {
    pub(crate) fn new(owner: &Bound<'_, Manager>, manager: Arc<Guarded<hamlyn::Manager>>) -> Self {
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
    manager: &Guarded<hamlyn::Manager>,
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

    /// Memory, zeroed.
    fn allocate(&self, length: u64) -> PyResult<Area> {
        let manager = self.manager.enter()?;
        let area = manager.interface().allocate(length);
        Ok(Area::new(
            self.manager.gate(),
            area.map_err(Failure::from)?,
            length,
        ))
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
}

fn rights_of(rights: &str) -> PyResult<Rights> {
    let mut bits = 0;
    for right in rights.split('+') {
        bits |= match right.trim() {
            "read" => Rights::READ.to_bits(),
            "write" => Rights::WRITE.to_bits(),
            "atomic" => Rights::ATOMIC.to_bits(),
            "all" => Rights::ALL.to_bits(),
            "none" => 0,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "rights are \"read\", \"write\" and \"atomic\", joined by +, or \"all\", or \"none\"; not {rights:?}"
                )));
            }
        };
    }
    Rights::from_bits(bits).ok_or_else(|| PyValueError::new_err("there are no such rights"))
}

fn mode_of(mode: &str) -> PyResult<Mode> {
    match mode {
        "normal" => Ok(Mode::Normal),
        "paranoid" => Ok(Mode::Paranoid),
        "paranoid_one_shot" => Ok(Mode::ParanoidOneShot),
        _ => Err(PyValueError::new_err(format!(
            "mode is \"normal\", \"paranoid\" or \"paranoid_one_shot\"; not {mode:?}"
        ))),
    }
}
