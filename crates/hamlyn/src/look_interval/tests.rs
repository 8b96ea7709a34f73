//! What is learnt from looks, and how often they are made.

use super::*;

fn knowing(pause_ticks: u64) -> LookInterval {
    LookInterval {
        pause_ticks,
        ..LookInterval::new()
    }
}

#[test]
fn the_interval_is_half_of_what_the_line_takes() {
    let mut interval = knowing(25);
    interval.learn(300);
    assert_eq!(interval.pauses, 6);
    // One that met something else changes little, and is forgotten.
    interval.learn(1_000_000);
    assert!(interval.pauses <= 9, "{}", interval.pauses);
    for _ in 0..20 {
        interval.learn(60);
    }
    assert_eq!(interval.pauses, 1);
    // It never ends altogether, nor grows without bound.
    for ticks in [0, 1, u64::MAX] {
        for _ in 0..50 {
            interval.learn(ticks);
        }
        assert!((1..=PAUSES_MAX).contains(&u64::from(interval.pauses)));
    }
    assert!(u64::from(interval.pauses) >= PAUSES_MAX - 1);
}

#[test]
fn where_nothing_counts_the_interval_is_one_pause() {
    let mut interval = knowing(0);
    interval.learn(300);
    assert_eq!(interval.pauses, 1);
    assert!(interval.is_measuring());
}

#[test]
fn looks_end_at_the_first_that_finds_something() {
    for pause_ticks in [0, 25] {
        let mut interval = knowing(pause_ticks);
        for waits in 0..3 * WAITS_PER_MEASUREMENT {
            let mut looks = 0;
            let empty = waits % (LOOKS + 1);
            let found = interval.look(|| {
                looks += 1;
                looks > empty
            });
            assert_eq!(found, empty < LOOKS);
            assert_eq!(looks, (empty + 1).min(LOOKS));
        }
    }
}

#[test]
fn one_wait_of_many_is_measured() {
    let mut interval = knowing(25);
    let measured = (0..10 * (WAITS_PER_MEASUREMENT + 1)).filter(|_| {
        let measures = interval.is_measuring();
        assert!(interval.look_once(|| true));
        measures
    });
    assert_eq!(measured.count(), 10);
}
