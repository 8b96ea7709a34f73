//! Packets that take several cells: of every length, by both ways there and both ways back, and
//! with a peer that rewrites them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::limits::{CELLS_BYTES_MAX, SHORT_BYTES_MAX, SHORT_BYTES_WITH_WORD};
use hamlyn_engine::memory::Part;
use hamlyn_engine::memory::{Area as _, Window as _};
use hamlyn_engine::packet::{Address, Flags, Kind, ShortInPlace, short_words};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_ring::area::Area;
use hamlyn_ring::geometry::ARENA_MIN_BYTES;
use proptest::prelude::*;

use super::tests::{Side, logs_at_once, pair, pair_of, pair_with_logs};
use super::*;
use crate::carrier::tests::{Packet, bytes, header, receive};
use crate::short_cell::{self, cells_of};
use crate::{LinkFault, ReceiveEnd, Shortcut, TransmitEnd};

/// How a packet is sent, or received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    Fast,
    General,
}

/// The properties of a packet, but for its length.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    /// Its kind and flags are those of a short packet.
    is_short: bool,
    has_metadata: bool,
    word: u64,
}

impl Kinds {
    const ALL: [Self; 5] = [
        Self::of(true, false, 0),
        Self::of(true, false, 9),
        Self::of(true, true, 0),
        Self::of(false, false, 9),
        Self::of(false, true, 0),
    ];

    const fn of(is_short: bool, has_metadata: bool, word: u64) -> Self {
        Self {
            is_short,
            has_metadata,
            word,
        }
    }

    fn packet(self, number: usize, length: usize) -> Packet {
        let metadata = bytes(number, if self.has_metadata { 8 } else { 0 });
        let mut header = Header {
            word: self.word,
            ..header(metadata.len(), length)
        };
        if self.is_short {
            (header.kind, header.flags) = (Kind::WRITE, Flags::NONE);
        }
        let data = bytes(number + 1, length);
        Packet {
            header,
            metadata,
            data,
        }
    }
}

/// Sends a packet. True if there was room.
fn send(side: &mut Side, packet: &Packet, path: Path) -> bool {
    let transmit = &mut side.link.transmit;
    let Packet {
        header,
        metadata,
        data,
    } = packet;
    if path == Path::General {
        let sent = transmit.try_send(header, metadata, &[Part::Bytes(data)]);
        return sent.is_ok();
    }
    let metadata_word = metadata.first_chunk().copied().map(u64::from_le_bytes);
    let in_one = match metadata_word.is_some() || header.word != 0 {
        true => SHORT_BYTES_WITH_WORD,
        false => SHORT_BYTES_MAX,
    };
    let first = match data.len() <= in_one {
        true => &data[..],
        false => &data[..SHORT_BYTES_WITH_WORD],
    };
    let short = Short {
        to: Address::new(header.slot, header.metadata_index),
        key: header.key,
        offset: header.offset,
        word: metadata_word.unwrap_or(header.word),
        has_metadata: metadata_word.is_some(),
        length_bytes: data.len() as u16,
        data: short_words(first).unwrap(),
    };
    match data.len() <= in_one {
        true => transmit.try_send_short(short),
        false => transmit.try_send_in_cells(&short, data),
    }
}

/// A copy of a packet in its cells.
fn seen(short: &impl ShortInPlace) -> Packet {
    let length = short.length_bytes();
    let area = Area::new(length as u64).unwrap();
    assert!(area.window(0, length as u64).write_short(0, short));
    let mut data = vec![0; length];
    area.read_at(0, &mut data).unwrap();
    let word = short.word().to_le_bytes();
    let header = short.copied().header();
    Packet {
        header,
        metadata: word[..usize::from(header.metadata_length_bytes)].to_vec(),
        data,
    }
}

fn take_in_place<const HAS_METADATA: bool>(receive: &mut PairReceive) -> Option<Packet> {
    let way = receive.shortcut().unwrap();
    if let Some(short) = way.peek_short::<HAS_METADATA>() {
        let packet = seen(&short);
        way.short_done();
        return Some(packet);
    }
    let (cells, packet) = {
        let (cells, short) = way.peek_in_cells::<HAS_METADATA>()?;
        (cells, seen(&short))
    };
    way.cells_done(cells);
    Some(packet)
}

