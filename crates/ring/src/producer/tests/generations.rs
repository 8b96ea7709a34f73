//! Laps that grow and shrink, on a memory that knows what may be done with each cell.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::super::*;
use crate::cells::number_in;
use crate::consumer::Consumer;
use crate::geometry::ARENA_MIN_BYTES;

/// A memory that refuses, by a panic, whatever a correct pair of ends never does.
struct Watched {
    cells: Vec<Watch>,
    consumed: u64,
    /// What the consumer has been shown but has not returned yet cannot be told apart from what
    /// it has not seen: both must stay.
    written: u64,
    /// Whether more memory can be had at present.
    plenty: bool,
    /// Whether memory can be given back at all.
    holes: bool,
    most_present: usize,
}

#[derive(Clone, Copy)]
struct Watch {
    present: bool,
    /// The message that was last written here.
    message: Option<u64>,
    cell: Cell,
}

impl Watched {
    fn at(&mut self, at_bytes: u64) -> &mut Watch {
        let cells = self.cells.len() as u64;
        assert!(at_bytes.is_multiple_of(STEP_BYTES));
        &mut self.cells[(at_bytes / STEP_BYTES % cells) as usize]
    }

    fn present(&self) -> usize {
        self.cells.iter().filter(|cell| cell.present).count()
    }

    fn is_out(&self, message: Option<u64>) -> bool {
        message.is_some_and(|message| message >= self.consumed)
    }
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Watched>>);

impl CellMemory for Shared {
    type InPlace<'a> = Cell;

    fn look(&self, at_bytes: u64, first: u64, most: u64) -> Option<(u64, Cell)> {
        let cell = self.0.borrow_mut().at(at_bytes).cell;
        Some((number_in(cell[0], first, most)?, cell))
    }
    fn load(&self, at_bytes: u64, expected: u64) -> Result<Cell, u64> {
        let cell = self.0.borrow_mut().at(at_bytes).cell;
        if cell[0] & FLAG_MASK == expected {
            Ok(cell)
        } else {
            Err(cell[0])
        }
    }
    fn load_first(&self, at_bytes: u64) -> u64 {
        self.0.borrow_mut().at(at_bytes).cell[0]
    }
    fn store(&self, at_bytes: u64, cell: &Cell) {
        let mut memory = self.0.borrow_mut();
        let message = memory.written;
        let old = memory.at(at_bytes).message;
        assert!(!memory.is_out(old), "message {old:?} was overwritten");
        memory.written += 1;
        let watch = memory.at(at_bytes);
        assert!(watch.present, "message {message} was written to a hole");
        watch.message = Some(message);
        watch.cell = *cell;
    }
    fn clear(&self, at_bytes: u64) {
        let mut memory = self.0.borrow_mut();
        let old = memory.at(at_bytes).message;
        assert!(!memory.is_out(old), "message {old:?} was cleared");
        let watch = memory.at(at_bytes);
        assert!(watch.present, "a hole was cleared");
        watch.cell[0] = 0;
    }
    fn load_consumed(&self) -> u64 {
        self.0.borrow().consumed
    }
    fn store_consumed(&self, count: u64) {
        let mut memory = self.0.borrow_mut();
        assert!(count > memory.consumed && count <= memory.written);
        memory.consumed = count;
    }
    fn store_awaited(&self, _: u64) {}
    fn load_awaited(&self) -> u64 {
        0
    }
    fn reserve_cells(&self, from: u64, to: u64) -> bool {
        let mut memory = self.0.borrow_mut();
        assert!(from < to && to <= memory.cells.len() as u64);
        if !memory.plenty {
            return false;
        }
        for cell in from..to {
            memory.cells[cell as usize].present = true;
        }
        memory.most_present = memory.most_present.max(memory.present());
        true
    }
    fn discard_cells(&self, from: u64, to: u64) -> bool {
        let mut memory = self.0.borrow_mut();
        assert!(from < to && to <= memory.cells.len() as u64);
        if !memory.holes {
            return false;
        }
        for cell in from..to {
            let old = memory.cells[cell as usize].message;
            assert!(!memory.is_out(old), "message {old:?} was given back");
            let watch = &mut memory.cells[cell as usize];
            watch.present = false;
            watch.cell = [0; 8];
        }
        true
    }
    fn grow_arena(&self, _: usize, _: usize) -> bool {
        false
    }
    fn discard_arena(&self, _: usize, _: usize) -> bool {
        false
    }
}

struct Ends {
    memory: Shared,
    producer: Producer<Shared>,
    consumer: Consumer<Shared>,
    sent: u64,
    taken: u64,
}

