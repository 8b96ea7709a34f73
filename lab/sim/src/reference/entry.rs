//! Metadata entries as they must be (`Hamlyn 2.4`, `2.7`).

use std::collections::BTreeMap;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::metadata::{MetadataEntry, Permission};

use super::Violation;

/// The entries of a metadata area, by index. Those that nobody touched are not kept.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    count: usize,
    touched: BTreeMap<u16, Entry>,
    untouched: Entry,
}

impl Entries {
    /// So many, which nobody touched.
    pub(super) fn new(count: usize) -> Self {
        Self {
            count,
            touched: BTreeMap::new(),
            untouched: Entry::new(),
        }
    }

    /// That entry, if there is one.
    pub(super) fn get(&self, index: u16) -> Option<&Entry> {
        let exists = usize::from(index) < self.count;
        exists.then(|| self.touched.get(&index).unwrap_or(&self.untouched))
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, index: u16) -> Option<&mut Entry> {
        let exists = usize::from(index) < self.count;
        exists.then(|| self.touched.entry(index).or_insert_with(Entry::new))
    }
}

/// A metadata entry as it must be.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) metadata: Vec<u8>,
    pub(super) accumulator: u128,
    pub(super) armed: bool,
    pub(super) permission: Permission,
    pub(super) class: u64,
}

impl Entry {
    /// One that was never touched.
    pub(super) fn new() -> Self {
        Self {
            metadata: Vec::new(),
            accumulator: 0,
            armed: false,
            permission: Permission {
                key: Key::from_bits(0),
                low: 0,
                high: 0,
            },
            class: 0,
        }
    }

    /// As an entry is found. Nothing while its owner changes its permission.
    pub(super) fn found(entry: &MetadataEntry) -> Option<Self> {
        let mut metadata = [0; USER_METADATA_BYTES];
        let metadata_bytes = entry.metadata(&mut metadata);
        Some(Self {
            metadata: metadata[..metadata_bytes].to_vec(),
            accumulator: u128::from(entry.accumulator()),
            armed: entry.is_armed(),
            permission: entry.permission()?,
            class: entry.receive_class(),
        })
    }

    /// Whether an entry is this one; number of its area and index are for the report.
    pub(super) fn check(
        &self,
        entries: usize,
        index: u16,
        found: &MetadataEntry,
    ) -> Result<(), Violation> {
        let differs = |what, expected: String, found: String| {
            Err(Violation::Entry {
                entries,
                index,
                what,
                expected,
                found,
            })
        };
        let accumulator = u128::from(found.accumulator());
        if accumulator != self.accumulator {
            let expected = self.accumulator.to_string();
            return differs("accumulator", expected, accumulator.to_string());
        }
        if found.is_armed() != self.armed {
            let armed = found.is_armed().to_string();
            return differs("arming", self.armed.to_string(), armed);
        }
        let mut metadata = [0; USER_METADATA_BYTES];
        let metadata_bytes = found.metadata(&mut metadata);
        if metadata[..metadata_bytes] != self.metadata[..] {
            let found = format!("{:?}", &metadata[..metadata_bytes]);
            return differs("metadata", format!("{:?}", self.metadata), found);
        }
        let permission = found.permission();
        if permission != Some(self.permission) {
            return Err(Violation::Permits {
                expected: self.permission,
                found: permission,
            });
        }
        Ok(())
    }
}
