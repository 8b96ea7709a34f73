//! Send termini (Hamlyn 2.3): work queue, completion word, direct I/O, send-buffer
//! areas, gather, borrowed messages.

mod lent;
mod model;

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::limits::{BORROWED_BURST, DIRECT_BYTES_MAX, MESSAGE_BYTES_MAX, SEND_AREAS, TERMINI_MAX, WORK_QUEUE_ENTRIES_MAX};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::packet::Header;
use hamlyn_engine::terminus::{
    Completion, GatherPiece, PostError, SendTag, TerminusError, TerminusId, TerminusOptions,
};
use hamlyn_engine::transmit::{Borrowed, Message, Transmitter};
use lent::{Packet, VecArea, Wires, message, pattern};
use proptest::prelude::*;

fn one() -> (Transmitter<VecArea>, TerminusId) {
    let mut transmitter = Transmitter::new();
    let terminus = transmitter.open_terminus(TerminusOptions::default()).unwrap();
    (transmitter, terminus)
}

/// A message whose place says which it is.
fn numbered(link: LinkId, number: u64) -> Message {
    let plain = message(link);
    Message { header: Header { offset: number * 1_000, ..plain.header }, ..plain }
}

#[test]
fn sixty_three_entries_then_queue_full_and_nothing_lost() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    let mut handles = Vec::new();
    for number in 0..63 {
        let posted = transmitter.post(terminus, &numbered(link, number), &[], &[number as u8], &mut wires).unwrap();
        assert!(!posted.sent);
        handles.push(posted.handle);
    }
    for _ in 0..3 {
        let refused = transmitter.post(terminus, &numbered(link, 63), &[], &[63], &mut wires);
        assert_eq!(refused, Err(PostError::QueueFull));
        let refused = transmitter.post_gather(terminus, &numbered(link, 63), &[], &[], &mut wires);
        assert_eq!(refused, Err(PostError::QueueFull));
    }
    let word = transmitter.completions(terminus).unwrap();
    assert_eq!(word.done(), 0);
    wires.wire(link).room = 1;
    assert_eq!(transmitter.pump(&mut wires, usize::MAX).packets, 1);
    assert_eq!(word.done(), 1);
    transmitter.post(terminus, &numbered(link, 63), &[], &[63], &mut wires).unwrap();
    wires.wire(link).room = usize::MAX;
    let pumped = transmitter.pump(&mut wires, usize::MAX);
    assert_eq!((pumped.packets, pumped.waiting), (63, false));
    // First in, first out; each of them once; refused ones never.
    let came: Vec<_> = wires.drain(link).iter().map(|packet| (packet.header.offset / 1_000, packet.data[0])).collect();
    assert_eq!(came, (0..64).map(|number| (number, number as u8)).collect::<Vec<_>>());
    assert_eq!(handles.iter().map(|handle| handle.sequence).collect::<Vec<_>>(), (1..=63).collect::<Vec<_>>());
}

#[test]
fn completion_word_grows_by_message_and_tells_pending_from_sent() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    let area = VecArea::from_bytes(pattern(1, 200));
    let tag = transmitter.bind_area(terminus, area, 0, 200).unwrap();
    let long = GatherPiece { tag, offset: 0, length_bytes: 200 };
    let first = transmitter.post_gather(terminus, &message(link), &[], &[long], &mut wires).unwrap().handle;
    let second = transmitter.post(terminus, &message(link), &[], &[1], &mut wires).unwrap().handle;
    let word = transmitter.completions(terminus).unwrap();
    let state = || [first, second].map(|handle| word.completion(handle.sequence));
    // Four packets of the first; only its last completes it.
    for _ in 0..4 {
        assert_eq!(state(), [Completion::Pending; 2]);
        wires.wire(link).room = 1;
        transmitter.pump(&mut wires, usize::MAX);
    }
    assert_eq!(state(), [Completion::Sent, Completion::Pending]);
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    assert_eq!(state(), [Completion::Sent; 2]);
    assert_eq!((word.done(), word.completion(3)), (2, Completion::Pending));
    // What goes out at once is counted in the same sequence.
    wires.wire(link).room = 1;
    let third = transmitter.post(terminus, &message(link), &[], &[1], &mut wires).unwrap();
    assert_eq!((third.sent, third.handle.sequence, word.done()), (true, 3, 3));
}

