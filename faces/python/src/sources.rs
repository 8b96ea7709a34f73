//! A wait for several queues, completion queues and shared lanes.

use std::sync::Arc;

use hamlyn::Source;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::completions::CompletionQueue;
use crate::error::Failure;
use crate::gate::Guarded;
use crate::gate::of_same;
use crate::host::Handle;
use crate::lanes::SharedLane;
use crate::slot::Queue;
use crate::waiting::{Timeout, wait_for};

/// Something that a wait looks at.
#[derive(FromPyObject)]
pub(crate) enum SourceOf {
    Queue(Py<Queue>),
    Completions(Py<CompletionQueue>),
    SharedLane(Py<SharedLane>),
}

impl SourceOf {
    fn address(&self) -> *mut pyo3::ffi::PyObject {
        match self {
            Self::Queue(queue) => queue.as_ptr(),
            Self::Completions(queue) => queue.as_ptr(),
            Self::SharedLane(lane) => lane.as_ptr(),
        }
    }

    fn of(&self, manager: &Guarded<Handle>) -> Result<Source<'_>, Failure> {
        Ok(match self {
            Self::Queue(queue) => Source::Messages(&of_same(manager, &queue.get().0)?.queue),
            Self::Completions(queue) => Source::Completions(queue.get().of_same(manager)?),
            Self::SharedLane(lane) => Source::Port(of_same(manager, &lane.get().lane)?.port()),
        })
    }
}

/// Waits until one of them has something, and says which.
pub(crate) fn await_any(
    py: Python<'_>,
    manager: &Arc<Guarded<Handle>>,
    sources: &[SourceOf],
    timeout: Option<Timeout>,
) -> PyResult<Option<usize>> {
    let mut all: Vec<_> = sources.iter().map(SourceOf::address).collect();
    all.sort_unstable();
    if all.is_empty() || all.windows(2).any(|two| two[0] == two[1]) {
        return Err(PyValueError::new_err(
            "there are no sources, or one of them is given twice",
        ));
    }
    wait_for(py, manager, timeout, |handle, wait| {
        let of = sources.iter().map(|source| source.of(manager));
        let looked_at = of.collect::<Result<Vec<_>, Failure>>()?;
        Ok(handle.session().await_any(&looked_at, wait)?)
    })
}
