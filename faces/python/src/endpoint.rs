//! What all end points have: they are closed, by hand, at the end of a `with`, with their manager, or when they are deleted.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::gate::Closing;
use crate::lending::{End, Lent};
use crate::manager::Manager;

/// An end point. It is closed by `close`, at the end of a `with`, with its manager, or when it is deleted. It belongs to its manager, and
/// is used by one thread at a time.
#[pyclass(frozen, subclass, module = "hamlyn")]
pub(crate) struct EndPoint {
    end: Arc<dyn Shutting>,
    manager: Py<Manager>,
}

/// An end point that says whether it was closed.
pub(crate) trait Shutting: Closing {
    fn is_shut(&self) -> bool;
}

impl<E, M: Lent<E>> Shutting for End<E, M> {
    fn is_shut(&self) -> bool {
        self.held.is_shut()
    }
}

impl EndPoint {
    pub(crate) fn new<E, M: Lent<E>>(manager: &Bound<'_, Manager>, end: &Arc<End<E, M>>) -> Self {
        Self {
            end: end.clone(),
            manager: manager.clone().unbind(),
        }
    }
}

#[pymethods]
impl EndPoint {
    /// Closes it. Views of its messages stay good. Nothing if it was closed before.
    fn close(&self) {
        Arc::clone(&self.end).close();
    }

    /// Its manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.manager.clone_ref(py)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.end.is_shut()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }
}

/// For end points that lend nothing.
pub(crate) enum NoMessage {}

impl<E> Lent<E> for NoMessage {
    const NAME: &'static str = "message";
}
