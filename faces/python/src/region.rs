//! Regions: memory of a slot that peers map. Their operations are then loads and stores, and longer messages are stored by their sender.

use std::sync::Arc;

use hamlyn::region::{Access, AreaError, AttachError, Holders, ShareError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::with_bytes;
use crate::connecting::{self, Connect};
use crate::error::{Failure, Kind};
use crate::gate::of_same;
use crate::gate::{Closing, Guarded};
use crate::host::Handle;
use crate::peer::Peer;
use crate::slot::Slot;
use crate::ticket::Ticket;
use crate::waiting::{detached, end_with};
use crate::window::Window;

/// The right to attach a region, for the peers with which it is shared. `bytes(ticket)` travels.
#[pyclass(frozen, eq, module = "hamlyn")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegionTicket(hamlyn::region::RegionTicket);

#[pymethods]
impl RegionTicket {
    /// Reads the ticket of a region that came as bytes. Invalid if they are none.
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        with_bytes(data, "the ticket of a region", |bytes| {
            let ticket = hamlyn::region::RegionTicket::from_bytes(bytes);
            Ok(Self(ticket.map_err(Failure::from)?))
        })
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    /// The ticket of the slot that is in it, for `Interface.target`.
    #[getter]
    fn ticket(&self) -> Ticket {
        Ticket(self.0.ticket)
    }

    /// Bytes of the memory.
    fn __len__(&self) -> usize {
        usize::try_from(self.0.ticket.length_bytes).unwrap_or(usize::MAX)
    }

    fn __hash__(&self) -> u64 {
        self.0.secret
    }

    /// Its secret is not shown.
    fn __repr__(&self) -> String {
        let ticket = &self.0.ticket;
        let (length, interface) = (ticket.length_bytes, ticket.destination.interface);
        format!("<hamlyn.RegionTicket for {length} bytes of interface {interface:016x}>")
    }
}

impl From<ShareError> for Failure {
    #[cold]
    fn from(error: ShareError) -> Self {
        match error {
            ShareError::Host(host) => host.into(),
            ShareError::NoLink(_) => Self::of(Kind::PeerGone, &error),
            ShareError::TooMany => Self::of(Kind::SystemFailed, &error),
            other => Self::of(Kind::Invalid, &other),
        }
    }
}

impl From<AreaError> for Failure {
    #[cold]
    fn from(error: AreaError) -> Self {
        let kind = match &error {
            AreaError::Length(_) | AreaError::Address(_) => Kind::Invalid,
            AreaError::Occupied { .. } => Kind::Taken,
            _ => Kind::SystemFailed,
        };
        Self::of(kind, &error)
    }
}

impl From<AttachError> for Failure {
    #[cold]
    fn from(error: AttachError) -> Self {
        match error {
            AttachError::Fetch(reach) => reach.into(),
            AttachError::NotLinked => Self::of(Kind::NotFound, &error),
            AttachError::TooMany => Self::of(Kind::SystemFailed, &error),
            other => Self::of(Kind::Invalid, &other),
        }
    }
}

/// Pages of a slot that peers may map, in the hands of the slot's owner. It lasts until `revoke`, the end of a `with`, or the closing of its
/// slot or manager; deleting this ends nothing. While it lasts, holders may read the pages, and write them if it was shared so, at any time,
/// also bytes that were announced already: copy bytes that must not change before looking at them twice.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Region {
    manager: Arc<Guarded<Handle>>,
    region: Guarded<hamlyn::Region>,
    ticket: RegionTicket,
}

impl Region {
    /// Shares whole pages of a slot.
    pub(crate) fn make(
        py: Python<'_>,
        manager: &Arc<Guarded<Handle>>,
        slot: &Slot,
        peer: Option<&Peer>,
        (offset, length): (u64, Option<u64>),
        access: &str,
    ) -> PyResult<Self> {
        let access = match access {
            "read" => Access::ReadOnly,
            "write" => Access::Writable,
            _ => {
                let what = "the access of a region is \"read\" or \"write\"";
                return Err(Failure::new(Kind::Invalid, what).into());
            }
        };
        let holders = match peer {
            Some(peer) => Holders::One(peer.identity.link),
            None => Holders::Linked,
        };
        let region = detached(py, manager, |of| {
            let slot = of_same(manager, &slot.slot)?;
            let end = match length {
                Some(length) => offset.saturating_add(length),
                None => slot.length_bytes(),
            };
            Ok(of.session().share(slot, offset..end, access, holders)?)
        })?;
        let ticket = RegionTicket(region.ticket());
        Ok(Self {
            manager: Arc::clone(manager),
            region: Guarded::new(manager.gate(), "region", region),
            ticket,
        })
    }
}

