//! The cases in the simulator, each program on a node of its own, with every strategy, and over a
//! network that delays, loses, doubles and reorders.

#[macro_use]
#[path = "../../../am/tests/support/simulated.rs"]
mod place;

mod bare;
mod ends;
mod histories;
mod hostile;
mod limits;
mod locks;
mod player;
mod table;

pub(crate) use place::{Host, Place, open_unnamed};
pub(crate) use player::World;

/// Seed of the world.
const SEED: u64 = 57;
/// Rounds of a case that has fewer between threads.
const ROUNDS: u64 = 12;
