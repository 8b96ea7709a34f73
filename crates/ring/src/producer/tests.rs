//! Both ends together against a reference, and the sending end alone with a consumer that
//! breaks the rules. `loom` has both ends against the model checker.

mod loom;

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cells::SharedCells;
use crate::consumer::Consumer;
use crate::geometry::ARENA_MIN_BYTES;
use crate::shared::{Mapping, PAGE_BYTES};

struct Ring {
    mapping: Arc<Mapping>,
    geometry: Geometry,
    producer: Producer<SharedCells>,
    consumer: Consumer<SharedCells>,
}

fn ring(cells: u32, window: usize) -> Ring {
    let geometry = Geometry::new(cells, ARENA_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let memory = || SharedCells::new(&mapping, geometry, None).unwrap();
    let producer = Producer::new(memory(), geometry, window);
    let consumer = Consumer::new(memory(), geometry);
    Ring {
        mapping,
        geometry,
        producer,
        consumer,
    }
}

fn cell(number: u64) -> Cell {
    [number << 32, number, 2, 3, 4, 5, 6, !number]
}

#[test]
fn full_is_not_corrupt_and_credit_makes_room() {
    let mut ring = ring(4, PAGE_BYTES);
    for number in 0..4 {
        ring.producer.room().unwrap().publish(cell(number));
    }
    for _ in 0..3 {
        assert_eq!(ring.producer.room().err(), Some(NoRoom::Full));
    }
    assert_eq!(ring.consumer.peek().unwrap().unwrap()[7], !0);
    let _ = ring.consumer.done(1, 0);
    let _ = ring.consumer.return_credit();
    ring.producer.room().unwrap().publish(cell(4));
    assert_eq!(ring.producer.room().err(), Some(NoRoom::Full));
    assert_eq!((ring.producer.sent(), ring.consumer.taken()), (5, 1));
}

#[test]
fn impossible_credit_ends_the_direction() {
    // Ahead of what was sent.
    for lie in [5, u64::MAX, 1 << 63] {
        let mut ring = ring(4, PAGE_BYTES);
        for number in 0..4 {
            ring.producer.room().unwrap().publish(cell(number));
        }
        ring.mapping.store_u64(0, lie).unwrap();
        assert_eq!(ring.producer.room().err(), Some(NoRoom::Corrupt));
        ring.mapping.store_u64(0, 4).unwrap();
        assert_eq!(
            ring.producer.room().err(),
            Some(NoRoom::Corrupt),
            "it does not heal"
        );
        assert!(ring.producer.is_closed());
    }
    // Taken back.
    let mut ring = ring(4, PAGE_BYTES);
    for number in 0..4 {
        ring.producer.room().unwrap().publish(cell(number));
    }
    ring.mapping.store_u64(0, 2).unwrap();
    for number in 4..6 {
        ring.producer.room().unwrap().publish(cell(number));
    }
    ring.mapping.store_u64(0, 1).unwrap();
    assert_eq!(ring.producer.room().err(), Some(NoRoom::Corrupt));
}

#[test]
fn who_waits_for_credit_is_rung_for_once() {
    let mut ring = ring(64, PAGE_BYTES);
    for number in 0..64 {
        ring.producer.room().unwrap().publish(cell(number));
    }
    assert_eq!(ring.producer.room().err(), Some(NoRoom::Full));
    assert!(!ring.consumer.return_credit(), "nothing to give back");
    assert!(!ring.consumer.done(1, 0));
    assert!(!ring.producer.credit_came());
    ring.producer.await_credit(true, None);
    assert!(!ring.consumer.return_credit(), "not half of them yet");
    assert!(ring.producer.credit_came());
    let rings = (1..48).filter(|_| ring.consumer.done(1, 0)).count();
    assert_eq!(rings, 1);
    assert!(
        !ring.consumer.done(1, 0) && !ring.consumer.return_credit(),
        "rung for already"
    );
    // A peer that asks for what cannot be is not answered.
    let awaited = ring.geometry.awaited_offset();
    ring.mapping.store_u64(awaited, u64::MAX).unwrap();
    assert!(!ring.consumer.done(1, 0) && !ring.consumer.return_credit());
}

/// A hostile producer says at any time that it sleeps: it is rung for once for each return of
/// credit, and not for looks that return nothing.
#[test]
fn a_word_that_changes_at_will_costs_a_ring_for_each_return_of_credit() {
    const CELLS: u64 = 64;
    let mut ring = ring(CELLS as u32, 64 << 10);
    let awaited = ring.geometry.awaited_offset();
    let (mut rings, mut lie) = (0, 0);
    for _ in 0..CELLS {
        ring.producer.room().unwrap().publish(cell(0));
        assert!(ring.consumer.peek().unwrap().is_some());
        lie = lie % 3 + 1;
        ring.mapping.store_u64(awaited, lie).unwrap();
        rings += u32::from(ring.consumer.done(1, 0));
        for _ in 0..10 {
            lie = lie % 3 + 1;
            ring.mapping.store_u64(awaited, lie).unwrap();
            rings += u32::from(ring.consumer.return_credit());
        }
    }
    // A look at each cell returns it.
    assert!(u64::from(rings) <= CELLS, "{rings}");
}

#[test]
fn credit_has_come_though_another_call_collected_it() {
    let mut ring = ring(4, 64 << 10);
    while let Ok(room) = ring.producer.room() {
        room.publish(cell(0));
    }
    assert!(!ring.producer.credit_came());
    for _ in 0..2 {
        assert!(ring.consumer.peek().unwrap().is_some());
        let _ = ring.consumer.done(1, 0);
    }
    let _ = ring.consumer.return_credit();
    // Something else asks how far the consumer is.
    assert!(ring.producer.has_returned(1).unwrap());
    assert!(ring.producer.credit_came(), "there is room since");
    while let Ok(room) = ring.producer.room() {
        room.publish(cell(0));
    }
    assert!(!ring.producer.credit_came());
}

#[test]
fn a_dropped_room_sends_nothing() {
    let mut ring = ring(4, PAGE_BYTES);
    ring.producer.room().unwrap().place(100).unwrap();
    drop(ring.producer.room());
    assert_eq!(ring.consumer.peek(), Ok(None));
    let mut room = ring.producer.room().unwrap();
    assert_eq!(room.place(100).unwrap().offset(), 0);
}

#[test]
fn the_window_grows_only_when_it_was_full() {
    let mut ring = ring(64, PAGE_BYTES);
    let mut send = |len| {
        let mut room = ring.producer.room()?;
        let place = room.place(len)?;
        room.publish_with(cell(1), place);
        Ok::<_, NoRoom>(())
    };
    send(PAGE_BYTES).unwrap();
    send(PAGE_BYTES).unwrap();
    assert_eq!(ring.producer.window_bytes(), 2 * PAGE_BYTES);
    // Credit is looked at before memory is taken.
    for _ in 0..2 {
        let _ = ring.consumer.done(1, PAGE_BYTES);
    }
    let _ = ring.consumer.return_credit();
    let mut room = ring.producer.room().unwrap();
    let place = room.place(PAGE_BYTES).unwrap();
    room.publish_with(cell(1), place);
    assert_eq!(ring.producer.window_bytes(), 2 * PAGE_BYTES);
    // More than there can ever be room for is never placed.
    let mut room = ring.producer.room().unwrap();
    assert_eq!(room.place(ARENA_MIN_BYTES as usize + 1), Err(NoRoom::Full));
    assert_eq!(ring.producer.longest(), ARENA_MIN_BYTES as usize);
}

#[test]
fn credit_is_read_only_when_the_ring_may_be_full() {
    let mut ring = ring(4, PAGE_BYTES);
    // What the consumer says there cannot be, but nobody asks.
    ring.mapping.store_u64(0, u64::MAX).unwrap();
    for number in 0..4 {
        ring.producer.room().unwrap().publish(cell(number));
    }
    assert!(!ring.producer.is_closed());
    assert_eq!(ring.producer.room().err(), Some(NoRoom::Corrupt));
}

#[test]
fn generations_may_wrap() {
    let mut ring = ring(2, PAGE_BYTES);
    let first = ((1_u64 << 31) - 3) << 1;
    let before = flag_of(first - 2, 1);
    for at in [0, 64] {
        let at = ring.geometry.cells_offset() + at;
        ring.mapping.store_u64(at, before).unwrap();
    }
    ring.mapping.store_u64(0, first).unwrap();
    ring.consumer.go_on_at(first);
    ring.producer.go_on_at(first);
    for number in 0..12 {
        assert!(!ring.consumer.is_pending());
        assert_eq!(ring.consumer.peek(), Ok(None));
        ring.producer.room().unwrap().publish(cell(number));
        assert_eq!(ring.consumer.peek().unwrap().unwrap()[1], number);
        let _ = ring.consumer.done(1, 0);
    }
}

/// The bytes of a message that do not fit its first cell.
fn continued(number: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number as usize * 7 + at) as u8)
        .collect()
}

