//! Grants (decision 6): a chosen peer stores longer messages into pages of a slot by itself, and sends only their headers.

use std::sync::Arc;

use hamlyn::grant::{AcceptError, GrantError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::Handle;
use crate::bytes::with_bytes;
use crate::connecting::{self, Connect};
use crate::error::{Failure, Kind};
use crate::gate::Guarded;
use crate::interface::of_same;
use crate::peer::Peer;
use crate::slot::Slot;
use crate::waiting::{detached, end_with};

/// The right to fetch granted pages, once, for the one peer that they were granted to. `bytes(ticket)` travels.
#[pyclass(frozen, eq, module = "hamlyn")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrantTicket(hamlyn::grant::GrantTicket);

#[pymethods]
impl GrantTicket {
    /// Reads the ticket of a grant that came as bytes. Invalid if they are none.
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        with_bytes(data, "the ticket of a grant", |bytes| {
            let ticket = hamlyn::grant::GrantTicket::from_bytes(bytes);
            Ok(Self(ticket.map_err(Failure::from)?))
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// How many bytes the pages have.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.length_bytes).unwrap_or(usize::MAX)
    }

    fn __hash__(&self) -> u64 {
        self.0.secret
    }

    /// Its secret is not shown.
    fn __repr__(&self) -> String {
        let (length, interface) = (self.0.length_bytes, self.0.destination.interface);
        format!("<hamlyn.GrantTicket for {length} bytes of interface {interface:016x}>")
    }
}

impl GrantTicket {
    /// Takes the grant up.
    pub(crate) fn accepting(&self) -> Connect {
        let ticket = self.0;
        connecting::fetching(
            move |it, wait| it.session().accept_grant(&ticket, wait),
            |manager, ()| Ok(manager.py().None()),
        )
    }

    /// Lets go of the grant; whether it was there.
    pub(crate) fn drop_grant(&self, manager: &Guarded<Handle>) -> PyResult<bool> {
        Ok(manager.enter()?.session().drop_grant(&self.0))
    }
}

impl From<GrantError> for Failure {
    #[cold]
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Host(host) => host.into(),
            GrantError::NoLink(_) => Self::of(Kind::PeerGone, &error),
            GrantError::TooMany => Self::of(Kind::SystemFailed, &error),
            other => Self::of(Kind::Invalid, &other),
        }
    }
}

impl From<AcceptError> for Failure {
    #[cold]
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Fetch(reach) => reach.into(),
            AcceptError::NotLinked => Self::of(Kind::NotFound, &error),
            AcceptError::TooMany => Self::of(Kind::SystemFailed, &error),
            other => Self::of(Kind::Invalid, &other),
        }
    }
}

/// Pages of a slot that a peer may write by itself, in the hands of the slot's owner. It lasts until `revoke`, the end of a `with`, or the
/// closing of its slot or manager; deleting this ends nothing. While it lasts its holder may write those pages at any time, also those
/// that were announced already: copy bytes that must not change before looking at them twice.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Grant {
    manager: Arc<Guarded<Handle>>,
    grant: Guarded<hamlyn::Grant>,
    ticket: GrantTicket,
}

impl Grant {
    /// Grants whole pages of a slot to a peer. Copies them.
    pub(crate) fn make(
        py: Python<'_>,
        manager: &Arc<Guarded<Handle>>,
        slot: &Slot,
        peer: &Peer,
        offset: u64,
        length: Option<u64>,
    ) -> PyResult<Self> {
        let link = peer.identity.link;
        let grant = detached(py, manager, |of| {
            let slot = of_same(manager, &slot.slot)?;
            let end = match length {
                Some(length) => offset.saturating_add(length),
                None => slot.length_bytes(),
            };
            Ok(of.session().grant(slot, offset..end, link)?)
        })?;
        let ticket = GrantTicket(grant.ticket());
        Ok(Self {
            manager: Arc::clone(manager),
            grant: Guarded::new(manager.gate(), "grant", grant),
            ticket,
        })
    }
}

#[pymethods]
impl Grant {
    /// What its peer takes it up with, `Interface.accept_grant`. Of no use to anybody else.
    #[getter]
    fn ticket(&self) -> GrantTicket {
        self.ticket
    }

    /// Ends it: when this has returned, nothing that its holder does changes the area any more. Copies the pages. If there is no memory for
    /// that, it raises, and the holder may still write: free some, and call this again. Nothing if it had ended before.
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        end_with(
            py,
            &self.manager,
            &self.grant,
            |manager, grant| match manager.session().revoke_grant(grant) {
                Ok(()) | Err(GrantError::NoSuchGrant) => Ok(()),
                Err(error) => Err(error.into()),
            },
        )
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.revoke(py)
    }

    fn __repr__(&self) -> String {
        format!("<hamlyn.Grant of {} bytes>", self.ticket.__len__())
    }
}
