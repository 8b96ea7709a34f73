//! The cases in threads with interfaces of their own, with every strategy.

#[macro_use]
#[path = "../../../am/tests/support/process.rs"]
mod place;

mod atomicity;
mod ends;
mod messages;
mod table;
mod world;

pub(crate) use place::{Host, Place, open_unnamed};
pub(crate) use world::World;
