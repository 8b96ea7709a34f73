//! `enum`: all positions of the triangle puzzle, breadth first, and in how many ways each is
//! reached (T 5.1).
//!
//! A position belongs to a node by its hash. A node sends a short message for each move from its
//! positions to a position of another node, and nobody answers it. Nodes meet once for each number
//! of pegs.

mod board;
mod nodes;

pub use board::{Board, BoardError, SIDE_MAX};
pub use nodes::Enumeration;

/// The outcome of an enumeration.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Positions up to symmetry.
    pub positions: u64,
    /// Moves from those.
    pub moves: u64,
    /// Ways to a last peg.
    pub solutions: u64,
}

impl Counts {
    /// Adds the counts of another node.
    pub fn add(&mut self, other: Self) {
        self.positions += other.positions;
        self.moves += other.moves;
        self.solutions += other.solutions;
    }
}

/// The node that has a position, of so many.
pub fn owner(position: u32, nodes: usize) -> usize {
    // The finaliser of MurmurHash3: positions that differ by a move are as far apart as any.
    let mut mixed = position;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85EB_CA6B);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xC2B2_AE35);
    mixed ^= mixed >> 16;
    ((u64::from(mixed) * nodes as u64) >> 32) as usize
}

/// Enumerates on one node.
pub fn serial(side: u32, hole: u32) -> Result<Counts, BoardError> {
    let puzzle = Enumeration {
        side,
        hole,
        moves_max: u32::MAX,
    };
    puzzle.serial()
}

#[cfg(test)]
mod tests;
