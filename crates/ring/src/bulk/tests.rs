//! Places in the bulk, against a list of the ranges in use.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const WINDOW: usize = 4096;
const BULK: u32 = 16 << 10;

proptest! {
    #[test]
    fn places_never_overlap_and_always_come_back(
        steps in prop::collection::vec((1_usize..=WINDOW, 0_usize..4, any::<bool>()), 1..300),
    ) {
        let mut bulk = Bulk::new(64, WINDOW, BULK);
        let mut in_use: VecDeque<(u64, usize, usize)> = VecDeque::new();
        let (mut cell, mut consumed) = (0, 0);
        for (len, freed, may_grow) in steps {
            let mut place = bulk.find(len);
            if place.is_none() && in_use.len() < 60 && bulk.grow(|_, _| may_grow) {
                place = bulk.find(len);
            }
            if let Some(place) = place.filter(|_| in_use.len() < 60) {
                let (begin, end) = (place.offset as usize, place.end as usize);
                prop_assert!(begin % LINE_BYTES == 0 && end - begin >= len);
                prop_assert!(end <= bulk.window() && bulk.window() <= BULK as usize);
                for &(_, other, other_end) in &in_use {
                    prop_assert!(end <= other || other_end <= begin);
                }
                bulk.take(cell, place);
                in_use.push_back((cell, begin, end));
                cell += 1;
            }
            for _ in 0..freed {
                if in_use.pop_front().is_some() {
                    consumed += 1;
                }
            }
            bulk.release(consumed);
        }
        // Whatever happened: when everything came back, there is room for the longest.
        bulk.release(cell);
        prop_assert!(bulk.find(WINDOW).is_some());
    }
}

#[test]
fn grows_once_per_need_and_stays_small_when_it_cannot() {
    let mut bulk = Bulk::new(8, WINDOW, BULK);
    let place = bulk.find(WINDOW).unwrap();
    bulk.take(0, place);
    assert!(bulk.find(64).is_none());
    assert!(bulk.grow(|from, to| (from, to) == (WINDOW, 2 * WINDOW)));
    let place = bulk.find(WINDOW).unwrap();
    bulk.take(1, place);
    assert!(!bulk.grow(|_, _| false));
    assert!(!bulk.grow(|_, _| panic!("asked again")));
    assert_eq!((bulk.window(), bulk.longest()), (2 * WINDOW, 2 * WINDOW));
}

#[test]
fn a_window_that_is_gone_through_fast_is_widened() {
    let fast = WINDOW as u64 * HOT_TICKS_PER_BYTE - 1;
    let mut now = 0;
    let mut note = |bulk: &mut Bulk, times: u32, ticks: u64| {
        for _ in 0..times {
            now += ticks;
            bulk.note(now);
        }
        bulk.widens()
    };
    let mut bulk = Bulk::new(64, WINDOW, BULK);
    note(&mut bulk, 1, 1 << 40);
    // One slow time and it begins again.
    assert!(!note(&mut bulk, HOT_LAPS - 1, fast));
    assert!(!note(&mut bulk, 1, fast + 1));
    assert!(!note(&mut bulk, HOT_LAPS - 1, fast));
    assert!(note(&mut bulk, 1, fast));
    // Half of it was used and given back, half is in use: there is room at the beginning, but it
    // is kept for the places that are to come when the window is wider.
    let half = WINDOW / 2;
    for cell in 0..2 {
        let place = bulk.find(half).unwrap();
        bulk.take(cell, place);
    }
    bulk.release(1);
    assert_eq!(bulk.find(half), None);
    assert!(bulk.grow(|_, _| true));
    assert!(!bulk.widens());
    assert_eq!(bulk.find(half).unwrap().offset(), WINDOW as u32);
    // Without memory it stays as it is, and is used as it is.
    note(&mut bulk, HOT_LAPS, 1);
    assert!(bulk.widens());
    assert!(!bulk.grow(|_, _| false));
    assert!(!bulk.widens() && bulk.find(half).is_some());
}

#[test]
fn going_round_is_noted_even_if_every_place_is_found_at_once() {
    let mut bulk = Bulk::new(64, WINDOW, BULK);
    // As if it had always been fast, but for the last time.
    bulk.fast_laps = HOT_LAPS - 1;
    bulk.gone_through = u64::MAX - ticks();
    let quarter = WINDOW / 4;
    let mut cell = 0;
    let mut go_on = |bulk: &mut Bulk, times: u64| {
        for _ in 0..times {
            let place = bulk.find(quarter).unwrap();
            bulk.take(cell, place);
            bulk.release(cell);
            cell += 1;
        }
    };
    go_on(&mut bulk, 4);
    bulk.gone_through = ticks();
    assert!(!bulk.widens(), "it was not gone through yet");
    bulk.window_max = bulk.window;
    let laps_before = bulk.fast_laps;
    go_on(&mut bulk, 1);
    assert_ne!(bulk.fast_laps, laps_before);
}