#[test]
fn lost_link_fails_what_waited_for_it_and_no_more() {
    let (mut transmitter, terminus) = one();
    let (mut wires, lost) = Wires::with_room(64, 0);
    let kept = wires.add(64, 0);
    let word = transmitter.completions(terminus).unwrap();
    for link in [lost, kept, lost, kept] {
        transmitter.post(terminus, &message(link), &[], &[1], &mut wires).unwrap();
    }
    wires.lose(lost);
    wires.wire(kept).room = 5;
    let pumped = transmitter.pump(&mut wires, usize::MAX);
    assert_eq!((pumped.packets, pumped.waiting), (2, false));
    let states: Vec<_> = (1..=4).map(|sequence| word.completion(sequence)).collect();
    assert_eq!(states, [Completion::Failed, Completion::Sent, Completion::Failed, Completion::Sent]);
    assert_eq!(transmitter.post(terminus, &message(lost), &[], &[1], &mut wires), Err(PostError::LinkGone));
    assert_eq!(transmitter.post(terminus, &message(lost), &[], &[1; 100], &mut wires), Err(PostError::LinkGone));
    assert_eq!(transmitter.post_gather(terminus, &message(lost), &[], &[], &mut wires), Err(PostError::LinkGone));
    assert_eq!(word.done(), 4, "a message that was not accepted has no number");
}

#[test]
fn failure_is_remembered_while_the_queue_turns_once() {
    let mut transmitter = Transmitter::<VecArea>::new();
    let terminus = transmitter.open_terminus(TerminusOptions { queue_entries: 3, priority: 1 }).unwrap();
    let (mut wires, lost) = Wires::with_room(64, 0);
    let kept = wires.add(64, usize::MAX);
    transmitter.post(terminus, &message(lost), &[], &[1], &mut wires).unwrap();
    wires.lose(lost);
    transmitter.pump(&mut wires, usize::MAX);
    let word = transmitter.completions(terminus).unwrap();
    for after in 0..3 {
        assert_eq!(word.completion(1), Completion::Failed, "after {after} more");
        let handle = transmitter.post(terminus, &message(kept), &[], &[1], &mut wires).unwrap().handle;
        assert_eq!(word.completion(handle.sequence), Completion::Sent);
    }
    assert_eq!(word.completion(1), Completion::Failed);
    let fifth = transmitter.post(terminus, &message(kept), &[], &[1], &mut wires).unwrap().handle;
    assert_eq!(word.completion(fifth.sequence), Completion::Sent, "an old failure in the same place is not its own");
}

#[test]
fn closing_a_terminus_fails_what_is_queued() {
    let (mut transmitter, terminus) = one();
    let other = transmitter.open_terminus(TerminusOptions::default()).unwrap();
    let (mut wires, link) = Wires::with_room(64, 0);
    let word = transmitter.completions(terminus).unwrap();
    transmitter.post(terminus, &numbered(link, 1), &[], &[1], &mut wires).unwrap();
    transmitter.post(other, &numbered(link, 2), &[], &[2], &mut wires).unwrap();
    transmitter.close_terminus(terminus).unwrap();
    assert_eq!(word.completion(1), Completion::Failed);
    assert_eq!(transmitter.post(terminus, &message(link), &[], &[1], &mut wires), Err(PostError::NoSuchTerminus));
    assert_eq!(transmitter.close_terminus(terminus), Err(TerminusError::NoSuchTerminus));
    wires.wire(link).room = 9;
    assert_eq!(transmitter.pump(&mut wires, usize::MAX).packets, 1);
    assert!(!transmitter.is_waiting());
    assert_eq!(wires.drain(link)[0].data, [2]);
}

