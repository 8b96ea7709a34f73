//! The payload arena: where the producer puts payloads that do not fit into a cell.
//!
//! All of this is the producer's private knowledge: the consumer sees places
//! that a cell names, and gives back cells, never bytes. Places are contiguous,
//! begin on a line, and become free in the order of their cells.
//!
//! Only a *window* at the beginning of the payload arena is used. It starts with room for one
//! payload, doubles when it was found full or was gone through in a short time, and is given back
//! when the link is idle; so a link that carries little touches little memory.

use std::collections::VecDeque;

use crate::shared::{LINE_BYTES, ticks};

/// A window that is gone through faster than this (about 300 MB/s) is worth widening.
const HOT_TICKS_PER_BYTE: u64 = 8;
/// So often in a row.
const HOT_LAPS: u32 = 4;

/// A payload's place in the payload arena that no cell names yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    offset: u32,
    end: u32,
}

impl Allocation {
    /// Where it begins, in bytes from the beginning of the payload arena.
    #[inline]
    pub fn offset(self) -> u32 {
        self.offset
    }
}

/// The places in use.
pub(crate) struct PayloadArena {
    /// Where the next place begins, unless it is at 0.
    head: usize,
    window: usize,
    /// The window at the beginning, and when everything was given back.
    window_first: usize,
    window_max: usize,
    arena_bytes: usize,
    /// Cell and beginning of each place in use, oldest first. Never grows beyond its capacity,
    /// which [`PayloadArena::expect_cells`] sees to.
    used: VecDeque<(u64, u32)>,
    /// The tick at which the window was last gone through.
    gone_through: u64,
    /// How often in a row it was gone through in a short time.
    fast_laps: u32,
    /// It is to be widened as soon as the places in use allow that.
    widen: bool,
}

impl PayloadArena {
    pub(crate) fn new(cells: u32, window: usize, arena_bytes: u32) -> Self {
        let arena_bytes = arena_bytes as usize;
        let window = window.min(arena_bytes);
        Self {
            head: 0,
            window,
            window_first: window,
            window_max: arena_bytes,
            arena_bytes,
            used: VecDeque::with_capacity(cells as usize),
            gone_through: ticks(),
            fast_laps: 0,
            widen: false,
        }
    }

    /// A place for `len` bytes, if there is one. It is taken only by [`PayloadArena::take`].
    #[inline(always)]
    pub(crate) fn find(&self, len: usize) -> Option<Allocation> {
        let len = len.max(1).checked_next_multiple_of(LINE_BYTES)?;
        let start = match self.used.front() {
            None if len <= self.window => 0,
            None => return None,
            Some(&(_, tail)) => {
                let tail = tail as usize;
                if self.head > tail {
                    if len <= self.window - self.head {
                        self.head
                    } else if len <= tail && !self.widens() {
                        0
                    } else {
                        return None;
                    }
                } else if len <= tail - self.head {
                    self.head
                } else {
                    return None;
                }
            }
        };
        // Both are at most `window_max`, which came from a u32.
        Some(Allocation {
            offset: start as u32,
            end: (start + len) as u32,
        })
    }

    /// The cell with this number names the place.
    #[inline]
    pub(crate) fn take(&mut self, cell: u64, place: Allocation) {
        if (place.offset as usize) < self.head {
            self.note(ticks());
        }
        self.used.push_back((cell, place.offset));
        self.head = place.end as usize;
    }

    /// All cells below `consumed` are done with.
    #[inline]
    pub(crate) fn release(&mut self, consumed: u64) {
        while self.used.front().is_some_and(|&(cell, _)| cell < consumed) {
            self.used.pop_front();
        }
    }

    /// From now on up to so many cells may name places.
    #[cold]
    pub(crate) fn expect_cells(&mut self, cells: usize) {
        self.used.reserve(cells.saturating_sub(self.used.len()));
    }

    /// Whether the window is wider than at the beginning.
    pub(crate) fn has_spare(&self) -> bool {
        self.window > self.window_first
    }

    /// If nothing is in use: the first window is enough again, unless `discard` cannot give
    /// the rest back. Returns how many bytes were given back.
    #[cold]
    pub(crate) fn give_back(&mut self, discard: impl FnOnce(usize, usize) -> bool) -> usize {
        let more = self.window - self.window_first;
        if !self.used.is_empty() || more == 0 || !discard(self.window_first, self.window) {
            return 0;
        }
        self.window = self.window_first;
        self.window_max = self.arena_bytes;
        more
    }

    /// Doubles the window if `reserve` finds memory for it.
    #[cold]
    pub(crate) fn grow(&mut self, reserve: impl FnOnce(usize, usize) -> bool) -> bool {
        let wanted = (self.window * 2).min(self.window_max);
        // While the places in use wrap around the end of the window, what lies
        // beyond the end cannot be used yet.
        let wrapped = self
            .used
            .front()
            .is_some_and(|&(_, tail)| self.head <= tail as usize);
        if wanted == self.window || wrapped {
            return false;
        }
        if !reserve(self.window, wanted) {
            // It stays as small as it is: asking again would cost a call each time.
            self.window_max = self.window;
            return false;
        }
        self.window = wanted;
        self.widen = false;
        true
    }

    /// Whether the window is to be widened rather than begun anew.
    #[inline]
    pub(crate) fn widens(&self) -> bool {
        self.widen && self.window < self.window_max
    }

    /// Notes that the window was gone through, or that no place was found at once, at that tick. If that
    /// happens for some time within a short time of each other, the window is to be widened.
    #[cold]
    pub(crate) fn note(&mut self, now: u64) {
        let took = now.wrapping_sub(self.gone_through);
        self.gone_through = now;
        if took >= (self.window as u64).saturating_mul(HOT_TICKS_PER_BYTE) {
            self.fast_laps = 0;
            return;
        }
        self.fast_laps = self.fast_laps.wrapping_add(1);
        self.widen |= self.fast_laps.is_multiple_of(HOT_LAPS);
    }

    /// The longest payload that there can ever be room for.
    pub(crate) fn longest(&self) -> usize {
        self.window_max
    }

    pub(crate) fn window(&self) -> usize {
        self.window
    }
}

#[cfg(test)]
mod tests;
