//! The cases.

use crate::World;

in_every_place! {
    messages::every_number_of_words_arrives,
    messages::bytes_of_every_length_arrive,
    messages::messages_of_one_node_are_in_order,
    messages::all_nodes_flood_each_other,
    messages::data_lie_in_the_area_before_their_handler_runs,
    messages::data_in_part_run_no_handler,
    messages::end_points_of_a_group_are_apart,
    messages::barriers_separate_phases,
    messages::what_cannot_be_sent_is_refused_by_name,
    messages::handlers_that_nobody_has_set_are_counted,
    atomicity::handlers_wait_for_the_end_of_a_section,
    atomicity::sections_extract_without_handlers,
    atomicity::a_peek_shows_the_next_message_again,
    atomicity::an_upcall_waits_for_the_section,
    atomicity::a_handler_extracts_several,
    atomicity::a_handler_that_takes_all_leaves_barriers,
    atomicity::tasks_run_after_atomicity_in_order,
    atomicity::polling_runs_nothing_of_itself,
    atomicity::kernel_bits_are_protected,
    atomicity::a_handler_may_panic,
    atomicity::a_section_may_panic,
    ends::a_node_that_ends_is_lost_by_name,
    ends::a_node_that_links_anew_is_lost,
    ends::what_an_old_link_did_is_not_the_nodes,
    ends::strangers_reach_no_handler,
    ends::data_that_are_none_are_counted,
    ends::other_groups_are_refused,
    ends::a_dropped_end_point_refuses,
}
