//! Slices against a count of every nanosecond, and programs under them.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::Schedule;
use crate::time::{Span, Time};
use crate::world::{self, Settings, Simulation};

fn at_ns(at: u64) -> Time {
    Time::from_ns(at)
}

/// Whose turn it is, by the definition.
fn turn(schedule: &Schedule, node: usize, at: u64) -> u64 {
    let slice = schedule.slice.as_ps() / 1_000;
    let jobs = u64::from(schedule.jobs);
    let late = schedule
        .late
        .get(node)
        .map_or(0, |late| late.as_ps() / 1_000);
    // Many rounds before the beginning, so that what is late is not before it.
    (at + slice * jobs * 1_000 - late) / slice % jobs
}

proptest! {
    #[test]
    fn a_job_has_its_slices_and_no_more(
        slice in 1_u64..20,
        jobs in 1_u32..5,
        late in prop::collection::vec(0_u64..60, 3),
        node in 0_usize..4,
        job in 0_u32..5,
        from in 0_u64..300,
        busy in 0_u64..100,
    ) {
        let job = job % jobs;
        let schedule = Schedule {
            slice: Span::from_ns(slice),
            jobs,
            late: late.into_iter().map(Span::from_ns).collect(),
        };
        let is_on = |at| turn(&schedule, node, at) == u64::from(job);
        let asked = node as u32;
        prop_assert_eq!(schedule.is_on(asked, job, at_ns(from)), is_on(from));
        let next = (from..).find(|&at| is_on(at)).unwrap_or(from);
        prop_assert_eq!(schedule.next_on(asked, job, at_ns(from)), at_ns(next));
        let (mut at, mut left) = (from, busy);
        while left > 0 {
            left -= u64::from(is_on(at));
            at += 1;
        }
        prop_assert_eq!(schedule.after(asked, job, at_ns(from), Span::from_ns(busy)), at_ns(at));
    }
}

/// Two jobs of one node that compute, each for 25 us, in slices of 10 us, the node 3 us late.
#[test]
fn jobs_compute_in_turn_and_pay_for_their_own_time_only() {
    let ended = Arc::new(Mutex::new(Vec::new()));
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    for (job, name) in ["one", "other"].into_iter().enumerate() {
        let ended = Arc::clone(&ended);
        let process = world.process(node, name, move || {
            world::compute(Span::from_us(25));
            let mut ended = ended.lock().expect("no program panics");
            ended.push((name, world::now(), world::user_time()));
        });
        world.set_job(process, job as u32);
    }
    world.set_schedule(Schedule {
        slice: Span::from_us(10),
        jobs: 2,
        late: vec![Span::from_us(3)],
    });
    assert_eq!(world.run(Time::from_ns(1_000_000)).failures, [""; 0]);
    let us = |us| Time::ZERO + Span::from_us(us);
    let expected = [
        // From 3 to 13, 23 to 33, 43 to 48.
        ("one", us(48), Span::from_us(25)),
        // From 0 to 3, 13 to 23, 33 to 43, 53 to 55.
        ("other", us(55), Span::from_us(25)),
    ];
    assert_eq!(*ended.lock().expect("no program panics"), expected);
}

/// A timer of a program's own cycles stands still while another job has the processor, and while
/// the program sleeps.
#[test]
fn a_user_timer_counts_only_the_time_of_its_program() {
    let rang = Arc::new(Mutex::new(Vec::new()));
    let mut world = Simulation::new(Settings::default());
    let node = world.node(1);
    let note = Arc::clone(&rang);
    world.process(node, "one", move || {
        let before = Arc::clone(&note);
        world::set_user_timer(Span::from_us(12), move || {
            before.lock().expect("no program panics").push(world::now());
        });
        world::compute(Span::from_us(5));
        world::pause(Span::from_us(100));
        world::compute(Span::from_us(20));
        // One that is taken back does not ring.
        world::set_user_timer(Span::from_us(1), move || {
            note.lock().expect("no program panics").push(Time::NEVER);
        });
        world::clear_user_timer();
        world::compute(Span::from_us(5));
    });
    world.set_schedule(Schedule {
        slice: Span::from_us(10),
        jobs: 2,
        late: Vec::new(),
    });
    assert_eq!(world.run(Time::from_ns(1_000_000)).failures, [""; 0]);
    // 5 of 12 are over when it sleeps, until 105, and 5 more when its slice ends at 110. The next
    // begins at 120.
    let expected = Time::ZERO + Span::from_us(122);
    assert_eq!(*rang.lock().expect("no program panics"), [expected]);
}