/// The same as the consumer sees them.
fn seen(ring: &Ring, len: usize) -> Vec<u8> {
    let cells = len.div_ceil(CONTINUED_BYTES);
    let words = (0..cells).flat_map(|number| ring.consumer.continuation(number));
    let word = |word: &core::sync::atomic::AtomicU64| {
        word.load(core::sync::atomic::Ordering::Relaxed)
            .to_le_bytes()
    };
    let mut bytes: Vec<_> = words.flat_map(word).collect();
    bytes.truncate(len);
    bytes
}

/// A message of so many cells.
fn send(ring: &mut Ring, number: u64, cells: u64) {
    let rest = continued(number, (cells as usize - 1) * CONTINUED_BYTES);
    let room = ring.producer.room_for(cells).unwrap();
    room.publish_all(cell(number), &rest);
}

#[test]
fn a_message_has_room_for_all_of_its_cells_or_none() {
    let mut ring = ring(16, PAGE_BYTES);
    for number in 0..5 {
        send(&mut ring, number, 3);
    }
    assert_eq!(ring.producer.sent(), 15);
    assert_eq!(ring.producer.room_for(2).err(), Some(NoRoom::Full));
    ring.producer.room().unwrap().publish(cell(5));
    assert_eq!(ring.producer.room().err(), Some(NoRoom::Full));
    // One cell of the next message would have room, the whole of it has not.
    assert_eq!(ring.consumer.peek().unwrap().unwrap()[1], 0);
    assert_eq!(ring.consumer.continues(3), Ok(()));
    let _ = ring.consumer.done(3, 0);
    let _ = ring.consumer.return_credit();
    assert_eq!(ring.producer.room_for(4).err(), Some(NoRoom::Full));
    // Over the end of the generation.
    send(&mut ring, 6, 3);
    for number in 1..5 {
        assert_eq!(ring.consumer.peek().unwrap().unwrap()[1], number);
        assert_eq!(ring.consumer.continues(3), Ok(()));
        let _ = ring.consumer.done(3, 0);
    }
    assert_eq!(ring.consumer.peek().unwrap().unwrap()[1], 5);
    let _ = ring.consumer.done(1, 0);
    assert_eq!(ring.consumer.peek().unwrap().unwrap()[1], 6);
    assert_eq!(seen(&ring, 112), continued(6, 112));
    let _ = ring.consumer.done(3, 0);
    assert_eq!(ring.consumer.peek(), Ok(None));
    assert_eq!(ring.consumer.taken(), 19);
}

