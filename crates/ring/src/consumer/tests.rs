//! The receiving end, alone with a producer that breaks the rules.

use std::sync::Arc;

use super::*;
use crate::cells::SharedCells;
use crate::shared::Mapping;

fn ring() -> (Arc<Mapping>, Consumer<SharedCells>, Geometry) {
    let geometry = Geometry::new(2, crate::geometry::BULK_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = SharedCells::new(&mapping, geometry, None).unwrap();
    (mapping, Consumer::new(cells, geometry), geometry)
}

#[test]
fn only_the_flag_that_is_due_is_a_cell() {
    for flag in [2, 3, u32::MAX, 1 << 31] {
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
        mapping.store_u64(geometry.cells_offset(), 1).unwrap();
        assert_eq!(consumer.peek(), Err(Corrupt));
        assert!(consumer.is_pending());
    }
}

#[test]
fn the_flag_of_the_lap_before_is_empty() {
    let (mapping, mut consumer, geometry) = ring();
    let first = geometry.cells_offset();
    for lap in 1..6 {
        for cell in [first, first + 64] {
            mapping.store_u64(cell, 5 << 32 | lap).unwrap();
            assert_eq!(consumer.peek().unwrap().unwrap()[0], 5 << 32 | lap);
            // It is shown until it is done with.
            assert!(consumer.peek().unwrap().is_some());
            let _ = consumer.done(0);
            assert_eq!(consumer.peek(), Ok(None));
        }
    }
    // A lap that is past is as impossible as one that is to come.
    mapping.store_u64(first, 3).unwrap();
    assert_eq!(consumer.peek(), Err(Corrupt));
}

#[test]
fn laps_may_wrap() {
    let (mapping, mut consumer, geometry) = ring();
    consumer.expected = u64::from(u32::MAX);
    for flag in [u32::MAX, u32::MAX, 0, 0, 1, 1] {
        let cell = geometry.cells_offset() + consumer.next as usize % 2 * 64;
        mapping
            .store_u64(cell, u64::from(flag.wrapping_sub(1)))
            .unwrap();
        assert_eq!(consumer.peek(), Ok(None));
        mapping.store_u64(cell, u64::from(flag)).unwrap();
        assert!(consumer.peek().unwrap().is_some());
        let _ = consumer.done(0);
    }
}

#[test]
fn credit_is_held_back_but_not_forever() {
    let geometry = Geometry::new(256, crate::geometry::BULK_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = SharedCells::new(&mapping, geometry, None).unwrap();
    let mut consumer = Consumer::new(cells, geometry);
    let count = || mapping.load_u64(0).unwrap();
    for _ in 0..31 {
        let _ = consumer.done(0);
    }
    assert_eq!(count(), 0);
    let _ = consumer.done(0);
    assert_eq!(count(), 32);
    let _ = consumer.done(0);
    let _ = consumer.settle();
    assert_eq!(count(), 33);
    // Much bulk comes back at once.
    let _ = consumer.done(geometry.bulk_bytes() as usize / 4 + 1);
    assert_eq!(count(), 34);
    // What stands there is never read: a peer that overwrites it hurts itself.
    mapping.store_u64(0, u64::MAX).unwrap();
    let _ = consumer.done(0);
    let _ = consumer.settle();
    assert_eq!(count(), 35);
}
