//! Groups that are open: the nodes of a program, and the interface by which they are reached.

use std::ffi::c_char;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{ManagerOptions, Wait};
use hamlyn_boundary::text;
use hamlyn_job::Job;
use hamlyn_udm::{Event, Group, GroupOptions, NODES_MAX};

use crate::status::{Code, Failure};

/// A host whose interface threads share, as upcalls need it.
pub(crate) type SharedHost = ProcessHost<AnyThread>;

/// `udm_group`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CGroup {
    name: *const c_char,
    me: u32,
    nodes: u32,
    addresses: *const *const c_char,
}

impl CGroup {
    /// The job that the launcher describes.
    pub(crate) const OF_JOB: Self = Self {
        name: std::ptr::null(),
        me: 0,
        nodes: 0,
        addresses: std::ptr::null(),
    };
}

/// The time for which nodes of a group without a job are waited for.
const START: Duration = Duration::from_secs(60);

/// A group as a call describes it.
pub(crate) struct Description {
    options: GroupOptions,
    host: Options,
    manager: ManagerOptions,
    /// The time for which its nodes are waited for.
    pub(crate) start: Wait,
}

impl Description {
    pub(crate) fn new(group: &CGroup) -> Result<Self, Failure> {
        if group.addresses.is_null() {
            return Self::of_job(group);
        }
        let count = group.nodes as usize;
        if count > NODES_MAX as usize || !group.addresses.is_aligned() {
            return Err(Failure::bad("a group has at most 65,536 nodes"));
        }
        // SAFETY: so many can be read during the call, as the header demands.
        let addresses = unsafe { std::slice::from_raw_parts(group.addresses, count) };
        let addresses = addresses
            .iter()
            .map(|address| Ok(text(*address)?.to_owned()))
            .collect::<Result<Vec<_>, Failure>>()?;
        let own = addresses
            .get(group.me as usize)
            .ok_or(Failure::bad("no address of the group is this node's"))?;
        let mut host = Options::named(own);
        host.links_max = host.links_max.max(2 * group.nodes);
        Ok(Self {
            host,
            options: GroupOptions {
                name: text(group.name)?.to_owned(),
                me: group.me,
                addresses,
            },
            manager: ManagerOptions::default(),
            start: Wait::For(START),
        })
    }

    fn of_job(group: &CGroup) -> Result<Self, Failure> {
        if !group.name.is_null() || group.me != 0 || group.nodes != 0 {
            return Err(Failure::bad(
                "the group has no addresses: name those of all nodes, or leave it zero for the job of the launcher",
            ));
        }
        let job =
            Job::from_environment().map_err(|error| Failure::of(Code::BadArgument, &error))?;
        let manager = ManagerOptions {
            strategy: job.strategy,
            ..ManagerOptions::default()
        };
        Ok(Self {
            options: GroupOptions::of_job(&job),
            host: job.host_options(),
            manager,
            start: Wait::For(job.start_timeout),
        })
    }

    pub(crate) fn is_of(&self, open: &OpenGroup) -> bool {
        self.options == open.options
    }

    /// Opens its interface; `is_shared` among threads.
    pub(crate) fn open(self, is_shared: bool) -> Result<Rc<OpenGroup>, Failure> {
        let failed = |error: hamlyn::OpenError| Failure::of(Code::Resource, &error);
        let options = self.options.clone();
        let hosts = if is_shared {
            let manager = hamlyn::open_shared(self.host, self.manager).map_err(failed)?;
            Hosts::Shared(Group::new(manager, self.options)?)
        } else {
            let manager = hamlyn::open_with(self.host, self.manager).map_err(failed)?;
            Hosts::Own(Group::new(manager, self.options)?)
        };
        Ok(Rc::new(OpenGroup { options, hosts }))
    }
}

/// A group by the type of its host.
#[derive(Debug)]
pub(crate) enum Hosts {
    Own(Group),
    Shared(Group<SharedHost>),
}

/// A group that is open, as long as end points or CRL use it.
#[derive(Debug)]
pub(crate) struct OpenGroup {
    options: GroupOptions,
    pub(crate) hosts: Hosts,
}

impl OpenGroup {
    pub(crate) fn next_event(&self) -> Option<Event> {
        match &self.hosts {
            Hosts::Own(group) => group.next_event(),
            Hosts::Shared(group) => group.next_event(),
        }
    }
}
