//! An allocator that counts what is allocated and freed in a thread while it only computes: all of
//! that is done by interrupts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COMPUTES: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn note() {
    let _ = COMPUTES.try_with(|computes| {
        if computes.get() {
            let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        }
    });
}

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as the caller says.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note();
        // SAFETY: as the caller says.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread while `compute` runs, which makes none.
pub(crate) fn while_computing(compute: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    COMPUTES.set(true);
    compute();
    COMPUTES.set(false);
    COUNT.get() - before
}