fn ends(cells: u32, idle: u32, holes: bool) -> Ends {
    let geometry = Geometry::new(cells, ARENA_MIN_BYTES).unwrap();
    let geometry = geometry.with_idle(idle);
    let watch = |cell| Watch {
        present: cell < idle,
        message: None,
        cell: [0; 8],
    };
    let memory = Shared(Rc::new(RefCell::new(Watched {
        cells: (0..cells).map(watch).collect(),
        consumed: 0,
        written: 0,
        plenty: true,
        holes,
        most_present: idle as usize,
    })));
    Ends {
        producer: Producer::new(memory.clone(), geometry, 64),
        consumer: Consumer::new(memory.clone(), geometry),
        memory,
        sent: 0,
        taken: 0,
    }
}

impl Ends {
    fn send(&mut self) -> Result<(), NoRoom> {
        self.producer
            .room()?
            .publish([0, self.sent, 0, 0, 0, 0, 0, 0]);
        self.sent += 1;
        assert_eq!(self.producer.sent(), self.sent);
        Ok(())
    }

    /// Takes one message by the fast path, if one is out.
    fn take_short(&mut self) -> bool {
        loop {
            if let Some((_, cell)) = self.consumer.look(0, 0) {
                assert_eq!(cell[1], self.taken, "messages out of order");
                self.consumer.took();
                self.taken += 1;
                assert_eq!(self.consumer.taken(), self.taken);
                return true;
            }
            if self.consumer.return_due_credit().is_none() {
                assert!(!self.consumer.is_pending());
                assert_eq!(self.taken, self.sent, "a message was overlooked");
                return false;
            }
        }
    }

    /// Takes one message, if one is out.
    fn take(&mut self) -> bool {
        let _ = self.consumer.return_due_credit();
        let found = self.consumer.peek().unwrap();
        assert_eq!(found.is_some(), self.consumer.is_pending());
        let Some(cell) = found else {
            assert_eq!(self.taken, self.sent, "a message was not found");
            return false;
        };
        assert_eq!(cell[1], self.taken, "messages out of order");
        let _ = self.consumer.done(0);
        self.taken += 1;
        assert_eq!(self.consumer.taken(), self.taken);
        true
    }

    fn take_all(&mut self) {
        while self.take() {}
    }

    fn present(&self) -> usize {
        self.memory.0.borrow().present()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Take(u32),
    TakeShort(u32),
    Settle,
    GiveBack,
    Plenty(bool),
    RoomAlone,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1_u32..40).prop_map(Step::Send),
        4 => (1_u32..40).prop_map(Step::Take),
        4 => (1_u32..40).prop_map(Step::TakeShort),
        2 => Just(Step::Settle),
        2 => Just(Step::GiveBack),
        1 => any::<bool>().prop_map(Step::Plenty),
        2 => Just(Step::RoomAlone),
    ];
    prop::collection::vec(step, 1..250)
}

proptest! {
    /// The memory panics if a message is overwritten, cleared, given back or written to a hole;
    /// here it is seen that all come out, in order, and that the ring is never stuck.
    #[test]
    fn laps_of_any_length_are_a_queue(
        shift in 0_u32..6,
        idle_shift in 0_u32..5,
        first_lap in prop_oneof![Just(1_u64), Just((1 << 31) - 3), Just(1 << 30)],
        refresh in 1_u32..5,
        holes: bool,
        steps in steps(),
    ) {
        let mut ends = ends(2 << (shift + idle_shift), 1 << idle_shift, holes);
        ends.producer.flag = first_lap << 1;
        ends.consumer.expect_lap(first_lap << 1);
        ends.producer.generation.refresh_in_laps = refresh;
        for step in steps {
            match step {
                Step::Send(count) => {
                    for _ in 0..count {
                        if let Err(reason) = ends.send() {
                            prop_assert_eq!(reason, NoRoom::Full);
                            // Full in earnest: a whole idle ring at least is out, as far as
                            // the producer has been told.
                            let known = ends.memory.load_consumed();
                            prop_assert!(ends.sent - known >= 1 << idle_shift);
                            break;
                        }
                    }
                }
                Step::Take(count) => {
                    for _ in 0..count {
                        ends.take();
                    }
                }
                Step::TakeShort(count) => {
                    for _ in 0..count {
                        ends.take_short();
                    }
                }
                Step::Settle => {
                    let _ = ends.consumer.return_credit();
                }
                Step::GiveBack => {
                    let given = ends.producer.give_back();
                    prop_assert!(holes || given == 0);
                }
                Step::Plenty(plenty) => ends.memory.0.borrow_mut().plenty = plenty,
                Step::RoomAlone => drop(ends.producer.room()),
            }
        }
        // No credit is returned expressly, and yet, if all is taken, there is room.
        for _ in 0..100 {
            ends.take_all();
            prop_assert_eq!(ends.send(), Ok(()));
        }
        // An idle ring has its idle cells, and the page with the next one.
        ends.take_all();
        let _ = ends.consumer.return_credit();
        ends.producer.give_back();
        if holes {
            prop_assert!(ends.present() <= (1 << idle_shift) + CELLS_IDLE as usize);
        }
    }
}

