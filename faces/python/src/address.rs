//! Where to connect to, as a program says it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::ticket::Ticket;
use crate::waiting::type_name;

/// An address, or a ticket.
pub(crate) enum To {
    Address(String),
    Ticket(hamlyn::Ticket),
}

impl<'py> FromPyObject<'_, 'py> for To {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<Ticket>() {
            Ok(ticket) => Ok(Self::Ticket(ticket.get().0)),
            Err(_) => address_of(&object, "a Ticket").map(Self::Address),
        }
    }
}

/// An address, where something else could be said as well.
pub(crate) fn address_of(to: &Bound<'_, PyAny>, or: &str) -> PyResult<String> {
    to.extract().map_err(|_| {
        PyTypeError::new_err(format!(
            "where to connect to is an address, as in \"name/item\", or {or}; not {}",
            type_name(to)
        ))
    })
}
