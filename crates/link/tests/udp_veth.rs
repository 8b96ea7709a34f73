//! Flows between two hosts in network namespaces, which the test makes, and which go with it. Needs
//! root, and `ip`; otherwise it is skipped aloud.

use std::net::{IpAddr, SocketAddr};

use hamlyn_link::udp::batch::{Batch, Inbox};
use hamlyn_link::udp::mtu::{MtuSettings, PathMtu};
use hamlyn_link::udp::packet_header::Kind;
use hamlyn_link::udp::protection::{Key, RxProtection, TxProtection};
use hamlyn_link::udp::socket::{SendError, Socket, SocketSettings};
use hamlyn_testbed::Testbed;
use rustix::event::{PollFd, PollFlags, poll};

/// The addresses of both, and what headers take of each datagram.
fn ways(testbed: &Testbed) -> [([SocketAddr; 2], usize); 2] {
    let [one, other] = testbed.hosts() else {
        panic!("two hosts");
    };
    let at = |ip: IpAddr| SocketAddr::new(ip, 0);
    [
        ([at(one.address().into()), at(other.address().into())], 28),
        (
            [at(one.address_6().into()), at(other.address_6().into())],
            48,
        ),
    ]
}

/// A flow of each to the other.
fn sockets(testbed: &Testbed, at: [SocketAddr; 2]) -> (Socket, Socket) {
    let bound = |host: usize| {
        let bind = || Socket::bind(at[host], &SocketSettings::default()).expect("bound");
        testbed.hosts()[host].within(bind).expect("entered")
    };
    let (mut one, mut other) = (bound(0), bound(1));
    one.connect(other.local()).expect("connected");
    other.connect(one.local()).expect("connected");
    (one, other)
}

fn take(socket: &Socket, inbox: &mut Inbox, count: usize, mut each: impl FnMut(&mut [u8])) {
    let mut came = 0;
    while came < count {
        poll(&mut [PollFd::new(socket, PollFlags::IN)], None).expect("poll");
        socket.receive(inbox).expect("received");
        while let Some(datagram) = inbox.next() {
            each(datagram.bytes);
            came += 1;
        }
    }
}

#[test]
fn sealed_runs_cross_a_wire_of_any_width() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    for (at, headers_bytes) in ways(&testbed) {
        for mtu in [1_500, 9_000, 1_280] {
            testbed.set_mtu_bytes(mtu as u32).expect("set");
            let (mut one, other) = sockets(&testbed, at);
            let datagram_bytes = mtu - headers_bytes;
            assert_eq!(one.route_datagram_bytes(), Some(datagram_bytes));
            let key = Key::Encrypted([1; 32].into());
            let (mut tx_protection, mut rx_protection) =
                (TxProtection::new(&key, 1), RxProtection::new(&key, 1));
            let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
            let mut sent = 0_u8;
            while let Some(room) = batch.room(datagram_bytes) {
                let frame_bytes = datagram_bytes - tx_protection.overhead_bytes();
                room[16..][..frame_bytes].fill(sent);
                let protected = tx_protection.protect_in_place(Kind::Data, 0, room, frame_bytes);
                batch.push(protected.expect("protected"));
                sent += 1;
            }
            assert_eq!(one.send(&mut batch), Ok(usize::from(sent)));
            let mut next = 0;
            take(&other, &mut inbox, usize::from(sent), |datagram| {
                let opened = rx_protection.unprotect(datagram).expect("opened");
                assert!(opened.frame.iter().all(|&byte| byte == next));
                next += 1;
            });
            // One byte more does not fit, alone or in a run.
            let bytes = datagram_bytes + 1;
            assert_eq!(
                one.send_one(&vec![0; bytes]),
                Err(SendError::TooLong { bytes })
            );
            for _ in 0..2 {
                batch.room(bytes).expect("room");
                batch.push(bytes);
            }
            assert_eq!(one.send(&mut batch), Err(SendError::TooLong { bytes }));
            assert_eq!((batch.drop_first(), batch.waiting()), (Some(bytes), 1));
            assert_eq!(one.send_one(&[0; 100]), Ok(()));
            take(&other, &mut inbox, 1, |_| ());
        }
    }
}

/// Sends what the search wants, and answers what comes, until it is settled. Time passes as it
/// must.
fn settle(
    mtu: &mut PathMtu,
    now_ns: &mut u64,
    one: &mut Socket,
    other: &Socket,
    inbox: &mut Inbox,
) {
    while !mtu.is_settled() {
        *now_ns = (*now_ns).max(mtu.deadline_ns());
        let Some(bytes) = mtu.poll(*now_ns) else {
            continue;
        };
        match one.send_one(&vec![0; bytes]) {
            Ok(()) => take(other, inbox, 1, |datagram| {
                mtu.probe_arrived(*now_ns, datagram.len())
            }),
            Err(SendError::TooLong { bytes }) => mtu.too_long(*now_ns, bytes),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_length_is_found_and_follows_the_wire() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    for (at, headers_bytes) in ways(&testbed) {
        testbed.set_mtu_bytes(9_000).expect("set");
        let (mut one, other) = sockets(&testbed, at);
        let mut inbox = Inbox::new();
        let (mut mtu, mut now_ns) = (PathMtu::new(MtuSettings::default(), 0), 0);
        mtu.route(0, one.route_datagram_bytes().expect("known"));
        settle(&mut mtu, &mut now_ns, &mut one, &other, &mut inbox);
        assert_eq!(mtu.datagram_bytes(), 9_000 - headers_bytes);
        testbed.set_mtu_bytes(1_500).expect("set");
        let bytes = mtu.datagram_bytes();
        assert_eq!(
            one.send_one(&vec![0; bytes]),
            Err(SendError::TooLong { bytes })
        );
        mtu.too_long(now_ns, bytes);
        settle(&mut mtu, &mut now_ns, &mut one, &other, &mut inbox);
        let best = 1_500 - headers_bytes;
        assert!(mtu.datagram_bytes() <= best && best - mtu.datagram_bytes() < 16);
    }
}

/// What became too long for the way can still be sent, if it may be cut.
#[test]
fn what_may_be_cut_passes_a_narrow_wire() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    for (at, headers_bytes) in ways(&testbed) {
        testbed.set_mtu_bytes(1_500).expect("set");
        let (mut one, other) = sockets(&testbed, at);
        let bytes = 1_501 - headers_bytes;
        let mut inbox = Inbox::new();
        let mut batch = Batch::new();
        for _ in 0..2 {
            one.cut(true).expect("allowed");
            for _ in 0..3 {
                batch.room(bytes).expect("room").fill(7);
                batch.push(bytes);
            }
            assert_eq!(one.send(&mut batch), Ok(3));
            take(&other, &mut inbox, 3, |datagram| {
                assert_eq!(datagram.len(), bytes);
            });
            one.cut(false).expect("allowed");
            let refused = one.send_one(&vec![0; bytes]);
            assert_eq!(refused, Err(SendError::TooLong { bytes }));
        }
    }
}
