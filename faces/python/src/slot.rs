//! Slots with their keys, the queues to which arrivals in them come, and targets of tickets.

use std::sync::Arc;

use hamlyn::engine::packet::SlotName;
use hamlyn::engine::slot::{Mode, Rights};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Failure;
use crate::gate::of_same;
use crate::gate::{Gate, Guarded};
use crate::host::Handle;
use crate::number;
use crate::ticket::Ticket;
use crate::waiting::{Timeout, wait_for};

/// Where arrivals in slots are announced.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Queue(pub(crate) Guarded<Reading>);

/// A queue that is read.
pub(crate) struct Reading {
    pub(crate) queue: hamlyn::Queue,
    /// Notifications were lost after those that were taken together: the next call says so.
    pub(crate) overrun: Option<Failure>,
}

impl Queue {
    pub(crate) fn new(gate: &Arc<Gate>, queue: hamlyn::Queue) -> Self {
        let overrun = None;
        Self(Guarded::new(gate, "queue", Reading { queue, overrun }))
    }
}

#[pymethods]
impl Queue {
    /// Number of entries.
    #[getter]
    fn capacity(&self) -> PyResult<usize> {
        Ok(self.0.enter()?.queue.capacity())
    }

    /// Notifications lost to overrun so far.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        Ok(self.0.enter()?.queue.lost())
    }
}

/// The next arrivals in a queue, up to so many; waits for the first.
pub(crate) fn receive_many(
    py: Python<'_>,
    manager: &Arc<Guarded<Handle>>,
    queue: &Queue,
    most: usize,
    timeout: Option<Timeout>,
) -> PyResult<Vec<Notification>> {
    let came = wait_for(py, manager, timeout, |handle, wait| {
        let reading = of_same(manager, &queue.0)?;
        handle.session().wait_for(wait, |interface| {
            if let Some(overrun) = reading.overrun.take() {
                return Err(overrun);
            }
            let mut came = Vec::new();
            let each = |arrival| came.push(Notification(arrival));
            if let Err(error) = interface.receive_many(&mut reading.queue, most, each) {
                match came.is_empty() {
                    true => return Err(error.into()),
                    false => reading.overrun = Some(error.into()),
                }
            }
            Ok((!came.is_empty() || most == 0).then_some(came))
        })
    })?;
    Ok(came.unwrap_or_default())
}

/// An arrival.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Notification(pub(crate) hamlyn::engine::notification::Notification);

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
    pub(crate) slot: Guarded<hamlyn::Slot>,
    pub(crate) name: SlotName,
}

#[pymethods]
impl Slot {
    /// A ticket for fast mode and for one-sided operations, for a part of the slot; all of it otherwise.
    #[pyo3(signature = (offset=0, length=None))]
    fn ticket(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
    ) -> PyResult<Ticket> {
        let slot = self.slot.enter()?;
        let length = length.unwrap_or_else(|| slot.length_bytes().saturating_sub(offset));
        Ok(Ticket(
            slot.fast_ticket(offset, length).map_err(Failure::from)?,
        ))
    }

    /// A ticket for the metadata entry of that index, and a part of the slot.
    #[pyo3(signature = (index, offset=0, length=None))]
    fn entry_ticket(
        &self,
        #[pyo3(from_py_with = number::index)] index: u16,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
    ) -> PyResult<Ticket> {
        let slot = self.slot.enter()?;
        let length = length.unwrap_or_else(|| slot.length_bytes().saturating_sub(offset));
        Ok(Ticket(
            slot.ticket(index, offset, length).map_err(Failure::from)?,
        ))
    }

    /// The metadata of the message that came last to the entry of that index.
    fn metadata<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::index)] index: u16,
    ) -> PyResult<Bound<'py, PyBytes>> {
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
    fn stored_bytes(
        &self,
        #[pyo3(from_py_with = number::index)] index: u16,
    ) -> PyResult<Option<u64>> {
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

pub(crate) fn rights_of(rights: &str) -> PyResult<Rights> {
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

pub(crate) fn mode_of(mode: &str) -> PyResult<Mode> {
    match mode {
        "normal" => Ok(Mode::Normal),
        "paranoid" => Ok(Mode::Paranoid),
        "paranoid_one_shot" => Ok(Mode::ParanoidOneShot),
        _ => Err(PyValueError::new_err(format!(
            "mode is \"normal\", \"paranoid\" or \"paranoid_one_shot\"; not {mode:?}"
        ))),
    }
}
