//! Loaned messages: a publisher writes them in place, and its readers read them there.

use std::any::Any;
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use hamlyn::loans::{
    self, Kept, Loan as Lending, LoanError, PublisherOptions, Sample as LendingSample, SlowReaders,
};
use hamlyn::{ReceiveError, Wait};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::aio;
use crate::borrowing::Borrowing;
use crate::bytes::{check, with_bytes};
use crate::endpoint::EndPoint;
use crate::error::{Failure, Kind};
use crate::host::Host;
use crate::lending::{End, Lent, released};
use crate::manager::Manager;
use crate::message::{Message, fill};
use crate::number;
use crate::waiting::{NOT_FLUSHED, Timeout, detached, found, wait_for};

/// What a publisher is opened with.
pub(crate) fn publisher_options(
    message_bytes: u32,
    chunks: u32,
    depth: u16,
    readers: u16,
    slow_readers: &str,
) -> PyResult<PublisherOptions> {
    let slow_readers = match slow_readers {
        "block" => SlowReaders::Block,
        "lose" => SlowReaders::Lose,
        "latest" => SlowReaders::Latest,
        _ => {
            return Err(PyValueError::new_err(format!(
                "slow_readers is \"block\", \"lose\" or \"latest\"; not {slow_readers:?}"
            )));
        }
    };
    Ok(PublisherOptions {
        message_bytes,
        chunks,
        depth,
        readers,
        slow_readers,
    })
}

impl Lent<loans::Publisher<Host>> for Lending<'static, Host> {
    const NAME: &'static str = "loan";
}

type Publishing = End<loans::Publisher<Host>, Lending<'static, Host>>;

/// A message to be written in place, by the buffer protocol: `memoryview(loan)[:] = ...`, `numpy.frombuffer(loan)`. It is published by
/// `publish`, when no view of it is alive, or given back when it is deleted. A `with` publishes at its end, unless there was an exception.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Loan {
    borrowing: Borrowing,
    end: Arc<Publishing>,
}

/// What became of a message: its number, how many readers have it, and how many had no room.
#[pyclass(frozen, get_all, module = "hamlyn")]
pub(crate) struct Published {
    /// Its number: they count all that was published.
    number: u64,
    /// Readers to which it went.
    readers: usize,
    /// Readers that had no room.
    lost: usize,
}

#[pymethods]
impl Published {
    fn __repr__(&self) -> String {
        format!(
            "<hamlyn.Published: number {}, to {} readers, {} had no room>",
            self.number, self.readers, self.lost
        )
    }
}

/// A copy for a reader elsewhere that is not handed over in this time is sent by later calls.
const COPY_WAIT: Duration = Duration::from_millis(50);

#[pymethods]
impl Loan {
    fn __len__(&self) -> usize {
        self.borrowing.len()
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let borrowing = &slf.get().borrowing;
        let data = borrowing.begin_view()?;
        // SAFETY: a view is counted, so that the bytes stay until `end_view`. They are the program's to write: the loan is only
        // dropped or published without views.
        let filled = unsafe { fill(view, slf.as_any(), data, borrowing.len(), false, flags) };
        if filled.is_err() {
            borrowing.end_view();
        }
        filled
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.borrowing.end_view();
    }

    /// Announces the message to all readers. BufferError if a view of it is alive. Does not block, but for readers on other hosts, for
    /// whom it is copied.
    fn publish(&self, py: Python<'_>) -> PyResult<Published> {
        let state = self.borrowing.state();
        let published = detached(py, &self.end.held, |held| {
            let loan = held.use_up(state)?;
            Ok(loan.publish(Wait::For(COPY_WAIT))?)
        })?;
        Ok(Published {
            number: published.number,
            readers: published.readers,
            lost: published.lost,
        })
    }

    /// Gives it back: it is not published. BufferError if a view of it is alive.
    fn release(&self) -> PyResult<()> {
        Ok(self.borrowing.release()?)
    }

    /// Whether it was published or given back.
    #[getter]
    fn released(&self) -> bool {
        self.borrowing.is_released()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if self.borrowing.is_released() {
            return Ok(());
        }
        let is_failed = exception.get_item(0).is_ok_and(|class| !class.is_none());
        match is_failed {
            true => self.release(),
            false => self.publish(py).map(drop),
        }
    }

    fn __repr__(&self) -> String {
        let released = if self.released() {
            ", published or released"
        } else {
            ""
        };
        format!("<hamlyn.Loan of {} bytes{released}>", self.borrowing.len())
    }
}

/// The publishing end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct Publisher {
    end: Arc<Publishing>,
    /// It waits for slow readers.
    is_blocking: bool,
}

impl Publisher {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: loans::Publisher<Host>,
        options: PublisherOptions,
    ) -> PyResult<Py<Self>> {
        let is_blocking = options.slow_readers == SlowReaders::Block;
        let end = End::new(manager.get().gate(), "publisher", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self { end, is_blocking }, base))
    }
}

