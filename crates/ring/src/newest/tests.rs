//! Against a model, against writers that break the rules, and all orders of loads and stores that
//! the model checker knows.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::catch_unwind;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use proptest::prelude::*;

use super::*;

const CHUNKS: u32 = 2;
const LIMIT: usize = 16;

/// Words that a hostile writer changes between any two loads.
struct Hostile<F: FnMut(Word) -> u64>(RefCell<F>);

impl<F: FnMut(Word) -> u64> Words for Hostile<F> {
    fn load(&self, word: Word) -> u64 {
        (self.0.borrow_mut())(word)
    }
    fn store(&self, _: Word, _: u64) {}
    fn barrier(&self, _: Ordering) {}
}

fn look(load: impl FnMut(Word) -> u64) -> (Result<Option<Newest>, OutsidePool>, u32) {
    let mut copies = 0;
    let words = Hostile(RefCell::new(load));
    let found = copy_newest(&words, CHUNKS, LIMIT, 0, |chunk, length| {
        assert!(chunk < CHUNKS && length <= LIMIT);
        copies += 1;
    });
    (found, copies)
}

#[test]
fn a_head_outside_the_pool_is_refused() {
    for head in [
        u64::from(CHUNKS) + 1,
        u64::from(u32::MAX),
        1 << 32,
        u64::MAX,
    ] {
        let load = |word| if word == Word::Head { head } else { 1 };
        assert_eq!(look(load), (Err(OutsidePool), 0), "{head:x}");
    }
}

#[test]
fn a_length_beyond_the_limit_is_refused_and_not_copied() {
    for length in [LIMIT as u64 + 1, u64::MAX] {
        let load = |word| match word {
            Word::Length(_) => length,
            _ => 1,
        };
        assert_eq!(look(load), (Err(OutsidePool), 0), "{length:x}");
    }
}

#[test]
fn stamps_that_always_change_cost_so_many_copies_and_no_more() {
    let mut stamp = 0;
    let load = |word| match word {
        Word::Stamp(_) => {
            stamp += 1;
            stamp
        }
        _ => 1,
    };
    assert_eq!(look(load), (Ok(None), TRIES));
    // One that is always being written is not copied at all.
    let load = |word| u64::from(word == Word::Head);
    assert_eq!(look(load), (Ok(None), 0));
}

/// A pool of three chunks and its writer. The bytes of a chunk are one number: that of the version
/// last written there.
#[derive(Default)]
struct Model {
    words: RefCell<HashMap<u32, u64>>,
    bytes: RefCell<[u64; 3]>,
    newest: Cell<Option<u32>>,
    published: Cell<u64>,
}

impl Words for Model {
    fn load(&self, word: Word) -> u64 {
        let words = self.words.borrow();
        words.get(&key(word)).copied().unwrap_or(0)
    }
    fn store(&self, word: Word, value: u64) {
        self.words.borrow_mut().insert(key(word), value);
    }
    fn barrier(&self, _: Ordering) {}
}

fn key(word: Word) -> u32 {
    match word {
        Word::Head => 0,
        Word::Stamp(chunk) => 1 + 2 * chunk,
        Word::Length(chunk) => 2 + 2 * chunk,
    }
}

