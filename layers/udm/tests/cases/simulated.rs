//! The cases in the simulator, each node of the group on a host of its own, with every strategy.

#[macro_use]
#[path = "../../../am/tests/support/simulated.rs"]
mod place;

mod atomicity;
mod ends;
mod messages;
mod table;
mod world;

pub(crate) use place::{Host, Place, open_unnamed};
pub(crate) use world::World;

/// Seed of the world.
const SEED: u64 = 59;
