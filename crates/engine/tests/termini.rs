//! Send termini (Hamlyn 2.3): work queue, completion word, direct I/O, send-buffer
//! areas, gather, borrowed messages.

mod lent;
mod model;

use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::limits::{
    DIRECT_BYTES_MAX, MESSAGE_BYTES_MAX, TERMINI_MAX, WORK_QUEUE_ENTRIES_MAX,
};
use hamlyn_engine::packet::Header;
use hamlyn_engine::terminus::{Completion, GatherPiece, PostError, TerminusError, TerminusOptions};
use hamlyn_engine::transmit::{Message, Transmitter};
use lent::{Packet, VecArea, Wires, message, numbered, one, pattern};

#[test]
fn sixty_three_entries_then_queue_full_and_nothing_lost() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    let mut handles = Vec::new();
    for number in 0..63 {
        let posted = transmitter
            .post(
                terminus,
                &numbered(link, number),
                &[],
                &[number as u8],
                &mut wires,
            )
            .unwrap();
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
    transmitter
        .post(terminus, &numbered(link, 63), &[], &[63], &mut wires)
        .unwrap();
    wires.wire(link).room = usize::MAX;
    let pumped = transmitter.pump(&mut wires, usize::MAX);
    assert_eq!((pumped.packets, pumped.waiting), (63, false));
    // First in, first out; each of them once; refused ones never.
    let came: Vec<_> = wires
        .drain(link)
        .iter()
        .map(|packet| (packet.header.offset / 1_000, packet.data[0]))
        .collect();
    assert_eq!(
        came,
        (0..64)
            .map(|number| (number, number as u8))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        handles
            .iter()
            .map(|handle| handle.sequence)
            .collect::<Vec<_>>(),
        (1..=63).collect::<Vec<_>>()
    );
}

#[test]
fn completion_word_grows_by_message_and_tells_pending_from_sent() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    let area = VecArea::from_bytes(pattern(1, 200));
    let tag = transmitter.bind_area(terminus, area, 0, 200).unwrap();
    let long = GatherPiece {
        tag,
        offset: 0,
        length_bytes: 200,
    };
    let first = transmitter
        .post_gather(terminus, &message(link), &[], &[long], &mut wires)
        .unwrap()
        .handle;
    let second = transmitter
        .post(terminus, &message(link), &[], &[1], &mut wires)
        .unwrap()
        .handle;
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
    let third = transmitter
        .post(terminus, &message(link), &[], &[1], &mut wires)
        .unwrap();
    assert_eq!(
        (third.sent, third.handle.sequence, word.done()),
        (true, 3, 3)
    );
}

#[test]
fn lost_link_fails_what_waited_for_it_and_no_more() {
    let (mut transmitter, terminus) = one();
    let (mut wires, lost) = Wires::with_room(64, 0);
    let kept = wires.add(64, 0);
    let word = transmitter.completions(terminus).unwrap();
    for link in [lost, kept, lost, kept] {
        transmitter
            .post(terminus, &message(link), &[], &[1], &mut wires)
            .unwrap();
    }
    wires.lose(lost);
    wires.wire(kept).room = 5;
    let pumped = transmitter.pump(&mut wires, usize::MAX);
    assert_eq!((pumped.packets, pumped.waiting), (2, false));
    let states: Vec<_> = (1..=4).map(|sequence| word.completion(sequence)).collect();
    assert_eq!(
        states,
        [
            Completion::Failed,
            Completion::Sent,
            Completion::Failed,
            Completion::Sent
        ]
    );
    assert_eq!(
        transmitter.post(terminus, &message(lost), &[], &[1], &mut wires),
        Err(PostError::LinkGone)
    );
    assert_eq!(
        transmitter.post(terminus, &message(lost), &[], &[1; 100], &mut wires),
        Err(PostError::LinkGone)
    );
    assert_eq!(
        transmitter.post_gather(terminus, &message(lost), &[], &[], &mut wires),
        Err(PostError::LinkGone)
    );
    assert_eq!(
        word.done(),
        4,
        "a message that was not accepted has no number"
    );
}

