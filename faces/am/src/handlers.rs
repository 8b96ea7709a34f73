//! The handlers of an endpoint, by number.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use crate::boundary::{call, call_outside, count_of, put};
use crate::dispatch;
use crate::returned;
use crate::state::{EndpointObject, HANDLERS_MAX, Handler};
use crate::status::{Code, Failure};

/// Sets or clears a handler.
fn set(endpoint: &EndpointObject, number: u8, handler: Option<Handler>) -> Result<(), Failure> {
    let mut table = endpoint.handlers.borrow_mut();
    let count = table.is_set.len();
    let place = table.is_set.get_mut(usize::from(number)).ok_or_else(|| {
        let text = format!("handler {number}: the endpoint has {count} (AM_SetNumHandlers)");
        Failure::of(Code::BadArg, &text)
    })?;
    let shared = Rc::clone(&endpoint.shared);
    let mut inner = endpoint.endpoint.borrow_mut();
    match (number, handler) {
        (0, Some(handler)) => inner.on_returned(move |back| {
            let back = returned::view(&shared, back);
            dispatch::run_returned(&shared, handler, &back);
        })?,
        (0, None) => {
            drop(inner);
            returned::set_default(endpoint)?;
        }
        (_, Some(handler)) => inner.on_any(number, move |call, incoming, arguments| {
            dispatch::run(&shared, handler, call, &incoming, arguments);
            Ok(())
        })?,
        (_, None) => inner.clear_handler(number)?,
    }
    *place = handler.is_some();
    if number == 0 {
        endpoint.returned.set(handler);
    }
    Ok(())
}

/// `AM_SetHandler`. Null removes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_set_handler(
    endpoint: *mut c_void,
    number: u8,
    handler: Option<Handler>,
) -> c_int {
    call_outside(|library| set(&*library.endpoint(endpoint)?, number, handler))
}

/// `AM_SetHandlerAny`: the first number from 1 on that has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_set_handler_any(
    endpoint: *mut c_void,
    number: *mut u8,
    handler: Option<Handler>,
) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        if number.is_null() || handler.is_none() {
            return Err(Failure::bad(
                "the handler or the place for its number is null",
            ));
        }
        let free = {
            let table = endpoint.handlers.borrow();
            (1..table.is_set.len()).find(|&number| !table.is_set[number])
        };
        let free = free.ok_or(Failure::resource("all handlers of the endpoint are set"))? as u8;
        set(&endpoint, free, handler)?;
        put(number, free)
    })
}

/// `AM_GetNumHandlers`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_num_handlers(
    endpoint: *mut c_void,
    count: *mut c_int,
) -> c_int {
    call(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let handlers = endpoint.handlers.borrow().is_set.len();
        put(count, handlers as c_int)
    })
}

/// `AM_SetNumHandlers`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_num_handlers(endpoint: *mut c_void, count: c_int) -> c_int {
    call_outside(|library| {
        let endpoint = library.endpoint(endpoint)?;
        let count = count_of(count, HANDLERS_MAX, "an endpoint has 1 to 256 handlers")?;
        let mut table = endpoint.handlers.borrow_mut();
        if table.is_set.iter().skip(count).any(|&is_set| is_set) {
            return Err(Failure::new(
                Code::InUse,
                "a handler of a higher number is set: remove it first",
            ));
        }
        table.is_set.resize(count, false);
        Ok(())
    })
}
