//! The unsafe part of handlers by signal: a value that a program and the handler of a signal of its
//! thread use in turn, and the calls of the system that raise the signal.
//!
//! The handler of the signal runs in the thread that the value belongs to, between two instructions
//! of it. So nothing here is a matter of memory order among processors, and all of it one of order
//! in the program: one flag says whose the value is.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hamlyn::forks::Birth;
use hamlyn::host::{Errno, HostError};
use libc::{c_int, c_void, siginfo_t};

use crate::error::Error;

/// Signals by which a program may be interrupted. Of each of them one is pending at most, however
/// often a peer rings; of a real-time signal one for each ring, until the kernel has no room for
/// more and sends another signal, which ends the process.
pub(crate) const SIGNALS: [c_int; 4] = [libc::SIGURG, libc::SIGIO, libc::SIGUSR1, libc::SIGUSR2];

/// Commands of `fcntl`, and a kind of owner, that the C library does not name everywhere.
const F_SETSIG: c_int = 10;
const F_SETOWN_EX: c_int = 15;
const F_OWNER_TID: c_int = 0;

#[repr(C)]
struct Owner {
    kind: c_int,
    id: c_int,
}

/// A value that does something when its thread is interrupted.
pub(crate) trait Serve {
    /// Does what there is to do; in a handler of a signal it allocates, frees and locks nothing. It
    /// is to be called again after that time, if one is given.
    fn serve(&mut self, is_interrupt: bool) -> Option<Duration>;
}

/// A value that the program and the handler of a signal use in turn.
pub(crate) struct Interruptible<T: Serve>(NonNull<Inner<T>>);

struct Inner<T> {
    hook: Hook,
    flags: Arc<Flags>,
    birth: Birth,
    alarm: Alarm,
    value: UnsafeCell<T>,
    /// Given back after all that raises the signal is gone.
    _disposition: Disposition,
}

#[derive(Default)]
struct Flags {
    /// The program or the handler has the value.
    is_held: AtomicBool,
    /// A signal came while the program had it.
    is_pending: AtomicBool,
}

/// An entry in the list of a thread.
struct Hook {
    next: AtomicPtr<Hook>,
    signal: c_int,
    owner: AtomicPtr<c_void>,
    /// To be called with the owner.
    interrupt: unsafe fn(*const c_void),
}

thread_local! {
    /// What signals of this thread interrupt. Needs no destructor, so it is there as long as the
    /// thread is.
    static HOOKS: AtomicPtr<Hook> = const { AtomicPtr::new(null_mut()) };
}

impl<T: Serve> Interruptible<T> {
    /// Has the signal interrupt this thread for the value. Nothing raises it yet, but the alarm.
    pub(crate) fn new(value: T, signal: c_int) -> Result<Self, Error> {
        let disposition = Disposition::take(signal)?;
        let inner = Box::new(Inner {
            hook: Hook {
                next: AtomicPtr::new(HOOKS.with(|hooks| hooks.load(Relaxed))),
                signal,
                owner: AtomicPtr::new(null_mut()),
                interrupt: interrupt::<T>,
            },
            flags: Arc::default(),
            birth: Birth::here(),
            alarm: Alarm::new(signal)?,
            value: UnsafeCell::new(value),
            _disposition: disposition,
        });
        let inner = NonNull::from(Box::leak(inner));
        let this = Self(inner);
        let hook = &this.inner().hook;
        hook.owner.store(inner.as_ptr().cast(), Relaxed);
        // The entry is whole before the handler can see it.
        compiler_fence(Ordering::SeqCst);
        HOOKS.with(|hooks| hooks.store((&raw const *hook).cast_mut(), Relaxed));
        Ok(this)
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: it is freed when this is dropped; others have shared references only.
        unsafe { self.0.as_ref() }
    }

