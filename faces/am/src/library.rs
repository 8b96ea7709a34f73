//! The library as a thread has it open: its node, and the objects that C knows by number.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hamlyn::forks::Birth;
use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, Wait};
use hamlyn_am::{Node, NodeOptions};

use crate::boundary::{call, call_outside, protect, put, text};
use crate::bundle::BundleObject;
use crate::dispatch::{self, Dialect};
use crate::endpoint::EndpointObject;
use crate::handle::{Handles, Kind, NO_BUNDLE, NO_ENDPOINT};
use crate::returned::{self, OwnReturned, Policy};
use crate::spmd::Spmd;
use crate::status::{Code, Failure};
use crate::token::Kept;

/// Bytes of the longest medium message (`AM_MaxMedium`). With the rest of a message they fit a packet of one host.
pub(crate) const MEDIUM_BYTES_MAX: usize = 65_000;
/// Bytes of the longest bulk message (`AM_MaxLong`).
pub(crate) const LONG_BYTES_MAX: usize = 1 << 30;
/// Time for which a request waits for a credit or for room, unless the program sets another.
const DEADLINE: Duration = Duration::from_secs(60);
const DEADLINE_VARIABLE: &str = "HAMLYN_AM_DEADLINE";

/// The library of a thread.
pub(crate) struct Library {
    pub(crate) bundles: RefCell<Handles<Rc<BundleObject>>>,
    pub(crate) endpoints: RefCell<Handles<Rc<EndpointObject>>>,
    /// Requests whose token was kept.
    pub(crate) kept: RefCell<Handles<Kept>>,
    /// Messages that come back without having left.
    pub(crate) returned: RefCell<VecDeque<OwnReturned>>,
    pub(crate) spmd: RefCell<Option<Rc<Spmd>>>,
    /// Those that were given to a handler.
    pub(crate) own_returned: Cell<u64>,
    deadline: Cell<Option<Duration>>,
    pub(crate) dialect: Dialect,
    started: Cell<u32>,
    birth: Birth,
    /// The last, so that it ends after all that is in it.
    pub(crate) node: Node,
}

/// A thread of this process has the library open.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

impl Drop for Library {
    fn drop(&mut self) {
        IS_OPEN.store(false, Ordering::Release);
    }
}

thread_local! {
    static LIBRARY: RefCell<Option<Rc<Library>>> = const { RefCell::new(None) };
}

const NOT_INIT: Failure = Failure::new(Code::NotInit, "call AM_Init first");
const OTHER_THREAD: Failure = Failure::resource(
    "another thread has started Active Messages: all calls are made by the thread that called AM_Init",
);

/// The library of this thread.
#[inline]
pub(crate) fn current() -> Result<Rc<Library>, Failure> {
    let found = LIBRARY.try_with(|library| library.borrow().clone());
    match found.ok().flatten() {
        Some(library) if library.birth.is_here() => Ok(library),
        Some(_) => Err(NOT_INIT),
        None if IS_OPEN.load(Ordering::Acquire) && !Birth::is_of_a_child() => Err(OTHER_THREAD),
        None => Err(NOT_INIT),
    }
}

impl Library {
    pub(crate) fn bundle(&self, handle: *const c_void) -> Result<Rc<BundleObject>, Failure> {
        let bundles = self.bundles.borrow();
        bundles.get(handle).cloned().ok_or(NO_BUNDLE)
    }

    #[inline]
    pub(crate) fn endpoint(&self, handle: *const c_void) -> Result<Rc<EndpointObject>, Failure> {
        let endpoints = self.endpoints.borrow();
        endpoints.get(handle).cloned().ok_or(NO_ENDPOINT)
    }

    /// True if it has bundles.
    pub(crate) fn is_used(&self) -> bool {
        self.bundles.borrow().iter().next().is_some()
    }

    /// Calls of `AM_Init` without one of `AM_Terminate`.
    pub(crate) fn started(&self) -> u32 {
        self.started.get()
    }

