//! The cases.

use crate::World;

in_every_place! {
    locks::a_lock_excludes_others,
    locks::modes_are_shared_as_the_matrix_says,
    locks::a_waiting_lock_is_granted_when_the_holder_goes,
    locks::holders_hear_whom_they_block,
    locks::conversions_go_before_new_requests,
    locks::what_is_not_granted_in_time_is_cancelled,
    locks::circles_are_refused,
    locks::values_travel_with_locks,
    locks::servers_share_the_names,
    ends::locks_of_a_client_that_ends_are_released,
    ends::a_node_that_ends_leaves_a_value_in_doubt,
    ends::a_server_that_ends_is_told,
    ends::clients_that_said_so_before_they_ended_have_not_died,
    limits::each_limit_is_refused_by_name,
    limits::misuse_is_an_error,
    hostile::garbage_harms_nobody,
    hostile::answers_are_no_requests,
    histories::holders_never_conflict_and_all_end,
}
