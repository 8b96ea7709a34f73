//! Ready bits of links: each belongs to one link at a time.
//!
//! There are as many as a ready bitmap has. A later link has none, and is found by sweeping.

use hamlyn_ring::ready_bitmap::READY_BITS_MAX;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Given {
    returned: Vec<u32>,
    used: u32,
}

/// All numbers of an interface.
#[derive(Default)]
pub(super) struct Numbers(Mutex<Given>);

impl Numbers {
    /// A number that no other link has. Beyond all of them if there is none left.
    pub(super) fn lend(self: &Arc<Self>) -> Lease {
        let mut given = self.lock();
        let number = given.returned.pop().unwrap_or_else(|| {
            let number = given.used;
            given.used = (number + 1).min(READY_BITS_MAX);
            number
        });
        Lease {
            number,
            numbers: Arc::clone(self),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that is given back when this is dropped.
pub(super) struct Lease {
    pub(super) number: u32,
    numbers: Arc<Numbers>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.number < READY_BITS_MAX {
            self.numbers.lock().returned.push(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_number_is_one_links_at_a_time() {
        let numbers = Arc::new(Numbers::default());
        let mut leases: Vec<_> = (0..READY_BITS_MAX).map(|_| numbers.lend()).collect();
        let distinct: HashSet<_> = leases.iter().map(|lease| lease.number).collect();
        assert_eq!(distinct.len(), READY_BITS_MAX as usize);
        assert!(distinct.iter().all(|number| *number < READY_BITS_MAX));
        let beyond = [numbers.lend(), numbers.lend()];
        assert!(beyond.iter().all(|lease| lease.number >= READY_BITS_MAX));
        drop(beyond);
        let returned = leases.swap_remove(7).number;
        assert_eq!(numbers.lend().number, returned);
    }
}
