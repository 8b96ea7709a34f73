//! One-sided operations: a program reads, puts and changes memory of a slot whose owner grants it, and the owner's program does nothing.

use std::sync::{Arc, Mutex, PoisonError};

use hamlyn::one_sided::{
    self, Atomic, Change, CompletionCounter, InitiatorOptions, Operation, OperationError, Width,
};
use hamlyn::{InterfaceGuard, Wait};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{with_bytes, with_writable};
use crate::error::{Failure, Kind};
use crate::gate::Guarded;
use crate::interface::of_same;
use crate::slot::Target;
use crate::waiting::{Timeout, found, wait_for};
use crate::window::Window;
use crate::{Handle, Host};

/// A program's access to the memory that a ticket names. Operations complete in any order; a call waits for its own.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Initiator {
    manager: Arc<Guarded<Handle>>,
    initiator: Guarded<one_sided::Initiator>,
    /// Reads whose time was over: they land where the next one would.
    late_reads: Mutex<Vec<Operation>>,
}

const UNANSWERED: Failure = Failure::new(
    Kind::TimedOut,
    "the target did not answer in time: wait longer, or see whether it still takes packets; the operation may be carried out later",
);

impl Initiator {
    pub(crate) fn open(
        manager: &Arc<Guarded<Handle>>,
        target: &Target,
        landing_bytes: u64,
    ) -> PyResult<Self> {
        let entered = manager.enter()?;
        let options = InitiatorOptions { landing_bytes };
        let opened = entered.interface().open_initiator(target.0, options);
        Ok(Self {
            initiator: Guarded::new(manager.gate(), "initiator", opened.map_err(Failure::from)?),
            manager: Arc::clone(manager),
            late_reads: Mutex::default(),
        })
    }

