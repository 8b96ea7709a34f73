//! Examples: each program in `src/bin` is short and whole, and says in its first lines how it is
//! run. `tests/run.rs` runs all of them.

/// What programs of this crate return.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;
