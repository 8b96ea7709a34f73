//! Ends of one-sided operations are told by counters (decision 0037).

use hamlyn::engine::slot::Rights;
use hamlyn::one_sided::{
    Atomic, Change, CompletionCounter, Initiator, InitiatorOptions, OPERATIONS_MAX, OperationError,
    Width,
};
use hamlyn::{Area, NewSlot, Slot, Target, Wait};

use crate::World;
use crate::low_level::target;
use crate::peer::{Peer, pattern};

const AREA: u64 = 64 << 10;

fn open(peer: &Peer, rights: Rights) -> (Area, Slot) {
    peer.with(|manager| {
        let area = manager.session().allocate(AREA).unwrap();
        let new = NewSlot::new(&area).rights(rights);
        let slot = manager.session().open_slot(new).unwrap();
        (area, slot)
    })
}

fn initiator(peer: &Peer, target: Target) -> Initiator {
    let options = InitiatorOptions {
        landing_bytes: AREA,
    };
    peer.with(|manager| manager.session().open_initiator(target, options))
        .unwrap()
}

fn add(operand: u64) -> Atomic {
    Atomic::new(Change::Add, Width::Bits64, operand)
}

/// Begins an addition as soon as there is room, and has it counted.
fn add_counted(peer: &Peer, initiator: &mut Initiator, counter: &CompletionCounter) {
    peer.until("room for an operation", |manager, wait| {
        let mut interface = manager.session();
        let begun = match interface.begin_atomic(initiator, 8, add(3), wait) {
            // Of the places for operations, the ends of those before free some.
            Err(OperationError::WouldBlock) => return None,
            Err(OperationError::TooMany) => {
                interface.poll();
                return None;
            }
            begun => begun.unwrap(),
        };
        interface
            .count_completion(initiator, begun, counter)
            .unwrap();
        let fetched = interface.finish(initiator, begun, Wait::Poll);
        assert_eq!(fetched, Err(OperationError::NotOutstanding));
        Some(())
    });
}

fn await_counted(peer: &Peer, counter: &CompletionCounter, ended: u64) {
    peer.until("the ends of operations", |manager, wait| {
        let awaited = manager.session().await_completions(counter, ended, wait);
        if awaited == Err(OperationError::TimedOut) {
            assert!(counter.ended() < ended);
            return None;
        }
        awaited.unwrap();
        Some(())
    });
}

pub(crate) fn a_counter_counts_the_operations_of_several_initiators(world: &World) {
    const EACH: u64 = 3 * OPERATIONS_MAX as u64;
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, Rights::ALL);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
            assert_eq!(area.load_u64(8).unwrap(), 3 * 2 * EACH);
            let mut found = vec![0; 20_000];
            area.read_at(100, &mut found).unwrap();
            assert!(found == pattern(4, 20_000));
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiators = [initiator(peer, to), initiator(peer, to)];
            let counter = CompletionCounter::new();
            for _ in 0..EACH {
                for initiator in &mut initiators {
                    add_counted(peer, initiator, &counter);
                }
            }
            await_counted(peer, &counter, 2 * EACH);
            assert_eq!((counter.completed(), counter.failed()), (2 * EACH, 0));
            // Of several requests, counted once.
            let bytes = pattern(4, 20_000);
            let [first, second] = &mut initiators;
            peer.with(|manager| {
                let mut interface = manager.session();
                let wait = Wait::millis(20_000);
                let put = interface.begin_put(first, 100, &bytes, wait).unwrap();
                interface.count_completion(first, put, &counter).unwrap();
            });
            await_counted(peer, &counter, 2 * EACH + 1);
            // What a counted read has read is there.
            peer.with(|manager| {
                let mut interface = manager.session();
                let wait = Wait::millis(20_000);
                let read = interface.begin_read(second, 100, 7, 20_000, wait).unwrap();
                interface.count_completion(second, read, &counter).unwrap();
            });
            await_counted(peer, &counter, 2 * EACH + 2);
            let mut found = vec![0; 20_000];
            second.landed(7, &mut found).unwrap();
            assert!(found == bytes);
            assert_eq!(counter.failed(), 0);
            for initiator in &initiators {
                let outstanding = peer.with(|manager| manager.session().outstanding(initiator));
                assert_eq!(outstanding, 0);
            }
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn refusals_are_counted_apart(world: &World) {
    world.run(&[
        &|peer| {
            let (_area, slot) = open(peer, Rights::READ);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            let counter = CompletionCounter::new();
            for _ in 0..5 {
                add_counted(peer, &mut initiator, &counter);
            }
            await_counted(peer, &counter, 5);
            assert_eq!((counter.completed(), counter.failed()), (0, 5));
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn operations_of_an_initiator_that_is_dropped_count_as_failed(world: &World) {
    world.run(&[
        &|peer| {
            let (_area, slot) = open(peer, Rights::ALL);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let counter = CompletionCounter::new();
            for round in 1..=20 {
                let mut initiator = initiator(peer, to);
                add_counted(peer, &mut initiator, &counter);
                add_counted(peer, &mut initiator, &counter);
                drop(initiator);
                await_counted(peer, &counter, 2 * round);
            }
            // Nothing is counted twice when answers come after all.
            let mut initiator = initiator(peer, to);
            add_counted(peer, &mut initiator, &counter);
            await_counted(peer, &counter, 41);
            assert_eq!(counter.ended(), 41);
            peer.put("through", &[]);
        },
    ]);
}