/// The next packet, if the fast path sees it.
fn take_fast(side: &mut Side) -> Option<Packet> {
    let receive = &mut side.link.receive;
    if receive.is_blind() {
        receive.return_due_credit();
    }
    take_in_place::<false>(receive).or_else(|| take_in_place::<true>(receive))
}

/// The next packet; by the fast path, if that sees it and is to be tried.
fn take(side: &mut Side, path: Path) -> Option<Packet> {
    let fast = match path {
        Path::Fast => take_fast(side),
        Path::General => None,
    };
    fast.or_else(|| receive(&mut side.link).unwrap())
}

#[test]
fn every_length_is_carried_by_both_ways() {
    let (mut left, mut right) = pair();
    let mut number = 0;
    for length in 0..=CELLS_BYTES_MAX + 40 {
        for kinds in Kinds::ALL {
            for (there, back) in [
                (Path::Fast, Path::Fast),
                (Path::Fast, Path::General),
                (Path::General, Path::Fast),
                (Path::General, Path::General),
            ] {
                if there == Path::Fast && (!kinds.is_short || length > CELLS_BYTES_MAX) {
                    continue;
                }
                let packet = kinds.packet(number, length);
                assert!(send(&mut left, &packet, there), "{length} {kinds:?}");
                number += 1;
                assert_eq!(left.link.transmit.sent(), number as u64);
                assert!(right.link.receive.is_pending());
                let longest = short_cell::bytes_in(true, Geometry::DEFAULT.message_cells());
                let cells = cells_of(kinds.has_metadata, kinds.word, length as u64);
                let is_in_cells = kinds.is_short && cells > 1 && length as u64 <= longest;
                right.link.receive.return_due_credit();
                let way = right.link.receive.shortcut().unwrap();
                let expected = is_in_cells.then_some(kinds.has_metadata);
                assert_eq!(way.next_in_cells(), expected, "{length}");
                let taken = match back {
                    Path::Fast if is_in_cells => take_fast(&mut right),
                    _ => take(&mut right, back),
                };
                assert_eq!(taken, Some(packet), "{length} {there:?} {back:?}");
                assert_eq!(right.link.receive.taken(), number as u64);
                assert_eq!(receive(&mut right.link), Ok(None));
                right.link.receive.return_arena_credit();
            }
        }
    }
}

/// A fence waits for packets, however many cells they took.
#[test]
fn a_fence_is_answered_when_all_cells_are_taken() {
    let (mut left, mut right) = pair();
    for number in 0..5 {
        let packet = Kinds::ALL[0].packet(number, 500);
        assert!(send(&mut left, &packet, Path::Fast));
    }
    let fence = left.link.transmit.fence().unwrap();
    for number in 0..5 {
        assert_eq!(left.link.transmit.is_answered(fence), Ok(false));
        let packet = Kinds::ALL[0].packet(number, 500);
        assert_eq!(take(&mut right, Path::Fast), Some(packet));
    }
    assert_eq!(receive(&mut right.link), Ok(None));
    assert_eq!(left.link.transmit.is_answered(fence), Ok(true));
    assert!(left.link.transmit.is_all_taken());
}

/// A ring of few cells, or one that was agreed to carry little, has none for them.
#[test]
fn a_small_ring_carries_the_same() {
    for (cells, payload_max) in [(2, 4096), (16, 4096), (32, 4096), (64, 64), (256, 100)] {
        let geometry = Geometry::new(cells, ARENA_MIN_BYTES).unwrap();
        let (mut left, mut right) = pair_of(geometry, payload_max, Fence::Light);
        let mut number = 0;
        for length in (0..600.min(payload_max - 7)).chain([CELLS_BYTES_MAX, 2000]) {
            for kinds in Kinds::ALL {
                let packet = kinds.packet(number, length);
                if packet.metadata.len() + length > payload_max {
                    continue;
                }
                number += 1;
                let in_place = kinds.is_short && send(&mut left, &packet, Path::Fast);
                if !in_place {
                    assert!(send(&mut left, &packet, Path::General), "{cells} {length}");
                }
                let taken = take(&mut right, [Path::Fast, Path::General][number % 2]);
                assert_eq!(taken, Some(packet));
                right.link.receive.return_credit();
            }
        }
        assert_eq!(left.link.transmit.sent(), right.link.receive.taken());
    }
}

