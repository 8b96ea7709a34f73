//! asyncio: coroutines are those of `hamlyn/aio.py`, which asks end points in the running loop and waits for the manager's descriptor.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyModule, PyTuple};

use crate::error::Failure;
use crate::gate::{Gate, Guarded};

static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// A coroutine of that name.
pub(crate) fn coroutine<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = MODULE.get_or_try_init(py, || py.import("hamlyn.aio").map(Bound::unbind))?;
    module.bind(py).getattr(function)?.call1(arguments)
}

/// A coroutine that receives.
pub(crate) fn recv<'py>(end: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    coroutine(end.py(), "recv", (end,))
}

/// A coroutine that receives, for `async for`.
pub(crate) fn next<'py>(end: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    coroutine(end.py(), "next_of", (end,))
}

/// A coroutine that waits for an event of a manager.
pub(crate) fn next_event<'py>(manager: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    coroutine(manager.py(), "next_event", (manager,))
}

/// A coroutine that sends with these arguments.
pub(crate) fn send<'py>(
    end: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = arguments.into_pyobject(end.py())?;
    coroutine(end.py(), "send", (end, arguments))
}

/// A coroutine that calls a service.
pub(crate) fn call_service<'py>(
    client: &Bound<'py, PyAny>,
    request: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    coroutine(client.py(), "call", (client, request))
}

/// A future of the library.
pub(crate) type Driven = Pin<Box<dyn Future<Output = Result<(), Failure>>>>;

/// A coroutine that awaits a future of the library; for a stream, after what was held back is sent.
pub(crate) fn drive<'py>(
    end: &Bound<'py, PyAny>,
    gate: &Arc<Gate>,
    future: Driven,
    flushes: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let step = Step(Guarded::new(gate, "future", future));
    match flushes {
        false => coroutine(end.py(), "drive", (end, step)),
        true => coroutine(end.py(), "flush_and_drive", (end, step)),
    }
}

/// A future of the library, which is asked whether it is done.
#[pyclass(frozen, name = "_Step", module = "hamlyn")]
pub(crate) struct Step(Guarded<Driven>);

#[pymethods]
impl Step {
    /// True if it is done. Not to be asked after that.
    fn poll(&self) -> PyResult<bool> {
        let mut future = self.0.enter()?;
        match future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(failure)) => Err(failure.into()),
            Poll::Pending => Ok(false),
        }
    }
}
