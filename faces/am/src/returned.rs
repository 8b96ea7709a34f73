//! Messages that come back: for handler 0 of the program, or for the default one, which reports and goes on.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use hamlyn_am::{Operation, Reason, Returned};

use crate::boundary::{call, put};
use crate::dispatch::{self, Back, RunningMessage};
use crate::endpoint::EndpointObject;
use crate::library::Library;
use crate::status::{Code, Failure};

/// The action of the default handler 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// One line on standard error, at most each second.
    Report,
    /// The same, and the end of the process.
    Abort,
    /// Nothing but the count.
    Silent,
}

const VARIABLE: &str = "HAMLYN_AM_RETURNED";
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

impl Policy {
    pub(crate) fn of(number: c_int) -> Result<Self, Failure> {
        match number {
            0 => Ok(Self::Report),
            1 => Ok(Self::Abort),
            2 => Ok(Self::Silent),
            _ => Err(Failure::bad(
                "the policy is AMX_RETURN_REPORT, AMX_RETURN_ABORT or AMX_RETURN_SILENT",
            )),
        }
    }

    pub(crate) fn of_environment() -> Result<Self, Failure> {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("report") => Ok(Self::Report),
            Ok("abort") => Ok(Self::Abort),
            Ok("silent") => Ok(Self::Silent),
            Ok(other) => {
                let text = format!("{VARIABLE} cannot be {other:?}: it is report, abort or silent");
                Err(Failure::of(Code::BadArg, &text))
            }
        }
    }
}

thread_local! {
    static REPORTED: Cell<Option<Instant>> = const { Cell::new(None) };
    static UNREPORTED: Cell<u64> = const { Cell::new(0) };
    static POLICY: Cell<Policy> = const { Cell::new(Policy::Report) };
}

pub(crate) fn set_policy(policy: Policy) {
    POLICY.set(policy);
}

/// The default handler 0.
fn report(reason: Reason, operation: Operation, handler: u8, arguments: usize, data: usize) {
    let policy = POLICY.get();
    if policy == Policy::Silent {
        return;
    }
    let is_due = REPORTED
        .get()
        .is_none_or(|last| last.elapsed() >= BETWEEN_REPORTS);
    if !is_due && policy == Policy::Report {
        return UNREPORTED.set(UNREPORTED.get() + 1);
    }
    REPORTED.set(Some(Instant::now()));
    let before = match UNREPORTED.take() {
        0 => String::new(),
        count => format!(" ({count} before it were not reported)"),
    };
    // Nobody is left to be told if it cannot be written.
    use std::io::Write as _;
    let _ = writeln!(
        std::io::stderr(),
        "am: {operation:?} for handler {handler} with {arguments} arguments and {data} bytes came back: {reason}{before}; \
         set handler 0 to treat such messages"
    );
    if policy == Policy::Abort {
        std::process::abort();
    }
}

/// Gives an endpoint the default handler 0.
pub(crate) fn set_default(endpoint: &EndpointObject) -> Result<(), Failure> {
    let mut inner = endpoint.endpoint.borrow_mut();
    inner.on_returned(|back| {
        report(
            back.reason,
            back.operation,
            back.handler,
            back.arguments.len(),
            back.data.len(),
        );
    })?;
    Ok(())
}

/// The view of a message that the layer returns.
pub(crate) fn view<'a>(
    endpoint: &crate::endpoint::EndpointShared,
    back: &Returned<'a>,
) -> Back<'a> {
    let translations = endpoint.translations.borrow();
    let to = back
        .translation
        .and_then(|over| translations.number_over(&over));
    Back {
        operation: back.operation,
        reason: back.reason,
        to: to.unwrap_or(-1),
        handler: back.handler,
        arguments: back.arguments,
        data: back.data,
        offset: back.offset,
    }
}

/// A message that comes back without having left.
#[derive(Debug)]
pub(crate) struct OwnReturned {
    pub(crate) endpoint: *mut c_void,
    pub(crate) to: c_int,
    pub(crate) operation: Operation,
    pub(crate) handler: u8,
    pub(crate) arguments: Vec<u32>,
    pub(crate) data: Vec<u8>,
    pub(crate) offset: u64,
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

/// Returns those that wait for that bundle; how many.
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
        let reason = Reason::Unreachable;
        match endpoint.returned.get() {
            Some(handler) => {
                let back = Back {
                    operation: message.operation,
                    reason,
                    to: message.to,
                    handler: message.handler,
                    arguments: &message.arguments,
                    data: &message.data,
                    offset: message.offset,
                };
                dispatch::run_returned(&endpoint.shared, handler, &back);
            }
            None => report(
                reason,
                message.operation,
                message.handler,
                message.arguments.len(),
                message.data.len(),
            ),
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
        // SAFETY: its handler runs, so what it was shown is there.
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
