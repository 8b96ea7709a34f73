//! The library as a thread has it open: its node, and the objects that C knows by number.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::time::Duration;

use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, Wait};
use hamlyn_am::{Node, NodeOptions};
use hamlyn_boundary::{Absence, Claim, Handles, Owner, Place, setting};
use hamlyn_job::Job;

use crate::collective::Collective;
use crate::kind;
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
    /// After all that is in it.
    pub(crate) node: Node,
    _claim: Claim,
}

thread_local! {
    static LIBRARY: Place<Library> = const { RefCell::new(None) };
}

static OWNER: Owner<Library> = Owner::new(&LIBRARY);

const NOT_INIT: Failure = Failure::new(Code::NotInit, "call AM_Init first");
const OTHER_THREAD: Failure = Failure::resource(
    "another thread has started Active Messages: all calls are made by the thread that called AM_Init",
);

/// The library of this thread.
#[inline]
pub(crate) fn current() -> Result<Rc<Library>, Failure> {
    OWNER.current().map_err(|absence| match absence {
        Absence::OtherThread => OTHER_THREAD,
        Absence::Closed | Absence::Forked => NOT_INIT,
    })
}

const NO_BUNDLE: Failure =
    Failure::bad("the bundle is none, or was freed: use one of AM_AllocateBundle");
const NO_ENDPOINT: Failure =
    Failure::bad("the endpoint is none, or was freed: use one of AM_AllocateEndpoint");

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
    OWNER.open(OTHER_THREAD, |claim| {
        open_alone(dialect, host, manager, claim)
    })
}

fn open_alone(
    dialect: Dialect,
    host: Options,
    manager: ManagerOptions,
    claim: Claim,
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
        bundles: RefCell::new(Handles::new(kind::BUNDLE)),
        endpoints: RefCell::new(Handles::new(kind::ENDPOINT)),
        kept: RefCell::new(Handles::new(kind::KEPT)),
        returned: RefCell::default(),
        own_returned: Cell::new(0),
        spmd: RefCell::default(),
        deadline: Cell::new(deadline),
        dialect,
        started: Cell::new(0),
        node: Node::new(manager, options)?,
        _claim: claim,
    })
}

fn seconds(variable: &str) -> Result<Option<Duration>, Failure> {
    Ok(setting(
        variable,
        "a number of seconds",
        hamlyn_job::seconds,
    )?)
}

fn number(variable: &str) -> Result<Option<u16>, Failure> {
    Ok(setting(variable, "a number below 65,536", |value| {
        value.parse().ok()
    })?)
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

/// Forgets what a forked child has of its parent's library.
pub(crate) fn forget_of_parent() {
    OWNER.forget_of_parent();
}

/// Time in which what was sent last is handed to its links.
const FLUSH: Wait = Wait::millis(1000);

/// Ends the library: peers are told by what comes back to them.
pub(crate) fn close(library: &Rc<Library>) {
    // A peer that takes nothing does not hold up the end.
    let _ = library.node.flush(FLUSH);
    library.spmd.take();
    library.returned.take();
    *library.kept.borrow_mut() = Handles::new(kind::KEPT);
    *library.endpoints.borrow_mut() = Handles::new(kind::ENDPOINT);
    *library.bundles.borrow_mut() = Handles::new(kind::BUNDLE);
    let _ = library.node.flush(FLUSH);
    OWNER.close();
}
