//! The life of slots, and the receive enable (Hamlyn 2.2, 2.8).

use crate::host::{VecArea, header, options, ready, receive};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::SLOTS_MAX;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::packet::{Header, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, SlotError, SlotOptions};

#[test]
fn slot_index_is_reused_only_under_a_new_generation() {
    let mut receiver = ready();
    let area = VecArea::new(16);
    let old = receiver
        .open_slot(options(&area, Mode::Normal, None, None))
        .unwrap();
    receiver.close_slot(old).unwrap();
    let new = receiver
        .open_slot(options(&area, Mode::Normal, None, None))
        .unwrap();
    assert_eq!(new.index(), old.index());
    assert_ne!(new.generation(), old.generation());
    let fast = |slot| Header {
        metadata_index: 0xFFFF,
        ..header(slot, 1, 0)
    };
    assert_eq!(
        receive(&mut receiver, fast(old), &[], &[9]),
        Err(Refusal::SlotClosed)
    );
    assert_eq!(area.contents(), [0; 16]);
    // The refusal is not charged to the slot that has the index now.
    assert_eq!(receiver.slot_info(new).unwrap().refusals.total(), 0);
    assert_eq!(
        receive(&mut receiver, fast(new), &[], &[9]),
        Ok(Received::Complete)
    );
}

#[test]
fn exhausted_generations_retire_the_index() {
    let mut receiver = ready();
    let area = VecArea::new(1);
    let first = receiver
        .open_slot(options(&area, Mode::Normal, None, None))
        .unwrap();
    let mut name = first;
    for generation in 0..=0xFFFF {
        assert_eq!(name, SlotName::new(first.index(), generation));
        receiver.close_slot(name).unwrap();
        name = receiver
            .open_slot(options(&area, Mode::Normal, None, None))
            .unwrap();
    }
    assert_ne!(
        name.index(),
        first.index(),
        "an index was used beyond its generations"
    );
    for generation in [0, 1, 0xFFFE, 0xFFFF] {
        let stale = SlotName::new(first.index(), generation);
        assert_eq!(
            receive(&mut receiver, header(stale, 1, 0), &[], &[9]),
            Err(Refusal::SlotClosed)
        );
        assert_eq!(receiver.close_slot(stale), Err(SlotError::NotOpen(stale)));
    }
}

#[test]
fn as_many_slots_as_promised_and_no_more() {
    let mut receiver = ready();
    let area = VecArea::new(1);
    let names: Vec<_> = (0..SLOTS_MAX)
        .map(|_| {
            receiver
                .open_slot(options(&area, Mode::Normal, None, None))
                .unwrap()
        })
        .collect();
    assert_eq!(receiver.slots_open(), SLOTS_MAX);
    assert_eq!(
        receiver.open_slot(options(&area, Mode::Normal, None, None)),
        Err(SlotError::TooMany)
    );
    let distinct: std::collections::BTreeSet<_> = names.iter().map(|name| name.index()).collect();
    assert_eq!(distinct.len(), SLOTS_MAX);
    receiver.close_slot(names[77]).unwrap();
    let again = receiver
        .open_slot(options(&area, Mode::Normal, None, None))
        .unwrap();
    assert_eq!((again.index(), again.generation()), (names[77].index(), 1));
    let absent = SlotName::new(SLOTS_MAX as u16, 0);
    assert_eq!(
        receive(&mut receiver, header(absent, 1, 0), &[], &[]),
        Err(Refusal::NoSuchSlot)
    );
}

