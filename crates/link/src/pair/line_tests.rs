//! The duplex line of a link beside its rings: with a peer that keeps the rules, and with one that
//! does not.

use std::collections::VecDeque;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{SHORT_BYTES_MAX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::memory::ShortSource as _;
use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::{Address, Flags, Kind, ShortInPlace as _, SlotName, short_words};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_ring::geometry::ARENA_MIN_BYTES;
use proptest::prelude::*;

use super::tests::{Side, logs_at_once, pair, pair_with_logs};
use super::*;
use crate::carrier::tests::{bytes, header, receive};
use crate::{LinkFault, ReceiveEnd, Shortcut, TransmitEnd};

/// A short packet of that length with that number as its metadata.
fn short(number: u64, length: usize) -> Short {
    Short {
        to: Address::new(SlotName::new(3, 1), 5),
        key: Key::from_bits(7),
        offset: 40,
        word: number,
        has_metadata: true,
        length_bytes: length as u16,
        data: short_words(&bytes(number as usize, length)).unwrap(),
    }
}

/// The ways a packet can be sent.
#[derive(Clone, Copy, Debug)]
enum Way {
    FastPath,
    GeneralPath,
    Many,
    /// With data that are too long for a short packet.
    Long,
    /// As a request for a one-sided operation, which is no short packet.
    Request,
}

/// Whether there was room.
fn send(side: &mut Side, number: u64, length: usize, way: Way) -> bool {
    let transmit = &mut side.link.transmit;
    match way {
        Way::FastPath => transmit.try_send_short(short(number, length)),
        Way::Many => {
            let mut packets = [short(number, length)].into_iter();
            transmit.try_send_shorts(|| packets.next()) == 1
        }
        Way::Request => {
            let header = Header {
                flags: Flags::NONE,
                kind: Kind::READ,
                word: number,
                ..header(0, length)
            };
            let data = bytes(number as usize, length);
            transmit
                .try_send(&header, &[], &[Part::Bytes(&data)])
                .is_ok()
        }
        Way::GeneralPath | Way::Long => {
            let length = match way {
                Way::Long => length + 500,
                _ => length,
            };
            let header = Header {
                flags: Flags::NONE,
                kind: Kind::WRITE,
                ..header(8, length)
            };
            let data = bytes(number as usize, length);
            let sent = transmit.try_send(&header, &number.to_le_bytes(), &[Part::Bytes(&data)]);
            sent.is_ok()
        }
    }
}

/// The number and length of the next packet.
fn take(side: &mut Side, by_fast_path: bool) -> Option<(u64, usize)> {
    let end = &mut side.link.receive;
    if by_fast_path {
        end.return_due_credit();
        let way = end.shortcut()?;
        assert!(!way.is_blind());
        if let Some(short) = way.peek_short::<true>() {
            let taken = (short.word(), short.length_bytes());
            way.short_done();
            return Some(taken);
        }
    }
    let packet = receive(&mut side.link).unwrap()?;
    let number = match packet.header.kind {
        Kind::READ => packet.header.word,
        _ => u64::from_le_bytes(packet.metadata.try_into().unwrap()),
    };
    assert_eq!(packet.data, bytes(number as usize, packet.data.len()));
    Some((number, packet.data.len()))
}

proptest! {
    /// Packets of all kinds in both directions, and fences: each direction is a queue, and a fence
    /// is answered when all before it was taken.
    #[test]
    fn each_direction_is_a_queue_over_whatever_its_packets_go(
        steps in prop::collection::vec((0_usize..2, 0_u8..9, 0..=SHORT_BYTES_WITH_WORD), 1..300),
        overflows in any::<bool>(),
    ) {
        let (left, right) = match overflows {
            false => pair(),
            true => {
                let geometry = Geometry::new(4, ARENA_MIN_BYTES).unwrap();
                pair_with_logs(geometry, 4096, Fence::Light, Some(logs_at_once()))
            }
        };
        let mut sides = [left, right];
        let mut on_their_way: [VecDeque<(u64, usize)>; 2] = Default::default();
        let mut fences: [Vec<(u64, u64)>; 2] = Default::default();
        let (mut sent, mut taken) = ([0_u64; 2], [0_u64; 2]);
        let mut number = 0;
        for (who, what, length) in steps {
            let way = match what {
                0 | 1 => Way::FastPath,
                2 => Way::GeneralPath,
                3 => Way::Many,
                4 => Way::Long,
                8 => Way::Request,
                5 | 6 => {
                    let expected = on_their_way[1 - who].pop_front();
                    prop_assert!(expected.is_none() || sides[who].link.receive.is_pending());
                    prop_assert_eq!(take(&mut sides[who], what == 5), expected);
                    taken[1 - who] += u64::from(expected.is_some());
                    continue;
                }
                _ => {
                    if let Ok(fence) = sides[who].link.transmit.fence() {
                        fences[who].push((fence, sent[who]));
                    }
                    continue;
                }
            };
            number += 1;
            if send(&mut sides[who], number, length, way) {
                let length = if matches!(way, Way::Long) { length + 500 } else { length };
                on_their_way[who].push_back((number, length));
                sent[who] += 1;
            }
            for &(fence, before) in &fences[who] {
                if sides[who].link.transmit.is_answered(fence).unwrap() {
                    prop_assert!(before <= taken[who], "all before it was taken");
                }
            }
        }
        for who in [0, 1] {
            while let Some(expected) = on_their_way[1 - who].pop_front() {
                prop_assert_eq!(take(&mut sides[who], true), Some(expected));
            }
            prop_assert_eq!(take(&mut sides[who], false), None);
            sides[who].link.receive.return_credit();
        }
        for who in [0, 1] {
            prop_assert!(sides[who].link.transmit.is_all_taken());
            for &(fence, _) in &fences[who] {
                prop_assert_eq!(sides[who].link.transmit.is_answered(fence), Ok(true));
            }
        }
    }

    /// Whatever a peer writes into the line, by the fast path comes what comes by the general one:
    /// the same packet, or none where that finds a fault.
    #[test]
    fn a_packet_of_the_line_is_checked_as_one_of_the_ring(
        words in prop::array::uniform8(any::<u64>()),
        length in 0_u64..40,
        placement in prop::sample::select(vec![0_u64, 2, 3, 8, 16, 255]),
        is_plausible in any::<bool>(),
    ) {
        let ((mut peer, mut fast), (mut other, mut general)) = (pair(), pair());
        // The fast path looks where the packet before was.
        for (from, to) in [(&mut peer, &mut fast), (&mut other, &mut general)] {
            prop_assert!(send(from, 1, 0, Way::FastPath) && take(to, false) == Some((1, 0)));
        }
        let mut line = words;
        if is_plausible {
            line[0] = 3 | length << 32 | placement << 56;
        }
        for side in [&fast, &general] {
            for (number, word) in line.iter().enumerate() {
                let at = Geometry::DEFAULT.duplex_offset() + number * 8;
                side.sends_to.store_u64(at, *word).unwrap();
            }
        }
        let by_fast_path = {
            let way = fast.link.receive.shortcut().unwrap();
            let plain = way.peek_short::<false>().map(|short| short.copied());
            plain.or_else(|| way.peek_short::<true>().map(|short| short.copied()))
        };
        let by_general_path = receive(&mut general.link);
        match by_fast_path {
            Some(short) if !(short.has_metadata && short.to.is_fast()) => {
                prop_assert!(usize::from(short.length_bytes) <= SHORT_BYTES_MAX);
                let packet = by_general_path.unwrap().unwrap();
                prop_assert_eq!(packet.header, short.header());
                let data: Vec<u8> = short.data.iter().flat_map(|word| word.to_le_bytes()).collect();
                prop_assert_eq!(&packet.data, &data[..usize::from(short.length_bytes)]);
            }
            // To which no entry belongs: the engine refuses it on the one way, the link on the
            // other.
            Some(_) => prop_assert_eq!(by_general_path, Err(LinkFault::Placement)),
            // Only the general path knows requests.
            None => match by_general_path {
                Ok(Some(packet)) => prop_assert!(packet.header.kind.is_request()),
                other => prop_assert!(matches!(
                    other,
                    Ok(None) | Err(LinkFault::Placement | LinkFault::Abbreviation)
                )),
            },
        }
    }
}

#[test]
fn questions_and_answers_use_no_cells() {
    let (mut left, mut right) = pair();
    for number in 0..1000 {
        let length = number as usize % (SHORT_BYTES_WITH_WORD + 1);
        let is_odd = number % 2 == 1;
        assert!(send(&mut left, number, length, Way::FastPath));
        assert_eq!(take(&mut right, is_odd), Some((number, length)));
        assert!(send(&mut right, number + 5000, length, Way::GeneralPath));
        assert_eq!(take(&mut left, is_odd), Some((number + 5000, length)));
        let first_cell = |side: &Side| side.receives_in.load_u64(Geometry::DEFAULT.cells_offset());
        assert_eq!((first_cell(&left), first_cell(&right)), (Ok(0), Ok(0)));
    }
    assert_eq!(
        (left.link.transmit.sent(), left.link.receive.taken()),
        (1000, 1000)
    );
}

#[test]
fn requests_and_their_answers_use_no_cells() {
    let (mut left, mut right) = pair();
    for number in 0..1000 {
        assert!(send(&mut left, number, 16, Way::Request));
        assert_eq!(take(&mut right, number % 3 == 0), Some((number, 16)));
        assert!(send(&mut right, number + 5000, 8, Way::GeneralPath));
        assert_eq!(take(&mut left, number % 2 == 0), Some((number + 5000, 8)));
        let first_cell = |side: &Side| side.receives_in.load_u64(Geometry::DEFAULT.cells_offset());
        assert_eq!((first_cell(&left), first_cell(&right)), (Ok(0), Ok(0)));
    }
    assert_eq!(left.link.transmit.outgoing.sent_over_line(), 1000);
}

/// What a peer writes into the line, if it is no short packet, must be a request with its data
/// beside it.
#[test]
fn the_line_carries_nothing_but_short_packets_and_requests() {
    let general = 8 << 56;
    let in_arena = 1 << 56;
    let word = 2 << 56;
    let read = u64::from(Kind::READ.0) << 32;
    let put = u64::from(Kind::PUT.0) << 32;
    let placed = u64::from(Flags::PLACED.0) << 40;
    let cells = [
        (general | read, 16, true),
        (general | read, 17, false),
        (general | read | in_arena, 16, false),
        (general | read | placed, 16, false),
        (general | put | word | 8 << 48, 16, true),
        (general, 16, false),
        (general | 0x3f << 32, 16, false),
        (general | 0x48 << 32, 16, true),
    ];
    for (first, length, is_good) in cells {
        let (mut peer, mut victim) = pair();
        assert!(send(&mut peer, 1, 0, Way::FastPath) && take(&mut victim, false).is_some());
        // With the flag of the second message of the line.
        let cell = [first | 3, 5 << 32, 7, 40, length, 1, 2, 3];
        for (number, word) in cell.iter().enumerate() {
            let at = Geometry::DEFAULT.duplex_offset() + number * 8;
            victim.sends_to.store_u64(at, *word).unwrap();
        }
        let found = receive(&mut victim.link);
        match is_good {
            true => assert_eq!(found.unwrap().unwrap().data.len(), 16),
            false => assert_eq!(found, Err(LinkFault::Placement), "{first:x}"),
        }
    }
}

/// Greetings that nobody answers leave the two ends out of step.
#[test]
fn one_message_too_many_does_not_end_the_use_of_the_line() {
    for (by_left, by_right) in [(1, 0), (2, 0), (0, 1), (0, 2), (1000, 0), (0, 1000)] {
        let (mut left, mut right) = pair();
        for _ in 0..by_left {
            assert!(send(&mut left, 0, 8, Way::FastPath) && take(&mut right, false).is_some());
        }
        for _ in 0..by_right {
            assert!(send(&mut right, 0, 8, Way::FastPath) && take(&mut left, false).is_some());
        }
        let over_line = |side: &Side| side.link.transmit.outgoing.sent_over_line();
        let before = over_line(&left) + over_line(&right);
        for _ in 0..20_000 {
            assert!(send(&mut left, 1, 8, Way::FastPath) && take(&mut right, false).is_some());
            assert!(send(&mut right, 2, 8, Way::FastPath) && take(&mut left, false).is_some());
        }
        let used = over_line(&left) + over_line(&right) - before;
        assert!(
            used > 30_000,
            "{used} of 40,000 after {by_left} and {by_right}"
        );
    }
}

/// A peer that answers at once, for ever, is held up now and then, so that others have their turn.
#[test]
fn a_row_of_messages_ends() {
    let (mut left, mut right) = pair();
    let mut in_a_row = 0;
    loop {
        assert!(left.link.transmit.try_send_short(short(1, 16)));
        let way = right.link.receive.shortcut().unwrap();
        if in_a_row > 0 && way.peek_short::<true>().is_none() {
            break;
        }
        match in_a_row {
            // The fast path looks there from the next one on.
            0 => assert_eq!(take(&mut right, true), Some((1, 16))),
            _ => way.short_done(),
        }
        in_a_row += 1;
        assert!(right.link.transmit.try_send_short(short(2, 16)));
        assert!(take(&mut left, true).is_some());
    }
    assert_eq!(in_a_row, 64);
    assert!(right.link.receive.is_pending());
    assert_eq!(take(&mut right, false), Some((1, 16)));
    assert!(!right.link.receive.is_pending());
}

#[test]
fn nothing_goes_over_the_line_of_a_direction_that_ended() {
    let (mut left, mut right) = pair();
    // The consumer returns more than was sent.
    right
        .sends_to
        .store_u64(Geometry::DEFAULT.consumed_offset(), 10_000)
        .unwrap();
    left.receives_in.load_u64(0).unwrap();
    let _ = left.link.transmit.fence();
    left.sends_to
        .store_u64(Geometry::DEFAULT.consumed_offset(), 10_000)
        .unwrap();
    assert!(send(&mut left, 1, 500, Way::Long));
    assert_eq!(left.link.transmit.fence(), Err(Unsent::Gone));
    assert!(!left.link.transmit.try_send_short(short(1, 8)));
    assert_eq!(take(&mut right, true).map(|(number, _)| number), Some(1));
    assert_eq!(take(&mut right, true), None);
}
