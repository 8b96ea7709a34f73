//! x
use crate::World;
pub(crate) fn garbage_harms_nobody(_: World) {}