#[test]
fn slots_that_do_not_fit_their_area_are_not_opened() {
    let mut receiver = ready();
    let area = VecArea::new(100);
    for (base, length_bytes) in [
        (0, 101),
        (100, 1),
        (101, 0),
        (1, 100),
        (u64::MAX, 1),
        (1, u64::MAX),
        (u64::MAX, u64::MAX),
    ] {
        let opened = receiver.open_slot(SlotOptions {
            base,
            length_bytes,
            ..options(&area, Mode::Normal, None, None)
        });
        assert_eq!(
            opened,
            Err(SlotError::DoesNotFit {
                base,
                length_bytes,
                area_bytes: 100
            })
        );
    }
    for (base, length_bytes) in [(0, 100), (100, 0), (99, 1), (0, 0)] {
        receiver
            .open_slot(SlotOptions {
                base,
                length_bytes,
                ..options(&area, Mode::Normal, None, None)
            })
            .unwrap();
    }
}

#[test]
fn paranoid_slot_needs_entries_and_a_queue_must_exist() {
    let mut receiver = ready();
    let area = VecArea::new(1);
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        assert_eq!(
            receiver.open_slot(options(&area, mode, None, None)),
            Err(SlotError::NoMetadataArea)
        );
    }
    let (queue, _reader) = receiver.open_queue(2).unwrap();
    receiver.close_queue(queue);
    assert_eq!(
        receiver.open_slot(options(&area, Mode::Normal, None, Some(queue))),
        Err(SlotError::NoSuchQueue)
    );
    assert_eq!(receiver.slots_open(), 0);
}

#[test]
fn one_area_may_have_several_slots_that_keep_to_their_bounds() {
    let mut receiver = ready();
    let area = VecArea::new(30);
    let open = |receiver: &mut Receiver<_>, base, key| {
        let key = Key::from_bits(key);
        receiver
            .open_slot(SlotOptions {
                base,
                length_bytes: 15,
                key,
                ..options(&area, Mode::Normal, None, None)
            })
            .unwrap()
    };
    let slots = [
        open(&mut receiver, 0, 1),
        open(&mut receiver, 10, 2),
        open(&mut receiver, 15, 3),
    ];
    for (number, slot) in slots.into_iter().enumerate() {
        let key = number as u64 + 1;
        let fast = Header {
            metadata_index: 0xFFFF,
            ..header(slot, key, 14)
        };
        assert_eq!(
            receive(&mut receiver, fast, &[], &[key as u8]),
            Ok(Received::Complete)
        );
        assert_eq!(
            receive(&mut receiver, fast, &[], &[9, 9]),
            Err(Refusal::OutOfBounds)
        );
        for other in slots.iter().filter(|&&other| other != slot) {
            let wrong = Header {
                slot: *other,
                ..fast
            };
            assert_eq!(
                receive(&mut receiver, wrong, &[], &[9]),
                Err(Refusal::BadKey)
            );
        }
    }
    let mut expected = vec![0; 30];
    (expected[14], expected[24], expected[29]) = (1, 2, 3);
    assert_eq!(area.contents(), expected);
}

#[test]
fn slots_and_queues_several_to_one() {
    let mut receiver = ready();
    let area = VecArea::new(4);
    let metadata = MetadataArea::new(2).unwrap();
    let (queue, mut reader) = receiver.open_queue(4).unwrap();
    let (other_queue, mut other_reader) = receiver.open_queue(4).unwrap();
    let slots = [queue, other_queue, queue].map(|queue| {
        receiver
            .open_slot(options(&area, Mode::Normal, Some(&metadata), Some(queue)))
            .unwrap()
    });
    metadata.entry(1).unwrap().set_receive_class(0xC1A55);
    for slot in slots {
        receive(
            &mut receiver,
            Header {
                metadata_index: 1,
                ..header(slot, 1, 0)
            },
            &[],
            &[1],
        )
        .unwrap();
    }
    let told = [
        reader.pop().unwrap().unwrap(),
        reader.pop().unwrap().unwrap(),
        other_reader.pop().unwrap().unwrap(),
    ];
    assert_eq!(told.map(|told| told.slot), [slots[0], slots[2], slots[1]]);
    assert!(
        told.iter()
            .all(|told| told.metadata_index == 1 && told.word == 0xC1A55 && !told.is_fast())
    );
    assert_eq!((reader.pop(), other_reader.pop()), (Ok(None), Ok(None)));
    // A closed queue is silence, not an error: messages still land.
    receiver.close_queue(other_queue);
    assert_eq!(
        receive(&mut receiver, header(slots[1], 1, 0), &[], &[1]),
        Ok(Received::Complete)
    );
    assert_eq!(other_reader.pop(), Ok(None));
}