#[test]
fn a_cell_that_does_not_continue_the_message_is_corrupt() {
    let first = |ring: &Ring, at: u64| {
        let at = ring.geometry.cells_offset() + at as usize * 64;
        (at, ring.mapping.load_u64(at).unwrap())
    };
    for change in [1, 1 << 31, 1 << 60, 1 << 40, 2] {
        for place in [1, 2] {
            let mut ring = ring(16, PAGE_BYTES);
            send(&mut ring, 1, 3);
            assert!(ring.consumer.peek().unwrap().is_some());
            assert_eq!(ring.consumer.continues(3), Ok(()));
            let (at, word) = first(&ring, place);
            ring.mapping.store_u64(at, word ^ change).unwrap();
            assert_eq!(ring.consumer.continues(3), Err(crate::consumer::Corrupt));
        }
    }
    // A first cell that claims what was not sent: nothing, or another message.
    for others in 0..3 {
        let mut ring = ring(16, PAGE_BYTES);
        send(&mut ring, 1, 2);
        for number in 0..others {
            ring.producer.room().unwrap().publish(cell(number));
        }
        assert!(ring.consumer.peek().unwrap().is_some());
        assert_eq!(ring.consumer.continues(2), Ok(()));
        assert_eq!(ring.consumer.continues(3), Err(crate::consumer::Corrupt));
    }
    // A cell that continues nothing is no first one of the next generation either.
    let mut ring = ring(16, PAGE_BYTES);
    for number in 0..8 {
        send(&mut ring, number, 2);
        let _ = ring.consumer.done(2, 0);
    }
    for number in 0..16 {
        assert_eq!(ring.consumer.peek(), Ok(None));
        ring.producer.room().unwrap().publish(cell(number));
        assert!(ring.consumer.peek().unwrap().is_some());
        let _ = ring.consumer.done(1, 0);
    }
}

/// A sender that waits for room for a message of several cells is rung for when half of the ring is
/// free: that must be enough for the longest.
#[test]
fn half_of_a_ring_has_room_for_the_longest_message() {
    for shift in 1..=16 {
        let geometry = Geometry::new(1 << shift, ARENA_MIN_BYTES).unwrap();
        let longest = geometry.message_cells();
        assert!(longest >= 1 && longest <= (1 << shift) / 2);
    }
    let mut ring = ring(256, PAGE_BYTES);
    let longest = u64::from(ring.geometry.message_cells());
    let mut sent = 0;
    while let Ok(room) = ring.producer.room_for(longest) {
        let bytes = continued(0, (longest as usize - 1) * CONTINUED_BYTES);
        room.publish_all(cell(0), &bytes);
        sent += 1;
    }
    ring.producer.await_credit(true, None);
    let mut rings = false;
    while !rings {
        assert!(sent > 0, "nobody is rung for");
        sent -= 1;
        rings = ring.consumer.done(longest, 0);
    }
    assert!(ring.producer.credit_came());
    assert!(ring.producer.room_for(longest).is_ok());
}

