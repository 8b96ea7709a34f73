//! A poll set against a list of what each index is.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Insert(usize),
    Remove(usize),
    Activate(usize),
    /// A poll in which the links at these indices (by bits) have something.
    Poll(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = 0_usize..64;
    let step = prop_oneof![
        3 => index.clone().prop_map(Step::Insert),
        1 => index.clone().prop_map(Step::Remove),
        2 => index.prop_map(Step::Activate),
        6 => any::<u64>().prop_map(|busy| Step::Poll(busy & busy.rotate_left(7))),
    ];
    prop::collection::vec(step, 1..400)
}

/// What a poll does; which indices had turns.
fn poll(poll_set: &mut PollSet, busy: u64) -> Vec<usize> {
    let mut seen = Vec::new();
    for _ in 0..poll_set.count() {
        let index = poll_set.current();
        seen.push(index);
        if poll_set.had_turn(busy >> index & 1 == 0) {
            poll_set.deactivate(index);
        } else {
            poll_set.advance();
        }
    }
    seen
}

proptest! {
    #[test]
    fn every_link_is_either_active_or_swept(steps in steps(), skip in 0_u8..SILENT_TURNS) {
        let mut poll_set = PollSet::new();
        let mut present = [false; 64];
        for step in steps {
            match step {
                Step::Insert(index) => {
                    poll_set.insert(index);
                    present[index] = true;
                    prop_assert!(poll_set.is_active(index));
                }
                Step::Remove(index) => {
                    poll_set.remove(index);
                    present[index] = false;
                }
                Step::Activate(index) => {
                    let was = poll_set.is_active(index);
                    prop_assert_eq!(poll_set.activate(index), present[index] && !was);
                    prop_assert_eq!(poll_set.is_active(index), present[index]);
                }
                Step::Poll(busy) => {
                    // So that silence is long enough within a short history.
                    for state in &mut poll_set.states {
                        if let State::Active(silent) = state
                            && *silent > 0
                        {
                            *silent = silent.saturating_add(skip);
                        }
                    }
                    let seen = poll(&mut poll_set, busy);
                    prop_assert!(seen.len() <= TURNS_MAX);
                    prop_assert!(seen.iter().all(|index| present[*index]));
                }
            }
            let links = present.iter().filter(|is| **is).count();
            prop_assert_eq!(poll_set.active.len() + poll_set.idle.len(), links);
            prop_assert_eq!(poll_set.has_idle(), !poll_set.idle.is_empty());
            let mut all: Vec<_> = poll_set.active.iter().chain(&poll_set.idle).collect();
            all.sort();
            all.dedup();
            prop_assert_eq!(all.len(), links, "an index is in one list, once");
        }
        // A round of sweeps finds all idle links.
        let mut swept = std::collections::BTreeSet::new();
        for _ in 0..2 * 64 * SWEEP_POLLS {
            swept.extend(poll_set.sweep());
        }
        for (index, is) in present.into_iter().enumerate() {
            prop_assert_eq!(swept.contains(&index), is && !poll_set.is_active(index));
        }
    }
}

#[test]
fn few_links_are_active_for_ever_and_of_many_those_that_have_something() {
    let mut poll_set = PollSet::new();
    for index in 0..ALWAYS_ACTIVE {
        poll_set.insert(index);
    }
    for _ in 0..1000 {
        assert_eq!(poll(&mut poll_set, 0).len(), ALWAYS_ACTIVE);
    }
    assert!(!poll_set.has_idle());
    for index in ALWAYS_ACTIVE..60 {
        poll_set.insert(index);
    }
    let busy = 1 << 3 | 1 << 40;
    for _ in 0..10_000 {
        poll(&mut poll_set, busy);
    }
    assert_eq!(poll_set.count(), ALWAYS_ACTIVE);
    assert!(poll_set.is_active(3) && poll_set.is_active(40));
    // A ready bit of another.
    let silent = (0..60).find(|index| !poll_set.is_active(*index)).unwrap();
    assert!(poll_set.activate(silent) && !poll_set.activate(silent));
    assert!(poll(&mut poll_set, 0).contains(&silent));
    assert!(!poll_set.activate(1000));
}

#[test]
fn busy_links_have_equal_turns() {
    let mut poll_set = PollSet::new();
    for index in 0..50 {
        poll_set.insert(index);
    }
    let mut had = [0_u32; 50];
    for _ in 0..1000 {
        for index in poll(&mut poll_set, u64::MAX) {
            had[index] += 1;
        }
    }
    assert_eq!(had.iter().sum::<u32>() as usize, 1000 * TURNS_MAX);
    let (least, most) = (had.iter().min().unwrap(), had.iter().max().unwrap());
    assert!(most - least <= 1, "{had:?}");
}

#[test]
fn a_link_is_silent_after_so_many_turns_in_a_row() {
    let mut poll_set = PollSet::new();
    for index in 0..=ALWAYS_ACTIVE {
        poll_set.insert(index);
    }
    // One turn that is not silent begins the count anew.
    for _ in 0..2 {
        for turn in 1..SILENT_TURNS {
            assert!(!poll_set.had_turn(true), "turn {turn}");
        }
        assert!(!poll_set.had_turn(false));
    }
    for turn in 1..SILENT_TURNS {
        assert!(!poll_set.had_turn(true), "turn {turn}");
    }
    assert!(poll_set.had_turn(true));
}
