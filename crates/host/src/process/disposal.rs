//! Closes descriptors that peers sent.
//!
//! To close a descriptor is to call its file system or driver, and that may
//! take as long as its owner likes: a file of a file system that the sender
//! itself serves, or a connection that lingers. So only memory files are closed
//! where they are received; everything else is closed by a thread that nobody
//! waits for, and a user with several of them busy is not served meanwhile.

use rustix::fd::OwnedFd;
use rustix::fs::fcntl_get_seals;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Threads that may be busy closing what one user sent before that user is refused.
const BUSY_PER_USER: u32 = 4;
const STACK_BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Disposal(Arc<Mutex<HashMap<u32, u32>>>);

impl Disposal {
    /// Whether a user has sent so much that cannot be closed that no more is taken from it.
    pub(super) fn is_saturated(&self, user: u32) -> bool {
        self.busy(|busy| busy.get(&user).is_some_and(|busy| *busy >= BUSY_PER_USER))
    }

    /// Keeps the memory files, which close at once, and has the rest closed. The second
    /// value says whether there was any.
    pub(super) fn sift(&self, user: u32, descriptors: Vec<OwnedFd>) -> (Vec<OwnedFd>, bool) {
        let is_memory = |descriptor: &OwnedFd| fcntl_get_seals(descriptor).is_ok();
        let (memory, rest): (Vec<_>, Vec<_>) = descriptors.into_iter().partition(is_memory);
        let had_rest = !rest.is_empty();
        if had_rest {
            self.close(user, rest);
        }
        (memory, had_rest)
    }

    fn close(&self, user: u32, descriptors: Vec<OwnedFd>) {
        self.busy(|busy| *busy.entry(user).or_insert(0) += 1);
        let done = Done(self.clone(), user);
        // If there can be no thread, the descriptors are closed here after all.
        let _ = std::thread::Builder::new()
            .name("hamlyn-disposal".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                drop(descriptors);
                drop(done);
            });
    }

    fn busy<R>(&self, with: impl FnOnce(&mut HashMap<u32, u32>) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts a thread out, whether it ran or could not be made.
struct Done(Disposal, u32);

impl Drop for Done {
    fn drop(&mut self) {
        let Self(disposal, user) = self;
        disposal.busy(|busy| {
            if let Some(count) = busy.get_mut(user) {
                *count -= 1;
                if *count == 0 {
                    busy.remove(user);
                }
            }
        });
    }
}
