//! Words of memory and their changes, as programs say them.

use hamlyn::one_sided::{Atomic, Change, Width};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use crate::number::{self, integer};

/// The width of a word.
pub(crate) fn width_of(bits: u32) -> PyResult<Width> {
    match bits {
        64 => Ok(Width::Bits64),
        32 => Ok(Width::Bits32),
        _ => Err(PyValueError::new_err(format!(
            "words that are changed have 64 or 32 bits; not {bits}"
        ))),
    }
}

/// A word of that width, with or without a sign.
fn word_of(operand: &Bound<'_, PyAny>, name: &str, width: Width) -> PyResult<u64> {
    let (least, most) = match width {
        Width::Bits64 => (i64::MIN.into(), u64::MAX.into()),
        Width::Bits32 => (i32::MIN.into(), u32::MAX.into()),
    };
    let word = integer(operand, name, least, most)? as u64;
    Ok(match width {
        Width::Bits64 => word,
        Width::Bits32 => u64::from(word as u32),
    })
}

/// An addition to a float of that width.
pub(crate) fn float_add(operand: f64, width: Width) -> PyResult<Atomic> {
    let operand = match width {
        Width::Bits64 => operand.to_bits(),
        Width::Bits32 => {
            let nearest = operand as f32;
            if nearest.is_infinite() && operand.is_finite() {
                return Err(PyOverflowError::new_err(format!(
                    "the operand is too large for a float of 32 bits: {operand}"
                )));
            }
            u64::from(nearest.to_bits())
        }
    };
    Ok(Atomic::new(Change::FloatAdd, width, operand))
}

/// The number that a float of that width stands for.
pub(crate) fn float_from(word: u64, width: Width) -> f64 {
    match width {
        Width::Bits64 => f64::from_bits(word),
        Width::Bits32 => f64::from(f32::from_bits(word as u32)),
    }
}

pub(crate) fn compare_swap(
    expected: &Bound<'_, PyAny>,
    (name, new): (&str, &Bound<'_, PyAny>),
    width: Width,
) -> PyResult<Atomic> {
    let expected = word_of(expected, "expected", width)?;
    let new = word_of(new, name, width)?;
    Ok(Atomic {
        expected,
        ..Atomic::new(Change::CompareSwap, width, new)
    })
}

/// A change of a word by an operand alone.
pub(crate) fn change(change: &str, operand: &Bound<'_, PyAny>, width: Width) -> PyResult<Atomic> {
    let change = match change {
        "add" => Change::Add,
        "and" => Change::And,
        "or" => Change::Or,
        "xor" => Change::Xor,
        "swap" => Change::Swap,
        "min" => Change::Min,
        "max" => Change::Max,
        _ => {
            return Err(PyValueError::new_err(format!(
                "change is \"add\", \"and\", \"or\", \"xor\", \"swap\", \"min\" or \"max\"; not {change:?}"
            )));
        }
    };
    Ok(Atomic::new(
        change,
        width,
        word_of(operand, "operand", width)?,
    ))
}

/// A change, or one of two kinds more: `compare_swap` and `float_add`.
pub(crate) fn atomic_of(
    change: &str,
    operand: &Bound<'_, PyAny>,
    expected: Option<&Bound<'_, PyAny>>,
    width: Width,
) -> PyResult<Atomic> {
    match (change, expected) {
        ("compare_swap", Some(expected)) => compare_swap(expected, ("operand", operand), width),
        ("compare_swap", None) => Err(PyValueError::new_err(
            "\"compare_swap\" needs what is `expected`",
        )),
        ("float_add", None) => float_add(number::operand(operand)?, width),
        (_, None) => self::change(change, operand, width),
        (_, Some(_)) => Err(PyValueError::new_err(
            "`expected` is for the change \"compare_swap\" alone",
        )),
    }
}
