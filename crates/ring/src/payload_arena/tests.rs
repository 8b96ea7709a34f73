//! Places in the payload arena, against a list of the ranges in use.

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
        let mut arena = PayloadArena::new(WINDOW, BULK);
        let mut in_use: VecDeque<(u64, usize, usize)> = VecDeque::new();
        let (mut cell, mut consumed) = (0, 0);
        for (len, freed, may_grow) in steps {
            let mut place = arena.find(len);
            if place.is_none() && in_use.len() < 60 && arena.grow(|_, _| may_grow) {
                place = arena.find(len);
            }
            if let Some(place) = place.filter(|_| in_use.len() < 60) {
                let (begin, end) = (place.offset as usize, place.end as usize);
                prop_assert!(begin % LINE_BYTES == 0 && end - begin >= len);
                prop_assert!(end <= arena.window() && arena.window() <= BULK as usize);
                for &(_, other, other_end) in &in_use {
                    prop_assert!(end <= other || other_end <= begin);
                }
                arena.take(cell, place);
                in_use.push_back((cell, begin, end));
                cell += 1;
            }
            for _ in 0..freed {
                if in_use.pop_front().is_some() {
                    consumed += 1;
                }
            }
            arena.release(consumed);
        }
        // Whatever happened: when everything came back, there is room for the longest.
        arena.release(cell);
        prop_assert!(arena.find(WINDOW).is_some());
    }
}

#[test]
fn grows_once_per_need_and_stays_small_when_it_cannot() {
    let mut arena = PayloadArena::new(WINDOW, BULK);
    let place = arena.find(WINDOW).unwrap();
    arena.take(0, place);
    assert!(arena.find(64).is_none());
    assert!(arena.grow(|from, to| (from, to) == (WINDOW, 2 * WINDOW)));
    let place = arena.find(WINDOW).unwrap();
    arena.take(1, place);
    assert!(!arena.grow(|_, _| false));
    assert!(!arena.grow(|_, _| panic!("asked again")));
    assert_eq!((arena.window(), arena.longest()), (2 * WINDOW, 2 * WINDOW));
}

#[test]
fn a_window_that_is_gone_through_fast_is_widened() {
    let fast = WINDOW as u64 * HOT_TICKS_PER_BYTE - 1;
    let mut now = 0;
    let mut note = |arena: &mut PayloadArena, times: u32, ticks: u64| {
        for _ in 0..times {
            now += ticks;
            arena.note(now);
        }
        arena.widens()
    };
    let mut arena = PayloadArena::new(WINDOW, BULK);
    note(&mut arena, 1, 1 << 40);
    // One slow time and it begins again.
    assert!(!note(&mut arena, HOT_LAPS - 1, fast));
    assert!(!note(&mut arena, 1, fast + 1));
    assert!(!note(&mut arena, HOT_LAPS - 1, fast));
    assert!(note(&mut arena, 1, fast));
    // Half of it was used and given back, half is in use: there is room at the beginning, but it
    // is kept for the places that are to come when the window is wider.
    let half = WINDOW / 2;
    for cell in 0..2 {
        let place = arena.find(half).unwrap();
        arena.take(cell, place);
    }
    arena.release(1);
    assert_eq!(arena.find(half), None);
    assert!(arena.grow(|_, _| true));
    assert!(!arena.widens());
    assert_eq!(arena.find(half).unwrap().offset(), WINDOW as u32);
    // Without memory it stays as it is, and is used as it is.
    note(&mut arena, HOT_LAPS, 1);
    assert!(arena.widens());
    assert!(!arena.grow(|_, _| false));
    assert!(!arena.widens() && arena.find(half).is_some());
}

#[test]
fn going_round_is_noted_even_if_every_place_is_found_at_once() {
    let mut arena = PayloadArena::new(WINDOW, BULK);
    // As if it had always been fast, but for the last time.
    arena.fast_laps = HOT_LAPS - 1;
    arena.gone_through = u64::MAX - ticks();
    let quarter = WINDOW / 4;
    let mut cell = 0;
    let mut go_on = |arena: &mut PayloadArena, times: u64| {
        for _ in 0..times {
            let place = arena.find(quarter).unwrap();
            arena.take(cell, place);
            arena.release(cell);
            cell += 1;
        }
    };
    go_on(&mut arena, 4);
    arena.gone_through = ticks();
    assert!(!arena.widens(), "it was not gone through yet");
    arena.window_max = arena.window;
    let laps_before = arena.fast_laps;
    go_on(&mut arena, 1);
    assert_ne!(arena.fast_laps, laps_before);
}
