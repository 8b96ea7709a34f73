//! Send-buffer areas and messages gathered from them (Hamlyn 2.3).

use crate::host::{Packet, VecArea, Wires, message, numbered, one, pattern};
use crate::model;
use hamlyn_engine::limits::{GATHER_PIECES_HELD, GATHER_PIECES_MAX, SEND_AREAS, SEND_AREAS_MAX};
use hamlyn_engine::packet::Header;
use hamlyn_engine::terminus::{GatherPiece, PostError, SendTag, TerminusError, TerminusOptions};
use proptest::prelude::*;

#[test]
fn unbind_is_refused_while_a_queued_message_uses_the_area() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    let tags = [1, 2].map(|seed| {
        transmitter
            .bind_area(terminus, VecArea::from_bytes(pattern(seed, 50)), 0, 50)
            .unwrap()
    });
    let piece = |tag| GatherPiece {
        tag,
        offset: 0,
        length_bytes: 50,
    };
    transmitter
        .post_gather(terminus, &message(link), &[], &[piece(tags[0])], &mut wires)
        .unwrap();
    assert_eq!(
        transmitter.unbind_area(terminus, tags[0]),
        Err(TerminusError::InUse { tag: tags[0] })
    );
    transmitter.unbind_area(terminus, tags[1]).unwrap();
    assert_eq!(
        transmitter.unbind_area(terminus, tags[1]),
        Err(TerminusError::NoSuchArea { tag: tags[1] })
    );
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    transmitter.unbind_area(terminus, tags[0]).unwrap();
    let gone =
        transmitter.post_gather(terminus, &message(link), &[], &[piece(tags[0])], &mut wires);
    assert_eq!(gone, Err(PostError::NoSuchArea { tag: tags[0] }));
}

#[test]
fn send_areas_keep_to_their_bounds() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::wide(64);
    let area = VecArea::from_bytes(pattern(1, 100));
    for (base, length_bytes) in [(0, 101), (101, 0), (u64::MAX, 1), (50, u64::MAX)] {
        let bound = transmitter.bind_area(terminus, area.clone(), base, length_bytes);
        assert_eq!(
            bound,
            Err(TerminusError::DoesNotFit {
                base,
                length_bytes,
                area_bytes: 100
            })
        );
    }
    let tags: Vec<_> = (0..SEND_AREAS as u64)
        .map(|number| {
            transmitter
                .bind_area(terminus, area.clone(), number * 10, 20)
                .unwrap()
        })
        .collect();
    assert_eq!(SEND_AREAS, 8);
    assert_eq!(
        transmitter.bind_area(terminus, area.clone(), 0, 1),
        Err(TerminusError::TooManyAreas { areas: 8 })
    );
    for (number, &tag) in tags.iter().enumerate() {
        for (offset, length_bytes) in [(0, 21), (20, 1), (21, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let piece = GatherPiece {
                tag,
                offset,
                length_bytes,
            };
            let posted =
                transmitter.post_gather(terminus, &message(link), &[], &[piece], &mut wires);
            assert_eq!(
                posted,
                Err(PostError::OutsideArea {
                    tag,
                    offset,
                    length_bytes,
                    area_bytes: 20
                })
            );
        }
        let piece = GatherPiece {
            tag,
            offset: 1,
            length_bytes: 19,
        };
        transmitter
            .post_gather(terminus, &message(link), &[], &[piece], &mut wires)
            .unwrap();
        assert_eq!(
            wires.drain(link)[0].data,
            pattern(1, 100)[number * 10 + 1..][..19]
        );
    }
    for tag in [SendTag(8), SendTag(u16::MAX)] {
        let piece = GatherPiece {
            tag,
            offset: 0,
            length_bytes: 0,
        };
        let posted = transmitter.post_gather(terminus, &message(link), &[], &[piece], &mut wires);
        assert_eq!(posted, Err(PostError::NoSuchArea { tag }));
    }
    // The areas of one terminus are not those of another.
    let other = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    let piece = GatherPiece {
        tag: tags[0],
        offset: 0,
        length_bytes: 1,
    };
    let posted = transmitter.post_gather(other, &message(link), &[], &[piece], &mut wires);
    assert_eq!(posted, Err(PostError::NoSuchArea { tag: tags[0] }));
}

