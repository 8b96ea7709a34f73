//! The overflow log: what its two ends do together.

mod log_ends;

use hamlyn_ring::consumer::Corrupt;
use hamlyn_ring::geometry::{ARENA_MIN_BYTES, Geometry};
use hamlyn_ring::overflow::{LogGeometry, LogNews};
use log_ends::{Ends, LOG, ends};
use proptest::prelude::*;

/// Longer than a sender does not ask again that found no room in the log.
const PAUSE_NS: u64 = 12_500_000;
/// First words of the cells that lead to the log and back, without their flags.
const ESCAPE: u64 = 1 << 61;
const END: u64 = 1 << 62;

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
        std::thread::sleep(std::time::Duration::from_nanos(PAUSE_NS));
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
        // Of the first generation of cells.
        let first = ESCAPE | 1;
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
    // A line of before, or one that was never sent, is no cell.
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
    let mut ends = log_ends::ends(4, 0);
    escape(&ends, 0, 0);
    let cell = ends.consumer.peek().unwrap().unwrap();
    let _ = ends.consumer.follow(&cell);
    for (offset, bytes) in [(0, 64), (128, 64), (64, 1 << 20), (LOG, 1)] {
        assert_eq!(ends.consumer.lines_in_log(offset, bytes), Err(Corrupt));
    }
    assert_eq!(ends.consumer.lines_in_log(64, 65), Ok(3));
}

/// Whatever the sender says of how much waits, the receiver takes what is there, and hears of it a
/// bounded number of times.
#[test]
fn a_sender_may_say_anything_of_how_much_waits() {
    for says in [u64::MAX, u64::MAX / 64, 1 << 40, 8_192 + 9, 0] {
        let mut ends = ends(4, 0);
        for _ in 0..1_000 {
            assert!(ends.send(1, 0));
        }
        let mut heard = Vec::new();
        let mut looks = 0;
        while ends.take() {
            let word = ends.geometry.sent_offset();
            // By turns a lie and nothing.
            let lie = if looks % 2 == 0 { says } else { 0 };
            ends.ring.store_u64(word, lie).unwrap();
            looks += 1;
            while let Some(news) = ends.consumer.log_news() {
                heard.push(news);
            }
        }
        assert_eq!((looks, ends.expected.len()), (1_000, 0));
        // Once for a batch of credit, which is one cell here.
        assert!(heard.len() <= 1_000, "{}", heard.len());
        assert_eq!(heard.is_empty(), says == 0, "{says}");
        for news in heard {
            if let LogNews::HalfFull { waiting_bytes, .. } = news {
                assert!(waiting_bytes <= u64::from(LOG));
            }
        }
    }
}

/// Nor does it keep its receiver, which has taken all, from hearing that.
#[test]
fn a_sender_cannot_say_that_taken_messages_wait() {
    let mut ends = ends(4, 0);
    for _ in 0..1_000 {
        assert!(ends.send(1, 0));
    }
    while !ends.consumer.is_in_log() {
        assert!(ends.take());
    }
    let lie = |ends: &Ends| {
        let word = ends.geometry.sent_offset();
        ends.ring.store_u64(word, u64::MAX).unwrap();
    };
    lie(&ends);
    while ends.expected.len() > 1 {
        assert!(ends.take());
    }
    let half = ends.consumer.log_news();
    assert!(matches!(half, Some(LogNews::HalfFull { .. })), "{half:?}");
    assert_eq!(ends.consumer.log_news(), None);
    assert!(ends.take());
    lie(&ends);
    assert_eq!(ends.consumer.log_news(), Some(LogNews::Drained));
}

#[test]
fn rules_hold() {
    for (_, rule) in log_ends::RULES {
        rule();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn everything_comes_once_and_in_order(steps in log_ends::steps(), shift in 4..6_u32, patient in any::<bool>()) {
        log_ends::check(steps, shift, patient)?;
    }
}
