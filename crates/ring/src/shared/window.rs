//! A part of a memory as the fast path of reception writes it: one comparison, and stores.
//!
//! Refused here: any byte outside the part.

use core::ptr::NonNull;
use std::sync::Arc;

use hamlyn_engine::limits::SHORT_BYTES_MAX;
use hamlyn_engine::memory::{self, ShortSource};

use super::{Memory, store_short};

/// A part of an area's memory, or nothing. It keeps the memory alive.
pub struct Window {
    first: NonNull<u8>,
    length_bytes: u64,
    /// How many offsets there are at which any short data fit.
    starts: u64,
    _memory: Option<Arc<Memory>>,
}

// SAFETY: the memory has no affinity to a thread, and every store that a shared reference
// allows tolerates concurrent access.
unsafe impl Send for Window {}

impl Window {
    /// A window on `len` bytes from `offset` on; empty if they are not all in the memory. Empty too
    /// on memory in pieces, into which there may be references: each write there has to ask first.
    pub(crate) fn on(memory: &Arc<Memory>, offset: usize, len: usize) -> Self {
        let Some(first) = memory.plain_start(offset, len).and_then(NonNull::new) else {
            return memory::Window::empty();
        };
        Self {
            first,
            length_bytes: len as u64,
            starts: (len + 1).saturating_sub(SHORT_BYTES_MAX) as u64,
            _memory: Some(Arc::clone(memory)),
        }
    }
}

impl Window {
    /// Whether so many bytes lie at that offset.
    #[inline(never)]
    fn has(&self, offset: u64, len: usize) -> bool {
        let left = self.length_bytes.checked_sub(offset);
        left.is_some_and(|left| len as u64 <= left)
    }
}

impl memory::Window for Window {
    fn empty() -> Self {
        Self {
            first: NonNull::dangling(),
            length_bytes: 0,
            starts: 0,
            _memory: None,
        }
    }

    #[inline(always)]
    fn write_short(&self, offset: u64, data: &impl ShortSource) -> bool {
        let len = data.length_bytes();
        if (len > SHORT_BYTES_MAX || offset >= self.starts) && !self.has(offset, len) {
            return false;
        }
        // SAFETY: so many bytes fit at that offset, inside a range that `on` has found to lie in
        // the writable mapping of a memory without pieces. The memory lives as long as we do, its
        // addresses stay even if pages are exchanged, and there are no references into it.
        unsafe {
            let to = self.first.as_ptr().add(offset as usize);
            store_short(to, len, data);
        }
        true
    }
}

impl core::fmt::Debug for Window {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Window({} bytes)", self.length_bytes)
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;

    use hamlyn_engine::limits::MORE_WORDS;
    use hamlyn_engine::memory::{Area as _, ShortSource, Window as _};

    use crate::area::Area;

    /// Data of which so many bytes lie in the first words, each byte another.
    struct Words {
        bytes: [u8; 160],
        more: Vec<[AtomicU64; MORE_WORDS]>,
        length_bytes: usize,
        first_bytes: usize,
    }

    impl Words {
        fn word(&self, number: usize) -> u64 {
            u64::from_le_bytes(std::array::from_fn(|byte| self.bytes[8 * number + byte]))
        }
    }

    impl ShortSource for Words {
        fn length_bytes(&self) -> usize {
            self.length_bytes
        }

        fn data_word<const NUMBER: usize>(&self) -> u64 {
            // Beyond the first bytes there is anything.
            match NUMBER * 8 < self.first_bytes {
                true => self.word(NUMBER),
                false => u64::MAX,
            }
        }

        fn first_bytes(&self) -> usize {
            self.first_bytes
        }

        fn more(&self, number: usize) -> &[AtomicU64; MORE_WORDS] {
            &self.more[number]
        }
    }

    /// Of that length, in the first words if that is possible, and otherwise so many of them.
    fn data(length_bytes: usize, first_words: usize) -> (Words, [u8; 160]) {
        let bytes = std::array::from_fn(|at| at as u8 + 1);
        let first_bytes = length_bytes.min(8 * first_words);
        let mut data = Words {
            bytes,
            more: Vec::new(),
            length_bytes,
            first_bytes,
        };
        for number in 0..3 {
            let first = first_bytes / 8 + MORE_WORDS * number;
            let words = std::array::from_fn(|at| data.word((first + at).min(19)).to_le().into());
            data.more.push(words);
        }
        (data, bytes)
    }

    fn short(length_bytes: usize) -> (Words, [u8; 160]) {
        data(length_bytes, 4)
    }

    #[test]
    fn data_of_any_length_are_stored_whole_and_nothing_else() {
        for (first_words, length) in
            (2..=4).flat_map(|words| (0..=144).map(move |length| (words, length)))
        {
            for begin in [0, 3, 8] {
                let area = Area::new(160).unwrap();
                let window = area.window(begin, length as u64);
                let (data, source) = data(length, first_words);
                assert!(window.write_short(0, &data));
                assert!(!window.write_short(1, &data) || length == 0);
                let mut bytes = [0; 160];
                area.read_at(0, &mut bytes).unwrap();
                let mut expected = [0; 160];
                let at = begin as usize;
                expected[at..at + length].copy_from_slice(&source[..length]);
                assert_eq!(bytes, expected, "{first_words} {begin} {length}");
            }
        }
    }

    #[test]
    fn what_is_written_lies_inside_at_every_offset() {
        let ranges = [(0, 64), (7, 33), (48, 16), (63, 1), (0, 0), (64, 0)];
        for ((begin, len), length) in ranges
            .into_iter()
            .flat_map(|range| (0..=34).map(move |length| (range, length)))
        {
            for offset in (0..80).chain([u64::MAX - 16, u64::MAX - 15, u64::MAX]) {
                let area = Area::new(64).unwrap();
                let window = area.window(begin, len);
                let (data, source) = short(length);
                let end = offset.checked_add(length as u64);
                let fits = end.is_some_and(|end| end <= len);
                assert_eq!(
                    window.write_short(offset, &data),
                    fits,
                    "{begin} {len} {offset} {length}"
                );
                let mut bytes = [0; 64];
                area.read_at(0, &mut bytes).unwrap();
                let mut expected = [0; 64];
                if fits {
                    let at = (begin + offset) as usize;
                    expected[at..at + length].copy_from_slice(&source[..length]);
                }
                assert_eq!(bytes, expected, "{begin} {len} {offset} {length}");
            }
        }
    }

    #[test]
    fn what_does_not_lie_in_the_area_has_no_window() {
        let area = Area::new(64).unwrap();
        for (begin, len) in [(0, 65), (33, 32), (64, 16), (u64::MAX, 16), (16, u64::MAX)] {
            assert!(!area.window(begin, len).write_short(0, &short(16).0));
        }
        let (pieces, _reader) = Area::handover(4, 16).unwrap();
        assert!(
            !pieces.window(0, 64).write_short(0, &short(16).0),
            "no piece is open"
        );
    }

    #[test]
    fn a_window_keeps_its_memory() {
        let area = Area::new(4096).unwrap();
        let window = area.window(0, 4096);
        drop(area);
        assert!(window.write_short(4080, &short(16).0));
    }
}
