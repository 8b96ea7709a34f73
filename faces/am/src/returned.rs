//! Messages that come back, for handler 0.

use std::ffi::{c_int, c_void};

use hamlyn_am::{Reason, Returned};

use crate::boundary::{call, put};
use crate::dispatch::{self, Back, RunningMessage};
use crate::library::Library;
use crate::policy::report;
use crate::state::{EndpointObject, EndpointShared, OwnReturned};
use crate::status::Failure;

/// Gives an endpoint the default handler 0.
pub(crate) fn set_default(endpoint: &EndpointObject) -> Result<(), Failure> {
    let mut inner = endpoint.endpoint.borrow_mut();
    // Its report does not name the translation.
    inner.on_returned(|back| report(&back_of(back, -1)))?;
    Ok(())
}

/// The view of a message that the layer returns.
pub(crate) fn view<'a>(endpoint: &EndpointShared, back: &Returned<'a>) -> Back<'a> {
    let translations = endpoint.translations.borrow();
    let to = back
        .translation
        .and_then(|over| translations.number_over(&over));
    back_of(back, to.unwrap_or(-1))
}

fn back_of<'a>(back: &Returned<'a>, to: c_int) -> Back<'a> {
    Back {
        operation: back.operation,
        reason: back.reason,
        to,
        handler: back.handler,
        arguments: back.arguments,
        data: back.data,
        offset: back.offset,
    }
}

fn is_of(library: &Library, message: &OwnReturned, bundle: *mut c_void) -> bool {
    let endpoints = library.endpoints.borrow();
    let endpoint = endpoints.get(message.endpoint);
    // One whose endpoint was freed is nobody's, and goes at the next poll.
    endpoint.is_none_or(|endpoint| endpoint.bundle.get() == bundle)
}

/// True if such a message waits for that bundle.
pub(crate) fn has_any(library: &Library, bundle: *mut c_void) -> bool {
    let waiting = library.returned.borrow();
    waiting
        .iter()
        .any(|message| is_of(library, message, bundle))
}

/// Returns those that wait for that bundle, and gives their number.
pub(crate) fn deliver(library: &Library, bundle: *mut c_void) -> usize {
    if library.returned.borrow().is_empty() {
        return 0;
    }
    let all = library.returned.take().into_iter();
    let (due, rest): (Vec<_>, Vec<_>) = all.partition(|message| is_of(library, message, bundle));
    *library.returned.borrow_mut() = rest.into();
    for message in &due {
        let Ok(endpoint) = library.endpoint(message.endpoint) else {
            continue;
        };
        library.own_returned.set(library.own_returned.get() + 1);
        let back = Back {
            operation: message.operation,
            reason: Reason::Unreachable,
            to: message.to,
            handler: message.handler,
            arguments: &message.arguments,
            data: &message.data,
            offset: message.offset,
        };
        match endpoint.returned.get() {
            Some(handler) => dispatch::run_returned(&endpoint.shared, handler, &back),
            None => report(&back),
        }
    }
    due.len()
}

/// `AMX_returned_t`.
#[repr(C)]
#[derive(Debug)]
pub struct CReturned {
    operation: c_int,
    status: c_int,
    /// Of a reply that was rejected, the reason; otherwise as the status.
    reason: c_int,
    /// The translation; -1 if it was unmapped, and of a reply.
    to: c_int,
    handler: c_int,
    arguments: *const u32,
    count: c_int,
    data: *const c_void,
    length_bytes: usize,
    offset: usize,
}

/// `AMX_GetReturned`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_returned(
    token: *mut c_void,
    returned: *mut CReturned,
) -> c_int {
    call(|_| {
        let running = dispatch::running_of(token).map(|running| running.message);
        let Some(RunningMessage::Returned(back)) = running else {
            return Err(Failure::resource(
                "the token is none of a message that came back, or its handler has returned",
            ));
        };
        // SAFETY: its handler runs, so the message that it was shown is there.
        let back = unsafe { &*back };
        put(
            returned,
            CReturned {
                operation: dispatch::operation_of(back.operation),
                status: dispatch::status_of(back),
                reason: dispatch::code_of(back.reason),
                to: back.to,
                handler: back.handler.into(),
                arguments: back.arguments.as_ptr(),
                count: back.arguments.len() as c_int,
                data: back.data.as_ptr().cast(),
                length_bytes: back.data.len(),
                offset: back.offset as usize,
            },
        )
    })
}
