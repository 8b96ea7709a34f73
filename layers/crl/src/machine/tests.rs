//! The machines of several nodes over a network in memory.

mod counts;
#[path = "../../tests/support/graph.rs"]
mod graph;
mod hostile;
mod network;
mod random;
