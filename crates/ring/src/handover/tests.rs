//! The model checker looks for a write that a reader of a held piece could see.

use std::panic::{AssertUnwindSafe, catch_unwind};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic;

use super::*;

impl StateWord for atomic::AtomicU32 {
    fn new(value: u32) -> Self {
        atomic::AtomicU32::new(value)
    }
    fn load_acquire(&self) -> u32 {
        self.load(Ordering::Acquire)
    }
    fn store_release(&self, value: u32) {
        self.store(value, Ordering::Release);
    }
    fn take(&self) -> bool {
        let exchange = self.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        exchange.is_ok()
    }
    fn wait(_rounds: u32) {
        loom::thread::yield_now();
    }
}

struct Shared {
    pieces: Pieces<atomic::AtomicU32>,
    /// Loom reports any access that is not ordered against the others.
    byte: UnsafeCell<u8>,
}

fn shared() -> (Arc<Shared>, Turn) {
    let (pieces, turn) = Pieces::new(1, 6).unwrap();
    (
        Arc::new(Shared {
            pieces,
            byte: UnsafeCell::new(0),
        }),
        turn,
    )
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// One thread writes and another completes, as two clones of an area may do; a
/// third reads what is held and opens it again.
#[test]
fn nobody_writes_what_is_held() {
    check(|| {
        let (shared, mut turn) = shared();
        shared.pieces.open(&mut turn, 0..1);
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                let write = || shared.byte.with_mut(|_| ());
                let _ = shared.pieces.while_open(0, 1, write);
            })
        };
        let completer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || shared.pieces.complete(0, 1))
        };
        if shared.pieces.is_held(&turn, 0, 1) {
            shared.byte.with(|_| ());
            shared.pieces.open(&mut turn, 0..1);
        }
        writer.join().unwrap();
        completer.join().unwrap();
    });
}

/// What was written before a completion is seen by whoever finds the piece held.
#[test]
fn what_is_held_is_complete() {
    check(|| {
        let (shared, mut turn) = shared();
        shared.pieces.open(&mut turn, 0..1);
        let value = Arc::new(atomic::AtomicU32::new(0));
        let writer = {
            let (shared, value) = (Arc::clone(&shared), Arc::clone(&value));
            loom::thread::spawn(move || {
                let write = || value.store(7, Ordering::Relaxed);
                assert_eq!(shared.pieces.while_open(0, 1, write), Ok(()));
                shared.pieces.complete(0, 1);
            })
        };
        if shared.pieces.is_held(&turn, 0, 1) {
            assert_eq!(value.load(Ordering::Relaxed), 7);
        }
        writer.join().unwrap();
    });
}

/// The checker does find it if the guard is left out.
#[test]
fn without_the_guard_a_held_piece_is_written() {
    let found = catch_unwind(AssertUnwindSafe(|| {
        check(|| {
            let (shared, mut turn) = shared();
            shared.pieces.open(&mut turn, 0..1);
            let writer = {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    if shared.pieces.states[0].load_acquire() == OPEN {
                        shared.byte.with_mut(|_| ());
                    }
                })
            };
            shared.pieces.complete(0, 1);
            if shared.pieces.is_held(&turn, 0, 1) {
                shared.byte.with(|_| ());
            }
            writer.join().unwrap();
        });
    }));
    assert!(found.is_err());
}
