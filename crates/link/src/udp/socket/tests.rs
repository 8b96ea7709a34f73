use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::event::{PollFd, PollFlags, poll};

use super::super::batch::BATCH_DATAGRAMS;
use super::super::packet_header::VERSION;
use super::*;

const REFUSED: CallFailed = CallFailed {
    call: "recv",
    errno: Errno::CONNREFUSED,
};

fn loopbacks() -> [SocketAddr; 2] {
    [
        (Ipv4Addr::LOCALHOST, 0).into(),
        (Ipv6Addr::LOCALHOST, 0).into(),
    ]
}

/// The address of a socket, and a loopback address that leads there.
fn listening() -> [(SocketAddr, SocketAddr); 4] {
    let everywhere = (Ipv6Addr::UNSPECIFIED, 0).into();
    let [v4, v6] = loopbacks();
    [(v4, v4), (v6, v6), (everywhere, v4), (everywhere, v6)]
}

fn pair(at: SocketAddr, settings: &SocketSettings) -> (Socket, Socket) {
    let mut one = Socket::bind(at, settings).unwrap();
    let mut other = Socket::bind(at, settings).unwrap();
    one.connect(other.local()).unwrap();
    other.connect(one.local()).unwrap();
    (one, other)
}

fn fill(batch: &mut Batch, lengths: &[usize]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (at, &length) in lengths.iter().enumerate() {
        let mut datagram = (0..length)
            .map(|byte| (byte * 7 + at) as u8)
            .collect::<Vec<_>>();
        if length >= 4 {
            datagram[0] = VERSION << 4;
            datagram[2..4].copy_from_slice(&(length as u16).to_le_bytes());
        }
        batch.room(length).unwrap().copy_from_slice(&datagram);
        batch.push(length);
        all.push(datagram);
    }
    all
}

/// Waits until something comes; a loopback loses nothing that fits its buffers.
fn take(socket: &Socket, inbox: &mut Inbox, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while all.len() < count {
        poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
        assert!(socket.receive(inbox).unwrap());
        while let Some(datagram) = inbox.next() {
            assert_eq!(datagram.source, None);
            all.push(datagram.bytes.to_vec());
        }
    }
    all
}

#[test]
fn datagrams_arrive_whole_and_in_order_with_and_without_offload() {
    for at in loopbacks() {
        for is_offloaded in [true, false] {
            let settings = SocketSettings {
                is_offloaded,
                ..SocketSettings::default()
            };
            let (mut one, other) = pair(at, &settings);
            let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
            assert!(!other.receive(&mut inbox).unwrap());
            for lengths in [
                vec![16],
                vec![1_400; 46],
                vec![48; BATCH_DATAGRAMS],
                vec![1_400, 1_400, 30, 30, 9_000, 20, 17, 17, 16],
                vec![65_000],
                vec![100],
            ] {
                let sent = fill(&mut batch, &lengths);
                assert_eq!(one.send(&mut batch), Ok(lengths.len()));
                assert!(batch.is_empty());
                assert_eq!(take(&other, &mut inbox, sent.len()), sent, "{lengths:?}");
            }
            assert!(!other.receive(&mut inbox).unwrap());
        }
    }
}

#[test]
fn after_a_run_a_longer_datagram_goes_uncut() {
    // The receiver takes every datagram alone, as it was on the wire.
    let plain = SocketSettings {
        is_offloaded: false,
        ..SocketSettings::default()
    };
    let mut one = Socket::bind(loopbacks()[0], &SocketSettings::default()).unwrap();
    let mut other = Socket::bind(loopbacks()[0], &plain).unwrap();
    one.connect(other.local()).unwrap();
    other.connect(one.local()).unwrap();
    let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
    fill(&mut batch, &[100; 10]);
    one.send(&mut batch).unwrap();
    take(&other, &mut inbox, 10);
    one.send_one(&[3; 250]).unwrap();
    assert_eq!(take(&other, &mut inbox, 1), [[3; 250]]);
    fill(&mut batch, &[100; 10]);
    one.send(&mut batch).unwrap();
    take(&other, &mut inbox, 10);
    let to = one.peer().unwrap();
    one.send_to(&[4; 333], to).unwrap();
    assert_eq!(take(&other, &mut inbox, 1), [[4; 333]]);
}

