//! Tickets, members of groups, and seeds of streams: capabilities that travel as bytes.

use hamlyn::group;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::with_bytes;
use crate::error::Failure;
use crate::number;

/// The right to send to one place: who holds its bytes may use it until its key is changed. `bytes(ticket)` travels.
#[pyclass(frozen, eq, module = "hamlyn")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) hamlyn::Ticket);

#[pymethods]
impl Ticket {
    /// Reads a ticket that came as bytes. Invalid if they are none.
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        with_bytes(data, "a ticket", |bytes| {
            Ok(Self(
                hamlyn::Ticket::from_bytes(bytes).map_err(Failure::from)?,
            ))
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// How many bytes its place has.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.length_bytes).unwrap_or(usize::MAX)
    }

    fn __hash__(&self) -> u64 {
        self.0.key.to_bits() ^ self.0.base
    }

    /// The number of the interface that its place belongs to, as `Peer.interface`.
    #[getter]
    fn interface(&self) -> u64 {
        self.0.destination.interface
    }

    /// A ticket for a part of this one's place.
    fn narrow(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: u64,
    ) -> PyResult<Self> {
        Ok(Self(self.0.narrow(offset, length).map_err(Failure::from)?))
    }

    /// Its key is not shown.
    fn __repr__(&self) -> String {
        let destination = self.0.destination;
        format!(
            "<hamlyn.Ticket for {} bytes of interface {:016x}>",
            self.0.length_bytes, destination.interface
        )
    }
}

/// A part of a group: a range of its buffer and a share of the count. For one holder, to be used once. `bytes(member)` travels.
#[pyclass(frozen, eq, module = "hamlyn")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member(pub(crate) group::Member);

#[pymethods]
impl Member {
    /// Reads a member that came as bytes. Invalid if they are none.
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        with_bytes(data, "a member", |bytes| {
            Ok(Self(
                group::Member::from_bytes(bytes).map_err(Failure::from)?,
            ))
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// How many bytes its range has.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.ticket.length_bytes).unwrap_or(usize::MAX)
    }

    fn __hash__(&self) -> u64 {
        self.0.ticket.key.to_bits() ^ self.0.ticket.base
    }

    /// Divides range and share into consecutive parts of these lengths, for delegates.
    fn divide(
        &self,
        #[pyo3(from_py_with = number::lengths)] lengths: Vec<u64>,
    ) -> PyResult<Vec<Self>> {
        let parts = self.0.divide(&lengths).map_err(Failure::from)?;
        Ok(parts.into_iter().map(Self).collect())
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Member of {} bytes>", self.0.ticket.length_bytes)
    }
}
