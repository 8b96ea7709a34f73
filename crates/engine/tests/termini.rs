//! Send termini (Hamlyn 2.3): work queues, one for each destination, completion, direct I/O,
//! send-buffer areas, gather, streaming sends.

use crate::host::{Packet, VecArea, Wires, message, numbered, one, pattern};
use crate::model;
use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{
    DIRECT_BYTES_MAX, MESSAGE_BYTES_MAX, TERMINI_MAX, WORK_QUEUE_ENTRIES_MAX,
};
use hamlyn_engine::memory::{LinkId, Part, TxLinks, Unsent};
use hamlyn_engine::packet::{Address, Header, Short, SlotName};
use hamlyn_engine::terminus::{
    Completion, GatherPiece, PostError, SendHandle, TerminusError, TerminusOptions,
};
use hamlyn_engine::transmit::{Message, SendProgress, Transmitter};

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
    assert_eq!(transmitter.waiting(), 63);
    wires.wire(link).room = 1;
    assert_eq!(transmitter.pump(&mut wires, usize::MAX).packets, 1);
    assert_eq!(transmitter.waiting(), 62);
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
fn completion_tells_pending_from_sent() {
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
    let states = |transmitter: &Transmitter<VecArea>| {
        [first, second].map(|handle| transmitter.completion(handle).unwrap())
    };
    // Four packets of the first; only its last completes it.
    for _ in 0..4 {
        assert_eq!(states(&transmitter), [Completion::Pending; 2]);
        wires.wire(link).room = 1;
        transmitter.pump(&mut wires, usize::MAX);
    }
    let one_done = [Completion::Sent, Completion::Pending];
    assert_eq!(states(&transmitter), one_done);
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    assert_eq!(states(&transmitter), [Completion::Sent; 2]);
    let third = SendHandle {
        terminus,
        sequence: 3,
    };
    assert_eq!(transmitter.completion(third), Ok(Completion::Pending));
    // What goes out at once is counted in the same sequence.
    wires.wire(link).room = 1;
    let posted = transmitter
        .post(terminus, &message(link), &[], &[1], &mut wires)
        .unwrap();
    assert_eq!((posted.sent, posted.handle), (true, third));
    assert_eq!(transmitter.completion(third), Ok(Completion::Sent));
}

#[test]
fn a_destination_that_takes_nothing_holds_up_no_other() {
    let (mut transmitter, terminus) = one();
    let (mut wires, stopped) = Wires::with_room(64, 0);
    let live = wires.add(64, usize::MAX);
    let mut waiting = Vec::new();
    for number in 0..63 {
        let posted = transmitter
            .post(terminus, &numbered(stopped, number), &[], &[1], &mut wires)
            .unwrap();
        waiting.push(posted.handle);
    }
    let full = transmitter.post(terminus, &message(stopped), &[], &[1], &mut wires);
    assert_eq!(full, Err(PostError::QueueFull));
    // Its queue is full, and everything else goes at once, by every call that sends.
    let area = VecArea::from_bytes(pattern(1, 200));
    let tag = transmitter.bind_area(terminus, area, 0, 200).unwrap();
    let piece = GatherPiece {
        tag,
        offset: 0,
        length_bytes: 200,
    };
    let to_live = message(live);
    let sent = [
        transmitter.post(terminus, &to_live, &[], &[1], &mut wires),
        transmitter.post_gather(terminus, &to_live, &[], &[piece], &mut wires),
        transmitter.post_placed(terminus, || to_live, &[], 1 << 20, &mut wires),
    ];
    assert!(sent.iter().all(|posted| posted.unwrap().sent), "{sent:?}");
    let short = Short {
        to: Address::new(SlotName::new(0, 0), 0),
        key: Key::from_bits(0),
        offset: 0,
        word: 0,
        has_metadata: true,
        length_bytes: 16,
        data: [1, 2, 0, 0],
    };
    let handle = transmitter.post_short(terminus, live, short, &mut wires);
    assert_eq!(
        transmitter.completion(handle.unwrap()),
        Ok(Completion::Sent)
    );
    assert!(
        transmitter
            .post_short(terminus, stopped, short, &mut wires)
            .is_none()
    );
    let data = pattern(2, 1_000);
    let mut segmenter = transmitter
        .begin_streaming(terminus, &to_live, &[], 1_000, &wires)
        .unwrap();
    let state =
        transmitter.continue_streaming(terminus, live, &mut segmenter, &[], &data, &mut wires);
    assert_eq!(state, Ok(SendProgress::Sent));
    assert_eq!(wires.drain(live).len(), 1 + 4 + 1 + 1 + 16);
    let pending = |handle: &SendHandle| transmitter.completion(*handle) == Ok(Completion::Pending);
    assert!(waiting.iter().all(pending));
    // When it takes packets again, they come in order.
    wires.wire(stopped).room = usize::MAX;
    transmitter.pump(&mut wires, usize::MAX);
    let came = wires.drain(stopped);
    let offsets: Vec<_> = came.iter().map(|packet| packet.header.offset).collect();
    let expected: Vec<_> = (0..63).map(|number| number * 1_000).collect();
    assert_eq!(offsets, expected);
}

