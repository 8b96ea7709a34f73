//! Experiments of a paper that are worlds of their own, on all processors.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::measure::Failure;

/// Does all of that, as many at a time as there are processors; each in a world of its own. The
/// results are in the order of `all`.
pub fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    act: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(at) else {
                break;
            };
            let result = act(one);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(at, result);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(all.len()) {
            scope.spawn(work);
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}
