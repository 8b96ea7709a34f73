//! Every reason for which a packet is discarded, by itself; its counters; and the
//! order of the checks (Hamlyn 2.2, 2.7; ARCHITECTURE.md).

use crate::host::{Packet, header};
use crate::scene::{ENTRY_KEY, KEY, Scene};
use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::metadata::Permission;
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, Rights, SlotError, SlotOptions};

#[test]
fn the_scene_lets_in_what_is_right() {
    for mode in [Mode::Normal, Mode::Paranoid, Mode::ParanoidOneShot] {
        let mut scene = Scene::new(mode);
        assert_eq!(
            scene.receive(scene.welcome(), &[7; 4]),
            Ok(Received::Complete)
        );
        assert_eq!(scene.area.contents()[104..108], [7; 4]);
        assert_eq!(
            scene
                .area
                .contents()
                .iter()
                .filter(|&&byte| byte != 0)
                .count(),
            4
        );
        assert!(scene.reader.pop().unwrap().is_some());
        assert_eq!(scene.receiver.refusals().total(), 0);
    }
}

#[test]
fn interface_not_set_up_refuses() {
    let mut scene = Scene::new(Mode::Normal);
    scene.receiver = Receiver::new(None);
    scene.refuses_header(scene.welcome(), Refusal::NotSetUp);
}

#[test]
fn lapsed_handshake_refuses() {
    let mut scene = Scene::new(Mode::Normal);
    scene.receiver.tick(100);
    scene.refuses_header(scene.welcome(), Refusal::HandshakeLapsed);
}

#[test]
fn slot_never_opened_refuses() {
    let mut scene = Scene::new(Mode::Normal);
    for index in [1, 7, 8, 9, 0x7FFF, 0x8000, 0xFFFF] {
        let slot = SlotName::new(index, 0);
        scene.refuses_header(
            Header {
                slot,
                ..scene.welcome()
            },
            Refusal::NoSuchSlot,
        );
    }
}

#[test]
fn closed_slot_and_wrong_generation_refuse() {
    let mut scene = Scene::new(Mode::Normal);
    for generation in [1, 2, 0xFFFF] {
        let slot = SlotName::new(scene.slot.index(), generation);
        scene.refuses_header(
            Header {
                slot,
                ..scene.welcome()
            },
            Refusal::SlotClosed,
        );
    }
    scene.receiver.close_slot(scene.slot).unwrap();
    scene.refuses_header(scene.welcome(), Refusal::SlotClosed);
}

#[test]
fn revoked_slot_refuses_until_rekeyed() {
    let mut scene = Scene::new(Mode::Normal);
    scene.receiver.revoke_slot(scene.slot).unwrap();
    assert!(scene.receiver.slot_info(scene.slot).unwrap().revoked);
    scene.refuses_header(scene.welcome(), Refusal::SlotRevoked);
    scene
        .receiver
        .rekey_slot(scene.slot, Key::from_bits(9))
        .unwrap();
    scene.refuses_header(scene.welcome(), Refusal::BadKey);
    let header = Header {
        key: Key::from_bits(9),
        ..scene.welcome()
    };
    assert_eq!(scene.receive(header, &[1]), Ok(Received::Complete));
}

#[test]
fn wrong_key_in_any_single_bit_refuses() {
    for (mode, reason) in [
        (Mode::Normal, Refusal::BadKey),
        (Mode::Paranoid, Refusal::BadEntryKey),
        (Mode::ParanoidOneShot, Refusal::BadEntryKey),
    ] {
        let mut scene = Scene::new(mode);
        for bit in 0..64 {
            let key = Key::from_bits(scene.key ^ 1 << bit);
            scene.refuses_header(
                Header {
                    key,
                    ..scene.welcome()
                },
                reason,
            );
        }
    }
}

#[test]
fn data_beyond_the_slot_refuse_to_the_byte() {
    let mut scene = Scene::new(Mode::Normal);
    let at = |offset| Header {
        offset,
        ..scene.welcome()
    };
    let (last, beyond, far, over) = (at(124), at(125), at(129), at(u64::MAX));
    let (overflow, wrap) = (at(u64::MAX - 3), at(u64::MAX - 2));
    // Base plus offset would come out inside the slot again if it wrapped around.
    let (wraps_into_slot, wraps_into_area) = (at(u64::MAX - 63), at(u64::MAX - 127));
    for header in [
        beyond,
        far,
        over,
        overflow,
        wrap,
        wraps_into_slot,
        wraps_into_area,
    ] {
        scene.refuses_header(header, Refusal::OutOfBounds);
    }
    assert_eq!(scene.receive(last, &[7; 4]), Ok(Received::Complete));
    assert_eq!(scene.area.contents()[188..193], [7, 7, 7, 7, 0]);
    scene.reader.pop().unwrap().unwrap();
    let long = Header {
        length_bytes: u32::MAX,
        ..scene.welcome()
    };
    scene.refuses(
        &Packet {
            header: long,
            metadata: vec![],
            data: vec![],
        },
        Refusal::OutOfBounds,
    );
}

