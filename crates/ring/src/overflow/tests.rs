//! Both ends with a log against a reference: whatever is sent is taken in order and once, wherever
//! either end stops. `loom` has both ends against the model checker.

mod loom;

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cells::{Cell, SharedCells, SharedLine};
use crate::consumer::{Consumer, Corrupt};
use crate::duplex::{DuplexReceiver, DuplexSender, LineOrder};
use crate::geometry::{ARENA_MIN_BYTES, Geometry};
use crate::memfd::Memfd;
use crate::producer::{NoRoom, Producer};
use crate::shared::{Access, Mapping};

const LOG: u32 = LOG_BYTES_MIN;

struct Ends {
    ring: Arc<Mapping>,
    geometry: Geometry,
    log: Arc<Mapping>,
    file: Memfd,
    producer: Producer<SharedCells>,
    consumer: Consumer<SharedCells>,
    /// What was sent and not yet taken: its number, and its bytes of payload.
    expected: VecDeque<(u64, usize)>,
    next: u64,
}

fn ends(cells: u32, patience_ns: u64) -> Ends {
    let geometry = Geometry::new(cells, ARENA_MIN_BYTES).unwrap();
    let ring = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let file = Memfd::create("overflow-test", LOG as usize, 0).unwrap();
    let log_geometry = LogGeometry::new(LOG).unwrap();
    // Two mappings, as two processes have.
    let log = || Arc::new(file.map(Access::Writable).unwrap());
    let memory = |log: &Arc<Mapping>| {
        let cells = SharedCells::new(&ring, geometry, None).unwrap();
        cells.with_log(log).unwrap()
    };
    let options = LogOptions {
        geometry: log_geometry,
        patience_ns,
    };
    let receivers = log();
    Ends {
        producer: Producer::new(memory(&log()), geometry, 4096).with_log(options),
        consumer: Consumer::new(memory(&receivers), geometry).with_log(log_geometry),
        log: receivers,
        ring,
        geometry,
        file,
        expected: VecDeque::new(),
        next: 0,
    }
}

/// The word at that place of a payload: the first of each line is a flag of one of the next laps.
fn word(number: u64, at: usize) -> [u8; 8] {
    match at % 64 {
        0 => number % 5,
        _ => number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at as u64,
    }
    .to_le_bytes()
}

impl Ends {
    /// Sends a message in so many cells, or with so many bytes of payload; whether there was room.
    fn send(&mut self, cells: u64, payload_bytes: usize) -> bool {
        let number = self.next;
        let mut cell: Cell = [0, number, payload_bytes as u64, 0, 0, 0, 0, !number];
        let sent = if payload_bytes == 0 {
            let bytes = vec![number as u8; 56 * (cells as usize - 1)];
            cell[3] = cells;
            self.producer
                .room_for(cells)
                .map(|room| room.publish_all(cell, &bytes))
        } else {
            self.producer.room().and_then(|mut room| {
                let place = room.place(payload_bytes)?;
                let memory = room.payload_memory();
                for at in (0..payload_bytes / 8).map(|word| 8 * word) {
                    let to = memory.offset + place.offset() as usize + at;
                    memory.mapping.copy_in(to, &word(number, at)).unwrap();
                }
                cell[3] = u64::from(place.offset());
                room.publish_with(cell, place);
                Ok(())
            })
        };
        match sent {
            Ok(()) => {
                self.next += 1;
                self.expected.push_back((number, payload_bytes));
                true
            }
            Err(NoRoom::Full) => false,
            Err(NoRoom::Corrupt) => panic!("impossible credit"),
        }
    }

