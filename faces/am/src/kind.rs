//! Kinds of the objects that C knows by numbers.

pub(crate) const BUNDLE: u8 = 1;
pub(crate) const ENDPOINT: u8 = 2;
/// A request whose token was kept.
pub(crate) const KEPT: u8 = 3;
/// A message whose handler runs.
pub(crate) const RUNNING: u8 = 4;
