//! Ready bits that are set, and ready bits that a peer forges or clears.

use std::collections::BTreeSet;

use loom::sync::atomic::AtomicU64;
use proptest::prelude::*;

use super::*;

fn page() -> Arc<Mapping> {
    Arc::new(Mapping::anonymous(READY_BITMAP_BYTES).unwrap())
}

fn marker(page: &Arc<Mapping>, number: u32) -> ReadyMarker {
    ReadyMarker::new(SharedBitmap::new(Arc::clone(page)).unwrap(), number)
}

fn ready_bitmap(page: &Arc<Mapping>) -> ReadyBitmap {
    ReadyBitmap::new(SharedBitmap::new(Arc::clone(page)).unwrap())
}

proptest! {
    #[test]
    fn what_is_left_is_taken(
        rounds in prop::collection::vec(
            (prop::collection::vec(0..READY_BITS_MAX + 3, 0..40), 1_u32..50), 1..20),
    ) {
        let page = page();
        let mut ready_bitmap = ready_bitmap(&page);
        // A bit that is set again while the receiver holds it comes twice.
        let (mut reference, mut ever) = (BTreeSet::new(), BTreeSet::new());
        for (left, most) in rounds {
            for number in left {
                marker(&page, number).mark();
                if number < READY_BITS_MAX {
                    reference.insert(number);
                    ever.insert(number);
                }
            }
            let mut taken = 0;
            ready_bitmap.take(most, |number| {
                assert!(ever.contains(&number), "{number} was not left");
                reference.remove(&number);
                taken += 1;
            });
            prop_assert!(taken <= most);
            prop_assert!(ready_bitmap.is_any() || reference.is_empty());
        }
        for _ in 0..1000 {
            ready_bitmap.take(64, |number| {
                reference.remove(&number);
            });
        }
        prop_assert!(reference.is_empty() && !ready_bitmap.is_any());
    }
}

#[test]
fn forged_notes_cost_a_bounded_look() {
    let page = page();
    let mut ready_bitmap = ready_bitmap(&page);
    for _ in 0..100 {
        // Whatever is in the page, and put there again at once.
        for offset in (0..READY_BITMAP_BYTES).step_by(8) {
            page.store_u64(offset, u64::MAX).unwrap();
        }
        let mut taken = 0;
        ready_bitmap.take(16, |number| {
            assert!(number < READY_BITS_MAX);
            taken += 1;
        });
        assert_eq!(taken, 16);
    }
    // A summary without bits.
    for offset in (WORDS_OFFSET..READY_BITMAP_BYTES).step_by(8) {
        page.store_u64(offset, 0).unwrap();
    }
    for _ in 0..100 {
        page.store_u64(SUMMARY_OFFSET, u64::MAX).unwrap();
        ready_bitmap.take(16, |_| ());
    }
    page.store_u64(SUMMARY_OFFSET, 0).unwrap();
    // What was wiped out is left again by the next message.
    marker(&page, 77).mark();
    page.store_u64(SUMMARY_OFFSET, 0).unwrap();
    marker(&page, 77).mark();
    let mut taken = Vec::new();
    for _ in 0..64 {
        ready_bitmap.take(16, |number| taken.push(number));
    }
    assert!(taken.contains(&77));
}

#[test]
fn a_page_that_is_too_small_or_cannot_be_written_is_refused() {
    let small = Arc::new(Mapping::anonymous(READY_BITMAP_BYTES / 2).unwrap());
    assert!(SharedBitmap::new(small).is_err());
}

/// A page that counts what is written to it.
#[derive(Default)]
struct Counted([std::cell::Cell<u64>; 2], std::cell::Cell<u32>);

impl BitmapMemory for std::rc::Rc<Counted> {
    fn set(&self, word: u32, bits: u64) {
        let word = &self.0[word as usize];
        word.set(word.get() | bits);
        self.1.set(self.1.get() + 1);
    }
    fn load(&self, word: u32) -> u64 {
        self.0[word as usize].get()
    }
    fn take(&self, word: u32) -> u64 {
        self.0[word as usize].take()
    }
    fn fence(&self) {}
}

