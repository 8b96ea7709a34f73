//! Areas: memory that peers write at any time, so that it is read by copies.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn::region::SharedOptions;
use hamlyn::{NewSlot, Session};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{with_bytes, with_writable};
use crate::error::{Failure, Kind};
use crate::gate::{Gate, Guarded};
use crate::host::Host;
use crate::number;
use crate::window::Window;

/// Memory that peers write, and read, as their tickets allow. It may change at any time, so it is read by copies.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Area {
    pub(crate) area: Guarded<hamlyn::Area>,
    pub(crate) length: usize,
    /// Of one that changes hands: whether a slot has it, which alone writes it.
    writer_is_gone: Option<AtomicBool>,
}

impl Area {
    pub(crate) fn new(gate: &Arc<Gate>, area: hamlyn::Area, length_bytes: u64) -> Self {
        Self {
            area: Guarded::new(gate, "area", area),
            length: usize::try_from(length_bytes).unwrap_or(usize::MAX),
            writer_is_gone: None,
        }
    }

    /// One that changes hands.
    pub(crate) fn handover(gate: &Arc<Gate>, area: hamlyn::Area, length_bytes: u64) -> Self {
        Self {
            writer_is_gone: Some(AtomicBool::new(false)),
            ..Self::new(gate, area, length_bytes)
        }
    }

    /// For a slot over it, by a caller that has passed the gate and has that reference.
    pub(crate) fn for_slot(&self, area: &mut hamlyn::Area) -> Result<NewSlot, Failure> {
        let Some(writer_is_gone) = &self.writer_is_gone else {
            return Ok(NewSlot::new(area));
        };
        if writer_is_gone.swap(true, Ordering::SeqCst) {
            return Err(Failure::new(
                Kind::Invalid,
                "this area changes hands, and a slot was opened over it before, which alone writes it: allocate another",
            ));
        }
        // What stays here reads.
        let reading = area.clone();
        Ok(NewSlot::over(std::mem::replace(area, reading)))
    }
}

fn outside(error: impl Display) -> PyErr {
    PyIndexError::new_err(error.to_string())
}

const OUTSIDE: &str = "that does not lie in the area";

#[pymethods]
impl Area {
    fn __len__(&self) -> usize {
        self.length
    }

    /// A copy of so many bytes from `offset` on.
    fn read<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if length > self.length {
            return Err(outside(OUTSIDE));
        }
        PyBytes::new_with(py, length, |into| {
            self.area.enter()?.read_at(offset, into).map_err(outside)
        })
    }

    /// Copies from `offset` on into a buffer that can be written, all of which is filled.
    #[pyo3(signature = (buffer, offset=0))]
    fn read_into(
        &self,
        buffer: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
    ) -> PyResult<()> {
        with_writable(buffer, "the buffer", |into| {
            self.area.enter()?.read_at(offset, into).map_err(outside)
        })
    }

    /// Copies any object with a contiguous buffer to `offset`.
    fn write(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        with_bytes(data, "what is written", |bytes| {
            self.area.enter()?.write_at(offset, bytes).map_err(outside)
        })
    }

    /// The eight bytes at `offset`, a multiple of 8, as a number, whole.
    fn load_u64(&self, #[pyo3(from_py_with = number::offset)] offset: u64) -> PyResult<u64> {
        self.area.enter()?.load_u64(offset).map_err(outside)
    }

    /// Stores a number in the eight bytes at `offset`, a multiple of 8, whole.
    fn store_u64(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::value)] value: u64,
    ) -> PyResult<()> {
        self.area.enter()?.store_u64(offset, value).map_err(outside)
    }

    /// A window on a part of the area, or on all of it, which any thread may use. `trust_peers`: it has the buffer protocol, see Window.
    #[pyo3(signature = (offset=0, length=None, *, trust_peers=false))]
    fn window(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: Option<u64>,
        trust_peers: bool,
    ) -> PyResult<Window> {
        let area = self.area.enter()?;
        let length = length.unwrap_or_else(|| (self.length as u64).saturating_sub(offset));
        let window = offset
            .checked_add(length)
            .and_then(|end| area.direct_window(offset..end));
        let window = window.ok_or_else(|| outside(OUTSIDE))?;
        Ok(Window::new(self.area.gate(), window, trust_peers))
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Area of {} bytes>", self.length)
    }
}

/// Allocates an area of that kind, at that address if there is one, and says how long it is.
pub(crate) fn allocate(
    mut interface: Session<'_, Host>,
    length_bytes: u64,
    kind: &str,
    address: Option<usize>,
) -> PyResult<(hamlyn::Area, u64)> {
    if address == Some(0) {
        return Err(PyValueError::new_err(
            "the address is 0: None leaves it to the system",
        ));
    }
    let area = match kind {
        "private" | "shared" if address.is_some() => {
            return Err(PyValueError::new_err(
                "only an area whose kind is \"sparse\" is allocated at a chosen address",
            ));
        }
        "private" => interface.allocate(length_bytes).map_err(Failure::from)?,
        "shared" => {
            hamlyn::Area::shared(SharedOptions::reserved(length_bytes)).map_err(Failure::from)?
        }
        "sparse" => hamlyn::Area::shared(SharedOptions {
            address,
            ..SharedOptions::sparse(length_bytes)
        })
        .map_err(Failure::from)?,
        _ => {
            return Err(PyValueError::new_err(format!(
                "the kind of an area is \"private\", \"shared\" or \"sparse\"; not {kind:?}"
            )));
        }
    };
    let length_bytes = NewSlot::new(&area).range.end;
    Ok((area, length_bytes))
}
