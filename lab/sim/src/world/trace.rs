//! What happened, in order: a sum that two runs of a seed must share, and a text for people.

use std::fmt::Write;

use crate::time::Time;

/// See the module.
#[derive(Debug)]
pub(crate) struct Trace {
    sum: u64,
    text: Option<String>,
}

/// From Donald Knuth's MMIX.
const FACTOR: u64 = 6_364_136_223_846_793_005;

impl Trace {
    pub(crate) fn new(records: bool) -> Self {
        Self {
            sum: 0,
            text: records.then(String::new),
        }
    }

    /// Something happened, of which these numbers tell.
    pub(crate) fn count(&mut self, at: Time, numbers: [u64; 2]) {
        for number in [at.as_ps(), numbers[0], numbers[1]] {
            self.sum = (self.sum ^ number).wrapping_mul(FACTOR).rotate_left(23);
        }
    }

    /// The same for people; `tell` is called only if somebody reads it.
    pub(crate) fn note(&mut self, at: Time, tell: impl FnOnce() -> String) {
        if let Some(text) = &mut self.text {
            let ns = at.as_ps() / 1000;
            let ps = at.as_ps() % 1000;
            // Writing to a string does not fail.
            let _ = writeln!(text, "{ns:>12}.{ps:03} {}", tell());
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    pub(crate) fn take_text(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }
}
