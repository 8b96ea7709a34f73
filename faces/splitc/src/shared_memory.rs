//! The memory of a processor: the segment at its fixed address, the static data, and the windows through which the inline functions
//! of the header reach memory.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::AtomicU32;

use hamlyn::Area;
use hamlyn::region::{AreaError, SharedOptions};
use hamlyn_splitc::{DirectMemory, Error, SharedMemory};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::boundary::Runtime;

const STATE_ADDRESS: usize = 0x2000_0000_0000;
const WINDOWS_ADDRESS: usize = 0x2000_0001_0000;
pub(crate) const SEGMENT_ADDRESS: usize = 0x2001_0000_0000;
const PROCS_MAX: usize = 65_536;
const PAGE_BYTES: usize = 4096;
const STACK_BYTES_MAX: u64 = 64 << 20;
const ABI_VERSION: c_int = 1;
/// The inline functions access up to so many bytes after one comparison.
const WORD_BYTES_MAX: u64 = 16;

/// `struct splitc_span`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Span {
    origin: u64,
    reach: u64,
    shift: u64,
}

/// `struct splitc_window`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Window {
    segment: Span,
    data: Span,
    stored: *mut u64,
    reserved: u64,
}

/// `struct splitc_state`.
#[repr(C)]
struct State {
    proc: c_int,
    procs: c_int,
    procs_log: c_int,
    abi_version: c_int,
    attention: *const u32,
}

// As the header has them.
const _: () = assert!(size_of::<Window>() == 64 && size_of::<State>() == 24);
const _: () = assert!(WINDOWS_ADDRESS + PROCS_MAX * size_of::<Window>() < SEGMENT_ADDRESS);

/// How a segment is divided. The stack lies lowest: below it nothing is mapped, so that one that overflows harms nothing.
pub(crate) struct Division {
    pub(crate) stack: Range<u64>,
    pub(crate) spread: Range<u64>,
    pub(crate) heap: Range<u64>,
}

impl Division {
    pub(crate) fn of(memory_bytes: u64) -> Self {
        let start = SEGMENT_ADDRESS as u64;
        let page = PAGE_BYTES as u64;
        let stack_end = start + (memory_bytes / 4).min(STACK_BYTES_MAX) / page * page;
        let end = start + memory_bytes;
        let spread_end = stack_end + (end - stack_end) / 2 / page * page;
        Self {
            stack: start..stack_end,
            spread: stack_end..spread_end,
            heap: spread_end..end,
        }
    }
}

/// The segment of this processor.
pub(crate) fn segment(memory_bytes: u64) -> Result<SharedMemory, AreaError> {
    let area = Area::shared(SharedOptions {
        address: Some(SEGMENT_ADDRESS),
        ..SharedOptions::sparse(memory_bytes)
    })?;
    // Mapped until the process ends, as its stack may lie there.
    std::mem::forget(area.clone());
    Ok(SharedMemory {
        start: SEGMENT_ADDRESS as u64,
        area,
        length_bytes: memory_bytes,
    })
}

/// Shares the static data of the program, whose addresses stay. Nothing if there is none.
///
/// # Safety
///
/// The range is static data of the program, to which no Rust code has references, and no other thread runs.
pub(crate) unsafe fn static_data(data: Range<usize>) -> Result<Option<SharedMemory>, AreaError> {
    let start = data.start / PAGE_BYTES * PAGE_BYTES;
    let end = data.end.next_multiple_of(PAGE_BYTES);
    if data.start == 0 || start >= end {
        return Ok(None);
    }
    let length_bytes = (end - start) as u64;
    // SAFETY: whole pages around the static data of the program: they are mapped, private, writable and there until the process
    // ends. No thread but this one runs, whose stack is elsewhere. This library and the C library have their data in their own files.
    let area = unsafe { Area::in_place_of(start as *mut u8, length_bytes) }?;
    Ok(Some(SharedMemory {
        start: start as u64,
        area,
        length_bytes,
    }))
}

/// What `attention` points to where nobody asks through memory. Not 0, so that every access through a global pointer polls.
static ALWAYS: AtomicU32 = AtomicU32::new(1);
/// The same for a job of one processor, of which nobody asks anything.
static NEVER: AtomicU32 = AtomicU32::new(0);

/// Maps the pages of the state and of the windows, which are zero: all accesses go the long way.
pub(crate) fn map_state() -> Result<(), rustix::io::Errno> {
    let length = WINDOWS_ADDRESS - STATE_ADDRESS + PROCS_MAX * size_of::<Window>();
    let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE | MapFlags::NORESERVE;
    // SAFETY: a fresh mapping, at an address where nothing is mapped, or the call fails.
    let mapped = unsafe {
        mmap_anonymous(
            STATE_ADDRESS as *mut c_void,
            length,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        )
    };
    mapped.map(drop)
}

/// Tells the inline functions what they need to know. The windows of `keep` must live as long as the program runs.
pub(crate) fn publish(runtime: &mut Runtime, keep: &mut Vec<DirectMemory>) -> Result<(), Error> {
    let (proc, procs) = (runtime.proc(), runtime.procs());
    let attention = match runtime.attention_word() {
        Some(window) => window.as_ptr().cast_const().cast(),
        None if procs > 1 => ALWAYS.as_ptr().cast_const(),
        None => NEVER.as_ptr().cast_const(),
    };
    let state = State {
        proc: proc as c_int,
        procs: procs as c_int,
        procs_log: procs.ilog2() as c_int,
        abi_version: ABI_VERSION,
        attention,
    };
    // SAFETY: `map_state` has mapped the page for this process, and only this thread writes it, before the program reads it.
    unsafe { (STATE_ADDRESS as *mut State).write(state) };
    // Far processors and large jobs are reached by calls.
    for other in 0..procs {
        if !runtime.is_connected(other) {
            continue;
        }
        let Some(memory) = runtime.direct_memory(other)? else {
            continue;
        };
        let window = window(other, &memory);
        // SAFETY: as above; the processor is less than those for which there is room.
        unsafe {
            (WINDOWS_ADDRESS as *mut Window)
                .add(other as usize)
                .write(window)
        };
        keep.push(memory);
    }
    Ok(())
}

fn window(proc: u32, memory: &DirectMemory) -> Window {
    let none = Span {
        origin: 0,
        reach: 0,
        shift: 0,
    };
    let mut spans = [none; 2];
    for (span, (start, window)) in spans.iter_mut().zip(&memory.segments) {
        let origin = u64::from(proc) << 48 | start;
        *span = Span {
            origin,
            reach: (window.length_bytes() + 1).saturating_sub(WORD_BYTES_MAX),
            shift: (window.as_ptr() as u64).wrapping_sub(origin),
        };
    }
    let [segment, data] = spans;
    Window {
        segment,
        data,
        stored: memory
            .control
            .as_ptr()
            .wrapping_add(memory.stored_offset as usize)
            .cast(),
        reserved: 0,
    }
}
