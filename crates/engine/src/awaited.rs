//! A message that its receiver awaits (decision 0010): what it knows of the entry, so that it need not be looked up.

use crate::key::Key;
use crate::limits::SHORT_BYTES;
use crate::metadata::MetadataEntry;
use crate::packet::Address;
use crate::slot::Slot;

/// A short message that an application awaits at a one-shot entry of its own: the permission of that
/// entry. It must match the entry's current permission; otherwise packets are wrongly accepted or refused.
#[derive(Clone, Copy, Debug)]
pub struct Awaited {
    /// The address of the entry.
    pub to: Address,
    /// Its key.
    pub key: Key,
    /// Its lower limit, as an offset in the slot.
    pub low: u64,
    /// How far above that short data may begin. All limits lie in one piece of the area, if it is in pieces
    /// that change hands.
    pub max_start_offset: u64,
}

impl Awaited {
    /// Whether short data to that address under that key may begin there.
    #[inline(always)]
    pub(crate) fn permits(&self, to: Address, key: Key, offset: u64) -> bool {
        to == self.to && key == self.key && offset.wrapping_sub(self.low) <= self.max_start_offset
    }

    /// Whether that is the entry, and says the same.
    pub(crate) fn is_permitted<A>(&self, slot: &Slot<A>, entry: &MetadataEntry) -> bool {
        let area = slot.metadata.as_ref();
        let named = area.and_then(|area| area.entry(self.to.metadata_index()));
        named.is_some_and(|named| core::ptr::eq(named, entry))
            && entry.permission().is_some_and(|permission| {
                let end = self.low + self.max_start_offset + SHORT_BYTES as u64;
                permission.key == self.key && permission.low == self.low && permission.high >= end
            })
    }
}
