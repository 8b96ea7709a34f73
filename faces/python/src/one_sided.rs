//! One-sided operations: a program reads, puts and changes memory of a slot whose owner grants it, and the owner's program does nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hamlyn::Wait;
use hamlyn::one_sided::{self, InitiatorOptions, Strided};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{with_bytes, with_writable};
use crate::error::{Failure, Kind};
use crate::gate::Guarded;
use crate::gate::of_same;
use crate::host::Handle;
use crate::landing::{Landing, Place};
use crate::manager::Manager;
use crate::number;
use crate::operation::{Begun, Operation, State, Value};
use crate::request::Request;
use crate::slot::Target;
use crate::waiting::{Deadline, Timeout, found, wait_for};
use crate::window::Window;
use crate::words::{self, width_of};

/// What an initiator object and its operations share.
pub(crate) struct Access {
    pub(crate) owner: Py<Manager>,
    pub(crate) manager: Arc<Guarded<Handle>>,
    pub(crate) initiator: Guarded<one_sided::Initiator>,
    pub(crate) landing: Mutex<Landing>,
    /// Operations that objects stand for, to be finished together.
    begun: Mutex<Vec<Weak<Mutex<State>>>>,
}

/// A program's access to the memory that a ticket names. Operations complete in any order; a call waits for its own.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Initiator(Arc<Access>);

pub(crate) const UNANSWERED: Failure = Failure::new(
    Kind::TimedOut,
    "the target did not answer in time: wait longer, or see whether it still takes packets; the operation may be carried out later",
);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Access {
    /// An attempt to begin an operation, for which there is time until `deadline` in all. Of a long one a part may have been asked for when
    /// the time is over, and the next attempt would ask for that again: so there is one, which takes all of the time.
    fn begin(
        &self,
        manager: &Handle,
        request: &Request<'_>,
        place: &mut Option<Place>,
        wait: Wait,
        deadline: Deadline,
    ) -> Result<Option<Begun>, Failure> {
        let has_time = || deadline.left(Duration::MAX).is_some();
        let wait = match (request.is_long(), wait) {
            (true, Wait::Poll) if has_time() => return Ok(None),
            (true, Wait::For(_)) => deadline.wait(),
            (_, wait) => wait,
        };
        let initiator = of_same(&self.manager, &self.initiator)?;
        Begun::begin(
            &mut manager.session(),
            initiator,
            &mut lock(&self.landing),
            request,
            place,
            wait,
        )
    }

    /// A call ends without having begun its operation.
    fn abandon(&self, place: Option<Place>) {
        if let Some(place) = place {
            lock(&self.landing).leave(&place, None);
        }
    }

    /// The result of an operation, if it came in time; into that memory if it is one that reads.
    fn finish(
        &self,
        manager: &Handle,
        begun: &Begun,
        mut into: Option<&mut [u8]>,
        wait: Wait,
    ) -> Result<Option<Value>, Failure> {
        let initiator = of_same(&self.manager, &self.initiator)?;
        manager.session().wait_for(wait, |interface| {
            begun.finish(
                interface,
                initiator,
                &mut lock(&self.landing),
                into.as_deref_mut(),
            )
        })
    }

    /// Nobody asks for its result any more. Behind the gate.
    pub(crate) fn leave(&self, begun: &Begun) {
        // SAFETY: callers have passed the gate, and have no other reference.
        if let Some(manager) = unsafe { self.manager.behind() }
            && let Ok(initiator) = of_same(&self.manager, &self.initiator)
        {
            begun.leave(&mut manager.session(), initiator, &mut lock(&self.landing));
        }
    }

    /// Looks whether an operation has ended, for as long as `wait` says.
    pub(crate) fn look(
        &self,
        manager: &Handle,
        state: &Mutex<State>,
        wait: Wait,
    ) -> Result<Option<()>, Failure> {
        let mut state = lock(state);
        let State::Begun(begun) = &*state else {
            return Ok(Some(()));
        };
        let finished = self.finish(manager, begun, None, wait).transpose();
        Ok(finished.map(|result| *state = State::Ended(result)))
    }

    /// Begins an operation when there is room, and finishes it.
    fn carry_out(
        self: &Arc<Self>,
        py: Python<'_>,
        request: &Request<'_>,
        mut into: Option<&mut [u8]>,
        timeout: Option<Timeout>,
    ) -> PyResult<Value> {
        let (mut begun, mut place) = (None, None);
        let deadline = Deadline::of(timeout);
        let done = wait_for(py, &self.manager, timeout, |manager, wait| {
            if begun.is_none() {
                begun = self.begin(manager, request, &mut place, wait, deadline)?;
            }
            let Some(under_way) = &begun else {
                return Ok(None);
            };
            let finished = self.finish(manager, under_way, into.as_deref_mut(), wait);
            if !matches!(finished, Ok(None)) {
                begun = None;
            }
            finished
        });
        self.abandon(place);
        if let Some(begun) = begun {
            let access = Arc::clone(self);
            self.manager.gate().run(move || access.leave(&begun));
        }
        found(done?, Some(UNANSWERED))
    }

    fn word(
        self: &Arc<Self>,
        py: Python<'_>,
        request: &Request<'_>,
        timeout: Option<Timeout>,
    ) -> PyResult<u64> {
        match self.carry_out(py, request, None, timeout)? {
            Value::Word(word) => Ok(word),
            _ => Ok(0),
        }
    }
}

