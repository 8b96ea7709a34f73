//! The receiving end, alone with a producer that breaks the rules.

use std::sync::Arc;

use super::*;
use crate::cells::SharedCells;
use crate::geometry::ARENA_MIN_BYTES;
use crate::producer::Producer;
use crate::shared::Mapping;

fn of(cells: u32, arena_bytes: u32) -> (Arc<Mapping>, Consumer<SharedCells>, Geometry) {
    let geometry = Geometry::new(cells, arena_bytes).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let memory = SharedCells::new(&mapping, geometry, None).unwrap();
    let consumer = Consumer::new(memory, geometry);
    (mapping, consumer, geometry)
}

fn ring() -> (Arc<Mapping>, Consumer<SharedCells>, Geometry) {
    of(2, ARENA_MIN_BYTES)
}

#[test]
fn only_the_flag_that_is_due_is_a_cell() {
    // Of the generation after the first one, of others, and of one that lies half of all
    // generations ahead.
    for flag in [2, 3, 4, u32::MAX >> 1, u32::MAX] {
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
        for flag in [1, 2, 0] {
            mapping.store_u64(geometry.cells_offset(), flag).unwrap();
            assert_eq!(consumer.peek(), Err(Corrupt));
            assert!(consumer.is_pending());
        }
    }
}

#[test]
fn only_the_flag_of_the_generation_before_is_empty() {
    let (mapping, mut consumer, geometry) = ring();
    let first = geometry.cells_offset();
    for generation in 1..6_u64 {
        for cell in [first, first + 64] {
            for other in (0..9).chain([u64::from(u32::MAX)]) {
                mapping.store_u64(cell, other | 5 << 32).unwrap();
                let is_empty = other + 1 == generation;
                assert_eq!(consumer.is_pending(), !is_empty);
                let expected = match other {
                    _ if is_empty => Ok(false),
                    _ if other == generation => Ok(true),
                    _ => Err(Corrupt),
                };
                assert_eq!(consumer.peek().map(|cell| cell.is_some()), expected);
            }
            mapping.store_u64(cell, 5 << 32 | generation).unwrap();
            let shown = consumer.peek().unwrap().unwrap();
            assert_eq!(shown[0], 5 << 32 | generation);
            // It is shown until it is done with.
            assert_eq!(consumer.peek(), Ok(Some(shown)));
            let _ = consumer.done(1, 0);
        }
    }
    assert_eq!(consumer.taken(), 10);
}

#[test]
fn credit_is_held_back_but_not_forever() {
    let (mapping, mut consumer, _) = of(256, ARENA_MIN_BYTES);
    let count = || mapping.load_u64(0).unwrap();
    for _ in 0..31 {
        let _ = consumer.done(1, 0);
    }
    assert_eq!(count(), 0);
    let _ = consumer.done(1, 0);
    assert_eq!(count(), 32);
    let _ = consumer.done(1, 0);
    let _ = consumer.return_credit();
    assert_eq!(count(), 33);
    // Much payload comes back at once, and some of it when there is time.
    let _ = consumer.done(1, ARENA_MIN_BYTES as usize / 4 + 1);
    assert_eq!(count(), 34);
    let _ = consumer.done(1, 0);
    let _ = consumer.return_arena_credit();
    assert_eq!(count(), 34);
    let _ = consumer.done(1, 1);
    let _ = consumer.return_arena_credit();
    assert_eq!(count(), 36);
    // What stands there is never read: a peer that overwrites it hurts itself.
    mapping.store_u64(0, u64::MAX).unwrap();
    let _ = consumer.done(1, 0);
    let _ = consumer.return_credit();
    assert_eq!(count(), 37);
    // Never more than an eighth, and nothing at the end of a generation.
    for taken in 38..=256 {
        let _ = consumer.done(1, 0);
        assert!(taken - count() < 32);
    }
    assert_eq!(count(), 256);
}

#[test]
fn the_fast_path_shows_nothing_after_the_end() {
    let (mapping, mut consumer, geometry) = ring();
    let first = geometry.cells_offset();
    mapping.store_u64(first, 1).unwrap();
    assert!(consumer.look(0, 0).is_some());
    assert!(consumer.look(1 << 40, 0).is_none(), "of another kind");
    consumer.close();
    for flag in [0, 1, 2, 3, u64::from(u32::MAX), u64::MAX, u64::MAX - 1] {
        mapping.store_u64(first, flag).unwrap();
        for upper in [0, u64::MAX << 32] {
            assert!(consumer.look(upper, 0).is_none(), "{flag:x}");
        }
        assert_eq!(consumer.return_due_credit(), None);
        assert!(consumer.is_blind());
        assert_eq!(consumer.peek(), Err(Corrupt));
        assert!(consumer.is_pending());
    }
}

