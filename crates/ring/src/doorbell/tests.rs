//! The model checker looks for a sleeper whom nobody wakes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};

use super::*;
use crate::geometry::ARENA_MIN_BYTES;

/// The word, and whether senders pass the barrier (be it the receiver's doing or their own).
struct Modelled {
    word: Arc<AtomicU64>,
    barrier: bool,
}

impl BellMemory for Modelled {
    fn store(&self, value: u64) {
        self.word.store(value, Ordering::Release);
    }
    fn load(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }
    fn fence(&self, _: Fence) {
        if self.barrier {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
}

struct NoBits;

impl MarkReady for NoBits {
    fn mark(&self) {}
}

fn nobody_sleeps_beside_a_message(barrier: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let word = Arc::new(AtomicU64::new(0));
        let (message, rung) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let sender = {
            let memory = Modelled {
                word: Arc::clone(&word),
                barrier,
            };
            let (message, rung) = (Arc::clone(&message), Arc::clone(&rung));
            loom::thread::spawn(move || {
                let mut waker = Waker::over(memory, NoBits);
                message.store(true, Ordering::Release);
                if waker.must_ring() {
                    rung.store(true, Ordering::Release);
                }
            })
        };
        let mut attention = Attention::over(Modelled { word, barrier });
        attention.enable_events();
        attention.sleep();
        loom::sync::atomic::fence(Ordering::SeqCst);
        let found = message.load(Ordering::Acquire);
        sender.join().unwrap();
        // Had it slept without finding the message, it would have been rung for.
        assert!(
            found || rung.load(Ordering::Acquire),
            "slept beside a message"
        );
    });
}

#[test]
fn no_wake_up_is_lost() {
    nobody_sleeps_beside_a_message(true);
}

#[test]
fn without_the_barrier_the_checker_finds_a_lost_wake_up() {
    let found = catch_unwind(AssertUnwindSafe(|| nobody_sleeps_beside_a_message(false)));
    assert!(found.is_err());
}

#[test]
fn rings_once_for_each_announcement_and_asks_for_ready_bits_without_sleep() {
    struct Counted(std::rc::Rc<std::cell::Cell<u32>>);
    impl MarkReady for Counted {
        fn mark(&self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let geometry = Geometry::new(2, ARENA_MIN_BYTES).unwrap();
    let mapping = std::sync::Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let mut attention = Attention::new(std::sync::Arc::clone(&mapping), geometry).unwrap();
    for fence in [Fence::Light, Fence::Heavy] {
        let marked = std::rc::Rc::new(std::cell::Cell::new(0));
        let word = |at| Word::new(std::sync::Arc::clone(&mapping), at).unwrap();
        let (said, counted) = (word(geometry.attention_offset()), Counted(marked.clone()));
        let mut waker = match fence {
            Fence::Light => Waker::over(said, counted),
            Fence::Heavy => {
                Waker::over_behind_barrier(said, word(geometry.barrier_offset()), counted)
            }
        };
        assert!(!waker.must_ring());
        attention.enable_events();
        assert!(!waker.must_ring() && !waker.must_ring());
        assert_eq!(marked.take(), 2);
        for _ in 0..3 {
            attention.sleep();
            assert!(attention.is_asleep() && !attention.suppresses_events());
            assert!(waker.must_ring());
            assert!(!waker.must_ring());
            waker.not_rung();
            assert!(waker.must_ring());
            // A link that is found silent in the look before the sleep, or by another thread, is
            // rung for all the same.
            attention.enable_events();
            assert!(attention.is_asleep());
            // A sender that has just rung does so again for the next sleep, though nobody polled in
            // between.
            attention.sleep();
            assert!(waker.must_ring());
            assert!(!waker.must_ring());
            assert_eq!(marked.take(), 5);
            attention.suppress_events();
            assert!(!attention.is_asleep() && attention.suppresses_events());
            assert!(!waker.must_ring());
            assert_eq!(marked.take(), 0);
        }
    }
}
