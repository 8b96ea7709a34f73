//! Completion queues: ends of sends, fences and one-sided operations, each with the number that its
//! program gave it (decision 50).

use std::collections::BTreeMap;

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::Rights;
use hamlyn::engine::transport::Return;
use hamlyn::one_sided::{
    Atomic, Change, Initiator, InitiatorOptions, OPERATIONS_MAX, Operation, OperationError, Width,
};
use hamlyn::{
    Completion, CompletionError, CompletionQueue, FenceError, Message, NewPort, Session, Source,
    Target, TrackError, Wait,
};

use crate::low_level::{RxSlot, target};
use crate::peer::{Peer, pattern};
use crate::{Host, World};

const AREA: u64 = 64 << 10;

fn open(peer: &Peer, places: usize) -> CompletionQueue {
    peer.with(|manager| manager.session().open_completions(places))
        .unwrap()
}

fn initiator(peer: &Peer, target: Target) -> Initiator {
    let options = InitiatorOptions {
        landing_bytes: AREA,
    };
    peer.with(|manager| manager.session().open_initiator(target, options))
        .unwrap()
}

fn await_completion(peer: &Peer, queue: &CompletionQueue) -> Completion {
    peer.until("a completion", |manager, wait| {
        manager.session().await_completion(queue, wait).unwrap()
    })
}

fn no_completion(peer: &Peer, queue: &CompletionQueue) {
    let found = peer.with(|manager| manager.session().next_completion(queue));
    assert_eq!(found, None);
}

