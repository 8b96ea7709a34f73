//! Two ends on the model checker's atomics.

use core::sync::atomic::Ordering;

use super::super::*;
use crate::cells::{CellInPlace, number_in};

/// A line of three words on the model checker's atomics, and a cell after it, as a ring would have
/// one.
#[derive(Default)]
struct Modelled {
    line: [loom::sync::atomic::AtomicU64; 3],
    taken: loom::sync::atomic::AtomicU64,
    /// Its first word is a flag with an epoch, and its second one what it carries.
    cell: [loom::sync::atomic::AtomicU64; 2],
}

type Shared = loom::sync::Arc<Modelled>;

/// Words that are loaded when they are asked for.
struct InPlace<'a>(&'a Modelled);

impl CellInPlace for InPlace<'_> {
    fn word<const NUMBER: usize>(&self) -> u64 {
        self.0.line[NUMBER].load(Ordering::Relaxed)
    }
}

impl LineMemory for Shared {
    type InPlace<'a> = InPlace<'a>;

    fn look(&self, first: u64, most: u64) -> Option<(u64, InPlace<'_>)> {
        let number = number_in(self.load_first(), first, most)?;
        Some((number, InPlace(self)))
    }
    fn load(&self, expected: u64) -> Result<Cell, u64> {
        let first = self.load_first();
        if first & FLAG_MASK != expected {
            return Err(first);
        }
        let word = |number: usize| self.line[number].load(Ordering::Relaxed);
        Ok([first, word(1), word(2), 0, 0, 0, 0, 0])
    }
    fn load_first(&self) -> u64 {
        self.line[0].load(Ordering::Acquire)
    }
    fn store(&self, cell: &Cell) {
        self.line[1].store(cell[1], Ordering::Relaxed);
        self.line[2].store(cell[2], Ordering::Relaxed);
        self.line[0].store(cell[0], Ordering::Release);
    }
    fn load_taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }
    fn store_taken(&self, count: u64) {
        self.taken.store(count, Ordering::Release);
    }
}

fn ends(order: LineOrder, memory: &Shared) -> (DuplexSender<Shared>, DuplexReceiver<Shared>) {
    let sender = DuplexSender::new(loom::sync::Arc::clone(memory), order);
    (
        sender,
        DuplexReceiver::new(loom::sync::Arc::clone(memory), order),
    )
}

/// The two words of the next message, which are loaded in place.
fn take(receiver: &mut DuplexReceiver<Shared>, cells_taken: u64) -> (u64, (u64, u64)) {
    loop {
        if let Some((_, cell)) = receiver.look(0, 0, cells_taken) {
            let words = (cell.word::<1>(), cell.word::<2>());
            return (receiver.took(), words);
        }
        loom::thread::yield_now();
    }
}

fn message(number: u64) -> Cell {
    [0, number, !number, 0, 0, 0, 0, 0]
}

/// Question, answer, question: each is whole, though each is written over the one before.
#[test]
fn answers_do_not_tear_questions() {
    loom::model(|| {
        let memory = Shared::default();
        let (mut sender, mut receiver) = ends(LineOrder::First, &memory);
        let peer = loom::thread::spawn({
            let memory = loom::sync::Arc::clone(&memory);
            move || {
                let (mut sender, mut receiver) = ends(LineOrder::Second, &memory);
                let (taken, question) = take(&mut receiver, 0);
                assert_eq!(question, (7, !7));
                assert!(sender.is_ours(taken));
                sender.publish(message(8), 0);
                let (_, question) = take(&mut receiver, 0);
                assert_eq!(question, (9, !9));
            }
        });
        assert!(sender.is_ours(0));
        sender.publish(message(7), 0);
        let (taken, answer) = take(&mut receiver, 0);
        assert_eq!(answer, (8, !8));
        assert!(sender.is_ours(taken));
        sender.publish(message(9), 0);
        peer.join().unwrap();
    });
}

/// The halves of an end may be in two threads: the sending one writes only when the receiving one
/// is done with what was there.
#[test]
fn the_halves_of_an_end_may_be_apart() {
    loom::model(|| {
        let memory = Shared::default();
        let taken = loom::sync::Arc::new(loom::sync::atomic::AtomicU64::new(0));
        DuplexSender::new(loom::sync::Arc::clone(&memory), LineOrder::First).publish(message(7), 0);
        let sending = loom::thread::spawn({
            let (memory, taken) = (
                loom::sync::Arc::clone(&memory),
                loom::sync::Arc::clone(&taken),
            );
            move || {
                let (mut sender, _) = ends(LineOrder::Second, &memory);
                while !sender.is_ours(taken.load(Ordering::Acquire)) {
                    loom::thread::yield_now();
                }
                sender.publish(message(8), 0);
            }
        });
        let (_, mut receiver) = ends(LineOrder::Second, &memory);
        let (number, question) = take(&mut receiver, 0);
        taken.store(number, Ordering::Release);
        assert_eq!(question, (7, !7));
        sending.join().unwrap();
    });
}

/// A cell that was sent after a message of the line says so, so whoever sees it finds the message.
#[test]
fn whoever_sees_a_cell_of_the_next_epoch_sees_the_message_before_it() {
    loom::model(|| {
        let memory = Shared::default();
        let peer = loom::thread::spawn({
            let memory = loom::sync::Arc::clone(&memory);
            move || {
                let (mut sender, _) = ends(LineOrder::First, &memory);
                sender.publish(message(7), 0);
                memory.cell[1].store(8, Ordering::Relaxed);
                memory.cell[0].store(1 | crate::cells::EPOCH, Ordering::Release);
            }
        });
        let (_, mut receiver) = ends(LineOrder::Second, &memory);
        if memory.cell[0].load(Ordering::Acquire) != 0 {
            assert!(receiver.is_pending(0));
            assert_eq!(receiver.peek(0).map(|cell| cell[1]), Some(7));
            let _ = receiver.took();
            assert_eq!(memory.cell[1].load(Ordering::Relaxed), 8);
        }
        peer.join().unwrap();
    });
}
