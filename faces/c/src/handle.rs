//! Handles: what a C program has of an object.
//!
//! A handle is refused when it is null, of another kind, closed, or in use by another thread. One that belongs to a thread is refused
//! in others, and a forked child is refused all that its parent made. So that a closed handle can
//! be told, its cell is not given to the allocator, but used again for a handle of its kind after a
//! thousand others were closed: a program that keeps a closed handle for longer than that uses
//! another's.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use hamlyn::forks::{Birth, Forked};

use crate::status::{Failure, Status};

/// A kind of handle, as C sees it: without fields.
pub(crate) trait Kind: Sized + 'static {
    /// The object.
    type Value;
    /// Told apart by this, in the upper bits of a cell's state.
    const NUMBER: u32;
    /// As errors name it.
    const NAME: &'static str;
    /// Cells of closed handles.
    fn closed() -> &'static Closed<Self>;
}

/// In a cell's state, beside its kind.
const OPEN: u32 = 0;
const IN_USE: u32 = 1;
const CLOSED: u32 = 2;
/// Its call panicked.
const BROKEN: u32 = 3;
const STATE_BITS: u32 = 8;
const STATE_MASK: u32 = (1 << STATE_BITS) - 1;
/// What no other memory is likely to begin with.
const MARK: u32 = 0x4A6D_0000;

/// Any thread may use it, one at a time.
const ANY_THREAD: usize = 0;
/// What the short way finds in a handle that is not open, in use by a whole call, or of any thread.
const WHOLE_CALLS_ONLY: usize = 0;
/// The numbers of two threads are further apart: each thread's control block begins at its number, and is larger.
pub(crate) const KINDS_MAX: u32 = 64;
/// Closed handles of a kind that are told for sure.
const CLOSED_MAX: usize = 1_024;

/// Says what kind of handle a type is: its object, its number, and its name.
macro_rules! kind {
    ($handle:ty, $value:ty, $number:literal, $name:literal) => {
        impl $crate::handle::Kind for $handle {
            type Value = $value;

            const NUMBER: u32 = {
                assert!($number < $crate::handle::KINDS_MAX);
                $number
            };
            const NAME: &'static str = $name;

            fn closed() -> &'static $crate::handle::Closed<Self> {
                static CLOSED: $crate::handle::Closed<$handle> = $crate::handle::Closed::new();
                &CLOSED
            }
        }
    };
}
pub(crate) use kind;

/// What a handle points to. All kinds begin alike, so that one can be told from the other.
#[repr(C)]
#[derive(Debug)]
struct Cell<T> {
    /// One word that says all that the short way has to know: [`short_way`], or [`WHOLE_CALLS_ONLY`].
    short_way: AtomicUsize,
    state: AtomicU32,
    thread: AtomicUsize,
    /// In which process it was made. Written while the cell is closed.
    birth: UnsafeCell<Birth>,
    value: UnsafeCell<Option<T>>,
}

