//! The start and the end of a processor.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use hamlyn_splitc::{Error, Job, Setup, Splitc, manager_options};

use crate::boundary::{Runtime, fail, fail_by, set_current, set_job};
use crate::program::CProgram;
use crate::shared_memory::{Division, map_state, publish, segment, static_data};
use crate::{heap, stack};

/// A function that runs before the main function.
pub type AtStart = unsafe extern "C" fn();
/// The main function of a program.
pub type Main = unsafe extern "C" fn(c_int, *mut *mut c_char) -> c_int;

/// Functions that run before the program's main function.
static AT_START: Mutex<Vec<AtStart>> = Mutex::new(Vec::new());

thread_local! {
    /// The runtime of the job that runs in this thread, until it has ended; from a box. It is never dropped by the end of the
    /// thread, which may run on the stack in the segment.
    static RUNNING: Cell<*mut Runtime> = const { Cell::new(null_mut()) };
}

unsafe extern "C" {
    /// Of the C library: called by `exit` with its status.
    static stdout: *mut libc::FILE;
    safe fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Registers a function that runs after the start of the runtime.
///
/// # Safety
///
/// `function` is null or may be called once the runtime has started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_at_start(function: Option<AtStart>) {
    if let (Some(function), Ok(mut at_start)) = (function, AT_START.lock()) {
        at_start.push(function);
    }
}

/// Runs a program as a processor of a job; see the header.
///
/// # Safety
///
/// `program` may be called with the arguments. The addresses are those of the program's static data, or null. No other thread runs,
/// but for those that a single-threaded program has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_start(
    argc: c_int,
    argv: *mut *mut c_char,
    program: Option<Main>,
    data_start: *mut c_void,
    data_end: *mut c_void,
) -> c_int {
    let Some(program) = program else {
        fail(null(), "splitc_start was called without a main function");
    };
    let data = data_start as usize..data_end as usize;
    // SAFETY: the caller's promise.
    let started = catch_unwind(|| unsafe { start(data) });
    let division = match started {
        Ok(Ok(division)) => division,
        Ok(Err(error)) => fail(null(), &error.to_string()),
        Err(_) => fail(
            null(),
            "the runtime did not start because of a fault; please report it",
        ),
    };
    let mut status = 0;
    let mut body = || {
        let at_start = AT_START.lock().map(|mut list| std::mem::take(&mut *list));
        for function in at_start.unwrap_or_default() {
            // SAFETY: the promise of those who registered it.
            unsafe { function() };
        }
        // SAFETY: the caller's promise.
        status = unsafe { program(argc, argv) };
    };
    // SAFETY: the stack is a part of the segment that nothing else uses, and calls of C do not unwind.
    if let Err(error) = unsafe { stack::run_on(division.stack, &mut body) } {
        fail(
            null(),
            &format!("no second stack could be had: error {error}"),
        );
    }
    if status == 0 {
        finish();
    }
    status
}

/// # Safety
///
/// As [`splitc_start`].
unsafe fn start(data: std::ops::Range<usize>) -> Result<Division, String> {
    let text = |error: Error| error.to_string();
    // The launcher reads a pipe, to which a program that fails would otherwise leave nothing of what it printed.
    // SAFETY: the stream is the C library's, and nothing was printed yet.
    unsafe { libc::setvbuf(stdout, null_mut(), libc::_IOLBF, 0) };
    let job = Job::from_environment().map_err(|error| error.to_string())?;
    set_job(&job);
    if !RUNNING.get().is_null() {
        return Err("splitc_start was called twice".to_owned());
    }
    map_state().map_err(|error| {
        format!("the addresses of the runtime are occupied ({error}): run the program without tools that map memory there")
    })?;
    let shared = |error| text(Error::Area(error));
    // Before the interface has threads.
    // SAFETY: the caller's promise.
    let data = unsafe { static_data(data) }.map_err(shared)?;
    let mut memory = vec![segment(job.memory_bytes).map_err(shared)?];
    memory.extend(data);
    let division = Division::of(job.memory_bytes);
    // SAFETY: that part of the segment is the heap's alone.
    unsafe { heap::claim(division.heap.clone()) };
    let manager = hamlyn::open_with(job.host_options(), manager_options(&job));
    let setup = Setup {
        job,
        memory,
        spread_places: division.spread.clone(),
        program: CProgram,
    };
    let manager = manager.map_err(|error| text(error.into()))?;
    let mut runtime = Splitc::start(manager, setup).map_err(text)?;
    let mut windows = Vec::new();
    publish(&mut runtime, &mut windows).map_err(text)?;
    // Mapped until the process ends: the program may look at its memory even in its last handlers of exit.
    std::mem::forget(windows);
    let runtime = Box::into_raw(Box::new(runtime));
    set_current(runtime);
    RUNNING.set(runtime);
    on_exit(at_exit, null_mut());
    Ok(division)
}

/// The program called `exit`. If that was with success, it has come to its end as if its main function had returned.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    if status == 0 {
        finish();
    }
}

/// Waits until all processors have come to their end.
fn finish() {
    let runtime = RUNNING.replace(null_mut());
    if runtime.is_null() {
        return;
    }
    set_current(null_mut());
    // SAFETY: flushing all streams of the C library is allowed at any time.
    unsafe { libc::fflush(null_mut()) };
    // SAFETY: it came from a box that is never dropped, and nothing else uses it: this was called by the program, not by the
    // runtime. It stays, with all that it has mapped: this may run on the stack in the segment.
    let runtime = unsafe { &mut *runtime };
    match catch_unwind(AssertUnwindSafe(|| runtime.end())) {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => fail_by(null(), &error),
        Err(_) => fail(
            null(),
            "the runtime did not end because of a fault; please report it",
        ),
    }
}
