//! Send termini: work queues by which a program sends, and the areas from which it gathers.

use std::sync::Arc;

use hamlyn::engine::limits::USER_METADATA_BYTES;
use hamlyn::engine::slot::SlotError;
use hamlyn::engine::terminus::{
    GatherPiece, PostError, SendTag, TerminusError, TerminusId, TerminusOptions,
};
use hamlyn::error::SendError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::area::Area;
use crate::error::{Failure, Kind};
use crate::gate::Guarded;
use crate::gate::of_same;
use crate::host::Handle;

/// A work queue of its own for messages. Opened by `Interface.open_terminus`; it lasts until `Interface.close_terminus`, or as long as its
/// manager.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Terminus(pub(crate) Guarded<TerminusId>);

#[pymethods]
impl Terminus {}

impl From<TerminusError> for Failure {
    #[cold]
    fn from(error: TerminusError) -> Self {
        let kind = match error {
            TerminusError::TooMany | TerminusError::TooManyAreas { .. } => Kind::SystemFailed,
            TerminusError::NoSuchTerminus => Kind::HandleClosed,
            // It is free when the messages have left.
            TerminusError::InUse { .. } => Kind::TimedOut,
            _ => Kind::Invalid,
        };
        Self::of(kind, &error)
    }
}

impl From<SlotError> for Failure {
    #[cold]
    fn from(error: SlotError) -> Self {
        Self::of(Kind::Invalid, &error)
    }
}

/// By which terminus to send: the manager's, unless another is named. Behind the gate.
pub(crate) fn terminus_of(
    guarded: &Arc<Guarded<Handle>>,
    manager: &Handle,
    terminus: Option<&Terminus>,
) -> Result<TerminusId, Failure> {
    match terminus {
        Some(terminus) => of_same(guarded, &terminus.0).copied(),
        None => Ok(manager.terminus()),
    }
}

pub(crate) fn open(
    manager: &Arc<Guarded<Handle>>,
    queue_entries: Option<usize>,
    send_areas: usize,
    priority: u8,
) -> PyResult<Terminus> {
    let mut options = TerminusOptions {
        send_areas,
        priority,
        ..TerminusOptions::default()
    };
    if let Some(entries) = queue_entries {
        options.queue_entries = entries;
    }
    let entered = manager.enter()?;
    let opened = entered.session().open_terminus(options);
    let opened = opened.map_err(Failure::from)?;
    Ok(Terminus(Guarded::new(manager.gate(), "terminus", opened)))
}

pub(crate) fn close(manager: &Arc<Guarded<Handle>>, terminus: &Terminus) -> PyResult<()> {
    let entered = manager.enter()?;
    let id = *of_same(manager, &terminus.0)?;
    entered
        .session()
        .close_terminus(id)
        .map_err(Failure::from)?;
    // SAFETY: the gate was passed, and there is no reference.
    let _closed = unsafe { terminus.0.take() };
    Ok(())
}

pub(crate) fn bind_area(
    manager: &Arc<Guarded<Handle>>,
    terminus: &Terminus,
    area: &Area,
    offset: u64,
    length: Option<u64>,
) -> PyResult<u16> {
    let entered = manager.enter()?;
    let id = *of_same(manager, &terminus.0)?;
    let length = length.unwrap_or_else(|| (area.length as u64).saturating_sub(offset));
    let end = offset.checked_add(length).ok_or(Failure::new(
        Kind::Invalid,
        "the part of the area ends beyond all memory",
    ))?;
    let area = of_same(manager, &area.area)?;
    let bound = entered.session().bind_area(id, area, offset..end);
    Ok(bound.map_err(Failure::from)?.0)
}

pub(crate) fn gather_metadata<'py>(
    py: Python<'py>,
    manager: &Arc<Guarded<Handle>>,
    terminus: &Terminus,
    (tag, offset, length_bytes): (u16, u64, u64),
) -> PyResult<Bound<'py, PyBytes>> {
    let entered = manager.enter()?;
    let id = *of_same(manager, &terminus.0)?;
    let piece = GatherPiece {
        tag: SendTag(tag),
        offset,
        length_bytes,
    };
    let mut metadata = [0; USER_METADATA_BYTES];
    let gathered = entered.session().gather_metadata(id, &piece, &mut metadata);
    let length_bytes = gathered.map_err(|error| match error {
        PostError::MetadataTooLong { .. } => Failure::of(Kind::TooLong, &error),
        other => SendError::from(other).into(),
    })?;
    Ok(PyBytes::new(py, &metadata[..length_bytes]))
}

pub(crate) fn unbind_area(
    manager: &Arc<Guarded<Handle>>,
    terminus: &Terminus,
    tag: u16,
) -> PyResult<()> {
    let entered = manager.enter()?;
    let id = *of_same(manager, &terminus.0)?;
    let unbound = entered.session().unbind_area(id, SendTag(tag));
    Ok(unbound.map_err(Failure::from)?)
}
