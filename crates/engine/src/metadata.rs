//! Metadata entries (`Hamlyn 2.4, Table 2`): for every expected message a
//! place for its metadata, its packet accumulator, and the finer protection of
//! the paranoid modes.
//!
//! Entries lie in memory that the application and its interface share, so all
//! fields are atomics and the application changes them by plain stores, with
//! no call into the interface. The interface is the only writer of user
//! metadata and accumulator while an entry is armed; the application is the
//! only writer while it is not.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use crate::key::Key;
use crate::limits::{METADATA_ENTRIES_MAX, USER_METADATA_BYTES};

/// Set in [`MetadataEntry::state`] while messages are welcome.
const ARMED: u32 = 1;

/// Bytes of metadata that are stored and read as one number.
const FIRST_BYTES: usize = size_of::<u64>();

/// One entry, 128 bytes, in the order of Table 2. The paper leaves 44 bytes
/// unaccounted for; wider limits and the state take some of them.
#[repr(C, align(128))]
pub struct MetadataEntry {
    /// The user metadata of the message: its first eight bytes, lowest first,
    first: AtomicU64,
    /// and the others.
    rest: [AtomicU32; (USER_METADATA_BYTES - FIRST_BYTES) / 4],
    /// Armed or spent (`paranoid_one_shot`).
    state: AtomicU32,
    /// Sum of the deltas that have come; zero when nothing or everything has.
    accumulator: AtomicU64,
    /// Supersedes the slot's key in the paranoid modes.
    key: AtomicU64,
    /// First byte that a message may touch, as an offset in the slot.
    low: AtomicU64,
    /// First byte above those that a message may touch.
    high: AtomicU64,
    /// What the library put there to find the receiver of a message.
    receive_class: AtomicU64,
    /// Bytes of user metadata that came.
    metadata_length: AtomicU32,
    /// Odd while the application changes key and limits.
    version: AtomicU32,
    /// Where the one packet of the last one-shot message began; of several packets the sum of their
    /// [`cover`]s.
    landed: AtomicU64,
    /// Bytes of that one packet; [`COUNTED`] if there were several.
    landed_bytes: AtomicU32,
}

/// In [`MetadataEntry::landed_bytes`]: the message came in packets that were counted.
const COUNTED: u32 = u32::MAX;

const _: () = assert!(USER_METADATA_BYTES.is_multiple_of(4));

/// What a paranoid entry lets in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permission {
    /// The key that a packet must carry.
    pub key: Key,
    /// First byte that may be touched, as an offset in the slot.
    pub low: u64,
    /// First byte above those that may be touched.
    pub high: u64,
}

impl MetadataEntry {
    fn new() -> Self {
        Self {
            first: AtomicU64::new(0),
            rest: core::array::from_fn(|_| AtomicU32::new(0)),
            state: AtomicU32::new(0),
            accumulator: AtomicU64::new(0),
            key: AtomicU64::new(0),
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
            receive_class: AtomicU64::new(0),
            metadata_length: AtomicU32::new(0),
            version: AtomicU32::new(0),
            landed: AtomicU64::new(0),
            landed_bytes: AtomicU32::new(0),
        }
    }

    /// Lets in one more message (in `paranoid_one_shot` mode), with the
    /// permission as it stands: change that first. The accumulator and the
    /// metadata length start from zero.
    #[inline]
    pub fn arm(&self) {
        self.accumulator.store(0, Relaxed);
        self.metadata_length.store(0, Relaxed);
        self.state.store(ARMED, Release);
    }

    /// Lets in nothing more.
    pub fn disarm(&self) {
        self.state.store(0, Release);
    }

    /// Whether a one-shot entry still waits for its message.
    #[inline]
    pub fn is_armed(&self) -> bool {
        self.state.load(Acquire) & ARMED != 0
    }