/// A message of several cells of which one was rewritten: no part of it is taken.
#[test]
fn a_message_that_was_rewritten_ends_the_link() {
    for (cell, change) in [(1, 1), (1, 1 << 60), (2, 1 << 31), (3, 2), (3, 1 << 32)] {
        for path in [Path::Fast, Path::General] {
            let (mut left, mut right) = pair();
            let packet = Kinds::ALL[2].packet(1, 150);
            assert_eq!(cells_of(true, 0, 150), 4);
            assert!(send(&mut left, &packet, path));
            let at = Geometry::DEFAULT.cells_offset() + 64 * cell;
            let word = left.sends_to.load_u64(at).unwrap();
            left.sends_to.store_u64(at, word ^ change).unwrap();
            let way = right.link.receive.shortcut().unwrap();
            assert!(way.peek_in_cells::<true>().is_none());
            for _ in 0..2 {
                assert_eq!(receive(&mut right.link), Err(LinkFault::Flag));
            }
            left.sends_to.store_u64(at, word).unwrap();
            assert_eq!(receive(&mut right.link), Err(LinkFault::Flag));
        }
    }
}

/// A first cell that claims other cells than were sent, or more than a message may take.
#[test]
fn a_length_that_is_a_lie_ends_the_link() {
    let longest = short_cell_bytes_max();
    for length in [81, 200, longest, longest + 1, 4096, 4096 + 24, 1 << 20] {
        let (mut left, mut right) = pair();
        assert!(send(&mut left, &Kinds::ALL[2].packet(1, 80), Path::Fast));
        let at = Geometry::DEFAULT.cells_offset();
        let word = left.sends_to.load_u64(at).unwrap();
        let lie = word & !(0xff_ffff << 32) | length << 32;
        left.sends_to.store_u64(at, lie).unwrap();
        let way = right.link.receive.shortcut().unwrap();
        assert!(way.peek_short::<true>().is_none());
        assert!(way.peek_in_cells::<true>().is_none());
        let expected = match length <= longest {
            true => LinkFault::Flag,
            false => LinkFault::Placement,
        };
        assert_eq!(receive(&mut right.link), Err(expected), "{length}");
    }
}

fn short_cell_bytes_max() -> u64 {
    short_cell::bytes_in(true, Geometry::DEFAULT.message_cells())
}

/// More than was agreed: neither path takes it.
#[test]
fn more_than_was_agreed_ends_the_link() {
    let (mut left, mut right) = pair_of(Geometry::DEFAULT, 100, Fence::Light);
    assert!(send(&mut left, &Kinds::ALL[2].packet(1, 90), Path::Fast));
    let at = Geometry::DEFAULT.cells_offset();
    let word = left.sends_to.load_u64(at).unwrap();
    for length in [93, 94, 136] {
        let lie = word & !(0xff_ffff << 32) | length << 32;
        left.sends_to.store_u64(at, lie).unwrap();
        let way = right.link.receive.shortcut().unwrap();
        assert!(way.peek_in_cells::<true>().is_none(), "{length}");
    }
    assert_eq!(receive(&mut right.link), Err(LinkFault::Placement));
}

/// A receiver that is behind gets what is long through the payload arena, and cells again when it
/// has caught up.
#[test]
fn a_receiver_that_is_behind_gets_bulk() {
    let (mut left, mut right) = pair();
    let packet = Kinds::ALL[2].packet(1, 200);
    let cells = cells_of(true, 0, 200);
    let lies_in_cells = |right: &mut Side| {
        let way = right.link.receive.shortcut().unwrap();
        !way.is_blind() && way.peek_in_cells::<true>().is_some()
    };
    let mut sent = 0;
    while send(&mut left, &packet, Path::Fast) {
        sent += 1;
    }
    assert_eq!(sent, u64::from(Geometry::DEFAULT.cells()) / cells);
    // The ring was found full, so its receiver is behind: what follows takes one cell each.
    for _ in 0..3 {
        assert!(lies_in_cells(&mut right));
        assert_eq!(take(&mut right, Path::General).as_ref(), Some(&packet));
    }
    right.link.receive.return_credit();
    assert!(!send(&mut left, &packet, Path::Fast));
    assert!(send(&mut left, &packet, Path::General));
    for _ in 3..sent {
        assert_eq!(take(&mut right, Path::General).as_ref(), Some(&packet));
    }
    assert!(!lies_in_cells(&mut right));
    assert_eq!(take(&mut right, Path::General).as_ref(), Some(&packet));
    right.link.receive.return_credit();
    // Whoever learns that all was taken knows that it is not behind any more.
    assert!(left.link.transmit.is_all_taken());
    assert!(send(&mut left, &packet, Path::Fast));
    assert_eq!(take(&mut right, Path::Fast), Some(packet));
}

