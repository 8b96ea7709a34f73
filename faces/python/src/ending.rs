//! The end of a manager's `with`: waits for a while until what was accepted has left, and warns of
//! what is lost.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::error::is_ours;
use crate::gate::Guarded;
use crate::host::Handle;
use crate::stream::Outgoing;
use crate::waiting::{Timeout, wait_for};

/// The time that receivers have to make room.
const ENDING: Duration = Duration::from_secs(5);

/// Streams of a manager, records of which may be kept when it ends.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Vec<Weak<Outgoing>>>);

/// The rest that has not left in time: records of streams, and if there are other messages.
type Lost = (u64, bool);

impl Streams {
    pub(crate) fn keep(&self, stream: &Arc<Outgoing>) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        streams.push(Arc::downgrade(stream));
    }

    /// Waits until what was sent has left.
    pub(crate) fn end(&self, py: Python<'_>, manager: &Guarded<Handle>) -> PyResult<Lost> {
        let deadline = Timeout::of(ENDING).deadline();
        let left = || Timeout::of(deadline.left(ENDING).unwrap_or_default());
        // Not while they are locked: other threads run meanwhile.
        let streams = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut lost = 0;
        for stream in streams.iter().filter_map(Weak::upgrade) {
            lost += stream.end(py, left())?;
        }
        let have_left = wait_for(py, manager, Some(left()), |manager, wait| {
            Ok(manager.flush(wait)?.then_some(()))
        })?;
        Ok((lost, have_left.is_none()))
    }
}

/// Warns of what is lost.
pub(crate) fn warn(py: Python<'_>, lost: PyResult<Lost>) -> PyResult<()> {
    let text = match lost {
        // Another thread is in a call, say: this one waits for nothing.
        Err(error) if is_ours(py, &error) => return Ok(()),
        Err(error) => return Err(error),
        Ok((0, false)) => return Ok(()),
        Ok((0, true)) => "a manager ended with messages for which their receivers had no room: they are lost; flush it before, with more time".to_owned(),
        Ok((lost, _)) => format!(
            "a manager ended with {lost} records of streams for which the receivers had no room, all or some of which are lost: close the streams before, with more time"
        ),
    };
    let text = CString::new(text)?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}
