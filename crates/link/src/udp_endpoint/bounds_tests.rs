//! What a link keeps is bounded, what happens to it is told, and a silent peer has its time.

use std::net::UdpSocket;

use hamlyn_engine::memory::Part;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::CloseReason;

use super::connection::POOL_BYTES;
use super::tests::{TIMEOUT_NS, clock, endpoints, link, until};
use super::*;
use crate::carrier::tests::header;
use crate::udp::packet_header::{Kind, PacketHeader};
use crate::{Link as _, ReceiveEnd as _, TransmitEnd as _};

/// When other links queue all that there is, a link may queue no more than its least share; for the
/// rest its peer is told that there is no room, and sends it again.
#[test]
fn a_link_queues_no_more_than_its_share() {
    let endpoints = endpoints();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
    let queued_bytes = &endpoints[1].queued_bytes;
    queued_bytes.store(POOL_BYTES, Ordering::Relaxed);
    let length = transmit.payload_max_bytes();
    let data = vec![1; length];
    let (sent, mut offered) = (60, 0);
    let mut offer = |transmit: &mut UdpTransmit| {
        while offered < sent
            && transmit
                .try_send(&header(0, length), &[], &[Part::Bytes(&data)])
                .is_ok()
        {
            offered += 1;
        }
    };
    let not_ready = |transmit: &UdpTransmit| {
        let state = transmit.connection_state().unwrap();
        state.transport.receiver_not_ready
    };
    until(&endpoints, || {
        offer(&mut transmit);
        not_ready(&transmit) > 0
    });
    // One frame may be begun while a byte is left, and one call brings several.
    let queued = queued_bytes.load(Ordering::Relaxed) - POOL_BYTES;
    assert!(
        queued >= 64 << 10 && queued < (64 << 10) + 2 * length,
        "{queued}"
    );
    // What is taken makes room again.
    queued_bytes.fetch_sub(POOL_BYTES, Ordering::Relaxed);
    let mut taken = 0;
    until(&endpoints, || {
        offer(&mut transmit);
        taken += usize::from(receive.receive(|_, _| ()).unwrap().is_some());
        taken == sent
    });
    assert_eq!(queued_bytes.load(Ordering::Relaxed), 0);
}

/// Frames that came are received in the order in which they came; those that nobody takes any more
/// count no longer.
#[test]
fn what_waits_is_taken_in_order_or_given_up() {
    let endpoints = endpoints();
    let [(mut transmit, held), (_, mut receive)] = link(&endpoints).map(UdpLink::split);
    for length in 1..=3 {
        let data = vec![1; length];
        let sent = transmit.try_send(&header(0, length), &[], &[Part::Bytes(&data)]);
        assert_eq!(sent, Ok(()));
        // Each by a call of its own.
        let queued = endpoints[1].queued_bytes.load(Ordering::Relaxed);
        until(&endpoints, || {
            endpoints[1].queued_bytes.load(Ordering::Relaxed) > queued
        });
    }
    let first = receive.receive(|header, _| header.length_bytes).unwrap();
    assert_eq!(first, Some(1));
    drop(receive);
    assert_eq!(endpoints[1].queued_bytes.load(Ordering::Relaxed), 0);
    until(&endpoints, || held.connection().end().is_some());
}

/// A thread that polls for another is told of what comes back, and of an answered fence.
#[test]
fn what_comes_back_and_answers_to_fences_are_told() {
    for is_refused in [true, false] {
        let endpoints = endpoints();
        let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
        let sent = transmit.try_send(&header(0, 5), &[], &[Part::Bytes(b"hello")]);
        assert_eq!(sent, Ok(()));
        let fence = (!is_refused).then(|| transmit.fence().unwrap());
        let is_answered =
            |transmit: &mut UdpTransmit| fence.map(|fence| transmit.is_answered(fence));
        assert!(matches!(is_answered(&mut transmit), None | Some(Ok(false))));
        let begun_ns = clock();
        while !endpoints[0].poll() {
            assert!(clock() - begun_ns < TIMEOUT_NS, "it is not told");
            endpoints[1].poll();
            let received = receive.receive_or_refuse(|_, _| match is_refused {
                true => Err(Refusal::BadKey),
                false => Ok(()),
            });
            received.unwrap();
            receive.return_credit();
        }
        assert_eq!(transmit.next_returned().is_some(), is_refused);
        assert!(matches!(is_answered(&mut transmit), None | Some(Ok(true))));
    }
}