/// Begins an operation as soon as there is room.
fn begin(
    peer: &Peer,
    mut call: impl FnMut(&mut Session<'_, Host>, Wait) -> Result<Operation, OperationError>,
) -> Operation {
    peer.until("room for an operation", |manager, wait| {
        let mut session = manager.session();
        match call(&mut session, wait) {
            Err(OperationError::WouldBlock) => None,
            // Of the places for operations, the ends of those before free some.
            Err(OperationError::TooMany) => {
                session.poll();
                None
            }
            begun => Some(begun.unwrap()),
        }
    })
}

fn add(peer: &Peer, initiator: &mut Initiator, operand: u64) -> Operation {
    let atomic = Atomic::new(Change::Add, Width::Bits64, operand);
    begin(peer, |session, wait| {
        session.begin_atomic(initiator, 8, atomic, wait)
    })
}

pub(crate) fn ends_of_all_kinds_come_in_one_queue(world: &World) {
    const LENGTHS: [usize; 5] = [0, 16, 100, 1_000, 9_000];
    world.run(&[
        &|peer| {
            let all = RxSlot::new(peer, AREA, |new| new.rights(Rights::ALL).entries(1));
            let read_only = RxSlot::new(peer, AREA, |new| new.rights(Rights::READ));
            all.area.store_u64(8, 1000).unwrap();
            peer.put_ticket("all", &all.slot.fast_ticket(0, AREA).unwrap());
            peer.put_ticket("entry", &all.slot.ticket(0, 0, AREA).unwrap());
            peer.put_ticket("read only", &read_only.slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
            for (index, length) in LENGTHS.into_iter().enumerate() {
                let offset = 10_000 * (1 + index as u64);
                assert!(all.bytes(offset, length) == pattern(index as u64, length));
            }
            assert!(all.bytes(100, 5_000) == pattern(77, 5_000));
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("all"));
            let entry = target(peer, &peer.get_ticket("entry"));
            let refuses = target(peer, &peer.get_ticket("read only"));
            let queue = open(peer, 32);
            assert_eq!(queue.places(), 32);
            no_completion(peer, &queue);
            let mut expected = BTreeMap::new();
            for (index, length) in LENGTHS.into_iter().enumerate() {
                let (context, bytes) = (100 + index as u64, pattern(index as u64, length));
                // A fast-mode message is one packet.
                let to = if length > 1_000 { entry } else { to };
                let message = Message::new(&bytes).at(10_000 * (1 + index as u64));
                let sent = peer.send(|manager, wait| {
                    let mut session = manager.session();
                    let terminus = session.terminus();
                    session.send_msg(terminus, &to, &message, wait)
                });
                peer.with(|manager| {
                    let mut session = manager.session();
                    session.track_send(&queue, sent.unwrap(), context).unwrap();
                    session
                        .track_fence(&queue, to.link(), context + 50)
                        .unwrap();
                });
                expected.insert(context, Ok(0));
                expected.insert(context + 50, Ok(0));
            }
            let (mut granted, mut refused) = (initiator(peer, to), initiator(peer, refuses));
            let track = |initiator: &mut Initiator, operation, context, has_word| {
                peer.with(|manager| {
                    let mut session = manager.session();
                    match has_word {
                        true => session.track_word(&queue, initiator, operation, context),
                        false => session.track_operation(&queue, initiator, operation, context),
                    }
                    .unwrap();
                    // It is the queue's now.
                    let finished = session.finish(initiator, operation, Wait::Poll);
                    assert_eq!(finished, Err(OperationError::NotOutstanding));
                });
            };
            let bytes = pattern(77, 5_000);
            let put = begin(peer, |session, wait| {
                session.begin_put(&mut granted, 100, &bytes, wait)
            });
            track(&mut granted, put, 1, false);
            let changed = add(peer, &mut granted, 5);
            track(&mut granted, changed, 2, true);
            expected.extend([(1, Ok(0)), (2, Ok(1000))]);
            while !expected.is_empty() {
                let Completion { context, result } = await_completion(peer, &queue);
                assert_eq!(expected.remove(&context), Some(result), "{context}");
            }
            let changed = add(peer, &mut refused, 5);
            track(&mut refused, changed, 3, true);
            let no_right = OperationError::Refused(Refusal::NoRight);
            let refusal = await_completion(peer, &queue);
            assert_eq!(refusal.context, 3);
            assert_eq!(refusal.result, Err(CompletionError::Operation(no_right)));
            // The bytes of a read are there when it is complete.
            let read = begin(peer, |session, wait| {
                session.begin_read(&mut granted, 100, 7, 5_000, wait)
            });
            track(&mut granted, read, 4, false);
            let word = begin(peer, |session, wait| {
                session.begin_read_word(&mut granted, 8, wait)
            });
            track(&mut granted, word, 5, true);
            let mut expected = BTreeMap::from([(4, Ok(0)), (5, Ok(1005))]);
            while !expected.is_empty() {
                let Completion { context, result } = await_completion(peer, &queue);
                assert_eq!(expected.remove(&context), Some(result), "{context}");
            }
            let mut found = vec![0; 5_000];
            granted.landed(7, &mut found).unwrap();
            assert!(found == bytes);
            no_completion(peer, &queue);
            for initiator in [&granted, &refused] {
                let outstanding = peer.with(|manager| manager.session().outstanding(initiator));
                assert_eq!(outstanding, 0);
            }
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn a_completion_queue_loses_nothing_and_says_when_it_is_full(world: &World) {
    const PLACES: u64 = 3 * OPERATIONS_MAX as u64;
    world.run(&[
        &|peer| {
            let slot = RxSlot::new(peer, AREA, |new| new.rights(Rights::ALL));
            peer.put_ticket("ticket", &slot.slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
            assert_eq!(slot.area.load_u64(8).unwrap(), PLACES + 1);
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            let queue = open(peer, PLACES as usize);
            for context in 0..PLACES {
                // Its places are free when operations end, though nobody fetches that.
                let begun = add(peer, &mut initiator, 1);
                peer.with(|manager| {
                    let mut session = manager.session();
                    session
                        .track_word(&queue, &mut initiator, begun, context)
                        .unwrap();
                });
            }
            let full = TrackError::Full {
                places: PLACES as usize,
            };
            let one_more = add(peer, &mut initiator, 1);
            peer.with(|manager| {
                let mut session = manager.session();
                let more = session.track_word(&queue, &mut initiator, one_more, PLACES);
                assert_eq!(more, Err(full.clone()));
                let fence = session.track_fence(&queue, to.link(), PLACES);
                assert_eq!(fence, Err(full));
            });
            // It was not given to the queue.
            let finished = peer.until("an answer", |manager, wait| {
                let finished = manager.session().finish(&mut initiator, one_more, wait);
                (finished != Err(OperationError::TimedOut)).then_some(finished)
            });
            assert_eq!(finished, Ok(()));
            let mut words = Vec::new();
            let mut contexts = Vec::new();
            for _ in 0..PLACES {
                let completion = await_completion(peer, &queue);
                contexts.push(completion.context);
                words.push(completion.result.unwrap());
            }
            no_completion(peer, &queue);
            contexts.sort_unstable();
            words.sort_unstable();
            assert!(contexts.into_iter().eq(0..PLACES));
            // One of the words was the last operation's, which nobody tracked.
            words.dedup();
            assert_eq!(words.len(), PLACES as usize);
            // The result of an operation is told once: by the queue, or by a call.
            let late = peer.with(|manager| {
                let mut session = manager.session();
                session.track_word(&queue, &mut initiator, one_more, PLACES)
            });
            let over = TrackError::Operation(OperationError::NotOutstanding);
            assert_eq!(late, Err(over));
            no_completion(peer, &queue);
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn refused_packets_are_told_by_fence_and_with_the_context_of_their_link(world: &World) {
    world.run(&[
        &|peer| {
            let slot = RxSlot::new(peer, AREA, |new| new);
            peer.put_ticket("ticket", &slot.slot.fast_ticket(0, AREA).unwrap());
            peer.with(|manager| manager.session().revoke_slot(&slot.slot))
                .unwrap();
            peer.put("revoked", &[]);
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            peer.get("revoked");
            let queue = open(peer, 2);
            peer.with(|manager| {
                let mut session = manager.session();
                assert!(session.set_link_context(to.link(), 99));
                assert_eq!(session.link_context(to.link()), 99);
                session.track_refusals(&queue).unwrap();
            });
            peer.send(|manager, wait| {
                let mut session = manager.session();
                let terminus = session.terminus();
                session.send_msg(terminus, &to, &Message::new(&[1; 16]).at(5), wait)
            })
            .unwrap();
            peer.with(|manager| manager.session().track_fence(&queue, to.link(), 1))
                .unwrap();
            let mut fenced = None;
            let mut returned = None;
            while fenced.is_none() || returned.is_none() {
                let Completion { context, result } = await_completion(peer, &queue);
                let before = match context {
                    1 => fenced.replace(result),
                    99 => returned.replace(result),
                    other => panic!("{other}"),
                };
                assert_eq!(before, None);
            }
            let (Some(Err(fenced)), Some(Err(returned))) = (fenced, returned) else {
                panic!("what was refused is complete");
            };
            match fenced {
                CompletionError::Fence(FenceError::Refused { count: 1, .. }) => {}
                other => panic!("{other:?}"),
            }
            match returned {
                CompletionError::Returned(returned) => {
                    assert_eq!(returned.reason, Return::Refused(Refusal::SlotRevoked));
                    assert_eq!((returned.offset, returned.length_bytes), (5, 16));
                }
                other => panic!("{other:?}"),
            }
            no_completion(peer, &queue);
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn a_queue_tells_of_an_initiator_that_is_dropped_and_may_be_dropped_itself(
    world: &World,
) {
    world.run(&[
        &|peer| {
            let slot = RxSlot::new(peer, AREA, |new| new.rights(Rights::ALL));
            peer.put_ticket("ticket", &slot.slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            for round in 0..20 {
                let queue = open(peer, 4);
                let mut first = initiator(peer, to);
                let mut other = initiator(peer, to);
                for (initiator, context) in [(&mut first, 2 * round), (&mut other, 2 * round + 1)] {
                    let operation = add(peer, initiator, 1);
                    peer.with(|manager| {
                        let mut session = manager.session();
                        session.track_word(&queue, initiator, operation, context)
                    })
                    .unwrap();
                }
                drop(first);
                if round % 2 == 0 {
                    // The operations go on, and nobody is told of their ends.
                    drop(queue);
                    continue;
                }
                let mut ends = BTreeMap::new();
                while ends.len() < 2 {
                    let completion = await_completion(peer, &queue);
                    ends.insert(completion.context, completion.result);
                }
                let of_dropped = &ends[&(2 * round)];
                assert!(
                    matches!(
                        of_dropped,
                        Ok(_) | Err(CompletionError::Operation(OperationError::Abandoned))
                    ),
                    "{of_dropped:?}"
                );
                assert!(ends[&(2 * round + 1)].is_ok(), "{ends:?}");
                no_completion(peer, &queue);
            }
            peer.with(|manager| {
                let mut session = manager.session();
                let none = session.open_completions(0).unwrap_err();
                assert!(none.to_string().contains("completion queue"), "{none}");
                let other = hamlyn::open_unnamed().unwrap();
                let foreign = other.session().open_completions(1).unwrap();
                let tracked = session.track_fence(&foreign, to.link(), 1);
                assert_eq!(tracked, Err(TrackError::NoSuchQueue));
                assert_eq!(session.next_completion(&foreign), None);
            });
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn a_wait_for_several_sources_ends_with_the_one_that_is_ready(world: &World) {
    const ROUNDS: u64 = 30;
    world.run(&[
        &|peer| {
            let mut first = RxSlot::new(peer, AREA, |new| new);
            let second = RxSlot::new(peer, AREA, |new| new);
            let mut port = peer
                .with(|manager| manager.session().open_port(NewPort::new()))
                .unwrap();
            peer.put_ticket("slot", &first.slot.fast_ticket(0, AREA).unwrap());
            peer.put_ticket("port", &port.ticket());
            for round in 0..ROUNDS {
                let ready = peer.until("something that is ready", |manager, wait| {
                    let sources = [
                        Source::Messages(&second.queue),
                        Source::Port(&port),
                        Source::Messages(&first.queue),
                    ];
                    let mut session = manager.session();
                    let ready = session.await_any(&sources, wait).unwrap();
                    if let Some(ready) = ready {
                        assert!(session.is_ready(sources[ready]));
                    }
                    ready
                });
                match ready {
                    1 => peer.with(|manager| {
                        let mut session = manager.session();
                        let message = session.next_message(&mut port).unwrap().unwrap();
                        assert_eq!((message.word(0), round % 2), (round, 0));
                        message.dispose();
                    }),
                    2 => {
                        let told = first.next(peer);
                        assert_eq!((told.word, round % 2), (round, 1));
                    }
                    other => panic!("{other}"),
                }
                peer.put(&format!("round {round}"), &[]);
            }
            let none = peer.with(|manager| {
                let sources = [Source::Messages(&second.queue), Source::Port(&port)];
                manager.session().await_any(&sources, Wait::Poll)
            });
            assert_eq!(none, Ok(None));
        },
        &|peer| {
            let slot = target(peer, &peer.get_ticket("slot"));
            let port = target(peer, &peer.get_ticket("port"));
            for round in 0..ROUNDS {
                peer.send(|manager, wait| {
                    let mut session = manager.session();
                    let terminus = session.terminus();
                    match round % 2 {
                        0 => session
                            .send_message(&port, 0, &round.to_le_bytes(), wait)
                            .map(drop),
                        _ => session
                            .send_msg(terminus, &slot, &Message::new(&[]).word(round), wait)
                            .map(drop),
                    }
                })
                .unwrap();
                peer.get(&format!("round {round}"));
            }
        },
    ]);
}
