//! The cases.

/// The tests of these cases with each kind of messages, in all places.
macro_rules! over_each {
    ($($cases:tt)*) => {
        mod over_udm {
            use crate::world::OverUdm as World;

            in_every_place! { $($cases)* }
        }

        mod over_am {
            use crate::world::OverAm as World;

            in_every_place! {
                $($cases)*
                am::a_send_that_fails_loses_nothing,
                am::messages_that_come_back_keep_their_order,
                am::a_node_that_takes_nothing_is_lost,
                am::couriers_of_a_node_are_apart,
                am::a_node_that_breaks_the_rules_is_lost,
                am::messages_must_be_long_enough,
            }
        }

        /// Of these alone, as the others take the same ways.
        mod over_narrow_am {
            use crate::world::OverNarrowAm as World;

            in_every_place! {
                couriers::messages_keep_their_order,
                collectives::broadcasts_of_every_length_come_from_every_node,
                random::random_programs_are_sequentially_consistent,
                random::random_programs_go_on_without_a_node,
                ends::regions_of_a_node_that_ends_are_lost_by_name,
            }
        }
    };
}

over_each! {
    couriers::messages_keep_their_order,
    collectives::barriers_separate_phases,
    collectives::broadcasts_of_every_length_come_from_every_node,
    collectives::reductions_are_the_same_bits_everywhere,
    operations::a_region_of_every_length_travels_whole,
    operations::errors_name_their_object,
    operations::guards_view_values,
    operations::operations_without_guards_are_the_same,
    operations::the_null_version_has_the_same_face,
    operations::messages_are_counted_by_kind,
    random::random_programs_are_sequentially_consistent,
    random::random_programs_go_on_without_a_node,
    ends::regions_of_a_node_that_ends_are_lost_by_name,
    ends::a_barrier_without_a_node_fails_everywhere,
    ends::patience_ends_a_wait,
}
