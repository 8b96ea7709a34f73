//! The library as a thread has it open: its node, and the objects that C knows by number.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hamlyn::forks::Birth;
use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, Wait};
use hamlyn_am::{Node, NodeOptions};
use hamlyn_job::Job;

use crate::collective::Collective;
use crate::environment::setting;
use crate::handle::{Handles, Kind, NO_BUNDLE, NO_ENDPOINT};
use crate::policy::{self, Policy};
use crate::state::{BundleObject, Dialect, EndpointObject, Kept, OwnReturned};
use crate::status::{Code, Failure};

/// Bytes of the longest medium message (`AM_MaxMedium`). With the rest of a message they fit a
/// packet of one host.
pub(crate) const MEDIUM_BYTES_MAX: usize = 65_000;
/// Bytes of the longest bulk message (`AM_MaxLong`).
pub(crate) const LONG_BYTES_MAX: usize = 1 << 30;
/// Time for which a request waits for a credit or for room, unless the program sets another.
const DEADLINE: Duration = Duration::from_secs(60);
const DEADLINE_VARIABLE: &str = "HAMLYN_AM_DEADLINE";

pub(crate) type ExitCallback = unsafe extern "C" fn(c_int);

/// A process's part in a job.
pub(crate) struct Spmd {
    pub(crate) job: Job,
    pub(crate) collective: Collective,
    pub(crate) bundle: Rc<BundleObject>,
    pub(crate) callback: Cell<Option<ExitCallback>>,
}

/// The library of a thread.
pub(crate) struct Library {
    pub(crate) bundles: RefCell<Handles<Rc<BundleObject>>>,
    pub(crate) endpoints: RefCell<Handles<Rc<EndpointObject>>>,
    /// Requests whose token was kept.
    pub(crate) kept: RefCell<Handles<Kept>>,
    /// Messages that come back without having left.
    pub(crate) returned: RefCell<VecDeque<OwnReturned>>,
    /// The number of those that were given to a handler.
    pub(crate) own_returned: Cell<u64>,
    pub(crate) spmd: RefCell<Option<Rc<Spmd>>>,
    /// The time for which a call that may block does.
    pub(crate) deadline: Cell<Wait>,
    pub(crate) dialect: Dialect,
    /// Calls of `AM_Init` without one of `AM_Terminate`.
    pub(crate) started: Cell<u32>,
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
    let deadline = match seconds(DEADLINE_VARIABLE)?.unwrap_or(DEADLINE) {
        Duration::ZERO => Wait::Forever,
        deadline => Wait::For(deadline),
    };
    let options = node_options()?;
    policy::set(Policy::of_environment()?);
    let manager =
        hamlyn::open_with(host, manager).map_err(|error| Failure::of(Code::Resource, &error))?;
    Ok(Library {
        bundles: RefCell::new(Handles::new(Kind::Bundle)),
        endpoints: RefCell::new(Handles::new(Kind::Endpoint)),
        kept: RefCell::new(Handles::new(Kind::Kept)),
        returned: RefCell::default(),
        own_returned: Cell::new(0),
        spmd: RefCell::default(),
        deadline: Cell::new(deadline),
        dialect,
        started: Cell::new(0),
        birth: Birth::here(),
        node: Node::new(manager, options)?,
    })
}

fn seconds(variable: &str) -> Result<Option<Duration>, Failure> {
    setting(variable, "a number of seconds", hamlyn_job::seconds)
}

fn number(variable: &str) -> Result<Option<u16>, Failure> {
    setting(variable, "a number below 65,536", |value| {
        value.parse().ok()
    })
}

/// Options of the node: the layer's own, longer medium messages, and those of the environment.
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
