//! Handlers that run while the program computes, and never in its sections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::{Strategy, Wait};
use hamlyn_udm::{Error, Group, GroupOptions, Udm, UdmOptions};

const LONG: Wait = Wait::millis(60_000);
const COUNT: u16 = 0;
/// More than a look takes of a node's data at a time.
const AREA_BYTES: usize = 8 << 20;
type Node<S> = Udm<S, ProcessHost<AnyThread>>;

/// A node of a group whose interface threads share.
fn open<S: Send + 'static>(
    test: &str,
    nodes: u32,
    me: u32,
    strategy: Strategy,
    state: S,
) -> Node<S> {
    let id = std::process::id();
    let name = |node: u32| format!("upcalls-{id}-{test}-{strategy:?}-{node}");
    let options = hamlyn::ManagerOptions {
        strategy,
        ..Default::default()
    };
    let manager = hamlyn::open_shared(Options::named(&name(me)), options).unwrap();
    let options = GroupOptions {
        name: test.into(),
        me,
        addresses: (0..nodes).map(name).collect(),
    };
    let group = Group::new(manager, options).unwrap();
    let options = UdmOptions {
        area_bytes: AREA_BYTES,
        ..UdmOptions::default()
    };
    Udm::open(&group, "main", options, state, LONG).unwrap()
}

const STRATEGIES: [Strategy; 4] = [
    Strategy::Proc,
    Strategy::Np,
    Strategy::Inject,
    Strategy::Receive,
];

/// A program that computes, and makes no call, is interrupted: it sees what handlers do.
#[test]
fn a_program_that_computes_is_interrupted() {
    for strategy in STRATEGIES {
        let seen = Arc::new(AtomicU32::new(0));
        std::thread::scope(|scope| {
            let its = Arc::clone(&seen);
            scope.spawn(move || {
                let mut udm = open("computes", 2, 0, strategy, its);
                udm.on(COUNT, |arrival| {
                    let mut call = arrival.extract();
                    let (source, number) = (call.source(), call.word(0));
                    call.state().fetch_add(1, Ordering::Relaxed);
                    call.inject(source, COUNT, &[number]).unwrap();
                    call
                })
                .unwrap();
                udm.barrier(LONG).unwrap();
                let seen = Arc::clone(udm.state());
                let upcalls = udm.with_upcalls().unwrap();
                // It makes no call until all have been handled.
                while seen.load(Ordering::Relaxed) < 100 {
                    std::hint::spin_loop();
                }
                let mut section = upcalls.atomic().unwrap();
                // The first ones may have come while it was in the barrier.
                assert!(section.statistics().upcalls >= 50);
                section.barrier(LONG).unwrap();
                assert!(section.flush(LONG).unwrap());
                section.end().unwrap();
            });
            let mut udm = open("computes", 2, 1, strategy, 0_u32);
            udm.on(COUNT, |arrival| {
                let mut call = arrival.extract();
                *call.state() += 1;
                call
            })
            .unwrap();
            udm.barrier(LONG).unwrap();
            // One after the other, so that its thread sleeps in between.
            for number in 0..100 {
                udm.inject(0, COUNT, &[number]).unwrap();
                while *udm.state() <= number {
                    udm.serve(LONG).unwrap();
                }
            }
            udm.barrier(LONG).unwrap();
            assert!(udm.flush(LONG).unwrap());
        });
        assert_eq!(seen.load(Ordering::Relaxed), 100);
    }
}

/// Data that come in many messages interrupt the program as one does, also those that a section
/// took out of the network.
#[test]
fn data_interrupt_a_program_that_computes() {
    for strategy in STRATEGIES {
        let seen = Arc::new(AtomicU32::new(0));
        std::thread::scope(|scope| {
            let its = Arc::clone(&seen);
            scope.spawn(move || {
                let mut udm = open("data", 2, 0, strategy, its);
                udm.on(COUNT, |arrival| {
                    let mut call = arrival.extract();
                    let number = call.word(0);
                    let (data, seen) = call.data();
                    assert!(data.iter().all(|byte| *byte == number as u8));
                    assert_eq!(data.len(), AREA_BYTES);
                    seen.fetch_add(1, Ordering::Relaxed);
                    call
                })
                .unwrap();
                udm.barrier(LONG).unwrap();
                let seen = Arc::clone(udm.state());
                let upcalls = udm.with_upcalls().unwrap();
                for number in 0..6 {
                    let mut section = upcalls.atomic().unwrap();
                    section.inject(1, COUNT, &[number]).unwrap();
                    // Some of the data may be taken here, and their handler does not run.
                    section.is_available().unwrap();
                    section.end().unwrap();
                    while seen.load(Ordering::Relaxed) <= number {
                        std::hint::spin_loop();
                    }
                }
                let mut section = upcalls.atomic().unwrap();
                section.barrier(LONG).unwrap();
                assert!(section.flush(LONG).unwrap());
                section.end().unwrap();
            });
            let mut udm = open("data", 2, 1, strategy, Vec::new());
            udm.on(COUNT, |arrival| {
                let mut call = arrival.extract();
                let number = call.word(0);
                call.state().push(number);
                call
            })
            .unwrap();
            udm.barrier(LONG).unwrap();
            for number in 0..6 {
                while udm.state().len() <= number {
                    udm.serve(LONG).unwrap();
                }
                let data = vec![number as u8; AREA_BYTES];
                udm.inject_bulk(0, COUNT, &[number as u32], &data, 0)
                    .unwrap();
            }
            udm.barrier(LONG).unwrap();
            assert!(udm.flush(LONG).unwrap());
        });
        assert_eq!(seen.load(Ordering::Relaxed), 6);
    }
}

