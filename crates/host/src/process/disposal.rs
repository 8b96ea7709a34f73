//! Closes descriptors that peers sent.
//!
//! To close a descriptor is to call its file system or driver, and that may
//! take as long as its owner likes: a file of a file system that the sender
//! itself serves, or a connection that lingers. The last close of a memory file
//! frees its pages, half a second for a gigabyte. So only memory files with few
//! pages are closed where they are received; everything else is closed by a
//! thread that nobody waits for, and a user with several of them busy is not
//! served meanwhile.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{fcntl_get_seals, fstat};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Threads that may be busy closing what one user sent before that user is refused.
const BUSY_PER_USER: u32 = 4;
/// Memory files of so much are closed at once: their pages are freed in less than a millisecond.
const SMALL_BYTES: u64 = 1 << 20;
const STACK_BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Clone, Default, Debug)]
pub(super) struct Disposal(Arc<Mutex<Threads>>);

#[derive(Default, Debug)]
struct Threads {
    /// Of each user.
    busy: HashMap<u32, u32>,
    begun: u64,
}

/// A memory file that a peer sent. It is closed aside if that takes long.
#[derive(Debug)]
pub(super) struct ReceivedFile {
    file: Option<OwnedFd>,
    user: u32,
    disposal: Disposal,
}

impl ReceivedFile {
    /// To whom it is of use. From then on it is closed like any other.
    pub(super) fn into_fd(mut self) -> Option<OwnedFd> {
        self.file.take()
    }

    pub(super) fn borrowed(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }
}

impl Drop for ReceivedFile {
    fn drop(&mut self) {
        // Pages behind the end count as well.
        let is_small = |file: &OwnedFd| {
            fstat(file).is_ok_and(|status| status.st_blocks as u64 * 512 <= SMALL_BYTES)
        };
        if let Some(file) = self.file.take()
            && !is_small(&file)
        {
            self.disposal.drop_aside(self.user, file);
        }
    }
}

impl Disposal {
    /// Whether a user has sent so much that cannot be closed that no more is taken from it.
    pub(super) fn is_saturated(&self, user: u32) -> bool {
        self.threads(|threads| {
            let busy = threads.busy.get(&user);
            busy.is_some_and(|busy| *busy >= BUSY_PER_USER)
        })
    }

    /// Keeps the memory files, and has the rest closed. The second value says whether there was
    /// any.
    pub(super) fn sift(&self, user: u32, descriptors: Vec<OwnedFd>) -> (Vec<ReceivedFile>, bool) {
        let is_memory = |descriptor: &OwnedFd| fcntl_get_seals(descriptor).is_ok();
        let (memory, rest): (Vec<_>, Vec<_>) = descriptors.into_iter().partition(is_memory);
        let had_rest = !rest.is_empty();
        if had_rest {
            self.drop_aside(user, rest);
        }
        let received = memory.into_iter().map(|file| ReceivedFile {
            file: Some(file),
            user,
            disposal: self.clone(),
        });
        (received.collect(), had_rest)
    }

    /// Drops what a user made us have, in a thread that nobody waits for.
    pub(super) fn drop_aside(&self, user: u32, dropped: impl Send + 'static) {
        self.threads(|threads| {
            threads.begun += 1;
            *threads.busy.entry(user).or_insert(0) += 1;
        });
        let done = Done(self.clone(), user);
        // If there can be no thread, it is dropped here after all.
        let _ = std::thread::Builder::new()
            .name("hamlyn-disposal".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                drop(dropped);
                drop(done);
            });
    }

    /// How many threads were begun.
    #[cfg(test)]
    pub(super) fn begun(&self) -> u64 {
        self.threads(|threads| threads.begun)
    }

    fn threads<R>(&self, with: impl FnOnce(&mut Threads) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts a thread out, whether it ran or could not be made.
struct Done(Disposal, u32);

impl Drop for Done {
    fn drop(&mut self) {
        let Self(disposal, user) = self;
        disposal.threads(|threads| {
            if let Some(count) = threads.busy.get_mut(user) {
                *count -= 1;
                if *count == 0 {
                    threads.busy.remove(user);
                }
            }
        });
    }
}
