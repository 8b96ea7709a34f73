//! The description of a job: the number of this process, of how many, and how the others are
//! found.
//!
//! The launcher (`hamlyn run`) describes it in the environment. Without it, the description is
//! taken from `mpirun`, `srun`, or any launcher that sets the variables of PMI (`launcher`). A
//! program that is started alone is a job of one process.
//!
//! | variable | meaning |
//! |---|---|
//! | `HAMLYN_JOB` | the name of the job; interfaces of different jobs do not find each other |
//! | `HAMLYN_RANK`, `HAMLYN_PROCS` | the number of the process, of how many |
//! | `HAMLYN_STRATEGY` | `proc`, `np`, `inject` or `receive` |
//! | `HAMLYN_PLACEMENT` | `direct` or `copied` |
//! | `HAMLYN_MEMORY` | bytes of shared memory of each process, for layers that allocate it, with K, M, G or T |
//! | `HAMLYN_JOB_HOSTS` | the hosts of the processes: `host:count,host:count`, in order; an empty host is this one |
//! | `HAMLYN_BARRIER_TIMEOUT` | seconds until a wait for other processes fails; 0, the default, means never |
//! | `HAMLYN_START_TIMEOUT` | seconds until the start fails; 60 by default |

use std::time::Duration;

use hamlyn::Strategy;
use hamlyn::host::process::Options;

use crate::error::{Error, environment};
use crate::launcher::{Get, Membership, check_name};
use crate::variables::{HOSTS, JOB};

/// Bytes of shared memory of a process unless something else is asked for: virtual memory, of
/// which pages that are not touched cost nothing.
pub const MEMORY_BYTES_DEFAULT: u64 = 4 << 30;
/// The least.
pub const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// The most: 1 TiB.
pub const MEMORY_BYTES_MAX: u64 = 1 << 40;

/// The way in which memory of other processes is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// Memory of processes of this host is mapped, and reached by loads and stores.
    #[default]
    Direct,
    /// All memory of others is reached by operations of the interface.
    Copied,
}

/// A process of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its name, of letters, digits, dots, underscores and hyphens.
    pub name: String,
    /// The number of this process, from 0 on.
    pub proc: u32,
    /// The number of processes.
    pub procs: u32,
    /// The strategy of the interface.
    pub strategy: Strategy,
    /// The way in which memory of others is reached.
    pub placement: Placement,
    /// Bytes of shared memory of each process, for layers that allocate it.
    pub memory_bytes: u64,
    /// The hosts of the processes: so many in turn on each. Empty: all are here.
    pub hosts: Vec<(Option<String>, u32)>,
    /// Time to wait for other processes. None: for ever.
    pub barrier_timeout: Option<Duration>,
    /// Time to wait for them at the start.
    pub start_timeout: Duration,
    /// True if a launcher that is not `hamlyn run` started this process. It takes the first
    /// process that fails for the cause.
    pub is_of_foreign_launcher: bool,
    /// True if any launcher started this process; false if it was started alone.
    pub is_started_by_launcher: bool,
}

