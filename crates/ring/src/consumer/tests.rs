//! The receiving end, alone with a producer that breaks the rules.

use std::sync::Arc;

use super::*;
use crate::cells::SharedCells;
use crate::shared::Mapping;

fn ring() -> (Arc<Mapping>, Consumer<SharedCells>, Geometry) {
    let geometry = Geometry::new(2, crate::geometry::ARENA_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = SharedCells::new(&mapping, geometry, None).unwrap();
    (mapping, Consumer::new(cells, geometry), geometry)
}

#[test]
fn only_the_flag_that_is_due_is_a_cell() {
    // Of the generation after the first one, of others, and of one that lies half of all generations ahead.
    for flag in [4, 5, 6, 7, u32::MAX >> 1] {
        let (mapping, mut consumer, geometry) = ring();
        assert_eq!(consumer.peek(), Ok(None));
        assert!(!consumer.is_pending());
        mapping
            .store_u64(geometry.cells_offset(), u64::from(flag))
            .unwrap();
        assert!(consumer.is_pending());
        assert_eq!(consumer.peek(), Err(Corrupt));
        consumer.close();
        // Corruption does not heal.
        for flag in [2, 3, 0] {
            mapping.store_u64(geometry.cells_offset(), flag).unwrap();
            assert_eq!(consumer.peek(), Err(Corrupt));
            assert!(consumer.is_pending());
        }
    }
}

#[test]
fn flags_of_earlier_laps_are_empty() {
    let (mapping, mut consumer, geometry) = ring();
    let first = geometry.cells_offset();
    for generation in 1..6_u64 {
        for (cell, last) in [(first, 0), (first + 64, LAST_OF_GENERATION)] {
            // What any earlier generation may have left there.
            for old in 0..generation * 2 {
                mapping.store_u64(cell, old).unwrap();
                assert_eq!(consumer.peek(), Ok(None));
                assert!(!consumer.is_pending());
            }
            mapping
                .store_u64(cell, 5 << 32 | generation << 1 | last)
                .unwrap();
            assert!(consumer.is_pending());
            let shown = consumer.peek().unwrap().unwrap();
            assert_eq!(shown[0], 5 << 32 | generation << 1 | last);
            // It is shown until it is done with.
            assert_eq!(consumer.peek(), Ok(Some(shown)));
            let _ = consumer.done(0);
            assert_eq!(consumer.peek(), Ok(None));
        }
    }
    assert_eq!(consumer.taken(), 10);
}

#[test]
fn a_lap_ends_where_the_producer_says() {
    let geometry = Geometry::new(256, crate::geometry::ARENA_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = SharedCells::new(&mapping, geometry, None).unwrap();
    let mut consumer = Consumer::new(cells, geometry);
    let mut taken = 0;
    for (generation, length) in [(1, 1), (2, 100), (3, 256), (4, 2), (5, 64)] {
        for cell in 0..length {
            let last = u64::from(cell + 1 == length);
            let at = geometry.cells_offset() + cell * 64;
            mapping.store_u64(at, generation << 1 | last).unwrap();
            assert!(consumer.peek().unwrap().is_some());
            let _ = consumer.done(0);
            taken += 1;
        }
        assert_eq!(consumer.peek(), Ok(None));
        // At the end of a generation nothing is held back: the next one may be short.
        assert_eq!(mapping.load_u64(0).unwrap(), taken);
    }
}

#[test]
fn a_lap_without_end_is_corrupt() {
    let (mapping, mut consumer, geometry) = ring();
    for cell in 0..2 {
        mapping
            .store_u64(geometry.cells_offset() + cell * 64, 2)
            .unwrap();
        assert!(consumer.peek().unwrap().is_some());
        let _ = consumer.done(0);
    }
    assert_eq!(consumer.peek(), Err(Corrupt));
    assert!(consumer.is_pending());
}

#[test]
fn a_peer_that_takes_the_end_of_a_lap_back_hurts_only_itself() {
    let (mapping, mut consumer, geometry) = ring();
    let first = geometry.cells_offset();
    mapping.store_u64(first, 2 | LAST_OF_GENERATION).unwrap();
    assert!(consumer.peek().unwrap().is_some());
    mapping.store_u64(first, 2).unwrap();
    assert_eq!(consumer.peek(), Ok(None), "it has said otherwise");
    mapping.store_u64(first, 2 | LAST_OF_GENERATION).unwrap();
    assert!(consumer.peek().unwrap().is_some());
    let _ = consumer.done(0);
    assert_eq!((consumer.at_bytes, consumer.expected), (0, 4));
}

#[test]
fn laps_may_wrap() {
    let (mapping, mut consumer, geometry) = ring();
    let last_lap = u64::from(u32::MAX - 1);
    consumer.expected = last_lap;
    for flag in [
        last_lap,
        last_lap | LAST_OF_GENERATION,
        2,
        2 | LAST_OF_GENERATION,
        4,
        4 | LAST_OF_GENERATION,
    ] {
        let cell = geometry.cells_offset() + consumer.at_bytes as usize;
        for absent in [
            0,
            flag.wrapping_sub(2) & FLAG_MASK & !LAST_OF_GENERATION,
            last_lap - 2,
        ] {
            mapping.store_u64(cell, absent).unwrap();
            assert_eq!(consumer.peek(), Ok(None), "{absent:x} before {flag:x}");
            assert!(!consumer.is_pending());
        }
        mapping.store_u64(cell, flag).unwrap();
        assert!(consumer.peek().unwrap().is_some());
        let _ = consumer.done(0);
    }
}

#[test]
fn credit_is_held_back_but_not_forever() {
    let geometry = Geometry::new(256, crate::geometry::ARENA_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = SharedCells::new(&mapping, geometry, None).unwrap();
    let mut consumer = Consumer::new(cells, geometry);
    let count = || mapping.load_u64(0).unwrap();
    for _ in 0..15 {
        let _ = consumer.done(0);
    }
    assert_eq!(count(), 0);
    let _ = consumer.done(0);
    assert_eq!(count(), 16);
    let _ = consumer.done(0);
    let _ = consumer.return_credit();
    assert_eq!(count(), 17);
    // Much payload comes back at once, and some of it when there is time.
    let _ = consumer.done(geometry.arena_bytes() as usize / 4 + 1);
    assert_eq!(count(), 18);
    let _ = consumer.done(0);
    let _ = consumer.return_arena_credit();
    assert_eq!(count(), 18);
    let _ = consumer.done(1);
    let _ = consumer.return_arena_credit();
    assert_eq!(count(), 20);
    // What stands there is never read: a peer that overwrites it hurts itself.
    mapping.store_u64(0, u64::MAX).unwrap();
    let _ = consumer.done(0);
    let _ = consumer.return_credit();
    assert_eq!(count(), 21);
    // The further a generation goes, the more is held back.
    let mut published = 21;
    for taken in 22..=256 {
        let _ = consumer.done(0);
        if count() != published {
            published = count();
            assert_eq!(published, taken);
        }
        assert!(taken - published <= (taken / 4).max(16));
    }
    assert!(256 - published < 64);
}

#[test]
fn the_fast_path_shows_nothing_after_the_end() {
    let (mapping, mut consumer, geometry) = ring();
    let first = geometry.cells_offset();
    mapping.store_u64(first, 2).unwrap();
    assert!(consumer.look(0, 0).is_some());
    assert!(consumer.look(1 << 40, 0).is_none(), "of another kind");
    consumer.close();
    for flag in [0, 2, 3, u64::from(u32::MAX), u64::MAX, u64::MAX - 1] {
        mapping.store_u64(first, flag).unwrap();
        for upper in [0, u64::MAX << 32] {
            assert!(consumer.look(upper, 0).is_none(), "{flag:x}");
        }
        assert_eq!(consumer.return_due_credit(), None);
        assert_eq!(consumer.peek(), Err(Corrupt));
    }
}

#[test]
fn what_is_due_is_settled_before_more_is_shown() {
    let geometry = Geometry::new(64, crate::geometry::ARENA_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = SharedCells::new(&mapping, geometry, None).unwrap();
    let mut consumer = Consumer::new(cells, geometry);
    for cell in 0..64 {
        let last = u64::from(cell == 63);
        mapping
            .store_u64(geometry.cells_offset() + cell * 64, 2 | last)
            .unwrap();
    }
    let consumed = || mapping.load_u64(geometry.consumed_offset()).unwrap();
    let mut returned = Vec::new();
    while consumer.taken() < 64 {
        if consumer.look(0, 0).is_some() {
            consumer.took();
        } else {
            assert!(consumer.return_due_credit().is_some());
            returned.push((consumer.taken(), consumed()));
        }
    }
    // A quarter of a generation at a time; the last cell is seen to be that; and what comes after it is the next generation's.
    assert_eq!(returned, [(16, 16), (32, 32), (48, 48), (63, 48)]);
    assert!(consumer.is_pending(), "there is credit to return");
    assert!(consumer.return_due_credit().is_some());
    assert_eq!(consumed(), 64);
    assert!(!consumer.is_pending());
}