    /// Takes the next message, if there is one.
    fn take(&mut self) -> bool {
        loop {
            if self.consumer.is_step_due() {
                let _ = self.consumer.return_due_credit();
            }
            let Some(cell) = self.consumer.peek().unwrap() else {
                let _ = self.consumer.return_credit();
                return false;
            };
            if let Some(followed) = self.consumer.follow(&cell) {
                let _ = followed.unwrap();
                continue;
            }
            let (number, payload_bytes) = self.expected.pop_front().expect("sent once");
            assert_eq!((cell[1], cell[7]), (number, !number));
            assert_eq!(cell[2], payload_bytes as u64);
            if payload_bytes == 0 {
                let cells = cell[3];
                self.consumer.continues(cells).unwrap();
                for more in 0..cells as usize - 1 {
                    let words = self.consumer.continuation(more);
                    let expected = u64::from_ne_bytes([number as u8; 8]);
                    let seen = words[0].load(std::sync::atomic::Ordering::Relaxed);
                    assert_eq!(seen, expected);
                }
                let _ = match self.consumer.is_in_log() {
                    true => self.consumer.done_in_log(cells),
                    false => self.consumer.done(cells, 0),
                };
                return true;
            }
            let memory = self.consumer.payload_memory();
            let mut seen = [0; 8];
            for at in (0..payload_bytes / 8).map(|word| 8 * word) {
                let from = memory.offset + cell[3] as usize + at;
                memory.mapping.copy_out(from, &mut seen).unwrap();
                assert_eq!(seen, word(number, at), "message {number} at {at}");
            }
            let _ = if self.consumer.is_in_log() {
                let lines = self.consumer.lines_in_log(cell[3] as u32, payload_bytes);
                self.consumer.done_in_log(lines.unwrap())
            } else {
                self.consumer.done(1, payload_bytes)
            };
            return true;
        }
    }

    fn take_all(&mut self) {
        while self.take() {}
    }

    fn present_bytes(&self) -> u64 {
        let mut present = 0;
        let mut at = 0;
        while let Some(part) = self.file.next_present(at, LOG as usize).unwrap() {
            present += part.len() as u64;
            at = part.end;
        }
        present
    }
}

#[test]
fn a_receiver_that_takes_nothing_does_not_stop_its_sender() {
    let mut ends = ends(4, 0);
    for _ in 0..5_000 {
        assert!(ends.send(1, 0));
    }
    assert!(ends.producer.is_in_log());
    assert!(ends.producer.credit_came(), "there is room");
    ends.take_all();
    assert!(ends.expected.is_empty());
    // 512 KiB were reserved, and more than 312 KiB used.
    assert!(ends.present_bytes() <= (512 - 312 + 64) << 10);
    // One of the next ends the episode.
    let mut more = 0;
    while ends.producer.is_in_log() {
        assert!(ends.send(1, 0));
        more += 1;
    }
    assert!(more <= LOOK_CELLS + 1);
    ends.take_all();
    assert!(ends.expected.is_empty());
    assert_eq!(ends.producer.sent(), ends.consumer.taken());
    let messages = ends.producer.sent() - ends.producer.beside();
    assert_eq!(messages, 5_000 + more);
}

#[test]
fn patience_is_as_long_as_the_ring_gives_nothing() {
    let mut ends = ends(4, 3_600_000_000_000);
    for _ in 0..3 {
        assert!(ends.send(1, 0));
    }
    assert!(!ends.send(1, 0), "one cell is kept");
    assert!(ends.producer.overflow_due_ns().is_some());
    assert!(!ends.producer.is_in_log());
    assert!(ends.take());
    let _ = ends.consumer.return_credit();
    assert!(ends.producer.credit_came());
    assert!(ends.send(1, 0));
    assert!(!ends.send(1, 0));
    assert!(!ends.producer.is_in_log());
    ends.take_all();
}

/// Patience begins anew with each credit.
#[test]
fn a_slow_receiver_is_waited_for() {
    const PATIENCE_NS: u64 = 300_000_000;
    let mut ends = ends(4, PATIENCE_NS);
    while ends.send(1, 0) {}
    std::thread::sleep(std::time::Duration::from_nanos(
        PATIENCE_NS + PATIENCE_NS / 8,
    ));
    assert!(ends.take());
    let _ = ends.consumer.return_credit();
    while ends.send(1, 0) {}
    assert!(!ends.producer.is_in_log());
}

#[test]
fn a_full_log_is_no_end() {
    let mut ends = ends(4, 0);
    let mut rounds = 0;
    // The file is gone through several times and never drained, and whatever a round leaves of it.
    while rounds < 60 {
        let before = ends.next;
        while ends.send(1, 1_000 + 37 * rounds) {}
        assert!(ends.next > before, "round {rounds}");
        for _ in 0..ends.expected.len() * 3 / 4 {
            assert!(ends.take());
        }
        let _ = ends.consumer.return_credit();
        rounds += 1;
    }
    ends.take_all();
    assert!(ends.expected.is_empty());
    assert!(ends.send(1, 0));
}

