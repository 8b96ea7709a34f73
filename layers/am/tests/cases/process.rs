//! The cases in threads with interfaces of their own, with every strategy.

#[macro_use]
#[path = "../support/process.rs"]
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
