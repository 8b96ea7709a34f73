//! What must be in an area, byte for byte; and which bytes nobody can know while a peer stores
//! there by itself.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Violation;

/// A byte that was written by several at a time: whose it is, nobody knows.
const MIXED: u16 = 1 << 15;

/// Names a store that is under way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StoreId(u64);

/// An area as it must be.
#[derive(Clone, Debug)]
pub struct Memory {
    bytes: Vec<u8>,
    /// Of each byte, how many stores are under way, and whether it is mixed. Empty until there is a
    /// store.
    doubt: Vec<u16>,
    stores: BTreeMap<StoreId, Range<usize>>,
    stores_begun: u64,
    /// In the application's hands: nothing is written there.
    held: Vec<Range<u64>>,
}

impl Memory {
    /// An area of zeros.
    pub fn new(length_bytes: usize) -> Self {
        Self {
            bytes: vec![0; length_bytes],
            doubt: Vec::new(),
            stores: BTreeMap::new(),
            stores_begun: 0,
            held: Vec::new(),
        }
    }

    /// Its size.
    pub fn length_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// What must be there; of bytes in doubt, what was there last.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn range(&self, offset: u64, length: usize) -> Option<Range<usize>> {
        let end = offset.checked_add(length as u64)?;
        (end <= self.length_bytes()).then_some(offset as usize..end as usize)
    }

    /// What those bytes are; nothing if there is no such place.
    pub fn known(&self, offset: u64, length_bytes: u64) -> Option<Vec<u8>> {
        let range = self.range(offset, usize::try_from(length_bytes).ok()?)?;
        Some(self.bytes[range].to_vec())
    }

    /// Those bytes are written, by the interface or the owner. False if there is no such place.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let Some(range) = self.range(offset, bytes.len()) else {
            return false;
        };
        self.bytes[range.clone()].copy_from_slice(bytes);
        for doubt in self.doubt.iter_mut().take(range.end).skip(range.start) {
            *doubt = if *doubt & !MIXED == 0 {
                0
            } else {
                *doubt | MIXED
            };
        }
        true
    }

    /// A peer begins to store there by itself; until it ends, nothing is known of these bytes.
    /// Nothing if there is no such place.
    pub fn store_begins(&mut self, offset: u64, length_bytes: usize) -> Option<StoreId> {
        let range = self.range(offset, length_bytes)?;
        self.doubt.resize(self.bytes.len(), 0);
        for doubt in &mut self.doubt[range.clone()] {
            *doubt = if *doubt & !MIXED == 0 {
                1
            } else {
                (*doubt | MIXED) + 1
            };
        }
        let id = StoreId(self.stores_begun);
        self.stores_begun += 1;
        self.stores.insert(id, range);
        Some(id)
    }

    /// It has stored these bytes. Where nobody else wrote meanwhile, they are there now. False if
    /// there is no such store, or it is of another length.
    pub fn store_ends(&mut self, id: StoreId, bytes: &[u8]) -> bool {
        let Some(range) = self.stores.remove(&id) else {
            return false;
        };
        if range.len() != bytes.len() {
            return false;
        }
        for (at, &byte) in range.zip(bytes) {
            self.doubt[at] -= 1;
            if self.doubt[at] & MIXED == 0 {
                self.bytes[at] = byte;
            }
        }
        true
    }

    /// The application has these bytes in its hands: the area lets nobody write there.
    pub fn hold(&mut self, range: Range<u64>) {
        self.held.push(range);
    }

    /// It gives back all that it holds.
    pub fn release_all(&mut self) {
        self.held.clear();
    }

    /// Whether the application holds one of these bytes.
    pub fn is_held(&self, offset: u64, length_bytes: u64) -> bool {
        let end = offset.saturating_add(length_bytes);
        self.held
            .iter()
            .any(|held| offset < held.end && held.start < end)
    }

    /// Whether these bytes may be there. `area` is for the report.
    pub fn check(&self, area: usize, offset: u64, found: &[u8]) -> Result<(), Violation> {
        let range = self
            .range(offset, found.len())
            .ok_or(Violation::NoSuchMemory {
                area,
                offset,
                length_bytes: found.len() as u64,
            })?;
        if self.bytes[range.clone()] == *found {
            return Ok(());
        }
        let in_doubt = |at: usize| self.doubt.get(at).is_some_and(|&doubt| doubt != 0);
        let wrong = range
            .clone()
            .zip(found)
            .find(|&(at, &found)| self.bytes[at] != found && !in_doubt(at));
        match wrong {
            None => Ok(()),
            Some((at, &found)) => Err(Violation::Byte {
                area,
                offset: at as u64,
                expected: self.bytes[at],
                found,
            }),
        }
    }
}
