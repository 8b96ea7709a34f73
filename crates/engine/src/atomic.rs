//! The words by which the application and its interface meet without a lock. Named in
//! one place, so that `tests/loom.rs` can compile the same sources with loom's atomics
//! and try every order of their accesses.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
