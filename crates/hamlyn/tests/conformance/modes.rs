//! Modes of operation and refusals (`Hamlyn 2.2`, `2.7`), seen through the library.

use hamlyn::engine::key::Key;
use hamlyn::engine::metadata::Permission;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::{Mode, Rights};
use hamlyn::engine::terminus::PostError;
use hamlyn::{Message, NewSlot, SendError, Ticket};

use crate::World;
use crate::low_level::{Inlet, PACKET, packet_bytes, refused, send, target};

pub(crate) fn a_fast_message_carries_one_word(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot);
            party.tell_ticket("ticket", &inlet.slot.fast_ticket(0, 64).unwrap());
            for word in [0, 1, u64::MAX] {
                let came = inlet.next(party);
                assert!(came.is_fast());
                assert_eq!((came.slot, came.word), (inlet.slot.name(), word));
                assert_eq!(inlet.bytes(5, 3), [word as u8; 3]);
                party.tell(&format!("had {word}"), &[]);
            }
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
            for word in [0, 1, u64::MAX] {
                send(
                    party,
                    &target,
                    &Message::new(&[word as u8; 3]).at(5).word(word),
                );
                party.hear(&format!("had {word}"));
            }
        },
    ]);
}

pub(crate) fn a_fast_message_is_one_packet_without_metadata(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 100_000, |slot| slot);
            party.tell_ticket("ticket", &inlet.slot.fast_ticket(0, 100_000).unwrap());
            assert_eq!(inlet.next(party).word, 7);
            let sent = party.hear("length");
            let sent = usize::from_le_bytes(sent.try_into().unwrap());
            assert_eq!(inlet.bytes(0, sent), vec![7; sent]);
            inlet.nothing(party);
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
            let longest = [8; 100_000];
            let packet = packet_bytes(&refused(party, &target, &Message::new(&longest).word(8)));
            assert!((1_000..=PACKET).contains(&packet), "{packet} bytes");
            let error = refused(party, &target, &Message::new(&longest[..=packet]).word(8));
            let too_long = PostError::FastTooLong {
                length_bytes: packet as u64 + 1,
                payload_max_bytes: packet,
            };
            assert_eq!(error, SendError::Refused(too_long));
            let error = refused(party, &target, &Message::new(b"8").metadata(b"m").word(8));
            assert!(matches!(
                error,
                SendError::Refused(PostError::FastTooLong { .. })
            ));
            party.tell("length", &packet.to_le_bytes());
            send(party, &target, &Message::new(&vec![7; packet]).word(7));
        },
    ]);
}

pub(crate) fn a_silent_message_lands_unannounced(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot.entries(1));
            party.tell_ticket("ticket", &inlet.slot.ticket(0, 0, 64).unwrap());
            party.tell_ticket("fast", &inlet.slot.fast_ticket(0, 64).unwrap());
            // Sent last, announced first; what came before it is there.
            assert_eq!(inlet.next(party).word, 3);
            if !party.is_in_order {
                party.until("the silent ones", |manager, _| {
                    manager.interface().poll();
                    (inlet.bytes(0, 3) == [1, 2, 3]).then_some(())
                });
            }
            assert_eq!(inlet.bytes(0, 3), [1, 2, 3]);
            inlet.nothing(party);
        },
        &|party| {
            let plain = target(party, &party.hear_ticket("ticket"));
            let fast = target(party, &party.hear_ticket("fast"));
            send(party, &plain, &Message::new(&[1]).silent());
            send(party, &fast, &Message::new(&[2]).at(1).word(2).silent());
            send(party, &fast, &Message::new(&[3]).at(2).word(3));
        },
    ]);
}

