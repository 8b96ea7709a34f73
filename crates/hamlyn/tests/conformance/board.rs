//! What peers have that are threads of one process: a clock, and a store for what they publish.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use crate::peer::KeyValues;

/// Time, by whatever clock there is.
pub(crate) fn now() -> Duration {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Called between two looks at something that has not come for so long.
pub(crate) fn pause_after(_waited: Duration) {
    std::thread::yield_now();
}

/// Threads share nothing that needs a turn.
pub(crate) fn lock(turn: &Mutex<()>) -> MutexGuard<'_, ()> {
    turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub(crate) fn namespace(test: &str) -> String {
    // Namespaces are short; a sum of the name tells tests of one process apart.
    let sum = test.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("c{}-{:x}", std::process::id(), sum >> 24)
}

/// The store of threads.
#[derive(Default)]
pub(crate) struct Board(Mutex<HashMap<String, Vec<u8>>>);

impl KeyValues for Board {
    fn put(&self, key: &str, bytes: &[u8]) {
        self.0
            .lock()
            .unwrap()
            .insert(key.to_owned(), bytes.to_vec());
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(key).cloned()
    }
}