/// A receiver that has come to a full log and stopped there, so that its sender is in the ring.
fn with_full_log() -> Ends {
    let mut ends = ends(4, 0);
    while ends.send(1, 0) {}
    for _ in 0..3 {
        assert!(ends.take());
    }
    let _ = ends.consumer.return_credit();
    let escape = ends.consumer.peek().unwrap().unwrap();
    assert!(matches!(ends.consumer.follow(&escape), Some(Ok(_))));
    ends.producer.end_idle_episode();
    assert!(!ends.producer.is_in_log());
    ends
}

/// It sleeps until credit comes, or for a while.
#[test]
fn a_sender_that_finds_no_room_in_the_log_either_does_not_ask_at_once() {
    let mut ends = with_full_log();
    while ends.send(1, 0) {}
    assert!(!ends.producer.is_in_log() && !ends.producer.credit_came());
    assert!(ends.producer.overflow_due_ns().is_some());
    ends.take_all();
    assert!(ends.expected.is_empty() && ends.producer.credit_came());
    assert!(ends.send(1, 0));
}

/// The trim at the end of an episode leaves alone what was not taken, wherever in the file the
/// episode began.
#[test]
fn an_episode_that_ends_beside_untaken_messages_gives_back_none_of_them() {
    for second in (0..250).step_by(10) {
        let mut ends = ends(4, 0);
        while ends.send(1, 900) {}
        // Its receiver takes some, so the first episode ends, and another one is short.
        while !ends.consumer.is_in_log() {
            assert!(ends.take());
        }
        let _ = ends.consumer.return_credit();
        for _ in 0..second + 4 {
            ends.send(1, 900);
        }
        let first_of_second = ends.next - second;
        // It takes nearly all of that, too, and the third fills the log.
        while ends
            .expected
            .front()
            .is_some_and(|(next, _)| *next < first_of_second)
        {
            assert!(ends.take());
        }
        let _ = ends.consumer.return_credit();
        ends.producer.end_idle_episode();
        while ends.send(1, 900) {}
        // It comes to the third and stops.
        let third = ends.producer.log_use().unwrap().episodes;
        for _ in 0..second {
            ends.take();
        }
        let _ = ends.consumer.return_credit();
        ends.producer.end_idle_episode();
        ends.take_all();
        assert!(ends.expected.is_empty(), "{second}, {third}");
    }
}

/// A look at how much is used changes nothing of it, wherever it comes.
#[test]
fn a_look_between_episodes_frees_nothing() {
    let mut ends = with_full_log();
    for _ in 0..10 {
        while ends.send(1, 0) {}
        let used = ends.producer.log_use().unwrap();
        assert!(used.waiting_bytes > 700 << 10, "{used:?}");
        // After the pause the log is tried again.
        std::thread::sleep(std::time::Duration::from_nanos(PAUSE_NS + PAUSE_NS / 4));
    }
    ends.take_all();
    assert!(ends.expected.is_empty());
}

/// A place that was given and not used: what was copied there is no message.
#[test]
fn payload_that_is_not_sent_is_no_message() {
    let mut ends = ends(4, 0);
    for _ in 0..10 {
        assert!(ends.send(1, 0));
    }
    let mut room = ends.producer.room().unwrap();
    let place = room.place(4_096).unwrap();
    let memory = room.payload_memory();
    for line in 0..64 {
        let at = memory.offset + place.offset() as usize + 64 * line;
        memory.mapping.copy_in(at, &1_u64.to_le_bytes()).unwrap();
    }
    for _ in 0..20 {
        assert!(ends.send(1, 0));
    }
    ends.take_all();
    assert!(ends.expected.is_empty());
    assert!(!ends.consumer.is_pending());
}

#[test]
fn what_is_taken_is_given_back() {
    let mut ends = ends(4, 0);
    for round in 0..5 {
        while ends.send(1, 4_000) {}
        assert!(ends.present_bytes() > 512 << 10);
        ends.take_all();
        ends.producer.end_idle_episode();
        ends.take_all();
        assert!(!ends.producer.is_in_log());
        assert!(ends.present_bytes() <= 64 << 10, "round {round}");
    }
}

