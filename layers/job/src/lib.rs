//! The job that a process is in: one program, started several times by `hamlyn run`, `mpirun`,
//! `srun` or any launcher that sets the variables of PMI. [`Job::from_environment`] says which of
//! the processes this is, of how many, and how the others are found.
//!
//! ```
//! use hamlyn_job::Job;
//!
//! # fn main() -> Result<(), hamlyn_job::Error> {
//! let job = Job::from_environment()?;
//! println!("process {} of {}", job.proc, job.procs);
//! # Ok(())
//! # }
//! ```
//!
//! Layers whose programs are jobs (Split-C, Active Messages) stand on it. It connects nothing.
#![forbid(unsafe_code)]

mod error;
mod job;
mod launcher;
#[cfg(test)]
mod tests;
mod variables;

pub use error::Error;
pub use job::{
    Job, MEMORY_BYTES_DEFAULT, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN, Placement, memory_bytes,
    seconds, strategy,
};
pub use variables::PROCS_MAX;

/// The exit status of a process that ends because another one is gone: a launcher that hears of
/// both takes the other for the cause. It is `EX_TEMPFAIL` of `sysexits.h`.
pub const STATUS_OF_A_CONSEQUENCE: i32 = 75;

/// Time that a process which ends because of another leaves a launcher that is not ours
/// ([`Job::is_of_foreign_launcher`]) to hear of that one first.
pub const CAUSE_WITHIN: std::time::Duration = std::time::Duration::from_millis(500);