/// Reports that nobody listens end a link only if its peer has said nothing for long; what it says
/// makes them void.
#[test]
fn reports_end_the_link_of_a_silent_peer_alone() {
    /// More than the reports that are believed.
    const FRAMES: usize = 12;
    let endpoints = endpoints();
    let [(mut transmit, ours), (_kept, mut theirs)] = link(&endpoints).map(UdpLink::split);
    let connection = Arc::clone(ours.connection());
    let report = || (0..FRAMES).for_each(|_| connection.note_unreachable());
    let length = transmit.payload_max_bytes();
    let data = vec![1; length];
    let send = |transmit: &mut UdpTransmit| {
        for _ in 0..FRAMES {
            transmit
                .try_send(&header(0, length), &[], &[Part::Bytes(&data)])
                .unwrap();
        }
        transmit.hand_over();
        report();
    };
    // More frames under way than reports are believed at once.
    send(&mut transmit);
    connection.run_timers(&endpoints[0], connection.received_ns() + 200_000_000);
    assert_eq!(connection.end(), None);
    // They were of before.
    let mut taken = 0;
    let heard_ns = connection.received_ns();
    until(&endpoints, || {
        taken += usize::from(theirs.receive(|_, _| ()).unwrap().is_some());
        theirs.return_credit();
        taken == FRAMES && connection.received_ns() > heard_ns
    });
    until(&endpoints, || transmit.is_all_taken());
    connection.run_timers(&endpoints[0], connection.received_ns() + 400_000_000);
    assert_eq!(connection.end(), None);
    report();
    connection.run_timers(&endpoints[0], connection.received_ns() + 400_000_000);
    assert_eq!(
        connection.end(),
        None,
        "no datagram was sent that they could be of"
    );
    send(&mut transmit);
    connection.run_timers(&endpoints[0], connection.received_ns() + 400_000_000);
    assert_eq!(connection.end(), Some(CloseReason::PeerDead));
}

/// A peer decides when its link wants to be looked after; the others are not looked at for that.
#[test]
fn a_deadline_that_has_come_costs_no_look_at_other_links() {
    const LINKS: u64 = 64;
    const POLLS: u64 = 100;
    let endpoints = endpoints();
    let links: Vec<_> = (0..LINKS).map(|_| link(&endpoints)).collect();
    let looks = || {
        let connections = links.iter().map(|[link, _]| link.connection());
        let looks = connections.map(|connection| connection.looks.load(Ordering::Relaxed));
        looks.sum::<u64>()
    };
    let before = looks();
    for _ in 0..POLLS {
        links[0][0].connection().set_deadline(0);
        endpoints[0].request_wakeup(0);
        endpoints[0].poll();
    }
    let looks = looks() - before;
    // One for each poll, and what the others want by themselves.
    assert!((POLLS..POLLS + 4 * LINKS).contains(&looks), "{looks}");
}

/// Whoever knows the number of a handshake and floods it does not take the place of the answer of
/// the host that is asked.
#[test]
fn a_flood_from_elsewhere_takes_no_place_of_an_answer() {
    const NUMBER: u32 = 7;
    let endpoints = endpoints();
    let [asked, elsewhere] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let to = asked.local_addr().unwrap();
    let answers = endpoints[0].handshakes().begin(to, NUMBER);
    let message = |word: u8| {
        let packet_header = PacketHeader {
            kind: Kind::Payload,
            length_bytes: 100,
            phase: false,
            path: 0,
            association: NUMBER,
            packet_number: 0,
        };
        let mut message = packet_header.bytes().to_vec();
        message.resize(100, word);
        message
    };
    let local = endpoints[0].local();
    for _ in 0..100 {
        elsewhere.send_to(&message(1), local).unwrap();
        endpoints[0].poll();
    }
    asked.send_to(&message(2), local).unwrap();
    // Before anybody takes what waits.
    (0..100).for_each(|_| _ = endpoints[0].poll());
    let mut came = Vec::new();
    until(&endpoints, || {
        came.extend(answers.try_iter().flatten().map(|bytes| bytes[99]));
        came.contains(&2)
    });
    assert!(came.len() > 1, "a host may answer from another address");
}
