//! Exported memory (decision 37): all of a slot, mapped by any number of peers, whose operations are then loads and stores.

use std::sync::Arc;

use hamlyn::export::{ExportError, ExportableError, ImportError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::Handle;
use crate::bytes::with_bytes;
use crate::connecting::{self, Connect};
use crate::error::{Failure, Kind};
use crate::gate::{Closing, Guarded};
use crate::interface::of_same;
use crate::slot::Slot;
use crate::ticket::Ticket;
use crate::waiting::end_with;
use crate::window::Window;

/// The right to map the memory of a slot, for every peer that holds it and has a link to the owner. `bytes(ticket)` travels.
#[pyclass(frozen, eq, module = "hamlyn")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExportTicket(hamlyn::export::ExportTicket);

#[pymethods]
impl ExportTicket {
    /// Reads the ticket of an export that came as bytes. Invalid if they are none.
    #[new]
    #[pyo3(signature = (data, /))]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        with_bytes(data, "the ticket of an export", |bytes| {
            let ticket = hamlyn::export::ExportTicket::from_bytes(bytes);
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

    /// How many bytes the memory has.
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
        format!("<hamlyn.ExportTicket for {length} bytes of interface {interface:016x}>")
    }
}

impl From<ExportError> for Failure {
    #[cold]
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Host(host) => host.into(),
            other => Self::of(Kind::Invalid, &other),
        }
    }
}

impl From<ExportableError> for Failure {
    #[cold]
    fn from(error: ExportableError) -> Self {
        let kind = match &error {
            ExportableError::Length(_) | ExportableError::Address(_) => Kind::Invalid,
            ExportableError::Occupied { .. } => Kind::Taken,
            _ => Kind::SystemFailed,
        };
        Self::of(kind, &error)
    }
}

impl From<ImportError> for Failure {
    #[cold]
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Fetch(reach) => reach.into(),
            ImportError::NotLinked => Self::of(Kind::NotFound, &error),
            ImportError::TooMany => Self::of(Kind::SystemFailed, &error),
            other => Self::of(Kind::Invalid, &other),
        }
    }
}

/// Memory of a slot that peers map, in the hands of the slot's owner. It lasts until `revoke`, the end of a `with`, or the closing of its
/// slot or manager; deleting this ends nothing. Importers see all of the memory, and, with all rights, may write it at any time.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Export {
    manager: Arc<Guarded<Handle>>,
    export: Guarded<hamlyn::Export>,
    ticket: ExportTicket,
}

impl Export {
    /// Exports the memory of a slot.
    pub(crate) fn make(manager: &Arc<Guarded<Handle>>, slot: &Slot) -> PyResult<Self> {
        let entered = manager.enter()?;
        let slot = of_same(manager, &slot.slot)?;
        let export = entered.session().export(slot).map_err(Failure::from)?;
        let ticket = ExportTicket(export.ticket());
        Ok(Self {
            manager: Arc::clone(manager),
            export: Guarded::new(manager.gate(), "export", export),
            ticket,
        })
    }
}

#[pymethods]
impl Export {
    /// What peers take it up with, `Interface.import_slot`.
    #[getter]
    fn ticket(&self) -> ExportTicket {
        self.ticket
    }

    /// Ends it: when this has returned, nothing that importers do changes the area any more. Copies the pages that are there. If there is no
    /// memory for that, it raises, and importers may still write: free some, and call this again. Nothing if it had ended before.
    fn revoke(&self, py: Python<'_>) -> PyResult<()> {
        end_with(
            py,
            &self.manager,
            &self.export,
            |manager, export| match manager.session().revoke_export(export) {
                Ok(()) | Err(ExportError::NoSuchExport) => Ok(()),
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
        format!("<hamlyn.Export of {} bytes>", self.ticket.__len__())
    }
}

/// An import, and the manager that it is let go of with.
struct Mapped {
    import: hamlyn::Import,
    manager: Handle,
}

/// What an import object has, and what its manager closes.
struct Held(Guarded<Mapped>);

impl Held {
    /// Lets go of the import, behind the gate.
    fn let_go(&self) {
        // SAFETY: callers have passed the gate, and have no other reference.
        if let Some(Mapped { import, manager }) = unsafe { self.0.take() } {
            manager.session().drop_import(&import);
        }
    }
}

impl Closing for Held {
    fn close(self: Arc<Self>) {
        self.0.shut();
        let gate = Arc::clone(self.0.gate());
        gate.run(move || self.let_go());
    }
}

/// Memory of a peer that is mapped here. Initiators that are opened while it lasts, with tickets of its slot, operate in it. It is let go of
/// by `close`, at the end of a `with`, or with its manager; deleting this changes nothing.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Import {
    held: Arc<Held>,
    ticket: ExportTicket,
}

impl Import {
    /// Takes an export up.
    pub(crate) fn importing(ticket: &ExportTicket) -> Connect {
        let ticket = *ticket;
        connecting::fetching(
            move |it, wait| it.session().import(&ticket.0, wait),
            move |manager, import| {
                let mapped = Mapped {
                    import,
                    manager: manager.get().handle()?,
                };
                let gate = manager.get().gate();
                let held = Arc::new(Held(Guarded::new(gate, "import", mapped)));
                let closing: Arc<dyn Closing> = held.clone();
                gate.register(&closing);
                Ok(Py::new(manager.py(), Self { held, ticket })?.into_any())
            },
        )
    }
}

#[pymethods]
impl Import {
    /// What it was taken up with.
    #[getter]
    fn ticket(&self) -> ExportTicket {
        self.ticket
    }

    /// Whether the export still lasts, and there is a link to its owner. It may end right after the call. False when this was closed.
    #[getter]
    fn lasts(&self) -> PyResult<bool> {
        if self.closed() {
            return Ok(false);
        }
        Ok(self.held.0.enter()?.import.lasts())
    }

    /// A window on all of the memory, which any thread may use. `trust_peers`: it has the buffer protocol, see Window.
    #[pyo3(signature = (*, trust_peers=false))]
    fn window(&self, trust_peers: bool) -> PyResult<Window> {
        let mapped = self.held.0.enter()?;
        let window = mapped.import.window();
        Ok(Window::new(self.held.0.gate(), window, trust_peers))
    }

    /// Lets go of it: operations go as packets again, and windows on it have ended. Nothing if it was closed before.
    fn close(&self) -> PyResult<()> {
        if self.closed() {
            return Ok(());
        }
        let _passed = self.held.0.gate().pass()?;
        self.held.0.shut();
        self.held.let_go();
        Ok(())
    }

    /// Whether it was closed.
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
        format!("<hamlyn.Import of {} bytes{closed}>", self.ticket.__len__())
    }
}
