//! The way in from C: it finds the end point of a call, or the handler that makes it.

use std::ffi::{c_int, c_void};

pub(crate) use hamlyn_boundary::protect;

use crate::library::current;
use crate::node::{Inside, Outside};
use crate::object::{IN_HANDLER, Kind, NO_SECTION, Object};
use crate::running::running_of;
use crate::status::Failure;

/// Carries out a function that handlers and tasks may call, too.
#[inline]
pub(crate) fn inside(
    udm: *mut c_void,
    act: impl FnOnce(&mut dyn Inside) -> Result<(), Failure>,
) -> c_int {
    inside_if(udm, |_| Ok(()), act)
}

/// The same of one that shows a message: with upcalls the program is in a section then, as the
/// next handler takes the place of the message.
#[inline]
pub(crate) fn showing(
    udm: *mut c_void,
    act: impl FnOnce(&mut dyn Inside) -> Result<(), Failure>,
) -> c_int {
    let check = |kind: &Kind| match kind.is_beside_handlers() {
        true => Err(NO_SECTION),
        false => Ok(()),
    };
    inside_if(udm, check, act)
}

/// The same if the program, unless a handler or a task calls, may make the call now.
#[inline]
fn inside_if(
    udm: *mut c_void,
    check: impl FnOnce(&Kind) -> Result<(), Failure>,
    act: impl FnOnce(&mut dyn Inside) -> Result<(), Failure>,
) -> c_int {
    protect(|| match running_of(udm)? {
        Some(inside) => act(inside),
        None => {
            let object = current()?.object(udm)?;
            let mut kind = object.kind()?;
            check(&kind)?;
            kind.with(|outside| act(outside))
        }
    })
}

/// The same of one that is different for the program.
pub(crate) fn either(
    udm: *mut c_void,
    inside: impl FnOnce(&mut dyn Inside) -> Result<(), Failure>,
    outside: impl FnOnce(&mut Kind) -> Result<(), Failure>,
) -> c_int {
    protect(|| match running_of(udm)? {
        Some(running) => inside(running),
        None => {
            let object = current()?.object(udm)?;
            outside(&mut *object.kind()?)
        }
    })
}

/// Carries out a function that only the program may call. It fails, too, if a handler that ran has
/// not extracted its message.
#[inline]
pub(crate) fn outside(
    udm: *mut c_void,
    act: impl FnOnce(&mut dyn Outside) -> Result<(), Failure>,
) -> c_int {
    protect(|| {
        if running_of(udm)?.is_some() {
            return Err(IN_HANDLER);
        }
        let object = current()?.object(udm)?;
        object.kind()?.with(|outside| {
            act(outside)?;
            outside.check_handlers()
        })
    })
}

/// Carries out a function about the object itself.
pub(crate) fn object(udm: *mut c_void, act: impl FnOnce(&Object) -> Result<(), Failure>) -> c_int {
    protect(|| act(&*current()?.object(udm)?))
}

/// Writes a result where the caller wants it.
#[inline]
pub(crate) fn put<T>(place: *mut T, value: T) -> Result<(), Failure> {
    Ok(hamlyn_boundary::put(place, value)?)
}

/// The same unless the caller does not want it.
#[inline]
pub(crate) fn put_if_wanted<T>(place: *mut T, value: T) -> Result<(), Failure> {
    match place.is_null() {
        true => Ok(()),
        false => put(place, value),
    }
}
