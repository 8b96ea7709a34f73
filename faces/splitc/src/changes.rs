//! Atomic changes of a word, and atomic procedures.

use std::ffi::{c_int, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};

use hamlyn::one_sided::{Atomic, Change, Width};
use hamlyn_splitc::{Error, GlobalAddress};

use crate::boundary::{Place, Runtime, with};
use crate::program::Handler;

/// Changes a word at once and for all; see the header.
///
/// # Safety
///
/// `operand` points to a value of that type, so does `expected` for a comparison; `before` is null or has room for one; `place` is
/// null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_fetch_op(
    address: u64,
    value_type: c_int,
    operation: c_int,
    operand: *const c_void,
    expected: *const c_void,
    before: *mut c_void,
    place: *const Place,
) {
    with("an atomic change", place, |runtime| {
        let (width, kind) = kind_of(value_type)?;
        let bytes = width.bytes() as usize;
        // SAFETY: the caller's promise.
        let operand = unsafe { word_at(operand, bytes) };
        // SAFETY: the caller's promise; null is zero.
        let expected = unsafe { word_at(expected, bytes) };
        let address = GlobalAddress::from_bits(address);
        let was = change(runtime, address, width, kind, operation, operand, expected)?;
        if !before.is_null() {
            let was = was.to_le_bytes();
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(was.as_ptr(), before.cast(), bytes) };
        }
        Ok(())
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Float,
}

fn kind_of(value_type: c_int) -> Result<(Width, Kind), Error> {
    Ok(match value_type {
        0 => (Width::Bits32, Kind::Signed),
        1 => (Width::Bits32, Kind::Unsigned),
        2 => (Width::Bits64, Kind::Signed),
        3 => (Width::Bits64, Kind::Unsigned),
        4 => (Width::Bits32, Kind::Float),
        5 => (Width::Bits64, Kind::Float),
        _ => {
            return Err(Error::BadOperation {
                what: "there is no type of that number: use those of enum splitc_type",
            });
        }
    })
}

/// # Safety
///
/// `from` is null or has that many bytes, 8 at most.
unsafe fn word_at(from: *const c_void, bytes: usize) -> u64 {
    let mut word = [0; 8];
    if !from.is_null() {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), word.as_mut_ptr(), bytes) };
    }
    u64::from_le_bytes(word)
}

fn change(
    runtime: &mut Runtime,
    address: GlobalAddress,
    width: Width,
    kind: Kind,
    operation: c_int,
    operand: u64,
    expected: u64,
) -> Result<u64, Error> {
    let change = match (operation, kind) {
        (0, Kind::Float) => Change::FloatAdd,
        (0, _) => Change::Add,
        (1, Kind::Signed) => Change::Max,
        (2, Kind::Signed) => Change::Min,
        (1 | 2, Kind::Unsigned) => {
            return extreme(runtime, address, width, operation == 1, operand);
        }
        (3, Kind::Signed | Kind::Unsigned) => Change::And,
        (4, Kind::Signed | Kind::Unsigned) => Change::Or,
        (5, Kind::Signed | Kind::Unsigned) => Change::Xor,
        (7, _) => Change::Swap,
        (8, Kind::Signed | Kind::Unsigned) => Change::CompareSwap,
        _ => {
            return Err(Error::BadOperation {
                what: "there is no such atomic change: ADD and SWAP are for all types, MAX, MIN, AND, OR, XOR and \
                       COMPARE_SWAP for integers; use an atomic procedure",
            });
        }
    };
    runtime.change(
        address,
        Atomic {
            change,
            width,
            operand,
            expected,
        },
    )
}

/// The greater or lesser of numbers without sign: tried until nobody has changed the word meanwhile.
fn extreme(
    runtime: &mut Runtime,
    address: GlobalAddress,
    width: Width,
    is_max: bool,
    operand: u64,
) -> Result<u64, Error> {
    let mut known = 0;
    loop {
        let wanted = if is_max {
            known.max(operand)
        } else {
            known.min(operand)
        };
        let atomic = Atomic {
            change: Change::CompareSwap,
            width,
            operand: wanted,
            expected: known,
        };
        let was = runtime.change(address, atomic)?;
        if was == known {
            return Ok(was);
        }
        known = was;
    }
}

/// Has the owner of a place run a procedure there; see the header.
///
/// # Safety
///
/// `arguments` has `argument_bytes` bytes, `result` room for `result_bytes`; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_atomic(
    address: u64,
    handler: Option<Handler>,
    arguments: *const c_void,
    argument_bytes: usize,
    result: *mut c_void,
    result_bytes: usize,
    place: *const Place,
) {
    let procedure = handler.map_or(0, |handler| handler as usize as u64);
    let arguments = match argument_bytes {
        0 => &[],
        // SAFETY: the caller's promise.
        bytes => unsafe { from_raw_parts(arguments.cast::<u8>(), bytes) },
    };
    let result = match (result_bytes, result.is_null()) {
        (0, _) | (_, true) => &mut [],
        // SAFETY: the caller's promise.
        (bytes, false) => unsafe { from_raw_parts_mut(result.cast::<u8>(), bytes) },
    };
    with("an atomic procedure", place, |runtime| {
        let address = GlobalAddress::from_bits(address);
        runtime.atomic(address, procedure, arguments, result)
    });
}
