//! Turns against a list of what each place is.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Enter(usize),
    Leave(usize),
    Watch(usize),
    /// A poll in which the links of these places (by bits) have something.
    Poll(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = 0_usize..64;
    let step = prop_oneof![
        3 => place.clone().prop_map(Step::Enter),
        1 => place.clone().prop_map(Step::Leave),
        2 => place.prop_map(Step::Watch),
        6 => any::<u64>().prop_map(|busy| Step::Poll(busy & busy.rotate_left(7))),
    ];
    prop::collection::vec(step, 1..400)
}

/// What a poll does; which places had turns.
fn poll(turns: &mut Turns, busy: u64) -> Vec<usize> {
    let mut seen = Vec::new();
    for _ in 0..turns.count() {
        let place = turns.current();
        seen.push(place);
        if turns.had_turn(busy >> place & 1 == 0) {
            turns.unwatch(place);
        } else {
            turns.advance();
        }
    }
    seen
}

proptest! {
    #[test]
    fn every_link_is_either_watched_or_swept(steps in steps(), skip in 0_u8..SILENT_TURNS) {
        let mut turns = Turns::new();
        let mut present = [false; 64];
        for step in steps {
            match step {
                Step::Enter(place) => {
                    turns.enter(place);
                    present[place] = true;
                    prop_assert!(turns.is_watched(place));
                }
                Step::Leave(place) => {
                    turns.leave(place);
                    present[place] = false;
                }
                Step::Watch(place) => {
                    let was = turns.is_watched(place);
                    prop_assert_eq!(turns.watch(place), present[place] && !was);
                    prop_assert_eq!(turns.is_watched(place), present[place]);
                }
                Step::Poll(busy) => {
                    // So that silence is long enough within a short history.
                    for place in &mut turns.places {
                        if let Place::Watched(silent) = place
                            && *silent > 0
                        {
                            *silent = silent.saturating_add(skip);
                        }
                    }
                    let seen = poll(&mut turns, busy);
                    prop_assert!(seen.len() <= TURNS_MAX);
                    prop_assert!(seen.iter().all(|place| present[*place]));
                }
            }
            let links = present.iter().filter(|is| **is).count();
            prop_assert_eq!(turns.watched.len() + turns.unwatched.len(), links);
            prop_assert_eq!(turns.is_any_unwatched(), !turns.unwatched.is_empty());
            let mut all: Vec<_> = turns.watched.iter().chain(&turns.unwatched).collect();
            all.sort();
            all.dedup();
            prop_assert_eq!(all.len(), links, "a place is in one list, once");
        }
        // A round of sweeps finds all that are not watched.
        let mut swept = std::collections::BTreeSet::new();
        for _ in 0..2 * 64 * SWEEP_POLLS {
            swept.extend(turns.sweep());
        }
        for (place, is) in present.into_iter().enumerate() {
            prop_assert_eq!(swept.contains(&place), is && !turns.is_watched(place));
        }
    }
}

#[test]
fn few_links_are_watched_for_ever_and_of_many_those_that_have_something() {
    let mut turns = Turns::new();
    for place in 0..WATCHED_ALWAYS {
        turns.enter(place);
    }
    for _ in 0..1000 {
        assert_eq!(poll(&mut turns, 0).len(), WATCHED_ALWAYS);
    }
    assert!(!turns.is_any_unwatched());
    for place in WATCHED_ALWAYS..60 {
        turns.enter(place);
    }
    let busy = 1 << 3 | 1 << 40;
    for _ in 0..10_000 {
        poll(&mut turns, busy);
    }
    assert_eq!(turns.count(), WATCHED_ALWAYS);
    assert!(turns.is_watched(3) && turns.is_watched(40));
    // A note for another.
    let silent = (0..60).find(|place| !turns.is_watched(*place)).unwrap();
    assert!(turns.watch(silent) && !turns.watch(silent));
    assert!(poll(&mut turns, 0).contains(&silent));
    assert!(!turns.watch(1000));
}

#[test]
fn busy_links_have_equal_turns() {
    let mut turns = Turns::new();
    for place in 0..50 {
        turns.enter(place);
    }
    let mut had = [0_u32; 50];
    for _ in 0..1000 {
        for place in poll(&mut turns, u64::MAX) {
            had[place] += 1;
        }
    }
    assert_eq!(had.iter().sum::<u32>() as usize, 1000 * TURNS_MAX);
    let (least, most) = (had.iter().min().unwrap(), had.iter().max().unwrap());
    assert!(most - least <= 1, "{had:?}");
}
