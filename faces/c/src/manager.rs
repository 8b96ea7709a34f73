//! Managers: opening one, and what is asked of it as a whole.

use std::ffi::c_char;
use std::hint::unreachable_unchecked;

use hamlyn::Sleep;
use hamlyn::host::process::ProcessHost;
use hamlyn::host::sharing::AnyThread;

use crate::boundary::{Room, call, room, wait_of};
use crate::handle::{self, Kind, OfThisThread, kind};
use crate::holding::Holding;
use crate::options::Options;
use crate::status::{Error, Failure, Status};

/// A host whose managers belong to one thread, and one whose managers any thread uses.
pub(crate) type OneThread = ProcessHost;
pub(crate) type Threads = ProcessHost<AnyThread>;

/// An object of a manager of one thread, or of one that threads share.
#[derive(Debug)]
pub(crate) enum Of<A, S> {
    Alone(A),
    Shared(S),
}

/// Does the same with either.
macro_rules! each {
    ($of:expr, $object:pat => $act:expr) => {
        match $of {
            $crate::manager::Of::Alone($object) => $act,
            $crate::manager::Of::Shared($object) => $act,
        }
    };
}
/// Makes the same of either.
macro_rules! each_into {
    ($of:expr, $object:pat => $act:expr) => {
        match $of {
            $crate::manager::Of::Alone($object) => $crate::manager::Of::Alone($act),
            $crate::manager::Of::Shared($object) => $crate::manager::Of::Shared($act),
        }
    };
}
/// Makes an end point with the manager of a handle, and puts its own handle into its place.
macro_rules! make_end {
    ($manager:ident, $place:ident, $end:ident, $inner:ident => $make:expr) => {{
        let end = $crate::handle::with($manager, |$crate::manager::Manager(manager)| {
            Ok($crate::manager::each_into!(manager, manager => {
                let $inner = manager.end()?;
                $make
            }))
        })?;
        $crate::manager::put($place, end, $end);
        Ok(())
    }};
}
pub(crate) use {each, each_into, make_end};

/// Puts the handle of an object into its place: for one thread or for all, as its manager is.
pub(crate) fn put<K: Kind, A, S>(
    place: Room<*mut K>,
    object: Of<A, S>,
    value: impl FnOnce(Of<A, S>) -> K::Value,
) {
    let is_shared = matches!(object, Of::Shared(_));
    place.put(handle::make(value(object), is_shared));
}

impl<'a, V> OfThisThread<'a, V> {
    /// What of a handle's object is of a manager of one thread, or of several.
    #[inline(always)]
    pub(crate) fn alone<A: 'a, S: 'a>(
        self,
        of: impl FnOnce(&'a mut V) -> &'a mut Of<A, S>,
    ) -> &'a mut A {
        match of(self.0) {
            Of::Alone(object) => object,
            // SAFETY: handles of such objects are made by `put`, by which they belong to no thread.
            Of::Shared(_) => unsafe { unreachable_unchecked() },
        }
    }
}

impl<A, M, S, N> Of<Holding<A, M>, Holding<S, N>> {
    /// Gives back the message that is held.
    pub(crate) fn release(&mut self) -> Result<(), Failure> {
        each!(self, end => end.release().map(drop))
    }
}

/// Whether threads share it, and so what is made with it.
pub(crate) fn manager_is_shared(manager: *mut ManagerHandle) -> Result<bool, Failure> {
    handle::with(manager, |Manager(manager)| {
        Ok(matches!(manager, Of::Shared(_)))
    })
}

/// An interface and its end points, found by others under its name. Belongs to the thread that opened it, with all its end points,
/// unless it was opened as shared.
#[derive(Debug)]
pub struct ManagerHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct Manager(pub(crate) Of<Sleeping<OneThread>, Sleeping<Threads>>);

kind!(ManagerHandle, Manager, 1, "manager");

/// A manager, and the sleep that was prepared.
type Sleeping<H> = Holding<hamlyn::Manager<H>, Sleep<'static, H>>;

fn open(options: &Options, manager: *mut *mut ManagerHandle) -> Result<(), Failure> {
    let place = room("the place for the manager", manager)?;
    let (host, of_manager) = (options.host()?, options.manager()?);
    let opened = match options.shared {
        0 => Of::Alone(Holding::new(hamlyn::open_with(host, of_manager)?)),
        _ => Of::Shared(Holding::new(hamlyn::open_shared(host, of_manager)?)),
    };
    put(place, opened, Manager);
    Ok(())
}

/// Opens a manager, as `options` say; null: an unnamed one with the defaults. Allocates. Does not block, but for the time that the
/// system takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_with(
    options: *const Options,
    manager: *mut *mut ManagerHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let options = Options::read(options)?;
        open(&options, manager)
    })
}

/// Opens a manager under that name; null: one that others reach by tickets only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open(
    name: *const c_char,
    manager: *mut *mut ManagerHandle,
    error: *mut Error,
) -> Status {
    let options = Options {
        name,
        ..Options::new()
    };
    call(error, || open(&options, manager))
}

/// Closes a manager. Its end points go on until each is closed; the interface ends with the last. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close(manager: *mut ManagerHandle, error: *mut Error) -> Status {
    call(error, || handle::close(manager).map(drop))
}

/// Takes in what has come, and sends what waits. Does not block. For programs that compute for long, and have no network processor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_poll(manager: *mut ManagerHandle, error: *mut Error) -> Status {
    call(error, || {
        handle::with(manager, |Manager(manager)| {
            each!(manager, manager => manager.end()?.poll_nowait())?;
            Ok(())
        })
    })
}

/// Waits until something has happened that an end point or hamlyn_next_event may tell, for `wait_ns` at most. HAMLYN_OK also if
/// the time was over: ask the end points.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_wait(
    manager: *mut ManagerHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(manager, |Manager(manager)| {
            each!(manager, manager => manager.end()?.wait(wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Waits until everything that was sent has left this program. HAMLYN_TIMED_OUT if it had not when the time was over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_flush(
    manager: *mut ManagerHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(manager, |Manager(manager)| {
            let is_flushed = each!(manager, manager => manager.end()?.flush(wait_of(wait_ns)))?;
            match is_flushed {
                true => Ok(()),
                false => Err(Failure::timed_out(
                    "not everything had left when the time was over: wait longer",
                )),
            }
        })
    })
}

/// Waits until everything that was sent to anybody is in its place there. HAMLYN_REFUSED, with a text about the last packet, if some
/// was not accepted since the fence before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fence(
    manager: *mut ManagerHandle,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(manager, |Manager(manager)| {
            each!(manager, manager => manager.end()?.fence(wait_of(wait_ns)))?;
            Ok(())
        })
    })
}

/// Another handle of a manager that was opened as shared, for another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_share_manager(
    manager: *mut ManagerHandle,
    another: *mut *mut ManagerHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the manager", another)?;
        let copy = handle::with(manager, |Manager(manager)| match manager {
            Of::Alone(_) => Err(Failure::new(
                Status::Invalid,
                "this manager was not opened as shared",
            )),
            Of::Shared(manager) => Ok(Of::Shared(Holding::new(manager.end()?.clone()))),
        })?;
        put(place, copy, Manager);
        Ok(())
    })
}