#[test]
fn failure_is_remembered_while_the_queue_turns_once() {
    let mut transmitter = Transmitter::<VecArea>::new();
    let terminus = transmitter
        .open_terminus(TerminusOptions {
            queue_entries: 3,
            priority: 1,
        })
        .unwrap();
    let (mut wires, lost) = Wires::with_room(64, 0);
    let kept = wires.add(64, usize::MAX);
    transmitter
        .post(terminus, &message(lost), &[], &[1], &mut wires)
        .unwrap();
    wires.lose(lost);
    transmitter.pump(&mut wires, usize::MAX);
    let word = transmitter.completions(terminus).unwrap();
    for after in 0..3 {
        assert_eq!(word.completion(1), Completion::Failed, "after {after} more");
        let handle = transmitter
            .post(terminus, &message(kept), &[], &[1], &mut wires)
            .unwrap()
            .handle;
        assert_eq!(word.completion(handle.sequence), Completion::Sent);
    }
    assert_eq!(word.completion(1), Completion::Failed);
    let fifth = transmitter
        .post(terminus, &message(kept), &[], &[1], &mut wires)
        .unwrap()
        .handle;
    assert_eq!(
        word.completion(fifth.sequence),
        Completion::Sent,
        "an old failure in the same place is not its own"
    );
}

#[test]
fn closing_a_terminus_fails_what_is_queued() {
    let (mut transmitter, terminus) = one();
    let other = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    let (mut wires, link) = Wires::with_room(64, 0);
    let word = transmitter.completions(terminus).unwrap();
    transmitter
        .post(terminus, &numbered(link, 1), &[], &[1], &mut wires)
        .unwrap();
    transmitter
        .post(other, &numbered(link, 2), &[], &[2], &mut wires)
        .unwrap();
    transmitter.close_terminus(terminus).unwrap();
    assert_eq!(word.completion(1), Completion::Failed);
    assert_eq!(
        transmitter.post(terminus, &message(link), &[], &[1], &mut wires),
        Err(PostError::NoSuchTerminus)
    );
    assert_eq!(
        transmitter.close_terminus(terminus),
        Err(TerminusError::NoSuchTerminus)
    );
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
    assert_eq!(
        too_long,
        Err(PostError::TooLongToQueue { length_bytes: 129 })
    );
    transmitter
        .post(
            terminus,
            &message(link),
            &metadata,
            &data[..128],
            &mut wires,
        )
        .unwrap();
    let expected = data[..128].to_vec();
    // The bytes were copied: the caller may do with its own what it likes.
    data.fill(0);
    let waiting = transmitter.post(terminus, &message(link), &[], &data, &mut wires);
    assert_eq!(waiting, Err(PostError::QueueFull));
    wires.wire(link).room = 10;
    transmitter.pump(&mut wires, usize::MAX);
    let packets = wires.drain(link);
    assert_eq!(
        packets
            .iter()
            .flat_map(|packet| packet.data.clone())
            .collect::<Vec<_>>(),
        expected
    );
    assert_eq!(
        (packets[0].metadata.clone(), packets[0].data.len()),
        (metadata, 40)
    );
    assert!(packets[1..].iter().all(|packet| packet.metadata.is_empty()));
}

#[test]
fn direct_message_that_stops_half_way_is_finished_from_the_queue() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 1);
    let data = pattern(3, 128);
    let posted = transmitter
        .post(terminus, &message(link), &[9; 20], &data, &mut wires)
        .unwrap();
    assert!(!posted.sent);
    wires.wire(link).room = 10;
    transmitter.pump(&mut wires, usize::MAX);
    let packets = wires.drain(link);
    let cut = model::cut(0, &[9; 20], &data, 64, 1 << 32, 1 << 32);
    assert_eq!(packets.len(), cut.len());
    for (packet, (offset, metadata, data, word)) in packets.iter().zip(cut) {
        assert_eq!(
            *packet,
            Packet::new(
                Header {
                    offset,
                    word,
                    ..message(link).header
                },
                &metadata,
                &data
            )
        );
    }
}