    /// Begins an operation when there is room, and finishes it. What is under way when the time is over is left to `leave`.
    fn carry_out<R>(
        &self,
        py: Python<'_>,
        timeout: Option<Timeout>,
        mut begin: impl FnMut(&mut Asking<'_>, Wait) -> Result<Operation, OperationError>,
        mut finish: impl FnMut(&mut Asking<'_>, Operation, Wait) -> Result<R, OperationError>,
        leave: impl FnOnce(&mut Asking<'_>, Operation),
    ) -> PyResult<R> {
        let mut begun: Option<Operation> = None;
        let done = wait_for(py, &self.manager, timeout, |manager, wait| {
            let mut asking = Asking {
                initiator: of_same(&self.manager, &self.initiator)?,
                interface: manager.interface(),
            };
            let operation = match begun {
                Some(operation) => operation,
                None => match begin(&mut asking, wait) {
                    Ok(operation) => operation,
                    Err(OperationError::WouldBlock | OperationError::TimedOut) => return Ok(None),
                    Err(error) => return Err(error.into()),
                },
            };
            begun = Some(operation);
            match finish(&mut asking, operation, wait) {
                Err(OperationError::TimedOut) => Ok(None),
                result => {
                    begun = None;
                    Ok(Some(result?))
                }
            }
        });
        if let Some(operation) = begun
            && let Ok(manager) = self.manager.enter()
            && let Ok(initiator) = of_same(&self.manager, &self.initiator)
        {
            let interface = manager.interface();
            leave(
                &mut Asking {
                    initiator,
                    interface,
                },
                operation,
            );
        }
        found(done?, Some(UNANSWERED))
    }

    /// Reads into the landing memory, and shows it.
    fn land<R>(
        &self,
        py: Python<'_>,
        offset: u64,
        length: u64,
        timeout: Option<Timeout>,
        mut show: impl FnMut(&one_sided::Initiator) -> Result<R, OperationError>,
    ) -> PyResult<R> {
        self.carry_out(
            py,
            timeout,
            |asking, wait| {
                let mut late = self
                    .late_reads
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                while let Some(&operation) = late.last() {
                    match asking.interface.finish(asking.initiator, operation, wait) {
                        Err(OperationError::TimedOut) => return Err(OperationError::TimedOut),
                        _ => late.pop(),
                    };
                }
                asking
                    .interface
                    .begin_read(asking.initiator, offset, 0, length, wait)
            },
            |asking, operation, wait| {
                asking.interface.finish(asking.initiator, operation, wait)?;
                show(asking.initiator)
            },
            |_, operation| {
                let mut late = self
                    .late_reads
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                late.push(operation);
            },
        )
    }

    fn change_word(
        &self,
        py: Python<'_>,
        offset: u64,
        atomic: Atomic,
        timeout: Option<Timeout>,
    ) -> PyResult<u64> {
        self.carry_out(
            py,
            timeout,
            |asking, wait| {
                asking
                    .interface
                    .begin_atomic(asking.initiator, offset, atomic, wait)
            },
            |asking, operation, wait| {
                asking
                    .interface
                    .finish_word(asking.initiator, operation, wait)
            },
            |asking, operation| asking.forget(operation),
        )
    }
}

/// An initiator and its interface, behind the gate.
struct Asking<'a> {
    initiator: &'a mut one_sided::Initiator,
    interface: InterfaceGuard<'a, Host>,
}

impl Asking<'_> {
    /// Nobody asks for the result of an operation any more: its place is free when it ends.
    fn forget(&mut self, operation: Operation) {
        let counter = CompletionCounter::default();
        let counted = self
            .interface
            .count_completion(self.initiator, operation, &counter);
        debug_assert!(counted.is_ok(), "the operation is under way");
    }
}

/// A word of 64 bits, with or without a sign.
pub(crate) fn word_of(operand: &Bound<'_, PyAny>) -> PyResult<u64> {
    match operand.extract::<i64>() {
        Ok(signed) => Ok(signed as u64),
        Err(_) => operand.extract::<u64>().map_err(|_| {
            PyTypeError::new_err(format!(
                "the operand is an int of 64 bits, with or without a sign; not {operand}"
            ))
        }),
    }
}

/// A change of a word, as a program says it.
pub(crate) fn change_of(change: &str) -> PyResult<Change> {
    match change {
        "add" => Ok(Change::Add),
        "and" => Ok(Change::And),
        "or" => Ok(Change::Or),
        "xor" => Ok(Change::Xor),
        "swap" => Ok(Change::Swap),
        "min" => Ok(Change::Min),
        "max" => Ok(Change::Max),
        _ => Err(PyValueError::new_err(format!(
            "change is \"add\", \"and\", \"or\", \"xor\", \"swap\", \"min\" or \"max\"; not {change:?}"
        ))),
    }
}

#[pymethods]
impl Initiator {
    /// Reads so many bytes from `offset` of the ticket's place on; at most as many as its `landing_bytes`.
    #[pyo3(signature = (offset, length, timeout=None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        offset: u64,
        length: usize,
        timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.land(py, offset, length as u64, timeout, |initiator| {
            let mut bytes = vec![0; length];
            initiator.landed(0, &mut bytes)?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads from `offset` on into a buffer that can be written, all of which is filled.
    #[pyo3(signature = (offset, buffer, timeout=None))]
    fn read_into(
        &self,
        py: Python<'_>,
        offset: u64,
        buffer: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_writable(buffer, "the buffer", |into| {
            let length = into.len() as u64;
            self.land(py, offset, length, timeout, |initiator| {
                initiator.landed(0, into)
            })
        })
    }

    /// Puts bytes to `offset`, and waits until they are there.
    #[pyo3(signature = (offset, data, timeout=None))]
    fn put(
        &self,
        py: Python<'_>,
        offset: u64,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<()> {
        with_bytes(data, "what is put", |bytes| {
            self.carry_out(
                py,
                timeout,
                |asking, wait| {
                    asking
                        .interface
                        .begin_put(asking.initiator, offset, bytes, wait)
                },
                |asking, operation, wait| {
                    asking.interface.finish(asking.initiator, operation, wait)
                },
                |asking, operation| asking.forget(operation),
            )
        })
    }

    /// Reads the eight bytes at `offset` as a number.
    #[pyo3(signature = (offset, timeout=None))]
    fn read_word(&self, py: Python<'_>, offset: u64, timeout: Option<Timeout>) -> PyResult<u64> {
        self.carry_out(
            py,
            timeout,
            |asking, wait| {
                asking
                    .interface
                    .begin_read_word(asking.initiator, offset, wait)
            },
            |asking, operation, wait| {
                asking
                    .interface
                    .finish_word(asking.initiator, operation, wait)
            },
            |asking, operation| asking.forget(operation),
        )
    }

    /// Changes the eight bytes at `offset`, and returns what they were: "add" (it wraps), "and", "or", "xor", "swap", "min" or "max" (of
    /// numbers with sign).
    #[pyo3(signature = (offset, change, operand, timeout=None))]
    fn change(
        &self,
        py: Python<'_>,
        offset: u64,
        change: &str,
        operand: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<u64> {
        let change = change_of(change)?;
        let atomic = Atomic::new(change, Width::Bits64, word_of(operand)?);
        self.change_word(py, offset, atomic, timeout)
    }

    /// Adds to the floating-point number at `offset`, and returns what it was.
    #[pyo3(signature = (offset, operand, timeout=None))]
    fn float_add(
        &self,
        py: Python<'_>,
        offset: u64,
        operand: f64,
        timeout: Option<Timeout>,
    ) -> PyResult<f64> {
        let atomic = Atomic::new(Change::FloatAdd, Width::Bits64, operand.to_bits());
        self.change_word(py, offset, atomic, timeout)
            .map(f64::from_bits)
    }

    /// Stores a number in the eight bytes at `offset` if they are what is expected, and returns what they were.
    #[pyo3(signature = (offset, expected, new, timeout=None))]
    fn compare_swap(
        &self,
        py: Python<'_>,
        offset: u64,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<u64> {
        let atomic = Atomic {
            expected: word_of(expected)?,
            ..Atomic::new(Change::CompareSwap, Width::Bits64, word_of(new)?)
        };
        self.change_word(py, offset, atomic, timeout)
    }

    /// A window on the place of the ticket, in memory that was imported before this was opened: NotFound otherwise. Any thread may use it.
    /// `trust_peers`: it has the buffer protocol, see Window.
    #[pyo3(signature = (*, trust_peers=false))]
    fn window(&self, trust_peers: bool) -> PyResult<Window> {
        let _passed = self.manager.enter()?;
        let window = of_same(&self.manager, &self.initiator)?.window().cloned();
        let window = window.ok_or(Failure::new(
            Kind::NotFound,
            "the ticket's place is not imported here, or that has ended: import it, and open another initiator",
        ))?;
        Ok(Window::new(self.manager.gate(), window, trust_peers))
    }

    /// Operations that are outstanding: those that were not answered in time.
    #[getter]
    fn outstanding(&self) -> PyResult<usize> {
        let manager = self.manager.enter()?;
        let initiator = of_same(&self.manager, &self.initiator)?;
        Ok(manager.interface().outstanding(initiator))
    }
}