#[test]
fn direct_messages_up_to_128_bytes_wait_in_the_queue_and_longer_do_not() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(100, 0);
    let mut data = pattern(3, DIRECT_BYTES_MAX + 1);
    let metadata = pattern(4, 60);
    let too_long = transmitter.post(terminus, &message(link), &[], &data, &mut wires);
    assert_eq!(too_long, Err(PostError::TooLongToQueue { length_bytes: 129 }));
    transmitter.post(terminus, &message(link), &metadata, &data[..128], &mut wires).unwrap();
    let expected = data[..128].to_vec();
    // The bytes were copied: the caller may do with its own what it likes.
    data.fill(0);
    let waiting = transmitter.post(terminus, &message(link), &[], &data, &mut wires);
    assert_eq!(waiting, Err(PostError::QueueFull));
    wires.wire(link).room = 10;
    transmitter.pump(&mut wires, usize::MAX);
    let packets = wires.drain(link);
    assert_eq!(packets.iter().flat_map(|packet| packet.data.clone()).collect::<Vec<_>>(), expected);
    assert_eq!((packets[0].metadata.clone(), packets[0].data.len()), (metadata, 40));
    assert!(packets[1..].iter().all(|packet| packet.metadata.is_empty()));
}

#[test]
fn direct_message_that_stops_half_way_is_finished_from_the_queue() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 1);
    let data = pattern(3, 128);
    let posted = transmitter.post(terminus, &message(link), &[9; 20], &data, &mut wires).unwrap();
    assert!(!posted.sent);
    wires.wire(link).room = 10;
    transmitter.pump(&mut wires, usize::MAX);
    let packets = wires.drain(link);
    let cut = model::cut(0, &[9; 20], &data, 64, 1 << 32, 1 << 32);
    assert_eq!(packets.len(), cut.len());
    for (packet, (offset, metadata, data, word)) in packets.iter().zip(cut) {
        assert_eq!(*packet, Packet::new(Header { offset, word, ..message(link).header }, &metadata, &data));
    }
}

#[test]
fn message_at_hand_goes_out_at_once_in_one_packet_of_any_size_that_fits() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::wide(4_096);
    for (metadata, data) in [(0, 0), (0, 64), (1, 64), (60, 4_036), (0, 4_096)] {
        let (metadata, data) = (pattern(1, metadata), pattern(2, data));
        let posted = transmitter.post(terminus, &message(link), &metadata, &data, &mut wires).unwrap();
        assert!(posted.sent);
        assert_eq!(wires.drain(link), [Packet::new(message(link).header, &metadata, &data)]);
    }
    let over = transmitter.post(terminus, &message(link), &[], &[0; 4_097], &mut wires);
    assert_eq!(over, Err(PostError::TooLongToQueue { length_bytes: 4_097 }));
    assert!(wires.drain(link).is_empty());
}

#[test]
fn unbind_is_refused_while_a_queued_message_uses_the_area() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    let tags = [1, 2].map(|seed| transmitter.bind_area(terminus, VecArea::from_bytes(pattern(seed, 50)), 0, 50).unwrap());
    let piece = |tag| GatherPiece { tag, offset: 0, length_bytes: 50 };
    transmitter.post_gather(terminus, &message(link), &[], &[piece(tags[0])], &mut wires).unwrap();
    assert_eq!(transmitter.unbind_area(terminus, tags[0]), Err(TerminusError::InUse { tag: tags[0] }));
    transmitter.unbind_area(terminus, tags[1]).unwrap();
    assert_eq!(transmitter.unbind_area(terminus, tags[1]), Err(TerminusError::NoSuchArea { tag: tags[1] }));
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    transmitter.unbind_area(terminus, tags[0]).unwrap();
    let gone = transmitter.post_gather(terminus, &message(link), &[], &[piece(tags[0])], &mut wires);
    assert_eq!(gone, Err(PostError::NoSuchArea { tag: tags[0] }));
}

