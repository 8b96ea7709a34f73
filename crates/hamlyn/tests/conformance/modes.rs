//! Modes of operation and refusals (`Hamlyn 2.2`, `2.7`), seen through the library.

use hamlyn::engine::key::Key;
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::{Mode, Rights};
use hamlyn::engine::terminus::PostError;
use hamlyn::{Message, NewSlot, SendError, Ticket};

use crate::World;
use crate::low_level::{PACKET, RxSlot, packet_bytes, refused, send, target, try_send};

pub(crate) fn a_fast_message_carries_one_word(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot);
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 64).unwrap());
            for word in [0, 1, u64::MAX] {
                let came = rx_slot.next(peer);
                assert!(came.is_fast());
                assert_eq!((came.slot, came.word), (rx_slot.slot.name(), word));
                assert_eq!(rx_slot.bytes(5, 3), [word as u8; 3]);
                peer.put(&format!("had {word}"), &[]);
            }
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            for word in [0, 1, u64::MAX] {
                send(
                    peer,
                    &target,
                    &Message::new(&[word as u8; 3]).at(5).word(word),
                );
                peer.get(&format!("had {word}"));
            }
        },
    ]);
}

pub(crate) fn a_fast_message_is_one_packet_without_metadata(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100_000, |slot| slot);
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 100_000).unwrap());
            // What was not refused because the link had found meanwhile that it carries more.
            let mut found = rx_slot.next(peer).word;
            while found == 9 {
                found = rx_slot.next(peer).word;
            }
            assert_eq!(found, 7);
            let sent = peer.get("length");
            let sent = usize::from_le_bytes(sent.try_into().unwrap());
            assert_eq!(rx_slot.bytes(0, sent), vec![7; sent]);
            rx_slot.nothing(peer);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let longest = [8; 100_000];
            let (packet, error) = loop {
                let packet = packet_bytes(&refused(peer, &target, &Message::new(&longest).word(8)));
                assert!((1_000..=PACKET).contains(&packet), "{packet} bytes");
                let longer = Message::new(&longest[..=packet]).word(9);
                if let Err(error) = try_send(peer, &target, &longer) {
                    break (packet, error);
                }
            };
            let too_long = PostError::FastTooLong {
                length_bytes: packet as u64 + 1,
                payload_max_bytes: packet,
            };
            assert_eq!(error, SendError::Refused(too_long));
            let error = refused(peer, &target, &Message::new(b"8").metadata(b"m").word(8));
            assert!(matches!(
                error,
                SendError::Refused(PostError::FastTooLong { .. })
            ));
            peer.put("length", &packet.to_le_bytes());
            send(peer, &target, &Message::new(&vec![7; packet]).word(7));
        },
    ]);
}

pub(crate) fn a_silent_message_lands_unannounced(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            peer.put_ticket("fast", &rx_slot.slot.fast_ticket(0, 64).unwrap());
            // Sent last, announced first; what came before it is there.
            assert_eq!(rx_slot.next(peer).word, 3);
            if !peer.is_in_order {
                peer.until("the silent ones", |manager, _| {
                    manager.session().poll();
                    (rx_slot.bytes(0, 3) == [1, 2, 3]).then_some(())
                });
            }
            assert_eq!(rx_slot.bytes(0, 3), [1, 2, 3]);
            rx_slot.nothing(peer);
        },
        &|peer| {
            let plain = target(peer, &peer.get_ticket("ticket"));
            let fast = target(peer, &peer.get_ticket("fast"));
            send(peer, &plain, &Message::new(&[1]).silent());
            send(peer, &fast, &Message::new(&[2]).at(1).word(2).silent());
            send(peer, &fast, &Message::new(&[3]).at(2).word(3));
        },
    ]);
}

