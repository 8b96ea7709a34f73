//! Both ends with a log on the model checker's atomics.

use core::sync::atomic::Ordering;

use crate::cells::{Cell, CellMemory, FLAG_MASK, STEP_BYTES, number_in};
use crate::consumer::Consumer;
use crate::geometry::{ARENA_MIN_BYTES, Geometry};
use crate::overflow::{LOG_BYTES_MIN, LogGeometry, LogOptions};
use crate::producer::{NoRoom, Producer};

/// Lines of the ring, and those of each lap of the log that are ever used.
const RING_LINES: usize = 2;
const LOG_LINES: usize = 8;

type Line = [loom::sync::atomic::AtomicU64; 3];

/// A ring and a log, and payload in both in which the model checker reports every access that is
/// not ordered against the others.
struct Modelled {
    ring: [Line; RING_LINES],
    log: [Line; LOG_LINES],
    consumed: loom::sync::atomic::AtomicU64,
    payload: loom::cell::UnsafeCell<u64>,
    payload_in_log: [loom::cell::UnsafeCell<u64>; LOG_LINES],
}

/// What one end has of it.
struct End {
    memory: loom::sync::Arc<Modelled>,
    is_in_log: bool,
}

impl End {
    fn line(&self, at_bytes: u64) -> &Line {
        let number = (at_bytes / STEP_BYTES) as usize;
        match self.is_in_log {
            true => &self.memory.log[number % (LOG_BYTES_MIN as usize / 64)],
            false => &self.memory.ring[number % RING_LINES],
        }
    }
}

impl CellMemory for End {
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
        let [_, one, two] = line;
        let (one, two) = (one.load(Ordering::Relaxed), two.load(Ordering::Relaxed));
        Ok([first, one, two, 0, 0, 0, 0, 0])
    }
    fn load_first(&self, at_bytes: u64) -> u64 {
        self.line(at_bytes)[0].load(Ordering::Acquire)
    }
    fn store(&self, at_bytes: u64, cell: &Cell) {
        let line = self.line(at_bytes);
        line[1].store(cell[1], Ordering::Relaxed);
        line[2].store(cell[2], Ordering::Relaxed);
        line[0].store(cell[0], Ordering::Release);
    }
    fn store_continued(&self, _: u64, _: u64, _: &[u8]) {
        unreachable!("no message has several cells here");
    }
    fn load_consumed(&self) -> u64 {
        self.memory.consumed.load(Ordering::Acquire)
    }
    fn store_consumed(&self, count: u64) {
        self.memory.consumed.store(count, Ordering::Release);
    }
    fn store_awaited(&self, _: u64) {}
    fn load_awaited(&self) -> u64 {
        0
    }
    fn reserve_arena(&self, _: usize, _: usize) -> bool {
        false
    }
    fn change_places(&mut self) {
        self.is_in_log = !self.is_in_log;
    }
    fn reserve_log(&self, _: core::ops::Range<u64>) -> bool {
        true
    }
}

/// Sends a message of that number with a line of payload.
fn send(producer: &mut Producer<End>, memory: &Modelled, number: u64) -> Result<(), NoRoom> {
    let mut room = producer.room()?;
    let place = room.place(64)?;
    let mut cell = [0; 8];
    cell[1] = number;
    match room.is_in_log() {
        true => {
            let at = place.offset() / 64;
            memory.payload_in_log[at as usize].with_mut(|_| ());
            cell[2] = u64::from(at);
        }
        false => memory.payload.with_mut(|_| ()),
    }
    room.publish_with(cell, place);
    Ok(())
}

/// Takes the message of that number.
fn take(consumer: &mut Consumer<End>, memory: &Modelled, number: u64) {
    loop {
        let Some(cell) = consumer.peek().unwrap() else {
            let _ = consumer.return_credit();
            loom::thread::yield_now();
            continue;
        };
        if let Some(followed) = consumer.follow(&cell) {
            let _ = followed.unwrap();
            continue;
        }
        assert_eq!(cell[1], number);
        match consumer.is_in_log() {
            true => {
                memory.payload_in_log[cell[2] as usize].with(|_| ());
                let lines = consumer.lines_in_log(64 * cell[2] as u32, 64);
                let _ = consumer.done_in_log(lines.unwrap());
            }
            false => {
                memory.payload.with(|_| ());
                let _ = consumer.done(1, 64);
            }
        }
        return;
    }
}

/// Each message is taken once, in order and with its payload, while the sender goes to the log and
/// back: its first message is in the ring, the next in the log, and then in either. Lines of the
/// log are used again only when the receiver has left them.
#[test]
fn the_model_checker_finds_no_disorder_in_the_log() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let memory = loom::sync::Arc::new(Modelled {
            ring: Default::default(),
            log: Default::default(),
            consumed: loom::sync::atomic::AtomicU64::new(0),
            payload: Default::default(),
            payload_in_log: Default::default(),
        });
        let end = || End {
            memory: loom::sync::Arc::clone(&memory),
            is_in_log: false,
        };
        let ring = Geometry::new(RING_LINES as u32, ARENA_MIN_BYTES).unwrap();
        let log = LogGeometry::new(LOG_BYTES_MIN).unwrap();
        let options = LogOptions {
            geometry: log,
            patience_ns: 0,
        };
        let mut producer = Producer::new(end(), ring, 64).with_log(options);
        let mut consumer = Consumer::new(end(), ring).with_log(log);
        let sender = {
            let memory = loom::sync::Arc::clone(&memory);
            loom::thread::spawn(move || {
                for number in 1..=3 {
                    assert_eq!(send(&mut producer, &memory, number), Ok(()));
                    // As a sender does that looks often.
                    producer.end_idle_episode();
                }
            })
        };
        for number in 1..=3 {
            take(&mut consumer, &memory, number);
        }
        sender.join().unwrap();
        // The end of an episode, at most.
        let left = consumer.peek().unwrap();
        assert!(left.is_none_or(|cell| consumer.follow(&cell).is_some()));
    });
}
