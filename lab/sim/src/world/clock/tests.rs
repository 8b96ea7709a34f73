//! A clock rings when it shows the time that was asked for, not before.

use proptest::prelude::*;

use super::*;

fn clocks() -> impl Strategy<Value = Clock> {
    let begins = prop_oneof![Just(0), 0..u64::MAX / 4, (1 << 38) - 100..1_u64 << 38];
    (begins, -500_000..500_000_i32).prop_map(|(begins_ns, fast_per_million)| Clock {
        begins_ns,
        fast_per_million,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_rings_early_or_a_nanosecond_late(clock in clocks(), since_ns in 0..1_u64 << 40) {
        let shown_ns = clock.begins_ns + since_ns;
        let at = clock.time_of(shown_ns);
        prop_assert!(clock.shows_ns(at) >= shown_ns);
        let before_ns = at.as_ns().saturating_sub(1);
        prop_assert!(before_ns == at.as_ns() || clock.shows_ns(Time::from_ns(before_ns)) < shown_ns);
    }

    #[test]
    fn no_clock_goes_back(clock in clocks(), at_ns in 0..1_u64 << 50, later_ns in 0..1_u64 << 50) {
        let shows = |ns| clock.shows_ns(Time::from_ns(ns));
        prop_assert!(shows(at_ns) <= shows(at_ns + later_ns));
    }
}

#[test]
fn a_clock_that_nobody_set_shows_the_time_of_the_world() {
    let clock = Clock::default();
    assert_eq!(clock.shows_ns(Time::from_ns(77)), 77);
    assert_eq!(clock.time_of(77), Time::from_ns(77));
    assert_eq!(clock.time_of(u64::MAX), Time::NEVER);
}
