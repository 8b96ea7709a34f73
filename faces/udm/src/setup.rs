//! End points: opened, given handlers, closed.

use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_boundary::{options_or, text, wait_of};
use hamlyn_udm::{Interrupt, SignalOptions, Signals, Udm, UdmOptions};

use crate::boundary::{inside, outside, protect, put};
use crate::group::{CGroup, Description, Hosts};
use crate::library::{close_if_unused, current, current_or_new};
use crate::node::{CFunction, Function, State};
use crate::object::{IN_HANDLER, Kind, Object, Sections};
use crate::running::running_of;
use crate::status::{Code, Failure};

/// `udm_options`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct COptions {
    group: CGroup,
    name: *const c_char,
    interrupts: c_int,
    queue_bytes: u32,
    wait_ms: i64,
    open_ms: i64,
    area_bytes: usize,
    interrupt_signal: c_int,
}

impl COptions {
    const DEFAULT: Self = Self {
        group: CGroup::OF_JOB,
        name: std::ptr::null(),
        interrupts: SAFEPOINT,
        queue_bytes: 0,
        wait_ms: 0,
        open_ms: 0,
        area_bytes: 0,
        interrupt_signal: 0,
    };
}

const SAFEPOINT: c_int = 0;
const POLLING: c_int = 1;
const THREAD: c_int = 2;
const SIGNAL: c_int = 3;

/// The longest wait for all nodes that may be said in milliseconds; 0 is the default.
pub(crate) fn wait_or(milliseconds: i64, default: Wait) -> Wait {
    match milliseconds {
        0 => default,
        milliseconds => wait_of(milliseconds),
    }
}

fn options_of(options: &COptions) -> Result<UdmOptions, Failure> {
    let default = UdmOptions::default();
    let interrupt = match options.interrupts {
        SAFEPOINT | THREAD | SIGNAL => Interrupt::Safepoint,
        POLLING => Interrupt::Polling,
        _ => {
            return Err(Failure::bad(
                "interrupts are UDM_SAFEPOINT, UDM_POLLING, UDM_THREAD or UDM_SIGNAL",
            ));
        }
    };
    let queue_bytes = match options.queue_bytes {
        0 => default.queue_bytes,
        bytes => bytes,
    };
    Ok(UdmOptions {
        interrupt,
        wait: wait_or(options.wait_ms, default.wait),
        queue_bytes,
        area_bytes: options.area_bytes,
    })
}

/// Opens an end point; the library is closed again by the caller if that fails.
fn open(options: &COptions) -> Result<*mut c_void, Failure> {
    let name = match options.name.is_null() {
        true => "main",
        false => text(options.name)?,
    };
    let own = options_of(options)?;
    let description = Description::new(&options.group)?;
    let wait = wait_or(options.open_ms, description.start);
    let library = current_or_new()?;
    let is_threaded = options.interrupts == THREAD;
    let is_by_signal = options.interrupts == SIGNAL;
    let signal = match options.interrupt_signal {
        0 => SignalOptions::default(),
        signal => SignalOptions::of(signal),
    };
    if is_by_signal {
        // Before other nodes meet it.
        signal.check()?;
    }
    let group = library.group(description, is_threaded)?;
    let state = State {
        is_by_signal,
        ..State::default()
    };
    let kind = match &group.hosts {
        Hosts::Own(group) => {
            let udm = Udm::open(group, name, own, state, wait)?;
            match is_by_signal {
                true => Kind::Signals(Sections::of(by_signal(udm, signal)?)),
                false => Kind::Own(Box::new(udm)),
            }
        }
        Hosts::Shared(_) if is_by_signal => return Err(SHARED),
        Hosts::Shared(group) => {
            let udm = Udm::open(group, name, own, state, wait)?;
            match is_threaded {
                true => Kind::Upcalls(Sections::of(udm.with_upcalls()?)),
                false => Kind::Own(Box::new(udm)),
            }
        }
    };
    library.insert(|_| Rc::new(Object::new(kind, group)))
}

const SHARED: Failure = Failure::new(
    Code::InUse,
    "the group is open with UDM_THREAD: an end point with UDM_SIGNAL takes another group",
);

/// Has a signal run the handlers.
fn by_signal(udm: Udm<State>, options: SignalOptions) -> Result<Signals<State>, Failure> {
    // SAFETY: the header demands of the program's handlers what the layer does, and the handler
    // around them does no more.
    Ok(unsafe { udm.with_signals(options) }?)
}

/// `udm_open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_open(udm: *mut *mut c_void, options: *const COptions) -> c_int {
    protect(|| {
        put(udm, std::ptr::null_mut())?;
        let opened = open(options_or(options, &COptions::DEFAULT));
        if opened.is_err() {
            close_if_unused();
        }
        put(udm, opened?)
    })
}

/// The time in which messages that were injected last are handed to their links.
const FLUSH: Wait = Wait::millis(1000);

/// `udm_close`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_close(udm: *mut c_void) -> c_int {
    protect(|| {
        if running_of(udm)?.is_some() {
            return Err(IN_HANDLER);
        }
        let library = current()?;
        let object = library.object(udm)?;
        // A peer that takes nothing does not hold up the end.
        let flushed = object.kind()?.with(|udm| Ok(udm.flush(FLUSH)?));
        library.remove(udm);
        drop(object);
        drop(library);
        close_if_unused();
        match flushed {
            Ok(false) => Err(Failure::new(
                Code::TimedOut,
                "the end point is closed, and not all messages were handed over: call udm_flush first",
            )),
            // An end point whose handlers panicked is closed all the same.
            Ok(true) | Err(_) => Ok(()),
        }
    })
}

/// `udm_on`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_on(
    udm: *mut c_void,
    handler: u16,
    function: Option<CFunction>,
    argument: *mut c_void,
) -> c_int {
    outside(udm, |end_point| {
        let function = function.ok_or(Failure::bad("the handler is null"))?;
        let function = Function {
            udm,
            function,
            argument,
        };
        Ok(end_point.on(handler, function)?)
    })
}

/// `udm_self`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_self(udm: *mut c_void, node: *mut u32) -> c_int {
    inside(udm, |udm| put(node, udm.me()))
}

/// `udm_nodes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_nodes(udm: *mut c_void, nodes: *mut u32) -> c_int {
    inside(udm, |udm| put(nodes, udm.nodes()))
}
