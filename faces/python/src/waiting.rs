//! Waiting, with regard for the interpreter: a call looks once, and then polls and sleeps without the interpreter's lock,
//! in slices, between which signals are seen to. Nothing is taken by a call that a signal ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hamlyn::Wait;
use hamlyn::error::SendError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::error::{Failure, Kind};
use crate::gate::{Carried, Guarded};
use crate::number::is_bool;

/// How long a call waits until it looks for signals.
pub(crate) const SLICE: Duration = Duration::from_millis(50);
/// The same for calls that must be given time to succeed at all, as those that connect.
pub(crate) const LONG_SLICE: Duration = Duration::from_secs(1);
/// More seconds than this is for ever.
const SECONDS_MAX: f64 = 1e9;

/// How long a call may take, as the program said; without one it is for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeout(Duration);

impl<'py> FromPyObject<'_, 'py> for Timeout {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let wrong = || {
            PyTypeError::new_err(format!(
                "timeout is a number of seconds, or None to wait for ever; not {}",
                type_name(&object)
            ))
        };
        if object.is_instance_of::<PyBool>() {
            return Err(wrong());
        }
        let is_number = object.is_instance_of::<PyFloat>() || object.is_instance_of::<PyInt>();
        let seconds = match is_number {
            // An int may be too large for a float.
            true => match object.extract::<f64>() {
                Ok(seconds) => seconds,
                Err(_) if object.lt(0)? => f64::NEG_INFINITY,
                Err(_) => f64::INFINITY,
            },
            false if is_bool(&object) => return Err(wrong()),
            // A number of NumPy, say.
            false => object
                .call_method0("__float__")
                .and_then(|it| it.extract())
                .map_err(|_| wrong())?,
        };
        if seconds.is_nan() || seconds < 0.0 {
            return Err(PyValueError::new_err(format!(
                "timeout is 0 seconds or more, or None to wait for ever; not {seconds}"
            )));
        }
        Ok(Self(Duration::from_secs_f64(seconds.min(SECONDS_MAX))))
    }
}

impl Timeout {
    /// As the library has it.
    pub(crate) fn wait(timeout: Option<Self>) -> Wait {
        match timeout {
            None => Wait::Forever,
            Some(Self(Duration::ZERO)) => Wait::Poll,
            Some(Self(span)) => Wait::For(span),
        }
    }

    pub(crate) const fn of(span: Duration) -> Self {
        Self(span)
    }

    /// When it is over, from now on.
    pub(crate) fn deadline(self) -> Deadline {
        Deadline::of(Some(self))
    }
}

/// As errors name the type of an object.
pub(crate) fn type_name(object: &Bound<'_, PyAny>) -> String {
    object
        .get_type()
        .name()
        .map_or_else(|_| "another type".to_owned(), |name| name.to_string())
}

/// When a wait is over.
#[derive(Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// It is never over.
    pub(crate) const NEVER: Self = Self(None);

    pub(crate) fn of(timeout: Option<Timeout>) -> Self {
        Self(timeout.and_then(|Timeout(span)| Instant::now().checked_add(span)))
    }

    /// What is left of it, as the library has it.
    pub(crate) fn wait(self) -> Wait {
        match self.0 {
            None => Wait::Forever,
            Some(at) => Wait::For(at.saturating_duration_since(Instant::now())),
        }
    }

    /// What is left of it, at most so much; nothing if it is over.
    pub(crate) fn left(self, most: Duration) -> Option<Duration> {
        let Some(at) = self.0 else {
            return Some(most);
        };
        let left = at.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left.min(most))
    }
}

/// A span of time that the program gives.
pub(crate) fn span(Timeout(span): Timeout) -> Duration {
    span
}

/// Waits until `attempt` finds something, the time is over (nothing), or a signal raises.
#[inline(always)]
pub(crate) fn wait_for<T, R>(
    py: Python<'_>,
    guarded: &Guarded<T>,
    timeout: Option<Timeout>,
    mut attempt: impl FnMut(&mut T, Wait) -> Result<Option<R>, Failure>,
) -> PyResult<Option<R>> {
    let mut entered = guarded.enter()?;
    if let Some(found) = attempt(&mut entered, Wait::Poll)? {
        return Ok(Some(found));
    }
    if let Some(Timeout(Duration::ZERO)) = timeout {
        return Ok(None);
    }
    drop(entered);
    let deadline = Deadline::of(timeout);
    wait_in_slices(py, guarded, deadline, SLICE, &mut attempt)
}

/// The same, without a look before: for what takes its time in any case. A zero timeout lasts for one look.
pub(crate) fn wait_long<T, R>(
    py: Python<'_>,
    guarded: &Guarded<T>,
    timeout: Option<Timeout>,
    slice: Duration,
    mut attempt: impl FnMut(&mut T, Wait) -> Result<Option<R>, Failure>,
) -> PyResult<Option<R>> {
    if let Some(Timeout(Duration::ZERO)) = timeout {
        return Ok(attempt(&mut *guarded.enter()?, Wait::Poll)?);
    }
    let deadline = Deadline::of(timeout);
    wait_in_slices(py, guarded, deadline, slice, &mut attempt)
}