impl<T> Cell<T> {
    #[inline(always)]
    fn is_of_this_process(&self) -> bool {
        // SAFETY: it is written by `make` alone, which has the cell for itself.
        unsafe { *self.birth.get() }.is_here()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Closed<K>(Mutex<VecDeque<Address<K>>>);

#[derive(Debug)]
struct Address<K>(*mut K);

// SAFETY: the cell at the address has no value, and nobody but the holder of the address writes it.
unsafe impl<K> Send for Address<K> {}

impl<K> Closed<K> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    /// Nothing in a forked child if a thread of its parent had the list when it was forked, and so
    /// for ever.
    fn lock(&self) -> Option<MutexGuard<'_, VecDeque<Address<K>>>> {
        if !Birth::is_of_a_child() {
            return Some(self.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.0.try_lock() {
            Ok(list) => Some(list),
            Err(TryLockError::Poisoned(list)) => Some(list.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A number of the running thread, which no other running thread has.
#[inline(always)]
fn this_thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer: usize;
        // SAFETY: by the calling convention the first word of a thread's control block is its own address.
        unsafe {
            std::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
        }
        pointer
    }
    #[cfg(target_arch = "aarch64")]
    {
        let pointer: usize;
        // SAFETY: it reads a register that any program may read.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags, pure));
        }
        pointer
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        thread_local!(static PLACE: u8 = const { 0 });
        PLACE.with(|place| std::ptr::from_ref(place) as usize)
    }
}

const fn state<K: Kind>(state: u32) -> u32 {
    MARK | K::NUMBER << STATE_BITS | state
}

/// The same, of a handle that belongs to the thread of that number.
#[inline(always)]
const fn short_way<K: Kind>(thread: usize) -> usize {
    thread.wrapping_add(K::NUMBER as usize)
}

/// What an open handle has for the short way.
const fn short_way_of_open<K: Kind>(thread: usize) -> usize {
    match thread {
        ANY_THREAD => WHOLE_CALLS_ONLY,
        _ => short_way::<K>(thread),
    }
}

/// Makes a handle. Allocates now and then.
pub(crate) fn make<K: Kind>(value: K::Value, is_of_any_thread: bool) -> *mut K {
    let thread = match is_of_any_thread {
        true => ANY_THREAD,
        false => this_thread(),
    };
    let used_again = K::closed().lock().and_then(|mut closed| {
        let is_long = closed.len() > CLOSED_MAX;
        is_long.then(|| closed.pop_front()).flatten()
    });
    match used_again {
        Some(Address(handle)) => {
            let cell: *const Cell<K::Value> = handle.cast();
            // SAFETY: the cell was made below and is never freed. It is closed, so that nobody but us uses its value: the address was
            // taken from the list.
            unsafe {
                *(*cell).value.get() = Some(value);
                *(*cell).birth.get() = Birth::here();
                (*cell).thread.store(thread, Ordering::Relaxed);
                (*cell)
                    .short_way
                    .store(short_way_of_open::<K>(thread), Ordering::Relaxed);
                (*cell).state.store(state::<K>(OPEN), Ordering::Release);
            }
            handle
        }
        None => Box::into_raw(Box::new(Cell {
            short_way: AtomicUsize::new(short_way_of_open::<K>(thread)),
            state: AtomicU32::new(state::<K>(OPEN)),
            thread: AtomicUsize::new(thread),
            birth: UnsafeCell::new(Birth::here()),
            value: UnsafeCell::new(Some(value)),
        }))
        .cast(),
    }
}

/// Makes a handle that any thread may use, one at a time.
pub(crate) fn make_for_any_thread<K: Kind<Value: Send>>(value: K::Value) -> *mut K {
    make(value, true)
}

/// The object is in use until this is dropped.
struct InUse<'a, K: Kind> {
    cell: &'a Cell<K::Value>,
    becomes: u32,
}

impl<K: Kind> Drop for InUse<'_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        let (becomes, cell) = (self.becomes, self.cell);
        if becomes == OPEN {
            let thread = cell.thread.load(Ordering::Relaxed);
            cell.short_way
                .store(short_way_of_open::<K>(thread), Ordering::Relaxed);
        }
        cell.state.store(state::<K>(becomes), Ordering::Release);
    }
}