#[test]
fn strangers_are_named_before_and_unheard_after_connecting() {
    for at in loopbacks() {
        let settings = SocketSettings::default();
        let mut one = Socket::bind(at, &settings).unwrap();
        let mut friend = Socket::bind(at, &settings).unwrap();
        let mut stranger = Socket::bind(at, &settings).unwrap();
        let mut inbox = Inbox::new();
        stranger.send_to(b"hello", one.local()).unwrap();
        poll(&mut [PollFd::new(&one, PollFlags::IN)], None).unwrap();
        assert!(one.receive(&mut inbox).unwrap());
        let datagram = inbox.next().unwrap();
        assert_eq!(datagram.source, Some(stranger.local()));
        assert_eq!(datagram.bytes, b"hello");

        one.connect(friend.local()).unwrap();
        assert_eq!((one.peer(), friend.peer()), (Some(friend.local()), None));
        stranger.send_to(b"again", one.local()).unwrap();
        friend.send_to(b"friend", one.local()).unwrap();
        assert_eq!(take(&one, &mut inbox, 1), [b"friend"]);
        assert!(!one.receive(&mut inbox).unwrap());
    }
}

#[test]
fn nobody_listening_is_a_hint_and_the_datagrams_stay() {
    let (mut one, other) = pair(loopbacks()[0], &SocketSettings::default());
    drop(other);
    let mut batch = Batch::new();
    one.send_one(b"x").unwrap();
    fill(&mut batch, &[10, 10]);
    assert_eq!(one.send(&mut batch), Err(SendError::Refused));
    assert_eq!(batch.waiting(), 2);
    // It was said once; the next attempt is made, and answered on the receiving side.
    assert_eq!(one.send(&mut batch), Ok(2));
    assert_eq!(one.receive(&mut Inbox::new()), Err(REFUSED));
}

#[test]
fn what_the_way_out_does_not_carry_is_too_long() {
    let (mut one, _other) = pair(loopbacks()[0], &SocketSettings::default());
    // The loopback's packets have 65,536 bytes, those of IP one less.
    assert_eq!(one.route_datagram_bytes(), Some(DATAGRAM_BYTES_MAX));
    let mut batch = Batch::new();
    let too_long = vec![0; DATAGRAM_BYTES_MAX + 1];
    assert_eq!(
        one.send_one(&too_long),
        Err(SendError::TooLong {
            bytes: DATAGRAM_BYTES_MAX + 1
        })
    );
    fill(&mut batch, &[65_500]);
    assert_eq!(one.send(&mut batch), Ok(1));
    let unconnected = Socket::bind(loopbacks()[0], &SocketSettings::default()).unwrap();
    assert_eq!(unconnected.route_datagram_bytes(), None);
}

#[test]
fn a_full_socket_says_so_and_keeps_the_rest() {
    let settings = SocketSettings {
        send_buffer_bytes: 1,
        ..SocketSettings::default()
    };
    let (mut one, other) = pair(loopbacks()[0], &settings);
    let mut inbox = Inbox::new();
    let mut batch = Batch::new();
    fill(&mut batch, &[1_400; 40]);
    let mut got = 0;
    // Ends: whatever was sent is taken out before the next attempt.
    while !batch.is_empty() {
        let before = batch.waiting();
        match one.send(&mut batch) {
            Ok(_) | Err(SendError::Full) => {}
            other => panic!("{other:?}"),
        }
        let sent = before - batch.waiting();
        got += take(&other, &mut inbox, sent).len();
        if sent == 0 {
            poll(&mut [PollFd::new(&one, PollFlags::OUT)], None).unwrap();
        }
    }
    assert_eq!(got, 40);
}

#[test]
fn buffers_are_checked() {
    let settings = SocketSettings {
        send_buffer_bytes: 100_000,
        receive_buffer_bytes: 100_000,
        ..SocketSettings::default()
    };
    let socket = Socket::bind(loopbacks()[0], &settings).unwrap();
    let got = size_buffers(socket.as_fd(), &settings).unwrap();
    assert!(got.iter().all(|bytes| *bytes >= 100_000), "{got:?}");
    let greedy = SocketSettings {
        receive_buffer_bytes: 1 << 40,
        ..settings
    };
    let [_, receive] = size_buffers(socket.as_fd(), &greedy).unwrap();
    assert!(receive < 1 << 40);
}

