//! The library as a thread has it open: the objects that C knows, and the groups that they share.

use std::cell::RefCell;
use std::ffi::c_void;
use std::rc::{Rc, Weak};

use hamlyn_boundary::{Absence, Claim, Handles, Owner, Place};

use crate::group::{Description, Hosts, OpenGroup};
use crate::object::Object;
use crate::regions::Regions;
use crate::status::{Code, FORKED, Failure};

const END_POINT: u8 = 5;

pub(crate) struct Library {
    objects: RefCell<Handles<Rc<Object>>>,
    groups: RefCell<Vec<Weak<OpenGroup>>>,
    pub(crate) crl: RefCell<Option<Rc<Regions>>>,
    _claim: Claim,
}

thread_local! {
    static LIBRARY: Place<Library> = const { RefCell::new(None) };
}

static OWNER: Owner<Library> = Owner::new(&LIBRARY);

const CLOSED: Failure = Failure::new(
    Code::NotOpen,
    "the end point is none, or was closed: use one of udm_open",
);
const OTHER_THREAD: Failure = Failure::new(
    Code::WrongThread,
    "another thread of the process has the library: all calls are made by the thread that opened the first end point",
);
const TOO_MANY: Failure = Failure::new(Code::Resource, "a million end points are open: close some");
const NOT_SHARED: Failure = Failure::new(
    Code::InUse,
    "the group is open for one thread: open the end point with UDM_THREAD before others of its group",
);

/// The library of this thread.
#[inline]
pub(crate) fn current() -> Result<Rc<Library>, Failure> {
    OWNER.current().map_err(|absence| match absence {
        Absence::Closed => CLOSED,
        Absence::OtherThread => OTHER_THREAD,
        Absence::Forked => FORKED,
    })
}

/// The same; one is opened if no thread has it.
pub(crate) fn current_or_new() -> Result<Rc<Library>, Failure> {
    OWNER.forget_of_parent();
    match OWNER.current() {
        Ok(library) => Ok(library),
        Err(Absence::OtherThread) => Err(OTHER_THREAD),
        Err(_) => OWNER.open(OTHER_THREAD, |claim| {
            Ok(Library {
                objects: RefCell::new(Handles::new(END_POINT)),
                groups: RefCell::default(),
                crl: RefCell::default(),
                _claim: claim,
            })
        }),
    }
}

/// Lets others have the library if nothing is open.
pub(crate) fn close_if_unused() {
    if OWNER.current().is_ok_and(|library| !library.is_used()) {
        OWNER.close();
    }
}

impl Library {
    fn is_used(&self) -> bool {
        self.objects.borrow().iter().next().is_some() || self.crl.borrow().is_some()
    }

    #[inline]
    pub(crate) fn object(&self, handle: *const c_void) -> Result<Rc<Object>, Failure> {
        self.objects.borrow().get(handle).cloned().ok_or(CLOSED)
    }

    pub(crate) fn insert(
        &self,
        make: impl FnOnce(*mut c_void) -> Rc<Object>,
    ) -> Result<*mut c_void, Failure> {
        let mut objects = self.objects.borrow_mut();
        let made = objects.insert(make).map(|(handle, _)| handle);
        made.ok_or(TOO_MANY)
    }

    pub(crate) fn remove(&self, handle: *const c_void) -> Option<Rc<Object>> {
        self.objects.borrow_mut().remove(handle)
    }

    /// The group of that description, which is opened if it is not.
    pub(crate) fn group(
        &self,
        description: Description,
        is_shared: bool,
    ) -> Result<Rc<OpenGroup>, Failure> {
        let mut groups = self.groups.borrow_mut();
        groups.retain(|group| group.strong_count() > 0);
        let mut open = groups.iter().filter_map(Weak::upgrade);
        if let Some(group) = open.find(|group| description.is_of(group)) {
            return match &group.hosts {
                Hosts::Own(_) if is_shared => Err(NOT_SHARED),
                _ => Ok(group),
            };
        }
        drop(open);
        let group = description.open(is_shared)?;
        groups.push(Rc::downgrade(&group));
        Ok(group)
    }
}
