//! Instructions of the two ends of a ring, for counting under callgrind.
//!
//! Sends and takes so many cells, in turns of so many: the difference between two runs
//! with different numbers, divided, is what one message costs both ends together.
//!
//! `valgrind --tool=callgrind ends 1000000 1`; with `ends 1000000 1 send` only the sending
//! end is used, and the ring has as many cells as are sent in a turn.

use std::hint::black_box;
use std::sync::Arc;

use hamlyn_ring::cells::SharedCells;
use hamlyn_ring::consumer::Consumer;
use hamlyn_ring::geometry::{ARENA_MIN_BYTES, Geometry};
use hamlyn_ring::producer::Producer;
use hamlyn_ring::shared::Mapping;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| {
        let argument = arguments.next();
        argument
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (messages, turn) = (number(1_000_000), number(1).max(1));
    let geometry = Geometry::new(256, ARENA_MIN_BYTES).expect("geometry");
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).expect("memory"));
    let memory = || SharedCells::new(&mapping, geometry, None).expect("layout");
    let mut producer = Producer::new(memory(), geometry, 4096);
    let mut consumer = Consumer::new(memory(), geometry);
    let mut sum = 0_u64;
    for _ in 0..messages / turn {
        for number in 0..turn {
            send(&mut producer, number);
        }
        for _ in 0..turn {
            sum = sum.wrapping_add(take(&mut consumer));
        }
    }
    println!("{sum}");
}

#[inline(never)]
fn send(producer: &mut Producer<SharedCells>, number: u64) {
    if let Ok(room) = producer.room() {
        room.publish([0, number, 2, 3, 4, 5, 6, 7]);
    }
}

#[inline(never)]
fn take(consumer: &mut Consumer<SharedCells>) -> u64 {
    match consumer.peek() {
        Ok(Some(cell)) => {
            let rings = consumer.done(1, 0);
            black_box(rings);
            cell[1] + cell[7]
        }
        _ => 0,
    }
}