impl Initiator {
    pub(crate) fn open(
        owner: Py<Manager>,
        manager: &Arc<Guarded<Handle>>,
        target: &Target,
        landing_bytes: u64,
    ) -> PyResult<Self> {
        let entered = manager.enter()?;
        let options = InitiatorOptions { landing_bytes };
        let opened = entered.session().open_initiator(target.0, options);
        Ok(Self(Arc::new(Access {
            owner,
            initiator: Guarded::new(manager.gate(), "initiator", opened.map_err(Failure::from)?),
            manager: Arc::clone(manager),
            landing: Mutex::new(Landing::new(landing_bytes)),
            begun: Mutex::default(),
        })))
    }

    /// Begins an operation when there is room.
    fn begin(
        &self,
        py: Python<'_>,
        request: &Request<'_>,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        let access = &self.0;
        let mut place = None;
        let deadline = Deadline::of(timeout);
        let begun = wait_for(py, &access.manager, timeout, |manager, wait| {
            access.begin(manager, request, &mut place, wait, deadline)
        });
        access.abandon(place);
        let state = Arc::new(Mutex::new(State::Begun(found(begun?, Some(NO_ROOM))?)));
        let mut begun = lock(&access.begun);
        if begun.len() == begun.capacity() {
            begun.retain(|state| state.strong_count() > 0);
        }
        begun.push(Arc::downgrade(&state));
        Ok(Operation::new(access, state))
    }
}

const NO_ROOM: Failure = Failure::new(
    Kind::TimedOut,
    "no room in time for one more operation: wait longer; of a long one a part may have been carried out",
);