const PUBLISHER_ENDED: Failure = Failure::new(
    Kind::Closed,
    "the publisher has ended, and all that it published was read: connect again when there is another",
);

const NO_READER_ROOM: Failure = Failure::new(
    Kind::TimedOut,
    "a reader had no room for one more message when the time was over: wait longer, give readers more `depth`, or let them lose messages (slow_readers)",
);

#[pymethods]
impl Publisher {
    /// A message of so many bytes, to be written in place; its bytes are those of some message before, or zeros. Waits while all are in
    /// use, and, with slow_readers="block", until all readers have room for it. One loan at a time: the one before is given back.
    #[pyo3(signature = (length, timeout=None))]
    fn loan(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::length)] length: usize,
        timeout: Option<Timeout>,
    ) -> PyResult<Loan> {
        let mut last = NO_READER_ROOM;
        let loaned = wait_for(py, &self.end.held, timeout, |held, wait| {
            // Other readers lose what they have no room for.
            if self.is_blocking && !held.end()?.await_room(wait)? {
                return Ok(None);
            }
            let mut data = std::ptr::null_mut();
            let loaned = held.hold(|end| match end.loan(length, wait) {
                Ok(mut loan) => {
                    data = loan.as_mut_ptr();
                    Ok(Some(loan))
                }
                Err(error @ LoanError::AllInUse { .. }) => {
                    last = error.into();
                    Ok(None)
                }
                Err(error) => Err(error.into()),
            })?;
            let lent = |(_, state)| Borrowing::at(self.end.clone(), state, data, length);
            Ok(loaned.map(lent))
        })?;
        Ok(Loan {
            borrowing: found(loaned, Some(last))?,
            end: Arc::clone(&self.end),
        })
    }

    /// Publishes a copy of any object with a contiguous buffer.
    #[pyo3(signature = (data, timeout=None))]
    fn publish(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout: Option<Timeout>,
    ) -> PyResult<Published> {
        with_bytes(data, "a message", |bytes| {
            let loan = self.loan(py, bytes.len(), timeout)?;
            let state = loan.borrowing.state();
            let mut held = self.end.held.enter()?;
            let place = held.message_of(state).ok_or_else(|| released("loan"))?;
            place.copy_from_slice(bytes);
            drop(held);
            loan.publish(py)
        })
    }

    /// As `loan`, awaited in the running event loop of asyncio.
    fn loan_async<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = number::length)] length: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "loan", (slf, length))
    }

    /// As `publish`, awaited in the running event loop of asyncio.
    fn publish_async<'py>(
        slf: Bound<'py, Self>,
        data: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        check(&data, "a message")?;
        aio::coroutine(slf.py(), "publish", (slf, data))
    }

    /// As `await_readers`, awaited in the running event loop of asyncio.
    fn await_readers_async<'py>(
        slf: Bound<'py, Self>,
        #[pyo3(from_py_with = number::readers)] readers: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "await_readers", (slf, readers))
    }

    /// As `flush`, awaited in the running event loop of asyncio.
    fn flush_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::coroutine(slf.py(), "flush", (slf,))
    }

    /// Waits until there are so many readers. How many there are; fewer if the time was over.
    #[pyo3(signature = (readers, timeout=None))]
    fn await_readers(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = number::readers)] readers: usize,
        timeout: Option<Timeout>,
    ) -> PyResult<usize> {
        let mut there = 0;
        wait_for(py, &self.end.held, timeout, |held, wait| {
            there = held.end()?.await_readers(readers, wait)?;
            Ok((there >= readers).then_some(()))
        })?;
        Ok(there)
    }

    /// Waits until all that was published is handed over: to be called before a publisher is closed whose last messages matter. TimedOut
    /// if it was not in time. A reader fetches the publisher's memory in its first receive.
    #[pyo3(signature = (timeout=None))]
    fn flush(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<()> {
        let flushed = wait_for(py, &self.end.held, timeout, |held, wait| {
            Ok(held.end()?.flush(wait)?.then_some(()))
        })?;
        found(flushed, Some(NOT_FLUSHED))
    }

    /// Takes in what readers have said: who came, who left, what was given back.
    fn poll(&self) -> PyResult<()> {
        self.end.held.enter()?.end()?.poll();
        Ok(())
    }

    /// How many readers there are.
    #[getter]
    fn readers(&self) -> PyResult<usize> {
        let mut held = self.end.held.enter()?;
        let end = held.end()?;
        end.poll();
        Ok(end.readers())
    }

    /// Messages that readers did not get because they were slow.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        Ok(self.end.held.enter()?.end()?.lost())
    }

    /// Messages that are neither loaned nor with readers, as far as is known.
    #[getter]
    fn chunks_free(&self) -> PyResult<usize> {
        Ok(self.end.held.enter()?.end()?.chunks_free())
    }
}