/// No section sees what a handler has changed in part, and no handler what a section has.
#[test]
fn no_handler_runs_in_a_section() {
    const MESSAGES: u64 = 30_000;
    for strategy in STRATEGIES {
        let handled = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            let its = Arc::clone(&handled);
            scope.spawn(move || {
                let mut udm = open("sections", 2, 0, strategy, (0_u64, 0_u64, its));
                udm.on(COUNT, |arrival| {
                    let mut call = arrival.extract();
                    let (first, second, handled) = call.state();
                    assert_eq!(first, second);
                    *first += 1;
                    std::hint::black_box(&first);
                    *second += 1;
                    handled.fetch_add(1, Ordering::Relaxed);
                    call
                })
                .unwrap();
                let handled = Arc::clone(&udm.state().2);
                udm.barrier(LONG).unwrap();
                let upcalls = udm.with_upcalls().unwrap();
                let mut sections = 0;
                while handled.load(Ordering::Relaxed) < MESSAGES {
                    let mut section = upcalls.atomic().unwrap();
                    let before = handled.load(Ordering::Relaxed);
                    let (first, second, _) = section.state_mut();
                    assert_eq!(first, second);
                    *first += 1;
                    std::hint::black_box(&first);
                    *second += 1;
                    assert_eq!(handled.load(Ordering::Relaxed), before);
                    section.end().unwrap();
                    sections += 1;
                }
                let mut section = upcalls.atomic().unwrap();
                assert_eq!(section.state().0, MESSAGES + sections);
                section.barrier(LONG).unwrap();
                assert!(section.flush(LONG).unwrap());
            });
            let mut udm = open("sections", 2, 1, strategy, ());
            udm.barrier(LONG).unwrap();
            for _ in 0..MESSAGES {
                udm.inject(0, COUNT, &[]).unwrap();
            }
            udm.barrier(LONG).unwrap();
            assert!(udm.flush(LONG).unwrap());
        });
    }
}

/// A handler that panics in its thread ends the end point, by name, and not the program.
#[test]
fn a_handler_that_panics_is_an_error() {
    let goes = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut udm = open("panics", 2, 1, Strategy::Proc, ());
            udm.barrier(LONG).unwrap();
            while goes.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            udm.inject(0, COUNT, &[]).unwrap();
            while udm.lost(0).is_none() {
                udm.serve(LONG).unwrap();
            }
        });
        let has_run = Arc::new(AtomicU32::new(0));
        let mut udm = open("panics", 2, 0, Strategy::Proc, Arc::clone(&has_run));
        udm.on(COUNT, |arrival| {
            arrival.extract().state().store(1, Ordering::Relaxed);
            std::panic::panic_any("a handler of a test")
        })
        .unwrap();
        let upcalls = udm.with_upcalls().unwrap();
        let mut section = upcalls.atomic().unwrap();
        section.barrier(LONG).unwrap();
        section.end().unwrap();
        // No section runs the handler: the thread does.
        goes.store(1, Ordering::Relaxed);
        while has_run.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(upcalls.atomic().err(), Some(Error::HandlerPanicked));
    });
}

#[test]
fn the_thread_ends_with_its_end_point() {
    for _ in 0..20 {
        let upcalls = open("ends", 1, 0, Strategy::Proc, 0_u32)
            .with_upcalls()
            .unwrap();
        drop(upcalls);
    }
    let upcalls = open("ends", 1, 0, Strategy::Proc, 0_u32)
        .with_upcalls()
        .unwrap();
    assert_eq!(upcalls.atomic().unwrap().poll(1), Ok(0));
}

/// A message that was taken out of the network before is not told again: the thread looks for it
/// first.
#[test]
fn a_message_that_was_there_before_is_handled() {
    for strategy in STRATEGIES {
        let seen = Arc::new(AtomicU32::new(0));
        let mut udm = open("before", 1, 0, strategy, Arc::clone(&seen));
        udm.on(COUNT, |arrival| {
            let mut call = arrival.extract();
            call.state().fetch_add(1, Ordering::Relaxed);
            call
        })
        .unwrap();
        udm.inject(0, COUNT, &[]).unwrap();
        assert!(udm.await_message(LONG).unwrap());
        let _upcalls = udm.with_upcalls().unwrap();
        while seen.load(Ordering::Relaxed) == 0 {
            std::hint::spin_loop();
        }
    }
}