#[test]
fn send_areas_are_eight_and_keep_to_their_bounds() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::wide(64);
    let area = VecArea::from_bytes(pattern(1, 100));
    for (base, length_bytes) in [(0, 101), (101, 0), (u64::MAX, 1), (50, u64::MAX)] {
        let bound = transmitter.bind_area(terminus, area.clone(), base, length_bytes);
        assert_eq!(bound, Err(TerminusError::DoesNotFit { base, length_bytes, area_bytes: 100 }));
    }
    let tags: Vec<_> = (0..SEND_AREAS as u64)
        .map(|number| transmitter.bind_area(terminus, area.clone(), number * 10, 20).unwrap())
        .collect();
    assert_eq!(SEND_AREAS, 8);
    assert_eq!(transmitter.bind_area(terminus, area.clone(), 0, 1), Err(TerminusError::TooManyAreas));
    for (number, &tag) in tags.iter().enumerate() {
        for (offset, length_bytes) in [(0, 21), (20, 1), (21, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let piece = GatherPiece { tag, offset, length_bytes };
            let posted = transmitter.post_gather(terminus, &message(link), &[], &[piece], &mut wires);
            assert_eq!(posted, Err(PostError::OutsideArea { tag, offset, length_bytes, area_bytes: 20 }));
        }
        let piece = GatherPiece { tag, offset: 1, length_bytes: 19 };
        transmitter.post_gather(terminus, &message(link), &[], &[piece], &mut wires).unwrap();
        assert_eq!(wires.drain(link)[0].data, pattern(1, 100)[number * 10 + 1..][..19]);
    }
    for tag in [SendTag(8), SendTag(255)] {
        let piece = GatherPiece { tag, offset: 0, length_bytes: 0 };
        let posted = transmitter.post_gather(terminus, &message(link), &[], &[piece], &mut wires);
        assert_eq!(posted, Err(PostError::NoSuchArea { tag }));
    }
    // The areas of one terminus are not those of another.
    let other = transmitter.open_terminus(TerminusOptions::default()).unwrap();
    let piece = GatherPiece { tag: tags[0], offset: 0, length_bytes: 1 };
    let posted = transmitter.post_gather(other, &message(link), &[], &[piece], &mut wires);
    assert_eq!(posted, Err(PostError::NoSuchArea { tag: tags[0] }));
}

#[test]
fn metadata_may_be_gathered_too() {
    let (mut transmitter, terminus) = one();
    let tag = transmitter.bind_area(terminus, VecArea::from_bytes(pattern(1, 100)), 10, 80).unwrap();
    let mut metadata = [0; 60];
    let piece = |offset, length_bytes| GatherPiece { tag, offset, length_bytes };
    assert_eq!(transmitter.gather_metadata(terminus, &piece(5, 60), &mut metadata), Ok(60));
    assert_eq!(metadata, pattern(1, 100)[15..75]);
    assert_eq!(transmitter.gather_metadata(terminus, &piece(0, 61), &mut metadata), Err(PostError::MetadataTooLong { length_bytes: 61 }));
    assert!(matches!(transmitter.gather_metadata(terminus, &piece(30, 51), &mut metadata), Err(PostError::OutsideArea { .. })));
}

