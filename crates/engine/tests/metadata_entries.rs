//! Metadata entries and what the special modes make of them (Hamlyn 2.4, 2.7).

use crate::host::{VecArea, header, options, pattern, ready, receive};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{METADATA_ENTRIES_MAX, METADATA_ENTRY_BYTES};
use hamlyn_engine::metadata::{MetadataArea, MetadataEntry, Permission};
use hamlyn_engine::packet::{Flags, Header};
use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::Mode;

#[test]
fn fast_mode_carries_its_word_in_the_notification() {
    let mut receiver = ready();
    let area = VecArea::new(4);
    let metadata = MetadataArea::new(METADATA_ENTRIES_MAX).unwrap();
    let (queue, mut reader) = receiver.open_queue(4).unwrap();
    let slot = receiver
        .open_slot(options(&area, Mode::Normal, Some(&metadata), Some(queue)))
        .unwrap();
    for word in [0, 1, u64::MAX] {
        let fast = Header {
            metadata_index: 0xFFFF,
            word,
            ..header(slot, 1, 0)
        };
        assert_eq!(
            receive(&mut receiver, fast, &[], &[1]),
            Ok(Received::Complete)
        );
        let told = reader.pop().unwrap().unwrap();
        assert!(told.is_fast());
        assert_eq!((told.slot, told.word), (slot, word));
    }
    // Not even the largest area has an entry under the all-ones index.
    assert!(metadata.entry(0xFFFE).is_some() && metadata.len() == 0xFFFF);
    assert!((0..0xFFFF).all(|entry| metadata.entry(entry).unwrap().accumulator() == 0));
}

#[test]
fn metadata_of_every_length_arrive_exactly() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(2).unwrap();
    let slot = receiver
        .open_slot(options(&area, Mode::Normal, Some(&metadata), None))
        .unwrap();
    let entry = metadata.entry(1).unwrap();
    for length in 1..=60_usize {
        let sent = pattern(length as u64, length);
        let header = Header {
            metadata_index: 1,
            ..header(slot, 1, 0)
        };
        assert_eq!(
            receive(&mut receiver, header, &sent, &[]),
            Ok(Received::Complete)
        );
        let mut came = [0; 60];
        assert_eq!(entry.metadata(&mut came), length);
        assert_eq!(came[..length], sent);
        assert_eq!(entry.metadata_length_bytes(), length);
        let mut word = [0; 8];
        word[..length.min(8)].copy_from_slice(&sent[..length.min(8)]);
        if length >= 8 {
            assert_eq!(entry.metadata_word(), u64::from_le_bytes(word));
        }
    }
    assert_eq!(
        receive(
            &mut receiver,
            Header {
                metadata_index: 1,
                ..header(slot, 1, 0)
            },
            &[1; 61],
            &[]
        ),
        Err(Refusal::BadMetadata)
    );
    // The neighbour has nothing of it; a message without metadata has none, and not those of the
    // one before.
    assert_eq!(metadata.entry(0).unwrap().metadata_length_bytes(), 0);
    receive(
        &mut receiver,
        Header {
            metadata_index: 1,
            ..header(slot, 1, 0)
        },
        &[],
        &[],
    )
    .unwrap();
    assert_eq!(entry.metadata_length_bytes(), 0);
}

#[test]
fn metadata_entry_is_128_bytes_with_the_fields_of_table_2() {
    assert_eq!(
        (size_of::<MetadataEntry>(), align_of::<MetadataEntry>()),
        (128, 128)
    );
    assert_eq!(METADATA_ENTRY_BYTES, 128);
    let area = MetadataArea::new(3).unwrap();
    assert_eq!(area.len(), 3);
    let entry = area.entry(2).unwrap();
    // Key, low and high limit, receive class: each is its own field.
    let permission = Permission {
        key: Key::from_bits(u64::MAX - 1),
        low: u64::MAX - 2,
        high: u64::MAX - 3,
    };
    entry.permit(permission);
    entry.set_receive_class(u64::MAX - 4);
    assert_eq!(entry.permission(), Some(permission));
    assert_eq!(entry.receive_class(), u64::MAX - 4);
    assert_eq!(
        (
            entry.accumulator(),
            entry.metadata_length_bytes(),
            entry.is_armed()
        ),
        (0, 0, false)
    );
    assert_eq!(area.entry(1).unwrap().receive_class(), 0);
    for asked in [0, METADATA_ENTRIES_MAX + 1, usize::MAX] {
        assert_eq!(MetadataArea::new(asked).unwrap_err().asked, asked);
    }
}

#[test]
fn each_sender_of_a_paranoid_slot_keeps_to_its_piece_and_its_key() {
    let mut receiver = ready();
    let area = VecArea::new(40);
    let metadata = MetadataArea::new(4).unwrap();
    let slot = receiver
        .open_slot(options(&area, Mode::Paranoid, Some(&metadata), None))
        .unwrap();
    for entry in 0..4 {
        let (low, key) = (
            u64::from(entry) * 10,
            Key::from_bits(100 + u64::from(entry)),
        );
        metadata.entry(entry).unwrap().permit(Permission {
            key,
            low,
            high: low + 10,
        });
    }
    let from = |entry: u16, key: u64, offset| Header {
        metadata_index: entry,
        ..header(slot, key, offset)
    };
    for sender in 0..4_u16 {
        let key = 100 + u64::from(sender);
        for entry in 0..4_u16 {
            for offset in 0..40 {
                let inside = offset / 10 == u64::from(entry);
                let expected = match (inside, entry == sender) {
                    (false, _) => Err(Refusal::OutOfLimits),
                    (true, false) => Err(Refusal::BadEntryKey),
                    (true, true) => Ok(Received::Complete),
                };
                let data = [sender as u8 + 1];
                assert_eq!(
                    receive(&mut receiver, from(entry, key, offset), &[], &data),
                    expected
                );
            }
        }
    }
    let expected: Vec<u8> = (0..40).map(|at| at / 10 + 1).collect();
    assert_eq!(area.contents(), expected);
    // One is shut out by a plain change of its entry; the others do not notice.
    metadata.entry(2).unwrap().permit(Permission {
        key: Key::from_bits(0xFF),
        low: 20,
        high: 30,
    });
    assert_eq!(
        receive(&mut receiver, from(2, 102, 20), &[], &[9]),
        Err(Refusal::BadEntryKey)
    );
    assert_eq!(
        receive(&mut receiver, from(3, 103, 30), &[], &[9]),
        Ok(Received::Complete)
    );
}

