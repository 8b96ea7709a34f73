//! Two wires of one process, with a link between them.

use std::net::Ipv4Addr;
use std::time::Instant;

use hamlyn_engine::memory::{Part, Payload as _, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Association, CloseReason, Return, Settings};
use hamlyn_ring::area::Area;
use hamlyn_ring::ready_bitmap::{READY_BITMAP_BYTES, ReadyBits};
use hamlyn_ring::shared::Mapping;

use super::handshakes::PASSED_ON_MAX;
use super::*;
use crate::carrier::tests::header;
use crate::udp::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use crate::udp::protection::{Key, RxProtection, TxProtection};
use crate::{Link as _, ReceiveEnd as _, TransmitEnd as _};

const FRAME_BYTES: usize = 8_900;
/// What must happen happens far sooner.
pub(super) const TIMEOUT_NS: u64 = 20_000_000_000;

pub(super) fn clock() -> u64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

pub(super) fn endpoints() -> [Arc<UdpEndpoint>; 2] {
    endpoints_at(clock)
}

fn endpoints_at(clock: fn() -> u64) -> [Arc<UdpEndpoint>; 2] {
    [0; 2].map(|_| {
        let at = (Ipv4Addr::LOCALHOST, 0).into();
        let endpoint = UdpEndpoint::open(at, &SocketSettings::default(), clock, Box::new(|| {}));
        Arc::new(endpoint.unwrap())
    })
}

/// In the clear.
pub(super) fn link(endpoints: &[Arc<UdpEndpoint>; 2]) -> [UdpLink; 2] {
    let numbers = reserved(endpoints);
    let links = [0, 1].map(|at| end_of_link(endpoints, at, numbers));
    // As soon as a probe has come through.
    until(endpoints, || {
        let state = |link: &UdpLink| link.connection().state().unwrap();
        links
            .iter()
            .all(|link| state(link).frame_bytes == FRAME_BYTES)
    });
    links
}

fn reserved(endpoints: &[Arc<UdpEndpoint>; 2]) -> [u32; 2] {
    [0, 1].map(|at| endpoints[at].reserve(0x5000_0000).unwrap())
}

/// One end of a link with these numbers.
fn end_of_link(endpoints: &[Arc<UdpEndpoint>; 2], at: usize, numbers: [u32; 2]) -> UdpLink {
    let socket = endpoints[at].socket_to(endpoints[1 - at].local(), &SocketSettings::default());
    let socket = socket.unwrap().expect("its own address");
    let settings = Settings {
        frame_bytes: FRAME_BYTES,
        ..Settings::default()
    };
    let parts = ConnectionConfig {
        association: Association::new(settings).unwrap(),
        tx_protection: TxProtection::new(&Key::Clear(7), numbers[1 - at]),
        rx_protection: RxProtection::new(&Key::Clear(7), numbers[at]),
        tap: None,
        sockets: vec![socket],
    };
    endpoints[at].link(numbers[at], parts)
}

/// Looks at both, until it is so.
pub(super) fn until(endpoints: &[Arc<UdpEndpoint>; 2], mut is_so: impl FnMut() -> bool) {
    let begun_ns = clock();
    while !is_so() {
        assert!(clock() - begun_ns < TIMEOUT_NS, "it did not come");
        endpoints.iter().for_each(|endpoint| {
            endpoint.poll();
        });
    }
}

/// In the clear, contents are the first thing that a run could be taken apart by.
#[test]
fn contents_that_look_like_envelopes_arrive() {
    let endpoints = endpoints();
    let [one, other] = link(&endpoints).map(UdpLink::split);
    let ((mut transmit, _held), (_kept, mut receive)) = (one, other);
    let length = transmit.payload_max_bytes();
    let area = Area::new(length as u64).unwrap();
    // The first says of itself at every place that it is version 1 and has 0x1010 bytes.
    for byte in [0x10, 0, 0x11, 0x20] {
        let data = vec![byte; length];
        let sent = 40;
        let (mut offered, mut came) = (0, 0);
        until(&endpoints, || {
            while offered < sent {
                match transmit.try_send(&header(0, length), &[], &[Part::Bytes(&data)]) {
                    Ok(()) => offered += 1,
                    Err(Unsent::Full) => break,
                    Err(gone) => panic!("{gone:?} after {came}"),
                }
            }
            let taken = receive.receive(|_, payload| payload.deposit(&area, 0).unwrap());
            if taken.unwrap().is_some() {
                came += 1;
                let mut bytes = vec![0; length];
                area.read_at(0, &mut bytes).unwrap();
                assert!(bytes == data);
            }
            assert_eq!(receive.connection().end(), None, "after {came}");
            came == sent
        });
    }
}

