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
}

struct Shared {
    pieces: Pieces<atomic::AtomicU32>,
    /// Loom reports any access that is not ordered against the others.
    byte: UnsafeCell<u8>,
}

fn shared() -> (Arc<Shared>, ReleaseToken, WriteToken) {
    let (pieces, release_token, write_token) = Pieces::new(1, 6).unwrap();
    (
        Arc::new(Shared {
            pieces,
            byte: UnsafeCell::new(0),
        }),
        release_token,
        write_token,
    )
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// One thread writes and completes, twice; another reads what is held and opens it again.
#[test]
fn nobody_writes_what_is_held() {
    check(|| {
        let (shared, mut release_token, write_token) = shared();
        shared.pieces.open(&mut release_token, 0..1);
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                for _ in 0..2 {
                    let write = || shared.byte.with_mut(|_| ());
                    let _ = shared.pieces.while_open(&write_token, 0, 1, write);
                    shared.pieces.complete(&write_token, 0, 1);
                }
            })
        };
        if shared.pieces.is_held(&release_token, 0, 1) {
            shared.byte.with(|_| ());
            shared.pieces.open(&mut release_token, 0..1);
        }
        writer.join().unwrap();
    });
}

/// The same by the fast path, which writes and completes while it holds the open piece.
#[test]
fn nobody_writes_what_is_held_when_that_is_done_at_once() {
    check(|| {
        let (shared, mut release_token, write_token) = shared();
        shared.pieces.open(&mut release_token, 0..1);
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                for _ in 0..2 {
                    if let Some(piece) = shared.pieces.only_open(&write_token, 0, 1, 0, 64) {
                        shared.byte.with_mut(|_| ());
                        piece.complete();
                    }
                }
            })
        };
        if shared.pieces.is_held_in_one(&release_token, 0, 1) {
            shared.byte.with(|_| ());
            shared.pieces.open_one(&mut release_token, 0);
        }
        writer.join().unwrap();
    });
}

/// Only a message within one piece takes the fast path, whatever the numbers are.
#[test]
fn ranges_in_several_pieces_go_the_longer_way() {
    loom::model(|| {
        let (pieces, mut release_token, write_token) =
            Pieces::<atomic::AtomicU32>::new(4, 6).unwrap();
        pieces.open(&mut release_token, 0..3);
        let is_open = |offset, len, low, high| {
            let piece = pieces.only_open(&write_token, offset, len, low, high);
            piece.is_some()
        };
        assert!(is_open(64, 16, 64, 128));
        assert!(is_open(112, 16, 112, 128));
        assert!(is_open(128, 64, 128, 129));
        assert!(!is_open(113, 16, 113, 128), "the end is in the next");
        assert!(!is_open(64, 16, 63, 128), "the limits begin before");
        assert!(!is_open(64, 16, 64, 129), "the limits end after");
        assert!(!is_open(192, 16, 192, 256), "held");
        assert!(!is_open(256, 16, 256, 272), "there is none");
        assert!(!is_open(usize::MAX - 7, 16, usize::MAX - 7, 8));
        assert!(!is_open(usize::MAX - 15, 16, usize::MAX - 15, usize::MAX));
        assert!(!is_open(0, usize::MAX, 0, usize::MAX));
    });
}

/// The write token may move to another thread, as an interface may; what is written there
/// comes after what was written here.
#[test]
fn the_pen_moves_with_all_that_was_written() {
    check(|| {
        let (shared, mut release_token, write_token) = shared();
        shared.pieces.open(&mut release_token, 0..1);
        let write = || shared.byte.with_mut(|_| ());
        assert_eq!(shared.pieces.while_open(&write_token, 0, 1, write), Ok(()));
        let writer = {
            let shared = Arc::clone(&shared);
            loom::thread::spawn(move || {
                let write = || shared.byte.with_mut(|_| ());
                assert_eq!(shared.pieces.while_open(&write_token, 0, 1, write), Ok(()));
                shared.pieces.complete(&write_token, 0, 1);
            })
        };
        if shared.pieces.is_held(&release_token, 0, 1) {
            shared.byte.with(|_| ());
        }
        writer.join().unwrap();
    });
}

/// A thread that finds the piece held sees what was written before the completion.
#[test]
fn what_is_held_is_complete() {
    check(|| {
        let (shared, mut release_token, write_token) = shared();
        shared.pieces.open(&mut release_token, 0..1);
        let value = Arc::new(atomic::AtomicU32::new(0));
        let writer = {
            let (shared, value) = (Arc::clone(&shared), Arc::clone(&value));
            loom::thread::spawn(move || {
                let write = || value.store(7, Ordering::Relaxed);
                assert_eq!(shared.pieces.while_open(&write_token, 0, 1, write), Ok(()));
                shared.pieces.complete(&write_token, 0, 1);
            })
        };
        if shared.pieces.is_held(&release_token, 0, 1) {
            assert_eq!(value.load(Ordering::Relaxed), 7);
        }
        writer.join().unwrap();
    });
}

/// The checker does find it if somebody writes who does not hold the write token.
#[test]
fn without_the_pen_a_held_piece_is_written() {
    let found = catch_unwind(AssertUnwindSafe(|| {
        check(|| {
            let (shared, mut release_token, write_token) = shared();
            shared.pieces.open(&mut release_token, 0..1);
            let writer = {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || {
                    if shared.pieces.states[0].load_acquire() == OPEN {
                        shared.byte.with_mut(|_| ());
                    }
                })
            };
            shared.pieces.complete(&write_token, 0, 1);
            if shared.pieces.is_held(&release_token, 0, 1) {
                shared.byte.with(|_| ());
            }
            writer.join().unwrap();
        });
    }));
    assert!(found.is_err());
}
