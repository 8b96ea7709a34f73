//! A processor that ends while events are missed, or before others know it, is no wait for ever.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use hamlyn::{NewPort, Strategy, Wait};
use hamlyn_splitc::{Error, GlobalAddress, GlobalPtr, Job, Placement};

use crate::World;
use crate::processor::{Runtime, START};

/// More than an interface keeps events for, by twos.
const LINKS: usize = 150;
const LONG: Duration = Duration::from_secs(20);

/// Processors that have come so far. To wait for them, no packet is taken.
#[derive(Default)]
struct Come(Mutex<u32>, Condvar);

impl Come {
    fn add(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    fn wait_for(&self, count: u32) {
        let come = self.0.lock().unwrap();
        drop(self.1.wait_while(come, |come| *come < count).unwrap());
    }
}

/// All have started, and then one of them gives up.
fn give_up(started: &Come, procs: u32) -> Result<(), Error> {
    started.wait_for(procs);
    Err(Error::BadOperation { what: "it gave up" })
}

fn limit(job: &mut Job) {
    job.barrier_timeout = Some(LONG);
}

/// Others come and go, so that the end of a processor is not among the events that are kept.
fn others_come_and_go(runtime: &Runtime) {
    let (mut session, other) = (runtime.manager().session(), hamlyn::open_unnamed().unwrap());
    let mut others = other.session();
    let ticket = others.open_port(NewPort::new()).unwrap().ticket();
    for _ in 0..LINKS {
        let target = session.target(&ticket, Wait::For(LONG)).unwrap();
        session.disconnect(target.link());
        others.poll();
    }
}

fn an_end_is_found_without_its_event(placement: Placement) {
    const PROCS: u32 = 3;
    let (started, done) = (Come::default(), Come::default());
    let world = World {
        strategy: Strategy::Proc,
        placement,
    };
    let role = |runtime: &mut Runtime| {
        started.add();
        match runtime.proc() {
            0 => {
                // It is linked to the two others.
                while runtime.manager().session().peers().count() == 2 {
                    runtime.poll()?;
                    std::thread::yield_now();
                }
                others_come_and_go(runtime);
                let ended = runtime.barrier();
                done.add();
                ended
            }
            1 => {
                done.wait_for(1);
                Ok(())
            }
            _ => give_up(&started, PROCS),
        }
    };
    let outcomes = world.outcomes(PROCS, &limit, &role);
    let message = outcomes[0].as_ref().unwrap_err();
    assert!(message.contains("processor 2 is gone"), "{message}");
}

#[test]
fn an_end_is_found_without_its_event_copied() {
    an_end_is_found_without_its_event(Placement::Copied);
}

#[test]
fn an_end_is_found_without_its_event_direct() {
    an_end_is_found_without_its_event(Placement::Direct);
}

/// In a job of so many, a processor connects to others as it needs them: this one has never sent
/// anything to the one whose value it awaits.
#[test]
fn an_end_of_one_that_is_not_known_is_found() {
    const PROCS: u32 = 65;
    let (started, done) = (Come::default(), Come::default());
    let world = World {
        strategy: Strategy::Proc,
        placement: Placement::Copied,
    };
    let role = |runtime: &mut Runtime| {
        started.add();
        match runtime.proc() {
            0 => {
                // The sixth place of its tree, behind the fourth.
                let ended = runtime.broadcast(PROCS - 6, &mut [0]);
                done.add();
                ended
            }
            63 => give_up(&started, PROCS),
            _ => {
                done.wait_for(1);
                Ok(())
            }
        }
    };
    let outcomes = world.outcomes(PROCS, &limit, &role);
    let message = outcomes[0].as_ref().unwrap_err();
    assert!(message.contains("processor 63 is gone"), "{message}");
}

/// However much of it is still to be taken.
#[test]
fn all_that_came_before_an_end_counts() {
    const STORES: u64 = 100_000;
    let stored = Come::default();
    let world = World {
        strategy: Strategy::Proc,
        placement: Placement::Copied,
    };
    let outcomes = world.outcomes(2, &limit, &|runtime| {
        if runtime.proc() == 1 {
            for number in 0..STORES {
                runtime.store(GlobalPtr::<u64>::at(GlobalAddress::new(0, START)), number)?;
            }
            stored.add();
            return Err(Error::BadOperation { what: "it gave up" });
        }
        stored.wait_for(1);
        runtime.store_sync(8 * STORES)?;
        assert_eq!(runtime.program().word(START), STORES - 1);
        Err(Error::BadOperation { what: "it has all" })
    });
    let messages: Vec<String> = outcomes.into_iter().map(Result::unwrap_err).collect();
    assert_eq!(messages, ["it has all", "it gave up"]);
}
