//! The life of slots, paranoid entries and the gate (Hamlyn 2.2, 2.4, 2.7, 2.8).

mod lent;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{METADATA_ENTRIES_MAX, METADATA_ENTRY_BYTES, SLOTS_MAX};
use hamlyn_engine::metadata::{MetadataArea, MetadataEntry, Permission};
use hamlyn_engine::packet::{Flags, Header, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, QueueId, Rights, SlotError, SlotOptions};
use lent::{Packet, VecArea, header, pattern};

fn options(area: &VecArea, mode: Mode, metadata: Option<&MetadataArea>, queue: Option<QueueId>) -> SlotOptions<VecArea> {
    SlotOptions {
        area: area.clone(),
        base: 0,
        length_bytes: area.bytes.borrow().len() as u64,
        key: Key::from_bits(1),
        rights: Rights::WRITE,
        mode,
        metadata: metadata.cloned(),
        queue,
        counting: Counting::Bits32,
    }
}

fn ready() -> Receiver<VecArea> {
    let mut receiver = Receiver::new(None);
    receiver.set_up(0);
    receiver
}

fn receive(receiver: &mut Receiver<VecArea>, header: Header, metadata: &[u8], data: &[u8]) -> Result<Received, Refusal> {
    let packet = Packet::new(header, metadata, data);
    receiver.receive(&packet.header, &packet)
}

#[test]
fn slot_index_is_reused_only_under_a_new_generation() {
    let mut receiver = ready();
    let area = VecArea::new(16);
    let old = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    receiver.close_slot(old).unwrap();
    let new = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    assert_eq!(new.index(), old.index());
    assert_ne!(new.generation(), old.generation());
    let fast = |slot| Header { metadata_index: 0xFFFF, ..header(slot, 1, 0) };
    assert_eq!(receive(&mut receiver, fast(old), &[], &[9]), Err(Refusal::SlotClosed));
    assert_eq!(area.contents(), [0; 16]);
    // The refusal is not charged to the slot that has the index now.
    assert_eq!(receiver.slot_info(new).unwrap().refusals.total(), 0);
    assert_eq!(receive(&mut receiver, fast(new), &[], &[9]), Ok(Received::Complete));
}

#[test]
fn exhausted_generations_retire_the_index() {
    let mut receiver = ready();
    let area = VecArea::new(1);
    let first = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    let mut name = first;
    for generation in 0..=0xFFFF {
        assert_eq!(name, SlotName::new(first.index(), generation));
        receiver.close_slot(name).unwrap();
        name = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    }
    assert_ne!(name.index(), first.index(), "an index was used beyond its generations");
    for generation in [0, 1, 0xFFFE, 0xFFFF] {
        let stale = SlotName::new(first.index(), generation);
        assert_eq!(receive(&mut receiver, header(stale, 1, 0), &[], &[9]), Err(Refusal::SlotClosed));
        assert_eq!(receiver.close_slot(stale), Err(SlotError::NotOpen(stale)));
    }
}

#[test]
fn as_many_slots_as_promised_and_no_more() {
    let mut receiver = ready();
    let area = VecArea::new(1);
    let names: Vec<_> = (0..SLOTS_MAX)
        .map(|_| receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap())
        .collect();
    assert_eq!(receiver.slots_open(), SLOTS_MAX);
    assert_eq!(receiver.open_slot(options(&area, Mode::Normal, None, None)), Err(SlotError::TooMany));
    let distinct: std::collections::BTreeSet<_> = names.iter().map(|name| name.index()).collect();
    assert_eq!(distinct.len(), SLOTS_MAX);
    receiver.close_slot(names[77]).unwrap();
    let again = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    assert_eq!((again.index(), again.generation()), (names[77].index(), 1));
    let absent = SlotName::new(SLOTS_MAX as u16, 0);
    assert_eq!(receive(&mut receiver, header(absent, 1, 0), &[], &[]), Err(Refusal::NoSuchSlot));
}

#[test]
fn slots_that_do_not_fit_their_area_are_not_opened() {
    let mut receiver = ready();
    let area = VecArea::new(100);
    for (base, length_bytes) in [(0, 101), (100, 1), (101, 0), (1, 100), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
        let opened = receiver.open_slot(SlotOptions { base, length_bytes, ..options(&area, Mode::Normal, None, None) });
        assert_eq!(opened, Err(SlotError::DoesNotFit { base, length_bytes, area_bytes: 100 }));
    }
    for (base, length_bytes) in [(0, 100), (100, 0), (99, 1), (0, 0)] {
        receiver.open_slot(SlotOptions { base, length_bytes, ..options(&area, Mode::Normal, None, None) }).unwrap();
    }
}

