//! Completion queues of the lower layer: the ends of sends, fences and one-sided operations, each with a number of the program's own, and
//! packets that came back.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use hamlyn::{CompletionError, TrackError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::aio;
use crate::error::{Failure, Kind};
use crate::fencing::{Linked, link_of};
use crate::gate::Guarded;
use crate::gate::of_same;
use crate::host::Handle;
use crate::manager::Manager;
use crate::number;
use crate::one_sided::Access;
use crate::operation::{Begun, Operation, State, TOLD, Value};
use crate::sending::{self, SendHandle};
use crate::waiting::{Timeout, wait_for};

impl From<TrackError> for Failure {
    #[cold]
    fn from(error: TrackError) -> Self {
        match error {
            TrackError::Fence(error) => error.into(),
            TrackError::Operation(error) => error.into(),
            _ => Self::of(Kind::Invalid, &error),
        }
    }
}

impl From<CompletionError> for Failure {
    #[cold]
    fn from(error: CompletionError) -> Self {
        match error {
            CompletionError::NotSent => Self::of(Kind::PeerGone, &error),
            CompletionError::Fence(error) => error.into(),
            CompletionError::Operation(error) => error.into(),
            CompletionError::Returned(packet) => {
                use hamlyn::engine::transport::Return;
                let kind = match packet.reason {
                    Return::Refused(_) | Return::RefusedOtherwise(_) => Kind::Refused,
                    _ => Kind::PeerGone,
                };
                Self::of(kind, &packet)
            }
            _ => Self::of(Kind::Invalid, &error),
        }
    }
}

/// Something that a queue tracks.
struct Tracked {
    /// The program's number.
    context: u64,
    operation: Option<(Arc<Access>, Begun)>,
}

/// A queue of the library, and what was given to it. The library's contexts are numbers of this table, so two of the program's may be
/// equal.
struct Tracking {
    queue: hamlyn::CompletionQueue,
    tracked: HashMap<u64, Tracked>,
    next: u64,
}

impl Tracking {
    /// Has the library track something under a number of the table.
    fn track(
        &mut self,
        context: u64,
        track: impl FnOnce(&hamlyn::CompletionQueue, u64) -> Result<(), TrackError>,
    ) -> Result<&mut Tracked, Failure> {
        track(&self.queue, self.next)?;
        let number = self.next;
        self.next += 1;
        let tracked = self.tracked.entry(number);
        Ok(tracked.or_insert(Tracked {
            context,
            operation: None,
        }))
    }
}

impl Drop for Tracking {
    fn drop(&mut self) {
        for tracked in self.tracked.values() {
            if let Some((access, begun)) = &tracked.operation {
                let mut landing = access
                    .landing
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                begun.leave_place(&mut landing);
            }
        }
    }
}

/// The end of something that was tracked, on its way to the program.
struct Ended {
    context: u64,
    word: u64,
    value: Result<Value, Failure>,
    is_returned: bool,
    /// Dropped where the interpreter is there.
    _access: Option<Arc<Access>>,
}

impl Ended {
    fn of(
        manager: &Arc<Guarded<Handle>>,
        tracking: &mut Tracking,
        completion: hamlyn::Completion,
    ) -> Result<Self, Failure> {
        let is_returned = matches!(completion.result, Err(CompletionError::Returned(_)));
        let tracked = match is_returned {
            true => None,
            false => tracking.tracked.remove(&completion.context),
        };
        let (context, operation) = match tracked {
            Some(tracked) => (tracked.context, tracked.operation),
            None => (completion.context, None),
        };
        let result = completion.result.map_err(Failure::from);
        let word = *result.as_ref().unwrap_or(&0);
        let (value, access) = match operation {
            Some((access, begun)) => {
                let value = of_same(manager, &access.initiator).and_then(|initiator| {
                    let mut landing = access
                        .landing
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    begun.ended(initiator, &mut landing, result, None)
                });
                (value, Some(access))
            }
            None => (result.map(|_| Value::Nothing), None),
        };
        Ok(Self {
            context,
            word,
            value,
            is_returned,
            _access: access,
        })
    }

    fn into_object(self, py: Python<'_>) -> PyResult<Completion> {
        let (value, error) = match self.value {
            Ok(value) => (value.into_object(py)?, None),
            Err(failure) => (
                py.None(),
                Some(PyErr::from(failure).into_value(py).into_any()),
            ),
        };
        Ok(Completion {
            context: self.context,
            word: self.word,
            value,
            error,
            is_returned: self.is_returned,
        })
    }
}

/// The end of something that a queue tracked, or a packet that came back.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Completion {
    context: u64,
    word: u64,
    value: Py<PyAny>,
    error: Option<Py<PyAny>>,
    is_returned: bool,
}

#[pymethods]
impl Completion {
    /// The number that it was tracked with; of a packet that came back that of its link, `Interface.set_link_context`.
    #[getter]
    fn context(&self) -> u64 {
        self.context
    }

    /// Of an operation on a word: what it was before the change, or what was read. Otherwise 0.
    #[getter]
    fn word(&self) -> u64 {
        self.word
    }

    /// Of an operation: what its `finish` would have returned. Otherwise, and if it failed, None.
    #[getter]
    fn value(&self, py: Python<'_>) -> Py<PyAny> {
        self.value.clone_ref(py)
    }

