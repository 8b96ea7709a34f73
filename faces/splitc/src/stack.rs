//! The program's main function, on a stack that lies in the segment, so that other processors reach its variables.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;

use libc::{getcontext, makecontext, swapcontext, ucontext_t};

thread_local! {
    static BODY: Cell<Option<*mut dyn FnMut()>> = const { Cell::new(None) };
}

extern "C" fn entry() {
    if let Some(body) = BODY.take() {
        // SAFETY: `run_on` has set it, to a closure that lives until it returns, which is after this.
        unsafe { (*body)() };
    }
}

/// Calls `body` on the stack at those addresses; returns when it does.
///
/// # Safety
///
/// The range is mapped, may be written, and nothing else uses it. `body` does not unwind.
pub(crate) unsafe fn run_on(stack: Range<u64>, body: &mut dyn FnMut()) -> Result<(), i32> {
    let mut here = MaybeUninit::<ucontext_t>::zeroed();
    let mut there = MaybeUninit::<ucontext_t>::zeroed();
    // SAFETY: the closure is called before this returns, so its lifetime may be forgotten meanwhile.
    let body = unsafe {
        std::mem::transmute::<*mut (dyn FnMut() + '_), *mut (dyn FnMut() + 'static)>(body)
    };
    BODY.set(Some(body));
    // SAFETY: both contexts are of this function, and stay where they are until the other comes back here, as its end is linked to
    // `here`. The stack is the caller's promise.
    unsafe {
        if getcontext(there.as_mut_ptr()) != 0 {
            return Err(*libc::__errno_location());
        }
        let context = &mut *there.as_mut_ptr();
        context.uc_stack.ss_sp = stack.start as *mut _;
        context.uc_stack.ss_size = (stack.end - stack.start) as usize;
        context.uc_link = here.as_mut_ptr();
        makecontext(there.as_mut_ptr(), entry, 0);
        if swapcontext(here.as_mut_ptr(), there.as_ptr()) != 0 {
            return Err(*libc::__errno_location());
        }
    }
    Ok(())
}
