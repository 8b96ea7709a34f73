//! Requests. Each connects to its destination if it is the first over its translation.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn::host::ConnectError;
use hamlyn_am::{Endpoint, Error, Operation, Translation};

use crate::boundary::{arguments, bytes, call_outside, put};
use crate::bundle::note_blocked;
use crate::library::{LONG_BYTES_MAX, Library, MEDIUM_BYTES_MAX};
use crate::state::{EndpointObject, OwnReturned};
use crate::status::{Failure, NOT_SENT};
use crate::translations::Mapped;

/// Time for which the first message over a translation waits for the connection if it is not to
/// wait for anything else.
const CONNECT: Wait = Wait::millis(1000);

/// A message as it comes back if its destination cannot be reached.
struct Outgoing<'a> {
    operation: Operation,
    handler: u8,
    arguments: &'a [u32],
    data: &'a [u8],
    offset: u64,
}

/// The outcome of a connection.
enum Connected {
    Over(Translation),
    /// It did not come about in time.
    NotYet,
    /// Nobody is there.
    Never,
}

#[inline]
fn connect(endpoint: &Endpoint, mapped: &Mapped, wait: Wait) -> Result<Connected, Failure> {
    match mapped.inner.get() {
        Some(inner) => Ok(Connected::Over(inner)),
        None => connect_first(endpoint, mapped, wait),
    }
}

#[cold]
fn connect_first(endpoint: &Endpoint, mapped: &Mapped, wait: Wait) -> Result<Connected, Failure> {
    match endpoint.map(&mapped.name, mapped.tag, wait) {
        Ok(inner) => {
            mapped.inner.set(Some(inner));
            Ok(Connected::Over(inner))
        }
        Err(Error::Connect(ConnectError::Stalled { .. })) => Ok(Connected::NotYet),
        Err(Error::Connect(ConnectError::Host(error))) => Err(Error::Host(error).into()),
        Err(Error::Connect(_) | Error::PeerLost(_)) => Ok(Connected::Never),
        Err(error) => Err(error.into()),
    }
}

/// Sends a request. One whose destination is gone comes back, as one does that was under way.
#[inline]
fn send(
    library: &Rc<Library>,
    (endpoint, to, is_async): (*mut c_void, c_int, c_int),
    outgoing: &Outgoing<'_>,
    act: impl FnOnce(&Endpoint, &Translation, Wait) -> Result<(), Error>,
) -> Result<(), Failure> {
    if outgoing.handler == 0 {
        return Err(Failure::bad(
            "handler 0 is the one for messages that come back: address 1 to 255",
        ));
    }
    let object = library.endpoint(endpoint)?;
    let mapped = Rc::clone(object.shared.translations.borrow().mapped(to)?);
    let deadline = library.deadline.get();
    let (wait, patience) = match is_async != 0 {
        true => (Wait::Poll, CONNECT),
        false => (deadline, deadline),
    };
    let inner = object.endpoint.borrow();
    let over = match connect(&inner, &mapped, patience)? {
        Connected::Over(over) => over,
        Connected::NotYet => return Err(note_blocked(library, object.bundle.get(), None)),
        Connected::Never => {
            come_back(library, &object, to, outgoing);
            return Ok(());
        }
    };
    match act(&inner, &over, wait) {
        Ok(()) => Ok(()),
        Err(Error::WouldBlock(_)) => Err(note_blocked(library, object.bundle.get(), Some(over))),
        Err(Error::PeerLost(_)) => {
            mapped.inner.set(None);
            // It connects anew, if it may.
            let _ = inner.unmap(over);
            come_back(library, &object, to, outgoing);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

#[cold]
fn come_back(library: &Library, endpoint: &EndpointObject, to: c_int, outgoing: &Outgoing<'_>) {
    library.returned.borrow_mut().push_back(OwnReturned {
        endpoint: endpoint.shared.handle,
        to,
        operation: outgoing.operation,
        handler: outgoing.handler,
        arguments: outgoing.arguments.to_vec(),
        data: outgoing.data.to_vec(),
        offset: outgoing.offset,
    });
}

/// `AM_RequestM`, and with `is_async` `AMX_TryRequestM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_request(
    endpoint: *mut c_void,
    to: c_int,
    handler: u8,
    is_async: c_int,
    count: c_int,
    values: *const u32,
) -> c_int {
    call_outside(|library| {
        let arguments = arguments(values, count)?;
        let outgoing = Outgoing {
            operation: Operation::Request,
            handler,
            arguments,
            data: &[],
            offset: 0,
        };
        send(
            library,
            (endpoint, to, is_async),
            &outgoing,
            |endpoint, over, wait| endpoint.request(over, handler, arguments, wait),
        )
    })
}

/// `AM_RequestIM`, and with `is_async` `AMX_TryRequestIM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_request_i(
    endpoint: *mut c_void,
    to: c_int,
    handler: u8,
    data: *const c_void,
    length_bytes: usize,
    is_async: c_int,
    count: c_int,
    values: *const u32,
) -> c_int {
    call_outside(|library| {
        let (arguments, data) = (arguments(values, count)?, bytes(data, length_bytes)?);
        if length_bytes > MEDIUM_BYTES_MAX {
            return Err(Failure::bad(
                "a medium message has AM_MaxMedium() bytes at most: send it in parts, or as a bulk message",
            ));
        }
        let outgoing = Outgoing {
            operation: Operation::RequestMedium,
            handler,
            arguments,
            data,
            offset: 0,
        };
        send(
            library,
            (endpoint, to, is_async),
            &outgoing,
            |endpoint, over, wait| endpoint.request_medium(over, handler, data, arguments, wait),
        )
    })
}

/// `AM_RequestXferM`, and with `is_async` `AM_RequestXferAsyncM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_request_xfer(
    endpoint: *mut c_void,
    to: c_int,
    offset: usize,
    handler: u8,
    data: *const c_void,
    length_bytes: usize,
    is_async: c_int,
    count: c_int,
    values: *const u32,
) -> c_int {
    call_outside(|library| {
        let (arguments, data) = (arguments(values, count)?, bytes(data, length_bytes)?);
        if length_bytes > LONG_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let offset = offset as u64;
        let outgoing = Outgoing {
            operation: Operation::Transfer,
            handler,
            arguments,
            data,
            offset,
        };
        send(
            library,
            (endpoint, to, is_async),
            &outgoing,
            |endpoint, over, wait| endpoint.transfer(over, handler, offset, data, arguments, wait),
        )
    })
}