    pub(crate) fn set_started(&self, started: u32) {
        self.started.set(started);
    }

    /// The time for which a call that may block does.
    pub(crate) fn patience(&self) -> Wait {
        self.deadline.get().map_or(Wait::Forever, Wait::For)
    }
}

/// Opens the library in this thread, with those options of its host and interface.
pub(crate) fn open(
    dialect: Dialect,
    host: Options,
    manager: ManagerOptions,
) -> Result<Rc<Library>, Failure> {
    if IS_OPEN.swap(true, Ordering::AcqRel) && !Birth::is_of_a_child() {
        return Err(OTHER_THREAD);
    }
    let opened = open_alone(dialect, host, manager);
    if opened.is_err() {
        IS_OPEN.store(false, Ordering::Release);
    }
    let library = Rc::new(opened?);
    LIBRARY.with(|place| *place.borrow_mut() = Some(library.clone()));
    Ok(library)
}

fn open_alone(
    dialect: Dialect,
    host: Options,
    manager: ManagerOptions,
) -> Result<Library, Failure> {
    let deadline = seconds(DEADLINE_VARIABLE)?.unwrap_or(DEADLINE);
    let deadline = (!deadline.is_zero()).then_some(deadline);
    let options = node_options()?;
    returned::set_policy(Policy::of_environment()?);
    let manager =
        hamlyn::open_with(host, manager).map_err(|error| Failure::of(Code::Resource, &error))?;
    Ok(Library {
        bundles: RefCell::new(Handles::new(Kind::Bundle)),
        endpoints: RefCell::new(Handles::new(Kind::Endpoint)),
        kept: RefCell::new(Handles::new(Kind::Kept)),
        returned: RefCell::default(),
        spmd: RefCell::default(),
        own_returned: Cell::new(0),
        deadline: Cell::new(deadline),
        dialect,
        started: Cell::new(0),
        birth: Birth::here(),
        node: Node::new(manager, options)?,
    })
}

/// A number of seconds that the environment has; nothing if it has none. 0 is for ever.
fn seconds(variable: &str) -> Result<Option<Duration>, Failure> {
    let Ok(value) = std::env::var(variable) else {
        return Ok(None);
    };
    let seconds = value.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let text = || format!("{variable} cannot be {value:?}: it is a number of seconds");
    let duration = duration.ok_or_else(|| Failure::of(Code::BadArg, &text()))?;
    Ok(Some(duration))
}

/// A number that the environment has.
fn number(variable: &str) -> Result<Option<u16>, Failure> {
    let Ok(value) = std::env::var(variable) else {
        return Ok(None);
    };
    let text = || format!("{variable} cannot be {value:?}: it is a number below 65,536");
    let number = value.parse();
    let number = number.map_err(|_| Failure::of(Code::BadArg, &text()))?;
    Ok(Some(number))
}

/// Options of the node: the layer's own, longer medium messages, and what the environment says.
fn node_options() -> Result<NodeOptions, Failure> {
    let own = NodeOptions::default();
    Ok(NodeOptions {
        medium_bytes_max: MEDIUM_BYTES_MAX as u32,
        credits: number("HAMLYN_AM_CREDITS")?.unwrap_or(own.credits),
        frames: number("HAMLYN_AM_FRAMES")?.unwrap_or(own.frames),
        congestion: seconds("HAMLYN_AM_CONGESTION")?.unwrap_or(own.congestion),
        ..own
    })
}

/// Forgets what a forked child has of its parent's library: nothing of it may be closed here.
pub(crate) fn forget_of_parent() {
    LIBRARY.with(|place| {
        let mut place = place.borrow_mut();
        if place
            .as_ref()
            .is_some_and(|library| !library.birth.is_here())
        {
            std::mem::forget(place.take());
            IS_OPEN.store(false, Ordering::Release);
        }
    });
}

