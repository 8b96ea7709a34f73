//! Sleeps of a program that waits for its manager's descriptor among others.

use std::sync::Arc;
use std::time::Duration;

use hamlyn::{Sleep as Sleeping, Wait};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::gate::forked;
use crate::host::{Handle, Host};
use crate::lending::{End, Lender, Lent, State};

impl Lent<Handle> for Sleeping<'static, Host> {
    const NAME: &'static str = "sleep";
}

/// A handle of a manager, and the sleep that was prepared with it.
pub(crate) type Sleeper = End<Handle, Sleeping<'static, Host>>;

/// This program sleeps, or is about to: it waits for the manager's descriptor, at most for `timeout` seconds, and ends this as soon as
/// it is awake, by `end` or at the end of a `with`.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Sleep {
    timeout: Option<Duration>,
    sleeper: Arc<Sleeper>,
    state: Arc<State>,
}

impl Sleep {
    /// Prepares to sleep; nothing if something has happened since.
    pub(crate) fn prepare(sleeper: &Arc<Sleeper>, wait: Wait) -> PyResult<Option<Self>> {
        let mut held = sleeper.held.enter()?;
        let sleep = held.hold(|manager| Ok(manager.prepare_sleep(wait)?))?;
        Ok(sleep.map(|(sleep, state)| Self {
            timeout: sleep.timeout(),
            sleeper: Arc::clone(sleeper),
            state,
        }))
    }

    /// Behind the gate, as soon as it is free.
    fn let_go(&self) {
        Arc::clone(&self.sleeper).let_go(Arc::clone(&self.state));
    }
}

#[pymethods]
impl Sleep {
    /// For how many seconds to wait at most; None: as long as it takes.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.timeout.map(|span| span.as_secs_f64())
    }

    /// Ends it; while another call uses the manager, when that call is over. Nothing if it was ended before, by itself or with its manager.
    fn end(&self) -> PyResult<()> {
        if self.sleeper.gate().is_forked() {
            return Err(forked().into());
        }
        self.let_go();
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.end()
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.let_go();
    }
}