#[test]
fn paranoid_slot_needs_entries_and_a_queue_must_exist() {
    let mut receiver = ready();
    let area = VecArea::new(1);
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        assert_eq!(receiver.open_slot(options(&area, mode, None, None)), Err(SlotError::NoMetadataArea));
    }
    let (queue, _reader) = receiver.open_queue(2).unwrap();
    receiver.close_queue(queue);
    assert_eq!(receiver.open_slot(options(&area, Mode::Normal, None, Some(queue))), Err(SlotError::NoSuchQueue));
    assert_eq!(receiver.slots_open(), 0);
}

#[test]
fn one_area_may_have_several_slots_that_keep_to_their_bounds() {
    let mut receiver = ready();
    let area = VecArea::new(30);
    let open = |receiver: &mut Receiver<_>, base, key| {
        let key = Key::from_bits(key);
        receiver.open_slot(SlotOptions { base, length_bytes: 15, key, ..options(&area, Mode::Normal, None, None) }).unwrap()
    };
    let slots = [open(&mut receiver, 0, 1), open(&mut receiver, 10, 2), open(&mut receiver, 15, 3)];
    for (number, slot) in slots.into_iter().enumerate() {
        let key = number as u64 + 1;
        let fast = Header { metadata_index: 0xFFFF, ..header(slot, key, 14) };
        assert_eq!(receive(&mut receiver, fast, &[], &[key as u8]), Ok(Received::Complete));
        assert_eq!(receive(&mut receiver, fast, &[], &[9, 9]), Err(Refusal::OutOfBounds));
        for other in slots.iter().filter(|&&other| other != slot) {
            let wrong = Header { slot: *other, ..fast };
            assert_eq!(receive(&mut receiver, wrong, &[], &[9]), Err(Refusal::BadKey));
        }
    }
    let mut expected = vec![0; 30];
    (expected[14], expected[24], expected[29]) = (1, 2, 3);
    assert_eq!(area.contents(), expected);
}

#[test]
fn each_sender_of_a_paranoid_slot_keeps_to_its_piece_and_its_key() {
    let mut receiver = ready();
    let area = VecArea::new(40);
    let metadata = MetadataArea::new(4).unwrap();
    let slot = receiver.open_slot(options(&area, Mode::Paranoid, Some(&metadata), None)).unwrap();
    for entry in 0..4 {
        let (low, key) = (u64::from(entry) * 10, Key::from_bits(100 + u64::from(entry)));
        metadata.entry(entry).unwrap().permit(Permission { key, low, high: low + 10 });
    }
    let from = |entry: u16, key: u64, offset| Header { metadata_index: entry, ..header(slot, key, offset) };
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
                assert_eq!(receive(&mut receiver, from(entry, key, offset), &[], &data), expected);
            }
        }
    }
    let expected: Vec<u8> = (0..40).map(|at| at / 10 + 1).collect();
    assert_eq!(area.contents(), expected);
    // One is shut out by a plain change of its entry; the others do not notice.
    metadata.entry(2).unwrap().permit(Permission { key: Key::from_bits(0xFF), low: 20, high: 30 });
    assert_eq!(receive(&mut receiver, from(2, 102, 20), &[], &[9]), Err(Refusal::BadEntryKey));
    assert_eq!(receive(&mut receiver, from(3, 103, 30), &[], &[9]), Ok(Received::Complete));
}

#[test]
fn one_shot_message_of_many_packets_spends_its_entry_at_the_last() {
    let mut receiver = ready();
    let area = VecArea::new(30);
    let metadata = MetadataArea::new(1).unwrap();
    let (queue, mut reader) = receiver.open_queue(2).unwrap();
    let slot = receiver.open_slot(options(&area, Mode::ParanoidOneShot, Some(&metadata), Some(queue))).unwrap();
    let entry = metadata.entry(0).unwrap();
    entry.permit(Permission { key: Key::from_bits(7), low: 5, high: 1_000 });
    entry.arm();
    let packet = |offset, word| Header { word, ..header(slot, 7, offset) };
    assert_eq!(receive(&mut receiver, packet(25, (1 << 32) - 2), &[], &[3; 5]), Ok(Received::Deposited));
    assert_eq!(receive(&mut receiver, packet(5, 1), &[], &[1; 5]), Ok(Received::Deposited));
    assert!(entry.is_armed() && area.completed.borrow().is_empty());
    assert_eq!(receive(&mut receiver, packet(15, 1), &[], &[2; 5]), Ok(Received::Complete));
    assert!(!entry.is_armed());
    // The area hears which bytes are safe now: the entry's limits within the slot.
    assert_eq!(*area.completed.borrow(), [(5, 30)]);
    assert!(reader.pop().unwrap().is_some());
    let landed = area.contents();
    assert_eq!(receive(&mut receiver, packet(5, 1), &[], &[9; 5]), Err(Refusal::EntrySpent));
    assert_eq!(area.contents(), landed, "data changed after the message had arrived");
}

