//! Ready bits of links: each belongs to one link at a time.
//!
//! There are as many as a ready bitmap has. A later link has none, and is found by sweeping.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{READY_BITS_MAX, ReadyBitmap, ReadyMarker, SharedBitmap};
use crate::forks::Birth;
use crate::shared::{Mapping, OutOfRange};

#[derive(Default)]
struct Given {
    returned: Vec<u32>,
    used: u32,
}

#[derive(Default)]
struct Numbers(Mutex<Given>);

impl Numbers {
    fn lock(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All bits of an interface's ready bitmap.
#[derive(Clone)]
pub struct ReadyBits {
    mapping: Arc<Mapping>,
    numbers: Arc<Numbers>,
}

impl ReadyBits {
    /// Those of an unused page of [`super::READY_BITMAP_BYTES`], and the bitmap for the interface
    /// itself.
    pub fn new(mapping: Arc<Mapping>) -> Result<(Self, ReadyBitmap), OutOfRange> {
        let bitmap = ReadyBitmap::new(SharedBitmap::new(Arc::clone(&mapping))?);
        let bits = Self {
            mapping,
            numbers: Arc::default(),
        };
        Ok((bits, bitmap))
    }

    /// A bit that no other link has. None of the bitmap if there is none left.
    pub fn lend(&self) -> ReadyBit {
        let mut given = self.numbers.lock();
        let number = given.returned.pop().unwrap_or_else(|| {
            let number = given.used;
            given.used = (number + 1).min(READY_BITS_MAX);
            number
        });
        ReadyBit {
            birth: Birth::here(),
            number,
            numbers: Arc::clone(&self.numbers),
        }
    }

    /// Sets that bit, for a link whose packets this process itself takes in.
    pub fn marker(&self, bit: &ReadyBit) -> ReadyMarker {
        let memory = SharedBitmap::new(Arc::clone(&self.mapping));
        memory.map_or_else(
            |OutOfRange| ReadyMarker::none(),
            |memory| ReadyMarker::new(memory, bit.number),
        )
    }
}

/// The bit of one link, given back when this is dropped.
pub struct ReadyBit {
    birth: Birth,
    number: u32,
    numbers: Arc<Numbers>,
}

impl ReadyBit {
    /// Its number. [`READY_BITS_MAX`] is none.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for ReadyBit {
    fn drop(&mut self) {
        // The lock may be another thread's of the parent.
        if self.number < READY_BITS_MAX && self.birth.is_here() {
            self.numbers.lock().returned.push(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::doorbell::MarkReady;
    use crate::ready_bitmap::READY_BITMAP_BYTES;

    fn bits() -> (ReadyBits, ReadyBitmap) {
        let page = Mapping::anonymous(READY_BITMAP_BYTES).expect("memory");
        ReadyBits::new(Arc::new(page)).expect("it is long enough")
    }

    #[test]
    fn each_bit_is_one_links_at_a_time() {
        let (bits, _) = bits();
        let mut lent: Vec<_> = (0..READY_BITS_MAX).map(|_| bits.lend()).collect();
        let distinct: HashSet<_> = lent.iter().map(ReadyBit::number).collect();
        assert_eq!(distinct.len(), READY_BITS_MAX as usize);
        assert!(distinct.iter().all(|number| *number < READY_BITS_MAX));
        let beyond = [bits.lend(), bits.lend()];
        assert!(beyond.iter().all(|bit| bit.number() >= READY_BITS_MAX));
        drop(beyond);
        let returned = lent.swap_remove(7).number();
        assert_eq!(bits.lend().number(), returned);
    }

    #[test]
    fn a_marker_sets_the_bit_that_it_was_made_for() {
        let (bits, mut bitmap) = bits();
        let lent = [bits.lend(), bits.lend()];
        bits.marker(&lent[1]).mark();
        let mut ready = Vec::new();
        bitmap.take(10, |bit| ready.push(bit));
        assert_eq!(ready, [lent[1].number()]);
    }
}
