//! Both ends on the model checker's atomics.

use core::sync::atomic::Ordering;

use super::super::*;
use crate::cells::number_in;
use crate::consumer::Consumer;
use crate::geometry::ARENA_MIN_BYTES;

/// Room for the cells of the largest ring here.
const CELLS: usize = 4;

/// Cells on the model checker's atomics, and a payload arena in which it reports every
/// access that is not ordered against the others.
struct Modelled {
    cells: [[loom::sync::atomic::AtomicU64; 2]; CELLS],
    geometry: Geometry,
    consumed: loom::sync::atomic::AtomicU64,
    awaited: loom::sync::atomic::AtomicU64,
    /// Whether the consumer passes a barrier before it looks who waits.
    barrier: bool,
    arena: [loom::cell::UnsafeCell<u64>; 2],
}

impl CellMemory for loom::sync::Arc<Modelled> {
    type InPlace<'a> = Cell;

    fn look(&self, at_bytes: u64, first: u64, most: u64) -> Option<(u64, Cell)> {
        let cell = self.load(at_bytes, first & FLAG_MASK).ok()?;
        Some((number_in(cell[0], first, most)?, cell))
    }
    fn load(&self, at_bytes: u64, expected: u64) -> Result<Cell, u64> {
        let line = self.line(at_bytes);
        let first = line[0].load(Ordering::Acquire);
        if first & FLAG_MASK != expected {
            return Err(first);
        }
        Ok([first, line[1].load(Ordering::Relaxed), 0, 0, 0, 0, 0, 0])
    }
    fn load_first(&self, at_bytes: u64) -> u64 {
        self.line(at_bytes)[0].load(Ordering::Acquire)
    }
    fn store_continued(&self, at_bytes: u64, first: u64, bytes: &[u8]) {
        let line = self.line(at_bytes);
        line[1].store(u64::from(bytes[0]), Ordering::Relaxed);
        line[0].store(first, Ordering::Release);
    }
    fn store(&self, at_bytes: u64, cell: &Cell) {
        let line = self.line(at_bytes);
        line[1].store(cell[1], Ordering::Relaxed);
        line[0].store(cell[0], Ordering::Release);
    }
    fn load_consumed(&self) -> u64 {
        self.consumed.load(Ordering::Acquire)
    }
    fn store_consumed(&self, count: u64) {
        self.consumed.store(count, Ordering::Release);
    }
    fn store_awaited(&self, count: u64) {
        self.awaited.store(count, Ordering::Release);
    }
    fn load_awaited(&self) -> u64 {
        if self.barrier {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
        self.awaited.load(Ordering::Relaxed)
    }
    fn reserve_arena(&self, _: usize, _: usize) -> bool {
        false
    }
}

impl Modelled {
    fn line(&self, at_bytes: u64) -> &[loom::sync::atomic::AtomicU64; 2] {
        &self.cells[(at_bytes / STEP_BYTES) as usize % self.geometry.cells() as usize]
    }
}

fn modelled(geometry: Geometry, barrier: bool) -> loom::sync::Arc<Modelled> {
    loom::sync::Arc::new(Modelled {
        cells: Default::default(),
        geometry,
        consumed: loom::sync::atomic::AtomicU64::new(0),
        awaited: loom::sync::atomic::AtomicU64::new(0),
        barrier,
        arena: Default::default(),
    })
}

/// The next cell, once it is there; meanwhile all room is given back.
fn next_cell(consumer: &mut Consumer<loom::sync::Arc<Modelled>>) -> Cell {
    loop {
        if let Some(cell) = consumer.peek().unwrap() {
            return cell;
        }
        let _ = consumer.return_credit();
        loom::thread::yield_now();
    }
}

/// The ring is full, and its producer goes to sleep while the consumer takes a cell.
fn nobody_sleeps_beside_credit(barrier: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let geometry = Geometry::new(2, ARENA_MIN_BYTES).unwrap();
        let memory = modelled(geometry, barrier);
        let mut producer = Producer::new(loom::sync::Arc::clone(&memory), geometry, 64);
        for _ in 0..2 {
            producer.room().unwrap().publish([0; 8]);
        }
        assert_eq!(producer.room().err(), Some(NoRoom::Full));
        let consumer = loom::thread::spawn(move || {
            let mut consumer = Consumer::new(memory, geometry);
            assert!(consumer.peek().unwrap().is_some());
            let at_once = consumer.done(1, 0);
            at_once | consumer.return_credit()
        });
        producer.await_credit(true, None);
        loom::sync::atomic::fence(Ordering::SeqCst);
        let came = producer.credit_came();
        let rung = consumer.join().unwrap();
        assert!(came || rung, "slept beside credit");
        assert!(producer.credit_came() && producer.room().is_ok());
    });
}

