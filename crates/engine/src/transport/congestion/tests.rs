use super::*;

/// The window after calls of 44 frames of which every twentieth is lost as a whole, and round trips
/// that take that.
fn after_losses(took_ns: u64) -> u64 {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 10_000);
    let mut window = Window::new(256, 256, 256, 250_000);
    for call in 1..1_000 {
        let now_ns = call * 20_000;
        match call % 20 {
            0 => (0..44).for_each(|_| window.lost(now_ns, 0, &round_trip)),
            _ => window.acknowledged(now_ns, 44, took_ns, &round_trip, false),
        }
    }
    window.milliframes() / 1000
}

#[test]
fn calls_lost_whole_close_a_window_only_where_a_queue_shows() {
    assert_eq!(after_losses(15_000), 256);
    assert_eq!(after_losses(60_000), 256);
    assert!(after_losses(100_000) < 128, "{}", after_losses(100_000));
}

#[test]
fn heavy_losses_close_a_window_though_no_queue_shows() {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 10_000);
    let mut window = Window::new(256, 256, 256, 250_000);
    for call in 1..100 {
        let now_ns = call * 20_000;
        (0..22).for_each(|_| window.lost(now_ns, 0, &round_trip));
        window.acknowledged(now_ns, 22, 10_000, &round_trip, false);
    }
    assert!(window.milliframes() < 200_000, "{}", window.milliframes());
}

#[test]
fn a_base_keeps_room_below_the_target() {
    let window = Window::new(256, 256, 256, 250_000);
    assert_eq!(window.target_delay_ns(0), 250_000);
    assert_eq!(window.target_delay_ns(320_000), 450_000);
    // One that is quicker than all must be.
    assert_eq!(window.target_delay_ns(100_000), 250_000);
}

fn at(frames: u64) -> Window {
    let mut window = Window::new(16, 256, 256, 250_000);
    window.size = frames * ONE;
    window
}

/// The window shrinks for the smallest round trip of a round, not for each that a busy host made
/// long.
#[test]
fn one_long_round_trip_among_short_ones_shrinks_nothing() {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 20_000);
    let mut window = at(64);
    window.start_until = 0;
    for ack in 1..1_000 {
        let took_ns = if ack % 3 == 0 { 30_000 } else { 2_000_000 };
        window.acknowledged(ack * 5_000, 1, took_ns, &round_trip, false);
    }
    assert_eq!(window.size, 64 * ONE);
    for ack in 1_000..1_100 {
        window.acknowledged(ack * 5_000, 1, 400_000, &round_trip, false);
    }
    assert!(window.size < 16 * ONE, "{}", window.milliframes());
}

/// A path is far from the first if its base says so; a near one only if the base is longer than a
/// shared queue makes it.
#[test]
fn the_base_chooses_the_law() {
    let law = |bases_ns: &[u64]| {
        let mut window = at(16);
        for (turn, &base_ns) in bases_ns.iter().enumerate() {
            let mut round_trip = RoundTripEstimator::new();
            round_trip.measured(0, base_ns);
            window.acknowledged(turn as u64, 1, base_ns, &round_trip, true);
        }
        window.far.is_some()
    };
    assert!(law(&[400_000]) && law(&[400_000, 300_000]));
    assert!(!law(&[399_999]) && !law(&[400_000, 299_999]));
    assert!(!law(&[50_000, 1_999_999]) && law(&[50_000, 2_000_000]));
}

/// After it collapsed, a window doubles up to half of what it was, and then grows by a frame.
#[test]
fn a_collapsed_window_comes_back_by_half() {
    let round_trip = RoundTripEstimator::new();
    let mut window = at(64);
    window.collapse();
    assert_eq!(window.size, ONE);
    for _ in 0..31 {
        window.acknowledged(0, 1, 10_000, &round_trip, true);
    }
    assert_eq!(window.size, 32 * ONE);
    window.acknowledged(0, 1, 10_000, &round_trip, true);
    assert_eq!(window.size, 32 * ONE + ONE / 32);
    // If nothing was lost, it is what it was, once.
    window.restore();
    assert_eq!(window.size, 64 * ONE);
    window.size = ONE;
    window.restore();
    assert_eq!(window.size, ONE);
}

#[test]
fn a_path_that_is_tried_again_begins_anew() {
    let mut window = at(64);
    window.collapse();
    window.lost = 5;
    window.restart();
    assert_eq!((window.size, window.lost), (16 * ONE, 0));
    window.restore();
    assert_eq!(window.size, 16 * ONE);
}

#[test]
fn a_window_has_a_greatest_size_and_a_least() {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 10_000);
    let mut window = at(255);
    for at in 0..9 {
        window.acknowledged(at, 100, 10_000, &round_trip, true);
    }
    assert_eq!(
        (window.size, window.room(0, 255), window.room(0, 256)),
        (256 * ONE, 1, 0)
    );
    for at in 1..100 {
        window.shrink(at * 20_000, &round_trip, ONE);
    }
    assert_eq!(window.size, LEAST);
}

#[test]
fn a_window_shrinks_once_in_a_round_trip() {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 10_000);
    let mut window = at(64);
    for now_ns in [100_000, 100_001, 109_999] {
        window.shrink(now_ns, &round_trip, ONE / 4);
        assert_eq!(window.size, 48 * ONE);
    }
    window.shrink(110_000, &round_trip, ONE / 4);
    assert_eq!(window.size, 36 * ONE);
}

/// Below one frame a window is a pace; after a process was stopped for long, too, one frame follows
/// in time.
#[test]
fn a_pace_has_a_longest_pause() {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, 10_000);
    let mut window = at(1);
    window.size = ONE / 4;
    window.sent(1_000, &round_trip);
    assert_eq!(window.next_ns(0), Some(41_000));
    assert_eq!(
        (
            window.room(40_999, 0),
            window.room(41_000, 0),
            window.room(41_000, 1)
        ),
        (0, 1, 0)
    );
    round_trip.measured(1, 60_000_000_000);
    window.size = LEAST;
    window.sent(0, &round_trip);
    let longest_ns = window.target_delay_ns(1) * ONE / LEAST;
    assert_eq!(window.next_ns(0), Some(longest_ns));
    assert!(longest_ns < 200_000_000);
}