#[test]
fn one_shot_entries_bound_the_notification_queue() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(7).unwrap();
    let (queue, mut reader) = receiver.open_queue(8).unwrap();
    let slot = receiver.open_slot(options(&area, Mode::ParanoidOneShot, Some(&metadata), Some(queue))).unwrap();
    for entry in 0..7 {
        metadata.entry(entry).unwrap().permit(Permission { key: Key::from_bits(1), low: 0, high: 8 });
    }
    for round in 0..50 {
        (0..7).for_each(|entry| metadata.entry(entry).unwrap().arm());
        // A malicious sender sends as much as it likes.
        for flood in 0..100_u16 {
            let header = Header { metadata_index: flood % 7, ..header(slot, 1, 0) };
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
    let slot = receiver.open_slot(options(&area, Mode::ParanoidOneShot, Some(&metadata), None)).unwrap();
    let entry = metadata.entry(0).unwrap();
    entry.permit(Permission { key: Key::from_bits(1), low: 0, high: 8 });
    entry.arm();
    let packet = |word| Header { word, ..header(slot, 1, 0) };
    // The sender dies in the middle of its message; a new one gets the entry.
    receive(&mut receiver, packet(1), &[1, 2], &[1]).unwrap();
    assert_eq!((entry.accumulator(), entry.metadata_length_bytes()), (1, 2));
    entry.arm();
    assert_eq!((entry.accumulator(), entry.metadata_length_bytes()), (0, 0));
    assert_eq!(receive(&mut receiver, packet(1), &[], &[1]), Ok(Received::Deposited));
    assert_eq!(receive(&mut receiver, packet((1 << 32) - 1), &[], &[1]), Ok(Received::Complete));
}

#[test]
fn silent_messages_land_and_complete_unannounced() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(1).unwrap();
    let (queue, mut reader) = receiver.open_queue(2).unwrap();
    let slot = receiver.open_slot(options(&area, Mode::ParanoidOneShot, Some(&metadata), Some(queue))).unwrap();
    let entry = metadata.entry(0).unwrap();
    entry.permit(Permission { key: Key::from_bits(1), low: 0, high: 8 });
    entry.arm();
    let silent = Header { flags: Flags::SILENT, ..header(slot, 1, 2) };
    assert_eq!(receive(&mut receiver, silent, &[4], &[5]), Ok(Received::Complete));
    assert_eq!(area.contents()[2], 5);
    assert_eq!(reader.pop(), Ok(None));
    assert!(!entry.is_armed(), "a silent message is a message");
}

#[test]
fn slots_and_queues_several_to_one() {
    let mut receiver = ready();
    let area = VecArea::new(4);
    let metadata = MetadataArea::new(2).unwrap();
    let (queue, mut reader) = receiver.open_queue(4).unwrap();
    let (other_queue, mut other_reader) = receiver.open_queue(4).unwrap();
    let slots = [queue, other_queue, queue]
        .map(|queue| receiver.open_slot(options(&area, Mode::Normal, Some(&metadata), Some(queue))).unwrap());
    metadata.entry(1).unwrap().set_receive_class(0xC1A55);
    for slot in slots {
        receive(&mut receiver, Header { metadata_index: 1, ..header(slot, 1, 0) }, &[], &[1]).unwrap();
    }
    let told = [reader.pop().unwrap().unwrap(), reader.pop().unwrap().unwrap(), other_reader.pop().unwrap().unwrap()];
    assert_eq!(told.map(|told| told.slot), [slots[0], slots[2], slots[1]]);
    assert!(told.iter().all(|told| told.metadata_index == 1 && told.word == 0xC1A55 && !told.is_fast()));
    assert_eq!((reader.pop(), other_reader.pop()), (Ok(None), Ok(None)));
    // A closed queue is silence, not an error: messages still land.
    receiver.close_queue(other_queue);
    assert_eq!(receive(&mut receiver, header(slots[1], 1, 0), &[], &[1]), Ok(Received::Complete));
    assert_eq!(other_reader.pop(), Ok(None));
}