    /// Changes what the paranoid modes let in. A packet that arrives in the
    /// middle of the change is refused; none is checked against a mixture of old and new.
    ///
    /// To be called by one thread at a time: the entry belongs to one application.
    pub fn permit(&self, permission: Permission) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        self.key.store(permission.key.to_bits(), Relaxed);
        self.low.store(permission.low, Relaxed);
        self.high.store(permission.high, Relaxed);
        self.version.store(version.wrapping_add(2), Release);
    }

    /// What the paranoid modes let in at present; nothing while that is being changed.
    #[inline]
    pub fn permission(&self) -> Option<Permission> {
        self.admission(false).map(|(permission, _)| permission)
    }

    /// The permission, and if `one_shot` whether the entry is armed. The two belong together: a
    /// packet under an old permission must not use up the arming that followed a new one.
    #[inline]
    pub(crate) fn admission(&self, one_shot: bool) -> Option<(Permission, bool)> {
        let version = self.version.load(Acquire);
        let permission = Permission {
            key: Key::from_bits(self.key.load(Relaxed)),
            low: self.low.load(Relaxed),
            high: self.high.load(Relaxed),
        };
        let armed = !one_shot || self.is_armed();
        fence(Acquire);
        (version & 1 == 0 && self.version.load(Relaxed) == version).then_some((permission, armed))
    }

    /// What [`MetadataEntry::admission`] says of a packet under that key for those bytes, the
    /// shortest way: the limits, if it is let in once. Otherwise nothing, and the other is to say
    /// why.
    #[inline(always)]
    pub(crate) fn admit_once(
        &self,
        key: Key,
        offset: u64,
        length_bytes: u64,
    ) -> Option<(u64, u64)> {
        let version = self.version.load(Acquire);
        if self.key.load(Relaxed) != key.to_bits() {
            return None;
        }
        let (low, high) = (self.low.load(Relaxed), self.high.load(Relaxed));
        if offset < low || high.checked_sub(offset)? < length_bytes || !self.is_armed() {
            return None;
        }
        fence(Acquire);
        (version & 1 == 0 && self.version.load(Relaxed) == version).then_some((low, high))
    }

    /// Lets the application find its receiver from a notification.
    pub fn set_receive_class(&self, class: u64) {
        self.receive_class.store(class, Relaxed);
    }

    /// See [`MetadataEntry::set_receive_class`].
    #[inline]
    pub fn receive_class(&self) -> u64 {
        self.receive_class.load(Relaxed)
    }

    /// Copies out the metadata of the message that last came; returns its
    /// length, at most 60 bytes. Of the bytes after those nothing is said.
    #[inline]
    pub fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES]) -> usize {
        let length = (self.metadata_length.load(Relaxed) as usize).min(USER_METADATA_BYTES);
        let (first, rest) = into.split_at_mut(FIRST_BYTES);
        first.copy_from_slice(&self.first.load(Relaxed).to_le_bytes());
        for (bytes, word) in rest
            .chunks_exact_mut(4)
            .zip(&self.rest)
            .take(length.saturating_sub(FIRST_BYTES).div_ceil(4))
        {
            bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        length
    }

    /// The first eight bytes of metadata as one number, for protocols that need no more. Of bytes
    /// that did not come nothing is said.
    #[inline]
    pub fn metadata_word(&self) -> u64 {
        self.first.load(Relaxed)
    }

    /// Bytes of metadata that the last message with metadata brought.
    #[inline]
    pub fn metadata_length_bytes(&self) -> usize {
        (self.metadata_length.load(Relaxed) as usize).min(USER_METADATA_BYTES)
    }

    /// The accumulator. Anything but zero: a message is partly there.
    pub fn accumulator(&self) -> u64 {
        self.accumulator.load(Relaxed)
    }

    /// The accumulator; what was counted is in its place.
    #[inline]
    pub fn counted(&self) -> u64 {
        self.accumulator.load(Acquire)
    }

    /// Whether the message that spent this one-shot entry wrote exactly these bytes of its slot,
    /// each once. `secret` is the slot's own key, which opens nothing in the paranoid modes and is
    /// not given away. Says nothing of messages that were awaited:
    /// [`crate::receive::Receiver::receive_short`] tells where those landed.
    pub fn has_landed(&self, secret: Key, offset: u64, length_bytes: u32) -> bool {
        let landed = self.landed.load(Relaxed);
        match self.landed_bytes.load(Relaxed) {
            COUNTED => landed == cover(secret, offset, length_bytes),
            landed_bytes => (landed, landed_bytes) == (offset, length_bytes),
        }
    }

    /// Forgets a message that came only in part, for example because its sender died.
    pub fn reset_accumulator(&self) {
        self.accumulator.store(0, Relaxed);
    }

    // What follows is the interface's side.

    #[inline]
    pub(crate) fn store_metadata(&self, from: &[u8; USER_METADATA_BYTES], length_bytes: usize) {
        let (first, rest) = from.split_at(FIRST_BYTES);
        let first = first.try_into().unwrap_or([0; FIRST_BYTES]);
        self.first.store(u64::from_le_bytes(first), Relaxed);
        let words = length_bytes.saturating_sub(FIRST_BYTES).div_ceil(4);
        for (bytes, word) in rest.chunks_exact(4).zip(&self.rest).take(words) {
            let bytes: [u8; 4] = bytes.try_into().unwrap_or([0; 4]);
            word.store(u32::from_le_bytes(bytes), Relaxed);
        }
        self.metadata_length.store(length_bytes as u32, Relaxed);
    }

    #[inline]
    pub(crate) fn store_metadata_word(&self, word: u64, length_bytes: usize) {
        self.first.store(word, Relaxed);
        self.metadata_length.store(length_bytes as u32, Relaxed);
    }

    /// A message begins that has brought no metadata so far.
    #[inline]
    pub(crate) fn forget_metadata(&self) {
        self.metadata_length.store(0, Relaxed);
    }

    /// A message of one packet has landed there.
    #[inline(always)]
    pub(crate) fn set_landed(&self, offset: u64, length_bytes: u32) {
        self.landed.store(offset, Relaxed);
        self.landed_bytes.store(length_bytes, Relaxed);
    }

    /// A packet of several has landed there; to be called before it is counted.
    pub(crate) fn add_landed(&self, secret: Key, offset: u64, length_bytes: u32) {
        let before = match self.accumulator() {
            0 => 0,
            _ => self.landed.load(Relaxed),
        };
        let sum = before.wrapping_add(cover(secret, offset, length_bytes));
        self.landed.store(sum, Relaxed);
        self.landed_bytes.store(COUNTED, Relaxed);
    }

    #[inline]
    pub(crate) fn set_accumulator(&self, value: u64) {
        // Another thread that sees the sum sees what was deposited before.
        self.accumulator.store(value, Release);
    }

    #[inline]
    pub(crate) fn spend(&self) {
        // A thread that sees the entry spent sees the message.
        self.state.store(0, Release);
    }
}

