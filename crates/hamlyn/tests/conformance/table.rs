//! The tests, as a table for each kind of world. A program names its worlds:
//! `everything!(threads_np, Threads, Np)` makes a module `threads_np` with one test for each row.

// Not every program has a world for every table.
#![allow(unused_macros)]

macro_rules! in_world {
    ($name:ident, $layout:ident, $strategy:ident, $($module:ident :: $test:ident)+) => {
        mod $name { $(
            #[test]
            fn $test() {
                let test = concat!(stringify!($name), "::", stringify!($test));
                let (layout, strategy) = (crate::Layout::$layout, hamlyn::Strategy::$strategy);
                crate::$module::$test(&crate::World::new(layout, strategy, test));
            }
        )+ }
    };
}

/// Tests for every world.
macro_rules! everything {
    ($name:ident, $layout:ident, $strategy:ident) => {
        in_world! { $name, $layout, $strategy,
            low_level::messages_of_all_sizes_arrive_whole
            low_level::metadata_of_every_length_arrives
            low_level::metadata_of_61_bytes_are_refused_and_nothing_is_sent
            low_level::a_message_without_bytes_is_announced
            low_level::several_slots_share_an_area_and_a_queue
            low_level::slots_feed_queues_of_their_own
            low_level::a_ticket_travels_in_a_message_and_serves_for_the_answer
            low_level::a_narrowed_ticket_reaches_its_part_only
            low_level::offsets_that_overflow_are_refused
            low_level::a_full_work_queue_says_so_and_loses_nothing
            many::many_of_all_sizes_arrive_in_order
            many::many_are_received_as_they_are_asked_for
            many::many_end_at_the_first_that_cannot_be_sent
            many::many_with_metadata_arrive_at_their_entries
            modes::a_fast_message_carries_one_word
            modes::a_fast_message_is_one_packet_without_metadata
            modes::a_silent_message_lands_unannounced
            modes::a_paranoid_entry_enforces_its_limits_and_key
            modes::a_paranoid_slot_takes_no_fast_message
            modes::a_one_shot_entry_takes_one_message
            modes::a_peer_with_an_old_key_is_refused
            modes::a_revoked_slot_refuses_until_rekeyed
            modes::a_closed_slot_refuses_though_its_place_is_used_again
            modes::a_slot_without_the_right_to_write_discards
            modes::a_forged_key_is_refused_and_counted
            modes::a_forged_ticket_beyond_the_slot_is_out_of_bounds
            gathering::a_message_is_gathered_from_several_areas
            gathering::a_message_is_gathered_from_hundreds_of_areas
            gathering::a_program_that_only_gathers_again_gets_on
            gathering::metadata_are_gathered_too
            gathering::a_completion_says_when_a_buffer_is_free
            gathering::bad_gather_lists_are_refused
            one_sided::bytes_of_all_sizes_are_read_and_put
            one_sided::every_change_is_made_and_tells_what_was_there
            one_sided::many_are_outstanding_and_each_has_its_own_answer
            one_sided::nothing_begins_while_what_was_given_up_may_be_carried_out
            one_sided::what_is_not_granted_is_refused
            one_sided::additions_of_several_initiators_are_all_counted
            one_sided::an_initiator_that_is_dropped_leaves_nothing
            pieces::pieces_are_read_and_put_in_one_operation
            pieces::pieces_that_do_not_fit_are_refused_before_anything_is_asked
            pieces::room_that_comes_at_any_moment_is_used
            completion::a_counter_counts_the_operations_of_several_initiators
            completion::refusals_are_counted_apart
            completion::operations_of_an_initiator_that_is_dropped_count_as_failed
            completions::ends_of_all_kinds_come_in_one_queue
            completions::a_completion_queue_loses_nothing_and_says_when_it_is_full
            completions::refused_packets_are_told_by_fence_and_with_the_context_of_their_link
            completions::a_wait_for_several_sources_ends_with_the_one_that_is_ready
            completions::a_queue_tells_of_an_initiator_that_is_dropped_and_may_be_dropped_itself
            stores::stores_are_counted_apart_and_are_in_their_place
            stores::stores_that_cannot_be_counted_are_refused
            datagrams::datagrams_arrive_and_a_receiver_must_be_ready
            datagrams::a_reply_ticket_makes_a_round_trip
            datagrams::datagrams_of_many_packets_arrive
            datagrams::a_revoked_datagram_ticket_is_worthless
            datagrams::malformed_datagrams_are_named_and_harmless
            datagrams::a_datagram_cut_in_the_middle_is_forgotten_on_reset
            names::an_end_point_is_found_by_name_and_item
            names::a_guard_makes_its_receiver_ready_again
            look_ups::end_points_of_all_protocols_take_one_question
            look_ups::one_that_is_refused_fails_no_other
            look_ups::hundreds_take_as_few_questions_as_they_fit
            names::every_message_says_who_sent_it
            names::what_is_not_bound_is_named
            names::arrivals_are_events
            names::typed_values_arrive_and_other_types_are_named
            services::a_service_answers_several_clients
            services::calls_are_answered_in_any_order
            services::a_call_that_is_given_up_costs_no_place
            services::a_dropped_call_is_told_and_so_is_the_end
            services::answers_that_were_accepted_come_before_the_end
            services::a_dismissed_client_is_told_and_others_are_served
            services::requests_and_replies_of_every_size
            services::lanes_of_clients_that_left_are_given_again
            loans::loaned_messages_of_all_sizes_reach_every_reader
            loans::a_slow_reader_loses_and_both_ends_know_how_much
            loans::a_slow_reader_is_brought_up_to_date
            loans::a_reader_that_fell_behind_sees_the_newest
            loans::a_reader_that_comes_late_sees_the_newest
            loans::samples_are_kept_and_given_back_in_any_order
            loans::readers_come_and_go_and_nothing_is_left
            loans::typed_values_are_loaned
            harm::a_silent_datagram_is_received_as_any_other
            harm::a_datagram_shows_nothing_but_what_landed
            harm::an_end_point_that_is_dropped_leaves_nothing
            fences::a_datagram_to_nobody_is_known_at_the_fence
            fences::a_refused_write_is_known_at_the_fence
            fences::what_was_sent_before_a_fence_is_in_its_place
            fences::more_refusals_than_are_kept_are_counted
            fences::records_are_in_their_place_after_a_fence
            tagged_writes::tags_arrive_with_their_data
            tagged_writes::a_specific_tag_is_found_and_the_others_wait
            tagged_writes::an_overrun_is_counted_and_hurts_no_other_receiver
            tagged_writes::tags_passed_over_without_room_are_counted
            tagged_writes::a_revoked_tagged_ticket_is_worthless
            tasks::a_message_wakes_the_task_that_waits_for_it_and_no_other
            tasks::a_reply_wakes_the_task_of_its_call_and_no_other
            tasks::a_task_waits_for_one_source
            ports::messages_of_all_lengths_reach_their_handlers
            ports::a_message_of_a_packet_arrives_and_a_longer_one_is_refused_here
            ports::messages_for_another_port_wait_in_their_order
            ports::a_full_queue_refuses_by_name_and_only_there
            ports::what_a_port_does_not_take_is_refused_by_name
            ports::handlers_answer_while_their_message_lies_in_place
            ports::a_mailbox_takes_messages_of_many_senders
            ports::a_mailbox_that_is_dropped_or_revoked_refuses
            lanes::a_lane_takes_messages_of_all_lengths
            lanes::what_a_lane_has_no_credit_for_comes_back
            lanes::a_hostile_sender_ends_its_own_lane_only
            lanes::a_shared_lane_takes_messages_of_several_up_to_their_shares
            lobbies::guests_are_let_in_and_their_places_given_again
            lobbies::another_protocol_in_a_lobby_is_named
            lobbies::an_evicted_guest_is_told
            lobbies::a_place_whose_asker_does_not_come_is_given_to_another
            lobbies::nobody_takes_all_places_of_a_lobby
            lobbies::a_greeting_that_is_none_costs_the_place
            groups::one_notification_for_all_members
            groups::members_are_divided_among_delegates
            groups::a_barrier_has_no_bytes
            groups::a_late_member_of_an_earlier_round_is_refused
            groups::a_round_that_completed_unseen_is_not_taken_for_the_next
            groups::divisions_too_small_are_refused
            groups::accumulators_of_64_bits_divide_further
            streams::records_of_every_size_arrive_in_order
            streams::a_sender_that_may_go_ahead_sends_records_of_every_size
            streams::a_sender_goes_ahead_to_the_limit
            streams::small_records_are_packed_and_flushed
            streams::a_look_that_finds_nothing_leaves_kept_records_alone
            streams::a_receiver_that_holds_everything_gets_more_memory
            streams::a_record_longer_than_the_extent_enlarges_it
            streams::a_record_of_exactly_the_limit_arrives
            streams::a_record_beyond_the_limit_is_refused
            streams::records_are_given_back_in_any_order
            streams::a_sender_that_polls_is_told_that_it_would_block
            streams::a_staged_record_arrives_whole
            streams::packed_records_go_though_their_sender_only_polls
            streams::a_polled_record_in_several_pieces_is_never_cut
            streams::small_releases_at_the_limit_do_not_stall
            streams::pieces_passed_over_are_given_back
            streams::a_receiver_that_closes_is_noticed
            streams::a_sender_that_closes_without_records_is_noticed
            stream_races::closing_right_after_filling_the_extent
            stream_races::closing_while_everything_moves_on
            stream_races::closing_before_a_demand_is_met
            stream_races::an_answer_that_is_overwritten_is_not_lost
            stream_records::pieces_that_are_cut_one_after_the_other_arrive_whole
            stream_records::random_records_arrive_whatever_is_held
            stream_records::random_records_of_a_sender_that_may_go_ahead_arrive
            managers::an_own_receiver_class_records_arrivals
            managers::a_class_named_by_a_fast_word_is_not_believed
            managers::the_room_of_the_queue_is_kept
            managers::waiting_overlooks_nothing_found_for_another
            managers::everything_opened_is_given_back
        }
    };
}

