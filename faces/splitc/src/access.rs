//! Access to global memory, where the inline functions of the header do not reach.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::OnceLock;
use std::time::Instant;

use hamlyn_splitc::GlobalAddress;

use crate::boundary::{Place, with};

/// Calls of [`splitc_slow_poll`] of which one looks: they come with every access where nobody can call for attention.
const POLLS_PER_LOOK: u32 = 16;

/// Reads, and blocks until the bytes are there.
///
/// # Safety
///
/// `to` has room for `bytes` bytes, and is not memory of the runtime; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_slow_read(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    place: *const Place,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise. The bytes may hold nothing yet, which is no difference to C; they are only written.
    let into = unsafe { from_raw_parts_mut(to.cast::<u8>(), bytes) };
    with("a read", place, |runtime| {
        runtime.read_bytes(GlobalAddress::from_bits(from), into)
    });
}

/// Writes, and blocks until the bytes are in their place.
///
/// # Safety
///
/// `from` has `bytes` bytes; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_slow_write(
    to: u64,
    from: *const c_void,
    bytes: usize,
    place: *const Place,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    let from = unsafe { from_raw_parts(from.cast::<u8>(), bytes) };
    with("a write", place, |runtime| {
        runtime.write_bytes(GlobalAddress::from_bits(to), from)
    });
}

/// Begins to read.
///
/// # Safety
///
/// `to` has room for `bytes` bytes until the next sync; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_slow_get(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    place: *const Place,
) {
    if bytes == 0 {
        return;
    }
    with("a get", place, |runtime| {
        runtime.get_bytes(to as u64, GlobalAddress::from_bits(from), bytes as u64)
    });
}

/// Begins to write.
///
/// # Safety
///
/// As [`splitc_slow_write`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_slow_put(
    to: u64,
    from: *const c_void,
    bytes: usize,
    place: *const Place,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    let from = unsafe { from_raw_parts(from.cast::<u8>(), bytes) };
    with("a put", place, |runtime| {
        runtime.put_bytes(GlobalAddress::from_bits(to), from)
    });
}

/// Stores; the owner counts the bytes.
///
/// # Safety
///
/// As [`splitc_slow_write`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_slow_store(
    to: u64,
    from: *const c_void,
    bytes: usize,
    place: *const Place,
) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the caller's promise.
    let from = unsafe { from_raw_parts(from.cast::<u8>(), bytes) };
    with("a store", place, |runtime| {
        runtime.store_bytes(GlobalAddress::from_bits(to), from)
    });
}

thread_local! {
    static POLLS: Cell<u32> = const { Cell::new(0) };
}

/// Carries out what others call attention to; where they cannot, polls now and then.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_slow_poll() {
    let is_called = with("a poll", std::ptr::null(), |runtime| runtime.poll_called());
    if is_called {
        return;
    }
    let polls = POLLS.get().wrapping_add(1);
    POLLS.set(polls);
    if polls.is_multiple_of(POLLS_PER_LOOK) {
        splitc_poll();
    }
}

/// Takes what has come, and carries out atomic procedures.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_poll() {
    with("a poll", std::ptr::null(), |runtime| runtime.poll());
}

/// Completes all gets and puts of this processor.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_sync(place: *const Place) {
    with("sync", place, |runtime| runtime.sync());
}

/// Whether all gets and puts of this processor are complete.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_is_sync(place: *const Place) -> c_int {
    with("is_sync", place, |runtime| runtime.is_sync()).into()
}

/// Waits until so many more bytes were stored here. A negative number is none.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_store_sync(bytes: i64, place: *const Place) {
    let bytes = u64::try_from(bytes).unwrap_or(0);
    with("store_sync", place, |runtime| runtime.store_sync(bytes));
}

/// Forgets what was stored here so far.
///
/// # Safety
///
/// `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_reset_store_sync(place: *const Place) {
    with("reset_store_sync", place, |runtime| {
        runtime.reset_store_sync()
    });
}

/// Time in seconds since an arbitrary start.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_get_seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}
