//! Tells a forked child from the process that opened an interface: each fork raises a counter in the child.
//!
//! What a child inherits is its parent's: it is neither used nor closed there.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How many forks this process is away from the one that loaded the module.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn forked() {
    FORKS.fetch_add(1, Relaxed);
}

/// The number of this process in its line of forks.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    FORKS.load(Relaxed)
}

/// Has forks counted from now on.
pub(crate) fn count() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function does nothing but to raise an atomic counter, which a child of a process with several threads may do.
        unsafe {
            libc::pthread_atfork(None, None, Some(forked));
        }
    });
}