/// Nobody grants anything to itself: these are for peers with interfaces of their own.
macro_rules! between_interfaces {
    ($name:ident, $layout:ident, $strategy:ident) => {
        in_world! { $name, $layout, $strategy,
            placing::a_placed_message_is_there_before_it_is_announced
            placing::a_message_to_a_port_is_stored_in_no_region
            placing::messages_of_all_sizes_are_whole_attached_or_not
            placing::after_revocation_messages_go_as_copies
            placing::a_closed_slot_takes_its_regions_with_it
            placing::messages_to_attached_regions_land_in_the_order_in_which_they_are_sent
            attached::operations_in_a_region_are_complete_at_once
            attached::one_region_serves_operations_messages_and_initiators_that_are_open
            attached::what_does_not_fit_a_region_is_refused_by_the_same_names
            attached::pieces_are_read_and_put_in_a_region
            attached::after_revocation_operations_go_as_packets
            attached::changes_of_several_holders_and_by_packets_are_all_counted
        }
    };
}

/// For peers with interfaces of their own, near or far.
macro_rules! among_several {
    ($name:ident, $layout:ident, $strategy:ident) => {
        in_world! { $name, $layout, $strategy,
            independence::a_peer_that_takes_nothing_holds_up_no_other
            independence::fences_that_wait_hide_none_that_is_answered
            fences::a_stopped_peer_is_named_and_no_other_waits
            fences::what_was_taken_before_the_end_is_fenced
            relinking::a_link_that_the_peer_ended_begins_anew
            relinking::a_loop_hears_of_links_that_begin_anew
            relinking::a_refusal_tells_of_its_link_though_there_is_another
            relinking::both_end_a_link_and_begin_it_anew
            relinking::links_of_two_peers_begin_anew_side_by_side
            relinking::the_link_of_a_message_is_known_with_it
        }
    };
}

/// Where a network processor receives at the target.
macro_rules! with_processor {
    ($name:ident, $layout:ident, $strategy:ident) => {
        in_world! { $name, $layout, $strategy,
            one_sided::a_target_that_does_nothing_answers
            stores::a_target_that_only_looks_sees_the_count
        }
    };
}

/// Whether a sender finds room depends here on nobody receiving by himself.
macro_rules! while_nobody_receives {
    ($name:ident, $layout:ident, $strategy:ident) => {
        in_world! { $name, $layout, $strategy,
            placing::an_announcement_that_finds_no_room_waits
        }
    };
}
