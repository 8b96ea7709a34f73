//! x
use crate::World;
pub(crate) fn each_limit_is_refused_by_name(_: World) {}
pub(crate) fn misuse_is_an_error(_: World) {}
