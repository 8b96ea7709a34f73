//! Programs that are started as several processes of a job (`am_spmd.h`).

use std::cell::Cell;
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::rc::Rc;
use std::time::Duration;

use hamlyn::{ManagerOptions, Wait};
use hamlyn_am::{NAME_BYTES, Name, Tag};
use hamlyn_job::Job;

use crate::boundary::{bytes, bytes_mut, call, call_outside, protect, put};
use crate::collective::{Collective, Kind};
use crate::dispatch::is_running;
use crate::library::{self, ExitCallback, Library, Spmd, current};
use crate::state::{BundleObject, Dialect, EndpointObject};
use crate::status::{Code, Failure, hamlyn_am_error_text};
use crate::translations::Mapped;
use crate::{bundle, endpoint, returned};

/// The item under which process 0 is found.
const ITEM: &str = "am";
/// The tag of process i is this one, and i.
const TAGS: u64 = 0x616d_2d73_0000_0000;
/// The command that starts a job, unless the environment names another.
const COMMAND: &str = "hamlyn";
const COMMAND_VARIABLE: &str = "HAMLYN_COMMAND";

impl Spmd {
    fn run(
        &self,
        library: &Rc<Library>,
        kind: Kind,
        what: [u32; 2],
        own: &[u8],
        patience: Option<Duration>,
        gathered: &dyn Fn(&[u8]) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let serve = |wait: Wait| {
            returned::deliver(library, self.bundle.handle);
            self.bundle.bundle.serve(wait)?;
            Ok(())
        };
        self.collective
            .run(kind, what, own, patience, &serve, gathered)
    }
}

fn of(library: &Library) -> Result<Rc<Spmd>, Failure> {
    let spmd = library.spmd.borrow().clone();
    spmd.ok_or(NOT_STARTED)
}

const NOT_STARTED: Failure = Failure::new(Code::NotInit, "call AMX_SPMDStartup first");

/// `AMX_SPMDStartup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_spmd_start(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    procs: c_int,
    bundle: *mut *mut c_void,
    endpoint: *mut *mut c_void,
) -> c_int {
    protect(|| {
        if is_running() {
            return Err(Failure::resource("a handler is running"));
        }
        if bundle.is_null() || endpoint.is_null() {
            return Err(Failure::bad(
                "the places for the bundle and the endpoint are null",
            ));
        }
        library::forget_of_parent();
        let started = match current() {
            Ok(library) if library.is_used() => {
                return Err(Failure::new(
                    Code::InUse,
                    "the library has bundles already: AMX_SPMDStartup comes before them",
                ));
            }
            Ok(library) => library.started.get(),
            Err(failure) if failure.code == Code::NotInit => 0,
            Err(failure) => return Err(failure),
        };
        let job = Job::from_environment().map_err(|error| Failure::of(Code::BadArg, &error))?;
        if procs > 1 && !job.is_started_by_launcher {
            // SAFETY: the caller's promise.
            return Err(start_again(procs, &unsafe { words(argc, argv) }));
        }
        if procs > 0 && procs as u32 != job.procs {
            let text = format!(
                "the program asks for {procs} processes, and its launcher started {}: ask for 0, which takes as many as there are",
                job.procs
            );
            return Err(Failure::of(Code::BadArg, &text));
        }
        if let Ok(library) = current() {
            // It opens anew, under a name that others know.
            library::close(&library);
        }
        let manager = ManagerOptions {
            strategy: job.strategy,
            ..ManagerOptions::default()
        };
        let library = library::open(Dialect::Today, job.host_options(), manager)?;
        library.started.set(started + 1);
        match start(&library, job) {
            Ok((made, first)) => {
                put(bundle, made.handle)?;
                put(endpoint, first.shared.handle)
            }
            Err(failure) => {
                library::close(&library);
                Err(failure)
            }
        }
    })
}

