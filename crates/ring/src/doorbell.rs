//! Announcing sleep, and waking only those that sleep.
//!
//! Whoever is about to sleep makes a word odd, in a page that peers can only
//! read, and then makes sure that every sender sees it or is seen: either the
//! sender's next look finds the odd word, or the sleeper's last look at its rings finds
//! what was sent. For that there must be a full barrier on both sides between the
//! store and the look. The sleeper's barrier may stand in for the senders' (`membarrier`); then a
//! sender pays one plain load ([`Fence::Light`]).
//!
//! Nobody can suppress, forge or use up another's wake-up: each sender rings
//! on a line of its own, at most once for every sleep that it sees.

use core::sync::atomic::{Ordering, compiler_fence, fence};
use std::sync::Arc;

use crate::shared::{Mapping, OutOfRange, ReadWord, Word};

/// Where a bell page has its word.
pub const BELL_OFFSET: usize = 0;

/// Who pays for the barrier between sending and looking whether the receiver sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fence {
    /// The receiver, which has all senders' processors pass a barrier before it sleeps.
    Light,
    /// The sender, each time.
    Heavy,
}

/// The word, as the one who sleeps sees it.
pub trait SleepMemory {
    /// Stores the word with release.
    fn store(&self, value: u64);
}

/// The word, as senders see it.
pub trait BellMemory {
    /// Loads the word, unordered.
    fn load(&self) -> u64;
    /// The barrier between what was sent and the load.
    fn fence(&self, fence: Fence);
}

/// Our own word, in our bell page.
impl SleepMemory for Word {
    #[inline]
    fn store(&self, value: u64) {
        self.atomic().store(value, Ordering::Release);
    }
}

/// A peer's word, in its bell page.
impl BellMemory for ReadWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        ReadWord::load(self)
    }

    #[inline(always)]
    fn fence(&self, kind: Fence) {
        match kind {
            Fence::Light => compiler_fence(Ordering::SeqCst),
            Fence::Heavy => heavy_fence(),
        }
    }
}

/// Apart, so that it does not stand in the way of the light one.
#[cold]
fn heavy_fence() {
    fence(Ordering::SeqCst);
}

/// Our announcement: odd while we sleep, or are about to.
pub struct SleepWord<M = Word> {
    memory: M,
    value: u64,
}

impl SleepWord {
    /// The word of our own bell page, which is new and therefore zero.
    pub fn new(page: Arc<Mapping>) -> Result<Self, OutOfRange> {
        Ok(Self::over(Word::new(page, BELL_OFFSET)?))
    }
}

impl<M: SleepMemory> SleepWord<M> {
    /// A word that is zero.
    pub fn over(memory: M) -> Self {
        Self { memory, value: 0 }
    }

    /// Announces that we are about to sleep. `barrier` must be a full barrier, and one that
    /// senders pass too if they use [`Fence::Light`]. Afterwards look once more
    /// at everything that can be sent to, and only then sleep.
    pub fn prepare(&mut self, barrier: impl FnOnce()) {
        if !self.is_announced() {
            self.value += 1;
        }
        self.memory.store(self.value);
        barrier();
    }

    /// Takes the announcement back.
    pub fn end(&mut self) {
        if self.is_announced() {
            self.value += 1;
            self.memory.store(self.value);
        }
    }

    /// Whether senders are asked to ring.
    pub fn is_announced(&self) -> bool {
        self.value % 2 == 1
    }
}

/// The sender's side of a receiver's word.
pub struct Waker<M = ReadWord> {
    memory: M,
    fence: Fence,
    rung: u64,
}

impl Waker {
    /// Looks at the word of a peer's bell page.
    pub fn new(page: Arc<Mapping>, fence: Fence) -> Result<Self, OutOfRange> {
        Ok(Self::over(ReadWord::new(page, BELL_OFFSET)?, fence))
    }
}

impl<M: BellMemory> Waker<M> {
    /// Looks at a word.
    pub fn over(memory: M, fence: Fence) -> Self {
        Self {
            memory,
            fence,
            rung: 0,
        }
    }

    /// To be called after something was sent: whether the receiver must be rung for.
    #[inline(always)]
    pub fn must_ring(&mut self) -> bool {
        self.memory.fence(self.fence);
        let value = self.memory.load();
        value % 2 == 1 && self.first_for(value)
    }

    /// The ring that was asked for could not be made: ask again next time.
    #[cold]
    pub fn not_rung(&mut self) {
        self.rung = 0;
    }

    #[cold]
    fn first_for(&mut self, value: u64) -> bool {
        let first = value != self.rung;
        self.rung = value;
        first
    }
}

#[cfg(test)]
mod tests;
