//! Tells a forked child from the process that made an object (decision 0042).
//!
//! A child of `fork` has a copy of all private memory, and shares the memory of links, sockets and
//! keys with its parent. Two processes that act as one interface destroy its links and repeat
//! nonces. So each object notes how many forks led to the process that made it ([`Birth`]), and
//! each call compares. The child closes inherited sockets ([`Uninherited`]), so that names and
//! deaths do not depend on it.
//!
//! A handler of `pthread_atfork` raises the count. `vfork`, `posix_spawn`, `_Fork` and a bare
//! `clone` do not run it; the first two end in `exec`.

use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{DupFlags, dup3};

/// Forks between this process and the one that made the first object.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Descriptors that a child must not keep, one bit each.
static CLOSED_IN_CHILDREN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];
/// Words of the table that have been used.
static WORDS_USED: AtomicUsize = AtomicUsize::new(0);
/// As many descriptors as Linux gives a process, unless an administrator raises `fs.nr_open`.
const DESCRIPTORS_MAX: usize = 1 << 20;
const WORDS: usize = DESCRIPTORS_MAX / u64::BITS as usize;

/// An object was made before this process was forked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "it was made before this process was forked, and is the parent's: open a manager of its own in the child"
)]
pub struct Forked;

/// The process in which an object was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Birth(u32);

impl Birth {
    /// This process. From the first call on, forks are counted.
    pub fn here() -> Self {
        static IS_COUNTED: AtomicBool = AtomicBool::new(false);
        // Not a `Once`, whose thread may be gone in a child. A handler may be there twice.
        if !IS_COUNTED.load(Ordering::Acquire) {
            // SAFETY: the handler does nothing but what a signal handler may do.
            let failed = unsafe { pthread_atfork(None, None, Some(in_child)) };
            assert_eq!(failed, 0, "no memory to note a handler of forks");
            IS_COUNTED.store(true, Ordering::Release);
        }
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Is this process a forked child of one that has made objects?
    #[inline(always)]
    pub fn is_of_a_child() -> bool {
        FORKS.load(Ordering::Relaxed) != 0
    }

    /// Is this the process in which it was made?
    #[inline(always)]
    pub fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// An error in every other process.
    #[inline(always)]
    pub fn check(self) -> Result<(), Forked> {
        match self.is_here() {
            true => Ok(()),
            false => Err(Forked),
        }
    }
}

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> core::ffi::c_int;
}

/// Runs in the child, before `fork` returns. A thread that is gone may have held any lock, so it
/// makes nothing but atomic accesses and calls of the system.
unsafe extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    let mut replacement: Option<OwnedFd> = None;
    let used = WORDS_USED.load(Ordering::Relaxed);
    for (index, word) in CLOSED_IN_CHILDREN.iter().take(used).enumerate() {
        let mut bits = word.swap(0, Ordering::Relaxed);
        while bits != 0 {
            let number = index * u64::BITS as usize + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            // SAFETY: a descriptor in the table is open, and this is the only thread.
            let inherited = unsafe { OwnedFd::from_raw_fd(number as RawFd) };
            let mut inherited = ManuallyDrop::new(inherited);
            if replacement.is_none() {
                replacement = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
            }
            // The number stays taken: a copy of its owner must not mean a file that the child
            // opens.
            let is_replaced = replacement
                .as_ref()
                .is_some_and(|by| dup3(by, &mut inherited, DupFlags::CLOEXEC).is_ok());
            if !is_replaced {
                // No descriptor is free. Owners close nothing in a child that they inherited.
                drop(ManuallyDrop::into_inner(inherited));
            }
        }
    }
}

/// Has a descriptor closed in forked children. To be dropped before the descriptor is closed.
#[derive(Debug)]
pub struct ClosedInChildren {
    number: RawFd,
    birth: Birth,
}

impl ClosedInChildren {
    /// Descriptors with numbers above a million are inherited all the same.
    pub fn new(descriptor: BorrowedFd<'_>) -> Self {
        let birth = Birth::here();
        let number = descriptor.as_raw_fd();
        if let Some((word, bit)) = place(number) {
            WORDS_USED.fetch_max(word + 1, Ordering::Relaxed);
            CLOSED_IN_CHILDREN[word].fetch_or(bit, Ordering::Relaxed);
        }
        Self { number, birth }
    }
}

impl Drop for ClosedInChildren {
    fn drop(&mut self) {
        // In a child the number may be that of a descriptor of its own.
        if let Some((word, bit)) = place(self.number)
            && self.birth.is_here()
        {
            CLOSED_IN_CHILDREN[word].fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

fn place(number: RawFd) -> Option<(usize, u64)> {
    let number = usize::try_from(number).ok()?;
    let word = number / u64::BITS as usize;
    (word < WORDS).then_some((word, 1 << (number % u64::BITS as usize)))
}

/// A descriptor that forked children do not keep.
#[derive(Debug)]
pub struct Uninherited {
    in_children: ManuallyDrop<ClosedInChildren>,
    descriptor: ManuallyDrop<OwnedFd>,
}

impl Uninherited {
    /// Another descriptor of the same file.
    pub fn try_clone(&self) -> std::io::Result<Self> {
        self.descriptor.try_clone().map(Self::from)
    }
}

impl From<OwnedFd> for Uninherited {
    fn from(descriptor: OwnedFd) -> Self {
        Self {
            in_children: ManuallyDrop::new(ClosedInChildren::new(descriptor.as_fd())),
            descriptor: ManuallyDrop::new(descriptor),
        }
    }
}

impl AsFd for Uninherited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Uninherited {
    fn drop(&mut self) {
        // In a child another file may have the number, if there was nothing to replace it by.
        if self.in_children.birth.is_here() {
            // SAFETY: they are not used again. In this order: another file may have a free number
            // at once.
            unsafe {
                ManuallyDrop::drop(&mut self.in_children);
                ManuallyDrop::drop(&mut self.descriptor);
            }
        }
    }
}

#[cfg(test)]
mod tests;