#[test]
fn a_terminus_has_as_many_send_areas_as_it_was_opened_with() {
    let (mut transmitter, _) = one();
    let open = |send_areas| TerminusOptions {
        send_areas,
        ..TerminusOptions::default()
    };
    let refused = transmitter.open_terminus(open(SEND_AREAS_MAX + 1));
    let asked = SEND_AREAS_MAX + 1;
    assert_eq!(refused, Err(TerminusError::SendAreas { asked }));
    let (mut wires, link) = Wires::wide(64);
    for areas in [0, 1, SEND_AREAS_MAX] {
        let terminus = transmitter.open_terminus(open(areas)).unwrap();
        let mut bind = |seed: usize| {
            let area = VecArea::from_bytes(pattern(seed as u64, 20));
            transmitter.bind_area(terminus, area, 0, 20)
        };
        let tags: Vec<_> = (0..areas).map(|seed| bind(seed).unwrap()).collect();
        assert_eq!(bind(areas), Err(TerminusError::TooManyAreas { areas }));
        for (seed, tag) in tags.into_iter().enumerate() {
            let (offset, length_bytes) = (3, 7);
            let piece = GatherPiece {
                tag,
                offset,
                length_bytes,
            };
            transmitter
                .post_gather(terminus, &message(link), &[], &[piece], &mut wires)
                .unwrap();
            assert_eq!(wires.drain(link)[0].data, pattern(seed as u64, 20)[3..10]);
        }
    }
}

/// At once or from a queue, and with many pieces in one packet or many packets in one piece.
#[test]
fn a_message_is_gathered_from_many_pieces() {
    let (mut transmitter, terminus) = one();
    let bytes = pattern(5, 1_000);
    let area = VecArea::from_bytes(bytes.clone());
    let tag = transmitter.bind_area(terminus, area, 0, 1_000).unwrap();
    let piece = |(offset, length_bytes)| GatherPiece {
        tag,
        offset,
        length_bytes,
    };
    for count in [
        GATHER_PIECES_HELD,
        GATHER_PIECES_HELD + 1,
        GATHER_PIECES_MAX,
    ] {
        for payload in [64, 1_000, 65_536] {
            for room in [usize::MAX, 0] {
                let (mut wires, link) = Wires::with_room(payload, room);
                let ranges = |number: usize| match number % 40 {
                    0 => (0, 900),
                    of => ((number % 990) as u64, of as u64 % 9),
                };
                let pieces: Vec<_> = (0..count).map(|number| piece(ranges(number))).collect();
                let of = |piece: &GatherPiece| {
                    bytes[piece.offset as usize..][..piece.length_bytes as usize].to_vec()
                };
                let expected: Vec<u8> = pieces.iter().flat_map(of).collect();
                transmitter
                    .post_gather(terminus, &message(link), &[], &pieces, &mut wires)
                    .unwrap();
                wires.wire(link).room = usize::MAX;
                transmitter.pump(&mut wires, usize::MAX);
                let packets = wires.drain(link);
                let came: Vec<u8> = packets.into_iter().flat_map(|packet| packet.data).collect();
                assert!(came == expected, "{count} {payload} {room}");
            }
        }
    }
    let (mut wires, link) = Wires::wide(64);
    let pieces = vec![piece((0, 0)); GATHER_PIECES_MAX + 1];
    let posted = transmitter.post_gather(terminus, &message(link), &[], &pieces, &mut wires);
    let pieces = GATHER_PIECES_MAX + 1;
    assert_eq!(posted, Err(PostError::TooManyPieces { pieces }));
}

#[test]
fn metadata_may_be_gathered_too() {
    let (mut transmitter, terminus) = one();
    let tag = transmitter
        .bind_area(terminus, VecArea::from_bytes(pattern(1, 100)), 10, 80)
        .unwrap();
    let mut metadata = [0; 60];
    let piece = |offset, length_bytes| GatherPiece {
        tag,
        offset,
        length_bytes,
    };
    assert_eq!(
        transmitter.gather_metadata(terminus, &piece(5, 60), &mut metadata),
        Ok(60)
    );
    assert_eq!(metadata, pattern(1, 100)[15..75]);
    assert_eq!(
        transmitter.gather_metadata(terminus, &piece(0, 61), &mut metadata),
        Err(PostError::MetadataTooLong { length_bytes: 61 })
    );
    assert!(matches!(
        transmitter.gather_metadata(terminus, &piece(30, 51), &mut metadata),
        Err(PostError::OutsideArea { .. })
    ));
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
        prop_assert!(!transmitter.is_waiting());
    }
}
