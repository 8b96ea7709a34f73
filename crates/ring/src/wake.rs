//! Words at which a sleeper waits, and by which its peers wake it (decision 0009).
//!
//! Each link has one, in the memory in which the sleeper receives: a count of rings, which is also
//! a futex. A ringing peer counts up and then wakes; the sleeper notes the counts, looks at
//! everything that can be sent to, and has the kernel put it to sleep only if no count has changed
//! since. So a ring that comes at any moment after the note ends the sleep, or keeps it from
//! beginning.
//!
//! A sleeper need not wait here: it may wait at a descriptor, for want of `futex_waitv` or because
//! it waits for other things as well. It does not say which. The kernel tells the ringing peer how
//! many threads it has woken, and if it woke none, the ring goes to the descriptor, too.
//!
//! The peer may store anything into the word, at any time, and wake or requeue the threads that
//! wait at it. That can end a sleep early, once for each time that the peer does something, or
//! spoil the peer's own rings; the sleeper waits at all other words as before. What is loaded from
//! a word is compared with itself later, and used for nothing else.

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use rustix::thread::ClockId;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};
use rustix::time::Timespec;

use crate::Errno;
use crate::geometry::Geometry;
use crate::shared::{Mapping, OutOfRange};

/// Most words of links at which somebody waits at a time. The kernel looks each of them up for
/// every sleep; with more than about so many, a descriptor for all of them is faster.
pub const WORDS_MAX: usize = 32;

const _: () = {
    // With our own word, no more than the kernel takes (`FUTEX_WAITV_MAX`).
    assert!(WORDS_MAX < 128);
};

/// The word of a link, as both sides see it.
pub trait WakeMemory {
    /// Counts up, after all earlier stores.
    fn count(&self);
    /// Loads the count, before all later loads.
    fn load(&self) -> u32;
    /// Wakes the threads that wait at the word. Whether there were any.
    fn wake(&self) -> bool;
}

/// The word in a mapping.
#[derive(Clone, Debug)]
pub struct SharedWake {
    mapping: Arc<Mapping>,
    offset: usize,
}

impl SharedWake {
    fn word(&self) -> Option<&AtomicU32> {
        // `new` has looked, so there always is one.
        self.mapping.atomic_u32(self.offset).ok()
    }
}

impl WakeMemory for SharedWake {
    fn count(&self) {
        if let Some(word) = self.word() {
            word.fetch_add(1, Ordering::Release);
        }
    }

    fn load(&self) -> u32 {
        self.word().map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn wake(&self) -> bool {
        // Not private: the sleeper is another process. An error means that nobody was woken.
        let woken = self.word().map(|word| futex::wake(word, Flags::empty(), 1));
        matches!(woken, Some(Ok(1..)))
    }
}

/// One side of the word of one link.
#[derive(Clone, Debug)]
pub struct WakeWord<M = SharedWake> {
    memory: M,
}

impl WakeWord {
    /// The word of the receiver in this memory.
    pub fn new(mapping: Arc<Mapping>, geometry: Geometry) -> Result<Self, OutOfRange> {
        let offset = geometry.wake_offset();
        mapping.atomic_u32(offset)?;
        Ok(Self::over(SharedWake { mapping, offset }))
    }
}

impl<M: WakeMemory> WakeWord<M> {
    /// A word.
    pub fn over(memory: M) -> Self {
        Self { memory }
    }

    /// Rings: to be called after what the sleeper is to find was stored. False if nobody waits at
    /// the word; then the sleeper, if there is one, may wait elsewhere. A system call.
    pub fn ring(&self) -> bool {
        self.memory.count();
        self.memory.wake()
    }

    /// The count of rings, for [`WaitSet`]. Whatever was stored before one of them is found by who
    /// looks afterwards.
    pub fn rings(&self) -> u32 {
        self.memory.load()
    }
}

/// What one sleeper waits at: words of links, and what they were when they were added.
#[derive(Default, Debug)]
pub struct WaitSet {
    words: Vec<(WakeWord, u32)>,
}

impl WaitSet {
    /// Waits at nothing. Allocates, so that [`WaitSet::add`] does not.
    pub fn new() -> Self {
        Self {
            words: Vec::with_capacity(WORDS_MAX),
        }
    }

    /// Forgets all words.
    pub fn clear(&mut self) {
        self.words.clear();
    }

    /// Notes the count of one more word. The caller must afterwards look at what is rung for. False
    /// if there are [`WORDS_MAX`] already.
    pub fn add(&mut self, word: WakeWord) -> bool {
        if self.words.len() == WORDS_MAX {
            return false;
        }
        let rings = word.rings();
        self.words.push((word, rings));
        true
    }

    /// Sleeps until one of the words is rung for, or `own`, a word of this process that was
    /// `own_rings`, or until that instant of the monotonic clock. Does not sleep if one of them has
    /// changed, and may wake early.
    ///
    /// An error says that it did not sleep, and never will if the kernel has no `futex_waitv`
    /// (Linux 5.16) or a sandbox forbids it.
    pub fn sleep(
        &self,
        own: &AtomicU32,
        own_rings: u32,
        deadline_ns: Option<u64>,
    ) -> Result<(), Errno> {
        let mut waits = [const { Wait::new() }; WORDS_MAX + 1];
        let mut used = 0;
        let words = self.words.iter().map(|(word, rings)| {
            // Without a word, which cannot be, the kernel refuses the address.
            let at = word
                .memory
                .word()
                .map_or(core::ptr::null_mut(), AtomicU32::as_ptr);
            (at, *rings, WaitFlags::SIZE_U32)
        });
        let flags = WaitFlags::SIZE_U32 | WaitFlags::PRIVATE;
        for (at, rings, flags) in words.chain([(own.as_ptr(), own_rings, flags)]) {
            if let Some(wait) = waits.get_mut(used) {
                wait.val = u64::from(rings);
                wait.uaddr = WaitPtr::new(at.cast());
                wait.flags = flags;
                used += 1;
            }
        }
        let until = deadline_ns.map(|deadline_ns| Timespec {
            tv_sec: (deadline_ns / 1_000_000_000) as i64,
            tv_nsec: (deadline_ns % 1_000_000_000) as i64,
        });
        let waits = waits.get(..used).unwrap_or(&[]);
        match futex::waitv(
            waits,
            WaitvFlags::empty(),
            until.as_ref(),
            ClockId::Monotonic,
        ) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
mod tests;
