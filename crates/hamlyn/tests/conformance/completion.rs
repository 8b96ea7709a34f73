//! Ends of one-sided operations are told by counters and by notifications of the initiator
//! (decision 0037).

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::Rights;
use hamlyn::one_sided::{
    Atomic, Change, CompletionCounter, Initiator, InitiatorOptions, OPERATIONS_MAX, Operation,
    OperationError, Width,
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

pub(crate) fn ends_of_operations_are_announced_beside_messages(world: &World) {
    const COUNT: u64 = 2 * OPERATIONS_MAX as u64;
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, Rights::ALL);
            area.store_u64(8, 1000).unwrap();
            let (_closed, read_only) = open(peer, Rights::READ);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.put_ticket("read only", &read_only.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let refuses = target(peer, &peer.get_ticket("read only"));
            let mut granted = initiator(peer, to);
            let mut refused = initiator(peer, refuses);
            let mut queue = peer
                .with(|manager| manager.session().open_queue(256))
                .unwrap();
            let mut begun = Vec::new();
            let mut told = 0;
            for word in 0..COUNT {
                let is_granted = word % 4 != 3;
                let of = if is_granted {
                    &mut granted
                } else {
                    &mut refused
                };
                let operation = peer.until("room for an operation", |manager, wait| {
                    let mut interface = manager.session();
                    match interface.begin_atomic(of, 8, add(1), wait) {
                        Err(OperationError::WouldBlock) => None,
                        started => {
                            let started = started.unwrap();
                            let announced =
                                interface.announce_completion(of, started, &queue, 100 + word);
                            announced.unwrap();
                            Some(started)
                        }
                    }
                });
                begun.push(operation);
                // Half of them are under way together.
                while begun.len() - told > OPERATIONS_MAX / 2 {
                    fetch_announced(peer, &mut queue, (&mut granted, &mut refused), &begun);
                    told += 1;
                }
            }
            while told < begun.len() {
                fetch_announced(peer, &mut queue, (&mut granted, &mut refused), &begun);
                told += 1;
            }
            let more = peer.with(|manager| manager.session().rcv(&mut queue).unwrap());
            assert_eq!(more, None);
            // An operation whose result was fetched before is not announced.
            let operation = peer.until("room for an operation", |manager, wait| {
                manager
                    .session()
                    .begin_read_word(&mut granted, 8, wait)
                    .ok()
            });
            let found = peer.until("an answer", |manager, wait| {
                let finished = manager.session().finish_word(&mut granted, operation, wait);
                (finished != Err(OperationError::TimedOut)).then_some(finished)
            });
            assert_eq!(found, Ok(1000 + COUNT / 4 * 3));
            peer.with(|manager| {
                let mut interface = manager.session();
                let late = interface.announce_completion(&mut granted, operation, &queue, 1);
                assert_eq!(late, Err(OperationError::NotOutstanding));
                assert_eq!(interface.rcv(&mut queue).unwrap(), None);
                interface.close_queue(queue);
            });
            peer.put("through", &[]);
        },
    ]);
}

/// Receives a completion, and fetches its result, which is there.
fn fetch_announced(
    peer: &Peer,
    queue: &mut hamlyn::Queue,
    (granted, refused): (&mut Initiator, &mut Initiator),
    begun: &[Operation],
) {
    let notification = peer.until("a completion", |manager, wait| {
        let mut interface = manager.session();
        interface.rcv_block(queue, wait).unwrap()
    });
    let number = (notification.word - 100) as usize;
    let is_granted = number % 4 != 3;
    let of = if is_granted { granted } else { refused };
    assert_eq!(notification.slot, of.slot());
    let result = peer.with(|manager| {
        let mut interface = manager.session();
        interface.finish_word(of, begun[number], Wait::Poll)
    });
    match is_granted {
        true => assert!(
            result.as_ref().is_ok_and(|&before| before >= 1000),
            "{result:?}"
        ),
        false => assert_eq!(result, Err(OperationError::Refused(Refusal::NoRight))),
    }
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
