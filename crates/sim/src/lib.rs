//! The simulator: a world in virtual time, in which programs that use the library run unchanged.
//!
//! It is the third host, never shipped in a product (decision 0011). One seed is one history: nothing here reads a
//! clock, starts a thread, or asks the system for anything random, and nothing depends on the order of a hash table.

#![forbid(unsafe_code)]

pub mod host;
pub mod link;
pub mod machine;
pub mod network;
pub mod random;
pub mod reference;
pub mod reproduce;
pub mod scenario;
pub mod time;
pub mod world;
