//! Event suppression, and waking only receivers that sleep (decision 0005).
//!
//! For every link its receiver keeps one word, in the memory of that link, and its sender loads it
//! after each message. As long as the receiver polls the link often, it suppresses events: the
//! sender does nothing more. If not, the sender also sets its bit in the ready bitmap
//! ([`crate::ready_bitmap`]), and if the receiver sleeps, the sender rings.
//!
//! A ready bit may be lost or forged, so it may only hasten what happens anyway. A ring may not: a
//! receiver that is about to sleep begins to listen, announces it on every link, and then makes
//! sure that every sender sees it or is seen: either the sender's next look finds the announcement,
//! or the sleeper's last look at its rings finds what was sent. For that there must be a full
//! barrier on both sides between the store and the look. The sleeper's barrier may stand in for the
//! senders' (`membarrier`); then a sender pays one plain load ([`Fence::Light`]).
//!
//! The word lies where the sender can write, too. It can spoil only its own wake-up there; no other
//! peer sees that memory, and the receiver never reads it. So no peer can suppress, forge or use up
//! another's wake-up: each sender rings on a line of its own, at most once for every announcement
//! that it sees.

use core::sync::atomic::{Ordering, compiler_fence, fence};
use std::sync::Arc;

use crate::geometry::Geometry;
use crate::ready_bitmap::ReadyMarker;
use crate::shared::{Mapping, OutOfRange, Word};

/// In the word: the receiver sleeps, or is about to.
const ASLEEP: u64 = 1;
/// In the word: the receiver polls the link seldom, unless its ready bit is set.
const EVENTS: u64 = 2;
/// The bits above count announcements of sleep.
const SLEEP: u64 = 4;

/// Who pays for the barrier between sending and looking whether the receiver sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fence {
    /// The receiver, which has all senders' processors pass a barrier before it sleeps.
    Light,
    /// The sender, each time.
    Heavy,
}

/// The word, as both sides see it. The receiver stores, and only the sender loads.
pub trait BellMemory {
    /// Stores the word with release.
    fn store(&self, value: u64);
    /// Loads the word, unordered.
    fn load(&self) -> u64;
    /// The barrier between what was sent and the load.
    fn fence(&self, fence: Fence);
}

impl BellMemory for Word {
    #[inline]
    fn store(&self, value: u64) {
        self.atomic().store(value, Ordering::Release);
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.atomic().load(Ordering::Relaxed)
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

/// The receiver's side of the word of one link.
pub struct Attention<M = Word> {
    memory: M,
    value: u64,
}

impl Attention {
    /// The word in the memory in which we receive, which is new and therefore suppresses events.
    pub fn new(mapping: Arc<Mapping>, geometry: Geometry) -> Result<Self, OutOfRange> {
        Ok(Self::over(Word::new(mapping, geometry.attention_offset())?))
    }
}

impl<M: BellMemory> Attention<M> {
    /// A word that is zero.
    pub fn over(memory: M) -> Self {
        Self { memory, value: 0 }
    }

    /// The receiver polls this link often from now on. It must look once for what was sent before
    /// the sender sees this.
    #[inline]
    pub fn suppress_events(&mut self) {
        self.put(self.value & !(ASLEEP | EVENTS));
    }

    /// The receiver polls this link seldom from now on. For what was sent before the sender sees
    /// this, no ready bit is set. An announcement of sleep stands: the look that follows it, or
    /// another thread's, may find the link silent for long enough.
    #[cold]
    pub fn enable_events(&mut self) {
        self.put(self.value | EVENTS);
    }

    /// We are about to sleep, whatever was announced before. The caller must have begun to listen:
    /// the sender rings once for this, and that may be at once, and for something that was taken
    /// long ago, since between sending and looking here it may have been held up. The caller must
    /// then pass a full barrier, and one that senders pass too if they use [`Fence::Light`], look
    /// once more at everything that can be sent to, and only then sleep, unless it was rung for
    /// since it listens.
    #[cold]
    pub fn sleep(&mut self) {
        self.put((self.value | ASLEEP | EVENTS).wrapping_add(SLEEP));
    }

    /// Whether the sender is asked to ring.
    pub fn is_asleep(&self) -> bool {
        self.value & ASLEEP != 0
    }

    /// Whether the sender is asked for nothing.
    pub fn suppresses_events(&self) -> bool {
        self.value & (ASLEEP | EVENTS) == 0
    }

    fn put(&mut self, value: u64) {
        if value != self.value {
            self.value = value;
            self.memory.store(value);
        }
    }
}

/// The sender's side of the word of one link.
pub struct Waker<M = Word, N = ReadyMarker> {
    /// Looked at after each message: the receiver's word. Where the sender pays for the barrier, a
    /// word of the sender's own that always calls for it, so that the others have no question to
    /// ask.
    looked_at: M,
    /// The receiver's word, where the sender pays for the barrier before it looks there.
    behind_barrier: Option<M>,
    rung: u64,
    marker: N,
}

/// Where a sender sets the ready bit of its link.
pub trait MarkReady {
    /// Sets the bit.
    fn mark(&self);
}

impl Waker {
    /// Looks at the word in the memory in which the peer receives.
    pub fn new(
        mapping: Arc<Mapping>,
        geometry: Geometry,
        fence: Fence,
        marker: ReadyMarker,
    ) -> Result<Self, OutOfRange> {
        let word = Word::new(Arc::clone(&mapping), geometry.attention_offset())?;
        Ok(match fence {
            Fence::Light => Self::over(word, marker),
            Fence::Heavy => {
                let own = Word::new(mapping, geometry.barrier_offset())?;
                Self::over_behind_barrier(word, own, marker)
            }
        })
    }
}

impl<M: BellMemory, N: MarkReady> Waker<M, N> {
    /// Looks at a word, whose receiver has all senders pass the barrier.
    pub fn over(memory: M, marker: N) -> Self {
        Self {
            looked_at: memory,
            behind_barrier: None,
            rung: 0,
            marker,
        }
    }

    /// Looks at a word after a barrier each time; `own` is the sender's. A receiver that spoils
    /// that word, as it can, may miss its own wake-up.
    pub fn over_behind_barrier(memory: M, own: M, marker: N) -> Self {
        own.store(ASLEEP);
        Self {
            looked_at: own,
            behind_barrier: Some(memory),
            rung: 0,
            marker,
        }
    }

    /// To be called after something was sent: whether the receiver must be rung for. Sets the ready
    /// bit if the receiver does not suppress events.
    #[inline(always)]
    pub fn must_ring(&mut self) -> bool {
        self.looked_at.fence(Fence::Light);
        let value = self.looked_at.load();
        value & (ASLEEP | EVENTS) != 0 && self.call(value)
    }

    /// The ring that was asked for could not be made: ask again next time.
    #[cold]
    pub fn not_rung(&mut self) {
        self.rung = 0;
    }

    #[cold]
    fn call(&mut self, mut value: u64) -> bool {
        if let Some(word) = &self.behind_barrier {
            word.fence(Fence::Heavy);
            value = word.load();
            if value & (ASLEEP | EVENTS) == 0 {
                return false;
            }
        }
        self.marker.mark();
        if value & ASLEEP == 0 {
            return false;
        }
        let first = value != self.rung;
        self.rung = value;
        first
    }
}

#[cfg(test)]
mod tests;
