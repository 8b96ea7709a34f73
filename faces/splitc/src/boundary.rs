//! The way from C into the runtime. It refuses calls of other threads and calls outside of a job, catches panics, and turns an error
//! into a message with its place in the source and the end of the process.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use hamlyn::host::process::ProcessHost;
use hamlyn_splitc::{Error, Job, Splitc};

use crate::program::CProgram;

pub(crate) type Runtime = Splitc<ProcessHost, CProgram>;

/// `splitc_place`.
#[repr(C)]
pub struct Place {
    file: *const c_char,
    line: c_int,
}

thread_local! {
    /// The runtime, in the thread that it belongs to; null outside of a job.
    static CURRENT: Cell<*mut Runtime> = const { Cell::new(null_mut()) };
}

/// Which processor this is, for messages.
static PROC: AtomicI32 = AtomicI32::new(-1);
/// Whether the launcher takes the first process that fails for the cause.
static IS_OF_FOREIGN_LAUNCHER: AtomicBool = AtomicBool::new(false);

pub(crate) fn set_job(job: &Job) {
    PROC.store(job.proc as i32, Ordering::Relaxed);
    IS_OF_FOREIGN_LAUNCHER.store(job.is_of_foreign_launcher, Ordering::Relaxed);
}

/// Makes that runtime the one that calls of this thread use; the one before.
pub(crate) fn set_current(runtime: *mut Runtime) -> *mut Runtime {
    CURRENT.replace(runtime)
}

/// Calls the runtime. Does not return if it fails.
pub(crate) fn with<R>(
    what: &str,
    place: *const Place,
    call: impl FnOnce(&mut Runtime) -> Result<R, Error>,
) -> R {
    let current = CURRENT.get();
    if current.is_null() {
        let why =
            "no job runs in this thread: splitc_start must have called the program's main function";
        fail(place, &format!("{what}: {why}"));
    }
    // SAFETY: the pointer is set by the thread that owns the runtime, for as long as it lives and no reference to it is in use: at
    // the start, and while an atomic procedure runs, to the reference that the procedure was given.
    let runtime = unsafe { &mut *current };
    match catch_unwind(AssertUnwindSafe(|| call(runtime))) {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => fail_by(place, &error),
        Err(_) => fail(
            place,
            &format!("{what}: the runtime has a fault; please report it"),
        ),
    }
}

/// Ends the process because of an error of the runtime.
pub(crate) fn fail_by(place: *const Place, error: &Error) -> ! {
    let status = match error {
        Error::Gone { .. } => hamlyn_splitc::STATUS_OF_A_CONSEQUENCE,
        _ => 1,
    };
    end(place, &error.to_string(), status)
}

/// Ends the process with a message. What the program has printed so far appears before it.
pub(crate) fn fail(place: *const Place, message: &str) -> ! {
    end(place, message, 1)
}

fn end(place: *const Place, message: &str, status: i32) -> ! {
    // SAFETY: flushing all streams of the C library is allowed at any time.
    unsafe { libc::fflush(null_mut()) };
    let proc = PROC.load(Ordering::Relaxed);
    let who = match proc {
        -1 => "splitc".to_owned(),
        proc => format!("processor {proc}"),
    };
    eprintln!("{who}: {}{message}", describe(place));
    let is_consequence = status == hamlyn_splitc::STATUS_OF_A_CONSEQUENCE;
    if is_consequence && IS_OF_FOREIGN_LAUNCHER.load(Ordering::Relaxed) {
        // The launcher ends this process when it hears of the other one.
        std::thread::sleep(hamlyn_splitc::CAUSE_WITHIN);
    }
    // SAFETY: ends the process at once. Destructors and handlers of exit might wait for processors that never answer.
    unsafe { libc::_exit(status) }
}

fn describe(place: *const Place) -> String {
    if place.is_null() {
        return String::new();
    }
    // SAFETY: a place that is not null is a constant of the program, as the header says.
    let Place { file, line } = unsafe { &*place };
    if file.is_null() {
        return String::new();
    }
    // SAFETY: its file is a string constant.
    let file = unsafe { CStr::from_ptr(*file) };
    format!("{}:{line}: ", file.to_string_lossy())
}

/// Ends the job with a message of the program.
///
/// # Safety
///
/// `place` is null or a place, `text` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_fail_with(place: *const Place, text: *const c_char) -> ! {
    let message = match text.is_null() {
        true => String::new(),
        // SAFETY: the caller's promise.
        false => unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    };
    fail(place, &message)
}
