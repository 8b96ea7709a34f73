//! Fences and reports of refusals between two processes: with a peer that keeps the rules, and with
//! one that does not.

use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use proptest::prelude::*;

use super::tests::{Side, pair, rings, send};
use super::*;
use crate::carrier::tests::{header, receive};
use crate::{LinkFault, ReceiveEnd, TransmitEnd};

/// Takes the next packet and refuses it for that reason, or not. Whether there was one.
fn refusal_of(side: &mut Side, refusal: Option<Refusal>) -> bool {
    let received = side
        .link
        .receive
        .receive_or_refuse(|_, _| refusal.map_or(Ok(()), Err));
    received.unwrap().is_some()
}

/// With a number by which the report of a packet is told from others. Whether there was room.
fn send_numbered(side: &mut Side, number: u64) -> bool {
    let header = Header {
        offset: number,
        ..header(0, 1)
    };
    let sent = side
        .link
        .transmit
        .try_send(&header, &[], &[Part::Bytes(&[1])]);
    sent.is_ok()
}

proptest! {
    /// Packets of which some are refused, fences, and looks at reports, in any order: a fence is
    /// answered when all before it was taken, and then every refusal is known; what is not fetched
    /// in time is counted.
    #[test]
    fn a_fence_is_answered_when_all_before_it_was_taken(
        steps in prop::collection::vec((0..4_u8, 0..40_usize), 1..60),
    ) {
        let (mut left, mut right) = pair();
        let (mut sent, mut taken, mut refused, mut fetched) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut fences: Vec<(u64, u64)> = Vec::new();
        for (what, count) in steps {
            match what {
                0 => for _ in 0..count {
                    sent += u64::from(send_numbered(&mut left, sent));
                },
                1 => for _ in 0..count {
                    let refusal = taken.is_multiple_of(3).then_some(Refusal::ALL[taken as usize % 18]);
                    if refusal_of(&mut right, refusal) {
                        taken += 1;
                        refused += u64::from(refusal.is_some());
                    }
                },
                2 => match left.link.transmit.fence() {
                    Ok(fence) => fences.push((fence, sent)),
                    Err(unsent) => prop_assert_eq!(unsent, Unsent::Full),
                },
                _ => {
                    while let Some((header, reason)) = left.link.transmit.next_returned() {
                        prop_assert_eq!(header.offset % 3, 0);
                        prop_assert_eq!(reason, Return::Refused(Refusal::ALL[header.offset as usize % 18]));
                        fetched += 1;
                    }
                    prop_assert_eq!(fetched + left.link.transmit.forgotten(), refused);
                }
            }
            for &(fence, before) in &fences {
                if left.link.transmit.is_answered(fence).unwrap() {
                    prop_assert!(taken >= before, "answered too early");
                    prop_assert!(left.link.transmit.refused().packets >= before.min(taken).div_ceil(3));
                }
            }
        }
        while refusal_of(&mut right, None) {}
        right.link.receive.return_credit();
        let fence = left.link.transmit.fence().unwrap();
        prop_assert!(left.link.transmit.is_answered(fence).unwrap());
        prop_assert!(fences.iter().all(|&(fence, _)| left.link.transmit.is_answered(fence) == Ok(true)));
        prop_assert!(left.link.transmit.is_all_taken());
    }
}

#[test]
fn a_fence_is_asked_once_and_rings_once() {
    let (mut left, mut right) = pair();
    let nothing = left.link.transmit.fence().unwrap();
    assert_eq!(left.link.transmit.is_answered(nothing), Ok(true));
    send(&mut left, &[], &[1]).unwrap();
    right.link.receive.announce_sleep();
    let fence = left.link.transmit.fence().unwrap();
    assert_eq!(rings(&mut right), 1, "the sleeper is to answer");
    let sent = left.link.transmit.sent();
    assert_eq!(left.link.transmit.fence(), Ok(fence));
    assert_eq!(left.link.transmit.sent(), sent, "asked once");
    // Nothing else is there for the peer to see.
    assert!(receive(&mut right.link).unwrap().is_some());
    left.link.transmit.await_credit(false, Some(fence));
    assert!(!left.link.transmit.may_be_answered(fence));
    assert!(right.link.receive.is_pending());
    assert_eq!(receive(&mut right.link), Ok(None));
    assert!(!right.link.receive.is_pending());
    assert_eq!(
        rings(&mut left),
        1,
        "the end that awaits the answer is rung for"
    );
    assert!(left.link.transmit.may_be_answered(fence));
    assert_eq!(left.link.transmit.is_answered(fence), Ok(true));
}