pub(crate) fn a_paranoid_entry_enforces_its_limits_and_key(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 100, |slot| slot.mode(Mode::Paranoid).entries(2));
            let entry = |index| inlet.slot.metadata().unwrap().entry(index).unwrap();
            let keys = party.with(|manager| [0; 2].map(|_| manager.interface().new_key().unwrap()));
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
                inlet.slot.ticket(0, 0, 51).is_err(),
                "beyond the entry's limits"
            );
            party.tell_ticket("first", &inlet.slot.ticket(0, 0, 50).unwrap());
            party.tell_ticket("second", &inlet.slot.ticket(1, 50, 50).unwrap());
            inlet.refused(party, Refusal::OutOfLimits, 1);
            inlet.refused(party, Refusal::BadEntryKey, 1);
            party.tell("next", &[]);
            // Not one-shot: an entry takes many messages.
            for (number, index) in [0, 1, 1].into_iter().enumerate() {
                assert_eq!(inlet.next(party).metadata_index, index);
                party.tell(&format!("had {number}"), &[]);
            }
            // A plain store revokes the one and not the other.
            let key = party.with(|manager| manager.interface().new_key().unwrap());
            inlet
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
            party.tell("revoked", &[]);
            assert_eq!(inlet.next(party).metadata_index, 1);
            inlet.refused(party, Refusal::BadEntryKey, 2);
            assert_eq!(inlet.bytes(0, 100), [&[1; 50][..], &[2; 50]].concat());
        },
        &|party| {
            let (first, second) = (party.hear_ticket("first"), party.hear_ticket("second"));
            let beyond = target(
                party,
                &Ticket {
                    length_bytes: 51,
                    ..first
                },
            );
            send(party, &beyond, &Message::new(&[9; 51]));
            let crossed = target(
                party,
                &Ticket {
                    metadata_index: 1,
                    base: 50,
                    ..first
                },
            );
            send(party, &crossed, &Message::new(&[9]));
            party.hear("next");
            let (first, second) = (target(party, &first), target(party, &second));
            send(party, &first, &Message::new(&[1; 50]));
            party.keep_order("had 0");
            send(party, &second, &Message::new(&[9; 50]));
            party.keep_order("had 1");
            send(party, &second, &Message::new(&[2; 50]));
            party.hear("revoked");
            send(party, &first, &Message::new(&[9; 50]));
            send(party, &second, &Message::new(&[2]));
        },
    ]);
}

pub(crate) fn a_paranoid_slot_takes_no_fast_message(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot.mode(Mode::Paranoid).entries(1));
            party.tell_ticket("ticket", &inlet.slot.fast_ticket(0, 64).unwrap());
            inlet.refused(party, Refusal::FastToParanoid, 1);
            inlet.nothing(party);
            party.tell("done", &[]);
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
            send(party, &target, &Message::new(b"x"));
            party.hear("done");
        },
    ]);
}

pub(crate) fn a_one_shot_entry_takes_one_message(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| {
                slot.mode(Mode::ParanoidOneShot).entries(1)
            });
            let key = party.with(|manager| manager.interface().new_key().unwrap());
            let entry = || inlet.slot.metadata().unwrap().entry(0).unwrap();
            entry().permit(Permission {
                key,
                low: 0,
                high: 64,
            });
            let ticket = inlet.slot.ticket(0, 0, 64).unwrap();
            entry().arm();
            party.tell_ticket("ticket", &ticket);
            inlet.next(party);
            party.tell("had it", &[]);
            // The replay is refused, and the bytes of the first are still there.
            inlet.refused(party, Refusal::EntrySpent, 1);
            assert_eq!(inlet.bytes(0, 5), b"first");
            inlet.nothing(party);
            inlet.slot.metadata().unwrap().entry(0).unwrap().arm();
            party.tell("armed", &[]);
            inlet.next(party);
            assert_eq!(inlet.bytes(0, 5), b"third");
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
            send(party, &target, &Message::new(b"first"));
            party.keep_order("had it");
            send(party, &target, &Message::new(b"later"));
            party.hear("armed");
            send(party, &target, &Message::new(b"third"));
        },
    ]);
}

pub(crate) fn whoever_holds_an_old_key_is_refused(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot.entries(1));
            party.tell_ticket("old", &inlet.slot.ticket(0, 0, 64).unwrap());
            inlet.next(party);
            party.with(|manager| manager.interface().rekey_slot(&mut inlet.slot).unwrap());
            party.tell_ticket("new", &inlet.slot.ticket(0, 0, 64).unwrap());
            inlet.next(party);
            assert_eq!(inlet.bytes(0, 3), b"new");
            inlet.refused(party, Refusal::BadKey, 1);
        },
        &|party| {
            let old = target(party, &party.hear_ticket("old"));
            send(party, &old, &Message::new(b"may"));
            let new = target(party, &party.hear_ticket("new"));
            send(party, &old, &Message::new(b"old"));
            send(party, &new, &Message::new(b"new"));
        },
    ]);
}

pub(crate) fn a_revoked_slot_refuses_until_rekeyed(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot.entries(1));
            party.with(|manager| manager.interface().revoke_slot(&inlet.slot).unwrap());
            party.tell_ticket("old", &inlet.slot.ticket(0, 0, 64).unwrap());
            inlet.refused(party, Refusal::SlotRevoked, 1);
            let info = party.with(|manager| manager.interface().slot_info(&inlet.slot).unwrap());
            assert!(info.revoked);
            party.with(|manager| manager.interface().rekey_slot(&mut inlet.slot).unwrap());
            party.tell_ticket("new", &inlet.slot.ticket(0, 0, 64).unwrap());
            inlet.next(party);
            assert_eq!(inlet.bytes(0, 3), b"new");
        },
        &|party| {
            send(
                party,
                &target(party, &party.hear_ticket("old")),
                &Message::new(b"old"),
            );
            send(
                party,
                &target(party, &party.hear_ticket("new")),
                &Message::new(b"new"),
            );
        },
    ]);
}

