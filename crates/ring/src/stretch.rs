//! Whether bytes that are deposited still find room in the processor's cache.
//!
//! Deposits that go on and on through memory push out of the cache what was there, themselves
//! included: whoever reads the first of them later fetches them from memory anyway. Such bytes are
//! better stored past the cache, which spares fetching the lines that they overwrite. Deposits that
//! come back to where they were are better kept in it. All that is known of a deposit is its place;
//! so the places are watched.
//!
//! A wrong guess costs time and nothing else. This refuses to know whose memory it is.

use core::cell::Cell;

use crate::caches::Caches;
use crate::shared::Way;

/// How far deposits have gone without turning back.
#[derive(Debug)]
pub struct Stretch {
    /// Where the last deposit ended.
    end: Cell<u64>,
    /// Bytes deposited since deposits last turned back.
    length: Cell<u64>,
    outgrown: Cell<bool>,
    outgrown_bytes: u64,
}

impl Default for Stretch {
    fn default() -> Self {
        Self::new()
    }
}

impl Stretch {
    /// For this machine's caches.
    pub fn new() -> Self {
        Self::outgrowing(Caches::here().outgrown_bytes() as u64)
    }

    fn outgrowing(outgrown_bytes: u64) -> Self {
        Self {
            end: Cell::new(0),
            length: Cell::new(0),
            outgrown: Cell::new(false),
            outgrown_bytes,
        }
    }

    /// Notes a deposit, and says how it is better stored.
    #[inline]
    pub fn way(&self, offset: u64, length: usize) -> Way {
        if offset < self.end.get() {
            // On the next lap nothing is in the cache any more if this one was long enough.
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
            Way::Past
        } else {
            Way::Through
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 1 << 10;

    /// How many of the deposits of a lap over that much memory pass by the cache.
    fn lap(stretch: &Stretch, bytes: u64) -> usize {
        let places = (0..bytes).step_by(CHUNK);
        let passes_by = |&at: &u64| stretch.way(at, CHUNK) == Way::Past;
        places.filter(passes_by).count()
    }

    #[test]
    fn what_comes_back_soon_stays_in_the_cache() {
        let stretch = Stretch::outgrowing(64 << 10);
        for _ in 0..10 {
            assert_eq!(lap(&stretch, 63 << 10), 0);
        }
    }

    #[test]
    fn what_goes_on_passes_by() {
        let stretch = Stretch::outgrowing(64 << 10);
        assert_eq!(lap(&stretch, 128 << 10), 65);
        // All of the next lap, until one is short.
        assert_eq!(lap(&stretch, 128 << 10), 128);
        assert_eq!(lap(&stretch, 16 << 10), 16);
        assert_eq!(lap(&stretch, 16 << 10), 0);
    }

    #[test]
    fn places_may_be_anything() {
        let stretch = Stretch::outgrowing(64 << 10);
        for at in [u64::MAX, 0, u64::MAX - 1, 1, u64::MAX] {
            stretch.way(at, usize::MAX);
        }
    }
}