    /// The exception that the call which waits would have raised; None if all is well.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py))
    }

    /// A packet came back, as `error` says; see `CompletionQueue.track_refusals`.
    #[getter]
    fn is_returned(&self) -> bool {
        self.is_returned
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match &self.error {
            None => format!("<hamlyn.Completion {}, word {}>", self.context, self.word),
            Some(error) => format!("<hamlyn.Completion {}: {}>", self.context, error.bind(py)),
        }
    }
}

/// The ends of sends, fences and operations, in any order, each with a number of the program's own. Each takes a place until its completion
/// is fetched, so none is lost. Of a queue that is closed or deleted, all that it tracks goes on.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct CompletionQueue {
    owner: Py<Manager>,
    manager: Arc<Guarded<Handle>>,
    tracking: Guarded<Tracking>,
}

impl CompletionQueue {
    pub(crate) fn open(
        owner: Py<Manager>,
        manager: &Arc<Guarded<Handle>>,
        places: usize,
    ) -> PyResult<Self> {
        let entered = manager.enter()?;
        let queue = entered.session().open_completions(places);
        let tracking = Tracking {
            queue: queue.map_err(Failure::from)?,
            tracked: HashMap::new(),
            next: 0,
        };
        Ok(Self {
            owner,
            manager: Arc::clone(manager),
            tracking: Guarded::new(manager.gate(), "completion queue", tracking),
        })
    }

    /// The queue of the library, for a caller that has passed the gate.
    pub(crate) fn of_same(
        &self,
        manager: &Guarded<Handle>,
    ) -> Result<&hamlyn::CompletionQueue, Failure> {
        Ok(&of_same(manager, &self.tracking)?.queue)
    }
}

#[pymethods]
impl CompletionQueue {
    /// The manager.
    #[getter]
    fn manager(&self, py: Python<'_>) -> Py<Manager> {
        self.owner.clone_ref(py)
    }

    /// Completions that may be tracked or wait to be fetched.
    #[getter]
    fn places(&self) -> PyResult<usize> {
        Ok(self.tracking.enter()?.queue.places())
    }

    /// Completes when a message is handed to its link whole: what it was gathered from is free. PeerGone is its `error` if the link is lost
    /// before. Invalid is raised if all places are taken: the message goes all the same.
    fn track_send(
        &self,
        handle: &SendHandle,
        #[pyo3(from_py_with = number::context)] context: u64,
    ) -> PyResult<()> {
        let handle = sending::known(&self.manager, handle)?;
        let manager = self.manager.enter()?;
        let tracking = of_same(&self.manager, &self.tracking)?;
        tracking.track(context, |queue, number| {
            manager.session().track_send(queue, handle, number)
        })?;
        Ok(())
    }

    /// Completes when everything that was sent over the link to a target or a peer before is in its place there; otherwise with the error
    /// of `Interface.fence_link`. One fence answers for all messages before it.
    fn track_fence(
        &self,
        to: Linked<'_>,
        #[pyo3(from_py_with = number::context)] context: u64,
    ) -> PyResult<()> {
        let manager = self.manager.enter()?;
        let tracking = of_same(&self.manager, &self.tracking)?;
        let link = link_of(&manager, &to)?;
        tracking.track(context, |queue, number| {
            manager.session().track_fence(queue, link, number)
        })?;
        Ok(())
    }

    /// Gives an operation to the queue: its completion has the result, and `finish` raises Released.
    fn track_operation(
        &self,
        operation: &Operation,
        #[pyo3(from_py_with = number::context)] context: u64,
    ) -> PyResult<()> {
        operation.with_begun(|interface, initiator, _, state| {
            let State::Begun(begun) = state else {
                return Err(TOLD);
            };
            // The gate that was passed is the operation's.
            let tracking = of_same(&operation.access().manager, &self.tracking)?;
            let tracked = tracking.track(context, |queue, number| {
                begun.track(interface, initiator, queue, number)
            })?;
            if let State::Begun(begun) = std::mem::replace(state, State::Told) {
                tracked.operation = Some((Arc::clone(operation.access()), begun));
            }
            Ok(())
        })
    }

    /// From now on this queue tells packets that came back, whenever nothing else is complete; no other queue of the manager does any more,
    /// nor do its events. They take no places.
    fn track_refusals(&self) -> PyResult<()> {
        let manager = self.manager.enter()?;
        let tracking = of_same(&self.manager, &self.tracking)?;
        let told = manager.session().track_refusals(&tracking.queue);
        Ok(told.map_err(Failure::from)?)
    }

    /// The next completion; None if none came in time.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Completion>> {
        let came = wait_for(py, &self.manager, timeout, |manager, wait| {
            let tracking = of_same(&self.manager, &self.tracking)?;
            let next = manager.session().await_completion(&tracking.queue, wait)?;
            next.map(|completion| Ended::of(&self.manager, tracking, completion))
                .transpose()
        })?;
        came.map(|ended| ended.into_object(py)).transpose()
    }

    /// Like `next`, awaited in the running event loop of asyncio.
    fn next_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "next_completion", (slf,))
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::next_async(slf)
    }

    /// Closes it. All that it tracks goes on, and no completion is told any more.
    fn close(&self) -> PyResult<()> {
        let _manager = self.manager.enter()?;
        // SAFETY: the gate was passed, and there is no other reference.
        drop(unsafe { self.tracking.take() });
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}