    /// The value, if nobody has it.
    pub(crate) fn hold(&self) -> Option<Held<'_, T>> {
        self.inner().hold()
    }

    /// Interrupts the program, or if it has the value what it does next: to be called in its
    /// thread, also after this is dropped.
    pub(crate) fn raiser(&self) -> impl Fn() + Send + Sync + 'static {
        let Inner { flags, birth, .. } = self.inner();
        let (flags, birth, signal) = (Arc::clone(flags), *birth, self.signal());
        move || {
            if flags.is_held.load(Relaxed) {
                flags.is_pending.store(true, Relaxed);
            } else if birth.is_here() {
                raise(signal);
            }
        }
    }

    /// The signal that interrupts.
    pub(crate) fn signal(&self) -> c_int {
        self.inner().hook.signal
    }
}

impl<T: Serve> Drop for Interruptible<T> {
    fn drop(&mut self) {
        let inner = self.inner();
        // The handler leaves the value alone, if it still comes.
        inner.flags.is_held.store(true, Relaxed);
        let own = (&raw const inner.hook).cast_mut();
        HOOKS.with(|hooks| {
            let mut place = hooks;
            while place.load(Relaxed) != own {
                // SAFETY: entries of the list are there until they leave it, which they do here,
                // in the thread that the list is of, as this type belongs to one thread.
                match unsafe { place.load(Relaxed).as_ref() } {
                    Some(other) => place = &other.next,
                    None => return,
                }
            }
            place.store(inner.hook.next.load(Relaxed), Relaxed);
        });
        compiler_fence(Ordering::SeqCst);
        // SAFETY: it came out of a box, nobody has a reference into it, and it is in no list.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl<T: Serve> Inner<T> {
    fn hold(&self) -> Option<Held<'_, T>> {
        // A signal in between has held and released it when this goes on.
        if self.flags.is_held.load(Relaxed) {
            return None;
        }
        self.flags.is_held.store(true, Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Held { inner: self })
    }

    fn release(&self) {
        compiler_fence(Ordering::SeqCst);
        self.flags.is_held.store(false, Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// In the handler of the signal.
    fn interrupt(&self) {
        if !self.birth.is_here() {
            return;
        }
        match self.hold() {
            None => self.flags.is_pending.store(true, Relaxed),
            Some(mut held) => {
                held.serve_now(true);
                std::mem::forget(held);
                self.release();
            }
        }
    }
}

/// # Safety
///
/// `owner` is an [`Inner`] of that type.
unsafe fn interrupt<T: Serve>(owner: *const c_void) {
    // SAFETY: as the caller says, and it is there as long as its hook is in the list.
    let inner = unsafe { &*owner.cast::<Inner<T>>() };
    inner.interrupt();
}

/// The value in the hands of the program, or of the handler.
pub(crate) struct Held<'a, T: Serve> {
    inner: &'a Inner<T>,
}

impl<T: Serve> Held<'_, T> {
    /// True once if a signal came while the program had the value.
    pub(crate) fn take_pending(&mut self) -> bool {
        self.inner.flags.is_pending.swap(false, Relaxed)
    }

    /// Has the value serve, in the program or in the handler.
    pub(crate) fn serve_now(&mut self, is_interrupt: bool) {
        self.take_pending();
        match catch_unwind(AssertUnwindSafe(|| self.serve(is_interrupt))) {
            Ok(Some(span)) => self.inner.alarm.set(span),
            Ok(None) => {}
            Err(panicked) if is_interrupt => {
                // To unwind into interrupted code is not sound, and to free it is not either.
                std::mem::forget(panicked);
            }
            Err(panicked) => std::panic::resume_unwind(panicked),
        }
    }
}

impl<T: Serve> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is one of this at a time, and the handler leaves the value alone meanwhile.
        unsafe { &*self.inner.value.get() }
    }
}

impl<T: Serve> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.inner.value.get() }
    }
}

impl<T: Serve> Drop for Held<'_, T> {
    /// In the program. A signal that came meanwhile comes again.
    fn drop(&mut self) {
        self.inner.release();
        if self.take_pending() && !std::thread::panicking() && self.inner.birth.is_here() {
            raise(self.inner.hook.signal);
        }
    }
}