/// Starts the library, or counts one start more.
fn start(dialect: c_int, name: Option<&str>) -> Result<(), Failure> {
    forget_of_parent();
    let dialect = Dialect::of(dialect)?;
    let library = match current() {
        Ok(library) if name.is_some() => {
            drop(library);
            return Err(Failure::new(
                Code::InUse,
                "the library is started already: AMX_InitNamed comes before AM_Init",
            ));
        }
        Ok(library) if library.dialect != dialect => {
            return Err(Failure::bad(
                "the program started the library by am.h and by am1996.h: all of it uses one of them",
            ));
        }
        Ok(library) => library,
        Err(failure) if failure.code == Code::NotInit => {
            let host = name.map_or_else(Options::default, Options::named);
            open(dialect, host, ManagerOptions::default())?
        }
        Err(failure) => return Err(failure),
    };
    library.started.set(library.started.get().saturating_add(1));
    Ok(())
}

/// `AM_Init`, by a header with these numbers.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_init(dialect: c_int) -> c_int {
    protect(|| start(dialect, None))
}

/// `AMX_InitNamed`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_init_named(dialect: c_int, name: *const c_char) -> c_int {
    protect(|| start(dialect, Some(text(name)?)))
}

/// `AM_Terminate`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_terminate() -> c_int {
    protect(forget_of_parent_first);
    call_outside(|library| {
        let left = library.started.get().saturating_sub(1);
        library.started.set(left);
        if left == 0 {
            close(library);
        }
        Ok(())
    })
}

fn forget_of_parent_first() -> Result<(), Failure> {
    forget_of_parent();
    Ok(())
}

/// Time in which what was sent last is handed to its links.
const FLUSH: Wait = Wait::millis(1000);

/// Ends the library: peers are told by what comes back to them.
pub(crate) fn close(library: &Rc<Library>) {
    // A peer that takes nothing does not hold up the end.
    let _ = library.node.flush(FLUSH);
    library.spmd.take();
    library.returned.take();
    *library.kept.borrow_mut() = Handles::new(Kind::Kept);
    *library.endpoints.borrow_mut() = Handles::new(Kind::Endpoint);
    *library.bundles.borrow_mut() = Handles::new(Kind::Bundle);
    let _ = library.node.flush(FLUSH);
    LIBRARY.with(|place| place.take());
}

/// `AMX_SetDeadline`: milliseconds for which a request may wait; below 0 for ever.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_deadline(milliseconds: i64) -> c_int {
    call(|library| {
        let deadline = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        library.deadline.set(deadline);
        Ok(())
    })
}

/// `AMX_SetReturnPolicy`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_set_return_policy(policy: c_int) -> c_int {
    call(|_| {
        returned::set_policy(Policy::of(policy)?);
        Ok(())
    })
}

/// `AMX_statistics_t`.
#[repr(C)]
#[derive(Debug)]
pub struct CStatistics {
    requests_sent: u64,
    requests_taken: u64,
    replies_sent: u64,
    replies_taken: u64,
    empty_replies: u64,
    sent_again: u64,
    returned: u64,
    replies_rejected: u64,
    violations: u64,
}

/// `AMX_GetStatistics`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_get_statistics(statistics: *mut CStatistics) -> c_int {
    call_outside(|library| {
        let counts = library.node.statistics()?;
        put(
            statistics,
            CStatistics {
                requests_sent: counts.requests_sent,
                requests_taken: counts.requests_taken,
                replies_sent: counts.replies_sent,
                replies_taken: counts.replies_taken,
                empty_replies: counts.empty_replies,
                sent_again: counts.sent_again,
                returned: counts.returned + library.own_returned.get(),
                replies_rejected: counts.replies_rejected,
                violations: counts.violations,
            },
        )
    })
}

/// `AM_MaxMedium`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_max_medium() -> c_int {
    MEDIUM_BYTES_MAX as c_int
}

/// `AM_MaxLong`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_max_long() -> c_int {
    LONG_BYTES_MAX as c_int
}

/// True while a handler runs in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_in_handler() -> c_int {
    dispatch::is_running().into()
}
