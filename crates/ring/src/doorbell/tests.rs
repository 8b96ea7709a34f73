//! The model checker looks for a sleeper whom nobody wakes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64};

use super::*;
use crate::memfd::{Memfd, Require};
use crate::shared::{Access, PAGE_BYTES};

/// The word, and whether senders pass the barrier (be it the receiver's doing or their own).
struct Modelled {
    word: Arc<AtomicU64>,
    barrier: bool,
}

impl SleepMemory for Modelled {
    fn store(&self, value: u64) {
        self.word.store(value, Ordering::Release);
    }
}

impl BellMemory for Modelled {
    fn load(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }
    fn fence(&self, _: Fence) {
        if self.barrier {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }
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
                let mut waker = Waker::over(memory, Fence::Light);
                message.store(true, Ordering::Release);
                if waker.must_ring() {
                    rung.store(true, Ordering::Release);
                }
            })
        };
        let mut sleep = SleepWord::over(Modelled { word, barrier });
        sleep.prepare(|| loom::sync::atomic::fence(Ordering::SeqCst));
        let found = message.load(Ordering::Acquire);
        sender.join().unwrap();
        // Had it slept without finding the message, it would have been rung for.
        assert!(
            found || rung.load(Ordering::Acquire),
            "slept beside a message"
        );
        sleep.end();
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
fn rings_once_for_each_sleep() {
    let (file, page) = Memfd::create_bell("bell").unwrap();
    let file = Memfd::adopt(file.into_fd(), PAGE_BYTES, Require::Bell).unwrap();
    let mut sleep = SleepWord::new(std::sync::Arc::new(page)).unwrap();
    let theirs = std::sync::Arc::new(file.map(Access::ReadOnly).unwrap());
    for fence in [Fence::Light, Fence::Heavy] {
        let mut waker = Waker::new(std::sync::Arc::clone(&theirs), fence).unwrap();
        assert!(!waker.must_ring());
        for _ in 0..3 {
            let mut barriers = 0;
            sleep.prepare(|| barriers += 1);
            sleep.prepare(|| barriers += 1);
            assert_eq!(barriers, 2);
            assert!(sleep.is_announced());
            assert!(waker.must_ring());
            assert!(!waker.must_ring());
            waker.not_rung();
            assert!(waker.must_ring());
            sleep.end();
            sleep.end();
            assert!(!sleep.is_announced() && !waker.must_ring());
        }
    }
}
