use super::*;

#[test]
fn timeout_follows_what_was_measured_and_doubles_in_vain() {
    let mut round_trip = RoundTripEstimator::new();
    let timeout = |round_trip: &RoundTripEstimator| round_trip.timeout_ns(10_000, 2_000, 40_000, 0);
    assert_eq!(timeout(&round_trip), 10_000);
    for _ in 0..3 {
        round_trip.timed_out();
    }
    assert_eq!(timeout(&round_trip), 40_000);
    for at in 0..100 {
        round_trip.measured(at, 100);
    }
    assert_eq!((round_trip.smooth_ns(), round_trip.least_ns()), (100, 100));
    assert_eq!(timeout(&round_trip), 2_000);
    round_trip.timed_out();
    assert_eq!(timeout(&round_trip), 4_000);
    // Slower than the limit of the doubling.
    for at in 0..100 {
        round_trip.measured(at, 90_000);
    }
    assert!(timeout(&round_trip) >= 89_000, "{}", timeout(&round_trip));
    // It doubles all the same, up to eight round trips of its own.
    for _ in 0..8 {
        round_trip.timed_out();
    }
    let longest = timeout(&round_trip);
    assert!((710_000..=720_000).contains(&longest), "{longest}");
}

#[test]
fn smallest_is_forgotten_after_a_while() {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 5);
    round_trip.measured(MEMORY_NS + 1, 50);
    assert_eq!(round_trip.least_ns(), 5);
    round_trip.measured(2 * MEMORY_NS + 3, 60);
    assert_eq!(round_trip.least_ns(), 50);
}

#[test]
fn any_time_may_be_measured() {
    let mut round_trip = RoundTripEstimator::new();
    for took_ns in [0, u64::MAX >> 26, 0, 1, 1 << 38] {
        round_trip.measured(1, took_ns);
        assert!(round_trip.smooth_ns() > 0);
    }
}

/// On a steady path the timeout comes after losses are noticed otherwise, a quarter of a round trip
/// late.
#[test]
fn timeout_of_a_steady_path_leaves_half_a_round_trip() {
    let mut round_trip = RoundTripEstimator::new();
    for at in 0..1_000 {
        round_trip.measured(at, 50_000_000);
    }
    let timeout = |round_trip: &RoundTripEstimator| {
        round_trip.timeout_ns(10_000_000, 2_000_000, 40_000_000, 40_000)
    };
    assert!((75_000_000..76_000_000).contains(&timeout(&round_trip)));
    // Hosts that look late are waited for, and that is forgotten.
    round_trip.waited(10_000_000);
    assert!(timeout(&round_trip) >= 85_000_000);
    for _ in 0..100 {
        round_trip.waited(0);
    }
    assert!(timeout(&round_trip) < 76_000_000);
    round_trip.waited(u64::MAX);
    assert!(timeout(&round_trip) < 96_000_000);
}
