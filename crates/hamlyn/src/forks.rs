//! Tells a forked child from its parent. An object notes the process that made it, and its calls
//! fail with [`Forked`] in every other one. A child opens a manager of its own.
//!
//! For faces in other languages, whose handles do the same.

pub use hamlyn_ring::forks::{Birth, Forked};