/// So many links without room, for each of which a message waits.
fn all_full(count: usize) -> (Transmitter<VecArea>, Wires, Vec<LinkId>) {
    let (mut transmitter, terminus) = one();
    let (mut wires, first) = Wires::with_room(64, 0);
    let mut links = vec![first];
    links.extend((1..count).map(|_| wires.add(64, 0)));
    for &link in &links {
        transmitter
            .post(terminus, &message(link), &[], &[1], &mut wires)
            .unwrap();
    }
    (transmitter, wires, links)
}

#[test]
fn a_pump_serves_those_with_room_beside_many_without() {
    let (mut transmitter, mut wires, links) = all_full(200);
    let live = links[150];
    wires.wire(live).room = 1;
    let before = wires.offers;
    // Each pump asks a few, and goes on where the one before ended.
    let pumps = (1..=200).find(|_| transmitter.pump(&mut wires, 64).packets == 1);
    assert!(pumps.is_some_and(|pumps| pumps <= 200 / 8), "{pumps:?}");
    assert!(wires.offers - before <= 200);
    assert_eq!(wires.drain(live).len(), 1);
}

/// Who is about to sleep pumps once more: a link that has room again must not hide behind those
/// that have none.
#[test]
fn one_pump_finds_the_link_that_has_room_behind_any_number_without() {
    let (mut transmitter, mut wires, links) = all_full(2_000);
    let live = links[1_999];
    wires.wire(live).room = 1;
    wires.tells_room = true;
    assert_eq!(transmitter.pump(&mut wires, 64).packets, 1);
    assert_eq!(wires.drain(live).len(), 1);
}

#[test]
fn lost_link_fails_what_waited_for_it_and_no_more() {
    let (mut transmitter, terminus) = one();
    let (mut wires, lost) = Wires::with_room(64, 0);
    let kept = wires.add(64, 0);
    let handles = [lost, kept, lost, kept].map(|link| {
        transmitter
            .post(terminus, &message(link), &[], &[1], &mut wires)
            .unwrap()
            .handle
    });
    wires.lose(lost);
    transmitter.link_ended(lost);
    let states = handles.map(|handle| transmitter.completion(handle).unwrap());
    let (failed, pending) = (Completion::Failed, Completion::Pending);
    assert_eq!(states, [failed, pending, failed, pending]);
    wires.wire(kept).room = 5;
    let pumped = transmitter.pump(&mut wires, usize::MAX);
    assert_eq!((pumped.packets, pumped.waiting), (2, false));
    let states = handles.map(|handle| transmitter.completion(handle).unwrap());
    assert_eq!(states, [failed, Completion::Sent, failed, Completion::Sent]);
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
    // A message that was not accepted has no number.
    let next = transmitter.post(terminus, &message(kept), &[], &[1], &mut wires);
    assert_eq!(next.unwrap().handle.sequence, 5);
}

/// A pump finds the loss by itself, and so does a new link in the same place.
#[test]
fn what_waits_for_a_link_never_goes_to_another_one_in_its_place() {
    let (mut transmitter, terminus) = one();
    let (mut wires, old) = Wires::with_room(64, 0);
    let post = |transmitter: &mut Transmitter<VecArea>, wires: &mut Wires, link| {
        let posted = transmitter.post(terminus, &message(link), &[], &[1], wires);
        posted.unwrap().handle
    };
    let first = post(&mut transmitter, &mut wires, old);
    let new = LinkId {
        generation: old.generation + 1,
        ..old
    };
    let second = post(&mut transmitter, &mut wires, new);
    let states = [first, second].map(|handle| transmitter.completion(handle).unwrap());
    assert_eq!(states, [Completion::Failed, Completion::Pending]);
    wires.lose(new);
    transmitter.pump(&mut wires, usize::MAX);
    assert_eq!(transmitter.completion(second), Ok(Completion::Failed));
    assert!(!transmitter.is_waiting());
}

