//! x
pub(crate) struct Spmd;