#[test]
fn a_bit_that_is_set_is_not_written_again() {
    let page = std::rc::Rc::new(Counted::default());
    let markers = [3, 4].map(|number| ReadyMarker::new(std::rc::Rc::clone(&page), number));
    let mut ready_bitmap = ReadyBitmap::new(std::rc::Rc::clone(&page));
    for _ in 0..3 {
        for _ in 0..100 {
            markers.iter().for_each(MarkReady::mark);
        }
        assert_eq!(page.1.take(), 3, "two bits and a summary");
        let mut taken = Vec::new();
        ready_bitmap.take(8, |number| taken.push(number));
        assert_eq!(taken, [3, 4]);
    }
}

/// The page on the model checker's atomics.
struct Modelled([AtomicU64; 2], bool);

impl BitmapMemory for loom::sync::Arc<Modelled> {
    fn set(&self, word: u32, bits: u64) {
        self.0[word as usize].fetch_or(bits, Ordering::SeqCst);
    }
    fn load(&self, word: u32) -> u64 {
        self.0[word as usize].load(Ordering::Relaxed)
    }
    fn take(&self, word: u32) -> u64 {
        let taken = self.0[word as usize].swap(0, Ordering::SeqCst);
        self.fence();
        taken
    }
    fn fence(&self) {
        if self.1 {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

/// A sender sets its bit twice while the receiver takes bits: what was sent before a bit that the
/// receiver has not taken is found by the look that follows the next one.
fn a_second_message_sets_its_bit(has_fences: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let memory = loom::sync::Arc::new(Modelled(Default::default(), has_fences));
        let sent = loom::sync::Arc::new(AtomicU64::new(0));
        let marker = ReadyMarker::new(loom::sync::Arc::clone(&memory), 0);
        let sender = {
            let sent = loom::sync::Arc::clone(&sent);
            loom::thread::spawn(move || {
                for number in 1..=2 {
                    sent.store(number, Ordering::Release);
                    marker.mark();
                }
            })
        };
        let mut ready_bitmap = ReadyBitmap::new(memory);
        let mut seen = 0;
        let mut look = |ready_bitmap: &mut ReadyBitmap<_>| {
            ready_bitmap.take(8, |_| seen = sent.load(Ordering::Acquire));
        };
        look(&mut ready_bitmap);
        sender.join().unwrap();
        look(&mut ready_bitmap);
        assert_eq!(seen, 2, "a message without a ready bit");
    });
}

#[test]
fn a_bit_that_is_not_written_again_is_not_lost() {
    a_second_message_sets_its_bit(true);
}

#[test]
fn without_the_fences_the_checker_finds_a_message_without_a_bit() {
    assert!(std::panic::catch_unwind(|| a_second_message_sets_its_bit(false)).is_err());
}

/// Two senders set bits while the receiver takes some: what it did not take is still there, and a
/// sender whose bit is set has sent.
#[test]
fn the_model_checker_finds_no_message_without_a_bit() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let memory = loom::sync::Arc::new(Modelled(Default::default(), true));
        let sent: [_; 2] = std::array::from_fn(|_| loom::sync::Arc::new(AtomicU64::new(0)));
        let senders: Vec<_> = (0..2_u32)
            .map(|number| {
                let marker = ReadyMarker::new(loom::sync::Arc::clone(&memory), number);
                let sent = loom::sync::Arc::clone(&sent[number as usize]);
                loom::thread::spawn(move || {
                    sent.store(1, Ordering::Release);
                    marker.mark();
                })
            })
            .collect();
        let mut ready_bitmap = ReadyBitmap::new(memory);
        let mut found = 0;
        let mut look = |ready_bitmap: &mut ReadyBitmap<_>| {
            ready_bitmap.take(8, |number: u32| {
                assert_eq!(sent[number as usize].load(Ordering::Acquire), 1);
                found |= 1 << number;
            });
        };
        look(&mut ready_bitmap);
        for sender in senders {
            sender.join().unwrap();
        }
        look(&mut ready_bitmap);
        assert_eq!(found, 3);
    });
}
