//! The shared heap of a processor: a part of its segment, divided by an allocator. Memory of the C library is told by its address.

use std::alloc::Layout;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use talc::{ErrOnOom, Span, Talc};

/// What lies before each piece of memory: where it was allocated, and how.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    /// Bytes from the beginning of the allocation to the memory.
    offset: u32,
    alignment: u32,
    /// Of the allocation.
    length_bytes: u64,
}

const HEADER_BYTES: usize = size_of::<Header>();
/// Memory for any type.
const ALIGNMENT_BYTES: usize = 16;
const ALIGNMENT_BYTES_MAX: usize = 1 << 30;

static HEAP: Mutex<Talc<ErrOnOom>> = Mutex::new(Talc::new(ErrOnOom));
static PLACES: OnceLock<Range<u64>> = OnceLock::new();

/// Gives the heap its memory.
///
/// # Safety
///
/// The range is mapped, may be written, and is the heap's alone until the process ends.
pub(crate) unsafe fn claim(places: Range<u64>) {
    let memory = Span::new(places.start as *mut u8, places.end as *mut u8);
    // SAFETY: the caller's promise.
    let claimed = unsafe { heap().claim(memory) };
    if claimed.is_ok() {
        // The first call only.
        let _ = PLACES.set(places);
    }
}

fn heap() -> MutexGuard<'static, Talc<ErrOnOom>> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_shared(memory: *mut c_void) -> bool {
    PLACES
        .get()
        .is_some_and(|places| places.contains(&(memory as u64)))
}

/// Null if there is no room.
fn allocate(bytes: usize, alignment: usize) -> *mut c_void {
    let alignment = alignment.max(ALIGNMENT_BYTES);
    let fail = || {
        // SAFETY: the address of this thread's errno.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        null_mut()
    };
    let offset = HEADER_BYTES.next_multiple_of(alignment);
    let Some(length) = bytes.max(1).checked_add(offset) else {
        return fail();
    };
    let Ok(layout) = Layout::from_size_align(length, alignment) else {
        return fail();
    };
    // SAFETY: the layout has a size that is not zero.
    let Ok(start) = (unsafe { heap().malloc(layout) }) else {
        return fail();
    };
    let header = Header {
        offset: offset as u32,
        alignment: alignment as u32,
        length_bytes: length as u64,
    };
    // SAFETY: the header lies in the allocation, before the memory, at a multiple of 16.
    unsafe {
        let memory = start.as_ptr().add(offset);
        memory.sub(HEADER_BYTES).cast::<Header>().write(header);
        memory.cast()
    }
}

/// # Safety
///
/// The memory was allocated here and not freed.
unsafe fn header(memory: *mut c_void) -> Header {
    // SAFETY: the header lies before it.
    unsafe {
        memory
            .cast::<u8>()
            .sub(HEADER_BYTES)
            .cast::<Header>()
            .read()
    }
}

/// As `malloc`, in the shared heap; before the job has started, in that of the C library.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_malloc(bytes: usize) -> *mut c_void {
    match PLACES.get() {
        Some(_) => allocate(bytes, ALIGNMENT_BYTES),
        // SAFETY: as for C.
        None => unsafe { libc::malloc(bytes) },
    }
}

/// As `calloc`.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_calloc(count: usize, bytes: usize) -> *mut c_void {
    if PLACES.get().is_none() {
        // SAFETY: as for C.
        return unsafe { libc::calloc(count, bytes) };
    }
    let length = count.saturating_mul(bytes);
    let memory = allocate(length, ALIGNMENT_BYTES);
    if !memory.is_null() {
        // SAFETY: it has that many bytes.
        unsafe { memory.cast::<u8>().write_bytes(0, length) };
    }
    memory
}

/// As `realloc`; memory of the C library moves to the shared heap.
///
/// # Safety
///
/// `memory` is null, or was allocated and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_realloc(memory: *mut c_void, bytes: usize) -> *mut c_void {
    if memory.is_null() {
        return splitc_malloc(bytes);
    }
    if PLACES.get().is_none() {
        // SAFETY: the caller's promise.
        return unsafe { libc::realloc(memory, bytes) };
    }
    let had_bytes = match is_shared(memory) {
        true => {
            // SAFETY: the caller's promise.
            let header = unsafe { header(memory) };
            header.length_bytes as usize - header.offset as usize
        }
        // SAFETY: the caller's promise: it is the C library's.
        false => unsafe { libc::malloc_usable_size(memory) },
    };
    let moved = allocate(bytes, ALIGNMENT_BYTES);
    if !moved.is_null() {
        // SAFETY: both have that many bytes, and they are different memory.
        unsafe { copy_nonoverlapping(memory.cast::<u8>(), moved.cast(), had_bytes.min(bytes)) };
        // SAFETY: the caller's promise.
        unsafe { splitc_free(memory) };
    }
    moved
}

/// As `free`; also for memory of the C library.
///
/// # Safety
///
/// `memory` is null, or was allocated and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    if !is_shared(memory) {
        // SAFETY: the caller's promise: it is the C library's.
        return unsafe { libc::free(memory) };
    }
    // SAFETY: the caller's promise.
    let header = unsafe { header(memory) };
    let layout = Layout::from_size_align(header.length_bytes as usize, header.alignment as usize);
    let start = memory.cast::<u8>().wrapping_sub(header.offset as usize);
    if let (Ok(layout), Some(start)) = (layout, NonNull::new(start)) {
        // SAFETY: it was allocated so, as its header says.
        unsafe { heap().free(start, layout) };
    }
}

/// As `memalign`.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_memalign(alignment: usize, bytes: usize) -> *mut c_void {
    if !alignment.is_power_of_two() || alignment > ALIGNMENT_BYTES_MAX {
        // SAFETY: the address of this thread's errno.
        unsafe { *libc::__errno_location() = libc::EINVAL };
        return null_mut();
    }
    match PLACES.get() {
        Some(_) => allocate(bytes, alignment),
        // SAFETY: as for C.
        None => unsafe { libc::memalign(alignment, bytes) },
    }
}

/// As `valloc`.
#[unsafe(no_mangle)]
pub extern "C" fn splitc_valloc(bytes: usize) -> *mut c_void {
    splitc_memalign(4096, bytes)
}

/// As `posix_memalign`.
///
/// # Safety
///
/// `memory` has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_posix_memalign(
    memory: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    if !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let allocated = splitc_memalign(alignment, bytes);
    if allocated.is_null() {
        return if alignment.is_power_of_two() {
            libc::ENOMEM
        } else {
            libc::EINVAL
        };
    }
    // SAFETY: the caller's promise.
    unsafe { memory.write(allocated) };
    0
}

/// As `strdup`.
///
/// # Safety
///
/// `text` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: the caller's promise.
    unsafe { splitc_strndup(text, usize::MAX) }
}

/// As `strndup`.
///
/// # Safety
///
/// `text` is a string, or has `most` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_strndup(text: *const c_char, most: usize) -> *mut c_char {
    // SAFETY: the caller's promise.
    let length = unsafe { libc::strnlen(text, most) };
    let copy = splitc_malloc(length + 1).cast::<c_char>();
    if !copy.is_null() {
        // SAFETY: the text has so many bytes before its end, and the copy one more.
        unsafe {
            copy_nonoverlapping(text, copy, length);
            copy.add(length).write(0);
        }
    }
    copy
}
