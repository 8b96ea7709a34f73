//! The replay window: the packet numbers that came already, as a sliding bitmap (RFC 6479). What is
//! too old to be remembered counts as come.

/// Words of the bitmap.
const WORDS: usize = 256;
/// How far behind the highest number one may be that is still known: the rest of the newest word is
/// not.
pub(super) const WINDOW_PACKETS: u64 = (WORDS as u64 - 1) * 64;

/// Why a number is not new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stale {
    /// It came.
    Seen,
    /// Nobody knows any more.
    Old,
}

#[derive(Debug)]
pub(super) struct Window {
    /// One beyond the highest that came.
    next: u64,
    words: Box<[u64; WORDS]>,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            words: Box::new([0; WORDS]),
        }
    }

    fn place(number: u64) -> (usize, u64) {
        ((number / 64) as usize % WORDS, 1 << (number % 64))
    }

    /// Whether a number is new.
    #[inline]
    pub(super) fn check(&self, number: u64) -> Result<(), Stale> {
        if number >= self.next {
            return Ok(());
        }
        if self.next - 1 - number >= WINDOW_PACKETS {
            return Err(Stale::Old);
        }
        let (word, bit) = Self::place(number);
        if self.words[word] & bit != 0 {
            return Err(Stale::Seen);
        }
        Ok(())
    }

    /// A number came that [`Window::check`] called new. It is below `u64::MAX`.
    #[inline]
    pub(super) fn mark(&mut self, number: u64) {
        debug_assert!(self.check(number).is_ok());
        if number >= self.next {
            let newest = self.next.saturating_sub(1) / 64;
            for word in 1..=(number / 64 - newest).min(WORDS as u64) {
                self.words[(newest + word) as usize % WORDS] = 0;
            }
            self.next = number + 1;
        }
        let (word, bit) = Self::place(number);
        self.words[word] |= bit;
    }
}