#[test]
fn message_at_hand_goes_out_at_once_in_one_packet_of_any_size_that_fits() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::wide(4_096);
    for (metadata, data) in [(0, 0), (0, 64), (1, 64), (60, 4_036), (0, 4_096)] {
        let (metadata, data) = (pattern(1, metadata), pattern(2, data));
        let posted = transmitter
            .post(terminus, &message(link), &metadata, &data, &mut wires)
            .unwrap();
        assert!(posted.sent);
        assert_eq!(
            wires.drain(link),
            [Packet::new(message(link).header, &metadata, &data)]
        );
    }
    let over = transmitter.post(terminus, &message(link), &[], &[0; 4_097], &mut wires);
    assert_eq!(
        over,
        Err(PostError::TooLongToQueue {
            length_bytes: 4_097
        })
    );
    assert!(wires.drain(link).is_empty());
}

#[test]
fn impossible_messages_are_refused_before_anything_is_sent() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::wide(64);
    let area = VecArea::from_bytes(pattern(1, 1_000));
    let tag = transmitter.bind_area(terminus, area, 0, 1_000).unwrap();
    let piece = GatherPiece {
        tag,
        offset: 0,
        length_bytes: 1_000,
    };
    let plain = message(link);
    let at_end = Message {
        header: Header {
            offset: u64::MAX - 9,
            ..plain.header
        },
        ..plain
    };
    let fast = Message {
        header: Header {
            metadata_index: 0xFFFF,
            ..plain.header
        },
        ..plain
    };
    let small = Message {
        share: Share::from_less_one(14, Counting::Bits32).unwrap(),
        ..plain
    };
    let mut gather = |message: &Message, metadata: &[u8], pieces: &[GatherPiece]| {
        transmitter
            .post_gather(terminus, message, metadata, pieces, &mut wires)
            .unwrap_err()
    };
    assert_eq!(
        gather(&plain, &[0; 61], &[piece]),
        PostError::MetadataTooLong { length_bytes: 61 }
    );
    assert_eq!(
        gather(&plain, &[], &[piece; 9]),
        PostError::TooManyPieces { pieces: 9 }
    );
    assert_eq!(gather(&at_end, &[], &[piece]), PostError::TooLong);
    assert!(matches!(
        gather(&fast, &[], &[piece]),
        PostError::FastTooLong {
            length_bytes: 1_000,
            payload_max_bytes: 64
        }
    ));
    assert!(matches!(
        gather(&fast, &[1], &[]),
        PostError::FastTooLong { .. }
    ));
    assert!(
        matches!(gather(&small, &[], &[piece]), PostError::Share(error) if error.packets == 16 && error.share == 15)
    );
    assert_eq!(
        transmitter.post(terminus, &at_end, &[], &[0; 11], &mut wires),
        Err(PostError::TooLong)
    );
    assert_eq!(
        transmitter.post(terminus, &plain, &[0; 61], &[], &mut wires),
        Err(PostError::MetadataTooLong { length_bytes: 61 })
    );
    assert!(matches!(
        transmitter.post(terminus, &fast, &[1], &[], &mut wires),
        Err(PostError::FastTooLong { .. })
    ));
    assert!(matches!(
        transmitter.begin_borrowed(terminus, &plain, &[], MESSAGE_BYTES_MAX + 1, &wires),
        Err(PostError::TooLong)
    ));
    assert_eq!((wires.offers, transmitter.is_waiting()), (0, false));
    transmitter
        .post(terminus, &at_end, &[], &[0; 9], &mut wires)
        .unwrap();
    assert_eq!(transmitter.completions(terminus).unwrap().done(), 1);
}

#[test]
fn terminus_options_are_bounded() {
    let mut transmitter = Transmitter::<VecArea>::new();
    for asked in [0, WORK_QUEUE_ENTRIES_MAX + 1] {
        let options = TerminusOptions {
            queue_entries: asked,
            priority: 1,
        };
        assert_eq!(
            transmitter.open_terminus(options),
            Err(TerminusError::QueueEntries { asked })
        );
    }
    let options = TerminusOptions {
        queue_entries: 1,
        priority: 0,
    };
    assert_eq!(
        transmitter.open_terminus(options),
        Err(TerminusError::Priority)
    );
    let options = TerminusOptions {
        queue_entries: 1,
        priority: 1,
    };
    let all: Vec<_> = (0..TERMINI_MAX)
        .map(|_| transmitter.open_terminus(options).unwrap())
        .collect();
    assert_eq!(
        transmitter.open_terminus(options),
        Err(TerminusError::TooMany)
    );
    transmitter.close_terminus(all[9]).unwrap();
    transmitter.open_terminus(options).unwrap();
}
