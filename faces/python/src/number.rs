//! Numbers that a program says: one conversion for all of them, which names the argument and its
//! range.
//!
//! The functions are named as the arguments are, for `from_py_with`. A test walks all numbers of
//! the
//! stubs, so that none is converted otherwise.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use crate::error::{Failure, Kind};
use crate::waiting::type_name;

/// A number, or numbers, of an argument.
pub(crate) trait Number: Sized {
    fn read(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self>;
}

macro_rules! arguments {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) fn $name<T: Number>(object: &Bound<'_, PyAny>) -> PyResult<T> {
            T::read(object, stringify!($name))
        })*
    };
}

arguments! {
    address, area_bytes, arena_bytes, bits, buffer, buffer_bytes, buffer_bytes_per_peer, buffer_bytes_total, buffers, cells, chunk_bytes, chunks, clients, context, count, counting, depth, ended, entries, group, groups, handshake_timeout, index, key, landing_bytes, length, lengths, limit_bytes, links_max, message_bytes, most, name_service_port, number, offset, offsets, operand, outstanding, paths, patience, peer_bytes, piece, piece_bytes, pieces, places, priority, queue_bytes, queue_entries, readers, reply_bytes, request_bytes, send_areas, spin_ns, stride_bytes, tag, tags, users, value, word,
}

macro_rules! unsigned {
    ($($type:ty),*) => {
        $(impl Number for $type {
            #[inline]
            fn read(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
                match object.cast_exact::<PyInt>().map(|int| int.extract::<Self>()) {
                    Ok(Ok(number)) => Ok(number),
                    _ => Ok(integer(object, name, 0, i128::from(u64::try_from(Self::MAX).unwrap_or(u64::MAX)))? as Self),
                }
            }
        })*
    };
}

unsigned!(u8, u16, u32, u64, usize);

impl Number for f64 {
    fn read(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(float) = object.cast_exact::<PyFloat>() {
            return Ok(float.value());
        }
        let is_bool = is_bool(object);
        let float = object.extract::<Self>().ok().filter(|_| !is_bool);
        float.ok_or_else(|| match object.is_instance_of::<PyInt>() && !is_bool {
            true => invalid(&format_args!(
                "{name} is a float, and this int is too large for one"
            )),
            false => PyTypeError::new_err(format!("{name} is a float, not {}", type_name(object))),
        })
    }
}

impl<T: Number> Number for Option<T> {
    fn read(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        match object.is_none() {
            true => Ok(None),
            false => T::read(object, name).map(Some),
        }
    }
}

impl<T: Number> Number for Vec<T> {
    fn read(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let all = object.try_iter().map_err(|_| {
            PyTypeError::new_err(format!(
                "{name} are several, as in a list, not {}",
                type_name(object)
            ))
        })?;
        all.map(|each| T::read(&each?, name)).collect()
    }
}

/// A piece of an area: tag, offset and length.
impl Number for (u16, u64, u64) {
    fn read(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let parts: Option<Vec<Bound<'_, PyAny>>> = object
            .try_iter()
            .ok()
            .and_then(|parts| parts.collect::<PyResult<_>>().ok());
        let Some([tag, offset, length]) = parts.as_deref() else {
            return Err(PyTypeError::new_err(format!(
                "{name}: a piece is a tag, an offset and a length, not {}",
                type_name(object)
            )));
        };
        let of = |part: &str| format!("the {part} of {name}");
        Ok((
            Number::read(tag, &of("tag"))?,
            Number::read(offset, &of("offset"))?,
            Number::read(length, &of("length"))?,
        ))
    }
}

/// Returns true for a bool, of Python or NumPy.
#[cold]
pub(crate) fn is_bool(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyBool>() || matches!(type_name(object).as_str(), "bool" | "bool_")
}

/// An int, or an object that stands for one, in that range.
#[cold]
pub(crate) fn integer(
    object: &Bound<'_, PyAny>,
    name: &str,
    least: i128,
    most: i128,
) -> PyResult<i128> {
    let index = match is_bool(object) {
        true => None,
        // SAFETY: the object is alive, and what comes is a new reference, or none with an
        // exception.
        false => unsafe {
            Bound::from_owned_ptr_or_opt(object.py(), ffi::PyNumber_Index(object.as_ptr()))
        },
    };
    let Some(index) = index else {
        let cause = PyErr::take(object.py());
        let error = PyTypeError::new_err(format!(
            "{name} is an int from {least} to {most}, not {}",
            type_name(object)
        ));
        error.set_cause(object.py(), cause);
        return Err(error);
    };
    match index.extract::<i128>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(number) => Err(invalid(&format_args!(
            "{name} is an int from {least} to {most}, not {number}"
        ))),
        Err(_) => Err(invalid(&format_args!(
            "{name} is an int from {least} to {most}, not one so far beyond"
        ))),
    }
}

fn invalid(text: &std::fmt::Arguments<'_>) -> PyErr {
    Failure::of(Kind::Invalid, text).into()
}
