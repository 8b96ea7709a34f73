//! Reads that may be under way at the same time (Split-C 2.2).

use crate::syntax::Unit;

/// Marks what may be split.
pub fn run(_unit: &mut Unit) {}