#[test]
fn a_fence_finds_no_room_in_a_full_ring() {
    let (mut left, mut right) = pair();
    while send(&mut left, &[], &[1]).is_ok() {}
    assert_eq!(left.link.transmit.fence(), Err(Unsent::Full));
    let mut taken = 0;
    while refusal_of(&mut right, None) {
        taken += 1;
    }
    right.link.receive.return_credit();
    assert_eq!(taken, Geometry::DEFAULT.cells());
    let fence = left.link.transmit.fence().unwrap();
    assert_eq!(
        left.link.transmit.is_answered(fence),
        Ok(true),
        "all was returned"
    );
}

/// A peer that sends fences for ever would keep its receiver in one call.
#[test]
fn two_fences_in_a_row_end_the_link() {
    let (left, mut right) = pair();
    let word = |number: usize| Geometry::DEFAULT.cells_offset() + number * 64;
    let fence = crate::cell::fence()[0] | 1;
    let peer = &left.sends_to;
    peer.store_u64(word(0), fence).unwrap();
    assert_eq!(receive(&mut right.link), Ok(None));
    peer.store_u64(word(1), fence).unwrap();
    assert_eq!(receive(&mut right.link), Err(LinkFault::Fence));
    // A fence that says more than that is none.
    let (left, mut right) = pair();
    left.sends_to.store_u64(word(0) + 8, 1).unwrap();
    left.sends_to.store_u64(word(0), fence).unwrap();
    assert_eq!(receive(&mut right.link), Err(LinkFault::Placement));
}

/// What a peer says of itself may be a lie; what cannot be ends its link.
#[test]
fn impossible_reports_end_the_link() {
    let refused_at = Geometry::DEFAULT.refused_offset();
    for lie in [3, u64::MAX] {
        let (mut left, right) = pair();
        let (_good, mut other) = pair();
        send(&mut left, &[], &[1]).unwrap();
        send(&mut left, &[], &[1]).unwrap();
        right.receives_in.store_u64(refused_at, 2).unwrap();
        // Nothing was written there: reports of zeros, of which nothing is believed but that they
        // are reports.
        assert_eq!(left.link.transmit.refused().packets, 2);
        assert!(left.link.transmit.next_returned().is_some());
        assert_eq!(left.link.transmit.fault(), None);
        right.receives_in.store_u64(refused_at, lie).unwrap();
        assert_eq!(left.link.transmit.next_returned(), None);
        assert_eq!(left.link.transmit.fault(), Some(LinkFault::Report));
        assert_eq!(send(&mut left, &[], &[1]), Err(Unsent::Gone));
        assert_eq!(left.link.transmit.fence(), Err(Unsent::Gone));
        send(&mut other, &[], &[1]).unwrap();
        drop(right.link);
    }
    // Answers to questions that were not put.
    let (mut left, right) = pair();
    send(&mut left, &[], &[1]).unwrap();
    let fence = left.link.transmit.fence().unwrap();
    let credit_at = Geometry::DEFAULT.consumed_offset();
    right.receives_in.store_u64(credit_at, fence + 1).unwrap();
    assert_eq!(left.link.transmit.is_answered(fence), Err(Unsent::Gone));
    assert_eq!(left.link.transmit.fault(), Some(LinkFault::Credit));
}

/// Reports that change while they are read, counts that go anywhere: no call panics, waits or says
/// more than was sent.
#[test]
fn reports_may_change_at_any_time() {
    for round in 0..40_u64 {
        let (mut left, right) = pair();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (stop, memory) = (&stop, &right.receives_in);
            scope.spawn(move || {
                let at = Geometry::DEFAULT;
                let mut number = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    memory.store_u64(at.refused_offset(), number / 64).unwrap();
                    let word = at.reports_offset() as u64 + number % 256 * 8;
                    memory
                        .store_u64(word as usize, number.wrapping_mul(round | 1))
                        .unwrap();
                }
            });
            for sent in 1..=200 {
                if send(&mut left, &[], &[1]).is_err() {
                    break;
                }
                assert!(left.link.transmit.refused().packets <= sent);
                left.link.transmit.next_returned();
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