#[test]
fn payload_that_finds_no_place_in_the_ring_goes_to_the_log() {
    let mut ends = ends(1024, 0);
    for _ in 0..8 {
        assert!(ends.send(1, 60_000));
    }
    assert!(ends.producer.is_in_log());
    assert!(ends.producer.sent() < 1024 + 8 * 938);
    ends.take_all();
    assert!(ends.expected.is_empty());
}

#[test]
fn a_sender_that_breaks_the_rules_is_found() {
    let log = LogGeometry::new(LOG).unwrap();
    let place_of = |number: u64| {
        let geometry = Geometry::new(4, ARENA_MIN_BYTES).unwrap();
        geometry.cells_offset() + number as usize * 64
    };
    let escape = |ends: &Ends, number: u64, place: u64| {
        ends.ring.store_u64(place_of(number) + 8, place).unwrap();
        let first = ESCAPE | flag_of(number, ends.geometry.shift());
        ends.ring.store_u64(place_of(number), first).unwrap();
    };
    // Places that no log has, or that were not due.
    for place in [1, 64, 63, log.bytes() - 64, log.bytes(), 1 << 63, u64::MAX] {
        let mut ends = ends(4, 0);
        escape(&ends, 0, place);
        let cell = ends.consumer.peek().unwrap().unwrap();
        assert_eq!(ends.consumer.follow(&cell), Some(Err(Corrupt)), "{place}");
    }
    // An episode without a cell.
    let mut ends = ends(4, 0);
    escape(&ends, 0, 0);
    let cell = ends.consumer.peek().unwrap().unwrap();
    assert!(matches!(ends.consumer.follow(&cell), Some(Ok(_))));
    assert_eq!(ends.consumer.peek(), Ok(None));
    // What lies there of before, and what was never sent, is not there.
    for first in [2, 7, u64::MAX, END | 9] {
        ends.log.store_u64(0, first).unwrap();
        assert_eq!(ends.consumer.peek(), Ok(None));
    }
    ends.log.store_u64(0, END | 1).unwrap();
    let cell = ends.consumer.peek().unwrap().unwrap();
    assert_eq!(ends.consumer.follow(&cell), Some(Err(Corrupt)));
    ends.log.store_u64(0, 1).unwrap();
    assert!(ends.consumer.peek().unwrap().is_some());
    let _ = ends.consumer.done_in_log(1);
    ends.log.store_u64(64, END | 1).unwrap();
    let cell = ends.consumer.peek().unwrap().unwrap();
    assert!(matches!(ends.consumer.follow(&cell), Some(Ok(_))));
    // The next one goes on there, or begins a lap.
    escape(&ends, 1, 64);
    let cell = ends.consumer.peek().unwrap().unwrap();
    assert_eq!(ends.consumer.follow(&cell), Some(Err(Corrupt)));
    // A payload that does not lie after its cell.
    let mut ends = super::tests::ends(4, 0);
    escape(&ends, 0, 0);
    let cell = ends.consumer.peek().unwrap().unwrap();
    let _ = ends.consumer.follow(&cell);
    for (offset, bytes) in [(0, 64), (128, 64), (64, 1 << 20), (LOG, 1)] {
        assert_eq!(ends.consumer.lines_in_log(offset, bytes), Err(Corrupt));
    }
    assert_eq!(ends.consumer.lines_in_log(64, 65), Ok(3));
}

#[test]
fn laps_that_say_nothing_are_passed_over() {
    let log = LogGeometry::new(LOG).unwrap();
    let silent = (1 << 31) - 1;
    assert!(!log.is_lap_usable(silent) && !log.is_lap_usable(silent + 1));
    assert!(!log.is_beyond(silent * log.bytes() - 64) && log.is_beyond(silent * log.bytes()));
    let before = silent * log.bytes() - 64;
    assert_eq!(log.next_lap(before), 0);
    let mut writer = LogWriter::new(
        LogOptions {
            geometry: log,
            patience_ns: 0,
        },
        PayloadArena::put_aside(0),
    );
    writer.drained_bytes = before;
    assert_eq!(writer.room_end_bytes(), silent * log.bytes());
    assert!(writer.forgets(before, 0));
}

