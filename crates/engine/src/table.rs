//! A table whose entries are used again under new names: slots, termini, notification queues, and
//! whatever a host or library names by index and generation.
//!
//! It refuses a name whose thing was removed, for ever: an entry whose generations are used up is
//! never used again. An index may be a peer's: it is masked, so that not even speculation leaves
//! the table, and the whole name is compared.

use alloc::vec::Vec;

/// The name of a thing in a [`Table`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Name {
    /// Its entry.
    pub index: u32,
    /// Which use of that entry.
    pub generation: u32,
}

impl Name {
    /// Both as one number.
    #[inline(always)]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The name that [`Name::to_bits`] gave as this number.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

#[derive(Debug)]
struct Entry<T> {
    /// The name of what is here, as one number; [`VACANT`] if nothing is.
    stamp: u64,
    generation: u32,
    value: Option<T>,
}

/// No name is this number.
const VACANT: u64 = u64::MAX;

/// See the module. As one number, a name is its generation above `INDEX_BITS` of index.
#[derive(Debug)]
pub struct Table<T, const INDEX_BITS: u32 = 32> {
    /// Padded to a power of two with vacant entries.
    entries: Vec<Entry<T>>,
    /// Entries that were used and may be used again; the last one is next.
    free: Vec<u32>,
    /// Entries that were ever used.
    used: usize,
    open: usize,
    entries_max: usize,
    generation_max: u32,
}

impl<T, const INDEX_BITS: u32> Table<T, INDEX_BITS> {
    /// An empty table of at most `entries_max` entries, whose generations go up to
    /// `generation_max`. Takes no memory.
    pub const fn new(entries_max: usize, generation_max: u32) -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            used: 0,
            open: 0,
            entries_max,
            generation_max,
        }
    }

    #[inline(always)]
    const fn stamp(name: Name) -> u64 {
        (name.generation as u64) << INDEX_BITS | name.index as u64
    }

    /// Puts a thing into the table, and names it. Nothing if the table is full. Allocates.
    pub fn insert(&mut self, value: T) -> Option<Name> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.used >= self.entries_max => return None,
            None => {
                if self.used == self.entries.len() {
                    let vacant = || Entry {
                        stamp: VACANT,
                        generation: 0,
                        value: None,
                    };
                    self.entries.resize_with((self.used * 2).max(8), vacant);
                }
                self.used += 1;
                (self.used - 1) as u32
            }
        };
        let entry = self.entries.get_mut(index as usize)?;
        let name = Name {
            index,
            generation: entry.generation,
        };
        entry.stamp = Self::stamp(name);
        entry.value = Some(value);
        self.open += 1;
        Some(name)
    }

    /// Takes a thing out of the table. Its name is never good again.
    pub fn remove(&mut self, name: Name) -> Option<T> {
        let entry = self.entries.get_mut(name.index as usize)?;
        if entry.stamp != Self::stamp(name) {
            return None;
        }
        let value = entry.value.take()?;
        entry.stamp = VACANT;
        self.open -= 1;
        if entry.generation < self.generation_max {
            entry.generation += 1;
            self.free.push(name.index);
        }
        Some(value)
    }

    /// The thing of that name.
    #[inline(always)]
    pub fn get(&self, name: Name) -> Option<&T> {
        self.stamped(Self::stamp(name))
    }

    /// The thing whose name is this number, which a peer may have chosen: it is masked before it is
    /// used, and compared as a whole.
    #[inline(always)]
    pub fn stamped(&self, stamp: u64) -> Option<&T> {
        let mask = self.entries.len().wrapping_sub(1);
        let entry = self.entries.get(stamp as usize & mask)?;
        if entry.stamp != stamp {
            return None;
        }
        entry.value.as_ref()
    }

    /// The thing of that name.
    #[inline(always)]
    pub fn get_mut(&mut self, name: Name) -> Option<&mut T> {
        let mask = self.entries.len().wrapping_sub(1);
        let entry = self.entries.get_mut(name.index as usize & mask)?;
        if entry.stamp != Self::stamp(name) {
            return None;
        }
        entry.value.as_mut()
    }

    /// The thing in that entry, with its name.
    pub fn at_mut(&mut self, index: usize) -> Option<(Name, &mut T)> {
        let entry = self.entries.get_mut(index)?;
        let name = Name {
            index: index as u32,
            generation: entry.generation,
        };
        entry.value.as_mut().map(|value| (name, value))
    }

    /// Whether there is a thing of that name.
    pub fn contains(&self, name: Name) -> bool {
        self.get(name).is_some()
    }

    /// Whether that entry was ever used.
    pub fn was_used(&self, index: usize) -> bool {
        index < self.used
    }

    /// How many entries there are, vacant ones and padding included: zero, or a power of two.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.open
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// All there are, with their names, in order of their entries.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(index, entry)| {
                let name = Name {
                    index: index as u32,
                    generation: entry.generation,
                };
                entry.value.as_ref().map(|value| (name, value))
            })
    }

    /// All there are, in order of their entries.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries
            .iter_mut()
            .filter_map(|entry| entry.value.as_mut())
    }
}
