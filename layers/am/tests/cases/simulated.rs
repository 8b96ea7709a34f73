//! The cases in the simulator, each program on a node of its own, with every strategy.

#[macro_use]
#[path = "../support/simulated.rs"]
mod place;

mod bulk;
mod ends;
mod hostile;
mod messages;
mod misuse;
mod player;
mod random;
mod residency;
mod returns;
mod table;

pub(crate) use place::{Host, Place, open_unnamed};
pub(crate) use player::World;

/// Seed of the world.
const SEED: u64 = 54;
