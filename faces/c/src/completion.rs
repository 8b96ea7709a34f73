//! The ends of one-sided operations, counted (decision 37).

use hamlyn::one_sided::{CompletionCounter, Operation};

use crate::boundary::{call, room, wait_of};
use crate::handle::{self, kind};
use crate::lower::{on, with_interface};
use crate::manager::ManagerHandle;
use crate::one_sided::InitiatorHandle;
use crate::status::{Error, Status};

/// Counts completions of operations. Any thread may use it, one at a time.
#[derive(Debug)]
pub struct CounterHandle {
    _of_the_library: [u8; 0],
}

kind!(CounterHandle, CompletionCounter, 22, "completion counter");

/// Makes a counter that stands at 0. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_counter(
    counter: *mut *mut CounterHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the counter", counter)?;
        place.put(handle::make_for_any_thread(CompletionCounter::new()));
        Ok(())
    })
}

/// Gives an operation to a counter: it counts it when it ends, and the operation cannot be finished any more. For operations without a word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_count_completion(
    initiator: *mut InitiatorHandle,
    operation: u32,
    counter: *mut CounterHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let counter = handle::with(counter, |counter| Ok(counter.clone()))?;
        handle::with(initiator, |of| {
            let operation = Operation::from_bits(operation);
            Ok(on!(of, (interface, initiator) => {
                interface.count_completion(initiator, operation, &counter)
            })?)
        })
    })
}

/// How many operations a counter has counted: those that were carried out, and those that were refused or are lost with their target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_counts(
    counter: *mut CounterHandle,
    completed: *mut u64,
    failed: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let completed = room("the place for the number of the completed", completed)?;
        let failed = room("the place for the number of the failed", failed)?;
        handle::with(counter, |counter| {
            completed.put(counter.completed());
            failed.put(counter.failed());
            Ok(())
        })
    })
}

/// Waits until that many operations have ended, well or not, since the counter was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_await_completions(
    manager: *mut ManagerHandle,
    counter: *mut CounterHandle,
    ended: u64,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let counter = handle::with(counter, |counter| Ok(counter.clone()))?;
        with_interface!(manager, interface => {
            Ok(interface.await_completions(&counter, ended, wait_of(wait_ns))?)
        })
    })
}

/// Closes a counter's handle; operations that were given to it go on. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_counter(
    counter: *mut CounterHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(counter).map(drop))
}
