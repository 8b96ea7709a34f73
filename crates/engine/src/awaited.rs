//! A message that its receiver awaits (decision 0010): what it knows of the entry, so that it need
//! not be looked up.

use crate::key::Key;
use crate::metadata::MetadataEntry;
use crate::packet::Address;
use crate::slot::Slot;

/// A short message that an application awaits at a one-shot entry of its own: the permission of
/// that entry. It must match the entry's current permission; otherwise packets are wrongly accepted
/// or refused.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// The address of the entry.
    pub to: Address,
    /// Its key.
    pub key: Key,
    /// Its lower limit, as an offset in the slot.
    pub low: u64,
    /// How many bytes may land from there on. All of them lie in one piece of the area, if it is in
    /// pieces that change hands.
    pub length_bytes: u64,
}

impl Awaited {
    /// Whether so many bytes to that address under that key may land there.
    #[inline(always)]
    pub(crate) fn permits(&self, to: Address, key: Key, offset: u64, length_bytes: usize) -> bool {
        let begin = offset.wrapping_sub(self.low);
        // For data that begin just below the limits this wraps; then they do not begin inside.
        let end = begin.wrapping_add(length_bytes as u64);
        let is_inside = begin <= self.length_bytes && end <= self.length_bytes;
        to == self.to && key == self.key && is_inside
    }

    /// Whether that is the entry, and says the same.
    pub(crate) fn is_permitted<A>(&self, slot: &Slot<A>, entry: &MetadataEntry) -> bool {
        let area = slot.metadata.as_ref();
        let named = area.and_then(|area| area.entry(self.to.metadata_index()));
        named.is_some_and(|named| core::ptr::eq(named, entry))
            && entry.permission().is_some_and(|permission| {
                let end = self.low + self.length_bytes;
                permission.key == self.key && permission.low == self.low && permission.high >= end
            })
    }
}
