//! Both ends of a direction with a log against a reference: whatever is sent is taken in order and
//! once, wherever either end stops. The tests use it, and planted bugs are hunted with it.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;

use hamlyn_ring::cells::{Cell, SharedCells, SharedLine};
use hamlyn_ring::consumer::Consumer;
use hamlyn_ring::duplex::{DuplexReceiver, DuplexSender, LineOrder};
use hamlyn_ring::geometry::{ARENA_MIN_BYTES, Geometry};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::overflow::{LOG_BYTES_MIN, LogGeometry, LogNews, LogOptions, LogUse};
use hamlyn_ring::producer::{NoRoom, Producer};
use hamlyn_ring::shared::{Access, Mapping};
use proptest::prelude::*;

pub(crate) const LOG: u32 = LOG_BYTES_MIN;
const PAGE_BYTES: u64 = 4_096;
/// The receiver holds so much back that it has taken, at most, and the sender keeps away from it.
const HELD_BYTES: u64 = (256 << 10) + PAGE_BYTES;
/// Bytes that find room in the log.
const ROOM_BYTES: u64 = LOG as u64 - HELD_BYTES;

pub(crate) struct Ends {
    pub(crate) ring: Arc<Mapping>,
    pub(crate) geometry: Geometry,
    pub(crate) log: Arc<Mapping>,
    pub(crate) file: Memfd,
    pub(crate) producer: Producer<SharedCells>,
    pub(crate) consumer: Consumer<SharedCells>,
    /// Messages that were sent and not yet taken: number, and bytes of payload.
    pub(crate) expected: VecDeque<(u64, usize)>,
    pub(crate) next: u64,
    /// The receiver was told to ring for its sender.
    pub(crate) rang: bool,
}

