//! Accesses to a metadata entry, each of which is a point of the work on a packet
//! ([`crate::point`]).

use core::marker::PhantomData;
use core::ops::Deref;

use crate::limits::USER_METADATA_BYTES;
use crate::memory::{Area, Payload};
use crate::metadata::{MetadataEntry, Permission};
use crate::point::Point;

/// A metadata entry on behalf of a packet: each access is a point that the packet's payload is told
/// of.
pub(crate) struct EntryAccess<'a, A, P> {
    pub(crate) entry: &'a MetadataEntry,
    payload: &'a P,
    area: PhantomData<fn(A)>,
}

/// What is no access that takes time: fields of the line that was read.
impl<A, P> Deref for EntryAccess<'_, A, P> {
    type Target = MetadataEntry;

    #[inline(always)]
    fn deref(&self) -> &MetadataEntry {
        self.entry
    }
}

impl<'a, A: Area, P: Payload<A>> EntryAccess<'a, A, P> {
    #[inline(always)]
    pub(crate) fn new(entry: &'a MetadataEntry, payload: &'a P) -> Self {
        payload.passes(Point::EntryRead);
        Self {
            entry,
            payload,
            area: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn admission(&self, once: bool) -> Option<(Permission, bool)> {
        self.payload.passes(Point::PermissionRead);
        self.entry.admission(once)
    }

    #[inline(always)]
    pub(crate) fn accumulator(&self) -> u64 {
        self.payload.passes(Point::AccumulatorRead);
        self.entry.accumulator()
    }

    #[inline(always)]
    pub(crate) fn set_accumulator(&self, sum: u64) {
        self.payload.passes(Point::AccumulatorWritten);
        self.entry.set_accumulator(sum);
    }

    #[inline(always)]
    pub(crate) fn store_metadata_word(&self, word: u64, length_bytes: usize) {
        self.payload
            .passes(Point::MetadataStored(length_bytes as u32));
        self.entry.store_metadata_word(word, length_bytes);
    }

    /// Metadata that did not come as one word.
    #[inline(always)]
    pub(crate) fn store_metadata(&self, length_bytes: usize) {
        self.payload
            .passes(Point::MetadataStored(length_bytes as u32));
        let mut metadata = [0; USER_METADATA_BYTES];
        self.payload.metadata(&mut metadata, length_bytes);
        self.entry.store_metadata(&metadata, length_bytes);
    }
}