fn start(
    library: &Rc<Library>,
    job: Job,
) -> Result<(Rc<BundleObject>, Rc<EndpointObject>), Failure> {
    let made = bundle::allocate(library)?;
    let first = endpoint::allocate(library, &made)?;
    let tag = TAGS | u64::from(job.proc);
    endpoint::set_tag(&first, tag)?;
    let collective = Collective::new(&library.node, &made.bundle, &job, ITEM)?;
    let wait = Wait::For(job.start_timeout);
    if job.proc != 0 {
        let address = job.interface_address(0);
        let root = library.node.look_up(&address, ITEM, wait).map_err(|error| {
            let text = format!(
                "process 0 of {} could not be reached ({error}): start all processes of a job together, for example with `hamlyn run -n {}`",
                job.procs, job.procs
            );
            Failure::of(Code::Resource, &text)
        })?;
        collective.map(0, &root, wait)?;
    }
    let own = [collective.name()?, first.shared.name].map(|name| name.to_bytes());
    let patience = Some(job.start_timeout);
    let spmd = Spmd {
        job,
        collective,
        bundle: made.clone(),
        callback: Cell::new(None),
    };
    let gathered = |whole: &[u8]| {
        let others = names(whole)?.into_iter().enumerate().skip(1);
        for (proc, [collective, _]) in others {
            spmd.collective.map(proc, &collective, wait)?;
        }
        Ok(())
    };
    let whole = spmd.run(
        library,
        Kind::Start,
        [NAME_BYTES as u32, 0],
        own.as_flattened(),
        patience,
        &gathered,
    )?;
    let mut translations = first.shared.translations.borrow_mut();
    translations.have(spmd.job.procs as usize);
    for (proc, [_, name]) in names(&whole)?.into_iter().enumerate() {
        let number = TAGS | proc as u64;
        let mapped = Mapped {
            name,
            number,
            tag: Tag::new(number),
            inner: Cell::new(None),
        };
        translations.map(proc as c_int, mapped)?;
    }
    drop(translations);
    *library.spmd.borrow_mut() = Some(Rc::new(spmd));
    Ok((made, first))
}

/// The names that each process contributes to the start.
fn names(whole: &[u8]) -> Result<Vec<[Name; 2]>, Failure> {
    let name = |bytes: &[u8; NAME_BYTES]| {
        Name::from_bytes(bytes).map_err(|error| Failure::of(Code::Resource, &error))
    };
    let pairs = whole.as_chunks::<NAME_BYTES>().0.as_chunks::<2>().0;
    let pairs = pairs
        .iter()
        .map(|[one, other]| Ok([name(one)?, name(other)?]));
    pairs.collect()
}

/// The arguments of the program.
///
/// # Safety
///
/// As `main` has them, or null.
unsafe fn words(argc: *mut c_int, argv: *mut *mut *mut c_char) -> Vec<CString> {
    if argc.is_null() || argv.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    let (count, list) = unsafe { (*argc, *argv) };
    let count = if list.is_null() { 0 } else { count.max(0) };
    let words = (0..count as usize).map(|at| {
        // SAFETY: the caller's promise.
        unsafe { *list.add(at) }
    });
    let words = words.take_while(|word| !word.is_null());
    words
        .map(|word| {
            // SAFETY: the caller's promise.
            unsafe { CStr::from_ptr(word) }.to_owned()
        })
        .collect()
}

/// Becomes the launcher of so many processes of this program. Returns only if that fails.
fn start_again(procs: c_int, words: &[CString]) -> Failure {
    let command = std::env::var_os(COMMAND_VARIABLE).unwrap_or_else(|| COMMAND.into());
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Failure::of(Code::Resource, &error),
    };
    let arguments = words.iter().skip(1);
    let arguments = arguments.map(|word| OsString::from_vec(word.clone().into_bytes()));
    let error = std::process::Command::new(&command)
        .args(["run", "-n", &procs.to_string()])
        .arg(program)
        .args(arguments)
        .exec();
    let text = format!(
        "{} could not be started ({error}): install the command hamlyn, or name it in {COMMAND_VARIABLE}, \
         or start the program with `hamlyn run -n {procs}`, mpirun or srun",
        command.to_string_lossy()
    );
    Failure::of(Code::Resource, &text)
}

/// `AMX_SPMDNumProcs`: 0 before the start.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_spmd_num_procs() -> c_int {
    let mut procs = 0;
    call(|library| {
        procs = of(library)?.job.procs as c_int;
        Ok(())
    });
    procs
}