/// What is reserved and not used is given back, so it must not be where messages lie.
#[test]
fn nothing_is_reserved_where_untaken_messages_may_lie() {
    let log = LogGeometry::new(LOG).unwrap();
    let options = LogOptions {
        geometry: log,
        patience_ns: 0,
    };
    let mut writer = LogWriter::new(options, PayloadArena::put_aside(0));
    for drained_bytes in (0..2 * log.bytes()).step_by(4_160) {
        writer.drained_bytes = drained_bytes;
        writer.reserved_bytes = drained_bytes.next_multiple_of(4_096);
        while writer.reserved_bytes < writer.room_end_bytes() {
            let places = writer.next_reservation();
            assert!(places.start == writer.reserved_bytes && places.end > places.start);
            writer.reserved(&places);
        }
        let free_end = drained_bytes + log.bytes() - GIVEN_BACK_BYTES;
        assert!(writer.reserved_bytes <= free_end, "{drained_bytes}");
    }
}

/// The duplex line beside the ring.
struct Line {
    sender: DuplexSender<SharedLine>,
    receiver: DuplexReceiver<SharedLine>,
}

impl Line {
    fn of(ends: &Ends) -> Self {
        let laid = (&ends.ring, ends.geometry);
        let memory = || SharedLine::new(laid, laid).unwrap();
        Self {
            sender: DuplexSender::new(memory(), LineOrder::First),
            receiver: DuplexReceiver::new(memory(), LineOrder::Second),
        }
    }
}

#[test]
fn a_message_of_the_line_is_taken_after_what_was_sent_before_it() {
    let mut ends = ends(4, 0);
    let mut line = Line::of(&ends);
    for _ in 0..20 {
        assert!(ends.send(1, 0));
    }
    assert!(line.sender.is_ours(0));
    line.sender.publish([7; 8], ends.producer.sent());
    ends.producer.next_epoch();
    assert!(ends.send(1, 0));
    for _ in 0..20 {
        assert!(line.receiver.peek(ends.consumer.taken()).is_none());
        assert!(ends.take());
    }
    assert!(!ends.take(), "the message of the line comes first");
    assert!(line.receiver.peek(ends.consumer.taken()).is_some());
    line.receiver.took();
    ends.consumer.next_epoch();
    assert!(ends.take());
    ends.producer.end_idle_episode();
    assert!(!ends.producer.is_in_log());
    assert!(ends.send(1, 0) && ends.take());
    assert!(ends.expected.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Send { cells: u64, payload_bytes: usize },
    SendMany(usize),
    Take(usize),
    Return,
    Idle,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..3_u64).prop_map(|cells| Step::Send { cells, payload_bytes: 0 }),
        3 => (1..65_536_usize).prop_map(|bytes| Step::Send { cells: 1, payload_bytes: bytes }),
        2 => (1..400_usize).prop_map(Step::SendMany),
        3 => (1..300_usize).prop_map(Step::Take),
        1 => Just(Step::Return),
        1 => Just(Step::Idle),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn everything_comes_once_and_in_order(steps in steps(), shift in 4..6_u32, patient in any::<bool>()) {
        let mut ends = ends(1 << shift, if patient { 2_000 } else { 0 });
        for step in steps {
            match step {
                Step::Send { cells, payload_bytes } => {
                    ends.send(cells, payload_bytes);
                }
                Step::SendMany(count) => {
                    for _ in 0..count {
                        ends.send(1, 0);
                    }
                }
                Step::Take(count) => {
                    for _ in 0..count {
                        ends.take();
                    }
                }
                Step::Return => {
                    let _ = ends.consumer.return_credit();
                }
                Step::Idle => ends.producer.end_idle_episode(),
            }
        }
        ends.take_all();
        ends.producer.end_idle_episode();
        ends.take_all();
        prop_assert!(ends.expected.is_empty());
        prop_assert!(ends.present_bytes() <= 64 << 10);
        prop_assert!(ends.producer.has_returned(ends.producer.sent()).unwrap());
        let (sent, taken) = (ends.producer.sent(), ends.consumer.taken());
        prop_assert_eq!(sent, taken);
    }
}