/// Looks for something for so long.
type Attempt<'a, T, R> = dyn FnMut(&mut T, Wait) -> Result<Option<R>, Failure> + 'a;

#[inline(never)]
fn wait_in_slices<T, R>(
    py: Python<'_>,
    guarded: &Guarded<T>,
    deadline: Deadline,
    slice: Duration,
    attempt: &mut Attempt<'_, T, R>,
) -> PyResult<Option<R>> {
    loop {
        py.check_signals()?;
        let Some(left) = deadline.left(slice) else {
            return Ok(None);
        };
        // The gate is passed, and left, while the thread is attached.
        let mut entered = guarded.enter()?;
        let carried = Carried((&mut *entered, &mut *attempt));
        let found = py.detach(move || {
            let (value, attempt) = carried.into_inner();
            attempt(value, Wait::For(left)).map(Carried)
        });
        drop(entered);
        if let Some(found) = found.map(Carried::into_inner)? {
            return Ok(Some(found));
        }
    }
}

/// No room now is no failure of a call that waits.
pub(crate) fn or_wait<R>(sent: Result<R, SendError>) -> Result<Option<R>, Failure> {
    match sent {
        Ok(sent) => Ok(Some(sent)),
        Err(SendError::WouldBlock { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Neither is it that a connection was not made in so short a time. The failure is told when the time is over.
pub(crate) fn or_try_again<R, E: Into<Failure>>(
    result: Result<R, E>,
    last: &mut Option<Failure>,
) -> Result<Option<R>, Failure> {
    match result.map_err(Into::into) {
        Ok(found) => Ok(Some(found)),
        Err(failure) if matches!(failure.kind, Kind::NotFound | Kind::TimedOut) => {
            *last = Some(failure);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// As [`or_try_again`], for what is not there any more if it is not there now.
pub(crate) fn or_look_again<R, E: Into<Failure>>(
    result: Result<R, E>,
    last: &mut Option<Failure>,
) -> Result<Option<R>, Failure> {
    match result.map_err(Into::into) {
        Err(failure) if failure.kind != Kind::TimedOut => Err(failure),
        result => or_try_again(result, last),
    }
}

/// What came of a wait that must find something.
pub(crate) fn found<R>(found: Option<R>, last: Option<Failure>) -> PyResult<R> {
    match found {
        Some(found) => Ok(found),
        None => Err(last.unwrap_or(NO_ROOM).into()),
    }
}

/// There was no room in time.
pub(crate) const NO_ROOM: Failure = Failure::new(
    Kind::TimedOut,
    "the receiver made no room in time: wait longer, or see whether it still receives; nothing was sent",
);

/// Messages that were accepted before have not left in time.
pub(crate) const NOT_FLUSHED: Failure = Failure::new(
    Kind::TimedOut,
    "the receiver made no room in time for what was sent before: that is kept, and goes later, so do not send it again; wait longer, or see whether the receiver still receives",
);

/// Does it without the interpreter's lock.
pub(crate) fn detached<T, R>(
    py: Python<'_>,
    guarded: &Guarded<T>,
    act: impl FnOnce(&mut T) -> Result<R, Failure>,
) -> PyResult<R> {
    let mut entered = guarded.enter()?;
    let carried = Carried((&mut *entered, act));
    let result = py.detach(move || {
        let (value, act) = carried.into_inner();
        act(value).map(Carried)
    });
    drop(entered);
    Ok(result.map(Carried::into_inner)?)
}

/// Ends what belongs to a manager: by that call of it, and then by letting go of the object. Nothing if it was ended before; if the call
/// fails, it lasts, and can be ended again.
pub(crate) fn end_with<M, T>(
    py: Python<'_>,
    manager: &Guarded<M>,
    object: &Guarded<T>,
    end: impl FnOnce(&mut M, &mut T) -> Result<(), Failure>,
) -> PyResult<()> {
    assert!(Arc::ptr_eq(manager.gate(), object.gate()));
    detached(py, manager, |manager| {
        // SAFETY: the gate was passed, and it is that of the object; there is no other reference.
        let Some(ending) = (unsafe { object.behind() }) else {
            return Ok(());
        };
        end(manager, ending)?;
        // SAFETY: as above, and the reference is not used any more.
        let _ended = unsafe { object.take() };
        Ok(())
    })
}

/// Waits for a fence.
pub(crate) fn fence<T>(
    py: Python<'_>,
    guarded: &Guarded<T>,
    timeout: Option<Timeout>,
    mut fence: impl FnMut(&mut T, Wait) -> Result<(), Failure>,
) -> PyResult<()> {
    let mut last = None;
    let fenced = wait_for(py, guarded, timeout, |it, wait| match wait {
        // The answer takes time, and each fence asks anew.
        Wait::Poll => or_try_again(fence(it, Wait::For(FENCE_LOOK)), &mut last),
        wait => or_try_again(fence(it, wait), &mut last),
    })?;
    match fenced {
        Some(()) => Ok(()),
        None => Err(last.unwrap_or(NO_ROOM).into()),
    }
}

/// How long a fence looks before it counts as waiting.
const FENCE_LOOK: Duration = Duration::from_micros(50);