proptest! {
    /// Messages of one cell and of several come out once, in order and whole, whatever the ring has
    /// room for.
    #[test]
    fn messages_of_several_cells_are_a_queue(
        shift in 3_u32..9,
        steps in prop::collection::vec((0_usize..1000, 0_usize..6, any::<bool>()), 1..200),
    ) {
        let mut ring = ring(1 << shift, PAGE_BYTES);
        let most = (ring.geometry.message_cells() as usize - 1) * CONTINUED_BYTES;
        let mut reference = VecDeque::new();
        let (mut number, mut out) = (0_u64, 0);
        for (len, taken, settle) in steps {
            let len = len.min(most);
            let cells = 1 + len.div_ceil(CONTINUED_BYTES);
            match ring.producer.room_for(cells as u64) {
                Err(reason) => {
                    prop_assert_eq!(reason, NoRoom::Full);
                    // At most an eighth is held back, and a message.
                    prop_assert!(out + cells + (1 << shift) / 8 + 19 > 1 << shift);
                }
                Ok(room) => {
                    room.publish_all(cell(number), &continued(number, len));
                    reference.push_back((number, len));
                    number += 1;
                    out += cells;
                }
            }
            prop_assert!(out <= 1 << shift);
            for _ in 0..taken {
                let found = ring.consumer.peek().unwrap();
                let Some((number, len)) = reference.pop_front() else {
                    prop_assert_eq!(found, None);
                    break;
                };
                let cells = 1 + len.div_ceil(CONTINUED_BYTES);
                prop_assert_eq!(found.unwrap()[1..].to_vec(), cell(number)[1..].to_vec());
                prop_assert_eq!(ring.consumer.continues(cells as u64), Ok(()));
                prop_assert_eq!(seen(&ring, len), continued(number, len));
                let _ = ring.consumer.done(cells as u64, 0);
                out -= cells;
            }
            if settle {
                let _ = ring.consumer.return_credit();
            }
        }
        prop_assert_eq!(ring.producer.sent(), ring.consumer.taken() + out as u64);
    }

    /// Every cell comes out once, in order, whole, with its payload bytes untouched.
    #[test]
    fn a_ring_is_a_queue(
        shift in 1_u32..6,
        steps in prop::collection::vec((0_usize..9000, 0_usize..6, any::<bool>()), 1..200),
    ) {
        let mut ring = ring(1 << shift, 3 * PAGE_BYTES);
        let mut reference = VecDeque::new();
        let base = ring.geometry.arena_offset();
        let mut number = 0_u64;
        for (len, taken, settle) in steps {
            match ring.producer.room() {
                Err(reason) => prop_assert_eq!(reason, NoRoom::Full),
                Ok(mut room) if len > 16 => match room.place(len) {
                    Err(reason) => prop_assert_eq!(reason, NoRoom::Full),
                    Ok(place) => {
                        let bytes = vec![number as u8; len];
                        ring.mapping.copy_in(base + place.offset() as usize, &bytes).unwrap();
                        let mut cell = cell(number);
                        cell[4] = u64::from(place.offset());
                        room.publish_with(cell, place);
                        reference.push_back((cell, len));
                        number += 1;
                    }
                },
                Ok(room) => {
                    room.publish(cell(number));
                    reference.push_back((cell(number), 0));
                    number += 1;
                }
            }
            prop_assert!(reference.len() <= 1 << shift);
            for _ in 0..taken {
                let found = ring.consumer.peek().unwrap();
                let Some((expected, len)) = reference.pop_front() else {
                    prop_assert_eq!(found, None);
                    break;
                };
                let found = found.unwrap();
                prop_assert_eq!(found[0] >> 32, expected[0] >> 32);
                prop_assert_eq!(&found[1..], &expected[1..]);
                let mut bytes = vec![0; len];
                if len > 0 {
                    ring.mapping.copy_out(base + found[4] as usize, &mut bytes).unwrap();
                }
                let fill = (expected[0] >> 32) as u8;
                prop_assert!(bytes.iter().all(|byte| *byte == fill));
                let _ = ring.consumer.done(1, len);
            }
            if settle {
                let _ = ring.consumer.return_credit();
            }
        }
        // Nothing is lost for good: after everything was taken there is room again.
        while ring.consumer.peek().unwrap().is_some() {
            let _ = ring.consumer.done(1, 0);
        }
        let _ = ring.consumer.return_credit();
        prop_assert!(ring.producer.room().unwrap().place(3 * PAGE_BYTES).is_ok());
    }
}
