//! Which tests run for each strategy.

macro_rules! everything {
    ($module:ident, $strategy:ident, $placement:ident) => {
        everything!($module, $strategy, $placement;
            cases::values_are_read_and_written,
            cases::gets_and_puts_are_complete_after_sync,
            cases::long_accesses_are_whole,
            cases::stores_are_counted_at_their_target,
            cases::all_store_sync_waits_for_all,
            cases::stores_right_after_all_store_sync_are_counted,
            cases::stores_before_a_reset_are_forgotten,
            cases::procedures_run_one_at_a_time,
            cases::procedures_of_one_run_in_order,
            cases::procedures_of_all_at_all_do_not_block_each_other,
            cases::words_are_changed_atomically,
            cases::barriers_hold_everybody,
            cases::reductions_are_those_of_a_serial_run,
            cases::broadcasts_come_from_any_root,
            cases::values_of_many_collectives_do_not_mix,
            cases::spread_arrays_lie_where_pointers_step,
            cases::random_programs_agree_with_a_model,
            failures::wild_pointers_are_named,
            failures::different_collectives_are_named,
            failures::unequal_allocations_are_named,
            failures::too_much_memory_is_named,
            failures::procedures_that_fail_are_named,
            failures::a_barrier_that_one_does_not_reach_names_it,
            failures::a_processor_that_ends_early_is_named,
            failures::a_processor_that_comes_to_its_end_early_is_named,
            failures::a_processor_that_never_starts_is_named,
        );
    };
    ($module:ident, $strategy:ident, $placement:ident; $($cases:ident::$case:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    let strategy = hamlyn::Strategy::$strategy;
                    let placement = hamlyn_splitc::Placement::$placement;
                    crate::$cases::$case(crate::World { strategy, placement });
                }
            )*
        }
    };
}
