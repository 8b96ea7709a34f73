//! Operations of all processors together.

use std::ffi::{c_int, c_void};
use std::slice::from_raw_parts_mut;

use hamlyn_splitc::{Error, GlobalAddress, Number, Reduction};

use crate::boundary::{Place, Runtime, with};

/// Returns when all processors have called this.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_barrier(place: *const Place) {
    with("barrier", place, |runtime| runtime.barrier());
}

/// Returns when all stores of all processors are in their places.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_store_sync(place: *const Place) {
    with("all_store_sync", place, |runtime| runtime.all_store_sync());
}

#[derive(Clone, Copy)]
enum Form {
    ToOne,
    ToAll,
    Scan,
}

/// Combines values of all processors.
///
/// # Safety
///
/// `value` points to a value of that type; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_reduce(
    value: *mut c_void,
    value_type: c_int,
    operation: c_int,
    to_one: c_int,
    place: *const Place,
) {
    let form = if to_one != 0 {
        Form::ToOne
    } else {
        Form::ToAll
    };
    with("a reduction", place, |runtime| {
        // SAFETY: the caller's promise.
        unsafe { combine_any(runtime, form, value, value_type, operation) }
    });
}

/// Combines values of this processor and of those before it.
///
/// # Safety
///
/// As [`splitc_all_reduce`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_scan(
    value: *mut c_void,
    value_type: c_int,
    operation: c_int,
    place: *const Place,
) {
    with("a scan", place, |runtime| {
        // SAFETY: the caller's promise.
        unsafe { combine_any(runtime, Form::Scan, value, value_type, operation) }
    });
}

/// # Safety
///
/// `value` points to a value of that type.
unsafe fn combine_any(
    runtime: &mut Runtime,
    form: Form,
    value: *mut c_void,
    value_type: c_int,
    operation: c_int,
) -> Result<(), Error> {
    let reduction = match operation {
        0 => Reduction::Add,
        1 => Reduction::Max,
        2 => Reduction::Min,
        3 => Reduction::And,
        4 => Reduction::Or,
        5 => Reduction::Xor,
        6 => Reduction::Mul,
        _ => {
            return Err(Error::BadOperation {
                what: "there is no reduction of that number: use those of enum splitc_operation, ADD to MUL",
            });
        }
    };
    // SAFETY: the caller's promise; the numbers of types are those of the header.
    unsafe {
        match value_type {
            0 => combine::<i32>(runtime, form, value, reduction),
            1 => combine::<u32>(runtime, form, value, reduction),
            2 => combine::<i64>(runtime, form, value, reduction),
            3 => combine::<u64>(runtime, form, value, reduction),
            4 => combine::<f32>(runtime, form, value, reduction),
            5 => combine::<f64>(runtime, form, value, reduction),
            _ => Err(Error::BadOperation {
                what: "there is no type of that number: use those of enum splitc_type",
            }),
        }
    }
}

/// # Safety
///
/// `value` points to such a number.
unsafe fn combine<T: Number>(
    runtime: &mut Runtime,
    form: Form,
    value: *mut c_void,
    reduction: Reduction,
) -> Result<(), Error> {
    let value = value.cast::<T>();
    // SAFETY: the caller's promise; C may have put it at any address.
    let own = unsafe { value.read_unaligned() };
    let combined = match form {
        Form::ToOne => runtime.reduce_to_one(reduction, own)?,
        Form::ToAll => runtime.reduce_to_all(reduction, own)?,
        Form::Scan => runtime.scan(reduction, own)?,
    };
    // SAFETY: as above.
    unsafe { value.write_unaligned(combined) };
    Ok(())
}

/// Gives bytes of one processor to all.
///
/// # Safety
///
/// `value` has `bytes` bytes; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_bcast(
    value: *mut c_void,
    bytes: usize,
    root: c_int,
    place: *const Place,
) {
    let bytes = match bytes {
        0 => &mut [],
        // SAFETY: the caller's promise.
        bytes => unsafe { from_raw_parts_mut(value.cast::<u8>(), bytes) },
    };
    with("a broadcast", place, |runtime| {
        runtime.broadcast(u32::try_from(root).unwrap_or(u32::MAX), bytes)
    });
}

fn count_of(count: i64) -> Result<u64, Error> {
    u64::try_from(count).map_err(|_| Error::BadOperation {
        what: "a spread array cannot have a negative number of elements",
    })
}

/// Memory spread over all processors. Collective.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_spread_malloc(
    count: i64,
    element_bytes: usize,
    place: *const Place,
) -> u64 {
    with("all_spread_malloc", place, |runtime| {
        let array = runtime.all_spread_allocate(count_of(count)?, element_bytes as u64)?;
        Ok(array.to_bits())
    })
}

/// Gives such memory back. Collective.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_spread_free(array: u64, place: *const Place) {
    with("all_spread_free", place, |runtime| {
        runtime.all_spread_free(GlobalAddress::from_bits(array))
    });
}

/// Memory spread over all processors, for one that asks alone.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_spread_malloc(
    count: i64,
    element_bytes: usize,
    place: *const Place,
) -> u64 {
    with("spread_malloc", place, |runtime| {
        let array = runtime.spread_allocate(count_of(count)?, element_bytes as u64)?;
        Ok(array.to_bits())
    })
}

/// Gives such memory back.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_spread_free(array: u64, place: *const Place) {
    with("spread_free", place, |runtime| {
        runtime.spread_free(GlobalAddress::from_bits(array))
    });
}
