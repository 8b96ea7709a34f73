//! A part of a memory as the fast path of reception writes it: one comparison, two stores.
//!
//! Refused here: any byte outside the part.

use core::ptr::NonNull;
use std::sync::Arc;

use hamlyn_engine::memory;

use super::{Memory, raw};

/// Bytes that are written at a time.
const WORDS_BYTES: usize = 16;

/// A part of an area's memory, or nothing. It keeps the memory alive.
pub struct Window {
    first: NonNull<u8>,
    /// How many offsets there are at which both words fit.
    offsets: u64,
    _memory: Option<Arc<Memory>>,
}

// SAFETY: the memory has no affinity to a thread, and every store that a shared reference
// allows tolerates concurrent access.
unsafe impl Send for Window {}

impl Window {
    /// A window on `len` bytes from `offset` on; empty if they are not all in the memory. Empty too on memory in
    /// pieces, into which there may be references: each write there has to ask first.
    pub(crate) fn on(memory: &Arc<Memory>, offset: usize, len: usize) -> Self {
        let Some(first) = memory.plain_start(offset, len).and_then(NonNull::new) else {
            return memory::Window::empty();
        };
        Self {
            first,
            offsets: (len + 1).saturating_sub(WORDS_BYTES) as u64,
            _memory: Some(Arc::clone(memory)),
        }
    }
}

impl memory::Window for Window {
    fn empty() -> Self {
        Self {
            first: NonNull::dangling(),
            offsets: 0,
            _memory: None,
        }
    }

    #[inline(always)]
    fn write_words(&self, offset: u64, words: [u64; 2]) -> bool {
        if offset >= self.offsets {
            return false;
        }
        // SAFETY: 16 bytes fit at every offset below `offsets`, inside a range that `on` has found to lie in
        // the writable mapping of a memory without pieces. The memory lives as long as we do, its
        // addresses stay even if pages are exchanged, and there are no references into it.
        unsafe {
            let to = self.first.as_ptr().add(offset as usize);
            raw::store_words(to, words.map(u64::to_le));
        }
        true
    }
}

impl core::fmt::Debug for Window {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Window({} offsets)", self.offsets)
    }
}

#[cfg(test)]
mod tests {
    use hamlyn_engine::memory::{Area as _, Window as _};

    use crate::area::Area;

    #[test]
    fn what_is_written_lies_inside_at_every_offset() {
        for (begin, len) in [(0, 64), (7, 33), (48, 16), (63, 1), (0, 0), (64, 0)] {
            for offset in (0..80).chain([u64::MAX - 16, u64::MAX - 15, u64::MAX]) {
                let area = Area::new(64).unwrap();
                let window = area.window(begin, len);
                let fits = offset.checked_add(16).is_some_and(|end| end <= len);
                assert_eq!(
                    window.write_words(offset, [!0, 1]),
                    fits,
                    "{begin} {len} {offset}"
                );
                let mut bytes = [0; 64];
                area.read_at(0, &mut bytes).unwrap();
                let mut expected = [0; 64];
                if fits {
                    let at = (begin + offset) as usize;
                    expected[at..at + 8].fill(0xFF);
                    expected[at + 8] = 1;
                }
                assert_eq!(bytes, expected, "{begin} {len} {offset}");
            }
        }
    }

    #[test]
    fn what_does_not_lie_in_the_area_has_no_window() {
        let area = Area::new(64).unwrap();
        for (begin, len) in [(0, 65), (33, 32), (64, 16), (u64::MAX, 16), (16, u64::MAX)] {
            assert!(!area.window(begin, len).write_words(0, [1; 2]));
        }
        let (pieces, _reader) = Area::handover(4, 16).unwrap();
        assert!(
            !pieces.window(0, 64).write_words(0, [1; 2]),
            "no piece is open"
        );
    }

    #[test]
    fn a_window_keeps_its_memory() {
        let area = Area::new(4096).unwrap();
        let window = area.window(0, 4096);
        drop(area);
        assert!(window.write_words(4080, [1; 2]));
    }
}