/// Between messages of the duplex line: the fast path looks where the packet before was.
#[test]
fn several_cells_and_the_line_keep_their_order() {
    let (mut left, mut right) = pair();
    let mut number = 0;
    for round in 0..200 {
        for (one, other) in [(0, 1), (1, 0)] {
            let sides = [&mut left, &mut right];
            let lengths = [8, 200, 16, 40][round % 4..].iter().take(1 + round % 2);
            let packets: Vec<_> = lengths
                .map(|&length| {
                    number += 1;
                    Kinds::ALL[2].packet(number, length)
                })
                .collect();
            for packet in &packets {
                assert!(send(sides[one], packet, Path::Fast));
            }
            for packet in packets {
                let path = [Path::Fast, Path::General][number % 2];
                assert_eq!(take(sides[other], path), Some(packet), "{round}");
            }
        }
    }
    for side in [&mut left, &mut right] {
        side.link.receive.return_credit();
    }
    assert!(left.link.transmit.is_all_taken() && right.link.transmit.is_all_taken());
}

/// While a peer rewrites the cells, the fast path takes what the general one would have taken, or
/// nothing, and stays within the bounds of what it was given.
#[test]
fn a_peer_that_rewrites_cells_at_any_time_harms_nobody() {
    let (mut left, mut right) = pair();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, cells) = (&stop, &right.receives_in);
        scope.spawn(move || {
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let cell = number >> 40 & 63;
                let word = number >> 50 & 7;
                let at = Geometry::DEFAULT.cells_offset() + (cell * 64 + word * 8) as usize;
                // First words keep a flag that may be right.
                let value = if word == 0 {
                    1 | number & 0x1fff << 32
                } else {
                    number
                };
                cells.store_u64(at, value).unwrap();
            }
        });
        for number in 0..20_000 {
            let packet = Kinds::ALL[2].packet(number, number % 1000);
            if !send(&mut left, &packet, Path::Fast) {
                break;
            }
            let receive = &mut right.link.receive;
            receive.return_due_credit();
            while take_in_place::<true>(receive).is_some() {}
        }
        stop.store(true, Ordering::Relaxed);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Packets of all kinds and lengths, as far as there is room, come out in order and whole.
    #[test]
    fn a_link_is_a_queue_of_packets(
        shift in 3_u32..9,
        overflows in any::<bool>(),
        steps in prop::collection::vec(
            (0_usize..1200, 0_usize..5, any::<bool>(), 0_usize..4, any::<bool>()),
            1..300,
        ),
    ) {
        let geometry = Geometry::new(1 << shift, ARENA_MIN_BYTES).unwrap();
        let logs = overflows.then(logs_at_once);
        let (mut left, mut right) = pair_with_logs(geometry, 8192, Fence::Light, logs);
        let mut sent = VecDeque::new();
        for (number, (length, kinds, is_fast, taken, takes_fast)) in steps.into_iter().enumerate() {
            let packet = Kinds::ALL[kinds].packet(number, length);
            let path = match is_fast && Kinds::ALL[kinds].is_short && length <= CELLS_BYTES_MAX {
                true => Path::Fast,
                false => Path::General,
            };
            if send(&mut left, &packet, path) {
                sent.push_back(packet);
            }
            for _ in 0..taken {
                let path = if takes_fast { Path::Fast } else { Path::General };
                prop_assert_eq!(take(&mut right, path), sent.pop_front());
            }
            if taken > 2 {
                right.link.receive.return_credit();
            }
        }
        while let Some(packet) = sent.pop_front() {
            prop_assert_eq!(take(&mut right, Path::Fast), Some(packet));
        }
        right.link.receive.return_credit();
        prop_assert!(left.link.transmit.is_all_taken());
        prop_assert_eq!(left.link.transmit.sent(), right.link.receive.taken());
    }
}
