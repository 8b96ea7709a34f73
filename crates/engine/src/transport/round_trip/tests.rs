use super::*;

#[test]
fn patience_follows_what_was_measured_and_doubles_in_vain() {
    let mut trip = RoundTrip::new();
    let patience = |trip: &RoundTrip| trip.patience_ns(10_000, 2_000, 40_000, 0);
    assert_eq!(patience(&trip), 10_000);
    for _ in 0..3 {
        trip.ran_out();
    }
    assert_eq!(patience(&trip), 40_000);
    for at in 0..100 {
        trip.measured(at, 100);
    }
    assert_eq!((trip.smooth_ns(), trip.least_ns()), (100, 100));
    assert_eq!(patience(&trip), 2_000);
    trip.ran_out();
    assert_eq!(patience(&trip), 4_000);
    // Slower than the limit of the doubling.
    for at in 0..100 {
        trip.measured(at, 90_000);
    }
    assert!(patience(&trip) >= 89_000, "{}", patience(&trip));
    let before = patience(&trip);
    trip.ran_out();
    assert_eq!(patience(&trip), before);
}

#[test]
fn smallest_is_forgotten_after_a_while() {
    let mut trip = RoundTrip::new();
    trip.measured(0, 5);
    trip.measured(MEMORY_NS + 1, 50);
    assert_eq!(trip.least_ns(), 5);
    trip.measured(2 * MEMORY_NS + 3, 60);
    assert_eq!(trip.least_ns(), 50);
}

#[test]
fn any_time_may_be_measured() {
    let mut trip = RoundTrip::new();
    for took_ns in [0, u64::MAX >> 26, 0, 1, 1 << 38] {
        trip.measured(1, took_ns);
        assert!(trip.smooth_ns() > 0);
    }
}
