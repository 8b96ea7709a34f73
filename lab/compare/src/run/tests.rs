use super::*;
use crate::catalogue::{Places, catalogue};

const RATE: Figure = Figure::Rate { size_bytes: 16 };

#[test]
fn each_is_measured_beside_ours_of_its_kind() {
    let all = catalogue(&Places::here().unwrap());
    for group in groups(&all) {
        assert!(group.peers.len() > 1, "{}", group.name);
        for peer in group.peers {
            for &figure in &group.figures {
                assert_eq!(peer.reference(figure), group.reference, "{}", peer.name);
            }
        }
    }
}

#[test]
fn what_is_left_is_told_by_what_was_done() {
    let elapsed = Duration::from_secs(90);
    assert_eq!(left(elapsed, 0, Some(4)), "");
    assert_eq!(left(elapsed, 3, Some(9)), "; about 3 minutes left");
}

#[test]
fn steadiness() {
    assert!(is_steady(&[100.0, 110.0, 115.0]));
    assert!(!is_steady(&[100.0, 116.0, 100.0]));
    assert!(!is_steady(&[145.0, 27.0]));
    assert!(is_steady(&[]));
}

#[test]
fn more_rounds_are_for_what_was_in_another_state() {
    let round = |raw_ns: f64, steady| Round {
        value: 1.0,
        ours: 1.0,
        raw_ns: vec![raw_ns],
        steady,
        repeats: 0,
    };
    let mut results = Results {
        rounds: vec![
            round(60.0, true),
            round(60.0, false),
            round(250.0, true),
            round(250.0, true),
        ],
        ..Results::default()
    };
    assert!(results.lacks(4, State::Near));
    assert!(!results.lacks(4, State::Far));
    results.unsupported = Some("never".to_owned());
    assert!(!results.lacks(4, State::Near));
    // Who never ran is not tried again.
    assert!(!Results::default().lacks(4, State::Near));
}

#[test]
fn counts_follow_the_speed() {
    // A peer that takes 100 ns for each message, after 10 µs.
    let mut order = |count: u64| Ok(Outcome::Took(10_000.0 + 100.0 * count as f64));
    let figure = Figure::OneWay { size_bytes: 16 };
    let count = calibrate(&mut order, figure, Duration::from_millis(10))
        .unwrap()
        .unwrap();
    assert!((90_000..=110_000).contains(&count), "{count}");
    let mut slow = |_| Ok(Outcome::Took(1e11));
    let count = calibrate(&mut slow, RATE, Duration::from_millis(10)).unwrap();
    assert_eq!(count, Ok(COUNT_MIN));
    let mut never = |_| Ok(Outcome::Unsupported("no".to_owned()));
    let reason = calibrate(&mut never, RATE, Duration::from_millis(10)).unwrap();
    assert_eq!(reason, Err("no".to_owned()));
}

#[test]
fn a_figure_comes_from_the_order_that_counts() {
    let mut orders = Vec::new();
    let mut order = |count: u64| {
        orders.push(count);
        Ok(Outcome::Took(200.0 * count as f64))
    };
    let figure = Figure::OneWay { size_bytes: 16 };
    assert_eq!(measure(&mut order, figure, 100, true).unwrap(), 100.0);
    assert_eq!(orders, [10, 100]);
    // Of few long ones, enough come before to have used every buffer.
    orders.clear();
    let mut order = |count: u64| {
        orders.push(count);
        Ok(Outcome::Took(200.0 * count as f64))
    };
    let figure = Figure::Bandwidth {
        size_bytes: 64 << 20,
        fresh: false,
    };
    measure(&mut order, figure, 3, true).unwrap();
    assert_eq!(orders, [2, 3]);
}
