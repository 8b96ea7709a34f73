//! Bytes of the program: any object with a contiguous buffer is sent from where it lies, and can be received into.
//!
//! While the interpreter's lock is let go, another thread may write to a buffer that is being sent: which of its bytes are sent is
//! undetermined then, as it is with sockets.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::format::holds_addresses;
use crate::waiting::type_name;

/// A buffer that is read, or written, in one stretch, and says its format: addresses are no data.
const READ: c_int = ffi::PyBUF_ND | ffi::PyBUF_FORMAT;
const WRITE: c_int = READ | ffi::PyBUF_WRITABLE;

/// A buffer of an object, given back when it is dropped. It does not move while it is held.
#[repr(transparent)]
pub(crate) struct View(ffi::Py_buffer);

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the view was filled by `PyObject_GetBuffer`, and the interpreter is attached: views live in calls only.
        unsafe { ffi::PyBuffer_Release(&raw mut self.0) };
    }
}

/// Asks an object for its buffer, in that place.
fn ask<'a>(
    place: &'a mut MaybeUninit<View>,
    object: &Bound<'_, PyAny>,
    what: &str,
    flags: c_int,
) -> PyResult<&'a mut View> {
    // SAFETY: the place has room for a view, and the object is alive.
    let asked =
        unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), place.as_mut_ptr().cast(), flags) };
    if asked != 0 {
        let cause = PyErr::take(object.py());
        return ask_without_format(place, object, what, flags, cause);
    }
    // SAFETY: the call has filled it.
    let view = unsafe { place.assume_init_mut() };
    if view.holds_addresses() {
        // SAFETY: it was filled, and is not used any more.
        unsafe { std::ptr::drop_in_place(view) };
        return Err(no_data(what));
    }
    Ok(view)
}

impl View {
    fn holds_addresses(&self) -> bool {
        // Without a format they are bytes.
        !self.0.format.is_null()
            // SAFETY: a text of the exporter's, which stays until the view is given back.
            && holds_addresses(unsafe { CStr::from_ptr(self.0.format) }.to_bytes())
    }
}

/// NumPy has types for which there is no format: dates, say. Its arrays tell by their type whether
/// they hold addresses.
#[cold]
fn ask_without_format<'a>(
    place: &'a mut MaybeUninit<View>,
    object: &Bound<'_, PyAny>,
    what: &str,
    flags: c_int,
    cause: Option<PyErr>,
) -> PyResult<&'a mut View> {
    let has_no_format = cause
        .as_ref()
        .is_some_and(|cause| cause.is_instance_of::<PyValueError>(object.py()));
    if !has_no_format || !object.hasattr("dtype")? {
        return Err(refusal(object, what, flags, cause));
    }
    let types = object.py().import("hamlyn.dtypes")?;
    let holds_addresses = types.call_method1("array_holds_addresses", (object,))?;
    if holds_addresses.extract::<bool>()? {
        return Err(no_data(what));
    }
    let flags = flags & !(ffi::PyBUF_FORMAT | ffi::PyBUF_ND);
    // SAFETY: the place has room for a view, and the object is alive.
    let asked =
        unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), place.as_mut_ptr().cast(), flags) };
    if asked != 0 {
        let cause = PyErr::take(object.py());
        return Err(refusal(object, what, flags, cause));
    }
    // SAFETY: the call has filled it.
    Ok(unsafe { place.assume_init_mut() })
}

#[cold]
fn no_data(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{what} holds addresses, not data, as arrays of Python objects and structures of pointers do: give the array a dtype of numbers (astype), or send objects over a Channel"
    ))
}