pub(crate) fn a_closed_slot_refuses_though_its_place_is_used_again(world: &World) {
    world.run(&[
        &|party| {
            let inlet = Inlet::new(party, 64, |slot| slot.entries(1));
            let Inlet { area, slot, queue } = inlet;
            let old = slot.name();
            party.tell_ticket("old", &slot.ticket(0, 0, 64).unwrap());
            let slot = party.with(|manager| {
                manager.interface().close_slot(slot).unwrap();
                manager
                    .interface()
                    .open_slot(NewSlot::new(&area).entries(1).queue(&queue))
                    .unwrap()
            });
            assert_eq!(old.index(), slot.name().index());
            assert_ne!(old, slot.name());
            party.tell_ticket("new", &slot.ticket(0, 0, 64).unwrap());
            let mut inlet = Inlet { area, slot, queue };
            assert_eq!(inlet.next(party).slot, inlet.slot.name());
            assert_eq!(inlet.bytes(0, 3), b"new");
            party.until("the refusal", |manager, _| {
                if !party.is_in_order {
                    manager.interface().poll();
                }
                let refused = manager.interface().refusals().count(Refusal::SlotClosed);
                assert!(
                    refused == 1 || refused == 0 && !party.is_in_order,
                    "{refused}"
                );
                (refused == 1).then_some(())
            });
        },
        &|party| {
            let old = target(party, &party.hear_ticket("old"));
            let new = target(party, &party.hear_ticket("new"));
            send(party, &old, &Message::new(b"old"));
            send(party, &new, &Message::new(b"new"));
        },
    ]);
}

pub(crate) fn a_slot_without_the_right_to_write_discards(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |mut slot| {
                slot.rights = Rights::NONE;
                slot.entries(1)
            });
            party.tell_ticket("ticket", &inlet.slot.ticket(0, 0, 64).unwrap());
            inlet.refused(party, Refusal::NoRight, 1);
            inlet.nothing(party);
            assert_eq!(inlet.bytes(0, 1), [0]);
            party.tell("done", &[]);
        },
        &|party| {
            send(
                party,
                &target(party, &party.hear_ticket("ticket")),
                &Message::new(b"x"),
            );
            party.hear("done");
        },
    ]);
}

pub(crate) fn a_forged_key_is_refused_and_counted(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot.entries(1));
            party.tell_ticket("ticket", &inlet.slot.ticket(0, 0, 64).unwrap());
            inlet.refused(party, Refusal::BadKey, 64 + 2);
            party.tell("refused", &[]);
            inlet.next(party);
            assert_eq!(inlet.bytes(0, 2), b"ok");
            let total = party.with(|manager| manager.interface().refusals().total());
            assert_eq!(total, 66);
        },
        &|party| {
            let honest = party.hear_ticket("ticket");
            let bits = honest.key.to_bits();
            // Each single bit counts.
            for forged in (0..64).map(|bit| bits ^ 1 << bit).chain([!bits, 0]) {
                let ticket = Ticket {
                    key: Key::from_bits(forged),
                    ..honest
                };
                send(party, &target(party, &ticket), &Message::new(b"no"));
            }
            party.hear("refused");
            send(party, &target(party, &honest), &Message::new(b"ok"));
        },
    ]);
}

pub(crate) fn a_forged_ticket_beyond_the_slot_is_out_of_bounds(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 200, |slot| slot.range(0..100).entries(1));
            party.tell_ticket("ticket", &inlet.slot.ticket(0, 0, 100).unwrap());
            inlet.refused(party, Refusal::OutOfBounds, 2);
            inlet.refused(party, Refusal::NoMetadataEntry, 1);
            inlet.nothing(party);
            assert_eq!(inlet.bytes(0, 200), [0; 200]);
            party.tell("done", &[]);
        },
        &|party| {
            let honest = party.hear_ticket("ticket");
            let longer = Ticket {
                length_bytes: 101,
                ..honest
            };
            send(party, &target(party, &longer), &Message::new(&[1; 101]));
            let after = Ticket {
                base: 100,
                ..honest
            };
            send(party, &target(party, &after), &Message::new(&[1]));
            let elsewhere = Ticket {
                metadata_index: 1,
                ..honest
            };
            send(party, &target(party, &elsewhere), &Message::new(&[1]));
            party.hear("done");
        },
    ]);
}
