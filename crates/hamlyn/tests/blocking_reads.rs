//! Reads that a program waits for (decision 37): of every length, after one that was given up, and
//! of one interface beside another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use hamlyn::engine::slot::Rights;
use hamlyn::host::process::ProcessHost;
use hamlyn::one_sided::{Atomic, Change, Initiator, InitiatorOptions, OperationError, Width};
use hamlyn::{Area, Manager, NewSlot, Slot, Ticket, Wait};

const AREA_BYTES: u64 = 1 << 20;
const WAIT: Wait = Wait::millis(10_000);

/// Memory that says at each byte where it is.
fn shared(manager: &Manager<ProcessHost>) -> (Area, Slot) {
    let area = manager.session().allocate(AREA_BYTES).unwrap();
    let bytes: Vec<u8> = (0..AREA_BYTES).map(byte_at).collect();
    area.write_at(0, &bytes).unwrap();
    let slot = manager
        .session()
        .open_slot(NewSlot::new(&area).rights(Rights::ALL))
        .unwrap();
    (area, slot)
}

fn byte_at(place: u64) -> u8 {
    (place.wrapping_mul(0x9E37_79B9) >> 13) as u8
}

fn initiator(manager: &Manager<ProcessHost>, ticket: &Ticket) -> Initiator {
    let mut interface = manager.session();
    let target = interface.target(ticket, WAIT).unwrap();
    interface
        .open_initiator(target, InitiatorOptions::default())
        .unwrap()
}

fn read_and_check(
    manager: &Manager<ProcessHost>,
    initiator: &mut Initiator,
    at: u64,
    length: usize,
) {
    let mut found = vec![0xA5; length];
    manager
        .session()
        .read(initiator, at, &mut found, WAIT)
        .unwrap();
    let expected: Vec<u8> = (at..at + length as u64).map(byte_at).collect();
    assert!(found == expected, "{length} bytes at {at}");
}

/// A target with a thread of its own, which serves while it is told to.
struct Serving {
    ticket: Ticket,
    order: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

const IDLE: u32 = 0;
const SERVES: u32 = 1;
const ENDS: u32 = 2;

impl Serving {
    fn start() -> Self {
        let order = Arc::new(AtomicU32::new(IDLE));
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let order = Arc::clone(&order);
            move || {
                let target = hamlyn::open_unnamed().unwrap();
                let (_area, slot) = shared(&target);
                tell.send(slot.fast_ticket(0, AREA_BYTES).unwrap()).unwrap();
                loop {
                    match order.load(Ordering::Relaxed) {
                        SERVES => drop(target.session().poll()),
                        ENDS => return,
                        _ => std::thread::yield_now(),
                    }
                }
            }
        });
        Self {
            ticket: told.recv().unwrap(),
            order,
            thread: Some(thread),
        }
    }

    fn now(&self, order: u32) {
        self.order.store(order, Ordering::Relaxed);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.now(ENDS);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

#[test]
fn reads_of_every_length_bring_what_is_there() {
    let target = Serving::start();
    let asks = hamlyn::open_unnamed().unwrap();
    let mut packets = initiator(&asks, &target.ticket);
    target.now(SERVES);
    for length in (0..130).chain([255, 4_096, 65_535, 65_536, 65_537, 200_000]) {
        for at in [0, 1, 8, 4_090, AREA_BYTES - length as u64] {
            read_and_check(&asks, &mut packets, at, length);
        }
    }
    let outside = asks
        .session()
        .read(&mut packets, AREA_BYTES - 3, &mut [0; 4], WAIT);
    assert!(matches!(outside, Err(OperationError::OutsideTicket(_))));
}

#[test]
fn what_a_read_that_was_given_up_brings_spoils_no_later_one() {
    let target = Serving::start();
    let asks = hamlyn::open_unnamed().unwrap();
    let mut packets = initiator(&asks, &target.ticket);
    let mut lost = vec![0; 100_000];
    let given_up = asks.session().read(&mut packets, 0, &mut lost, Wait::Poll);
    assert_eq!(given_up, Err(OperationError::TimedOut));
    // While nothing of it has come, no other is begun.
    let next = asks
        .session()
        .read(&mut packets, 500_000, &mut lost, Wait::Poll);
    assert_eq!(next, Err(OperationError::TimedOut));
    target.now(SERVES);
    for at in [500_000, 700_000] {
        read_and_check(&asks, &mut packets, at, 100_000);
    }
}

#[test]
fn one_who_reads_without_a_pause_keeps_nobody_else_waiting() {
    let target = hamlyn::open_unnamed().unwrap();
    let (_area, slot) = shared(&target);
    let [busy, other] = [(); 2].map(|()| hamlyn::open_unnamed().unwrap());
    let ticket = slot.fast_ticket(0, AREA_BYTES).unwrap();
    let [mut of_busy, mut of_other] = [&busy, &other].map(|asks| initiator(asks, &ticket));
    // So that what the busy one asks for goes the fastest way.
    for _ in 0..300 {
        let begun = busy.session().begin_read_word(&mut of_busy, 8, Wait::Poll);
        while target.session().poll() == 0 {}
        let begun = begun.unwrap();
        busy.session()
            .finish_word(&mut of_busy, begun, WAIT)
            .unwrap();
    }
    for _ in 0..20 {
        let waits = other
            .session()
            .begin_atomic(&mut of_other, 16, add(1), Wait::Poll);
        let waits = waits.unwrap();
        let mut rounds = 0;
        loop {
            let begun = busy.session().begin_read_word(&mut of_busy, 8, Wait::Poll);
            target.session().poll();
            let begun = begun.unwrap();
            busy.session()
                .finish_word(&mut of_busy, begun, WAIT)
                .unwrap();
            rounds += 1;
            let finished = other.session().finish(&mut of_other, waits, Wait::Poll);
            match finished {
                Ok(()) => break,
                Err(OperationError::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
            // Two turns of a link, and a poll.
            assert!(rounds <= 65, "the other one waits for ever");
        }
    }
}

fn add(operand: u64) -> Atomic {
    Atomic::new(Change::Add, Width::Bits64, operand)
}