#[test]
fn impossible_messages_are_refused_before_anything_is_sent() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::wide(64);
    let area = VecArea::from_bytes(pattern(1, 1_000));
    let tag = transmitter.bind_area(terminus, area, 0, 1_000).unwrap();
    let piece = GatherPiece { tag, offset: 0, length_bytes: 1_000 };
    let plain = message(link);
    let at_end = Message { header: Header { offset: u64::MAX - 9, ..plain.header }, ..plain };
    let fast = Message { header: Header { metadata_index: 0xFFFF, ..plain.header }, ..plain };
    let small = Message { share: Share::from_less_one(14, Counting::Bits32).unwrap(), ..plain };
    let mut gather = |message: &Message, metadata: &[u8], pieces: &[GatherPiece]| {
        transmitter.post_gather(terminus, message, metadata, pieces, &mut wires).unwrap_err()
    };
    assert_eq!(gather(&plain, &[0; 61], &[piece]), PostError::MetadataTooLong { length_bytes: 61 });
    assert_eq!(gather(&plain, &[], &[piece; 9]), PostError::TooManyPieces { pieces: 9 });
    assert_eq!(gather(&at_end, &[], &[piece]), PostError::TooLong);
    assert!(matches!(gather(&fast, &[], &[piece]), PostError::FastTooLong { length_bytes: 1_000, payload_max_bytes: 64 }));
    assert!(matches!(gather(&fast, &[1], &[]), PostError::FastTooLong { .. }));
    assert!(matches!(gather(&small, &[], &[piece]), PostError::Share(error) if error.packets == 16 && error.share == 15));
    assert_eq!(transmitter.post(terminus, &at_end, &[], &[0; 11], &mut wires), Err(PostError::TooLong));
    assert_eq!(transmitter.post(terminus, &plain, &[0; 61], &[], &mut wires), Err(PostError::MetadataTooLong { length_bytes: 61 }));
    assert!(matches!(transmitter.post(terminus, &fast, &[1], &[], &mut wires), Err(PostError::FastTooLong { .. })));
    assert!(matches!(transmitter.begin_borrowed(terminus, &plain, &[], MESSAGE_BYTES_MAX + 1, &wires), Err(PostError::TooLong)));
    assert_eq!((wires.offers, transmitter.is_waiting()), (0, false));
    transmitter.post(terminus, &at_end, &[], &[0; 9], &mut wires).unwrap();
    assert_eq!(transmitter.completions(terminus).unwrap().done(), 1);
}

#[test]
fn terminus_options_are_bounded() {
    let mut transmitter = Transmitter::<VecArea>::new();
    for asked in [0, WORK_QUEUE_ENTRIES_MAX + 1] {
        let options = TerminusOptions { queue_entries: asked, priority: 1 };
        assert_eq!(transmitter.open_terminus(options), Err(TerminusError::QueueEntries { asked }));
    }
    let options = TerminusOptions { queue_entries: 1, priority: 0 };
    assert_eq!(transmitter.open_terminus(options), Err(TerminusError::Priority));
    let options = TerminusOptions { queue_entries: 1, priority: 1 };
    let all: Vec<_> = (0..TERMINI_MAX).map(|_| transmitter.open_terminus(options).unwrap()).collect();
    assert_eq!(transmitter.open_terminus(options), Err(TerminusError::TooMany));
    transmitter.close_terminus(all[9]).unwrap();
    transmitter.open_terminus(options).unwrap();
}

#[test]
fn borrowed_message_is_sent_from_where_it_lies_and_yields_after_a_burst() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 3);
    let data = pattern(5, 64 * 40);
    let metadata = pattern(6, 10);
    let mut segmenter = transmitter.begin_borrowed(terminus, &message(link), &metadata, data.len() as u64, &wires).unwrap();
    let mut turn = |wires: &mut Wires| transmitter.continue_borrowed(terminus, link, &mut segmenter, &metadata, &data, wires).unwrap();
    assert_eq!(turn(&mut wires), Borrowed::Full);
    assert_eq!(wires.wire(link).packets.len(), 3);
    wires.wire(link).room = usize::MAX;
    assert_eq!(turn(&mut wires), Borrowed::More);
    assert_eq!(wires.wire(link).packets.len(), 3 + BORROWED_BURST);
    assert_eq!(turn(&mut wires), Borrowed::More);
    assert_eq!(turn(&mut wires), Borrowed::Sent);
    assert_eq!(transmitter.finish_borrowed(terminus).unwrap().sequence, 1);
    assert_eq!(transmitter.completions(terminus).unwrap().completion(1), Completion::Sent);
    let packets = wires.drain(link);
    for (packet, (offset, metadata, data, word)) in packets.iter().zip(model::cut(0, &metadata, &data, 64, 1 << 32, 1 << 32)) {
        assert_eq!(*packet, Packet::new(Header { offset, word, ..message(link).header }, &metadata, &data));
    }
    assert_eq!(packets.len(), 41);
}