#[test]
fn empty_message_at_the_end_fits_and_beyond_it_does_not() {
    let mut scene = Scene::new(Mode::Normal);
    let at = |offset| Header {
        offset,
        ..scene.welcome()
    };
    let (inside, end, beyond, last) = (at(5), at(128), at(129), at(u64::MAX));
    assert_eq!(scene.receive(inside, &[]), Ok(Received::Complete));
    assert_eq!(scene.receive(end, &[]), Ok(Received::Complete));
    assert_eq!(scene.area.contents(), [0; 256]);
    scene.reader.pop().unwrap().unwrap();
    scene.reader.pop().unwrap().unwrap();
    scene.refuses(&Packet::new(beyond, &[], &[]), Refusal::OutOfBounds);
    scene.refuses(&Packet::new(last, &[], &[]), Refusal::OutOfBounds);
}

#[test]
fn missing_metadata_entry_refuses() {
    let mut scene = Scene::new(Mode::Normal);
    for metadata_index in [4, 5, 0x7FFF, 0xFFFE] {
        scene.refuses_header(
            Header {
                metadata_index,
                ..scene.welcome()
            },
            Refusal::NoMetadataEntry,
        );
    }
    let bare = scene
        .receiver
        .open_slot(SlotOptions {
            area: scene.area.clone(),
            base: 0,
            length_bytes: 256,
            key: Key::from_bits(KEY),
            rights: Rights::WRITE,
            mode: Mode::Normal,
            metadata: None,
            queue: None,
            counting: Counting::Bits32,
        })
        .unwrap();
    scene.refuses_header(
        Header {
            slot: bare,
            ..scene.welcome()
        },
        Refusal::NoMetadataEntry,
    );
    let fast = Header {
        slot: bare,
        metadata_index: 0xFFFF,
        ..scene.welcome()
    };
    assert_eq!(scene.receive(fast, &[1]), Ok(Received::Complete));
}

#[test]
fn fast_mode_to_a_paranoid_slot_refuses() {
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        let mut scene = Scene::new(mode);
        scene.refuses_header(
            Header {
                metadata_index: 0xFFFF,
                ..scene.welcome()
            },
            Refusal::FastToParanoid,
        );
    }
}

#[test]
fn data_outside_the_entry_limits_refuse_to_the_byte() {
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        let mut scene = Scene::new(mode);
        for offset in [0, 31, 93, 96, 124] {
            scene.refuses_header(
                Header {
                    offset,
                    ..scene.welcome()
                },
                Refusal::OutOfLimits,
            );
        }
        let last = Header {
            offset: 92,
            ..scene.welcome()
        };
        assert_eq!(scene.receive(last, &[7; 4]), Ok(Received::Complete));
        scene.metadata.entry(0).unwrap().arm();
        let first = Header {
            offset: 32,
            ..scene.welcome()
        };
        assert_eq!(scene.receive(first, &[7; 4]), Ok(Received::Complete));
    }
}

#[test]
fn entry_limits_wider_than_the_slot_open_nothing_beyond_it() {
    let mut scene = Scene::new(Mode::Paranoid);
    let entry = scene.metadata.entry(0).unwrap();
    entry.permit(Permission {
        key: Key::from_bits(ENTRY_KEY),
        low: 0,
        high: u64::MAX,
    });
    scene.refuses_header(
        Header {
            offset: 125,
            ..scene.welcome()
        },
        Refusal::OutOfBounds,
    );
    scene.refuses_header(
        Header {
            offset: u64::MAX - 3,
            ..scene.welcome()
        },
        Refusal::OutOfBounds,
    );
}

#[test]
fn entry_whose_limits_cross_lets_in_nothing_not_even_empty_messages() {
    let mut scene = Scene::new(Mode::Paranoid);
    let entry = scene.metadata.entry(0).unwrap();
    entry.permit(Permission {
        key: Key::from_bits(ENTRY_KEY),
        low: 41,
        high: 40,
    });
    for offset in 39..43 {
        let header = Header {
            offset,
            ..scene.welcome()
        };
        scene.refuses(&Packet::new(header, &[], &[]), Refusal::OutOfLimits);
    }
}

#[test]
fn the_slot_key_does_not_open_an_entry_of_a_paranoid_slot() {
    let mut scene = Scene::new(Mode::Paranoid);
    scene.refuses_header(
        Header {
            key: Key::from_bits(KEY),
            ..scene.welcome()
        },
        Refusal::BadEntryKey,
    );
}

