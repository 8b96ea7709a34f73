//! Errors of the runtime. Each names the processor and, where there is one, the remedy.

use std::time::Duration;

use hamlyn::one_sided::OperationError;
use hamlyn::{ConnectError, OpenError, ReceiveError, SendError};

use crate::address::GlobalAddress;

/// Something that a job cannot go on with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable of the environment has a value that cannot be used.
    #[error(transparent)]
    Job(#[from] hamlyn_job::Error),
    /// A null pointer was followed.
    #[error(
        "{what} through a null global pointer: it was never set, or stands for the end of a list"
    )]
    Null {
        /// What was to be done.
        what: &'static str,
    },
    /// A pointer names a processor that the job does not have.
    #[error(
        "{what} at {address}: this job has processors 0 to {last}: the pointer is not set, or an index is too large",
        last = procs - 1
    )]
    NoSuchProcessor {
        /// What was to be done.
        what: &'static str,
        /// Where.
        address: GlobalAddress,
        /// How many there are.
        procs: u32,
    },
    /// A pointer names memory that its owner does not share.
    #[error(
        "{what} of {length_bytes} bytes at {address}, which does not share that memory (it shares {shared}): \
         the pointer is not set, an index is too large, or the memory was allocated by a library"
    )]
    NotShared {
        /// What was to be done.
        what: &'static str,
        /// Where.
        address: GlobalAddress,
        /// How many bytes.
        length_bytes: u64,
        /// What is shared.
        shared: String,
    },
    /// The address is not a multiple of the width.
    #[error(
        "an atomic change of {width_bytes} bytes at {address}, which is no multiple of {width_bytes}"
    )]
    Unaligned {
        /// Where.
        address: GlobalAddress,
        /// How wide.
        width_bytes: u64,
    },
    /// Another processor is gone.
    #[error("processor {proc} is gone ({why}): {what} cannot be completed")]
    Gone {
        /// Which.
        proc: u32,
        /// Why.
        why: String,
        /// What was under way.
        what: &'static str,
    },
    /// A processor did not come in time.
    #[error(
        "{what} was not reached within {within:?} by {missing}: see whether it waits for something else or computes for long; \
         HAMLYN_BARRIER_TIMEOUT sets another time"
    )]
    Missing {
        /// What was waited at.
        what: &'static str,
        /// How long.
        within: Duration,
        /// By whom.
        missing: String,
    },
    /// A processor of the job could not be found.
    #[error(
        "processor {proc} of {procs} could not be reached within {within:?} ({why}): \
         start all processes of a job together, for example with `hamlyn run -n {procs}`"
    )]
    NotStarted {
        /// Which.
        proc: u32,
        /// Of how many.
        procs: u32,
        /// How long it was tried.
        within: Duration,
        /// What happened.
        why: String,
    },
    /// A processor of the job is of another program or version.
    #[error("processor {proc} does not fit this one: {what}: start one program on all processors")]
    OtherProgram {
        /// Which.
        proc: u32,
        /// What is different.
        what: &'static str,
    },
    /// Processors called different collective operations.
    #[error(
        "processor {proc} is in {theirs} while this one is in {ours}: all processors must call collective operations in the same order"
    )]
    Mismatch {
        /// Which.
        proc: u32,
        /// What it called.
        theirs: &'static str,
        /// What this one called.
        ours: &'static str,
    },
    /// A collective allocation was asked for with different sizes.
    #[error(
        "processors 0 and {proc} allocated different amounts in one call of all_spread_malloc: count and size must be the same everywhere"
    )]
    UnequalAllocation {
        /// Which differs from processor 0.
        proc: u32,
    },
    /// The shared memory is used up.
    #[error(
        "no {length_bytes} bytes are left for spread arrays: {room_bytes} bytes were set aside: start the job with more (`hamlyn run --memory`)"
    )]
    OutOfMemory {
        /// How many bytes on each processor.
        length_bytes: u64,
        /// How many there were at first.
        room_bytes: u64,
    },
    /// Memory was freed that was not allocated so.
    #[error("{address} is no spread array, or was freed before")]
    NotAllocated {
        /// Where.
        address: GlobalAddress,
    },
    /// An atomic procedure did something that it must not do.
    #[error(
        "an atomic procedure called {what}, which may wait for other processors: only reads, writes, puts and stores may be called there"
    )]
    InProcedure {
        /// What.
        what: &'static str,
    },
    /// The arguments or the result of an atomic procedure are too long.
    #[error(
        "{length_bytes} bytes of {what} for an atomic procedure: at most {limit_bytes}; pass a global pointer to the rest"
    )]
    TooLong {
        /// Arguments, or result.
        what: &'static str,
        /// How many.
        length_bytes: usize,
        /// How many there may be.
        limit_bytes: usize,
    },
    /// An atomic procedure could not be carried out by its owner.
    #[error("processor {proc} did not carry out an atomic procedure: {why}")]
    Procedure {
        /// Which processor.
        proc: u32,
        /// Why.
        why: String,
    },
    /// An operation was asked for that there is not for that type.
    #[error("{what}")]
    BadOperation {
        /// What is wrong.
        what: &'static str,
    },
    /// The interface could not be opened.
    #[error("the interface could not be opened: {0}")]
    Open(#[from] OpenError),
    /// Memory for the job could not be had at the place where it must lie.
    #[error("the shared memory of this processor could not be set up: {0}")]
    Area(#[from] hamlyn::region::AreaError),
    /// Memory could not be shared.
    #[error("this processor could not share its memory: {0}; `--placement copied` does without")]
    Share(#[from] hamlyn::ShareError),
    /// Memory of another could not be mapped.
    #[error(
        "the memory of another processor could not be mapped: {0}; `--placement copied` does without"
    )]
    Attach(#[from] hamlyn::AttachError),
    /// The host failed.
    #[error(transparent)]
    Host(#[from] hamlyn::host::HostError),
    /// Receiving failed.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// Sending failed.
    #[error(transparent)]
    Send(#[from] SendError),
    /// An operation failed.
    #[error("{what} at {address} failed: {error}")]
    Operation {
        /// What.
        what: &'static str,
        /// Where.
        address: GlobalAddress,
        /// Why.
        error: OperationError,
    },
    /// A processor could not be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}