#[test]
fn packets_are_discarded_before_set_up_and_after_silence() {
    let mut receiver = Receiver::new(Some(100));
    let area = VecArea::new(4);
    let slot = receiver
        .open_slot(options(&area, Mode::Normal, None, None))
        .unwrap();
    let fast = Header {
        metadata_index: 0xFFFF,
        ..header(slot, 1, 0)
    };
    let try_at = |receiver: &mut Receiver<VecArea>| receive(receiver, fast, &[], &[1]);
    assert_eq!(try_at(&mut receiver), Err(Refusal::NotSetUp));
    // Neither handshakes nor time open an interface that the host has not set up.
    receiver.handshake(5);
    assert_eq!(receiver.tick(1_000), None);
    assert_eq!(try_at(&mut receiver), Err(Refusal::NotSetUp));
    receiver.set_up(1_000);
    assert_eq!(receiver.tick(1_099), Some(1_100));
    assert_eq!(try_at(&mut receiver), Ok(Received::Complete));
    receiver.handshake(1_099);
    assert_eq!(receiver.tick(1_100), Some(1_199));
    assert_eq!(try_at(&mut receiver), Ok(Received::Complete));
    assert_eq!(receiver.tick(1_199), None);
    assert_eq!(try_at(&mut receiver), Err(Refusal::HandshakeLapsed));
    receiver.handshake(5_000);
    assert_eq!(try_at(&mut receiver), Ok(Received::Complete));
    assert_eq!(receiver.tick(5_001), Some(5_100));
    assert_eq!(receiver.refusals().count(Refusal::NotSetUp), 2);
    assert_eq!(receiver.refusals().count(Refusal::HandshakeLapsed), 1);
}

#[test]
fn without_a_period_the_handshake_never_lapses() {
    let mut receiver = ready();
    assert_eq!(receiver.tick(u64::MAX), None);
    let area = VecArea::new(4);
    let slot = receiver
        .open_slot(options(&area, Mode::Normal, None, None))
        .unwrap();
    let fast = Header {
        metadata_index: 0xFFFF,
        ..header(slot, 1, 0)
    };
    assert_eq!(
        receive(&mut receiver, fast, &[], &[1]),
        Ok(Received::Complete)
    );
    // Nor does a deadline beyond the end of time overflow.
    let mut receiver = Receiver::<VecArea>::new(Some(u64::MAX));
    receiver.set_up(u64::MAX - 5);
    assert_eq!(receiver.tick(u64::MAX - 1), Some(u64::MAX));
}

#[test]
fn a_slot_left_open_announces_nothing_into_a_queue_that_came_later() {
    let mut receiver = ready();
    let area = VecArea::new(16);
    let (old, _reader) = receiver.open_queue(2).unwrap();
    let slot = receiver
        .open_slot(options(&area, Mode::Normal, None, Some(old)))
        .unwrap();
    receiver.close_queue(old);
    let (new, mut reader) = receiver.open_queue(2).unwrap();
    assert_ne!(new, old);
    let fast = Header {
        metadata_index: 0xFFFF,
        ..header(slot, 1, 0)
    };
    assert_eq!(
        receive(&mut receiver, fast, &[], &[9]),
        Ok(Received::Complete)
    );
    assert_eq!(reader.pop(), Ok(None));
    let late = receiver.open_slot(options(&area, Mode::Normal, None, Some(old)));
    assert_eq!(late, Err(SlotError::NoSuchQueue));
}