impl Lent<loans::Subscriber<Host>> for LendingSample<'static, Host> {
    const NAME: &'static str = "sample";

    fn keep(self) -> Result<Box<dyn Any>, Self> {
        Ok(Box::new(LendingSample::keep(self)))
    }

    fn read_at(&self, offset: usize, into: &mut [u8]) -> bool {
        LendingSample::read_at(self, offset, into).is_ok()
    }

    fn read_kept(
        _: &mut loans::Subscriber<Host>,
        kept: &dyn Any,
        offset: usize,
        into: &mut [u8],
    ) -> bool {
        let kept = kept.downcast_ref::<Kept>();
        kept.is_some_and(|kept| kept.read_at(offset, into).is_ok())
    }
}

type Reading = End<loans::Subscriber<Host>, LendingSample<'static, Host>>;

/// A message that was published. Views of it are views of a copy, unless its reader trusts the publisher; then one of which a view is alive
/// when the next is received is kept by itself.
#[pyclass(frozen, extends = Message, module = "hamlyn")]
pub(crate) struct Sample {
    number: u64,
}

#[pymethods]
impl Sample {
    /// Its number: they count all that its publisher published.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// Keeps it beyond the next receive, until it is released. As long as it is kept, its reader gets as many more as it may hold.
    fn keep(slf: Bound<'_, Self>) -> PyResult<()> {
        Ok(slf.as_super().get().0.keep()?)
    }
}

/// The reading end.
#[pyclass(frozen, extends = EndPoint, module = "hamlyn")]
pub(crate) struct Subscriber {
    end: Arc<Reading>,
    is_trusting: bool,
}

impl Subscriber {
    pub(crate) fn new(
        manager: &Bound<'_, Manager>,
        end: loans::Subscriber<Host>,
        is_trusting: bool,
    ) -> PyResult<Py<Self>> {
        let end = End::new(manager.get().gate(), "subscriber", end);
        let base = EndPoint::new(manager, &end);
        Py::new(manager.py(), (Self { end, is_trusting }, base))
    }

    fn receive(
        &self,
        py: Python<'_>,
        timeout: Option<Timeout>,
        is_over: &mut bool,
    ) -> PyResult<Option<(u64, Borrowing)>> {
        let came = wait_for(py, &self.end.held, timeout, |held, wait| {
            *is_over = false;
            let came = held.hold(|end| match end.recv(wait) {
                Err(ReceiveError::Closed) => {
                    *is_over = true;
                    Ok(None)
                }
                came => Ok(came?),
            })?;
            let came = came.map(|(sample, state)| {
                let (number, length) = (sample.number(), sample.len());
                let view = sample.view().filter(|_| self.is_trusting);
                // SAFETY: the program says that it trusts the publisher not to write it. The pointer is used as long as the sample is
                // held or kept, which keeps the publisher's memory.
                let data = view.map(|view| unsafe { view.as_slice() }.as_ptr());
                let end = self.end.clone();
                let borrowing = match data {
                    Some(data) => Borrowing::at(end, state, data, length),
                    None => Borrowing::new(end, state, None, length),
                };
                Some((number, borrowing))
            });
            Ok(if *is_over { Some(None) } else { came })
        })?;
        Ok(came.flatten())
    }
}

#[pymethods]
impl Subscriber {
    /// The next message; None if none came in time. Closed when the publisher has ended, PeerGone when it is gone.
    #[pyo3(signature = (timeout=None))]
    fn recv(&self, py: Python<'_>, timeout: Option<Timeout>) -> PyResult<Option<Py<Sample>>> {
        let mut is_over = false;
        match self.receive(py, timeout, &mut is_over)? {
            Some((number, borrowing)) => {
                Py::new(py, (Sample { number }, Message(borrowing))).map(Some)
            }
            None if is_over => Err(PUBLISHER_ENDED.into()),
            None => Ok(None),
        }
    }

    /// As `recv`, awaited in the running event loop of asyncio.
    fn recv_async<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::recv(slf.as_any())
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        aio::next(slf.as_any())
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Ends when the publisher has ended.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<Sample>>> {
        match self.receive(py, None, &mut false)? {
            Some((number, borrowing)) => {
                Py::new(py, (Sample { number }, Message(borrowing))).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Messages that this reader did not get, between the first and the last that it got.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        Ok(self.end.held.enter()?.end()?.lost())
    }

    /// Whether messages are read where the publisher wrote them; otherwise they are copied to here.
    #[getter]
    fn reads_in_place(&self) -> PyResult<bool> {
        Ok(self.end.held.enter()?.end()?.reads_in_place())
    }

    /// How many messages this reader may hold.
    #[getter]
    fn depth(&self) -> PyResult<u16> {
        Ok(self.end.held.enter()?.end()?.depth())
    }

    /// Bytes of the longest message.
    #[getter]
    fn message_bytes_max(&self) -> PyResult<u32> {
        Ok(self.end.held.enter()?.end()?.message_bytes_max())
    }
}
