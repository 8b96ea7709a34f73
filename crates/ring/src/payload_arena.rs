//! The payload arena: where the producer puts payloads that do not fit into a cell.
//!
//! All of this is the producer's private knowledge: the consumer sees places
//! that a cell names, and gives back cells, never bytes. Places are contiguous,
//! begin on a line, and become free in the order of their cells.
//!
//! Only a *window* at the beginning of the payload arena is used. It starts with two pages, and
//! doubles when it was found full or was gone through in a short time; so a link that carries
//! little touches little memory. It never becomes narrower: nobody can punch holes into a sealed
//! file.

use std::collections::VecDeque;

use crate::shared::{LINE_BYTES, ticks};

/// A window that is gone through faster than this (about 300 MB/s) is worth widening.
const HOT_TICKS_PER_BYTE: u64 = 8;
/// So often in a row.
const HOT_LAPS: u32 = 4;
/// So many places are in use before more of them have to be remembered.
const PLACES_FIRST: usize = 64;

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

    pub(crate) const fn at(offset: u32, len: u32) -> Self {
        let end = offset + len;
        Self { offset, end }
    }

    pub(crate) const fn len(self) -> u32 {
        self.end - self.offset
    }
}

/// The places in use.
pub(crate) struct PayloadArena {
    /// Where the next place begins, unless it is at 0.
    head: usize,
    window: usize,
    window_max: usize,
    /// Cell and beginning of each place in use, oldest first; never more than there are cells.
    used: VecDeque<(u64, u32)>,
    /// The tick at which the window was last gone through.
    gone_through: u64,
    /// How often in a row it was gone through in a short time.
    fast_laps: u32,
    /// It is to be widened as soon as the places in use allow that.
    widen: bool,
}

impl PayloadArena {
    pub(crate) fn new(window: usize, arena_bytes: u32) -> Self {
        let arena_bytes = arena_bytes as usize;
        let window = window.min(arena_bytes);
        Self {
            head: 0,
            window,
            window_max: arena_bytes,
            used: VecDeque::with_capacity(PLACES_FIRST),
            gone_through: ticks(),
            fast_laps: 0,
            widen: false,
        }
    }

    /// One that never has a place, while payloads go elsewhere. Does not allocate.
    pub(crate) fn put_aside(window_max: usize) -> Self {
        Self {
            head: 0,
            window: 0,
            window_max,
            used: VecDeque::new(),
            gone_through: ticks(),
            fast_laps: 0,
            widen: false,
        }
    }

    /// Reserves memory for so many places in use, as many as there are cells.
    pub(crate) fn reserve(&mut self, cells: usize) {
        self.used.reserve(cells.saturating_sub(self.used.len()));
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

    /// Notes that the window was gone through, or that no place was found at once, at that tick. If
    /// that happens for some time within a short time of each other, the window is to be widened.
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
