use alloc::vec::Vec;

use super::*;

const BASE_NS: u64 = 50_000_000;

fn at(frames: u64) -> (Window, RoundTripEstimator) {
    let mut round_trip = RoundTripEstimator::new();
    round_trip.measured(0, BASE_NS);
    let mut window = Window::new(16, 4_096, 1_024, 250_000);
    window.acknowledged(0, 0, BASE_NS, &round_trip, false);
    window.size = frames * ONE;
    window.start_until = 0;
    (window, round_trip)
}

/// A round with so many frames acknowledged and lost, whose round trips took that.
fn round(window: &mut Window, at: u64, lost: u32, took_ns: u64, round_trip: &RoundTripEstimator) {
    let frames = window.frames();
    // Sent a round trip ago.
    let sent_ns = (at * BASE_NS).saturating_sub(took_ns);
    (0..lost).for_each(|_| window.lost(at * BASE_NS, sent_ns, round_trip));
    window.acknowledged(at * BASE_NS, frames - lost, took_ns, round_trip, true);
}

#[test]
fn third_roots_are_whole_parts() {
    for (of, root) in [
        (0, 0),
        (7, 1),
        (8, 2),
        (999_999_999, 999),
        (1_000_000_000, 1_000),
    ] {
        assert_eq!(cube_root(of), root);
    }
}

/// The curve comes back to where it was cut after the third root of (0.3 window / 0.4) seconds,
/// flat there, and goes on.
#[test]
fn the_curve_is_cubic() {
    let (mut window, round_trip) = at(1_000);
    round(&mut window, 1, 100, BASE_NS, &round_trip);
    let cut = window.size / ONE;
    assert!((700..=725).contains(&cut), "{cut}");
    let mut sizes = Vec::new();
    for turn in 2..400 {
        // With a queue, but for which it would grow faster.
        round(&mut window, turn, 0, BASE_NS + BASE_NS / 16, &round_trip);
        sizes.push(window.size / ONE);
    }
    assert!(sizes.is_sorted());
    // 9.1 seconds are 182 rounds.
    let at_middle = sizes[182];
    assert!((990..1_050).contains(&at_middle), "{at_middle}");
    // Steep at first, flat in the middle, steep at the end.
    let rise = |from: usize| sizes[from + 20] - sizes[from];
    assert!(rise(0) > 3 * rise(170) && rise(370) > 3 * rise(170));
}

#[test]
fn noise_cuts_nothing_and_a_queue_that_overflows_does() {
    let (mut window, round_trip) = at(1_000);
    for turn in 1..50 {
        round(&mut window, turn, 20, BASE_NS + BASE_NS / 10, &round_trip);
    }
    assert!(window.frames() >= 1_000, "{}", window.frames());
    let (mut window, round_trip) = at(1_000);
    round(&mut window, 1, 0, BASE_NS * 2, &round_trip);
    let full = window.frames();
    round(&mut window, 2, 1, BASE_NS * 2, &round_trip);
    let cut = window.frames();
    assert!(cut <= full * 3 / 4, "{full} {cut}");
    // What was sent before the cut and is lost says nothing new.
    round(&mut window, 3, 100, BASE_NS * 2, &round_trip);
    assert!(window.frames() >= cut);
    round(&mut window, 5, 100, BASE_NS * 2, &round_trip);
    assert!(window.frames() < cut);
}

/// More loss than noise cuts, though no queue shows: a policer has none.
#[test]
fn heavy_losses_cut_without_a_queue() {
    let (mut window, round_trip) = at(1_000);
    for turn in 1..40 {
        let lost = window.frames() / 10;
        round(&mut window, turn, lost, BASE_NS, &round_trip);
    }
    assert!(window.frames() < 40, "{}", window.frames());
}

/// A queue ends the doubling, after some rounds of slow growth; a moment of it does not.
#[test]
fn a_lasting_queue_ends_the_doubling() {
    let (mut window, round_trip) = at(16);
    window.start_until = u64::MAX;
    let took_ns = |turn: u64| BASE_NS + if turn == 3 { BASE_NS / 4 } else { 0 };
    for turn in 1..6 {
        round(&mut window, turn, 0, took_ns(turn), &round_trip);
    }
    assert!(window.start_until == u64::MAX && window.frames() > 300);
    for turn in 6..14 {
        round(&mut window, turn, 0, BASE_NS + BASE_NS / 4, &round_trip);
    }
    assert_eq!(window.start_until, 0);
}

/// However long it lasts, nothing overflows.
#[test]
fn a_year_of_growth_ends_at_the_greatest_window() {
    let (mut window, round_trip) = at(2);
    let year_ns = 365 * 86_400 * 1_000_000_000;
    for turn in 0..1_000 {
        let at_ns = year_ns / 1_000 * turn;
        window.acknowledged(at_ns, 4_096, BASE_NS, &round_trip, true);
    }
    assert_eq!(window.frames(), 4_096);
}

/// A cut for frames that were only late is taken back.
#[test]
fn a_cut_for_late_frames_is_taken_back() {
    let (mut window, round_trip) = at(1_000);
    round(&mut window, 1, 0, BASE_NS * 2, &round_trip);
    let full = window.frames();
    round(&mut window, 2, 3, BASE_NS * 2, &round_trip);
    assert!(window.frames() < full);
    window.restore();
    window.restore();
    assert!(window.frames() < full);
    window.restore();
    assert!(window.frames() >= full);
    let before = window.frames();
    window.restore();
    assert_eq!(window.frames(), before);
}
