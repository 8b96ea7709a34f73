//! The streaming-store heuristic: whether deposited bytes still fit the processor's cache.
//!
//! Deposits that go on and on through memory push out of the cache what was there, themselves
//! included: a later reader of the first of them fetches them from memory anyway. Such bytes are
//! better stored with non-temporal stores, which spares fetching the lines that they overwrite.
//! Deposits that come back to where they were are better kept in it. All that is known of a deposit
//! is its place; so the places are watched.
//!
//! A wrong guess costs time and nothing else. This refuses to know whose memory it is.

use core::cell::Cell;

use crate::caches::Caches;
use crate::shared::StoreKind;

/// How far deposits have gone without turning back.
#[derive(Debug)]
pub struct StreamingHeuristic {
    /// Where the last deposit ended.
    end: Cell<u64>,
    /// Bytes deposited since deposits last turned back.
    length: Cell<u64>,
    outgrown: Cell<bool>,
    outgrown_bytes: u64,
}

impl Default for StreamingHeuristic {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamingHeuristic {
    /// For this machine's caches.
    pub fn new() -> Self {
        Self::with_limit(Caches::here().outgrown_bytes() as u64)
    }

    pub(crate) fn with_limit(outgrown_bytes: u64) -> Self {
        Self {
            end: Cell::new(0),
            length: Cell::new(0),
            outgrown: Cell::new(false),
            outgrown_bytes,
        }
    }

    /// Notes a deposit, and says how it is better stored.
    #[inline]
    pub fn way(&self, offset: u64, length: usize) -> StoreKind {
        if offset < self.end.get() {
            // On the next generation nothing is in the cache any more if this one was long enough.
            self.outgrown.set(self.length.get() >= self.outgrown_bytes);
            self.length.set(0);
        }
        self.end.set(offset.saturating_add(length as u64));
        let total = self.length.get().saturating_add(length as u64);
        self.length.set(total);
        if total >= self.outgrown_bytes {
            self.outgrown.set(true);
        }
        if self.outgrown.get() {
            StoreKind::NonTemporal
        } else {
            StoreKind::Temporal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 1 << 10;

    /// How many of the deposits of a generation over that much memory pass by the cache.
    fn lap(streaming: &StreamingHeuristic, bytes: u64) -> usize {
        let places = (0..bytes).step_by(CHUNK);
        let passes_by = |&at: &u64| streaming.way(at, CHUNK) == StoreKind::NonTemporal;
        places.filter(passes_by).count()
    }

    #[test]
    fn what_comes_back_soon_stays_in_the_cache() {
        let streaming = StreamingHeuristic::with_limit(64 << 10);
        for _ in 0..10 {
            assert_eq!(lap(&streaming, 63 << 10), 0);
        }
    }

    #[test]
    fn what_goes_on_passes_by() {
        let streaming = StreamingHeuristic::with_limit(64 << 10);
        assert_eq!(lap(&streaming, 128 << 10), 65);
        // All of the next generation, until one is short.
        assert_eq!(lap(&streaming, 128 << 10), 128);
        assert_eq!(lap(&streaming, 16 << 10), 16);
        assert_eq!(lap(&streaming, 16 << 10), 0);
    }

    #[test]
    fn places_may_be_anything() {
        let streaming = StreamingHeuristic::with_limit(64 << 10);
        for at in [u64::MAX, 0, u64::MAX - 1, 1, u64::MAX] {
            streaming.way(at, usize::MAX);
        }
    }
}