#[test]
fn what_is_due_is_settled_before_more_is_shown() {
    let (mapping, mut consumer, geometry) = of(64, ARENA_MIN_BYTES);
    for cell in 0..64 {
        mapping
            .store_u64(geometry.cells_offset() + cell * 64, 1)
            .unwrap();
    }
    let consumed = || mapping.load_u64(geometry.consumed_offset()).unwrap();
    let mut returned = Vec::new();
    while consumer.taken() < 64 {
        if consumer.look(0, 0).is_some() {
            assert!(!consumer.is_blind());
            consumer.took();
        } else {
            assert!(consumer.is_blind());
            assert!(consumer.return_due_credit().is_some());
            returned.push((consumer.taken(), consumed()));
        }
    }
    // An eighth of the ring at a time; what comes after the last cell is the next generation's.
    let expected: Vec<_> = (1..8).map(|eighth| (8 * eighth, 8 * eighth)).collect();
    assert_eq!(returned, expected);
    assert!(consumer.is_pending(), "there is credit to return");
    assert!(consumer.return_due_credit().is_some());
    assert_eq!(consumed(), 64);
    assert!(!consumer.is_pending());
}

/// Cells whose fetches in advance are counted, each of which must be there.
struct Watched {
    cells: SharedCells,
    shift: u32,
    here: std::cell::Cell<u64>,
    ahead: std::cell::Cell<u64>,
}

impl CellMemory for Watched {
    type InPlace<'a> = <SharedCells as CellMemory>::InPlace<'a>;

    fn look(&self, at_bytes: u64, first: u64, most: u64) -> Option<(u64, Self::InPlace<'_>)> {
        self.here.set(at_bytes);
        self.cells.look(at_bytes, first, most)
    }
    fn load(&self, at_bytes: u64, expected: u64) -> Result<Cell, u64> {
        self.here.set(at_bytes);
        self.cells.load(at_bytes, expected)
    }
    fn load_first(&self, at_bytes: u64) -> u64 {
        self.cells.load_first(at_bytes)
    }
    fn store_continued(&self, at_bytes: u64, first: u64, bytes: &[u8]) {
        self.cells.store_continued(at_bytes, first, bytes);
    }
    fn prefetch(&self, at_bytes: u64) {
        // The cell after the one that was taken is looked at next anyway.
        if at_bytes == self.here.get() + STEP_BYTES {
            return;
        }
        let flag = flag_of(at_bytes / STEP_BYTES, self.shift);
        assert_eq!(
            self.cells.load_first(at_bytes) & FLAG_MASK,
            flag,
            "taken from the producer"
        );
        self.ahead.set(self.ahead.get() + 1);
    }
    fn store(&self, at_bytes: u64, cell: &Cell) {
        self.cells.store(at_bytes, cell);
    }
    fn load_consumed(&self) -> u64 {
        self.cells.load_consumed()
    }
    fn store_consumed(&self, count: u64) {
        self.cells.store_consumed(count);
    }
    fn store_awaited(&self, count: u64) {
        self.cells.store_awaited(count);
    }
    fn load_awaited(&self) -> u64 {
        self.cells.load_awaited()
    }
    fn reserve_arena(&self, from: usize, to: usize) -> bool {
        self.cells.reserve_arena(from, to)
    }
}

#[test]
fn cells_are_fetched_in_advance_only_if_they_are_there() {
    let geometry = Geometry::new(256, ARENA_MIN_BYTES).unwrap();
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let cells = || SharedCells::new(&mapping, geometry, None).unwrap();
    let mut producer = Producer::new(cells(), geometry, 4096);
    let mut consumer = Consumer::new(
        Watched {
            cells: cells(),
            shift: geometry.shift(),
            here: Default::default(),
            ahead: Default::default(),
        },
        geometry,
    );
    // With so many cells between the ends: none, less and more than are asked about, and all.
    for (backlog, is_fetched) in [
        (1, false),
        (39, false),
        (40, false),
        (100, true),
        (256, true),
    ] {
        let before = consumer.memory.ahead.get();
        let sent = |producer: &mut Producer<SharedCells>| {
            if let Ok(room) = producer.room() {
                room.publish([7, 1, 2, 3, 4, 5, 6, 7]);
            }
        };
        for _ in 0..1000 {
            while producer.sent() < consumer.taken() + backlog && producer.room().is_ok() {
                sent(&mut producer);
            }
            if consumer.peek().unwrap().is_some() {
                let _ = consumer.done(1, 0);
            }
        }
        while consumer.peek().unwrap().is_some() {
            let _ = consumer.done(1, 0);
        }
        assert_eq!(
            consumer.memory.ahead.get() > before,
            is_fetched,
            "{backlog} cells"
        );
    }
}