#[test]
fn fast_mode_carries_its_word_in_the_notification() {
    let mut receiver = ready();
    let area = VecArea::new(4);
    let metadata = MetadataArea::new(METADATA_ENTRIES_MAX).unwrap();
    let (queue, mut reader) = receiver.open_queue(4).unwrap();
    let slot = receiver.open_slot(options(&area, Mode::Normal, Some(&metadata), Some(queue))).unwrap();
    for word in [0, 1, u64::MAX] {
        let fast = Header { metadata_index: 0xFFFF, word, ..header(slot, 1, 0) };
        assert_eq!(receive(&mut receiver, fast, &[], &[1]), Ok(Received::Complete));
        let told = reader.pop().unwrap().unwrap();
        assert!(told.is_fast());
        assert_eq!((told.slot, told.word), (slot, word));
    }
    // Not even the largest area has an entry under the all-ones index.
    assert!(metadata.entry(0xFFFE).is_some() && metadata.entry(0xFFFF).is_none());
    assert!((0..0xFFFF).all(|entry| metadata.entry(entry).unwrap().accumulator() == 0));
}

#[test]
fn metadata_of_every_length_arrive_exactly() {
    let mut receiver = ready();
    let area = VecArea::new(8);
    let metadata = MetadataArea::new(2).unwrap();
    let slot = receiver.open_slot(options(&area, Mode::Normal, Some(&metadata), None)).unwrap();
    let entry = metadata.entry(1).unwrap();
    for length in 1..=60_usize {
        let sent = pattern(length as u64, length);
        let header = Header { metadata_index: 1, ..header(slot, 1, 0) };
        assert_eq!(receive(&mut receiver, header, &sent, &[]), Ok(Received::Complete));
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
    assert_eq!(receive(&mut receiver, Header { metadata_index: 1, ..header(slot, 1, 0) }, &[1; 61], &[]), Err(Refusal::BadMetadata));
    // The neighbour has nothing of it; a message without metadata leaves them as they are.
    assert_eq!(metadata.entry(0).unwrap().metadata_length_bytes(), 0);
    receive(&mut receiver, Header { metadata_index: 1, ..header(slot, 1, 0) }, &[], &[]).unwrap();
    assert_eq!(entry.metadata_length_bytes(), 60);
}

#[test]
fn metadata_entry_is_128_bytes_with_the_fields_of_table_2() {
    assert_eq!((size_of::<MetadataEntry>(), align_of::<MetadataEntry>()), (128, 128));
    assert_eq!(METADATA_ENTRY_BYTES, 128);
    let area = MetadataArea::new(3).unwrap();
    assert_eq!(area.len(), 3);
    let entry = area.entry(2).unwrap();
    // Key, low and high limit, receive class: each is its own field.
    let permission = Permission { key: Key::from_bits(u64::MAX - 1), low: u64::MAX - 2, high: u64::MAX - 3 };
    entry.permit(permission);
    entry.set_receive_class(u64::MAX - 4);
    assert_eq!(entry.permission(), Some(permission));
    assert_eq!(entry.receive_class(), u64::MAX - 4);
    assert_eq!((entry.accumulator(), entry.metadata_length_bytes(), entry.is_armed()), (0, 0, false));
    assert_eq!(area.entry(1).unwrap().receive_class(), 0);
    for asked in [0, METADATA_ENTRIES_MAX + 1, usize::MAX] {
        assert_eq!(MetadataArea::new(asked).unwrap_err().asked, asked);
    }
}

#[test]
fn gate_discards_before_set_up_and_after_silence_and_opens_again() {
    let mut receiver = Receiver::new(Some(100));
    let area = VecArea::new(4);
    let slot = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    let fast = Header { metadata_index: 0xFFFF, ..header(slot, 1, 0) };
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
    let slot = receiver.open_slot(options(&area, Mode::Normal, None, None)).unwrap();
    let fast = Header { metadata_index: 0xFFFF, ..header(slot, 1, 0) };
    assert_eq!(receive(&mut receiver, fast, &[], &[1]), Ok(Received::Complete));
    // Nor does a deadline beyond the end of time overflow.
    let mut receiver = Receiver::<VecArea>::new(Some(u64::MAX));
    receiver.set_up(u64::MAX - 5);
    assert_eq!(receiver.tick(u64::MAX - 1), Some(u64::MAX));
}
