//! The start and the end of a processor.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::mem::ManuallyDrop;
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use hamlyn_splitc::{DirectMemory, Error, Job, Setup, Splitc};

use crate::boundary::{Runtime, fail, set_current, set_proc};
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
    /// The job that runs in this thread, until it has ended.
    // Without a destructor: `exit` runs those of threads before it calls `at_exit`.
    static RUNNING: RefCell<Option<ManuallyDrop<Box<Running>>>> = const { RefCell::new(None) };
}

struct Running {
    runtime: Runtime,
    /// What the windows of the inline functions lead to.
    _windows: Vec<DirectMemory>,
}

unsafe extern "C" {
    /// Of the C library: called by `exit` with its status.
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
    let job = Job::from_environment().map_err(text)?;
    set_proc(job.proc);
    if RUNNING.with_borrow(Option::is_some) {
        return Err("splitc_start was called twice".to_owned());
    }
    map_state().map_err(|error| {
        format!("the addresses of the runtime are occupied ({error}): run the program without tools that map memory there")
    })?;
    let shared = |error| text(Error::Exportable(error));
    // Before the interface has threads.
    // SAFETY: the caller's promise.
    let data = unsafe { static_data(data) }.map_err(shared)?;
    let mut memory = vec![segment(job.memory_bytes).map_err(shared)?];
    memory.extend(data);
    // The stack on which the program calls `exit` and its static data are used up to the end of the process.
    for shared in &memory {
        std::mem::forget(shared.area.clone());
    }
    let division = Division::of(job.memory_bytes);
    // SAFETY: that part of the segment is the heap's alone.
    unsafe { heap::claim(division.heap.clone()) };
    let manager = hamlyn::open_with(job.host_options(), job.manager_options());
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
    let mut running = Box::new(Running {
        runtime,
        _windows: windows,
    });
    set_current(&raw mut running.runtime);
    RUNNING.set(Some(ManuallyDrop::new(running)));
    on_exit(at_exit, null_mut());
    Ok(division)
}

/// The program called `exit`. If that was with success, it has come to its end as if its main function had returned.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    if status != 0 {
        return;
    }
    // The program may be on the stack in the segment, whose pages are taken back from the others at the end: so this is done on
    // a stack that they do not know. It is as large as that of a thread, and stays to the end of the process.
    let stack = Vec::leak(vec![0_u8; END_STACK_BYTES]).as_mut_ptr_range();
    // SAFETY: the stack is new, nothing else uses it, and `finish` does not unwind.
    let ended = unsafe { stack::run_on(stack.start as u64..stack.end as u64, &mut finish) };
    if let Err(error) = ended {
        fail(null(), &format!("no stack could be had for the end of the program: error {error}"));
    }
}

/// The stack on which a program that calls `exit` comes to its end.
const END_STACK_BYTES: usize = 2 << 20;

/// Waits until all processors have come to their end.
fn finish() {
    let Some(running) = RUNNING.try_with(|running| running.take()).ok().flatten() else {
        return;
    };
    set_current(null_mut());
    // SAFETY: flushing all streams of the C library is allowed at any time.
    unsafe { libc::fflush(null_mut()) };
    let Running { runtime, _windows } = *ManuallyDrop::into_inner(running);
    match catch_unwind(AssertUnwindSafe(|| runtime.finish())) {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => fail(null(), &error.to_string()),
        Err(_) => fail(
            null(),
            "the runtime did not end because of a fault; please report it",
        ),
    }
}
