//! One-sided operations in attached regions: the same calls and results as by packets, complete at
//! once, though the owner does nothing; and packets again when the region has ended. One region
//! serves operations and messages.

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::Rights;
use hamlyn::one_sided::{
    Atomic, Change, Initiator, InitiatorOptions, Operation, OperationError, Width,
};
use hamlyn::region::SharedOptions;
use hamlyn::{Access, Area, Attached, Holders, Message, NewSlot, Region, RegionTicket, Slot, Wait};

use crate::World;
use crate::low_level::{send, target};
use crate::peer::{Peer, pattern};
use crate::pieces::pieces_of_every_shape;

const AREA: u64 = 80 << 12;

/// A slot that others may map.
fn shared(peer: &Peer, key: &str, rights: Rights) -> (Area, Slot, Region) {
    let area = Area::shared(SharedOptions::sparse(AREA)).unwrap();
    let access = match rights {
        Rights::READ => Access::ReadOnly,
        _ => Access::Writable,
    };
    let opened = peer.with(|manager| {
        let mut interface = manager.session();
        let new = NewSlot::new(&area).rights(rights);
        let slot = interface.open_slot(new).unwrap();
        let region = interface.share(&slot, 0..AREA, access, Holders::Linked);
        (slot, region.unwrap())
    });
    peer.put(key, &opened.1.ticket().to_bytes());
    (area, opened.0, opened.1)
}

/// Attaches the region that was published under that key, and opens an initiator on a part of it.
fn attach(peer: &Peer, key: &str, offset: u64, length_bytes: u64) -> (Attached, Initiator) {
    let ticket = RegionTicket::from_bytes(&peer.get(key)).unwrap();
    let to = target(peer, &ticket.ticket.narrow(offset, length_bytes).unwrap());
    let attached = peer.with(|manager| {
        let mut session = manager.session();
        session.attach(&ticket, Wait::millis(5_000)).unwrap()
    });
    let options = InitiatorOptions {
        landing_bytes: 2 * AREA,
    };
    let initiator = peer.with(|manager| manager.session().open_initiator(to, options));
    (attached, initiator.unwrap())
}

fn finish(peer: &Peer, initiator: &mut Initiator, begun: Operation) -> Result<u64, OperationError> {
    peer.with(|manager| {
        let mut interface = manager.session();
        interface.finish_word(initiator, begun, Wait::Poll)
    })
}

fn add(operand: u64) -> Atomic {
    Atomic::new(Change::Add, Width::Bits64, operand)
}

