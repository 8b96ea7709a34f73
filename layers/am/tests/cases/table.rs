//! The cases, for each world.

macro_rules! everything {
    ($module:ident, $strategy:ident) => {
        everything!($module, $strategy, new);
    };
    ($module:ident, $strategy:ident, $world:ident) => {
        everything!($module, $strategy, $world;
            messages::requests_are_answered,
            messages::every_form_arrives_whole,
            messages::handlers_of_any_kind_take_each,
            messages::credits_come_back,
            messages::credits_bound_what_is_outstanding,
            messages::transfers_and_gets_are_whole,
            messages::a_get_asks_again_for_the_rest,
            messages::a_source_can_be_mapped,
            messages::bundles_are_polled_apart,
            messages::a_node_talks_to_itself,
            messages::tags_may_change,
            returns::each_reason_comes_with_its_message,
            returns::congestion_ends,
            returns::a_full_queue_loses_nothing,
            returns::the_end_of_a_peer_returns_what_it_has,
            returns::rejected_replies_come_back_to_the_replier,
            ends::what_waits_for_a_dropped_endpoint_comes_back,
            ends::a_transfer_ends_though_its_reply_is_rejected,
            ends::a_get_ends_a_wait,
            ends::a_server_that_sleeps_sends_answers_again,
            ends::replies_that_wait_hold_nothing_after_their_end,
            ends::a_peer_says_itself_where_answers_go,
            ends::a_request_is_new_after_127_that_came_back,
            ends::a_translation_may_go_under_traffic,
            ends::an_answer_that_waits_survives_the_end_of_its_link,
            residency::endpoints_are_paged_under_traffic,
            residency::a_call_loads_its_endpoint,
            random::random_programs_agree_with_a_model,
            hostile::forged_answers_count_once,
            hostile::a_peer_that_lies_harms_nobody,
            misuse::misuse_is_an_error,
            misuse::nodes_and_bundles_are_told_apart,
            misuse::a_handler_may_panic,
            misuse::options_that_cannot_be_are_named,
        );
    };
    ($module:ident, $strategy:ident, $world:ident; $($cases:ident::$case:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    let strategy = hamlyn::Strategy::$strategy;
                    crate::$cases::$case(crate::World::$world(strategy));
                }
            )*
        }
    };
}