/// Stands for a range of bytes: a secret function of its end less the same of its beginning. Those
/// of ranges that lie side by side sum to that of the whole, in whatever order they come; ranges
/// that overlap or leave a gap do not, and a sender that does not know the secret cannot choose
/// some that do.
fn cover(secret: Key, offset: u64, length_bytes: u32) -> u64 {
    let at = |offset: u64| {
        let mut mixed = offset ^ secret.to_bits();
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    };
    at(offset.wrapping_add(u64::from(length_bytes))).wrapping_sub(at(offset))
}

impl core::fmt::Debug for MetadataEntry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("MetadataEntry")
            .field("armed", &self.is_armed())
            .field("accumulator", &self.accumulator())
            .finish_non_exhaustive()
    }
}

/// A metadata area was asked for with an impossible number of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a metadata area has 1 to {METADATA_ENTRIES_MAX} entries, not {asked}")]
pub struct BadEntryCount {
    /// How many were asked for.
    pub asked: usize,
}

/// A vector of metadata entries (`Hamlyn 2.4`). Clones name the same entries.
#[derive(Clone, Debug)]
pub struct MetadataArea {
    /// Padded to a power of two: an index that a peer chose is masked, so that not even speculation
    /// leaves them.
    entries: Arc<[MetadataEntry]>,
    length: usize,
}

impl MetadataArea {
    /// Allocates an area. The index of all ones stays free: it means fast mode.
    pub fn new(entries: usize) -> Result<Self, BadEntryCount> {
        if entries == 0 || entries > METADATA_ENTRIES_MAX {
            return Err(BadEntryCount { asked: entries });
        }
        let padded = 0..entries.next_power_of_two();
        let storage: Vec<_> = padded.map(|_| MetadataEntry::new()).collect();
        Ok(Self {
            entries: storage.into(),
            length: entries,
        })
    }

    /// Number of entries; never zero.
    #[expect(clippy::len_without_is_empty, reason = "an area is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// The entries of those indices, as far as there are any.
    pub fn entries(&self, indices: Range<u32>) -> &[MetadataEntry] {
        let end = (indices.end as usize).min(self.length);
        let start = (indices.start as usize).min(end);
        &self.entries[start..end]
    }

    /// The entry of that index, if there is one. A few indices beyond [`MetadataArea::len`] may
    /// have one, too, which no packet ever reaches.
    #[inline]
    pub fn entry(&self, index: u16) -> Option<&MetadataEntry> {
        self.entries.get(usize::from(index))
    }

    /// The first entry; there is always one.
    #[inline(always)]
    pub fn first(&self) -> Option<&MetadataEntry> {
        self.entries.first()
    }

    /// The entry that a packet names: its index is the peer's, so it is masked as well.
    #[inline(always)]
    pub(crate) fn named(&self, index: u16) -> Option<&MetadataEntry> {
        let index = usize::from(index);
        if index >= self.length {
            return None;
        }
        self.entries.get(index & (self.entries.len() - 1))
    }
}