#[pymethods]
impl Initiator {
    /// Reads so many bytes from `offset` of the ticket's place on; at most as many as its `landing_bytes`.
    #[pyo3(signature = (offset, length, timeout=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let request = Request::Read { offset, length };
        match self.0.carry_out(py, &request, None, timeout)? {
            Value::Bytes(bytes) => Ok(PyBytes::new(py, &bytes)),
            _ => Ok(PyBytes::new(py, &[])),
        }
    }

    /// Reads from `offset` on into a buffer that can be written, all of which is filled.
    #[pyo3(signature = (offset, buffer, timeout=None))]
    fn read_into(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        buffer: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_writable(buffer, "the buffer", |into| {
            let length = into.len() as u64;
            let request = Request::Read { offset, length };
            self.0
                .carry_out(py, &request, Some(into), timeout)
                .map(drop)
        })
    }

    /// Puts bytes to `offset`, and waits until they are there.
    #[pyo3(signature = (offset, data, timeout=None))]
    fn put(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "what is put", |bytes| {
            let request = Request::Put { offset, bytes };
            self.0.carry_out(py, &request, None, timeout).map(drop)
        })
    }

    /// Reads the eight bytes at `offset` as a number.
    #[pyo3(signature = (offset, timeout=None))]
    fn read_word(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<u64> {
        self.0.word(py, &Request::ReadWord { offset }, timeout)
    }

    /// Changes the word at `offset`, and returns what it was: "add" (it wraps), "and", "or", "xor", "swap", "min" or "max" (of numbers with
    /// sign). The word has `bits`, 64 or 32, and lies at a multiple of that in its owner's area: others are refused.
    #[pyo3(signature = (offset, change, operand, timeout=None, *, bits=64))]
    fn change(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        change: &str,
        operand: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
        #[pyo3(from_py_with = number::bits)] bits: u32,
    ) -> PyResult<u64> {
        let atomic = words::change(change, operand, width_of(bits)?)?;
        self.0
            .word(py, &Request::Atomic { offset, atomic }, timeout)
    }

    /// Adds to the float of 64 or 32 `bits` at `offset`, and returns what it was. OverflowError if the operand is too large for 32 bits.
    #[pyo3(signature = (offset, operand, timeout=None, *, bits=64))]
    fn float_add(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::operand)] operand: f64,
        timeout: Option<Timeout>,
        #[pyo3(from_py_with = number::bits)] bits: u32,
    ) -> PyResult<f64> {
        let atomic = words::float_add(operand, width_of(bits)?)?;
        match self
            .0
            .carry_out(py, &Request::Atomic { offset, atomic }, None, timeout)?
        {
            Value::Float(value) => Ok(value),
            _ => Ok(0.0),
        }
    }

    /// Stores a number in the word of 64 or 32 `bits` at `offset` if it is what is expected, and returns what it was.
    #[pyo3(signature = (offset, expected, new, timeout=None, *, bits=64))]
    fn compare_swap(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
        #[pyo3(from_py_with = number::bits)] bits: u32,
    ) -> PyResult<u64> {
        let atomic = words::compare_swap(expected, ("new", new), width_of(bits)?)?;
        self.0
            .word(py, &Request::Atomic { offset, atomic }, timeout)
    }

    /// Begins to read so many bytes from `offset` on, and waits at most until there is room for the request. Reads that are outstanding have
    /// together at most as many bytes as the initiator's `landing_bytes`. What was read is what `Operation.finish` returns.
    #[pyo3(signature = (offset, length, timeout=None))]
    fn begin_read(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        self.begin(py, &Request::Read { offset, length }, timeout)
    }

    /// Begins to put bytes to `offset`: they were copied when this returns, and are in their place when the operation is done.
    #[pyo3(signature = (offset, data, timeout=None))]
    fn begin_put(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        with_bytes(data, "what is put", |bytes| {
            self.begin(py, &Request::Put { offset, bytes }, timeout)
        })
    }

    /// Begins to read the eight bytes at `offset` as a number.
    #[pyo3(signature = (offset, timeout=None))]
    fn begin_read_word(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        self.begin(py, &Request::ReadWord { offset }, timeout)
    }

    /// Begins to change the word of 64 or 32 `bits` at `offset`, as `change` does, or by "compare_swap", which needs `expected`, or
    /// "float_add". What it was is what `Operation.finish` returns.
    #[pyo3(signature = (offset, change, operand, *, expected=None, bits=64, timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn begin_atomic(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        change: &str,
        operand: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = number::bits)] bits: u32,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        let atomic = words::atomic_of(change, operand, expected, width_of(bits)?)?;
        self.begin(py, &Request::Atomic { offset, atomic }, timeout)
    }

    /// Begins to read `pieces` of `piece_bytes`, of which the first begins at `offset`, and each so far behind the one before. What was read is
    /// one behind the other. With a `timeout` of 0 no more than 64 packets can be asked for.
    #[pyo3(signature = (offset, *, stride_bytes, piece_bytes, pieces, timeout=None))]
    fn begin_read_strided(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::stride_bytes)] stride_bytes: u64,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: u64,
        #[pyo3(from_py_with = number::pieces)] pieces: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        let strided = Strided {
            offset,
            stride_bytes,
            piece_bytes,
            pieces,
        };
        self.begin(py, &Request::ReadStrided(strided), timeout)
    }

    /// Begins to put bytes to `pieces` of `piece_bytes` at equal distances, as many as all of them have.
    #[pyo3(signature = (offset, data, *, stride_bytes, piece_bytes, pieces, timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn begin_put_strided(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::stride_bytes)] stride_bytes: u64,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: u64,
        #[pyo3(from_py_with = number::pieces)] pieces: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        let strided = Strided {
            offset,
            stride_bytes,
            piece_bytes,
            pieces,
        };
        with_bytes(data, "what is put", |bytes| {
            self.begin(py, &Request::PutStrided(strided, bytes), timeout)
        })
    }

    /// Begins to read pieces of `piece_bytes` at these offsets. What was read is one behind the other.
    #[pyo3(signature = (offsets, *, piece_bytes, timeout=None))]
    fn begin_read_indexed(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offsets)] offsets: Vec<u64>,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        self.begin(py, &Request::ReadIndexed(&offsets, piece_bytes), timeout)
    }

    /// Begins to put bytes, in pieces of `piece_bytes`, to these offsets; where pieces overlap, either is there.
    #[pyo3(signature = (offsets, data, *, piece_bytes, timeout=None))]
    fn begin_put_indexed(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::offsets)] offsets: Vec<u64>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::piece_bytes)] piece_bytes: u64,
        timeout: Option<Timeout>,
    ) -> PyResult<Operation> {
        with_bytes(data, "what is put", |bytes| {
            let request = Request::PutIndexed(&offsets, piece_bytes, bytes);
            self.begin(py, &request, timeout)
        })
    }

    /// Waits until all operations that were begun are done; each tells by its own `finish` how it went, without waiting. TimedOut if they
    /// were not in time.
    #[pyo3(signature = (timeout=None))]
    fn finish_all(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        let access = &self.0;
        let begun: Vec<_> = lock(&access.begun)
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        let mut left = begun.iter();
        let mut next = left.next();
        let done = wait_for(py, &access.manager, timeout, |manager, wait| {
            while let Some(state) = next {
                if access.look(manager, state, wait)?.is_none() {
                    return Ok(None);
                }
                next = left.next();
            }
            Ok(Some(()))
        })?;
        found(done, Some(UNANSWERED))
    }

    /// A window on the place of the ticket, in memory that was imported before this was opened: NotFound otherwise. Any thread may use it.
    /// `trust_peers`: it has the buffer protocol, see Window.
    #[pyo3(signature = (*, trust_peers=false))]
    fn window(&self, trust_peers: bool) -> PyResult<Window> {
        let Access {
            manager, initiator, ..
        } = &*self.0;
        let _passed = manager.enter()?;
        let window = of_same(manager, initiator)?.window().cloned();
        let window = window.ok_or(Failure::new(
            Kind::NotFound,
            "the ticket's place is not imported here, or that has ended: import it, and open another initiator",
        ))?;
        Ok(Window::new(manager.gate(), window, trust_peers))
    }

    /// Operations that are outstanding: those that were begun and not finished.
    #[getter]
    fn outstanding(&self) -> PyResult<usize> {
        let Access {
            manager, initiator, ..
        } = &*self.0;
        let entered = manager.enter()?;
        let initiator = of_same(manager, initiator)?;
        Ok(entered.session().outstanding(initiator))
    }
}