#[pymethods]
impl Region {
    /// The ticket with which peers attach it, `Interface.attach`.
    #[getter]
    fn ticket(&self) -> RegionTicket {
        self.ticket
    }

    /// Ends it: when this has returned, nothing that holders do changes the area any more. Copies the pages that are there. If there is no
    /// memory for that, it raises, and holders may still write: free some, and call this again. Nothing if it had ended before.
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        end_with(
            py,
            &self.manager,
            &self.region,
            |manager, region| match manager.session().revoke(region) {
                Ok(()) | Err(ShareError::NoSuchRegion) => Ok(()),
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
        format!("<hamlyn.Region of {} bytes>", self.ticket.__len__())
    }
}

/// An attached region, and the manager that detaches it.
struct Mapped {
    attached: hamlyn::Attached,
    manager: Handle,
}

/// Shared by the Python object and its manager, which closes it.
struct Held(Guarded<Mapped>);

impl Held {
    /// Detaches the region, behind the gate.
    fn detach(&self) {
        // SAFETY: callers have passed the gate, and have no other reference.
        if let Some(Mapped { attached, manager }) = unsafe { self.0.take() } {
            manager.session().detach(&attached);
        }
    }
}

impl Closing for Held {
    fn close(self: Arc<Self>) {
        self.0.shut();
        let gate = Arc::clone(self.0.gate());
        gate.run(move || self.detach());
    }
}

/// A region of a peer that is mapped here. Initiators on its part of the slot operate in it, and messages of 512 bytes and more are stored
/// there. It is detached by `close`, at the end of a `with`, or with its manager; deleting this changes nothing.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Attached {
    held: Arc<Held>,
    ticket: RegionTicket,
}

impl Attached {
    /// Attaches a region.
    pub(crate) fn attaching(ticket: &RegionTicket) -> Connect {
        let ticket = *ticket;
        connecting::fetching(
            move |it, wait| it.session().attach(&ticket.0, wait),
            move |manager, attached| {
                let mapped = Mapped {
                    attached,
                    manager: manager.get().handle()?,
                };
                let gate = manager.get().gate();
                let held = Arc::new(Held(Guarded::new(gate, "attached region", mapped)));
                let closing: Arc<dyn Closing> = held.clone();
                gate.register(&closing);
                Ok(Py::new(manager.py(), Self { held, ticket })?.into_any())
            },
        )
    }
}

#[pymethods]
impl Attached {
    /// The ticket with which it was attached.
    #[getter]
    fn ticket(&self) -> RegionTicket {
        self.ticket
    }

    /// True while the region lasts, and there is a link to its owner. It may end right after the call. False when this was closed.
    #[getter]
    fn lasts(&self) -> PyResult<bool> {
        if self.closed() {
            return Ok(false);
        }
        Ok(self.held.0.enter()?.attached.lasts())
    }

    /// A window on all of the memory, which any thread may use. `trust_peers`: it has the buffer protocol, see Window.
    #[pyo3(signature = (*, trust_peers=false))]
    fn window(&self, trust_peers: bool) -> PyResult<Window> {
        let mapped = self.held.0.enter()?;
        let window = mapped.attached.window();
        Ok(Window::new(self.held.0.gate(), window, trust_peers))
    }

    /// Detaches it: messages and operations go as packets again, and windows on it have ended. Nothing if it was closed before.
    fn close(&self) -> PyResult<()> {
        if self.closed() {
            return Ok(());
        }
        let _passed = self.held.0.gate().pass()?;
        self.held.0.shut();
        self.held.detach();
        Ok(())
    }

    /// True if it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.held.0.is_shut()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!(
            "<hamlyn.Attached of {} bytes{closed}>",
            self.ticket.__len__()
        )
    }
}
