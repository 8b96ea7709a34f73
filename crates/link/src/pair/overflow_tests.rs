//! A link whose receiver takes nothing, with overflow logs.

use std::cell::Cell;

use hamlyn_engine::memory::Part;
use hamlyn_engine::refusal::Refusal;
use hamlyn_ring::geometry::ARENA_MIN_BYTES;

use super::tests::{Side, logs_at_once, pair_with_logs, rings, send};
use super::*;
use crate::carrier::tests::{bytes, carries_everything, header as header_of, receive};
use crate::{LinkFault, ReceiveEnd, TransmitEnd};

fn pair(cells: u32, payload_max: usize) -> (Side, Side) {
    let geometry = Geometry::new(cells, ARENA_MIN_BYTES).unwrap();
    pair_with_logs(geometry, payload_max, Fence::Heavy, Some(logs_at_once()))
}

#[test]
fn packets_of_every_shape_come_by_the_log() {
    const FILLERS: usize = 3;
    for payload_max in [64, 4096, 64 << 10] {
        let (mut left, mut right) = pair(2, payload_max);
        // Before each packet of a round.
        let (fillers, in_log) = (Cell::new(0), Cell::new(0));
        carries_everything(
            |link: &mut PairLink, header, metadata, parts| {
                for _ in 0..FILLERS {
                    let filler = [Part::Bytes(&[7; 8])];
                    let filler_header = header_of(0, 8);
                    link.transmit
                        .try_send(&filler_header, &[], &filler)
                        .unwrap();
                }
                link.transmit.try_send(header, metadata, parts).unwrap();
                in_log.set(in_log.get() + u32::from(link.transmit.has_spare()));
                fillers.set(FILLERS);
            },
            &mut left.link,
            |_| {
                for _ in 0..fillers.take() {
                    assert!(receive(&mut right.link).unwrap().is_some());
                }
                let packet = receive(&mut right.link).unwrap();
                right.link.receive.return_credit();
                packet
            },
        );
        assert!(in_log.get() > 100, "{}", in_log.get());
    }
}

#[test]
fn what_is_sent_to_one_that_takes_nothing_is_counted_as_sent_and_taken() {
    let (mut left, mut right) = pair(4, 64 << 10);
    let length = |number: usize| [0, 8, 500, 5_000, 60_000][number % 5];
    for number in 0..40 {
        send(&mut left, &[], &bytes(number, length(number))).unwrap();
    }
    assert_eq!(left.link.transmit.sent(), 40);
    assert!(left.link.transmit.has_spare());
    let fence = left.link.transmit.fence().unwrap();
    assert!(!left.link.transmit.is_answered(fence).unwrap());
    // It sleeps until the fence is answered.
    left.link.transmit.await_credit(false, Some(fence));
    for number in 0..40 {
        let packet = receive(&mut right.link).unwrap().expect("it was sent");
        assert_eq!(packet.data, bytes(number, length(number)));
        assert_eq!(right.link.receive.taken(), number as u64 + 1);
    }
    assert_eq!(receive(&mut right.link), Ok(None));
    right.link.receive.return_credit();
    assert!(rings(&mut left) > 0, "the sleeper is rung for");
    assert!(left.link.transmit.is_answered(fence).unwrap());
    assert!(left.link.transmit.is_all_taken());
    left.link.transmit.give_back();
    assert!(!left.link.transmit.has_spare());
}

#[test]
fn a_patient_sender_says_until_when() {
    let patient = LogOptions {
        patience_ns: 3_600_000_000_000,
        ..logs_at_once()
    };
    let geometry = Geometry::new(4, ARENA_MIN_BYTES).unwrap();
    let (mut left, _right) = pair_with_logs(geometry, 4096, Fence::Heavy, Some(patient));
    assert_eq!(left.link.transmit.overflow_due_ns(), None);
    while send(&mut left, &[], &[1; 8]).is_ok() {}
    assert!(left.link.transmit.overflow_due_ns().is_some());
    assert!(!left.link.transmit.credit_came());
    assert!(!left.link.transmit.has_spare());
}

#[test]
fn a_refused_packet_of_the_log_is_reported() {
    let (mut left, mut right) = pair(4, 4096);
    for number in 0..30 {
        send(&mut left, &[], &bytes(number, 100)).unwrap();
    }
    let mut seen = 0;
    while let Some(taken) = right
        .link
        .receive
        .receive_or_refuse(|_, _| Err::<(), _>(Refusal::ALL[0]))
        .unwrap()
    {
        assert!(taken.is_err());
        seen += 1;
    }
    assert_eq!(seen, 30);
    assert_eq!(left.link.transmit.refused().packets, 30);
    assert_eq!(left.link.transmit.fault(), None);
}

/// It ends the link, and what was counted before stays.
#[test]
fn a_peer_that_leads_nowhere_is_found() {
    let (mut left, mut right) = pair(4, 4096);
    send(&mut left, &[], &[1; 8]).unwrap();
    let geometry = Geometry::new(4, ARENA_MIN_BYTES).unwrap();
    let second = geometry.cells_offset() + 64;
    right.receives_in.store_u64(second + 8, 4096).unwrap();
    right.receives_in.store_u64(second, 32 << 56 | 1).unwrap();
    assert!(receive(&mut right.link).unwrap().is_some());
    for _ in 0..2 {
        assert_eq!(receive(&mut right.link), Err(LinkFault::Log));
        assert_eq!(right.link.receive.taken(), 1);
    }
}
