//! Variables of the environment by which `hamlyn run` describes a job.

/// Most processes of a job.
pub const PROCS_MAX: u32 = 1 << 16;

pub(crate) const JOB: &str = "HAMLYN_JOB";
pub(crate) const RANK: &str = "HAMLYN_RANK";
pub(crate) const PROCS: &str = "HAMLYN_PROCS";
pub(crate) const HOSTS: &str = "HAMLYN_JOB_HOSTS";