impl Job {
    /// A job of one process.
    pub fn alone(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            proc: 0,
            procs: 1,
            strategy: Strategy::Proc,
            placement: Placement::default(),
            memory_bytes: MEMORY_BYTES_DEFAULT,
            hosts: Vec::new(),
            barrier_timeout: None,
            start_timeout: Duration::from_secs(60),
            is_of_foreign_launcher: false,
            is_started_by_launcher: false,
        }
    }

    /// The job that the environment describes.
    pub fn from_environment() -> Result<Self, Error> {
        Self::from_variables(&|name| std::env::var(name).ok(), std::process::id())
    }

    pub(crate) fn from_variables(get: Get<'_>, process: u32) -> Result<Self, Error> {
        let mut job = Self::alone(&format!("alone-{process}"));
        if let Some(member) = Membership::find(get)? {
            if get(HOSTS).is_none() && member.hosts.is_none() {
                member.expect_all_here()?;
            }
            job.name = member.job;
            job.proc = member.proc;
            job.procs = member.procs;
            job.hosts = member.hosts.unwrap_or_default();
            job.is_of_foreign_launcher = member.is_foreign;
            job.is_started_by_launcher = true;
        }
        if let Some(name) = get(JOB) {
            job.name = name;
        }
        check_name(&job.name)?;
        if let Some(value) = get(STRATEGY) {
            job.strategy = strategy(&value).ok_or_else(|| {
                environment(STRATEGY, &value, "it is proc, np, inject or receive")
            })?;
        }
        if let Some(value) = get(PLACEMENT) {
            job.placement = match value.as_str() {
                "direct" => Placement::Direct,
                "copied" => Placement::Copied,
                _ => return Err(environment(PLACEMENT, &value, "it is direct or copied")),
            };
        }
        if let Some(value) = get(MEMORY) {
            job.memory_bytes = memory_bytes(&value).ok_or_else(|| {
                environment(
                    MEMORY,
                    &value,
                    "it is 16M to 1T: a number with K, M, G or T",
                )
            })?;
        }
        if let Some(value) = get(HOSTS) {
            job.hosts =
                hosts(&value, job.procs).map_err(|reason| environment(HOSTS, &value, &reason))?;
        }
        let barrier_timeout = timeout(get, BARRIER_TIMEOUT)?;
        job.barrier_timeout = barrier_timeout.filter(|timeout| !timeout.is_zero());
        if let Some(start_timeout) = timeout(get, START_TIMEOUT)? {
            job.start_timeout = start_timeout;
        }
        Ok(job)
    }

    /// The name of a process's interface. Interfaces of different jobs do not find each other.
    pub fn interface_name(&self, proc: u32) -> String {
        format!("job.{}.{proc}", self.name)
    }

    /// The name by which this process finds another's interface.
    pub fn interface_address(&self, proc: u32) -> String {
        let name = self.interface_name(proc);
        match (self.host_of(proc), self.host_of(self.proc)) {
            (Some(host), here) if here != Some(host) => format!("{host}/{name}"),
            _ => name,
        }
    }

    /// The host of a process; nothing if it is this one.
    pub fn host_of(&self, proc: u32) -> Option<&str> {
        let mut left = proc;
        for (host, count) in &self.hosts {
            match left.checked_sub(*count) {
                Some(rest) => left = rest,
                None => return host.as_deref(),
            }
        }
        None
    }

    /// True if other processes are on the same host.
    pub fn has_near_peers(&self) -> bool {
        (0..self.procs).any(|proc| proc != self.proc && self.is_near(proc))
    }

    /// True if a process is on the same host as this one.
    pub fn is_near(&self, proc: u32) -> bool {
        self.host_of(proc) == self.host_of(self.proc)
    }

    /// Options of the host of its interface: its name, and links for all processes of the job.
    pub fn host_options(&self) -> Options {
        let mut options = Options::named(&self.interface_name(self.proc));
        options.links_max = options.links_max.max(2 * self.procs);
        options.handshakes_max = options.handshakes_max.max(self.procs.min(1024));
        options
    }
}

const STRATEGY: &str = "HAMLYN_STRATEGY";
const PLACEMENT: &str = "HAMLYN_PLACEMENT";
const MEMORY: &str = "HAMLYN_MEMORY";
const BARRIER_TIMEOUT: &str = "HAMLYN_BARRIER_TIMEOUT";
const START_TIMEOUT: &str = "HAMLYN_START_TIMEOUT";

/// A strategy by its name.
pub fn strategy(name: &str) -> Option<Strategy> {
    Some(match name {
        "proc" => Strategy::Proc,
        "np" => Strategy::Np,
        "inject" => Strategy::Inject,
        "receive" => Strategy::Receive,
        _ => return None,
    })
}

/// Bytes of memory: a number with K, M, G or T, rounded up to whole pages.
pub fn memory_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match text[digits.len()..].trim_end_matches(['B', 'b', 'i']) {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    let bytes = number
        .checked_mul(1 << shift)?
        .checked_next_multiple_of(4096)?;
    (MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX)
        .contains(&bytes)
        .then_some(bytes)
}

/// A time: a number of seconds, which may have a fraction; not below 0.
pub fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn hosts(text: &str, procs: u32) -> Result<Vec<(Option<String>, u32)>, String> {
    let mut hosts = Vec::new();
    let mut sum = 0_u32;
    for item in text.split(',') {
        let (host, count) = item
            .rsplit_once(':')
            .ok_or("each host has a number of processes: host:count")?;
        let count: u32 = count
            .parse()
            .map_err(|_| format!("{count:?} is no number"))?;
        sum = sum.saturating_add(count);
        hosts.push(((!host.is_empty()).then(|| host.to_owned()), count));
    }
    if sum != procs {
        return Err(format!("there are {procs} processes, and places for {sum}"));
    }
    Ok(hosts)
}

fn timeout(get: Get<'_>, variable: &'static str) -> Result<Option<Duration>, Error> {
    let Some(value) = get(variable) else {
        return Ok(None);
    };
    match seconds(&value) {
        Some(timeout) => Ok(Some(timeout)),
        None => Err(environment(variable, &value, "it is a number of seconds")),
    }
}