#[inline(always)]
fn enter<'a, K: Kind>(handle: *const K) -> Result<InUse<'a, K>, Failure> {
    let cell: *const Cell<K::Value> = handle.cast();
    if cell.is_null() || !cell.is_aligned() {
        return Err(not_a_handle::<K>());
    }
    // SAFETY: a handle that is not null comes from `make`, as the header demands, and cells are never freed.
    let cell = unsafe { &*cell };
    if !cell.is_of_this_process() {
        let found = cell.state.load(Ordering::Relaxed);
        return Err(why_not_here::<K>(found));
    }
    let thread = cell.thread.load(Ordering::Relaxed);
    let is_ours = thread == this_thread();
    let (open, in_use) = (state::<K>(OPEN), state::<K>(IN_USE));
    let is_entered = match is_ours {
        // No other thread gets here, so that this needs no locked instruction.
        true if cell.state.load(Ordering::Relaxed) == open => {
            cell.state.store(in_use, Ordering::Relaxed);
            cell.short_way.store(WHOLE_CALLS_ONLY, Ordering::Relaxed);
            true
        }
        false if thread == ANY_THREAD => {
            let entered =
                cell.state
                    .compare_exchange(open, in_use, Ordering::Acquire, Ordering::Relaxed);
            entered.is_ok()
        }
        _ => false,
    };
    match is_entered {
        true => Ok(InUse {
            cell,
            becomes: OPEN,
        }),
        false => {
            let found = cell.state.load(Ordering::Relaxed);
            Err(why_not::<K>(found, is_ours || thread == ANY_THREAD))
        }
    }
}

/// Uses the object of a handle.
#[inline(always)]
pub(crate) fn with<K: Kind, R>(
    handle: *const K,
    call: impl FnOnce(&mut K::Value) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let mut in_use = enter(handle)?;
    in_use.becomes = BROKEN;
    // SAFETY: it is marked as in use, by us, so that nobody else has a reference to the value.
    let value = unsafe { &mut *in_use.cell.value.get() };
    let Some(value) = value else {
        return Err(not_a_handle::<K>());
    };
    let result = call(value);
    in_use.becomes = OPEN;
    result
}

/// A handle that is in use until this is dropped, for calls that use any number of them. A panic breaks it.
pub(crate) struct Entered<'a, K: Kind>(InUse<'a, K>);

/// Uses a handle beside others; [`with`] is for those whose number is known.
pub(crate) fn enter_for_several<'a, K: Kind>(handle: *const K) -> Result<Entered<'a, K>, Failure> {
    let mut in_use = enter(handle)?;
    // SAFETY: as in `with`.
    if unsafe { &*in_use.cell.value.get() }.is_none() {
        return Err(not_a_handle::<K>());
    }
    in_use.becomes = BROKEN;
    Ok(Entered(in_use))
}

impl<K: Kind> Entered<'_, K> {
    pub(crate) fn value(&self) -> &K::Value {
        // SAFETY: as in `with`; and it was there when this was made.
        unsafe { (*self.0.cell.value.get()).as_ref().unwrap_unchecked() }
    }
}

impl<K: Kind> Drop for Entered<'_, K> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.becomes = OPEN;
        }
    }
}

/// The object of a handle that belongs to this thread, which is therefore of a manager of one thread.
#[derive(Debug)]
pub(crate) struct OfThisThread<'a, V>(pub(crate) &'a mut V);

