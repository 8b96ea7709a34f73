//! Every deliberate bug is found by comparing what runs with the reference model; and nothing is found without one.
//!
//! Each is found by driving what it is in; and by scenarios, if programs that use the library can see it.
//!
//! It runs in the copy of the tree that has the planted bugs: `make mutations`.

mod driver;
mod hunt;
mod library;
mod sleepers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hamlyn::Strategy;
use hamlyn_engine::mutation::{self, Level, Mutation};
use hamlyn_sim::machine::Machine;
use hamlyn_sim::reproduce::Verdict;
use hamlyn_sim::scenario::{self, Plan};

/// Histories that are tried at most, and events of each.
const SEEDS: u64 = 400;
const EVENTS: u64 = 1_500;
const LIBRARY_SEEDS: u64 = 40;
const LIBRARY_STEPS: u64 = 1_500;

/// Scenarios that are tried at most, by so many threads.
const SCENARIOS: u64 = 1_200;
const THREADS: usize = 2;

/// Only one bug can be switched on in a process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    // Whatever another test found, its bug is to be off.
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    mutation::switch(None);
    alone
}

/// Bugs that no scenario can see, and why.
const OUT_OF_REACH: &[(Mutation, &str)] = &[
    (Mutation::FastSlotOpenLapsed, "no host's handshake lapses"),
    (Mutation::KindSkipped, "the library makes no other kind"),
    (
        Mutation::ArmedSkippedAwaited,
        "the library awaits nothing at an entry that is spent",
    ),
    (
        Mutation::AwaitedKeySkipped,
        "no attacker aims at an entry that is awaited",
    ),
    (
        Mutation::AwaitedPlaceSkipped,
        "no attacker aims at an entry that is awaited",
    ),
    (
        Mutation::EntryKeySkippedOnce,
        "an attacker's message has seldom just the length of a short packet",
    ),
    (
        Mutation::LowSkippedOnce,
        "an attacker's message has seldom just the length of a short packet",
    ),
    (
        Mutation::GrantSkipped,
        "the library places nothing outside of its grants",
    ),
    (
        Mutation::PagesEarly,
        "no stream of a scenario has a sender that may go ahead",
    ),
    (Mutation::CellOverwritten, "links of the world have no ring"),
    (
        Mutation::ContinuationCut,
        "links of the world have no cells",
    ),
    (Mutation::WordUnkept, "links of the world have no cells"),
    (Mutation::RoomForOne, "links of the world have no ring"),
    (Mutation::DataMisplaced, "links of the world have no cells"),
    (
        Mutation::RefusalUnreported,
        "links of the world report by themselves",
    ),
    (Mutation::EarlierNackBelieved, "nothing is unloaded"),
    (Mutation::HalfTaken, "nobody makes malformed frames"),
    (
        Mutation::RetriesKept,
        "a frame that is put off eighty times, and then lost, is rare",
    ),
    (
        Mutation::ReturnLost,
        "no line counts what comes back with the end of a link",
    ),
    (
        Mutation::OpenFrameForgotten,
        "no line counts what comes back with the end of a link",
    ),
];

/// What is wrong in the history of a seed, if anything is. A panic counts: an assertion of what runs has seen it first.
fn check(level: Level, seed: u64) -> Option<String> {
    let run = || match level {
        Level::Engine => match driver::run(seed, EVENTS) {
            Ok(_) => None,
            Err(found) => Some((found.event, found.act, found.violation)),
        },
        Level::Library => match library::run(&mut library::interface(), seed, LIBRARY_STEPS) {
            Ok(_) => None,
            Err(found) => Some((found.step, found.act, found.violation)),
        },
        // `a_lost_wake_up_is_found` and `one_more_access_makes_a_printed_number_worse` have them, and the engine's test `transport_mutations`.
        Level::World | Level::Machine | Level::Ring | Level::Transport => None,
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(None) => None,
        Ok(Some((event, act, violation))) => Some(format!("event {event} ({act}): {violation}")),
        Err(_) => Some("an assertion failed".to_owned()),
    }
}

