//! The runtime of Split-C over Hamlyn (`Split-C 2`, `4.2`; decision 0038): global addresses,
//! split-phase access, signaling stores, atomic procedures, barriers and reductions, for programs
//! in Rust and, through the crate `hamlyn-splitc-c`, in C, C++ and Split-C.
//!
//! The processes of a job run one program and trust each other: each gives all others the rights to
//! read, write and change its segments. Towards everybody else the rules of the interface hold. The
//! runtime uses the public interface of `hamlyn` only, and so runs in the simulator unchanged.
//!
//! It refuses, with an error that names the processor, what no owner shares: null pointers,
//! addresses outside the segments, processors that are not there. A processor that is gone or does
//! not come is named, too.
//!
//! Who carries out operations on a processor's memory, its program in calls of the runtime or a
//! network processor, says the strategy of the job. Atomic procedures are always carried out by the
//! program (`Split-C 4.2.1`).
#![forbid(unsafe_code)]

mod access;
mod address;
mod allocation;
mod collective;
mod control;
mod direct;
mod direct_procedure;
mod error;
mod memory;
mod peer;
mod procedure;
mod reduction;
mod runtime;
mod split_phase;
mod symmetric_heap;
mod typed;
mod waiting;

pub use address::{GlobalAddress, GlobalPtr, SpreadPtr};
pub use direct::DirectMemory;
pub use error::Error;
pub use hamlyn_job::{CAUSE_WITHIN, Job, PROCS_MAX, Placement, STATUS_OF_A_CONSEQUENCE};
pub use memory::SharedMemory;
pub use procedure::{ARGUMENT_BYTES_MAX, RESULT_BYTES_MAX};
pub use reduction::{Number, Reduction};
pub use runtime::{Program, Setup, Splitc, manager_options};