#[cold]
fn refusal(object: &Bound<'_, PyAny>, what: &str, flags: c_int, cause: Option<PyErr>) -> PyErr {
    let py = object.py();
    let is_writable = flags & ffi::PyBUF_WRITABLE != 0;
    let name = type_name(object);
    let error = if object.is_instance_of::<PyString>() {
        PyTypeError::new_err(format!(
            "{what} is bytes or another buffer, not str: encode it first"
        ))
    } else if cause
        .as_ref()
        .is_some_and(|cause| cause.is_instance_of::<PyTypeError>(py))
    {
        PyTypeError::new_err(match is_writable {
            true => format!("{what} is a bytearray or another writable buffer, not {name}"),
            false => {
                format!("{what} is bytes or another buffer, such as an array of NumPy, not {name}")
            }
        })
    } else if cause.as_ref().is_some_and(|cause| {
        cause
            .get_type(py)
            .module()
            .is_ok_and(|module| module == "hamlyn.errors")
    }) {
        return cause.unwrap_or_else(|| PyBufferError::new_err("no buffer"));
    } else {
        PyBufferError::new_err(match is_writable {
            true => format!(
                "{what} cannot be written in one stretch: it is read-only, or not contiguous"
            ),
            false => format!(
                "{what} is not contiguous: take a copy of it, as numpy.ascontiguousarray makes"
            ),
        })
    };
    error.set_cause(py, cause);
    error
}

/// Uses the bytes of an object, which `what` names in errors.
#[inline(always)]
pub(crate) fn with_bytes<R>(
    object: &Bound<'_, PyAny>,
    what: &'static str,
    act: impl FnOnce(&[u8]) -> PyResult<R>,
) -> PyResult<R> {
    match object.cast_exact::<PyBytes>() {
        Ok(bytes) => act(bytes.as_bytes()),
        Err(_) => with_buffer(object, what, act),
    }
}

fn with_buffer<R>(
    object: &Bound<'_, PyAny>,
    what: &'static str,
    act: impl FnOnce(&[u8]) -> PyResult<R>,
) -> PyResult<R> {
    let mut place = MaybeUninit::uninit();
    let view = Filled(ask(&mut place, object, what, READ)?);
    let (data, length) = (view.0.0.buf.cast::<u8>(), view.0.0.len as usize);
    let bytes = match length {
        0 => &[],
        // SAFETY: the object keeps so many bytes there until the view is given back.
        _ => unsafe { std::slice::from_raw_parts(data, length) },
    };
    act(bytes)
}

/// Uses the bytes of a writable object.
pub(crate) fn with_writable<R>(
    object: &Bound<'_, PyAny>,
    what: &'static str,
    act: impl FnOnce(&mut [u8]) -> PyResult<R>,
) -> PyResult<R> {
    let mut place = MaybeUninit::uninit();
    let view = Filled(ask(&mut place, object, what, WRITE)?);
    let (data, length) = (view.0.0.buf.cast::<u8>(), view.0.0.len as usize);
    let bytes = match length {
        0 => &mut [],
        // SAFETY: the object keeps so many writable bytes there until the view is given back. As with sockets, what other threads
        // read of it meanwhile is undetermined.
        _ => unsafe { std::slice::from_raw_parts_mut(data, length) },
    };
    act(bytes)
}

/// Bytes of an object that are held as long as this lives.
pub(crate) enum HeldBytes<'py> {
    Bytes(Bound<'py, PyBytes>),
    /// A view may point into itself, so it does not move.
    View(Box<View>),
}

impl<'py> HeldBytes<'py> {
    /// Holds the bytes of an object.
    pub(crate) fn of(object: &Bound<'py, PyAny>, what: &'static str) -> PyResult<Self> {
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            return Ok(Self::Bytes(bytes.clone()));
        }
        let mut place: Box<MaybeUninit<View>> = Box::new_uninit();
        ask(&mut place, object, what, READ)?;
        // SAFETY: the call has filled it.
        Ok(Self::View(unsafe { place.assume_init() }))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::View(view) if view.0.len == 0 => &[],
            // SAFETY: the object keeps so many bytes there until the view is given back.
            Self::View(view) => unsafe {
                std::slice::from_raw_parts(view.0.buf.cast::<u8>(), view.0.len as usize)
            },
        }
    }
}

/// Refuses an object whose bytes could not be sent, before they are asked for.
pub(crate) fn check(object: &Bound<'_, PyAny>, what: &'static str) -> PyResult<()> {
    with_bytes(object, what, |_| Ok(()))
}

/// Gives a view back where it lies.
struct Filled<'a>(&'a mut View);

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        // SAFETY: it was filled, and is not used any more.
        unsafe { std::ptr::drop_in_place(self.0) };
    }
}
