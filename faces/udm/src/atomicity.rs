//! Atomic sections by the register of the paper, and tasks.

use std::ffi::{c_int, c_uint, c_void};

use crate::boundary::{either, inside, put};
use crate::node::{CFunction, Function};
use crate::status::Failure;

/// The mask of a call: bits that the register does not have are the layer's.
fn mask_of(mask: c_uint) -> u8 {
    u8::try_from(mask).unwrap_or(u8::MAX)
}

/// `udm_beginatom`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_beginatom(udm: *mut c_void, mask: c_uint) -> c_int {
    let mask = mask_of(mask);
    either(
        udm,
        |inside| Ok(inside.begin(mask)?),
        |kind| kind.begin(mask),
    )
}

/// `udm_endatom`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_endatom(udm: *mut c_void, mask: c_uint) -> c_int {
    let mask = mask_of(mask);
    either(udm, |inside| inside.end(mask), |kind| kind.end(mask))
}

/// `udm_uac`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_uac(udm: *mut c_void, bits: *mut c_uint) -> c_int {
    either(
        udm,
        |inside| put(bits, inside.uac().into()),
        |kind| put(bits, kind.uac()?.into()),
    )
}

/// `udm_spawn`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_spawn(
    udm: *mut c_void,
    function: Option<CFunction>,
    argument: *mut c_void,
) -> c_int {
    inside(udm, |end_point| {
        let function = function.ok_or(Failure::bad("the task is null"))?;
        end_point.spawn(Function {
            udm,
            function,
            argument,
        })
    })
}