#[test]
fn a_ring_that_fills_grows_to_what_is_allowed_and_no_further() {
    let mut ends = ends(256, 16, true);
    let mut sent = 0;
    while ends.send().is_ok() {
        sent += 1;
    }
    assert_eq!(
        (sent, ends.producer.depth(), ends.present()),
        (256, 256, 256)
    );
    // Taken in order, and the memory goes back when the ring is drained and idle.
    ends.take_all();
    let given = ends.producer.give_back();
    assert_eq!((given, ends.present()), (240 * 64, 16));
    for _ in 0..1000 {
        ends.send().unwrap();
        ends.take_all();
    }
    assert_eq!((ends.producer.depth(), ends.present()), (16, 16));
    assert_eq!(ends.producer.give_back(), 0);
}

/// As on one processor: each end has it until there is nothing more to do. Wherever in the generation that is, more than half
/// of the generation may never be out at its last cell.
#[test]
fn a_ring_that_is_filled_and_emptied_by_turns_grows_wherever_the_turns_begin() {
    for begin in 0..16 {
        let mut ends = ends(256, 16, true);
        for _ in 0..begin {
            ends.send().unwrap();
        }
        ends.take_all();
        let _ = ends.consumer.return_credit();
        for _ in 0..8 {
            while ends.send().is_ok() {}
            ends.take_all();
            let _ = ends.consumer.return_credit();
        }
        assert_eq!(ends.producer.depth(), 256, "from {begin}");
    }
}

#[test]
fn a_ring_whose_consumer_works_beside_its_producer_is_no_deeper_than_is_fast() {
    // Full at the first try, when nobody works yet, it is as deep as can be.
    let mut ends = ends(4096, 64, true);
    while ends.send().is_ok() {}
    assert_eq!(ends.producer.depth(), 4096);
    for _ in 0..3 {
        for _ in 0..2000 {
            for _ in 0..100 {
                ends.take_short();
            }
            while ends.send().is_ok() {}
        }
        assert_eq!(ends.producer.depth(), u64::from(CELLS_FAST));
        // By turns, as on one processor, each end should have it for long.
        for _ in 0..30 {
            while ends.take_short() {}
            let _ = ends.consumer.return_credit();
            while ends.send().is_ok() {}
        }
        assert_eq!(ends.producer.depth(), 4096);
    }
}

#[test]
fn a_ring_whose_consumer_keeps_up_stays_small() {
    let mut ends = ends(256, 16, true);
    for _ in 0..1000 {
        for _ in 0..5 {
            ends.send().unwrap();
        }
        ends.take_all();
    }
    assert_eq!(ends.memory.0.borrow().most_present, 16);
}

#[test]
fn what_is_out_stays_when_the_rest_is_given_back() {
    let mut ends = ends(1024, 16, true);
    for _ in 0..700 {
        ends.send().unwrap();
    }
    for _ in 0..500 {
        ends.take();
    }
    let _ = ends.consumer.return_credit();
    // Cells 500 to 700 are out or next: 448 to 704 in whole pages, and the idle ones.
    ends.producer.give_back();
    assert_eq!(ends.present(), 16 + (704 - 448));
    assert_eq!(ends.producer.give_back(), 0);
    ends.take_all();
    let _ = ends.consumer.return_credit();
    // The generation ends within the page in which it is, and then that page is free too.
    for _ in 0..4 {
        ends.send().unwrap();
        ends.take_all();
    }
    let _ = ends.consumer.return_credit();
    ends.producer.give_back();
    assert_eq!(ends.present(), 16);
    assert_eq!(ends.producer.depth(), 16);
}

#[test]
fn a_deep_ring_becomes_shallow_when_its_consumer_keeps_up() {
    let mut ends = ends(256, 16, true);
    while ends.send().is_ok() {}
    ends.take_all();
    for _ in 0..256 * SHALLOW_LAPS * 5 {
        ends.send().unwrap();
        ends.take_all();
    }
    assert_eq!(ends.producer.depth(), 16);
    assert_eq!(ends.present(), 256, "memory goes back only when asked");
    assert_eq!(ends.producer.give_back(), 240 * 64);
}

#[test]
fn without_memory_the_ring_stays_as_it_is_and_asks_once() {
    let mut ends = ends(256, 16, true);
    ends.memory.0.borrow_mut().plenty = false;
    let mut sent = 0;
    while ends.send().is_ok() {
        sent += 1;
    }
    assert_eq!((sent, ends.producer.depth()), (16, 16));
    // Memory is there again, but nobody asks on the way of a message.
    ends.memory.0.borrow_mut().plenty = true;
    ends.take_all();
    while ends.send().is_ok() {}
    assert_eq!(ends.present(), 16);
    ends.take_all();
    ends.producer.give_back();
    while ends.send().is_ok() {}
    assert_eq!(ends.present(), 256);
}