#[test]
fn one_shot_message_of_many_packets_spends_its_entry_at_the_last() {
    let mut receiver = ready();
    let area = VecArea::new(30);
    let metadata = MetadataArea::new(1).unwrap();
    let (queue, mut reader) = receiver.open_queue(2).unwrap();
    let slot = receiver
        .open_slot(options(
            &area,
            Mode::ParanoidOneShot,
            Some(&metadata),
            Some(queue),
        ))
        .unwrap();
    let entry = metadata.entry(0).unwrap();
    entry.permit(Permission {
        key: Key::from_bits(7),
        low: 5,
        high: 1_000,
    });
    entry.arm();
    let packet = |offset, word| Header {
        word,
        ..header(slot, 7, offset)
    };
    assert_eq!(
        receive(&mut receiver, packet(25, (1 << 32) - 2), &[], &[3; 5]),
        Ok(Received::Deposited)
    );
    assert_eq!(
        receive(&mut receiver, packet(5, 1), &[], &[1; 5]),
        Ok(Received::Deposited)
    );
    assert!(entry.is_armed() && area.completed.borrow().is_empty());
    assert_eq!(
        receive(&mut receiver, packet(15, 1), &[], &[2; 5]),
        Ok(Received::Complete)
    );
    assert!(!entry.is_armed());
    // The area hears which bytes are safe now: the entry's limits within the slot.
    assert_eq!(*area.completed.borrow(), [(5, 30)]);
    assert!(reader.pop().unwrap().is_some());
    let landed = area.contents();
    assert_eq!(
        receive(&mut receiver, packet(5, 1), &[], &[9; 5]),
        Err(Refusal::EntrySpent)
    );
    assert_eq!(
        area.contents(),
        landed,
        "data changed after the message had arrived"
    );
}

#[test]
fn one_shot_entries_bound_the_notification_queue() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(7).unwrap();
    let (queue, mut reader) = receiver.open_queue(8).unwrap();
    let slot = receiver
        .open_slot(options(
            &area,
            Mode::ParanoidOneShot,
            Some(&metadata),
            Some(queue),
        ))
        .unwrap();
    for entry in 0..7 {
        metadata.entry(entry).unwrap().permit(Permission {
            key: Key::from_bits(1),
            low: 0,
            high: 8,
        });
    }
    for round in 0..50 {
        (0..7).for_each(|entry| metadata.entry(entry).unwrap().arm());
        // A malicious sender sends as much as it likes.
        for flood in 0..100_u16 {
            let header = Header {
                metadata_index: flood % 7,
                ..header(slot, 1, 0)
            };
            let _ = receive(&mut receiver, header, &[], &[round]);
        }
        for _ in 0..7 {
            assert!(reader.pop().expect("never overrun").is_some());
        }
        assert_eq!(reader.pop(), Ok(None));
    }
    assert_eq!(reader.lost(), 0);
}

#[test]
fn rearming_starts_from_an_empty_accumulator() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(1).unwrap();
    let slot = receiver
        .open_slot(options(&area, Mode::ParanoidOneShot, Some(&metadata), None))
        .unwrap();
    let entry = metadata.entry(0).unwrap();
    entry.permit(Permission {
        key: Key::from_bits(1),
        low: 0,
        high: 8,
    });
    entry.arm();
    let packet = |word| Header {
        word,
        ..header(slot, 1, 0)
    };
    // The sender dies in the middle of its message; a new one gets the entry.
    receive(&mut receiver, packet(1), &[1, 2], &[1]).unwrap();
    assert_eq!((entry.accumulator(), entry.metadata_length_bytes()), (1, 2));
    entry.arm();
    assert_eq!((entry.accumulator(), entry.metadata_length_bytes()), (0, 0));
    assert_eq!(
        receive(&mut receiver, packet(1), &[], &[1]),
        Ok(Received::Deposited)
    );
    assert_eq!(
        receive(&mut receiver, packet((1 << 32) - 1), &[], &[1]),
        Ok(Received::Complete)
    );
}

#[test]
fn silent_messages_land_and_complete_unannounced() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(1).unwrap();
    let (queue, mut reader) = receiver.open_queue(2).unwrap();
    let slot = receiver
        .open_slot(options(
            &area,
            Mode::ParanoidOneShot,
            Some(&metadata),
            Some(queue),
        ))
        .unwrap();
    let entry = metadata.entry(0).unwrap();
    entry.permit(Permission {
        key: Key::from_bits(1),
        low: 0,
        high: 8,
    });
    entry.arm();
    let silent = Header {
        flags: Flags::SILENT,
        ..header(slot, 1, 2)
    };
    assert_eq!(
        receive(&mut receiver, silent, &[4], &[5]),
        Ok(Received::Complete)
    );
    assert_eq!(area.contents()[2], 5);
    assert_eq!(reader.pop(), Ok(None));
    assert!(!entry.is_armed(), "a silent message is a message");
}