#[test]
fn failures_are_remembered_for_each_destination_as_many_as_its_queue_holds() {
    let mut transmitter = Transmitter::<VecArea>::new();
    let terminus = transmitter
        .open_terminus(TerminusOptions {
            queue_entries: 3,
            ..TerminusOptions::default()
        })
        .unwrap();
    let (mut wires, lost) = Wires::with_room(64, 0);
    let kept = wires.add(64, usize::MAX);
    let post = |transmitter: &mut Transmitter<VecArea>, wires: &mut Wires, link| {
        let posted = transmitter.post(terminus, &message(link), &[], &[1], wires);
        posted.unwrap().handle
    };
    let old = post(&mut transmitter, &mut wires, lost);
    transmitter.link_ended(lost);
    for _ in 0..100 {
        let sent = post(&mut transmitter, &mut wires, kept);
        assert_eq!(transmitter.completion(sent), Ok(Completion::Sent));
        assert_eq!(transmitter.completion(old), Ok(Completion::Failed));
    }
    let failed: Vec<_> = (0..3)
        .map(|_| post(&mut transmitter, &mut wires, lost))
        .collect();
    transmitter.link_ended(lost);
    for handle in failed {
        assert_eq!(transmitter.completion(handle), Ok(Completion::Failed));
    }
}

#[test]
fn a_message_that_failed_is_not_said_to_be_sent() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    // The link is known, but gone when the packet is offered.
    struct Gone<'a>(&'a mut Wires);
    impl TxLinks<VecArea> for Gone<'_> {
        fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
            self.0.payload_max_bytes(link)
        }
        fn offer(
            &mut self,
            _: LinkId,
            _: &Header,
            _: &[u8],
            _: &[Part<'_, VecArea>],
        ) -> Result<(), Unsent> {
            Err(Unsent::Gone)
        }
    }
    let posted = transmitter.post_gather(terminus, &message(link), &[], &[], &mut Gone(&mut wires));
    assert_eq!(posted, Err(PostError::LinkGone));
}

#[test]
fn a_fast_message_is_one_packet_though_its_path_became_narrower() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(100, 0);
    let fast = Message {
        header: Header {
            metadata_index: 0xFFFF,
            ..message(link).header
        },
        ..message(link)
    };
    let [whole, short] = [100, 64].map(|length| {
        let data = pattern(1, length);
        let posted = transmitter.post(terminus, &fast, &[], &data, &mut wires);
        posted.unwrap().handle
    });
    let mut segmenter = transmitter.begin_streaming(terminus, &fast, &[], 100, &wires);
    assert_eq!(segmenter.as_ref().err(), Some(&PostError::QueueFull));
    wires.wire(link).payload_max_bytes = 64;
    wires.wire(link).room = 9;
    transmitter.pump(&mut wires, usize::MAX);
    let packets = wires.drain(link);
    assert_eq!(packets.len(), 1, "the one that still fits");
    assert_eq!(packets[0].data.len(), 64);
    let states = [whole, short].map(|handle| transmitter.completion(handle).unwrap());
    assert_eq!(states, [Completion::Failed, Completion::Sent]);
    wires.wire(link).payload_max_bytes = 100;
    segmenter = transmitter.begin_streaming(terminus, &fast, &[], 100, &wires);
    wires.wire(link).payload_max_bytes = 64;
    let data = [7; 100];
    let (segmenter, wires) = (&mut segmenter.unwrap(), &mut wires);
    let state = transmitter.continue_streaming(terminus, link, segmenter, &[], &data, wires);
    assert!(matches!(state, Err(PostError::FastTooLong { .. })));
}

#[test]
fn closing_a_terminus_drops_what_is_queued_and_its_name_is_never_good_again() {
    let (mut transmitter, terminus) = one();
    let other = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    let (mut wires, link) = Wires::with_room(64, 0);
    let dropped = transmitter
        .post(terminus, &numbered(link, 1), &[], &[1], &mut wires)
        .unwrap();
    transmitter
        .post(other, &numbered(link, 2), &[], &[2], &mut wires)
        .unwrap();
    transmitter.close_terminus(terminus).unwrap();
    let successor = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    assert_ne!(successor, terminus);
    assert_eq!(
        transmitter.completion(dropped.handle),
        Err(TerminusError::NoSuchTerminus)
    );
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
        share: Share::from_minus_one(14, Counting::Bits32).unwrap(),
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
        gather(&plain, &[], &[piece; 1_025]),
        PostError::TooManyPieces { pieces: 1_025 }
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
        transmitter.begin_streaming(terminus, &plain, &[], MESSAGE_BYTES_MAX + 1, &wires),
        Err(PostError::TooLong)
    ));
    assert_eq!((wires.offers, transmitter.is_waiting()), (0, false));
    transmitter
        .post(terminus, &at_end, &[], &[0; 9], &mut wires)
        .unwrap();
    assert!(!transmitter.is_waiting());
}

