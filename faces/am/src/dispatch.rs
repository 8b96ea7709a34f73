//! The way out to handlers: a function of C is called with as many arguments as its message has.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::rc::Rc;

use hamlyn_am::{Call, Incoming, Operation, Reason};

use crate::kind;
use crate::state::{Dialect, EndpointShared, Handler};

/// The message whose handler runs.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub(crate) token: *mut c_void,
    pub(crate) endpoint: *const EndpointShared,
    pub(crate) message: RunningMessage,
}

/// Pointers to what the layer shows a handler, good while it runs.
#[derive(Clone, Copy)]
pub(crate) enum RunningMessage {
    Call(*mut Call<'static>),
    Returned(*const Back<'static>),
}

/// A message that came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Back<'a> {
    pub(crate) operation: Operation,
    pub(crate) reason: Reason,
    /// The number of its translation, or -1.
    pub(crate) to: c_int,
    pub(crate) handler: u8,
    pub(crate) arguments: &'a [u32],
    pub(crate) data: &'a [u8],
    pub(crate) offset: u64,
}

thread_local! {
    static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
    static SERIAL: Cell<u64> = const { Cell::new(0) };
}

/// True while a handler runs in this thread.
#[inline]
pub(crate) fn is_running() -> bool {
    RUNNING.get().is_some()
}

/// The message of that token, if its handler runs now.
pub(crate) fn running_of(token: *const c_void) -> Option<Running> {
    RUNNING
        .get()
        .filter(|running| running.token.cast_const() == token)
}

/// Runs `function` with a token for that message.
fn with_token(
    endpoint: &Rc<EndpointShared>,
    message: RunningMessage,
    function: impl FnOnce(*mut c_void),
) {
    let serial = SERIAL.get().wrapping_add(1);
    SERIAL.set(serial);
    let token = hamlyn_boundary::serial(kind::RUNNING, serial);
    let before = RUNNING.replace(Some(Running {
        token,
        endpoint: Rc::as_ptr(endpoint),
        message,
    }));
    function(token);
    RUNNING.set(before);
}

/// Calls a function with these arguments, in two lists.
macro_rules! call_one {
    ($function:expr, ($($first:expr => $type:ty),*), [$($name:ident)*]) => {{
        // SAFETY: the program set it as the handler of messages with that many arguments, as the
        // header demands. One that takes fewer reads fewer, as the calling conventions of all our
        // targets let functions of C do.
        unsafe {
            let function = std::mem::transmute::<
                Handler,
                unsafe extern "C" fn($($type,)* $(call_one!(@argument $name)),*),
            >($function);
            function($($first,)* $($name as c_int),*);
        }
    }};
    (@argument $name:ident) => { c_int };
}

/// Calls a function with as many arguments as the message has.
macro_rules! call_arms {
    ($function:expr, $arguments:expr, $first:tt, $([$($name:ident)*])*) => {
        match *$arguments {
            $([$($name),*] => call_one!($function, $first, [$($name)*]),)*
            // A message has no more.
            _ => {}
        }
    };
}

macro_rules! call_handler {
    ($function:expr, $arguments:expr, $first:tt) => {
        call_arms!($function, $arguments, $first,
            [] [a] [a b] [a b c] [a b c d] [a b c d e] [a b c d e f] [a b c d e f g] [a b c d e f g h]
            [a b c d e f g h i] [a b c d e f g h i j] [a b c d e f g h i j k] [a b c d e f g h i j k l]
            [a b c d e f g h i j k l m] [a b c d e f g h i j k l m n] [a b c d e f g h i j k l m n o]
            [a b c d e f g h i j k l m n o p]
        )
    };
}

/// Runs a handler of the program.
#[inline]
pub(crate) fn run(
    endpoint: &Rc<EndpointShared>,
    handler: Handler,
    call: &mut Call<'_>,
    incoming: &Incoming<'_>,
    arguments: &[u32],
) {
    let message = RunningMessage::Call(std::ptr::from_mut(call).cast());
    with_token(endpoint, message, |token| match incoming {
        Incoming::Short => call_handler!(handler, arguments, (token => *mut c_void)),
        Incoming::Medium(data) => endpoint.with_copy(data, |copy| {
            call_with_data(handler, arguments, token, copy, data.len());
        }),
        Incoming::Bulk(range) => {
            let (place, length) = place_of(endpoint, range);
            call_with_data(handler, arguments, token, place, length);
        }
    });
}

/// Calls a medium or bulk handler.
#[inline]
fn call_with_data(
    handler: Handler,
    arguments: &[u32],
    token: *mut c_void,
    data: *mut c_void,
    length: usize,
) {
    call_handler!(
        handler,
        arguments,
        (token => *mut c_void, data => *mut c_void, length => usize)
    );
}

/// The second and third arguments of a bulk handler.
fn place_of(endpoint: &EndpointShared, range: &Range<u64>) -> (*mut c_void, usize) {
    let length = range.end.saturating_sub(range.start) as usize;
    let place = match endpoint.dialect {
        Dialect::Today => endpoint
            .segment
            .get()
            .0
            .wrapping_byte_add(range.start as usize),
        // An `int`, which travels as a pointer does.
        Dialect::Of1996 => std::ptr::without_provenance_mut(range.start as usize),
    };
    (place, length)
}

type ReturnedHandler = unsafe extern "C" fn(c_int, c_int, *mut c_void);

/// Runs handler 0 of the program.
pub(crate) fn run_returned(endpoint: &Rc<EndpointShared>, handler: Handler, returned: &Back<'_>) {
    let (status, operation) = match endpoint.dialect {
        Dialect::Today => (status_of(returned), operation_of(returned.operation)),
        Dialect::Of1996 => (1 << (status_of(returned) - 1), operation_of_1996(returned)),
    };
    let message = RunningMessage::Returned(std::ptr::from_ref(returned).cast());
    // SAFETY: the program set it as handler 0, which has this type, as the header demands.
    let function = unsafe { std::mem::transmute::<Handler, ReturnedHandler>(handler) };
    with_token(endpoint, message, |token| {
        // SAFETY: as above.
        unsafe { function(status, operation, token) }
    });
}

/// `EBADTAG` and its like.
pub(crate) fn status_of(returned: &Back<'_>) -> c_int {
    if returned.operation == Operation::Reply {
        // Its requester rejected it; the reason is told by `AMX_GetReturned`.
        return 10;
    }
    code_of(returned.reason)
}

/// The code of a reason alone.
pub(crate) fn code_of(reason: Reason) -> c_int {
    match reason {
        Reason::BadTag => 3,
        Reason::BadHandler => 4,
        Reason::BadOffset | Reason::Moved => 5,
        Reason::BadLength => 6,
        Reason::BadEndpoint => 7,
        Reason::Congestion => 8,
        Reason::Unreachable => 9,
        // A reason of a later version of the layer.
        _ => 1,
    }
}

/// `AM_REQUEST_M` and its like.
pub(crate) fn operation_of(operation: Operation) -> c_int {
    match operation {
        Operation::Request => 1,
        Operation::RequestMedium => 2,
        Operation::Transfer => 3,
        Operation::Reply => 4,
        Operation::Get => 7,
    }
}

/// The same in 1996: a bit of the operation with up to 4 or up to 8 arguments, and one of the
/// direction.
fn operation_of_1996(returned: &Back<'_>) -> c_int {
    const REQUEST: c_int = 0x1000_0000;
    const REPLY: c_int = 0x2000_0000;
    let (few, direction) = match returned.operation {
        Operation::Request => (0x01, REQUEST),
        Operation::RequestMedium => (0x04, REQUEST),
        Operation::Transfer => (0x10, REQUEST),
        Operation::Get => (0x40, REQUEST),
        Operation::Reply => (0x01, REPLY),
    };
    let bit = if returned.arguments.len() > 4 {
        2 * few
    } else {
        few
    };
    bit | direction
}
