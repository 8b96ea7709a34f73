//! The cases in threads with interfaces of their own, with every strategy.

#[macro_use]
#[allow(dead_code, reason = "each test program uses a part of this module")]
#[path = "../../../am/tests/support/process.rs"]
mod place;

mod am;
mod collectives;
mod couriers;
mod ends;
#[path = "../support/graph.rs"]
mod graph;
mod operations;
mod random;
mod table;
mod world;

pub(crate) use place::{Host, Place};
pub(crate) use world::World;