#[test]
fn terminus_options_are_bounded() {
    let mut transmitter = Transmitter::<VecArea>::new();
    for asked in [0, WORK_QUEUE_ENTRIES_MAX + 1] {
        let options = TerminusOptions {
            queue_entries: asked,
            ..TerminusOptions::default()
        };
        assert_eq!(
            transmitter.open_terminus(options),
            Err(TerminusError::QueueEntries { asked })
        );
    }
    let options = TerminusOptions {
        priority: 0,
        ..TerminusOptions::default()
    };
    assert_eq!(
        transmitter.open_terminus(options),
        Err(TerminusError::Priority)
    );
    let options = TerminusOptions {
        queue_entries: 1,
        ..TerminusOptions::default()
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

#[test]
fn memory_of_queues_is_given_back_when_nothing_waits_there() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    assert!(!transmitter.has_spare());
    transmitter
        .post(terminus, &message(link), &[], &[1], &mut wires)
        .unwrap();
    transmitter.shrink();
    assert!(transmitter.is_waiting() && !transmitter.has_spare());
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    assert!(transmitter.has_spare());
    transmitter.shrink();
    assert!(!transmitter.has_spare());
}

#[test]
fn bytes_that_must_wait_are_kept_of_any_length_up_to_a_bound() {
    let mut transmitter = Transmitter::<VecArea>::new();
    let options = TerminusOptions {
        queue_bytes: 1_000,
        ..TerminusOptions::default()
    };
    let terminus = transmitter.open_terminus(options).unwrap();
    let (mut wires, link) = Wires::with_room(64, 2);
    let other = wires.add(64, 0);
    let whole = pattern(1, 3_000);
    // The link takes two packets of it; the rest waits, although it is beyond the bound.
    let mut data = whole.clone();
    let post = |transmitter: &mut Transmitter<VecArea>, wires: &mut Wires, link, data: &mut _| {
        transmitter.post_owned(terminus, &message(link), &[], data, wires)
    };
    let first = post(&mut transmitter, &mut wires, link, &mut data).unwrap();
    assert!(!first.sent && data.is_empty());
    // One more is given back.
    data = whole.clone();
    let refused = post(&mut transmitter, &mut wires, link, &mut data);
    assert_eq!(refused, Err(PostError::QueueFull));
    assert_eq!(data, whole);
    let refused = transmitter.post_copied(terminus, &message(link), &[], &data, &mut wires);
    assert_eq!(refused, Err(PostError::QueueFull));
    // Short ones have entries of their own, and other destinations bounds of their own.
    transmitter
        .post_copied(terminus, &message(link), &[], &data[..64], &mut wires)
        .unwrap();
    for length in [400, 600] {
        transmitter
            .post_copied(terminus, &message(other), &[], &data[..length], &mut wires)
            .unwrap();
    }
    let refused = post(&mut transmitter, &mut wires, other, &mut data);
    assert_eq!(refused, Err(PostError::QueueFull));
    wires.wire(link).room = usize::MAX;
    transmitter.pump(&mut wires, usize::MAX);
    let came: Vec<u8> = wires
        .drain(link)
        .into_iter()
        .flat_map(|packet| packet.data)
        .collect();
    assert_eq!(came, [&whole[..], &whole[..64]].concat());
    assert_eq!(transmitter.completion(first.handle), Ok(Completion::Sent));
    // Bytes that were kept for a lost link no longer count.
    transmitter.link_ended(other);
    let again = wires.add(64, 0);
    let kept = post(&mut transmitter, &mut wires, again, &mut data).unwrap();
    assert!(!kept.sent && data.is_empty());
    // A link with room takes all of it, and the bytes stay the caller's.
    wires.wire(link).room = usize::MAX;
    let sent = post(&mut transmitter, &mut wires, link, &mut data);
    assert!(sent.unwrap().sent);
}