pub(crate) fn operations_in_a_region_are_complete_at_once(world: &World) {
    world.run(&[
        &|peer| {
            let (area, _slot, _region) = shared(peer, "region", Rights::ALL);
            area.write_at(0, &pattern(3, AREA as usize)).unwrap();
            peer.put("filled", &[]);
            peer.linked();
            peer.put("linked", &[]);
            // Whoever drives this side, it does nothing from here on.
            peer.get_without_polling("through");
            assert_eq!(area.load_u64(8), Ok(77));
            assert_eq!(area.load_u64(AREA - 8), Ok(78));
        },
        &|peer| {
            peer.get("filled");
            let (_region, mut initiator) = attach(peer, "region", 8, AREA - 8);
            peer.get("linked");
            let mut model = pattern(3, AREA as usize)[8..].to_vec();
            assert!(initiator.window().is_some());
            for (number, length) in [0, 1, 8, 24, 1000, 8185, 70_000].into_iter().enumerate() {
                let at = 1 + 5 * number;
                let (begun, mut found) = peer.with(|manager| {
                    let mut interface = manager.session();
                    let (offset, length_bytes) = (at as u64, length as u64);
                    let begun =
                        interface.begin_read(&mut initiator, offset, 3, length_bytes, Wait::Poll);
                    (begun.unwrap(), vec![0; length])
                });
                finish(peer, &mut initiator, begun).unwrap();
                initiator.landed(3, &mut found).unwrap();
                assert!(found == model[at..at + length], "{length}");
                let bytes = pattern(number as u64, length);
                peer.with(|manager| {
                    let mut interface = manager.session();
                    let put = interface.put(&mut initiator, at as u64, &bytes, Wait::Poll);
                    put.unwrap();
                    let mut again = vec![0; length];
                    let read = interface.read(&mut initiator, at as u64, &mut again, Wait::Poll);
                    read.unwrap();
                    assert!(again == bytes);
                });
                model[at..at + length].copy_from_slice(&bytes);
            }
            let mut word = u64::from_le_bytes(model[800..808].try_into().unwrap());
            for kind in Change::ALL {
                for width in [Width::Bits32, Width::Bits64] {
                    for operand in [0, 1, 5, u64::MAX, 0x4045_0000_4045_0000] {
                        let atomic = Atomic {
                            change: kind,
                            width,
                            operand,
                            expected: word,
                        };
                        let begun = peer.with(|manager| {
                            let mut interface = manager.session();
                            interface.begin_atomic(&mut initiator, 800, atomic, Wait::Poll)
                        });
                        let before = finish(peer, &mut initiator, begun.unwrap());
                        let kept = u64::MAX >> (64 - 8 * width.bytes());
                        assert_eq!(before, Ok(word & kept), "{atomic:?}");
                        word = word & !kept | atomic.changed(word & kept) & kept;
                    }
                }
            }
            let last = AREA - 16;
            peer.with(|manager| {
                let mut interface = manager.session();
                let initiator = &mut initiator;
                assert_eq!(interface.read_word(initiator, 800, Wait::Poll), Ok(word));
                let mut change = |offset, kind, operand| {
                    interface.change(initiator, offset, kind, operand, Wait::Poll)
                };
                change(0, Change::Swap, 70).unwrap();
                assert_eq!(change(0, Change::Add, 7), Ok(70));
                change(last, Change::Swap, 78).unwrap();
                assert_eq!(interface.outstanding(initiator), 0);
            });
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn what_does_not_fit_a_region_is_refused_by_the_same_names(world: &World) {
    world.run(&[
        &|peer| {
            let _all = shared(peer, "all", Rights::ALL);
            let _read = shared(peer, "read", Rights::READ);
            peer.get("through");
        },
        &|peer| {
            let (region_all, mut all) = attach(peer, "all", 8, 4000);
            let (_region_read, mut read) = attach(peer, "read", 0, AREA);
            assert_eq!(region_all.window().length_bytes(), AREA);
            peer.with(|manager| {
                let mut interface = manager.session();
                let refused = |refusal| Err(OperationError::Refused(refusal));
                let wait = Wait::millis(5_000);
                let misaligned = refused(Refusal::Misaligned);
                for offset in [1, 4, 7] {
                    let changed = interface.change(&mut all, offset, Change::Add, 1, wait);
                    assert_eq!(changed, misaligned);
                }
                let outside = interface.read_word(&mut all, 3993, wait);
                assert!(matches!(outside, Err(OperationError::OutsideTicket(_))));
                let outside = interface.put(&mut all, 4000, &[1], wait);
                assert!(matches!(outside, Err(OperationError::OutsideTicket(_))));
                let outside = interface.read(&mut all, u64::MAX, &mut [0; 2], wait);
                assert!(matches!(outside, Err(OperationError::OutsideTicket(_))));
                let outside = interface.begin_read(&mut all, 0, 2 * AREA - 7, 8, wait);
                assert!(matches!(
                    outside,
                    Err(OperationError::OutsideLanding { .. })
                ));
                assert_eq!(interface.read_word(&mut read, 0, wait), Ok(0));
                let no_right = refused(Refusal::NoRight);
                let changed = interface.change(&mut read, 0, Change::Add, 1, wait);
                assert_eq!(changed, no_right);
                let put = interface.put(&mut read, 0, &[1], wait);
                assert_eq!(put.map(|()| 0), no_right);
                assert_eq!(interface.read_word(&mut read, 0, wait), Ok(0));
                for initiator in [&all, &read] {
                    assert_eq!(interface.outstanding(initiator), 0);
                }
            });
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn after_revocation_operations_go_as_packets(world: &World) {
    world.run(&[
        &|peer| {
            let (area, _slot, region) = shared(peer, "region", Rights::ALL);
            peer.get("direct");
            peer.with(|manager| manager.session().revoke(&region))
                .unwrap();
            assert_eq!(area.load_u64(0), Ok(5));
            peer.put("revoked", &[]);
            peer.get("through");
            assert_eq!(area.load_u64(0), Ok(14));
        },
        &|peer| {
            let (attached, mut initiator) = attach(peer, "region", 0, AREA);
            let window = attached.window();
            let change = |initiator: &mut Initiator, operand| {
                let begun = peer.until("room", |manager, wait| {
                    let mut interface = manager.session();
                    match interface.begin_atomic(initiator, 0, add(operand), wait) {
                        Err(OperationError::WouldBlock) => None,
                        begun => Some(begun.unwrap()),
                    }
                });
                peer.until("an answer", |manager, wait| {
                    let mut interface = manager.session();
                    let finished = interface.finish_word(initiator, begun, wait);
                    (finished != Err(OperationError::TimedOut)).then_some(finished)
                })
            };
            assert_eq!(change(&mut initiator, 5), Ok(0));
            assert_eq!(window.load_u64(0), Ok(5));
            // What was begun in memory is finished as it was.
            let begun = peer.with(|manager| {
                let mut interface = manager.session();
                interface.begin_read_word(&mut initiator, 0, Wait::Poll)
            });
            peer.put("direct", &[]);
            peer.get("revoked");
            assert!(!window.lasts() && initiator.window().is_none());
            assert_eq!(finish(peer, &mut initiator, begun.unwrap()), Ok(5));
            window.store_u64(0, 1000).unwrap();
            assert_eq!(change(&mut initiator, 2), Ok(5));
            assert_eq!(change(&mut initiator, 7), Ok(7));
            // An initiator that is opened now asks from the beginning.
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn changes_of_several_holders_and_by_packets_are_all_counted(world: &World) {
    const EACH: u64 = 2_000;
    let role = |peer: &mut Peer, me: &str| {
        let (_region, mut initiator) = attach(peer, "region", 0, AREA);
        for _ in 0..EACH {
            peer.with(|manager| {
                let mut interface = manager.session();
                let changed = interface.change(&mut initiator, 8, Change::Add, 3, Wait::Poll);
                changed.unwrap();
            });
        }
        peer.put(me, &[]);
    };
    world.run(&[
        &|peer| {
            let (area, slot, _region) = shared(peer, "region", Rights::ALL);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            for key in ["one", "other", "packets"] {
                peer.get(key);
            }
            assert_eq!(area.load_u64(8), Ok(2 * EACH * 3 + 100));
        },
        &|peer| role(peer, "one"),
        &|peer| role(peer, "other"),
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let options = InitiatorOptions::default();
            let mut initiator = peer
                .with(|manager| manager.session().open_initiator(to, options))
                .unwrap();
            assert!(initiator.window().is_none());
            for _ in 0..100 {
                peer.with(|manager| {
                    let mut interface = manager.session();
                    let wait = Wait::millis(20_000);
                    let changed = interface.change(&mut initiator, 8, Change::Add, 1, wait);
                    changed.unwrap();
                });
            }
            peer.put("packets", &[]);
        },
    ]);
}

pub(crate) fn pieces_are_read_and_put_in_a_region(world: &World) {
    world.run(&[
        &|peer| {
            let (area, _slot, _region) = shared(peer, "region", Rights::ALL);
            area.write_at(0, &pattern(3, AREA as usize)).unwrap();
            peer.put("filled", &[]);
            peer.get("through");
        },
        &|peer| {
            peer.get("filled");
            let (_region, mut initiator) = attach(peer, "region", 8, AREA - 8);
            let mut all = pattern(3, AREA as usize)[8..].to_vec();
            pieces_of_every_shape(peer, &mut initiator, &mut all);
            peer.put("through", &[]);
        },
    ]);
}

pub(crate) fn one_region_serves_operations_messages_and_initiators_that_are_open(world: &World) {
    world.run(&[
        &|peer| {
            let (area, slot, _region) = shared(peer, "region", Rights::ALL);
            peer.put_ticket("ticket", &slot.fast_ticket(0, AREA).unwrap());
            peer.get("open");
            area.store_u64(0, 5).unwrap();
            peer.put("filled", &[]);
            // Nothing is received here, and yet the operation and the message are there.
            peer.get_without_polling("through");
            let mut placed = vec![0; 5_000];
            area.read_at(4096, &mut placed).unwrap();
            assert!(placed == pattern(6, 5_000));
            assert_eq!(area.load_u64(0), Ok(12));
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            let options = InitiatorOptions::default();
            let mut initiator = peer
                .with(|manager| manager.session().open_initiator(to, options))
                .unwrap();
            assert!(initiator.window().is_none());
            peer.put("open", &[]);
            peer.get("filled");
            let ticket = RegionTicket::from_bytes(&peer.get("region")).unwrap();
            let attached = peer.with(|manager| {
                let mut session = manager.session();
                session.attach(&ticket, Wait::millis(5_000)).unwrap()
            });
            // The initiator was open before, and finds it.
            assert!(initiator.window().is_some());
            peer.with(|manager| {
                let mut session = manager.session();
                let changed = session.change(&mut initiator, 0, Change::Add, 7, Wait::Poll);
                assert_eq!(changed, Ok(5));
            });
            send(peer, &to, &Message::new(&pattern(6, 5_000)).at(4096));
            assert_eq!(attached.window().load_u64(0), Ok(12));
            peer.put("through", &[]);
        },
    ]);
}
