//! One-sided operations that are begun, and finished by themselves.

use std::sync::{Arc, Mutex, PoisonError};

use hamlyn::one_sided::{self, CompletionCounter as Counter, Operation as Token, OperationError};
use hamlyn::{Session, TrackError, Wait};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat};

use crate::aio;
use crate::error::{Failure, Kind};
use crate::gate::of_same;
use crate::host::Host;
use crate::landing::{Landing, Place};
use crate::one_sided::{Access, UNANSWERED};
use crate::request::{Outcome, Request};
use crate::waiting::{Timeout, found, wait_for};
use crate::words::float_from;

/// What an operation came to.
pub(crate) enum Value {
    Nothing,
    Word(u64),
    Float(f64),
    Bytes(Vec<u8>),
}

impl Value {
    /// As programs see it.
    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Self::Nothing => py.None(),
            Self::Word(word) => word.into_pyobject(py)?.into_any().unbind(),
            Self::Float(value) => PyFloat::new(py, value).into_any().unbind(),
            Self::Bytes(bytes) => PyBytes::new(py, &bytes).into_any().unbind(),
        })
    }
}

/// How an operation object stands.
pub(crate) enum State {
    Begun(Begun),
    /// Its result was not fetched by the program.
    Ended(Result<Value, Failure>),
    /// Its result was fetched, or it was given to a counter or a completion queue.
    Told,
}

/// An operation that is outstanding.
pub(crate) struct Begun {
    token: Token,
    outcome: Outcome,
    /// Where it lands.
    place: Option<Place>,
}

impl Begun {
    /// Begins an operation, if there is room. Where it is to land stays in `place` if there is none: a part of it may have been asked for
    /// all the same, and lands there.
    pub(crate) fn begin(
        interface: &mut Session<'_, Host>,
        initiator: &mut one_sided::Initiator,
        landing: &mut Landing,
        request: &Request<'_>,
        place: &mut Option<Place>,
        wait: Wait,
    ) -> Result<Option<Self>, Failure> {
        let outcome = request.outcome();
        if let (Outcome::Landed(length), None) = (&outcome, &place) {
            *place = landing.take(interface, initiator, *length)?;
            if place.is_none() {
                return Ok(None);
            }
        }
        let at = place.as_ref().map_or(0, |place| place.start);
        match request.begin(interface, initiator, at, wait) {
            Ok(token) => Ok(Some(Self {
                token,
                outcome,
                place: place.take(),
            })),
            Err(OperationError::WouldBlock | OperationError::TimedOut) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What it came to, if it is done.
    pub(crate) fn finish(
        &self,
        interface: &mut Session<'_, Host>,
        initiator: &mut one_sided::Initiator,
        landing: &mut Landing,
        into: Option<&mut [u8]>,
    ) -> Result<Option<Value>, Failure> {
        let word = match interface.finish_word(initiator, self.token, Wait::Poll) {
            Err(OperationError::TimedOut) => return Ok(None),
            word => word,
        };
        let word = word.map_err(Failure::from);
        self.ended(initiator, landing, word, into).map(Some)
    }

    /// The result, when it has ended so: its place is free.
    pub(crate) fn ended(
        &self,
        initiator: &one_sided::Initiator,
        landing: &mut Landing,
        word: Result<u64, Failure>,
        into: Option<&mut [u8]>,
    ) -> Result<Value, Failure> {
        if let Some(place) = &self.place {
            landing.give_back(place);
        }
        let word = word?;
        Ok(match (&self.outcome, &self.place) {
            (Outcome::Word, _) => Value::Word(word),
            (Outcome::Float(width), _) => Value::Float(float_from(word, *width)),
            (Outcome::Landed(length), Some(place)) => match into {
                Some(into) => {
                    initiator.landed(place.start, into)?;
                    Value::Nothing
                }
                None => {
                    let mut bytes = vec![0; *length as usize];
                    initiator.landed(place.start, &mut bytes)?;
                    Value::Bytes(bytes)
                }
            },
            _ => Value::Nothing,
        })
    }

    /// Gives it to a completion queue, under that number.
    pub(crate) fn track(
        &self,
        interface: &mut Session<'_, Host>,
        initiator: &mut one_sided::Initiator,
        queue: &hamlyn::CompletionQueue,
        number: u64,
    ) -> Result<(), TrackError> {
        match self.outcome {
            Outcome::Word | Outcome::Float(_) => {
                interface.track_word(queue, initiator, self.token, number)
            }
            Outcome::Nothing | Outcome::Landed(_) => {
                interface.track_operation(queue, initiator, self.token, number)
            }
        }
    }

    /// Nobody asks for its result any more, and its end is told to nobody.
    pub(crate) fn leave_place(&self, landing: &mut Landing) {
        if let Some(place) = &self.place {
            landing.leave(place, None);
        }
    }

    /// Nobody asks for its result any more: its place is free when it ends.
    pub(crate) fn leave(
        &self,
        interface: &mut Session<'_, Host>,
        initiator: &mut one_sided::Initiator,
        landing: &mut Landing,
    ) {
        let counter = Counter::default();
        if let Some(place) = &self.place {
            landing.leave(place, Some(&counter));
        }
        // If it is not outstanding, it lands no more.
        let _ = interface.count_completion(initiator, self.token, &counter);
    }

    fn count(
        &self,
        interface: &mut Session<'_, Host>,
        initiator: &mut one_sided::Initiator,
        landing: &mut Landing,
        counter: &Counter,
    ) -> Result<(), OperationError> {
        interface.count_completion(initiator, self.token, counter)?;
        if let Some(place) = &self.place {
            landing.leave(place, None);
        }
        Ok(())
    }
}

/// A one-sided operation that was begun. `finish` waits for it, and so does `await`. One that is deleted before is carried out all the same.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Operation {
    access: Arc<Access>,
    state: Arc<Mutex<State>>,
}

impl Operation {
    pub(crate) fn new(access: &Arc<Access>, state: Arc<Mutex<State>>) -> Self {
        Self {
            access: Arc::clone(access),
            state,
        }
    }

