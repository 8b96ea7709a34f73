//! Two ends, and one alone with a peer that breaks the rules.

mod loom;

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cells::{CellInPlace, SharedCells, SharedLine};
use crate::consumer::Consumer;
use crate::geometry::{ARENA_MIN_BYTES, Geometry};
use crate::producer::Producer;
use crate::shared::{LINE_WORDS, Mapping};

/// One end of a link: its rings and its halves of the line.
struct End {
    producer: Producer<SharedCells>,
    consumer: Consumer<SharedCells>,
    sender: DuplexSender<SharedLine>,
    receiver: DuplexReceiver<SharedLine>,
    /// The number of the message that was last taken from the line.
    taken: u64,
}

/// Two ends over two memories; the line lies in the first.
fn ends(cells: u32) -> ([End; 2], Arc<Mapping>, Geometry) {
    let geometry = Geometry::new(cells, ARENA_MIN_BYTES).unwrap();
    let memory = || Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let memories = [memory(), memory()];
    let end = |own: usize, order| {
        let (receives, sends) = (&memories[own], &memories[1 - own]);
        let line =
            |direction| SharedLine::new((&memories[0], geometry), (direction, geometry)).unwrap();
        let cells = |direction| SharedCells::new(direction, geometry, None).unwrap();
        End {
            producer: Producer::new(cells(sends), geometry, 4096),
            consumer: Consumer::new(cells(receives), geometry),
            sender: DuplexSender::new(line(sends), order),
            receiver: DuplexReceiver::new(line(receives), order),
            taken: 0,
        }
    };
    let ends = [end(0, LineOrder::First), end(1, LineOrder::Second)];
    (ends, Arc::clone(&memories[0]), geometry)
}

fn cell(number: u64) -> Cell {
    [5 << 32, number, !number, 3, 4, 5, 6, number]
}

impl End {
    /// Sends over the line if it may and should. Whether there was room.
    fn send(&mut self, number: u64, prefers_line: bool) -> bool {
        if prefers_line && self.sender.is_ours(self.taken) {
            self.sender.publish(cell(number), self.producer.sent());
            self.producer.next_epoch();
            return true;
        }
        let room = self.producer.room();
        room.map(|room| room.publish(cell(number))).is_ok()
    }

    /// The number of the next message, in place or copied.
    fn take(&mut self, in_place: bool) -> Option<u64> {
        let _ = self.consumer.return_due_credit();
        self.receiver.begin_row();
        let pending = self.consumer.is_pending() || self.receiver.is_pending(self.consumer.taken());
        let taken = self.take_next(in_place);
        assert_eq!(pending, taken.is_some());
        taken
    }

    fn take_next(&mut self, in_place: bool) -> Option<u64> {
        let in_cell = if in_place {
            let found = self.consumer.look(0, 9);
            found.map(|(five, cell)| (five, cell.word::<1>(), cell.word::<7>()))
        } else {
            let found = self.consumer.peek().unwrap();
            found.map(|cell| (cell[0] >> 32, cell[1], cell[7]))
        };
        let before = self.consumer.taken();
        let in_line = if in_place {
            let found = self.receiver.look(0, 9, before);
            found.map(|(five, cell)| (five, cell.word::<1>(), cell.word::<7>()))
        } else {
            let found = self.receiver.peek(before);
            found.map(|cell| (cell[0] >> 32, cell[1], cell[7]))
        };
        assert!(
            in_cell.is_none() || in_line.is_none(),
            "one comes before the other"
        );
        if in_line.is_some() {
            self.taken = self.receiver.took();
            self.consumer.next_epoch();
        } else if in_cell.is_some() {
            let _ = self.consumer.done(1, 0);
        }
        let (five, number, last) = in_cell.or(in_line)?;
        assert_eq!((five, last), (5, number), "a torn message");
        Some(number)
    }
}

proptest! {
    /// Whatever either end sends, and over what: each direction is a queue.
    #[test]
    fn line_and_ring_of_a_direction_are_one_queue(
        shift in 1_u32..5,
        steps in prop::collection::vec((0_usize..2, 0_u8..8, any::<bool>()), 1..400),
    ) {
        let (mut ends, _, _) = ends(1 << shift);
        let mut on_their_way: [VecDeque<u64>; 2] = Default::default();
        let mut number = 0;
        for (who, what, either) in steps {
            match what {
                0..4 => {
                    number += 1;
                    if ends[who].send(number, either) {
                        on_their_way[who].push_back(number);
                    }
                }
                4..7 => prop_assert_eq!(ends[who].take(either), on_their_way[1 - who].pop_front()),
                _ => {
                    ends[who].receiver.return_taken();
                    let end = &ends[who];
                    let is_known = end.sender.is_all_taken(end.taken);
                    prop_assert!(!is_known || on_their_way[who].len() as u64 <= end.producer.sent());
                }
            }
        }
        for who in [0, 1] {
            while let Some(number) = on_their_way[1 - who].pop_front() {
                prop_assert_eq!(ends[who].take(true), Some(number));
            }
            prop_assert_eq!(ends[who].take(false), None);
            ends[who].receiver.return_taken();
        }
        for end in &ends {
            prop_assert!(end.sender.is_all_taken(end.taken));
        }
    }

    /// A peer writes anything into the line, at any time: nothing is taken twice, and nothing of
    /// the ring is lost.
    #[test]
    fn a_hostile_line_disturbs_no_cell(
        writes in prop::collection::vec((any::<u64>(), 0_u64..4, any::<bool>()), 1..200),
    ) {
        let ([mut first, mut second], memory, geometry) = ends(8);
        let (mut sent, mut taken) = (0, 0);
        for (word, count, plausible) in writes {
            let word = if plausible { 5 << 32 | word & 0x3FF } else { word };
            memory.store_u64(geometry.duplex_offset(), word).unwrap();
            for _ in 0..count {
                sent += u64::from(first.send(1000 + sent, false));
            }
            let _ = second.consumer.return_due_credit();
            second.receiver.begin_row();
            let over_line = second.receiver.taken();
            if second.receiver.peek(second.consumer.taken()).is_some() {
                second.taken = second.receiver.took();
                prop_assert_eq!(second.receiver.taken(), over_line + 1);
                // As the cells that were sent have the epoch of before, the next are lost to who
                // lied; here it repairs that.
                first.producer.next_epoch();
                second.consumer.next_epoch();
            }
            if let Ok(Some(cell)) = second.consumer.peek() {
                prop_assert_eq!(cell[1], 1000 + taken);
                taken += 1;
                let _ = second.consumer.done(1, 0);
            }
        }
    }
}

