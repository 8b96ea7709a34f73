//! Messages as programs see them: their bytes where they landed, by the buffer protocol.

use std::ffi::c_int;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::borrowing::Borrowing;
use crate::bytes::with_writable;
use crate::error::{Failure, Kind};
use crate::number;
use crate::peer::Peer;

/// A message, where it landed: what a receive returns. It reads as its bytes: `bytes(message)`, `memoryview(message)`,
/// `numpy.frombuffer(message)`. It is released when it is deleted, by `release`, at the end of a `with`, and by the next receive of its
/// end point.
#[pyclass(frozen, subclass, module = "hamlyn")]
pub(crate) struct Message(pub(crate) Borrowing);

/// Fills a view of memory that stays until the view is released.
///
/// # Safety
///
/// `view` is what the interpreter passed to `__getbuffer__`, and `data` stays until `__releasebuffer__`.
pub(crate) unsafe fn fill(
    view: *mut ffi::Py_buffer,
    owner: &Bound<'_, PyAny>,
    data: *const u8,
    length_bytes: usize,
    is_read_only: bool,
    flags: c_int,
) -> PyResult<()> {
    // An empty message may lie nowhere, and a buffer must not.
    let data = match length_bytes {
        0 => std::ptr::NonNull::dangling().as_ptr(),
        _ => data.cast_mut(),
    };
    let length = length_bytes as ffi::Py_ssize_t;
    // SAFETY: the view is the interpreter's, and the memory stays, as the caller says.
    let filled = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            owner.as_ptr(),
            data.cast(),
            length,
            c_int::from(is_read_only),
            flags,
        )
    };
    match filled {
        0 => Ok(()),
        _ => Err(PyErr::fetch(owner.py())),
    }
}

#[pymethods]
impl Message {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let borrowing = &slf.get().0;
        let data = borrowing.begin_view()?;
        // SAFETY: a view is counted, so that the bytes stay until `end_view`.
        let filled = unsafe { fill(view, slf.as_any(), data, borrowing.len(), true, flags) };
        if filled.is_err() {
            borrowing.end_view();
        }
        filled
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.0.end_view();
    }

    /// A copy of the bytes.
    pub(crate) fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if !self.0.is_copied() {
            return Ok(self.0.show(|bytes| PyBytes::new(py, bytes))?);
        }
        let mut is_read = false;
        let copy = PyBytes::new_with(py, self.0.len(), |into| {
            is_read = self.0.read_at(0, into)?;
            Ok(())
        })?;
        match is_read {
            true => Ok(copy),
            false => Ok(self.0.show(|bytes| PyBytes::new(py, bytes))?),
        }
    }

    /// A copy of the bytes, as `bytes(message)`.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.__bytes__(py)
    }

    /// Copies the bytes from `offset` on into a buffer that can be written, as many as fit. How many.
    #[pyo3(signature = (buffer, offset=0))]
    fn read_into(
        &self,
        buffer: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::offset)] offset: usize,
    ) -> PyResult<usize> {
        with_writable(buffer, "the buffer", |into| {
            let length = self.0.len().saturating_sub(offset).min(into.len());
            match self.0.read_at(offset, &mut into[..length])? {
                true => Ok(length),
                false => Ok(self.0.show(|bytes| copy_into(bytes, offset, into))?),
            }
        })
    }

    /// Gives the memory back. Raises BufferError if a view of it is alive. Nothing if it was released before.
    fn release(&self) -> PyResult<()> {
        Ok(self.0.release()?)
    }

    /// Whether it was released.
    #[getter]
    fn released(&self) -> bool {
        self.0.is_released()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.release()
    }

    fn __eq__(slf: Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        if slf.is(other) {
            return Ok(true);
        }
        let borrowing = &slf.get().0;
        let compared =
            crate::bytes::with_bytes(other, "what a message is compared with", |other| {
                Ok(borrowing.show(|bytes| bytes == other)?)
            });
        match compared {
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(slf.py()) => {
                Ok(false)
            }
            compared => compared,
        }
    }

    fn __hash__(slf: Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize >> 4
    }

    fn __repr__(slf: Bound<'_, Self>) -> PyResult<String> {
        let name = slf.get_type().name()?;
        let this = &slf.get().0;
        let released = if this.is_released() { ", released" } else { "" };
        Ok(format!("<hamlyn.{name} of {} bytes{released}>", this.len()))
    }
}

/// Copies as many bytes from `offset` on as fit; how many.
pub(crate) fn copy_into(bytes: &[u8], offset: usize, into: &mut [u8]) -> usize {
    let from = bytes.get(offset..).unwrap_or_default();
    let length = from.len().min(into.len());
    into[..length].copy_from_slice(&from[..length]);
    length
}

/// A whole message into a buffer of the program, which must not be too short.
pub(crate) fn copy_whole(bytes: &[u8], into: &mut [u8]) -> Result<usize, Failure> {
    match into.get_mut(..bytes.len()) {
        Some(into) => {
            into.copy_from_slice(bytes);
            Ok(bytes.len())
        }
        None => Err(Failure::of(
            Kind::TooLong,
            &format_args!(
                "a message of {} bytes came, and the buffer has {}: receive it with `recv`, or into a longer buffer; it was not taken",
                bytes.len(),
                into.len()
            ),
        )),
    }
}

/// Who sent a message, if that is known.
pub(crate) fn sender(borrowing: &Borrowing) -> PyResult<Option<Peer>> {
    Ok(borrowing.peer()?.map(Peer::new))
}
