//! Names of regions, and sets of nodes.

use std::fmt;

/// Nodes of one program, at most.
pub const NODES_MAX: u32 = 256;

/// A region, by the node that is its home and a number there that is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegionId {
    pub(crate) home: u32,
    pub(crate) index: u32,
}

impl RegionId {
    /// The node that created it and keeps its directory.
    pub fn home(self) -> u32 {
        self.home
    }

    /// As a number, which may travel and lie in regions.
    pub fn to_u64(self) -> u64 {
        u64::from(self.home) << 32 | u64::from(self.index)
    }

    /// The region of that number, whether there is one or not.
    pub fn from_u64(number: u64) -> Self {
        Self {
            home: (number >> 32) as u32,
            index: number as u32,
        }
    }
}

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {} of node {}", self.index, self.home)
    }
}

const WORDS: usize = NODES_MAX as usize / 32;

/// A set of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct NodeSet([u32; WORDS]);

impl NodeSet {
    pub(crate) const WORDS: usize = WORDS;

    pub(crate) fn insert(&mut self, node: u32) {
        if let Some(word) = self.0.get_mut(node as usize / 32) {
            *word |= 1 << (node % 32);
        }
    }

    pub(crate) fn remove(&mut self, node: u32) {
        if let Some(word) = self.0.get_mut(node as usize / 32) {
            *word &= !(1 << (node % 32));
        }
    }

    pub(crate) fn contains(self, node: u32) -> bool {
        let word = self.0.get(node as usize / 32).copied().unwrap_or_default();
        word >> (node % 32) & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Those of this set that are not in the other one.
    pub(crate) fn without(self, others: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & !others.0[at]))
    }

    /// Its nodes, from the lowest on.
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        (0..NODES_MAX).filter(move |node| self.contains(*node))
    }

    pub(crate) fn words(&self) -> &[u32; WORDS] {
        &self.0
    }

    /// The set of those words; words that are missing are zero.
    pub(crate) fn of_words(words: &[u32]) -> Self {
        Self(std::array::from_fn(|at| {
            words.get(at).copied().unwrap_or_default()
        }))
    }
}

impl FromIterator<u32> for NodeSet {
    fn from_iter<I: IntoIterator<Item = u32>>(nodes: I) -> Self {
        let mut set = Self::default();
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}
