//! The cases in threads with interfaces of their own, with every strategy.

#[macro_use]
#[path = "../../../am/tests/support/process.rs"]
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

/// Rounds of a case that has more in the simulator.
const ROUNDS: u64 = 2;