pub(crate) fn a_paranoid_entry_enforces_its_limits_and_key(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100, |slot| slot.mode(Mode::Paranoid).entries(2));
            let entry = |index| rx_slot.slot.metadata().unwrap().entry(index).unwrap();
            let keys = peer.with(|manager| [0; 2].map(|_| manager.session().new_key().unwrap()));
            entry(0).permit(Permission {
                key: keys[0],
                low: 0,
                high: 50,
            });
            entry(1).permit(Permission {
                key: keys[1],
                low: 50,
                high: 100,
            });
            assert!(
                rx_slot.slot.ticket(0, 0, 51).is_err(),
                "beyond the entry's limits"
            );
            peer.put_ticket("first", &rx_slot.slot.ticket(0, 0, 50).unwrap());
            peer.put_ticket("second", &rx_slot.slot.ticket(1, 50, 50).unwrap());
            rx_slot.refused(peer, Refusal::OutOfLimits, 1);
            rx_slot.refused(peer, Refusal::BadEntryKey, 1);
            peer.put("next", &[]);
            // Not one-shot: an entry takes many messages.
            for (number, index) in [0, 1, 1].into_iter().enumerate() {
                assert_eq!(rx_slot.next(peer).metadata_index, index);
                peer.put(&format!("had {number}"), &[]);
            }
            // A plain store revokes the one and not the other.
            let key = peer.with(|manager| manager.session().new_key().unwrap());
            rx_slot
                .slot
                .metadata()
                .unwrap()
                .entry(0)
                .unwrap()
                .permit(Permission {
                    key,
                    low: 0,
                    high: 50,
                });
            peer.put("revoked", &[]);
            assert_eq!(rx_slot.next(peer).metadata_index, 1);
            rx_slot.refused(peer, Refusal::BadEntryKey, 2);
            assert_eq!(rx_slot.bytes(0, 100), [&[1; 50][..], &[2; 50]].concat());
        },
        &|peer| {
            let (first, second) = (peer.get_ticket("first"), peer.get_ticket("second"));
            let beyond = target(
                peer,
                &Ticket {
                    length_bytes: 51,
                    ..first
                },
            );
            send(peer, &beyond, &Message::new(&[9; 51]));
            let crossed = target(
                peer,
                &Ticket {
                    metadata_index: 1,
                    base: 50,
                    ..first
                },
            );
            send(peer, &crossed, &Message::new(&[9]));
            peer.get("next");
            let (first, second) = (target(peer, &first), target(peer, &second));
            send(peer, &first, &Message::new(&[1; 50]));
            peer.keep_order("had 0");
            send(peer, &second, &Message::new(&[9; 50]));
            peer.keep_order("had 1");
            send(peer, &second, &Message::new(&[2; 50]));
            peer.get("revoked");
            send(peer, &first, &Message::new(&[9; 50]));
            send(peer, &second, &Message::new(&[2]));
        },
    ]);
}

pub(crate) fn a_paranoid_slot_takes_no_fast_message(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.mode(Mode::Paranoid).entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 64).unwrap());
            rx_slot.refused(peer, Refusal::FastToParanoid, 1);
            rx_slot.nothing(peer);
            peer.put("done", &[]);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            send(peer, &target, &Message::new(b"x"));
            peer.get("done");
        },
    ]);
}

pub(crate) fn a_one_shot_entry_takes_one_message(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot =
                RxSlot::new(peer, 64, |slot| slot.mode(Mode::ParanoidOneShot).entries(1));
            let key = peer.with(|manager| manager.session().new_key().unwrap());
            let entry = || rx_slot.slot.metadata().unwrap().entry(0).unwrap();
            entry().permit(Permission {
                key,
                low: 0,
                high: 64,
            });
            let ticket = rx_slot.slot.ticket(0, 0, 64).unwrap();
            entry().arm();
            peer.put_ticket("ticket", &ticket);
            rx_slot.next(peer);
            peer.put("had it", &[]);
            // The replay is refused, and the bytes of the first are still there.
            rx_slot.refused(peer, Refusal::EntrySpent, 1);
            assert_eq!(rx_slot.bytes(0, 5), b"first");
            rx_slot.nothing(peer);
            rx_slot.slot.metadata().unwrap().entry(0).unwrap().arm();
            peer.put("armed", &[]);
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(0, 5), b"third");
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            send(peer, &target, &Message::new(b"first"));
            peer.keep_order("had it");
            send(peer, &target, &Message::new(b"later"));
            peer.get("armed");
            send(peer, &target, &Message::new(b"third"));
        },
    ]);
}

pub(crate) fn a_peer_with_an_old_key_is_refused(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("old", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.next(peer);
            peer.with(|manager| manager.session().rekey_slot(&mut rx_slot.slot).unwrap());
            peer.put_ticket("new", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(0, 3), b"new");
            rx_slot.refused(peer, Refusal::BadKey, 1);
        },
        &|peer| {
            let old = target(peer, &peer.get_ticket("old"));
            send(peer, &old, &Message::new(b"may"));
            let new = target(peer, &peer.get_ticket("new"));
            send(peer, &old, &Message::new(b"old"));
            send(peer, &new, &Message::new(b"new"));
        },
    ]);
}