/// Interrupts this thread.
fn raise(signal: c_int) {
    // SAFETY: the signal is handled here as long as its value is not dropped.
    unsafe { libc::raise(signal) };
}

/// The time after which what was left is looked at.
pub(crate) const SOON: Duration = Duration::from_micros(50);

/// The handler of all signals that are in use.
extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the address of the thread's own error number.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: it is there as long as the thread is.
    let before = unsafe { *errno };
    // SAFETY: the kernel gives it to a handler that was set with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    // Those for the whole process may come in any thread, also in one that has used no part of
    // this library, whose memory would be made here.
    if code != libc::SI_USER && code != libc::SI_QUEUE {
        let first = HOOKS.with(|hooks| hooks.load(Relaxed));
        // SAFETY: entries are whole before they are in the list, and there as long as they are.
        let mut next = unsafe { first.as_ref() };
        while let Some(hook) = next {
            if hook.signal == signal {
                // SAFETY: the hook was made with a function for its owner.
                unsafe { (hook.interrupt)(hook.owner.load(Relaxed)) };
            }
            // SAFETY: as above.
            next = unsafe { hook.next.load(Relaxed).as_ref() };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// A handler of a signal that is in use.
struct InUse {
    signal: c_int,
    users: usize,
    before: libc::sigaction,
}

static IN_USE: Mutex<Vec<InUse>> = Mutex::new(Vec::new());

/// For a moment, and never in the handler of a signal.
fn in_use() -> MutexGuard<'static, Vec<InUse>> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The process handles the signal here, as long as one of these lives.
struct Disposition(c_int);

/// The action of a signal that may be taken: nothing if it is in use here already.
fn check(signal: c_int, all: &[InUse]) -> Result<Option<libc::sigaction>, Error> {
    if !SIGNALS.contains(&signal) {
        return Err(Error::BadSignal { signal });
    }
    if all.iter().any(|known| known.signal == signal) {
        return Ok(None);
    }
    let before = action(signal, None)?;
    match [libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) {
        true => Ok(Some(before)),
        false => Err(Error::SignalInUse { signal }),
    }
}

/// An error if that signal may not be taken.
pub(crate) fn check_signal(signal: c_int) -> Result<(), Error> {
    check(signal, &in_use()).map(drop)
}

impl Disposition {
    fn take(signal: c_int) -> Result<Self, Error> {
        let mut all = in_use();
        let Some(before) = check(signal, &all)? else {
            let known = all.iter_mut().filter(|known| known.signal == signal);
            known.for_each(|known| known.users += 1);
            return Ok(Self(signal));
        };
        // SAFETY: all zero is a good value of this type of C.
        let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
        ours.sa_sigaction = on_signal as *const () as usize;
        // Calls of the program that the system can begin again go on.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        for other in SIGNALS {
            // One handler at a time in a thread.
            // SAFETY: a set of signals of this function.
            unsafe { libc::sigaddset(&raw mut ours.sa_mask, other) };
        }
        action(signal, Some(&ours))?;
        all.push(InUse {
            signal,
            users: 1,
            before,
        });
        Ok(Self(signal))
    }
}

impl Drop for Disposition {
    fn drop(&mut self) {
        let mut all = in_use();
        let Some(at) = all.iter().position(|known| known.signal == self.0) else {
            return;
        };
        all[at].users -= 1;
        if all[at].users > 0 {
            return;
        }
        let InUse { signal, before, .. } = all.swap_remove(at);
        let is_ours = |now: libc::sigaction| now.sa_sigaction == on_signal as *const () as usize;
        // Somebody may have set another handler since.
        if action(signal, None).is_ok_and(is_ours) {
            // SAFETY: all zero is a good value of this type of C.
            let mut ignore: libc::sigaction = unsafe { std::mem::zeroed() };
            ignore.sa_sigaction = libc::SIG_IGN;
            // A signal that is pending goes, whatever it did to the process before.
            let _ = action(signal, Some(&ignore));
            let _ = action(signal, Some(&before));
        }
    }
}

/// The action of a signal, which is replaced if there is a new one.
fn action(signal: c_int, new: Option<&libc::sigaction>) -> Result<libc::sigaction, Error> {
    let new = new.map_or(null(), |new| &raw const *new);
    // SAFETY: all zero is a good value of this type of C.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both are actions of this function and its caller; a handler does what handlers may.
    done("sigaction", unsafe {
        libc::sigaction(signal, new, &raw mut before)
    })?;
    Ok(before)
}

/// Raises the signal in this thread after some time.
struct Alarm {
    timer: libc::timer_t,
    birth: Birth,
}

impl Alarm {
    fn new(signal: c_int) -> Result<Self, Error> {
        // SAFETY: all zero is a good value of this type of C.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = thread();
        let mut timer: libc::timer_t = null_mut();
        // SAFETY: both are places of this function.
        done("timer_create", unsafe {
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer)
        })?;
        let birth = Birth::here();
        Ok(Self { timer, birth })
    }

    fn set(&self, span: Duration) {
        let zero = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let time = libc::itimerspec {
            it_interval: zero,
            it_value: libc::timespec {
                tv_sec: span.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                // None at all would be no alarm.
                tv_nsec: span.subsec_nanos().max(1).into(),
            },
        };
        if self.birth.is_here() {
            // SAFETY: the timer is there as long as this is, and the time a good one.
            unsafe { libc::timer_settime(self.timer, 0, &raw const time, null_mut()) };
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // A forked child has none of its parent's.
        if self.birth.is_here() {
            // SAFETY: it is there, and used no more.
            unsafe { libc::timer_delete(self.timer) };
        }
    }
}

/// Has the descriptor raise the signal in this thread when something comes there. False if it
/// raises one already.
pub(crate) fn raise_at(descriptor: BorrowedFd<'_>, signal: c_int) -> Result<bool, Error> {
    let flags = flags_of(descriptor)?;
    if flags & libc::O_ASYNC != 0 {
        return Ok(false);
    }
    let owner = Owner {
        kind: F_OWNER_TID,
        id: thread(),
    };
    let descriptor = descriptor.as_raw_fd();
    // SAFETY: the descriptor is open, and the commands take these arguments.
    done("fcntl", unsafe {
        libc::fcntl(descriptor, F_SETOWN_EX, &raw const owner)
    })?;
    // SAFETY: as above.
    done("fcntl", unsafe {
        libc::fcntl(descriptor, F_SETSIG, signal)
    })?;
    // SAFETY: as above.
    done("fcntl", unsafe {
        libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_ASYNC)
    })?;
    Ok(true)
}

/// Has it raise none. It can only fail where it raised none.
pub(crate) fn raise_none_at(descriptor: BorrowedFd<'_>) {
    if let Ok(flags) = flags_of(descriptor) {
        // SAFETY: the descriptor is open, and the command takes this argument.
        unsafe {
            libc::fcntl(
                descriptor.as_raw_fd(),
                libc::F_SETFL,
                flags & !libc::O_ASYNC,
            )
        };
    }
}

fn flags_of(descriptor: BorrowedFd<'_>) -> Result<c_int, Error> {
    // SAFETY: the descriptor is open, and the command takes no argument.
    let flags = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL) };
    done("fcntl", flags)?;
    Ok(flags)
}

/// The number of this thread.
fn thread() -> c_int {
    // SAFETY: it has no conditions.
    unsafe { libc::gettid() }
}

fn done(call: &'static str, result: c_int) -> Result<(), Error> {
    if result >= 0 {
        return Ok(());
    }
    let errno = std::io::Error::last_os_error().raw_os_error();
    let errno = Errno(errno.unwrap_or_default());
    Err(HostError::System { call, errno }.into())
}