    pub(crate) fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Gives it to something that tells of its end. Behind the gate.
    pub(crate) fn with_begun<R>(
        &self,
        act: impl FnOnce(
            &mut Session<'_, Host>,
            &mut one_sided::Initiator,
            &mut Landing,
            &mut State,
        ) -> Result<R, Failure>,
    ) -> PyResult<R> {
        let access = &self.access;
        let manager = access.manager.enter()?;
        let initiator = of_same(&access.manager, &access.initiator)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut landing = access
            .landing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut interface = manager.session();
        Ok(act(&mut interface, initiator, &mut landing, &mut state)?)
    }
}

pub(crate) const TOLD: Failure = Failure::new(
    Kind::Released,
    "this operation has told its result, or was given to a counter or a completion queue: keep what `finish` returns",
);

#[pymethods]
impl Operation {
    /// Waits until it is done: bytes of one that reads, a number of one that reads or changes a word, None of one that puts. TimedOut if it
    /// was not in time: it is still outstanding. Refused if the target did not allow it. To be called once; Released after that.
    #[pyo3(signature = (timeout=None))]
    fn finish(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Py<PyAny>> {
        let access = &self.access;
        let ended = wait_for(py, &access.manager, timeout, |manager, wait| {
            access.look(manager, &self.state, wait)
        })?;
        found(ended, Some(UNANSWERED))?;
        let ended = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, State::Told)
        };
        match ended {
            State::Ended(result) => result?.into_object(py),
            State::Begun(_) | State::Told => Err(TOLD.into()),
        }
    }

    /// Whether `finish` does not wait any more. Takes in what has come.
    #[getter]
    fn is_done(&self) -> PyResult<bool> {
        let manager = self.access.manager.enter()?;
        let looked = self.access.look(&manager, &self.state, Wait::Poll)?;
        Ok(looked.is_some())
    }

    /// Gives it to a counter, which counts it when it ends. Its result cannot be asked for then.
    fn count(&self, counter: &CompletionCounter) -> PyResult<()> {
        self.with_begun(|interface, initiator, landing, state| {
            let State::Begun(begun) = state else {
                return Err(TOLD);
            };
            begun.count(interface, initiator, landing, &counter.0)?;
            *state = State::Told;
            Ok(())
        })
    }

    fn __await__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let owner = slf.get().access.owner.clone_ref(slf.py());
        aio::coroutine(slf.py(), "finish", (owner, &slf))?.call_method0("__await__")
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let (access, state) = (Arc::clone(&self.access), Arc::clone(&self.state));
        let gate = Arc::clone(access.manager.gate());
        gate.run(move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if let State::Begun(begun) = std::mem::replace(&mut *state, State::Told) {
                access.leave(&begun);
            }
        });
    }
}

/// Counts ends of operations that were given to it, of any initiators, `Operation.count`. Any thread may read it. It only grows.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct CompletionCounter(pub(crate) Counter);

#[pymethods]
impl CompletionCounter {
    /// A counter that stands at 0.
    #[new]
    fn new() -> Self {
        Self(Counter::new())
    }

    /// How many operations were carried out.
    #[getter]
    fn completed(&self) -> u64 {
        self.0.completed()
    }

    /// How many were refused, or are lost with their target.
    #[getter]
    fn failed(&self) -> u64 {
        self.0.failed()
    }

    /// How many came to an end, well or not.
    #[getter]
    fn ended(&self) -> u64 {
        self.0.ended()
    }

    fn __repr__(&self) -> String {
        let (completed, failed) = (self.0.completed(), self.0.failed());
        format!("<hamlyn.CompletionCounter: {completed} completed, {failed} failed>")
    }
}
