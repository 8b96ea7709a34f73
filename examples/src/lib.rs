//! Examples: each program in `src/bin` is short and whole, and says in its first lines how it is
//! run. `tests/run.rs` runs all of them.

/// Programs in the pages about layers must compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/locks.md")]
#[doc = include_str!("../../docs/user-direct-messaging.md")]
pub struct Documents;

/// What programs of this crate return.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;
