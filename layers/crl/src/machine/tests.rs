//! The machines of several nodes over a network in memory.

mod counts;
mod hostile;
mod network;
mod random;
