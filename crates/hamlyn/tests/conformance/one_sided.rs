//! One-sided operations (decision 0037): whoever drives the target, they do what they say, once,
//! and what is not granted is refused.

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::{Mode, Rights};
use hamlyn::one_sided::{
    Atomic, Change, Initiator, InitiatorOptions, OPERATIONS_MAX, Operation, OperationError,
    Strided, Width,
};
use hamlyn::{Area, NewSlot, Slot, Target, Wait};

use crate::World;
use crate::low_level::target;
use crate::peer::{Peer, pattern};

pub(crate) const AREA: u64 = 300 << 10;

/// A slot that others may do anything with.
pub(crate) fn open(peer: &Peer, shape: impl FnOnce(NewSlot) -> NewSlot) -> (Area, Slot) {
    peer.with(|manager| {
        let area = manager.session().allocate(AREA).unwrap();
        let new = shape(NewSlot::new(&area).rights(Rights::ALL));
        let slot = manager.session().open_slot(new).unwrap();
        (area, slot)
    })
}

/// Serves a slot with a pattern of bytes until its initiator is through.
pub(crate) fn serve_pattern(peer: &Peer) -> Area {
    let (area, slot) = open(peer, |slot| slot);
    area.write_at(0, &pattern(1, AREA as usize)).unwrap();
    peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
    peer.get("through");
    area
}

pub(crate) fn initiator(peer: &Peer, target: Target) -> Initiator {
    let options = InitiatorOptions {
        landing_bytes: AREA,
    };
    peer.with(|manager| manager.session().open_initiator(target, options))
        .unwrap()
}

/// Begins an operation, as soon as there is room.
fn begin(
    peer: &Peer,
    mut begin: impl FnMut(
        &mut hamlyn::Session<'_, crate::Host>,
        Wait,
    ) -> Result<Operation, OperationError>,
) -> Operation {
    peer.until("room for an operation", |manager, wait| {
        match begin(&mut manager.session(), wait) {
            Err(OperationError::WouldBlock) => None,
            begun => Some(begun.unwrap()),
        }
    })
}

/// The result of an operation.
pub(crate) fn finish(
    peer: &Peer,
    initiator: &mut Initiator,
    operation: Operation,
) -> Result<u64, OperationError> {
    peer.until("an answer", |manager, wait| {
        let finished = manager.session().finish_word(initiator, operation, wait);
        (finished != Err(OperationError::TimedOut)).then_some(finished)
    })
}

