//! What a program of an experiment shares, as it sees that itself: words of eight bytes, of which
//! values fill the lower half.

use hamlyn::Area;

use super::end::WORD_BYTES;

/// See the module.
pub(super) struct SharedMemory(pub(super) Area);

const WITHIN: &str = "programs name places of what they share only";

/// Where a word begins, in bytes.
pub(super) fn offset_of(word: u32) -> u64 {
    u64::from(word) * u64::from(WORD_BYTES)
}

impl SharedMemory {
    /// The value of a word.
    pub(super) fn word(&self, at: u32) -> u32 {
        let mut bytes = [0; WORD_BYTES as usize];
        self.read(at, &mut bytes);
        u64::from_le_bytes(bytes) as u32
    }

    /// Changes the value of a word.
    pub(super) fn set(&self, at: u32, value: u32) {
        self.write(at, &u64::from(value).to_le_bytes());
    }

    /// Bytes, from a word on.
    pub(super) fn read(&self, at: u32, into: &mut [u8]) {
        self.0.read_at(offset_of(at), into).expect(WITHIN);
    }

    /// Changes bytes, from a word on.
    pub(super) fn write(&self, at: u32, bytes: &[u8]) {
        self.0.write_at(offset_of(at), bytes).expect(WITHIN);
    }
}