#[test]
fn an_end_writes_only_in_turn() {
    let ([mut first, mut second], _, _) = ends(4);
    assert!(!second.sender.is_ours(second.taken));
    // Numbers go round several times.
    for round in 0..400 {
        assert!(first.sender.is_ours(first.taken));
        assert!(first.send(round, true));
        assert!(!first.sender.is_ours(first.taken));
        assert!(!first.sender.is_all_taken(first.taken));
        assert_eq!(second.take(round % 2 == 0), Some(round));
        assert!(second.send(!round, true));
        assert!(!second.sender.is_ours(second.taken));
        assert_eq!(first.take(round % 3 == 0), Some(!round));
        assert!(first.sender.is_all_taken(first.taken));
    }
    for end in [first, second] {
        assert_eq!((end.producer.sent(), end.consumer.taken()), (0, 0));
        assert_eq!((end.sender.sent(), end.receiver.taken()), (400, 400));
    }
}

#[test]
fn what_is_sent_over_the_line_is_not_there_before_the_cells_before_it_nor_after_those_after_it() {
    let ([mut first, mut second], _, _) = ends(8);
    for (number, over_line) in [(1, false), (2, true), (3, false), (4, true), (5, false)] {
        // The second time it is not its turn.
        assert!(first.send(number, over_line));
    }
    assert_eq!((first.sender.sent(), first.producer.sent()), (1, 4));
    for number in 1..=5 {
        assert_eq!(second.take(number % 2 == 0), Some(number));
    }
    assert_eq!(second.take(false), None);
}

#[test]
fn a_row_ends_though_there_is_more() {
    let ([mut first, mut second], _, _) = ends(4);
    for number in 0..MESSAGES_IN_A_ROW {
        assert!(first.send(number, true) && second.take(true).is_some());
        assert!(second.send(number, true) && first.take(true).is_some());
    }
    assert!(first.send(7, true));
    assert!(second.receiver.is_row_over() && second.receiver.is_pending(0));
    assert!(second.receiver.look(0, 9, 0).is_none() && second.receiver.peek(0).is_none());
    second.receiver.begin_row();
    assert!(!second.receiver.is_row_over());
    assert_eq!(second.take(true), Some(7));
}

#[test]
fn what_was_taken_is_told() {
    let ([mut first, mut second], _, _) = ends(4);
    assert!(first.sender.is_all_taken(first.taken));
    assert!(first.send(1, true));
    assert!(!first.sender.is_all_taken(first.taken));
    assert_eq!(second.take(true), Some(1));
    assert!(!first.sender.is_all_taken(first.taken));
    second.receiver.return_taken();
    assert!(first.sender.is_all_taken(first.taken));
    // It is no right to write.
    assert!(!first.sender.is_ours(first.taken));
}

#[test]
fn nothing_is_there_for_an_end_that_is_closed_or_has_no_line() {
    let ([mut first, mut second], memory, geometry) = ends(4);
    assert!(first.send(1, true));
    second.receiver.close();
    let line = || SharedLine::new((&memory, geometry), (&memory, geometry)).unwrap();
    let none = DuplexSender::new(line(), LineOrder::Never);
    let never = DuplexReceiver::new(line(), LineOrder::Never);
    for receiver in [&mut second.receiver, &mut { never }] {
        for word in [1 | 5 << 32, NEVER, NEVER | 1, u64::MAX, 0] {
            memory.store_u64(geometry.duplex_offset(), word).unwrap();
            receiver.begin_row();
            assert!(!receiver.is_pending(0));
            assert!(receiver.peek(0).is_none() && receiver.look(0, 9, 0).is_none());
        }
        assert_eq!(receiver.taken(), 0);
    }
    for taken in [0, 1, u64::MAX - 1] {
        assert!(!none.is_ours(taken) && none.is_all_taken(taken));
    }
    assert_eq!((none.sent(), LINE_WORDS), (0, 8));
}