#[test]
fn no_wake_up_for_credit_is_lost() {
    nobody_sleeps_beside_credit(true);
}

#[test]
fn without_the_barrier_the_checker_finds_a_sleeper_beside_credit() {
    let found = std::panic::catch_unwind(|| nobody_sleeps_beside_credit(false));
    assert!(found.is_err());
}

/// A producer goes to sleep until one cell is returned, beside room for others.
#[test]
fn no_wake_up_for_a_returned_cell_is_lost() {
    loom::model(|| {
        let geometry = Geometry::new(CELLS as u32, ARENA_MIN_BYTES).unwrap();
        let memory = modelled(geometry, true);
        let mut producer = Producer::new(loom::sync::Arc::clone(&memory), geometry, 64);
        producer.room().unwrap().publish([0; 8]);
        let consumer = loom::thread::spawn(move || {
            let mut consumer = Consumer::new(memory, geometry);
            assert!(consumer.peek().unwrap().is_some());
            let at_once = consumer.done(1, 0);
            at_once | consumer.return_credit()
        });
        producer.await_credit(false, Some(1));
        loom::sync::atomic::fence(Ordering::SeqCst);
        let came = producer.may_have_returned(1);
        let rung = consumer.join().unwrap();
        assert!(came || rung, "slept beside an answer");
        assert_eq!(producer.has_returned(1), Ok(true));
    });
}

/// Two cells, room for one payload, three messages of which two have one: arena
/// is used again only when the consumer has given it back.
#[test]
fn the_model_checker_finds_no_disorder() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let geometry = Geometry::new(2, ARENA_MIN_BYTES).unwrap();
        let memory = modelled(geometry, true);
        let sender = {
            let memory = loom::sync::Arc::clone(&memory);
            loom::thread::spawn(move || {
                let mut producer = Producer::new(loom::sync::Arc::clone(&memory), geometry, 64);
                for number in 1..=3 {
                    loop {
                        let sent = producer.room().and_then(|mut room| {
                            let mut cell = [0; 8];
                            cell[1] = number;
                            if number == 2 {
                                room.publish(cell);
                                return Ok(());
                            }
                            let place = room.place(64)?;
                            let at = place.offset() as usize / 64;
                            memory.arena[at].with_mut(|_| ());
                            room.publish_with(cell, place);
                            Ok(())
                        });
                        match sent {
                            Ok(()) => break,
                            Err(reason) => assert_eq!(reason, NoRoom::Full),
                        }
                        loom::thread::yield_now();
                    }
                }
            })
        };
        let mut consumer = Consumer::new(loom::sync::Arc::clone(&memory), geometry);
        for number in 1..=3 {
            let cell = next_cell(&mut consumer);
            assert_eq!(cell[1], number);
            if number != 2 {
                memory.arena[0].with(|_| ());
            }
            let _ = consumer.done(1, 0);
        }
        sender.join().unwrap();
    });
}

/// Messages of two cells, in a ring that has room for two of them (a link would not send them in
/// so small a ring, but the model checker has to try all of it): what is there is there whole,
/// and its cells are written again only when they have come back.
#[test]
fn a_message_of_two_cells_is_there_whole_or_not_at_all() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let geometry = Geometry::new(CELLS as u32, ARENA_MIN_BYTES).unwrap();
        let memory = modelled(geometry, true);
        let sender = {
            let memory = loom::sync::Arc::clone(&memory);
            loom::thread::spawn(move || {
                let mut producer = Producer::new(memory, geometry, 64);
                for number in 1..=3_u8 {
                    loop {
                        match producer.room_for(2) {
                            Ok(room) => {
                                let head = [0, u64::from(number), 0, 0, 0, 0, 0, 0];
                                break room.publish_all(head, &[number]);
                            }
                            Err(reason) => assert_eq!(reason, NoRoom::Full),
                        }
                        loom::thread::yield_now();
                    }
                }
            })
        };
        let mut consumer = Consumer::new(loom::sync::Arc::clone(&memory), geometry);
        for number in 1..=3 {
            let cell = next_cell(&mut consumer);
            assert_eq!(cell[1], number);
            assert_eq!(consumer.continues(2), Ok(()));
            let second = memory.line((consumer.taken() + 1) * STEP_BYTES);
            assert_eq!(second[1].load(Ordering::Relaxed), number);
            let _ = consumer.done(2, 0);
        }
        sender.join().unwrap();
    });
}