/// A thread that polls for another, as the control thread does, is told of room: the other sleeps
/// and waits for it.
#[test]
fn room_that_somebody_finds_is_told() {
    let endpoints = endpoints();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
    let length = transmit.payload_max_bytes();
    let data = vec![1; length];
    let send = |transmit: &mut UdpTransmit| {
        transmit.try_send(&header(0, length), &[], &[Part::Bytes(&data)])
    };
    while send(&mut transmit).is_ok() {}
    let begun_ns = clock();
    while !transmit.credit_came() {
        assert!(clock() - begun_ns < TIMEOUT_NS, "there is no room again");
        endpoints[1].poll();
        while receive.receive(|_, _| ()).unwrap().is_some() {}
        let is_told = endpoints[0].poll();
        assert_eq!(is_told, transmit.credit_came());
    }
    assert!(!endpoints[0].poll(), "it is told once");
}

/// The receiving half of a link polls while another thread sleeps at the socket: the datagram that
/// brings the room for which that one waits is gone then, so the host is called.
#[test]
fn room_that_a_receiving_half_finds_is_told() {
    let at = || (Ipv4Addr::LOCALHOST, 0).into();
    let calls = Arc::new(AtomicU64::new(0));
    let called = Arc::clone(&calls);
    let notify = Box::new(move || {
        called.fetch_add(1, Ordering::Relaxed);
    });
    let open = |notify| UdpEndpoint::open(at(), &SocketSettings::default(), clock, notify).unwrap();
    let endpoints = [Arc::new(open(notify)), Arc::new(open(Box::new(|| {})))];
    let [(mut transmit, own), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
    let length = transmit.payload_max_bytes();
    let data = vec![1; length];
    while transmit
        .try_send(&header(0, length), &[], &[Part::Bytes(&data)])
        .is_ok()
    {}
    endpoints[0].listen();
    endpoints[0].note_asleep(true);
    let before = calls.load(Ordering::Relaxed);
    let begun_ns = clock();
    while !transmit.credit_came() {
        assert!(clock() - begun_ns < TIMEOUT_NS, "there is no room again");
        endpoints[1].poll();
        while receive.receive(|_, _| ()).unwrap().is_some() {}
        own.is_pending();
    }
    assert!(calls.load(Ordering::Relaxed) > before, "the host is called");
    assert!(endpoints[0].take_untold(), "the sleeper is to be told");
    assert!(!endpoints[0].take_untold(), "once");
}

/// Of many links most are polled seldom. What comes for one of them sets its bit in the interface's
/// ready bitmap.
#[test]
fn what_comes_for_a_link_that_is_polled_seldom_is_announced() {
    let endpoints = endpoints();
    let page = Mapping::anonymous(READY_BITMAP_BYTES).unwrap();
    let (bits, mut bitmap) = ReadyBits::new(Arc::new(page)).unwrap();
    endpoints[1].mark_ready(bits);
    let mut ready = move || {
        let mut ready = Vec::new();
        bitmap.take(u32::MAX, |bit| ready.push(bit));
        ready
    };
    let [(mut first, _a), (_b, mut polling)] = link(&endpoints).map(UdpLink::split);
    let [(mut second, _c), (_d, mut seldom)] = link(&endpoints).map(UdpLink::split);
    assert_ne!(polling.ready_bit(), seldom.ready_bit());
    let send = |transmit: &mut UdpTransmit| {
        let sent = transmit.try_send(&header(0, 4), &[], &[Part::Bytes(&[1; 4])]);
        sent.unwrap();
        transmit.hand_over();
    };
    // One of them polls for both, and neither is announced before its interface asks for that.
    send(&mut first);
    send(&mut second);
    until(&endpoints, || polling.is_pending() && seldom.is_pending());
    assert_eq!(ready(), []);
    // Where something waits already, nothing would announce it.
    assert!(!seldom.enable_events());
    while seldom.receive(|_, _| ()).unwrap().is_some() {}
    while polling.receive(|_, _| ()).unwrap().is_some() {}
    assert!(!polling.enable_events(), "this one polls for all");
    assert!(seldom.enable_events());
    assert_eq!(ready(), []);
    send(&mut first);
    send(&mut second);
    until(&endpoints, || polling.is_pending() && seldom.is_pending());
    assert_eq!(ready(), [seldom.ready_bit()]);
    // Polled often again.
    seldom.suppress_events();
    while seldom.receive(|_, _| ()).unwrap().is_some() {}
    send(&mut second);
    until(&endpoints, || seldom.is_pending());
    assert_eq!(ready(), []);
}

/// When the link that polls for all ends, one that was polled seldom may have to take its place,
/// and says that it must be polled.
#[test]
fn a_link_that_begins_to_poll_for_all_is_announced() {
    let endpoints = endpoints();
    let page = Mapping::anonymous(READY_BITMAP_BYTES).unwrap();
    let (bits, mut bitmap) = ReadyBits::new(Arc::new(page)).unwrap();
    endpoints[1].mark_ready(bits);
    let [first, polling] = link(&endpoints).map(UdpLink::split);
    let [_second, (_kept, mut seldom)] = link(&endpoints).map(UdpLink::split);
    assert!(seldom.enable_events());
    assert!(!seldom.is_pending());
    drop((first, polling));
    let mut ready = Vec::new();
    until(&endpoints, || {
        bitmap.take(1, |bit| ready.push(bit));
        !ready.is_empty()
    });
    assert_eq!(ready, [seldom.ready_bit()]);
    assert!(seldom.is_pending(), "it must be polled");
    seldom.suppress_events();
    assert!(!seldom.is_pending(), "there is nothing else");
    assert!(!seldom.enable_events());
}

/// Whoever polls the other links goes on to do so for all, without anybody's call of the endpoint.
#[test]
fn the_end_of_the_link_that_polls_for_all_leaves_that_to_another() {
    let endpoints = endpoints();
    let [_first, (_transmit, polling)] = link(&endpoints).map(UdpLink::split);
    let [_second, (_kept, mut other)] = link(&endpoints).map(UdpLink::split);
    let polls_by = |link: &mut UdpReceive| {
        let before = endpoints[1].polls();
        link.is_pending();
        endpoints[1].polls() - before
    };
    assert_eq!(polls_by(&mut other), 0, "the first one polls for all");
    drop(polling);
    assert_eq!(polls_by(&mut other), 1);
}

/// A side that closes says so, even if only acknowledgements were left to send.
#[test]
fn an_end_that_leaves_says_so() {
    for is_refused in [false, true] {
        let endpoints = endpoints();
        let [(mut transmit, held), (_, mut receive)] = link(&endpoints).map(UdpLink::split);
        let data = [1; 100];
        transmit
            .try_send(&header(0, 100), &[], &[Part::Bytes(&data)])
            .unwrap();
        until(&endpoints, || {
            let received = receive.receive_or_refuse(|_, _| match is_refused {
                true => Err(Refusal::BadKey),
                false => Ok(()),
            });
            received.unwrap().is_some()
        });
        drop(receive);
        let connection = Arc::clone(held.connection());
        until(&endpoints, || {
            connection.end() == Some(CloseReason::ClosedByPeer)
        });
        drop(held);
        let until_ns = clock() + TIMEOUT_NS;
        for endpoint in &endpoints {
            endpoint.drain(until_ns);
            assert!(!endpoint.has_links());
        }
    }
}

/// A side that closes says so again to whatever comes: the first word of it may be lost, or come
/// before the other side has its end of the link, as here.
#[test]
fn an_end_that_left_says_so_again() {
    let endpoints = endpoints();
    let numbers = reserved(&endpoints);
    drop(end_of_link(&endpoints, 1, numbers));
    until(&endpoints, || !endpoints[1].has_links());
    // The other side hears it and knows nothing of it; this one forgets it as soon as it may.
    for endpoint in endpoints.iter().cycle().take(8) {
        endpoint.poll();
    }
    let (mut transmit, held) = end_of_link(&endpoints, 0, numbers).split();
    let sent = transmit.try_send(&header(0, 4), &[], &[Part::Bytes(&[1; 4])]);
    sent.unwrap();
    transmit.hand_over();
    let connection = Arc::clone(held.connection());
    until(&endpoints, || connection.end().is_some());
    assert_eq!(connection.end(), Some(CloseReason::ClosedByPeer));
}

/// Links that ended are remembered for a while, and not more than some of them.
#[test]
fn few_ends_that_left_are_remembered() {
    static AHEAD_NS: AtomicU64 = AtomicU64::new(0);
    let endpoints = endpoints_at(|| clock() + AHEAD_NS.load(Ordering::Relaxed));
    let left = &endpoints[1];
    let remembered = || lock(&left.connections).table.iter().flatten().count();
    for _ in 0..2 {
        for _ in 0..2 * LINGERING_MAX {
            drop(end_of_link(&endpoints, 1, reserved(&endpoints)));
            until(&endpoints, || !left.has_links());
            left.poll();
        }
        // The last one is forgotten with the next that is due.
        assert!((LINGERING_MAX..=LINGERING_MAX + 1).contains(&remembered()));
        AHEAD_NS.fetch_add(10_000_000_000, Ordering::Relaxed);
        until(&endpoints, || left.deadline_ns().is_none());
        assert_eq!(remembered(), 0);
        // Nor does the polling thread keep them.
        assert_eq!(lock(&left.reception).table.iter().flatten().count(), 0);
    }
}

/// Both leave at once.
#[test]
fn an_end_that_is_left_ends() {
    let endpoints = endpoints();
    let [(mut transmit, held), (_, mut receive)] = link(&endpoints).map(UdpLink::split);
    let data = [1; 100];
    transmit
        .try_send(&header(0, 100), &[], &[Part::Bytes(&data)])
        .unwrap();
    until(&endpoints, || receive.receive(|_, _| ()).unwrap().is_some());
    drop((held, receive));
    until(&endpoints, || {
        endpoints.iter().all(|endpoint| !endpoint.has_links())
    });
}

/// Both leave at once, and neither has taken what the other one had sent.
#[test]
fn two_ends_that_leave_with_untaken_packets_end() {
    let endpoints = endpoints();
    let ends = link(&endpoints).map(UdpLink::split);
    let ends = ends.map(|(mut transmit, receive)| {
        let sent = transmit.try_send(&header(0, 100), &[], &[Part::Bytes(&[1; 100])]);
        sent.unwrap();
        transmit.hand_over();
        receive
    });
    drop(ends);
    until(&endpoints, || {
        endpoints.iter().all(|endpoint| !endpoint.has_links())
    });
}

/// Packets that fill frames wait for each other; none waits when nothing follows, and not for long
/// if nobody says so.
#[test]
fn full_frames_go_together() {
    for is_said in [true, false] {
        let endpoints = endpoints();
        let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
        let length = transmit.payload_max_bytes();
        let data = vec![1; length];
        for _ in 0..3 {
            transmit
                .try_send(&header(0, length), &[], &[Part::Bytes(&data)])
                .unwrap();
            assert!(transmit.holds());
        }
        if is_said {
            transmit.hand_over();
            assert!(!transmit.holds());
            // Without a look on this side.
            let begun_ns = clock();
            while !endpoints[1].poll() {
                assert!(clock() - begun_ns < TIMEOUT_NS, "it did not come");
            }
        }
        let mut came = 0;
        until(&endpoints, || {
            came += usize::from(receive.receive(|_, _| ()).unwrap().is_some());
            came == 3
        });
    }
}

/// What does not fill a frame goes at once.
#[test]
fn short_messages_do_not_wait() {
    let endpoints = endpoints();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
    transmit
        .try_send(&header(0, 100), &[], &[Part::Bytes(&[1; 100])])
        .unwrap();
    assert!(!transmit.holds());
    let begun_ns = clock();
    while !endpoints[1].poll() {
        assert!(clock() - begun_ns < TIMEOUT_NS, "it did not come");
    }
    assert!(receive.receive(|_, _| ()).unwrap().is_some());
}

/// Many frames that came by one call, which are read where they came, and few, which are copied;
/// frames of one packet and of many: of all of them just those packets come back that were not
/// welcome, and the others were seen once and whole.
#[test]
fn of_what_came_together_only_what_is_refused_comes_back() {
    for is_long in [true, false] {
        let endpoints = endpoints();
        let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
        let length = if is_long {
            transmit.payload_max_bytes()
        } else {
            100
        };
        let area = Area::new(length as u64).unwrap();
        let (sent, is_refused) = (200_u64, |number: u64| number % 7 == 3);
        let (mut offered, mut seen, mut back) = (0, vec![0; sent as usize], Vec::new());
        until(&endpoints, || {
            while offered < sent {
                let data = vec![offered as u8; length];
                let numbered = Header {
                    offset: offered,
                    ..header(0, length)
                };
                match transmit.try_send(&numbered, &[], &[Part::Bytes(&data)]) {
                    Ok(()) => offered += 1,
                    Err(Unsent::Full) => break,
                    Err(gone) => panic!("{gone:?}"),
                }
            }
            let received = receive.receive_or_refuse(|header, payload| {
                payload.deposit(&area, 0).unwrap();
                let mut bytes = vec![0; length];
                area.read_at(0, &mut bytes).unwrap();
                assert!(bytes.iter().all(|byte| *byte == header.offset as u8));
                seen[header.offset as usize] += 1;
                match is_refused(header.offset) {
                    true => Err(Refusal::BadKey),
                    false => Ok(()),
                }
            });
            received.unwrap();
            while let Some((header, reason)) = transmit.next_returned() {
                assert_eq!(reason, Return::Refused(Refusal::BadKey));
                back.push(header.offset);
            }
            seen.iter().all(|times| *times > 0)
                && back.len() == (0..sent).filter(|number| is_refused(*number)).count()
        });
        assert!(seen.iter().all(|times| *times == 1));
        back.sort_unstable();
        assert!(
            back.iter()
                .copied()
                .eq((0..sent).filter(|number| is_refused(*number)))
        );
    }
}

/// Nobody fetches returned packets: the newest are kept, the others counted, and none is missing.
#[test]
fn what_comes_back_and_is_not_fetched_is_counted() {
    let endpoints = endpoints();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
    let (sent, mut offered, mut received) = (3_000, 0, 0);
    until(&endpoints, || {
        while offered < sent {
            match transmit.try_send(&header(0, 16), &[], &[Part::Bytes(&[1; 16])]) {
                Ok(()) => offered += 1,
                Err(Unsent::Full) => break,
                Err(gone) => panic!("{gone:?}"),
            }
        }
        let refuse = |_: &Header, _: &ReceivedPayload<'_>| Err::<(), _>(Refusal::BadKey);
        received += usize::from(receive.receive_or_refuse(refuse).unwrap().is_some());
        let state = transmit.connection_state().unwrap();
        received == sent && state.transport.refused == sent as u64
    });
    let forgotten = transmit.connection_state().unwrap().forgotten;
    let mut fetched = 0;
    while transmit.next_returned().is_some() {
        fetched += 1;
    }
    assert_eq!((fetched, forgotten), (1_024, 3_000 - 1_024));
    assert_eq!(endpoints[1].queued_bytes.load(Ordering::Relaxed), 0);
}

/// What was offered in any number of frames is taken or refused before the fence behind it is
/// answered; what follows it is not waited for.
#[test]
fn a_fence_is_answered_when_all_before_it_is_acknowledged() {
    let endpoints = endpoints();
    let [(mut transmit, held), (_kept, mut receive)] = link(&endpoints).map(UdpLink::split);
    let (mut offered, mut taken, mut refused) = (0_u64, 0_u64, 0_u64);
    for round in 0..40_u64 {
        for _ in 0..round * 7 % 50 {
            let header = Header {
                offset: offered,
                ..header(0, 16)
            };
            if transmit
                .try_send(&header, &[], &[Part::Bytes(&[1; 16])])
                .is_ok()
            {
                offered += 1;
            }
        }
        let (fence, before) = (transmit.fence().unwrap(), offered);
        // Behind it.
        if transmit
            .try_send(&header(0, 16), &[], &[Part::Bytes(&[1; 16])])
            .is_ok()
        {
            offered += 1;
        }
        until(&endpoints, || {
            let is_answered = transmit.is_answered(fence).unwrap();
            assert!(!is_answered || taken >= before, "answered too early");
            if !is_answered && taken < before {
                let received = receive.receive_or_refuse(|_, _| match taken % 5 {
                    0 => Err(Refusal::NoRight),
                    _ => Ok(()),
                });
                if let Some(received) = received.unwrap() {
                    taken += 1;
                    refused += u64::from(received.is_err());
                }
            } else if !is_answered {
                // The rest of a frame is acknowledged with it.
                let rest = receive.receive_or_refuse(|_, _| Ok(()));
                taken += u64::from(rest.unwrap().is_some());
                receive.return_credit();
            }
            is_answered
        });
        assert_eq!(transmit.refused().packets, refused);
        let last = transmit.refused().last.map(|(_, reason)| reason);
        assert_eq!(
            last,
            (refused > 0).then_some(Return::Refused(Refusal::NoRight))
        );
    }
    assert!(refused > 50, "{refused}");
    // One that ends with packets under way is not answered.
    transmit
        .try_send(&header(0, 16), &[], &[Part::Bytes(&[1; 16])])
        .unwrap();
    let fence = transmit.fence().unwrap();
    assert_eq!(transmit.is_answered(fence), Ok(false));
    held.connection().abort(&endpoints[0]);
    assert_eq!(transmit.is_answered(fence), Err(Unsent::Gone));
    assert!(!transmit.is_all_taken());
    assert_eq!(transmit.fence(), Err(Unsent::Gone));
}

/// Frames leave from the endpoint's port, so the system reports about them to the endpoint.
#[test]
fn a_peer_at_whose_port_nobody_listens_is_taken_for_dead() {
    let [here, there] = endpoints();
    let both = [here, there];
    let [ours, theirs] = link(&both);
    let [here, there] = both;
    // Without a word: nobody looks after it any more.
    drop((theirs, there));
    let (mut transmit, receive) = ours.split();
    let sent = transmit.try_send(&header(0, 5), &[], &[Part::Bytes(b"hello")]);
    assert_eq!(sent, Ok(()));
    let begun_ns = clock();
    while receive.connection().end().is_none() {
        assert!(clock() - begun_ns < TIMEOUT_NS, "it is not noticed");
        here.poll();
    }
    assert_eq!(receive.connection().end(), Some(CloseReason::PeerDead));
}

#[test]
fn what_is_said_to_who_asks_is_passed_on_and_nothing_else() {
    let [one, other] = endpoints();
    let number = 0x1235;
    let packet_header = |kind, association| {
        let length_bytes = PACKET_HEADER_BYTES as u16;
        let (phase, path, packet_number) = (false, 0, 0);
        let packet_header = PacketHeader {
            kind,
            length_bytes,
            phase,
            path,
            association,
            packet_number,
        };
        packet_header.bytes()
    };
    let said = [
        (Kind::Response, number),
        (Kind::Cookie, number),
        (Kind::Payload, number),
    ];
    assert!(!one.handshakes().is_any_pending());
    let asking = one.handshakes().begin(other.local(), number);
    assert!(one.handshakes().is_any_pending());
    for (kind, of) in said.into_iter().chain([(Kind::Response, number ^ 2)]) {
        other.answer(one.local(), &packet_header(kind, of)).unwrap();
    }
    for (kind, of) in said {
        let mut heard = None;
        while heard.is_none() {
            one.poll();
            heard = asking.try_recv().ok();
        }
        assert_eq!(heard.unwrap().unwrap(), packet_header(kind, of));
    }
    assert!(asking.try_recv().is_err());
    // More than is ever said costs nothing.
    for _ in 0..100 {
        other
            .answer(one.local(), &packet_header(Kind::Cookie, number))
            .unwrap();
    }
    for _ in 0..100 {
        one.poll();
    }
    assert_eq!(asking.try_iter().count(), PASSED_ON_MAX);
    // Nobody listens there any more.
    let gone = other.local();
    drop(other);
    let begun_ns = clock();
    while asking.try_recv() != Ok(None) {
        assert!(clock() - begun_ns < TIMEOUT_NS, "it is not reported");
        one.answer(gone, b"?").unwrap();
        one.poll();
    }
    one.handshakes().end(number);
    assert!(!one.handshakes().is_any_pending());
}

/// An attacker off the path can forge any number of reports, but cannot quote what we send.
#[test]
fn reports_count_no_more_than_what_was_sent() {
    let endpoints = endpoints();
    let [(mut transmit, ours), (_kept, mut theirs)] = link(&endpoints).map(UdpLink::split);
    for _ in 0..1_000 {
        ours.connection().note_unreachable();
    }
    // Nothing is heard for longer than a peer may be silent of whom there are reports.
    let begun_ns = clock();
    while clock() - begun_ns < 600_000_000 {
        std::hint::spin_loop();
    }
    let sent = transmit.try_send(&header(0, 5), &[], &[Part::Bytes(b"hello")]);
    assert_eq!(sent, Ok(()));
    until(&endpoints, || {
        assert_eq!(ours.connection().end(), None);
        theirs.receive(|_, _| ()).unwrap().is_some()
    });
}

#[test]
fn the_number_of_a_link_is_never_zero_and_not_given_twice() {
    let [endpoint, _] = endpoints();
    let numbers = [(); 3].map(|()| endpoint.reserve(0).unwrap());
    assert!(numbers.iter().all(|number| *number != 0), "{numbers:?}");
    assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2]);
    // Given back, its place is the next one's.
    endpoint.release(numbers[1]);
    assert_eq!(endpoint.reserve(0), Some(numbers[1]));
}