pub(crate) fn ends(cells: u32, patience_ns: u64) -> Ends {
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
        rang: false,
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
    pub(crate) fn send(&mut self, cells: u64, payload_bytes: usize) -> bool {
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
    pub(crate) fn take(&mut self) -> bool {
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
                self.rang |= match self.consumer.is_in_log() {
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

    pub(crate) fn take_all(&mut self) {
        while self.take() {}
    }

    pub(crate) fn used(&mut self) -> LogUse {
        self.producer
            .log_use()
            .expect("a log, and credit that may be")
    }

    pub(crate) fn present_bytes(&self) -> u64 {
        rustix::fs::fstat(self.file.as_fd()).unwrap().st_blocks as u64 * 512
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send { cells: u64, payload_bytes: usize },
    SendMany(usize),
    Take(usize),
    Return,
    Idle,
    Look,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..3_u64).prop_map(|cells| Step::Send { cells, payload_bytes: 0 }),
        3 => (1..65_536_usize).prop_map(|bytes| Step::Send { cells: 1, payload_bytes: bytes }),
        2 => (1..400_usize).prop_map(Step::SendMany),
        3 => (1..300_usize).prop_map(Step::Take),
        1 => Just(Step::Return),
        1 => Just(Step::Idle),
        1 => Just(Step::Look),
    ];
    proptest::collection::vec(step, 1..200)
}

/// The receiving end hears something, if there is something: by turns that half of its log waits,
/// which it `knows` then, and that all was taken.
fn hear(ends: &mut Ends, knows: &mut bool) -> Result<bool, TestCaseError> {
    let Some(news) = ends.consumer.log_news() else {
        return Ok(false);
    };
    match news {
        LogNews::HalfFull {
            waiting_bytes,
            log_bytes,
        } => {
            prop_assert!(!*knows && log_bytes == u64::from(LOG));
            prop_assert!((log_bytes / 2..=log_bytes).contains(&waiting_bytes));
        }
        // There may be more in the ring.
        LogNews::Drained => {
            prop_assert!(*knows && ends.expected.len() <= ends.geometry.cells() as usize);
        }
    }
    *knows = !*knows;
    Ok(true)
}

/// Everything that is sent is taken once and in order, and nothing is left.
pub(crate) fn check(steps: Vec<Step>, shift: u32, patient: bool) -> Result<(), TestCaseError> {
    let mut ends = ends(1 << shift, if patient { 2_000 } else { 0 });
    let mut knows = false;
    for step in steps {
        match step {
            Step::Send {
                cells,
                payload_bytes,
            } => {
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
            Step::Look => {
                let used = ends.used();
                let held_bytes = ends.present_bytes().saturating_sub(used.pages * PAGE_BYTES);
                prop_assert!(held_bytes <= HELD_BYTES, "{:?}, {}", used, held_bytes);
                hear(&mut ends, &mut knows)?;
            }
        }
    }
    ends.take_all();
    ends.producer.end_idle_episode();
    ends.take_all();
    while hear(&mut ends, &mut knows)? {}
    prop_assert!(!knows, "all is taken");
    let used = ends.used();
    prop_assert!(used.pages * PAGE_BYTES >= ends.present_bytes() && used.pages <= 16);
    prop_assert!(used.most_pages >= used.pages && used.waiting_bytes == 0);
    prop_assert!(ends.expected.is_empty());
    prop_assert!(ends.present_bytes() <= 64 << 10);
    prop_assert!(ends.producer.has_returned(ends.producer.sent()).unwrap());
    let (sent, taken) = (ends.producer.sent(), ends.consumer.taken());
    prop_assert_eq!(sent, taken);
    Ok(())
}

/// Rules that random histories seldom try.
pub(crate) const RULES: [(&str, fn()); 7] = [
    (
        "takes nothing",
        a_receiver_that_takes_nothing_does_not_stop_its_sender,
    ),
    ("slow", a_slow_receiver_is_waited_for),
    ("full", a_full_log_is_no_end),
    ("nearly full", a_nearly_full_log_holds_messages_back),
    (
        "some taken",
        a_message_that_is_held_back_goes_when_something_is_taken,
    ),
    ("both told", both_ends_are_told_of_half_a_log),
    (
        "line",
        a_message_of_the_line_is_taken_after_what_was_sent_before_it,
    ),
];

pub(crate) fn a_receiver_that_takes_nothing_does_not_stop_its_sender() {
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
    assert!(more <= 16);
    ends.take_all();
    assert!(ends.expected.is_empty());
    assert_eq!(ends.producer.sent(), ends.consumer.taken());
    let messages = ends.producer.sent() - ends.producer.beside();
    assert_eq!(messages, 5_000 + more);
}

/// Patience begins anew with each credit.
pub(crate) fn a_slow_receiver_is_waited_for() {
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

pub(crate) fn a_full_log_is_no_end() {
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

/// Ends whose receiver has taken nothing, and the next message is held back.
fn nearly_full(patience_ns: u64) -> Ends {
    let mut ends = ends(8, patience_ns);
    let begun = std::time::Instant::now();
    while !ends.producer.is_in_log() {
        ends.send(1, 0);
        assert!(begun.elapsed() < LONG);
    }
    while ends.send(1, 0) {}
    let waiting_bytes = ends.used().waiting_bytes;
    let least_bytes = ROOM_BYTES / 4 * 3;
    assert!(
        (least_bytes..least_bytes + 1_024).contains(&waiting_bytes),
        "{waiting_bytes} of {ROOM_BYTES}"
    );
    ends
}

const LONG: std::time::Duration = std::time::Duration::from_secs(60);

/// Patience is over for some messages at a time; a sender that may not wait goes on, and finds all
/// of the room.
pub(crate) fn a_nearly_full_log_holds_messages_back() {
    let mut ends = nearly_full(20_000_000);
    assert_eq!(ends.used().pauses, 0);
    for pause in 1..4 {
        let begun = std::time::Instant::now();
        assert!(ends.producer.overflow_due_ns().is_some());
        while !ends.producer.credit_came() {
            assert!(begun.elapsed() < LONG);
        }
        let mut sent = 0;
        while ends.send(1, 0) {
            sent += 1;
        }
        assert!((1..=8).contains(&sent), "{sent}");
        assert_eq!(ends.used().pauses, pause);
    }
    while ends.producer.press() {
        assert!(ends.producer.credit_came(), "there is room");
        let before = ends.next;
        while ends.send(1, 0) {}
        // As many as the ring has, up to the end.
        let is_end = ends.used().waiting_bytes > ROOM_BYTES - 1_024;
        assert!((8..=16).contains(&(ends.next - before)) || is_end);
        if ends.next == before {
            break;
        }
    }
    let used = ends.used();
    assert_eq!(used.pauses, 3);
    assert!(used.waiting_bytes > ROOM_BYTES - 1_024, "{used:?}");
    assert!(!ends.producer.press(), "that makes no room");
    ends.take_all();
    assert!(ends.expected.is_empty());
    assert!(ends.send(1, 0));
}

/// Long before patience is over.
pub(crate) fn a_message_that_is_held_back_goes_when_something_is_taken() {
    const PATIENCE_NS: u64 = 500_000_000;
    let mut ends = nearly_full(PATIENCE_NS);
    loop {
        let begun = std::time::Instant::now();
        while ends.send(1, 0) {}
        let is_held_back = !ends.producer.credit_came();
        let expected = ends.expected.len();
        // It sleeps.
        ends.producer.await_credit(true, None);
        assert!(ends.take());
        ends.rang |= ends.consumer.return_credit();
        assert!(ends.rang);
        let goes_on = ends.producer.credit_came() && ends.send(1, 0);
        if begun.elapsed().as_nanos() < u128::from(PATIENCE_NS) {
            assert!(is_held_back && goes_on && ends.expected.len() == expected);
            break;
        }
        // The machine was too slow to tell. The receiver must not come to the log.
        ends = nearly_full(PATIENCE_NS);
    }
}

/// The receiver is told when it comes to the log, and both when all was taken.
pub(crate) fn both_ends_are_told_of_half_a_log() {
    let mut ends = ends(4, 0);
    for round in 0..3 {
        // Not when it is less, nor when nothing is looked at.
        while ends.used().waiting_bytes < u64::from(LOG) / 2 - 1_024 {
            assert!(ends.send(1, 0));
        }
        while !ends.consumer.is_in_log() {
            assert!(ends.take());
        }
        assert_eq!(ends.consumer.log_news(), None, "round {round}");
        ends.take_all();
        ends.producer.end_idle_episode();
        ends.take_all();
        assert_eq!(ends.consumer.log_news(), None);
        while ends.used().waiting_bytes < u64::from(LOG) / 2 + 1_024 {
            assert!(ends.send(1, 0));
        }
        assert_eq!(ends.consumer.log_news(), None);
        while !ends.consumer.is_in_log() {
            assert!(ends.take());
        }
        let waits = ends.used().waiting_bytes;
        match ends.consumer.log_news() {
            // The sender does not say each of them.
            Some(LogNews::HalfFull { waiting_bytes, .. }) => {
                assert!((waits - 1_024..=waits).contains(&waiting_bytes));
            }
            other => panic!("{other:?}"),
        }
        while ends.expected.len() > 1 {
            assert!(ends.take());
            assert_eq!(ends.consumer.log_news(), None, "{}", ends.expected.len());
        }
        ends.take_all();
        assert_eq!(ends.consumer.log_news(), Some(LogNews::Drained));
        assert_eq!(ends.consumer.log_news(), None);
        ends.producer.end_idle_episode();
        ends.take_all();
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

pub(crate) fn a_message_of_the_line_is_taken_after_what_was_sent_before_it() {
    let mut ends = ends(4, 0);
    let mut line = Line::of(&ends);
    for _ in 0..20 {
        assert!(ends.send(1, 0));
    }
    assert!(line.sender.is_ours(0));
    line.sender.publish([7; 8], ends.producer.sent());
    ends.producer.next_epoch();
    for _ in 0..20 {
        assert!(ends.send(1, 0));
    }
    for _ in 0..20 {
        assert!(line.receiver.peek(ends.consumer.taken()).is_none());
        assert!(ends.take());
    }
    assert!(!ends.take(), "the message of the line comes first");
    assert!(line.receiver.peek(ends.consumer.taken()).is_some());
    line.receiver.took();
    ends.consumer.next_epoch();
    for _ in 0..20 {
        assert!(ends.take());
    }
    ends.producer.end_idle_episode();
    assert!(!ends.producer.is_in_log());
    assert!(ends.send(1, 0) && ends.take());
    assert!(ends.expected.is_empty());
}