/// `AMX_SPMDMyProc`: -1 before the start.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_spmd_my_proc() -> c_int {
    let mut proc = -1;
    call(|library| {
        proc = of(library)?.job.proc as c_int;
        Ok(())
    });
    proc
}

fn collect(
    library: &Rc<Library>,
    kind: Kind,
    what: [u32; 2],
    own: &[u8],
) -> Result<Vec<u8>, Failure> {
    let spmd = of(library)?;
    let patience = spmd.job.barrier_timeout;
    spmd.run(library, kind, what, own, patience, &|_| Ok(()))
}

/// `AMX_SPMDBarrier`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_spmd_barrier() -> c_int {
    call_outside(|library| {
        collect(library, Kind::Barrier, [0, 0], &[])?;
        Ok(())
    })
}

/// Bytes of an operation, for each process.
fn length_of(length_bytes: usize) -> Result<u32, Failure> {
    let length = u32::try_from(length_bytes).ok();
    let length = length.filter(|&length| length <= 1 << 26);
    length.ok_or(Failure::bad(
        "a collective operation has 64 MiB for each process at most",
    ))
}

/// Gives the caller the result of an operation, if it has the length of the caller's room.
fn fill(room: &mut [u8], whole: &[u8], otherwise: &'static str) -> Result<(), Failure> {
    if whole.len() != room.len() {
        return Err(Failure::resource(otherwise));
    }
    room.copy_from_slice(whole);
    Ok(())
}

/// `AMX_SPMDAllGather`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_spmd_all_gather(
    source: *const c_void,
    into: *mut c_void,
    length_bytes: usize,
) -> c_int {
    call_outside(|library| {
        let length = length_of(length_bytes)?;
        let procs = of(library)?.job.procs as usize;
        let own = bytes(source, length_bytes)?.to_vec();
        let room = bytes_mut(into, length_bytes.saturating_mul(procs))?;
        let whole = collect(library, Kind::AllGather, [length, 0], &own)?;
        fill(room, &whole, "the processes gave different lengths")
    })
}

/// `AMX_SPMDBroadcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_spmd_broadcast(
    data: *mut c_void,
    length_bytes: usize,
    root: c_int,
) -> c_int {
    call_outside(|library| {
        let length = length_of(length_bytes)?;
        let spmd = of(library)?;
        let root = u32::try_from(root).ok();
        let root = root.filter(|&root| root < spmd.job.procs);
        let root = root.ok_or(Failure::bad("the job has no process of that number"))?;
        let room = bytes_mut(data, length_bytes)?;
        let own = match root == spmd.job.proc {
            true => room.to_vec(),
            false => Vec::new(),
        };
        let whole = collect(library, Kind::Broadcast, [length, root], &own)?;
        fill(room, &whole, "the root gave another length")
    })
}

/// `AMX_SPMDSetExitCallback`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_spmd_set_exit_callback(callback: Option<ExitCallback>) -> c_int {
    call(|library| {
        of(library)?.callback.set(callback);
        Ok(())
    })
}

/// `AMX_SPMDExit`. Returns only from a handler, or before the start.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_spmd_exit(status: c_int) -> c_int {
    let mut may_exit = false;
    let mut status = status;
    let code = call_outside(|library| {
        let spmd = of(library)?;
        may_exit = true;
        if let Some(callback) = spmd.callback.take() {
            // SAFETY: the program set it for this.
            unsafe { callback(status) };
        }
        let ended = match status {
            0 => collect(library, Kind::Exit, [0, 0], &[]).map(drop),
            // The launcher ends the others.
            _ => Ok(()),
        };
        library::close(library);
        ended
    });
    if !may_exit {
        return code;
    }
    if code != 0 {
        // SAFETY: the text was made by this library, and lasts until the next call.
        let text = unsafe { CStr::from_ptr(hamlyn_am_error_text()) };
        eprintln!("am: {}", text.to_string_lossy());
        status = hamlyn_job::STATUS_OF_A_CONSEQUENCE;
    }
    // SAFETY: ends the process as a return from its main function does.
    unsafe { libc::exit(status) }
}
