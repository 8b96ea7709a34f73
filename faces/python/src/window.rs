//! Windows: memory that is mapped here and that others may write at any time (decision 37), for access without the interface.
//!
//! A call of a window whose memory is no longer that of its owner is refused: one that reads gives nothing that was read then, and one
//! that writes says that it may have reached nobody. Views show the memory itself, and CPython cannot take them back, so only a window
//! of which the program says that it trusts its peers gives views. What they show stays mapped as long as they live.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hamlyn::DirectWindow;
use hamlyn::one_sided::Atomic;
use hamlyn::region::OutOfRange;
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::bytes::{with_bytes, with_writable};
use crate::error::{Failure, Kind};
use crate::gate::{Closing, Gate, forked};
use crate::message::fill;
use crate::number;
use crate::words::{self, width_of};

/// What a window object has, and what its manager closes.
struct Opened {
    gate: Arc<Gate>,
    /// Nothing: it was closed, and its memory is not mapped any more.
    window: RwLock<Option<DirectWindow>>,
    views: AtomicUsize,
    /// It was closed with its manager. Views of it stay.
    is_shut: AtomicBool,
}

impl Closing for Opened {
    fn close(self: Arc<Self>) {
        self.is_shut.store(true, Ordering::SeqCst);
    }
}

/// Memory that is mapped here and that others may write at any time: a part of an area, or memory of a peer that was imported. Any number
/// of threads may use it. When the region ends, calls raise PeerGone. Opened with `trust_peers`, it has the buffer protocol
/// (`memoryview`, `numpy.frombuffer`): its views show the memory itself, also what others write, and one that outlives the region shows what
/// is not the owner's any more, so look at `lasts`.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Window {
    opened: Arc<Opened>,
    length: usize,
    is_writable: bool,
    is_trusting: bool,
}

/// Why a call has not done what it was to do. An exception is made of it when the window is not locked any more, as that runs Python code.
enum NotDone {
    OutOfRange,
    Otherwise(Failure),
}

const CLOSED: NotDone = NotDone::Otherwise(Failure::new(
    Kind::HandleClosed,
    "this window or its manager was closed: open another",
));
const ENDED: NotDone = NotDone::Otherwise(Failure::new(
    Kind::PeerGone,
    "the region has ended: its owner has revoked it, or is gone, or it was detached here; what was written just now may have reached nobody",
));
const READ_ONLY: NotDone = NotDone::Otherwise(Failure::new(
    Kind::Refused,
    "this memory may be read only: its owner grants no more, by the rights of its slot",
));

impl From<OutOfRange> for NotDone {
    fn from(_: OutOfRange) -> Self {
        Self::OutOfRange
    }
}

impl From<NotDone> for PyErr {
    #[cold]
    fn from(refused: NotDone) -> Self {
        match refused {
            NotDone::OutOfRange => PyIndexError::new_err(
                "that does not lie in the window, or is a word whose offset is no multiple of its width in its area",
            ),
            NotDone::Otherwise(failure) => failure.into(),
        }
    }
}

impl Window {
    pub(crate) fn new(gate: &Arc<Gate>, window: DirectWindow, is_trusting: bool) -> Self {
        let (length, is_writable) = (window.length_bytes(), window.is_writable());
        let opened = Arc::new(Opened {
            gate: Arc::clone(gate),
            window: RwLock::new(Some(window)),
            views: AtomicUsize::new(0),
            is_shut: AtomicBool::new(false),
        });
        let closing: Arc<dyn Closing> = opened.clone();
        gate.register(&closing);
        Self {
            opened,
            length: usize::try_from(length).unwrap_or(usize::MAX),
            is_writable,
            is_trusting,
        }
    }

    /// Does something with the memory, which must be its owner's.
    fn begin<R>(
        &self,
        act: impl FnOnce(&DirectWindow) -> Result<R, NotDone>,
    ) -> Result<R, NotDone> {
        let Opened { gate, window, .. } = &*self.opened;
        if gate.is_forked() {
            return Err(NotDone::Otherwise(forked()));
        }
        let window = window.read().unwrap_or_else(PoisonError::into_inner);
        match window.as_ref().filter(|_| !self.closed()) {
            None => Err(CLOSED),
            Some(window) if !window.lasts() => Err(ENDED),
            Some(window) => act(window),
        }
    }

    /// As [`Window::begin`]: the memory must be its owner's afterwards, too.
    fn with<R>(
        &self,
        act: impl FnOnce(&DirectWindow) -> Result<R, OutOfRange>,
    ) -> Result<R, NotDone> {
        self.begin(|window| {
            let done = act(window)?;
            match window.lasts() {
                true => Ok(done),
                false => Err(ENDED),
            }
        })
    }

    /// As [`Window::with`], to write.
    fn with_writable<R>(
        &self,
        act: impl FnOnce(&DirectWindow) -> Result<R, OutOfRange>,
    ) -> Result<R, NotDone> {
        match self.is_writable {
            true => self.with(act),
            false => Err(READ_ONLY),
        }
    }

    fn change_word(&self, offset: u64, atomic: &Atomic) -> PyResult<u64> {
        Ok(self.with_writable(|window| window.change(offset, atomic))?)
    }
}

#[pymethods]
impl Window {
    fn __len__(&self) -> usize {
        self.length
    }

