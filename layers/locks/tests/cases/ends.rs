//! x
use crate::World;
pub(crate) fn locks_of_a_client_that_ends_are_released(_: World) {}
pub(crate) fn a_node_that_ends_leaves_a_value_in_doubt(_: World) {}
pub(crate) fn a_server_that_ends_is_told(_: World) {}