pub(crate) fn read(
    peer: &Peer,
    initiator: &mut Initiator,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, OperationError> {
    let length_bytes = length as u64;
    let operation = begin(peer, |interface, wait| {
        interface.begin_read(initiator, offset, 0, length_bytes, wait)
    });
    finish(peer, initiator, operation)?;
    let mut bytes = vec![0; length];
    initiator.landed(0, &mut bytes).unwrap();
    Ok(bytes)
}

fn put(
    peer: &Peer,
    initiator: &mut Initiator,
    offset: u64,
    bytes: &[u8],
) -> Result<u64, OperationError> {
    let operation = begin(peer, |interface, wait| {
        interface.begin_put(initiator, offset, bytes, wait)
    });
    finish(peer, initiator, operation)
}

fn change(
    peer: &Peer,
    initiator: &mut Initiator,
    offset: u64,
    atomic: Atomic,
) -> Result<u64, OperationError> {
    let operation = begin(peer, |interface, wait| {
        interface.begin_atomic(initiator, offset, atomic, wait)
    });
    finish(peer, initiator, operation)
}

fn add(operand: u64) -> Atomic {
    Atomic::new(Change::Add, Width::Bits64, operand)
}

/// Sizes around every boundary: the cell, the request, the packet, and several of each.
const SIZES: [usize; 16] = [
    0, 1, 8, 24, 25, 33, 1000, 4096, 8183, 8184, 8185, 8192, 16_385, 65_536, 65_537, 250_000,
];

pub(crate) fn bytes_of_all_sizes_are_read_and_put(world: &World) {
    world.run(&[
        &|peer| {
            let area = serve_pattern(peer);
            for (number, size) in SIZES.into_iter().enumerate() {
                let mut found = vec![0; size];
                // The last put of all lies at that place.
                if size == 250_000 {
                    area.read_at(number as u64 * 3, &mut found).unwrap();
                    assert!(found == pattern(number as u64, size));
                }
            }
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            let all = pattern(1, AREA as usize);
            for (number, size) in SIZES.into_iter().enumerate() {
                let at = number * 3;
                let found = read(peer, &mut initiator, at as u64, size).unwrap();
                assert!(found == all[at..at + size], "{size}");
            }
            for (number, size) in SIZES.into_iter().enumerate() {
                let (at, bytes) = (number as u64 * 3, pattern(number as u64, size));
                put(peer, &mut initiator, at, &bytes).unwrap();
                assert!(
                    read(peer, &mut initiator, at, size).unwrap() == bytes,
                    "{size}"
                );
            }
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn every_change_is_made_and_tells_what_was_there(world: &World) {
    const NUMBERS: [u64; 6] = [0, 1, 5, u64::MAX, 1 << 31, 0x4045_0000_4045_0000];
    world.run(&[
        &|peer| {
            let (_area, slot) = open(peer, |slot| slot);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            let mut word = 0_u64;
            for change_kind in Change::ALL {
                for width in [Width::Bits32, Width::Bits64] {
                    for operand in NUMBERS {
                        let atomic = Atomic {
                            change: change_kind,
                            width,
                            operand,
                            expected: word,
                        };
                        let kept = u64::MAX >> (64 - 8 * width.bytes());
                        let before = change(peer, &mut initiator, 16, atomic).unwrap();
                        assert_eq!(before, word & kept, "{atomic:?}");
                        word = word & !kept | atomic.changed(word & kept) & kept;
                    }
                }
            }
            let found = read(peer, &mut initiator, 16, 8).unwrap();
            assert_eq!(found, word.to_le_bytes());
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn many_are_outstanding_and_each_has_its_own_answer(world: &World) {
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, |slot| slot);
            for word in 0..1000_u64 {
                area.store_u64(word * 8, word * 7).unwrap();
            }
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            // Two of them over one link, whose window they share.
            let mut initiators = [initiator(peer, to), initiator(peer, to)];
            for round in 0..4_u64 {
                let mut begun = Vec::new();
                for number in 0..OPERATIONS_MAX as u64 {
                    for which in 0..2 {
                        let word = number + 64 * round + 256 * which;
                        let operation = begin(peer, |interface, wait| {
                            let initiator = &mut initiators[which as usize];
                            interface.begin_read_word(initiator, word * 8, wait)
                        });
                        begun.push((which as usize, word, operation));
                    }
                }
                let outstanding = |initiator: &Initiator| {
                    peer.with(|manager| manager.session().outstanding(initiator))
                };
                assert_eq!(outstanding(&initiators[1]), OPERATIONS_MAX);
                let one_more = peer.with(|manager| {
                    let mut interface = manager.session();
                    interface.begin_read_word(&mut initiators[0], 0, Wait::Poll)
                });
                assert_eq!(one_more, Err(OperationError::TooMany));
                for (which, word, operation) in begun.into_iter().rev() {
                    let found = finish(peer, &mut initiators[which], operation);
                    assert_eq!(found, Ok(word * 7));
                    let again = finish(peer, &mut initiators[which], operation);
                    assert_eq!(again, Err(OperationError::NotOutstanding));
                }
                assert_eq!(outstanding(&initiators[0]), 0);
            }
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn what_is_not_granted_is_refused(world: &World) {
    world.run(&[
        &|peer| {
            let (_, write) = open(peer, |slot| slot.rights(Rights::WRITE));
            let (_, read) = open(peer, |slot| slot.rights(Rights::READ));
            let (_, atomic) = open(peer, |slot| slot.rights(Rights::ATOMIC));
            let (_, whole) = open(peer, |slot| slot.range(8..64));
            for (key, slot) in [("w", &write), ("r", &read), ("a", &atomic)] {
                peer.put_ticket(key, &slot.fast_ticket(0, AREA).unwrap());
            }
            let mut far = whole.fast_ticket(0, 56).unwrap();
            far.length_bytes = 4096;
            peer.put_ticket("far", &far);
            let (_, one_shot) = open(peer, |slot| slot.mode(Mode::ParanoidOneShot).entries(1));
            peer.put_ticket("entries", &one_shot.fast_ticket(0, AREA).unwrap());
            let (_, mut old) = open(peer, |slot| slot);
            let ticket = old.fast_ticket(0, AREA).unwrap();
            peer.with(|manager| manager.session().rekey_slot(&mut old))
                .unwrap();
            let (_, revoked) = open(peer, |slot| slot);
            let ticket_revoked = revoked.fast_ticket(0, AREA).unwrap();
            peer.with(|manager| manager.session().revoke_slot(&revoked))
                .unwrap();
            let (_, closed) = open(peer, |slot| slot);
            let ticket_closed = closed.fast_ticket(0, AREA).unwrap();
            peer.with(|manager| manager.session().close_slot(closed))
                .unwrap();
            peer.put_ticket("old", &ticket);
            peer.put_ticket("revoked", &ticket_revoked);
            peer.put_ticket("closed", &ticket_closed);
            peer.get("through");
            let refusals = peer.with(|manager| manager.session().refusals());
            assert_eq!(refusals.count(Refusal::NoRight), 6);
            assert_eq!(refusals.count(Refusal::Misaligned), 2);
        },
        &|peer| {
            let at = |key: &str| initiator(peer, target(peer, &peer.get_ticket(key)));
            let no = |refusal| Err(OperationError::Refused(refusal));
            let all = |key: &str, read_gets, put_gets, change_gets| {
                let mut initiator = at(key);
                assert_eq!(
                    read(peer, &mut initiator, 0, 8).map(drop),
                    read_gets,
                    "{key}"
                );
                assert_eq!(
                    put(peer, &mut initiator, 0, b"put here").map(drop),
                    put_gets,
                    "{key}"
                );
                let changed = change(peer, &mut initiator, 0, add(1));
                assert_eq!(changed.map(drop), change_gets, "{key}");
            };
            all("w", no(Refusal::NoRight), Ok(()), no(Refusal::NoRight));
            all("r", Ok(()), no(Refusal::NoRight), no(Refusal::NoRight));
            all("a", no(Refusal::NoRight), no(Refusal::NoRight), Ok(()));
            for (key, reason) in [
                ("old", Refusal::BadKey),
                ("revoked", Refusal::SlotRevoked),
                ("closed", Refusal::SlotClosed),
                ("entries", Refusal::FastToParanoid),
            ] {
                all(key, no(reason), no(reason), no(reason));
            }
            let mut far = at("far");
            for (offset, length) in [(49, 8), (56, 1), (0, 57), (1000, 2000)] {
                let out = no(Refusal::OutOfBounds);
                assert_eq!(read(peer, &mut far, offset, length).map(drop), out);
                let bytes = vec![1; length];
                assert_eq!(put(peer, &mut far, offset, &bytes).map(drop), out);
            }
            assert_eq!(
                change(peer, &mut far, 56, add(1)).map(drop),
                no(Refusal::OutOfBounds)
            );
            assert_eq!(
                change(peer, &mut far, 4, add(1)).map(drop),
                no(Refusal::Misaligned)
            );
            assert_eq!(
                change(peer, &mut far, 7, add(1)).map(drop),
                no(Refusal::Misaligned)
            );
            assert_eq!(change(peer, &mut far, 48, add(1)), Ok(0));
            // What lies outside its own ticket or memory, an initiator does not even ask.
            let begun = peer.with(|manager| {
                let mut interface = manager.session();
                [
                    interface.begin_read(&mut far, 4090, 0, 7, Wait::Poll),
                    interface.begin_read(&mut far, 0, AREA - 3, 4, Wait::Poll),
                ]
            });
            assert!(matches!(begun[0], Err(OperationError::OutsideTicket(_))));
            assert!(matches!(
                begun[1],
                Err(OperationError::OutsideLanding { .. })
            ));
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn additions_of_several_initiators_are_all_counted(world: &World) {
    const EACH: u64 = 200;
    let role = |peer: &mut Peer, me: &str| {
        let to = target(peer, &peer.get_ticket("ticket"));
        let mut initiator = initiator(peer, to);
        let mut begun = std::collections::VecDeque::new();
        for _ in 0..EACH {
            if begun.len() == 20 {
                finish(peer, &mut initiator, begun.pop_front().unwrap()).unwrap();
            }
            begun.push_back(begin(peer, |interface, wait| {
                interface.begin_atomic(&mut initiator, 8, add(3), wait)
            }));
        }
        for operation in begun {
            finish(peer, &mut initiator, operation).unwrap();
        }
        peer.put(me, &[]);
    };
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, |slot| slot);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("one");
            peer.get("other");
            assert_eq!(area.load_u64(8), Ok(2 * EACH * 3));
        },
        &|peer| role(peer, "one"),
        &|peer| role(peer, "other"),
    ]);
}

#[allow(
    dead_code,
    reason = "peers that share an interface poll it for each other"
)]
/// With a network processor that receives, the target's program does nothing at all.
pub(crate) fn a_target_that_does_nothing_answers(world: &World) {
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, |slot| slot);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.linked();
            peer.put("linked", &[]);
            peer.get_without_polling("through");
            assert_eq!(area.load_u64(8), Ok(10));
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            peer.get("linked");
            for number in 0..10 {
                assert_eq!(change(peer, &mut initiator, 8, add(1)), Ok(number));
            }
            peer.put("through", &[]);
        },
    ]);
}

/// What an initiator leaves when it is dropped in the middle hurts nobody.
pub(crate) fn an_initiator_that_is_dropped_leaves_nothing(world: &World) {
    world.run(&[
        &|peer| {
            let (_area, slot) = open(peer, |slot| slot);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let before = peer.with(|manager| manager.session().slots_open());
            for _ in 0..100 {
                let mut initiator = initiator(peer, to);
                for word in 0..3 {
                    let _ = begin(peer, |interface, wait| {
                        interface.begin_read_word(&mut initiator, word * 8, wait)
                    });
                }
                drop(initiator);
                peer.with(|manager| manager.session().poll());
            }
            let mut initiator = initiator(peer, to);
            assert_eq!(change(peer, &mut initiator, 0, add(2)), Ok(0));
            drop(initiator);
            peer.with(|manager| manager.session().poll());
            assert_eq!(peer.with(|manager| manager.session().slots_open()), before);
            peer.put("through", &[]);
        },
    ]);
}

/// Of a long operation a part may have been asked for when the time for it is over.
pub(crate) fn nothing_begins_while_what_was_given_up_may_be_carried_out(world: &World) {
    const ROUNDS: u64 = 20;
    // A request each: more than may be under way.
    let strided = Strided {
        offset: 0,
        stride_bytes: 16,
        piece_bytes: 8,
        pieces: 200,
    };
    let many = [1; 200 * 8];
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, |slot| slot);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("through");
            let mut found = vec![0; 8];
            area.read_at(0, &mut found).unwrap();
            assert_eq!(found, [2; 8]);
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let mut initiator = initiator(peer, to);
            for _ in 0..ROUNDS {
                let long = peer.with(|manager| {
                    let mut session = manager.session();
                    session.begin_put_strided(&mut initiator, &strided, &many, Wait::Poll)
                });
                if let Ok(operation) = long {
                    finish(peer, &mut initiator, operation).unwrap();
                }
                let short = begin(peer, |session, wait| {
                    let begun = session.begin_put(&mut initiator, 0, &[2; 8], wait);
                    assert!(begun.is_err() || !session.awaits_given_up(&initiator));
                    begun
                });
                finish(peer, &mut initiator, short).unwrap();
            }
            peer.put("through", &[]);
        },
    ]);
}