const TOO_LONG: Failure =
    Failure::bad("a bulk message has AM_MaxLong() bytes at most: send it in parts");

/// `AM_GetXferM`, and with `is_async` `AM_GetXferAsyncM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_xfer(
    endpoint: *mut c_void,
    to: c_int,
    from_offset: usize,
    handler: u8,
    to_offset: usize,
    length_bytes: usize,
    is_async: c_int,
    count: c_int,
    values: *const u32,
) -> c_int {
    call_outside(|library| {
        let arguments = arguments(values, count)?;
        if length_bytes > LONG_BYTES_MAX {
            return Err(TOO_LONG);
        }
        let from = from_offset as u64;
        let range = from..from.saturating_add(length_bytes as u64);
        let outgoing = Outgoing {
            operation: Operation::Get,
            handler,
            arguments,
            data: &[],
            offset: from,
        };
        send(
            library,
            (endpoint, to, is_async),
            &outgoing,
            |endpoint, over, wait| {
                endpoint.get(over, handler, range, to_offset as u64, arguments, wait)
            },
        )
    })
}

/// `AMX_MaxMediumTo`: connects to the destination, if nobody has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_max_medium_to(
    endpoint: *mut c_void,
    to: c_int,
    length_bytes: *mut c_int,
) -> c_int {
    call_outside(|library| {
        let object = library.endpoint(endpoint)?;
        let mapped = Rc::clone(object.shared.translations.borrow().mapped(to)?);
        let inner = object.endpoint.borrow();
        match connect(&inner, &mapped, library.deadline.get())? {
            Connected::Over(over) => put(length_bytes, inner.medium_bytes_max(&over)? as c_int),
            Connected::NotYet => Err(NOT_SENT),
            Connected::Never => Err(Failure::resource("the destination's process is gone")),
        }
    })
}

/// `AMX_GetOutstanding`: requests that are neither answered nor returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_outstanding(endpoint: *mut c_void, count: *mut c_int) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let outstanding = endpoint.endpoint.borrow().outstanding()?;
        put(count, outstanding as c_int)
    })
}