#[test]
fn one_shot_entry_refuses_second_message() {
    let mut scene = Scene::new(Mode::ParanoidOneShot);
    assert_eq!(
        scene.receive(scene.welcome(), &[1; 4]),
        Ok(Received::Complete)
    );
    scene.reader.pop().unwrap().unwrap();
    scene.refuses_header(scene.welcome(), Refusal::EntrySpent);
    scene.refuses_header(scene.welcome(), Refusal::EntrySpent);
    scene.metadata.entry(0).unwrap().arm();
    assert_eq!(
        scene.receive(scene.welcome(), &[2; 4]),
        Ok(Received::Complete)
    );
}

#[test]
fn one_shot_entry_never_armed_refuses() {
    let mut scene = Scene::new(Mode::ParanoidOneShot);
    scene.metadata.entry(0).unwrap().disarm();
    scene.refuses_header(scene.welcome(), Refusal::EntrySpent);
}

#[test]
fn slot_without_the_right_refuses() {
    let mut scene = Scene::new(Mode::Normal);
    let sealed = scene
        .receiver
        .open_slot(SlotOptions {
            area: scene.area.clone(),
            base: 0,
            length_bytes: 256,
            key: Key::from_bits(KEY),
            rights: Rights::NONE,
            mode: Mode::Normal,
            metadata: Some(scene.metadata.clone()),
            queue: None,
            counting: Counting::Bits32,
        })
        .unwrap();
    scene.slot = sealed;
    scene.refuses_header(scene.welcome(), Refusal::NoRight);
    let empty = Packet::new(scene.welcome(), &[], &[]);
    scene.refuses(&empty, Refusal::NoRight);
}

#[test]
fn unknown_kinds_and_flags_refuse() {
    let mut scene = Scene::new(Mode::Normal);
    for value in 1..=u8::MAX {
        // Messages to ports and requests for one-sided operations have tests of their own.
        if !Kind(value).is_request() && Kind(value) != Kind::MESSAGE {
            scene.refuses_header(
                Header {
                    kind: Kind(value),
                    ..scene.welcome()
                },
                Refusal::UnknownKind,
            );
        }
        if value > 1 {
            let known = value & !Flags::SILENT.with(Flags::PLACED).0 == 0;
            scene.refuses_header(
                Header {
                    flags: Flags(value),
                    ..scene.welcome()
                },
                if known {
                    Refusal::NotGranted
                } else {
                    Refusal::UnknownFlag
                },
            );
        }
    }
}

#[test]
fn metadata_over_60_bytes_or_beside_fast_mode_refuse() {
    let mut scene = Scene::new(Mode::Normal);
    for length in [61_u8, 64, 255] {
        let packet = Packet::new(scene.welcome(), &vec![1; length.into()], &[1]);
        scene.refuses(&packet, Refusal::BadMetadata);
    }
    let fast = Header {
        metadata_index: 0xFFFF,
        ..scene.welcome()
    };
    scene.refuses(&Packet::new(fast, &[1], &[1]), Refusal::BadMetadata);
}

#[test]
fn place_in_the_applications_hands_refuses() {
    let mut scene = Scene::new(Mode::ParanoidOneShot);
    scene.area.in_use.borrow_mut().push(107..108);
    scene.refuses_header(scene.welcome(), Refusal::PlaceInUse);
    scene.area.in_use.borrow_mut().clear();
    assert_eq!(
        scene.receive(scene.welcome(), &[1; 4]),
        Ok(Received::Complete)
    );
    assert_eq!(*scene.area.completed.borrow(), [(64 + 32, 64 + 96)]);
}

#[test]
fn area_that_shrank_refuses_by_itself() {
    let mut scene = Scene::new(Mode::Normal);
    scene.area.bytes.borrow_mut().truncate(100);
    scene.refuses_header(scene.welcome(), Refusal::OutOfBounds);
}