/// Uses the object of a handle of this thread that is open; otherwise nothing, and [`with`] says why not. A call that panics gives
/// nothing, too. The fewer words `call` captures, the fewer have to be in memory, where the panic is caught.
///
/// The handle is not marked as in use meanwhile: no other thread gets here, and the library calls nothing of the program's.
#[inline(always)]
pub(crate) fn with_at_once<K: Kind, R>(
    handle: *const K,
    call: impl FnOnce(OfThisThread<'_, K::Value>) -> Option<R>,
) -> Option<R> {
    let cell: *const Cell<K::Value> = handle.cast();
    // SAFETY: as in `enter`, which also tells what is no handle at all.
    let cell = unsafe { cell.as_ref() }?;
    let is_open = cell.short_way.load(Ordering::Relaxed) == short_way::<K>(this_thread());
    if !is_open || !cell.is_of_this_process() {
        return None;
    }
    let result = catch_unwind(AssertUnwindSafe(move || {
        // SAFETY: the word that was found is that of an open handle, which has a value that only a cell in use loses; nobody else has a
        // reference to it, as this is its thread and no whole call uses it.
        call(OfThisThread(unsafe {
            (*cell.value.get()).as_mut().unwrap_unchecked()
        }))
    }));
    result.unwrap_or_else(|_| {
        broken(cell);
        None
    })
}

/// Its call panicked.
#[cold]
#[inline(never)]
fn broken<T>(cell: &Cell<T>) {
    cell.short_way.store(WHOLE_CALLS_ONLY, Ordering::Relaxed);
    let kind = cell.state.load(Ordering::Relaxed) & !STATE_MASK;
    cell.state.store(kind | BROKEN, Ordering::Relaxed);
}

/// Closes a handle: its object, which is to be dropped. Nothing for a null handle.
pub(crate) fn close<K: Kind>(handle: *mut K) -> Result<Option<K::Value>, Failure> {
    if handle.is_null() {
        return Ok(None);
    }
    let mut in_use = enter(handle)?;
    // SAFETY: as in `with`.
    let value = unsafe { (*in_use.cell.value.get()).take() };
    in_use.becomes = CLOSED;
    drop(in_use);
    put_aside(handle);
    Ok(value)
}

/// Uses up the object of a handle, which is closed then; or keeps it open, if `use_up` gives the object back.
pub(crate) fn use_up<K: Kind, R>(
    handle: *mut K,
    use_up: impl FnOnce(K::Value) -> Result<R, (K::Value, Failure)>,
) -> Result<R, Failure> {
    let mut in_use = enter(handle.cast_const())?;
    in_use.becomes = BROKEN;
    // SAFETY: as in `with`.
    let place = unsafe { &mut *in_use.cell.value.get() };
    let Some(value) = place.take() else {
        return Err(not_a_handle::<K>());
    };
    match use_up(value) {
        Ok(result) => {
            in_use.becomes = CLOSED;
            drop(in_use);
            put_aside(handle);
            Ok(result)
        }
        Err((value, failure)) => {
            *place = Some(value);
            in_use.becomes = OPEN;
            Err(failure)
        }
    }
}

/// Keeps the cell of a handle that was closed.
fn put_aside<K: Kind>(handle: *mut K) {
    if let Some(mut closed) = K::closed().lock() {
        closed.push_back(Address(handle));
    }
}

#[cold]
fn not_a_handle<K: Kind>() -> Failure {
    Failure::of(
        Status::BadHandle,
        &format_args!(
            "this is no {}: it is null, or nothing that this library made",
            K::NAME
        ),
    )
}

/// Why not, of a handle that this process did not make: first that it is none of its kind, if so.
#[cold]
fn why_not_here<K: Kind>(found: u32) -> Failure {
    match found & !STATE_MASK == state::<K>(OPEN) & !STATE_MASK && found & STATE_MASK != CLOSED {
        true => Failure::of(
            Status::BadHandle,
            &format_args!("this {} cannot be used: {Forked}", K::NAME),
        ),
        false => why_not::<K>(found, true),
    }
}

#[cold]
fn why_not<K: Kind>(found: u32, is_right_thread: bool) -> Failure {
    let name = K::NAME;
    if found & !STATE_MASK != state::<K>(OPEN) & !STATE_MASK {
        return match found & 0xFFFF_0000 == MARK {
            true => Failure::of(
                Status::BadHandle,
                &format_args!("this is no {name}, but a handle of another kind"),
            ),
            false => not_a_handle::<K>(),
        };
    }
    match found & STATE_MASK {
        CLOSED => Failure::of(Status::BadHandle, &format_args!("this {name} was closed")),
        BROKEN => Failure::of(
            Status::Fault,
            &format_args!("this {name} met a fault of the library before, and cannot be used"),
        ),
        _ if !is_right_thread => Failure::of(
            Status::OtherThread,
            &format_args!(
                "this {name} belongs to the thread that made it: open the manager with `shared` for several"
            ),
        ),
        _ => Failure::of(
            Status::OtherThread,
            &format_args!("another call uses this {name} now: one at a time may"),
        ),
    }
}