pub(crate) fn a_revoked_slot_refuses_until_rekeyed(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.with(|manager| manager.session().revoke_slot(&rx_slot.slot).unwrap());
            peer.put_ticket("old", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.refused(peer, Refusal::SlotRevoked, 1);
            let info = peer.with(|manager| manager.session().slot_info(&rx_slot.slot).unwrap());
            assert!(info.revoked);
            peer.with(|manager| manager.session().rekey_slot(&mut rx_slot.slot).unwrap());
            peer.put_ticket("new", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(0, 3), b"new");
        },
        &|peer| {
            send(
                peer,
                &target(peer, &peer.get_ticket("old")),
                &Message::new(b"old"),
            );
            send(
                peer,
                &target(peer, &peer.get_ticket("new")),
                &Message::new(b"new"),
            );
        },
    ]);
}

pub(crate) fn a_closed_slot_refuses_though_its_place_is_used_again(world: &World) {
    world.run(&[
        &|peer| {
            let rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            let RxSlot { area, slot, queue } = rx_slot;
            let old = slot.name();
            peer.put_ticket("old", &slot.ticket(0, 0, 64).unwrap());
            let slot = peer.with(|manager| {
                manager.session().close_slot(slot).unwrap();
                manager
                    .session()
                    .open_slot(NewSlot::new(&area).entries(1).queue(&queue))
                    .unwrap()
            });
            assert_eq!(old.index(), slot.name().index());
            assert_ne!(old, slot.name());
            peer.put_ticket("new", &slot.ticket(0, 0, 64).unwrap());
            let mut rx_slot = RxSlot { area, slot, queue };
            assert_eq!(rx_slot.next(peer).slot, rx_slot.slot.name());
            assert_eq!(rx_slot.bytes(0, 3), b"new");
            peer.until("the refusal", |manager, _| {
                if !peer.is_in_order {
                    manager.session().poll();
                }
                let refused = manager.session().refusals().count(Refusal::SlotClosed);
                assert!(
                    refused == 1 || refused == 0 && !peer.is_in_order,
                    "{refused}"
                );
                (refused == 1).then_some(())
            });
        },
        &|peer| {
            let old = target(peer, &peer.get_ticket("old"));
            let new = target(peer, &peer.get_ticket("new"));
            send(peer, &old, &Message::new(b"old"));
            send(peer, &new, &Message::new(b"new"));
        },
    ]);
}

pub(crate) fn a_slot_without_the_right_to_write_discards(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |mut slot| {
                slot.rights = Rights::NONE;
                slot.entries(1)
            });
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.refused(peer, Refusal::NoRight, 1);
            rx_slot.nothing(peer);
            assert_eq!(rx_slot.bytes(0, 1), [0]);
            peer.put("done", &[]);
        },
        &|peer| {
            send(
                peer,
                &target(peer, &peer.get_ticket("ticket")),
                &Message::new(b"x"),
            );
            peer.get("done");
        },
    ]);
}

pub(crate) fn a_forged_key_is_refused_and_counted(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.refused(peer, Refusal::BadKey, 64 + 2);
            peer.put("refused", &[]);
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(0, 2), b"ok");
            let total = peer.with(|manager| manager.session().refusals().total());
            assert_eq!(total, 66);
        },
        &|peer| {
            let honest = peer.get_ticket("ticket");
            let bits = honest.key.to_bits();
            // Each single bit counts.
            for forged in (0..64).map(|bit| bits ^ 1 << bit).chain([!bits, 0]) {
                let ticket = Ticket {
                    key: Key::from_bits(forged),
                    ..honest
                };
                send(peer, &target(peer, &ticket), &Message::new(b"no"));
            }
            peer.get("refused");
            send(peer, &target(peer, &honest), &Message::new(b"ok"));
        },
    ]);
}

pub(crate) fn a_forged_ticket_beyond_the_slot_is_out_of_bounds(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 200, |slot| slot.range(0..100).entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 100).unwrap());
            rx_slot.refused(peer, Refusal::OutOfBounds, 2);
            rx_slot.refused(peer, Refusal::NoMetadataEntry, 1);
            rx_slot.nothing(peer);
            assert_eq!(rx_slot.bytes(0, 200), [0; 200]);
            peer.put("done", &[]);
        },
        &|peer| {
            let honest = peer.get_ticket("ticket");
            let longer = Ticket {
                length_bytes: 101,
                ..honest
            };
            send(peer, &target(peer, &longer), &Message::new(&[1; 101]));
            let after = Ticket {
                base: 100,
                ..honest
            };
            send(peer, &target(peer, &after), &Message::new(&[1]));
            let elsewhere = Ticket {
                metadata_index: 1,
                ..honest
            };
            send(peer, &target(peer, &elsewhere), &Message::new(&[1]));
            peer.get("done");
        },
    ]);
}