    /// A copy of so many bytes from `offset` on. Bytes that others write meanwhile come out old or new.
    fn read<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if length > self.length {
            return Err(NotDone::OutOfRange.into());
        }
        PyBytes::new_with(py, length, |into| {
            Ok(self.with(|window| window.read(offset, into))?)
        })
    }

    /// A copy of all bytes.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.read(py, 0, self.length)
    }

    /// Copies from `offset` on into a buffer that can be written, all of which is filled.
    #[pyo3(signature = (buffer, offset=0))]
    fn read_into(
        &self,
        buffer: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::offset)] offset: u64,
    ) -> PyResult<()> {
        with_writable(buffer, "the buffer", |into| {
            Ok(self.with(|window| window.read(offset, into))?)
        })
    }

    /// Copies any object with a contiguous buffer to `offset`.
    fn write(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        with_bytes(data, "what is written", |bytes| {
            Ok(self.with_writable(|window| window.write(offset, bytes))?)
        })
    }

    /// The eight bytes at `offset` as a number, whole if that is a multiple of 8 in the owner's area.
    fn load_u64(&self, #[pyo3(from_py_with = number::offset)] offset: u64) -> PyResult<u64> {
        Ok(self.with(|window| window.load_u64(offset))?)
    }

    /// Stores a number in the eight bytes at `offset`, whole if that is a multiple of 8 in the owner's area.
    fn store_u64(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::value)] value: u64,
    ) -> PyResult<()> {
        Ok(self.with_writable(|window| window.store_u64(offset, value))?)
    }

    /// The four bytes at `offset` as a number, whole if that is a multiple of 4 in the owner's area.
    fn load_u32(&self, #[pyo3(from_py_with = number::offset)] offset: u64) -> PyResult<u32> {
        Ok(self.with(|window| window.load_u32(offset))?)
    }

    /// Stores a number in the four bytes at `offset`, whole if that is a multiple of 4 in the owner's area.
    fn store_u32(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::value)] value: u32,
    ) -> PyResult<()> {
        Ok(self.with_writable(|window| window.store_u32(offset, value))?)
    }

    /// Changes the word of 64 or 32 `bits` at `offset` in one step, and returns what it was, as `Initiator.change` does.
    #[pyo3(signature = (offset, change, operand, *, bits=64))]
    fn change(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        change: &str,
        operand: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::bits)] bits: u32,
    ) -> PyResult<u64> {
        let atomic = words::change(change, operand, width_of(bits)?)?;
        self.change_word(offset, &atomic)
    }

    /// Stores a number in the word of 64 or 32 `bits` at `offset` if it is what is expected, and returns what it was.
    #[pyo3(signature = (offset, expected, new, *, bits=64))]
    fn compare_swap(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::bits)] bits: u32,
    ) -> PyResult<u64> {
        let atomic = words::compare_swap(expected, ("new", new), width_of(bits)?)?;
        self.change_word(offset, &atomic)
    }

    /// Whether the memory is still that of its owner. It may end right after the call.
    #[getter]
    fn lasts(&self) -> bool {
        let window = &self.opened.window;
        let window = window.read().unwrap_or_else(PoisonError::into_inner);
        let window = window.as_ref().filter(|_| !self.closed());
        window.is_some_and(DirectWindow::lasts)
    }

    /// Whether it may be written.
    #[getter]
    fn writable(&self) -> bool {
        self.is_writable
    }

    /// Whether it was closed, by itself or with its manager.
    #[getter]
    fn closed(&self) -> bool {
        self.opened.is_shut.load(Ordering::SeqCst)
    }

    /// Closes it: its memory is unmapped with the last window on it. BufferError if a view of it is alive. Nothing if it was closed before.
    fn close(&self) -> PyResult<()> {
        let Opened { window, views, .. } = &*self.opened;
        let mut window = window.write().unwrap_or_else(PoisonError::into_inner);
        if views.load(Ordering::SeqCst) != 0 {
            drop(window);
            return Err(PyBufferError::new_err(
                "a view of the window is alive, a memoryview or an array: delete it first",
            ));
        }
        self.opened.is_shut.store(true, Ordering::SeqCst);
        *window = None;
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        if !this.is_trusting {
            return Err(PyBufferError::new_err(
                "others may write this memory at any time, so a view of it is not safe to use: copy with `read` or `read_into`, or, if they are trusted, open the window with trust_peers=True",
            ));
        }
        let views = &this.opened.views;
        let data = this.begin(|window| {
            views.fetch_add(1, Ordering::SeqCst);
            Ok(window.as_ptr().cast_const())
        })?;
        let (length, is_read_only) = (this.length, !this.is_writable);
        // SAFETY: the window is not closed as long as a view is counted, and the object lives as long as its views, so the memory stays
        // mapped. Views of memory that may not be written are read-only.
        let filled = unsafe { fill(view, slf.as_any(), data, length, is_read_only, flags) };
        if filled.is_err() {
            views.fetch_sub(1, Ordering::SeqCst);
        }
        filled
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.opened.views.fetch_sub(1, Ordering::SeqCst);
    }

    fn __repr__(&self) -> String {
        let state = match (self.closed(), self.lasts()) {
            (true, _) => ", closed",
            (false, true) => "",
            (false, false) => ", ended",
        };
        format!("<hamlyn.Window of {} bytes{state}>", self.length)
    }
}