/// A packet that is wrong in two ways reports the earlier one; here every pair of
/// neighbours in the order that ARCHITECTURE.md gives, with all later faults in the packet too.
#[test]
fn checks_happen_in_the_promised_order() {
    use Refusal::*;
    for mode in [Mode::Normal, Mode::ParanoidOneShot] {
        let mut scene = Scene::new(mode);
        scene.metadata.entry(0).unwrap().disarm();
        scene.area.in_use.borrow_mut().push(0..256);
        let sealed = SlotOptions {
            area: scene.area.clone(),
            base: 64,
            length_bytes: 128,
            key: Key::from_bits(KEY),
            rights: Rights::NONE,
            mode,
            metadata: Some(scene.metadata.clone()),
            queue: None,
            counting: Counting::Bits32,
        };
        scene.slot = scene.receiver.open_slot(sealed).unwrap();
        scene.receiver.revoke_slot(scene.slot).unwrap();
        let absent = SlotName::new(100, 0);
        // Wrong in every way; cured one by one.
        let mut header = Header {
            slot: absent,
            metadata_index: 77,
            key: Key::from_bits(1),
            offset: u64::MAX,
            flags: Flags(0x80),
            kind: Kind(9),
            ..scene.welcome()
        };
        let mut metadata = vec![0; 61];
        macro_rules! refused {
            ($reason:expr) => {{
                let packet = Packet::new(header, &metadata, &[7; 4]);
                assert_eq!(scene.receive_packet(&packet), Err($reason), "{mode:?}");
            }};
        }
        scene.receiver.tick(1_000);
        refused!(HandshakeLapsed);
        scene.receiver.handshake(1_000);
        refused!(NoSuchSlot);
        header.slot = SlotName::new(scene.slot.index(), 9);
        refused!(SlotClosed);
        header.slot = scene.slot;
        refused!(SlotRevoked);
        scene
            .receiver
            .rekey_slot(scene.slot, Key::from_bits(KEY))
            .unwrap();
        if mode == Mode::Normal {
            refused!(BadKey);
            header.key = Key::from_bits(KEY);
        }
        refused!(OutOfBounds);
        header.offset = 0;
        if mode != Mode::Normal {
            header.metadata_index = 0xFFFF;
            refused!(FastToParanoid);
        }
        header.metadata_index = 77;
        refused!(NoMetadataEntry);
        header.metadata_index = 0;
        if mode != Mode::Normal {
            refused!(OutOfLimits);
            header.offset = 40;
            refused!(BadEntryKey);
            header.key = Key::from_bits(ENTRY_KEY);
            refused!(EntrySpent);
            scene.metadata.entry(0).unwrap().arm();
        }
        refused!(UnknownKind);
        header.kind = Kind::WRITE;
        refused!(UnknownFlag);
        header.flags = Flags::NONE;
        refused!(NoRight);
        let rights = SlotOptions {
            area: scene.area.clone(),
            base: 64,
            length_bytes: 128,
            key: Key::from_bits(KEY),
            rights: Rights::WRITE,
            mode,
            metadata: Some(scene.metadata.clone()),
            queue: None,
            counting: Counting::Bits32,
        };
        header.slot = scene.receiver.open_slot(rights).unwrap();
        refused!(BadMetadata);
        metadata.truncate(60);
        refused!(PlaceInUse);
        scene.area.in_use.borrow_mut().clear();
        let packet = Packet::new(header, &metadata, &[7; 4]);
        assert_eq!(scene.receive_packet(&packet), Ok(Received::Complete));
    }
}

#[test]
fn every_refusal_has_a_name_and_a_counter_of_its_own() {
    let names: std::collections::BTreeSet<_> =
        Refusal::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), Refusal::ALL.len());
    let mut scene = Scene::new(Mode::Normal);
    scene.refuses_header(
        Header {
            kind: Kind(4),
            ..scene.welcome()
        },
        Refusal::UnknownKind,
    );
    scene.refuses_header(
        Header {
            key: Key::from_bits(0),
            ..scene.welcome()
        },
        Refusal::BadKey,
    );
    scene.refuses_header(
        Header {
            key: Key::from_bits(0),
            ..scene.welcome()
        },
        Refusal::BadKey,
    );
    let occurred: Vec<_> = scene.receiver.refusals().iter().collect();
    assert_eq!(occurred, [(Refusal::BadKey, 2), (Refusal::UnknownKind, 1)]);
    assert_eq!(
        format!("{:?}", scene.receiver.refusals()),
        "{BadKey: 2, UnknownKind: 1}"
    );
}

#[test]
fn a_key_is_never_printed() {
    let key = Key::from_bits(0xDEAD_BEEF_1234);
    let printed = format!(
        "{key:?} {:?} {:?}",
        header(SlotName::new(0, 0), key.to_bits(), 0),
        Scene::new(Mode::Normal).receiver
    );
    let decimal = format!("{}", key.to_bits());
    assert!(!printed.to_lowercase().contains("deadbeef1234") && !printed.contains(&decimal));
    assert!(!printed.contains(&format!("{KEY}")));
}

#[test]
fn operations_on_a_slot_that_is_not_open_say_so() {
    let mut scene = Scene::new(Mode::Normal);
    let stale = SlotName::new(scene.slot.index(), 5);
    let error = SlotError::NotOpen(stale);
    assert_eq!(scene.receiver.close_slot(stale), Err(error));
    assert_eq!(
        scene.receiver.rekey_slot(stale, Key::from_bits(1)),
        Err(error)
    );
    assert_eq!(scene.receiver.revoke_slot(stale), Err(error));
    assert_eq!(scene.receiver.slot_info(stale).unwrap_err(), error);
    assert_eq!(scene.receive(scene.welcome(), &[1]), Ok(Received::Complete));
}