impl Model {
    /// Writes a chunk that is not the newest, and publishes it or gives it up.
    fn write(&self, is_published: bool) {
        let newest = self.newest.get();
        let chunk = (0..3).find(|chunk| Some(*chunk) != newest).unwrap();
        let number = self.published.get();
        begin(self, chunk);
        self.bytes.borrow_mut()[chunk as usize] = number;
        if is_published {
            finish(self, chunk, number, number % LIMIT as u64);
            show(self, chunk);
            self.newest.set(Some(chunk));
            self.published.set(number + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The writer goes on before and in the middle of copies: a reader has the newest version or a
    /// newer one, unless it had that before; all of its bytes are of that version.
    #[test]
    fn a_reader_has_the_newest_version_whole(
        looks in prop::collection::vec(
            (prop::collection::vec(any::<bool>(), 0..6), prop::collection::vec(any::<bool>(), 0..6)),
            1..30,
        ),
    ) {
        let model = Model::default();
        let mut from = 0;
        for (before, during) in looks {
            before.into_iter().for_each(|is_published| model.write(is_published));
            let published = model.published.get();
            let mut during = during.into_iter();
            let mut copied = None;
            let found = copy_newest(&model, 3, LIMIT, from, |chunk, _| {
                copied = Some(model.bytes.borrow()[chunk as usize]);
                // The second half of the copy.
                if let Some(is_published) = during.next() {
                    model.write(is_published);
                    if model.bytes.borrow()[chunk as usize] != copied.unwrap() {
                        copied = None;
                    }
                }
            });
            match found.unwrap() {
                Some(found) => {
                    prop_assert!(found.number >= from && found.number + 1 >= published);
                    prop_assert_eq!(Some(found.number), copied);
                    prop_assert_eq!(found.length_bytes, found.number as usize % LIMIT);
                    from = found.number + 1;
                }
                None => prop_assert!(published <= from),
            }
        }
    }
}

/// Words and bytes on the model checker's atomics.
struct Checked {
    head: AtomicU64,
    stamps: [AtomicU64; CHUNKS as usize],
    lengths: [AtomicU64; CHUNKS as usize],
    bytes: [[AtomicU64; 2]; CHUNKS as usize],
    has_barriers: bool,
}

impl Words for Checked {
    fn load(&self, word: Word) -> u64 {
        self.at(word).load(Ordering::Acquire)
    }
    fn store(&self, word: Word, value: u64) {
        self.at(word).store(value, Ordering::Release);
    }
    fn barrier(&self, order: Ordering) {
        if self.has_barriers {
            fence(order);
        }
    }
}

impl Checked {
    fn at(&self, word: Word) -> &AtomicU64 {
        match word {
            Word::Head => &self.head,
            Word::Stamp(chunk) => &self.stamps[chunk as usize],
            Word::Length(chunk) => &self.lengths[chunk as usize],
        }
    }

    fn publish(&self, chunk: u32, number: u64) {
        begin(self, chunk);
        for word in &self.bytes[chunk as usize] {
            word.store(number, Ordering::Relaxed);
        }
        finish(self, chunk, number, number);
        show(self, chunk);
    }
}

/// A writer uses two chunks in turn while a reader looks: no copy that counts is torn, and the
/// last look has the last version.
fn copies_are_whole(has_barriers: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let shared = Arc::new(Checked {
            head: AtomicU64::new(0),
            stamps: Default::default(),
            lengths: Default::default(),
            bytes: Default::default(),
            has_barriers,
        });
        shared.publish(0, 1);
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                shared.publish(1, 2);
                shared.publish(0, 3);
            })
        };
        let look = |from| {
            let mut copied = [0; 2];
            let found = copy_newest(&*shared, CHUNKS, LIMIT, from, |chunk, _| {
                let bytes = &shared.bytes[chunk as usize];
                copied = [0, 1].map(|at| bytes[at].load(Ordering::Relaxed));
            });
            let found = found.unwrap();
            if let Some(found) = found {
                assert_eq!(copied, [found.number; 2], "torn");
                assert_eq!(found.length_bytes as u64, found.number);
            }
            found.map(|found| found.number)
        };
        let first = look(0);
        writer.join().unwrap();
        if first != Some(3) {
            assert_eq!(look(first.map_or(0, |first| first + 1)), Some(3));
        }
    });
}

#[test]
fn no_copy_that_counts_is_torn() {
    copies_are_whole(true);
}

#[test]
fn without_its_barriers_the_checker_finds_a_torn_copy() {
    assert!(catch_unwind(|| copies_are_whole(false)).is_err());
}