/// The first history in which something is wrong: its seed, and what it was.
fn hunt(level: Level) -> Option<(u64, String)> {
    let seeds = match level {
        Level::Engine => SEEDS,
        Level::Library => LIBRARY_SEEDS,
        Level::World | Level::Machine | Level::Ring | Level::Transport => 0,
    };
    (0..seeds).find_map(|seed| Some((seed, check(level, seed)?)))
}

fn is_wrong(seed: u64) -> Option<String> {
    let outcome = scenario::run(&Plan::of_seed(seed), false);
    outcome.violations.into_iter().next()
}

/// A scenario in which something is wrong with that bug, and nothing without it.
fn hunt_scenarios(bug: Mutation) -> Option<(u64, String)> {
    let next = AtomicU64::new(0);
    loop {
        let found = Mutex::new(None);
        mutation::switch(Some(bug));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while found.lock().unwrap().is_none() {
                        let seed = next.fetch_add(1, Relaxed);
                        if seed >= SCENARIOS {
                            return;
                        }
                        if let Some(what) = is_wrong(seed) {
                            found.lock().unwrap().get_or_insert((seed, what));
                        }
                    }
                });
            }
        });
        mutation::switch(None);
        let (seed, what) = found.into_inner().unwrap()?;
        if is_wrong(seed).is_none() {
            return Some((seed, what));
        }
    }
}

#[test]
fn every_mutation_in_reach_is_found_by_scenarios() {
    let _alone = alone();
    let mut missed = Vec::new();
    for &bug in Mutation::ALL {
        let is_far = OUT_OF_REACH.iter().any(|(far, _)| *far == bug);
        // Links of the world have no ring.
        if is_far || matches!(bug.level(), Level::Machine | Level::Ring) {
            continue;
        }
        match hunt_scenarios(bug) {
            Some((seed, what)) => println!("{:24} scenario {seed:3} {what}", bug.name()),
            None => missed.push(bug.name()),
        }
    }
    assert_eq!(missed, Vec::<&str>::new(), "not found by scenarios");
}

#[test]
fn every_mutation_is_found() {
    let _alone = alone();
    for level in [Level::Engine, Level::Library] {
        assert_eq!(hunt(level), None, "a bug without any mutation");
    }
    hunt::all_are_found(
        |bug| matches!(bug.level(), Level::Engine | Level::Library),
        |bug| {
            let (seed, what) = hunt(bug.level())?;
            Some(format!("seed {seed:3} {what}"))
        },
    );
}

/// What a machine charges follows from the engine's code, not from a script beside it.
#[test]
fn one_more_access_makes_a_printed_number_worse() {
    let _alone = alone();
    let receive_us = || {
        let report = hamlyn_sim::reproduce::hamlyn::report(&Machine::hamlyn()).unwrap();
        let entry = report.entry("H-341").unwrap();
        (entry.figures[0].ours, entry.verdict)
    };
    let (before, verdict) = receive_us();
    assert_eq!(verdict, Verdict::Reached);
    for &bug in Mutation::ALL
        .iter()
        .filter(|bug| bug.level() == Level::Machine)
    {
        mutation::switch(Some(bug));
        let (after, verdict) = receive_us();
        mutation::switch(None);
        println!("{:24} {before:.2} µs, then {after:.2}", bug.name());
        assert!(after > before, "{after} and {before}");
        assert_eq!(verdict, Verdict::NotReached, "{after}");
    }
}

#[test]
fn a_lost_wake_up_is_found() {
    let _alone = alone();
    for (bug, strategy) in [
        (Mutation::ListenedLate, Strategy::Proc),
        (Mutation::CreditUnawaited, Strategy::Inject),
    ] {
        assert_eq!(sleepers::sleeper(strategy), None, "without any bug");
        mutation::switch(Some(bug));
        let found = sleepers::sleeper(strategy);
        mutation::switch(None);
        let (seed, failures) = found.expect("a lost wake-up is not found");
        println!("{:24} seed {seed}: {failures:?}", bug.name());
        assert!(
            failures
                .iter()
                .any(|failure| failure.contains("nothing can wake it"))
        );
    }
}