#[test]
fn borrowed_message_waits_for_its_queue_and_hears_of_a_lost_link() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    transmitter.post(terminus, &message(link), &[], &[1], &mut wires).unwrap();
    let refused = transmitter.begin_borrowed(terminus, &message(link), &[], 10, &wires);
    assert_eq!(refused.unwrap_err(), PostError::QueueFull);
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    let mut segmenter = transmitter.begin_borrowed(terminus, &message(link), &[], 10, &wires).unwrap();
    wires.lose(link);
    let state = transmitter.continue_borrowed(terminus, link, &mut segmenter, &[], &[0; 10], &mut wires);
    assert_eq!(state, Ok(Borrowed::Gone));
    assert_eq!(transmitter.completions(terminus).unwrap().done(), 1);
}

#[test]
fn borrowed_message_does_not_complete_what_was_queued_meanwhile() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 1);
    let other = wires.add(64, 0);
    let mut segmenter = transmitter.begin_borrowed(terminus, &message(link), &[], 10, &wires).unwrap();
    let queued = transmitter.post(terminus, &message(other), &[], &[1], &mut wires).unwrap().handle;
    let state = transmitter.continue_borrowed(terminus, link, &mut segmenter, &[], &[0; 10], &mut wires);
    assert_eq!(state, Ok(Borrowed::Sent));
    assert_eq!(transmitter.finish_borrowed(terminus), Err(PostError::QueueFull));
    let word = transmitter.completions(terminus).unwrap();
    assert_eq!(word.completion(queued.sequence), Completion::Pending);
    wires.wire(other).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    let borrowed = transmitter.finish_borrowed(terminus).unwrap();
    assert_eq!((queued.sequence, borrowed.sequence, word.done()), (1, 2, 2));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Gather from up to eight areas, over links of any packet size that fill up at any
    /// moment: what goes out is what the model cuts, in order.
    #[test]
    fn gathered_messages_agree_with_the_model(
        messages in prop::collection::vec(
            (prop::collection::vec((0_usize..8, 0_u64..400, 0_u64..600), 0..=8), 0_usize..=60),
            1..20,
        ),
        payload in prop_oneof![Just(64_usize), 64_usize..2_000, Just(65_536)],
        rooms in prop::collection::vec(0_usize..7, 1..50),
    ) {
        let (mut transmitter, terminus) = one();
        let (mut wires, link) = Wires::with_room(payload, 0);
        let contents: Vec<_> = (0..8).map(|seed| pattern(seed, 1_100)).collect();
        let tags: Vec<_> = contents.iter().enumerate()
            .map(|(number, bytes)| transmitter.bind_area(terminus, VecArea::from_bytes(bytes.clone()), number as u64 * 10, 1_000).unwrap())
            .collect();
        let mut expected = Vec::new();
        for (number, (pieces, metadata)) in messages.iter().enumerate() {
            let message = numbered(link, number as u64);
            let metadata = pattern(number as u64 + 70, *metadata);
            let list: Vec<_> = pieces.iter().map(|&(area, offset, length_bytes)| GatherPiece { tag: tags[area], offset, length_bytes }).collect();
            let data: Vec<u8> = pieces.iter().flat_map(|&(area, offset, length)| {
                contents[area][area * 10 + offset as usize..][..length as usize].to_vec()
            }).collect();
            transmitter.post_gather(terminus, &message, &metadata, &list, &mut wires).unwrap();
            for (offset, metadata, data, word) in model::cut(message.header.offset, &metadata, &data, payload, 1 << 32, 1 << 32) {
                expected.push(Packet::new(Header { offset, word, ..message.header }, &metadata, &data));
            }
        }
        for room in rooms {
            wires.wire(link).room = room;
            transmitter.pump(&mut wires, usize::MAX);
        }
        wires.wire(link).room = usize::MAX;
        transmitter.pump(&mut wires, usize::MAX);
        prop_assert!(wires.drain(link) == expected);
        prop_assert_eq!(transmitter.completions(terminus).unwrap().done(), messages.len() as u64);
    }
}