#[test]
fn addresses_that_are_taken_are_named() {
    let one = Socket::bind(loopbacks()[0], &SocketSettings::default()).unwrap();
    let error = Socket::bind(one.local(), &SocketSettings::default()).unwrap_err();
    assert_eq!(
        error,
        CallFailed {
            call: "bind",
            errno: Errno::ADDRINUSE
        }
    );
}

/// A socket at all addresses hears both families, and names sources as they are known elsewhere.
#[test]
fn all_addresses_are_those_of_both_families() {
    let at = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    let settings = SocketSettings::default();
    let mut hub = Socket::bind(at, &settings).unwrap();
    let mut inbox = Inbox::new();
    for from in loopbacks() {
        let mut spoke = Socket::bind(from, &settings).unwrap();
        let to = SocketAddr::new(from.ip(), hub.local().port());
        spoke.connect(to).unwrap();
        spoke.send_one(b"question").unwrap();
        poll(&mut [PollFd::new(&hub, PollFlags::IN)], None).unwrap();
        assert!(hub.receive(&mut inbox).unwrap());
        let source = inbox.next().unwrap().source.unwrap();
        assert_eq!(source, spoke.local());
        hub.send_to(b"answer", source).unwrap();
        assert_eq!(take(&spoke, &mut inbox, 1), [b"answer"]);
    }
}

/// The datagrams that came, and their source.
fn took(socket: &Socket, inbox: &mut Inbox) -> (Vec<u8>, Option<SocketAddr>) {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
    assert!(socket.receive(inbox).unwrap());
    let datagram = inbox.next().expect("a datagram");
    (datagram.bytes.to_vec(), datagram.source)
}

#[test]
fn a_flow_beside_another_sends_from_its_port_and_takes_nothing_from_it() {
    let settings = SocketSettings::default();
    let mut inbox = Inbox::new();
    for (at, loopback) in listening() {
        let one = Socket::bind(at, &settings).unwrap();
        let own = SocketAddr::new(loopback.ip(), one.local().port());
        let peers = [0; 3].map(|_| Socket::bind(loopback, &settings).unwrap());
        let sockets = peers.each_ref().map(|peer| {
            let socket = one.beside(peer.local(), &settings).unwrap();
            socket.expect("it listens where the system sends from")
        });
        for (mut peer, mut socket) in peers.into_iter().zip(sockets) {
            assert_eq!((socket.local(), socket.peer()), (own, Some(peer.local())));
            socket.send_one(b"frame").unwrap();
            assert_eq!(took(&peer, &mut inbox), (b"frame".to_vec(), Some(own)));
            peer.send_to(b"back", own).unwrap();
            assert_eq!(
                took(&one, &mut inbox),
                (b"back".to_vec(), Some(peer.local()))
            );
            assert!(!socket.receive(&mut inbox).unwrap());
        }
        // The port is still nobody else's.
        Socket::bind(one.local(), &settings).unwrap_err();
    }
}

#[test]
fn nothing_is_sent_beside_a_flow_from_another_address_than_it_has() {
    let settings = SocketSettings::default();
    let one = Socket::bind((Ipv4Addr::new(127, 9, 9, 9), 0).into(), &settings).unwrap();
    let peer = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &settings).unwrap();
    let beside = one.beside(peer.local(), &settings).unwrap();
    assert!(beside.is_none(), "{beside:?}");
}

#[test]
fn what_is_reported_of_flows_beside_another_is_heard_there() {
    let settings = SocketSettings::default();
    let mut inbox = Inbox::new();
    for (at, loopback) in listening() {
        let one = Socket::bind(at, &settings).unwrap();
        one.drain_reports();
        assert_eq!(one.next_report(), None);
        let peer = Socket::bind(loopback, &settings).unwrap();
        let gone = peer.local();
        let mut socket = one.beside(gone, &settings).unwrap().unwrap();
        drop(peer);
        for _ in 0..2 {
            socket.send_one(b"frame").unwrap();
            poll(&mut [PollFd::new(&one, PollFlags::IN)], None).unwrap();
            assert_eq!(one.receive(&mut inbox), Err(REFUSED));
            assert_eq!(one.next_report(), Some(Some(gone)));
            assert_eq!(one.next_report(), None);
            assert_eq!(one.receive(&mut inbox), Ok(false));
        }
    }
}
