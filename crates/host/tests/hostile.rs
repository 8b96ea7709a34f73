//! Peers that break the rules of the handshake, on either side of it. None of
//! them may do more harm than to end its own attempt.

mod support;

use hamlyn_host::process::Options;
use hamlyn_host::process::codec::{self, MESSAGE_BYTES, Message, VERSION};
use hamlyn_host::{Address, ConnectError, Destination, Event, Host, LossCause, RefusedBecause};
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use support::raw::{Memory, Raw, RawListener};
use support::*;

/// The victim still makes and uses links.
fn is_well(victim: &mut Owner, namespace: &str) {
    let mut honest = unnamed(namespace);
    let ((_, mut here), (_, mut there)) = pair(&mut honest, victim);
    exchange(&mut here, &mut there);
    drop(honest);
    assert_eq!(lost(victim).1, LossCause::Closed);
}

fn other_version(message: &Message) -> Vec<u8> {
    let mut bytes = codec::encode(message);
    bytes[8..10].copy_from_slice(&999u16.to_le_bytes());
    bytes
}

#[test]
fn a_client_of_another_version_is_told_ours() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let client = Raw::connect(&namespace, victim.identity().interface);
    let memory = Memory::new();
    let hello = other_version(&Message::Hello(memory.offer(1)));
    assert!(client.send(&hello, &memory.descriptors()));
    // The refusal is one of our version, so that the other side learns it.
    assert_eq!(RefusedBecause(client.refusal()), RefusedBecause::VERSION);
    assert_eq!(victim.rendezvous_counters().version, 1);
    is_well(&mut victim, &namespace);
}

/// Connects `victim` to a listener that does what `listener` does.
fn connect_to(listener: impl FnOnce(RawListener) + Send, span_ns: u64) -> Result<(), ConnectError> {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let raw = RawListener::named(&namespace, "server");
    let deadline_ns = after_ns(&victim, span_ns);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| listener(raw));
        victim
            .connect(Address::Name("server"), deadline_ns)
            .map(|_| ())
    });
    let late_ns = victim.now_ns().saturating_sub(deadline_ns);
    assert!(late_ns < 5_000_000_000, "{late_ns} ns after the deadline");
    is_well(&mut victim, &namespace);
    result
}

#[test]
fn a_server_of_another_version_is_named() {
    let result = connect_to(
        |listener| {
            let client = listener.accept();
            client.send(&other_version(&Message::Greeting { interface: 7 }), &[]);
            client.receive();
        },
        TIMEOUT_NS,
    );
    match result {
        Err(ConnectError::Version { theirs, ours, .. }) => {
            assert_eq!((theirs, ours), (999, VERSION))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_says_nothing_is_left_at_the_deadline() {
    let result = connect_to(
        |listener| {
            let client = listener.accept();
            assert_eq!(client.receive(), None);
        },
        20_000_000,
    );
    assert!(
        matches!(result, Err(ConnectError::Stalled { .. })),
        "{result:?}"
    );
}

#[test]
fn a_server_that_greets_and_then_says_nothing_is_left_at_the_deadline() {
    let result = connect_to(
        |listener| {
            let client = listener.accept();
            client.send(&codec::encode(&Message::Greeting { interface: 7 }), &[]);
            assert!(matches!(client.message(), Some(Message::Hello(_))));
            assert_eq!(client.receive(), None);
        },
        20_000_000,
    );
    assert!(
        matches!(result, Err(ConnectError::Stalled { .. })),
        "{result:?}"
    );
}

#[test]
fn a_server_that_hangs_up_is_tried_again_until_the_deadline() {
    let result = connect_to(
        |listener| {
            drop(listener.accept());
            drop(listener.accept());
        },
        30_000_000,
    );
    // By then nobody listens any more.
    assert!(
        matches!(result, Err(ConnectError::Absent { .. })),
        "{result:?}"
    );
}

#[test]
fn servers_that_answer_nonsense_are_named() {
    let greeting = codec::encode(&Message::Greeting { interface: 7 }).clone();
    let refusal = codec::encode(&Message::Refusal { reason: 77 });
    let memory = Memory::new();
    let welcome_of = |interface| codec::encode(&Message::Welcome(memory.offer(interface)));
    let hello = codec::encode(&Message::Hello(memory.offer(7)));
    let mut long = greeting.clone();
    long.resize(100_000, 0);
    // A script of messages; the last one is the fault.
    let scripts = [
        vec![vec![1, 2, 3]],
        vec![vec![0; MESSAGE_BYTES]],
        vec![long],
        vec![hello.clone()],
        vec![greeting.clone(), greeting.clone()],
        vec![greeting.clone(), hello],
        // Without descriptors.
        vec![greeting.clone(), welcome_of(7)],
        // Of another interface.
        vec![greeting.clone(), welcome_of(8)],
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let result = connect_to(
            move |listener| {
                let client = listener.accept();
                for message in &script {
                    client.send(message, &[]);
                }
                while client.receive().is_some() {}
            },
            TIMEOUT_NS,
        );
        assert!(
            matches!(result, Err(ConnectError::Invalid { .. })),
            "script {number}: {result:?}"
        );
    }
    let result = connect_to(
        move |listener| {
            let client = listener.accept();
            client.send(&refusal, &[]);
            client.receive();
        },
        TIMEOUT_NS,
    );
    assert!(
        matches!(
            result,
            Err(ConnectError::Refused {
                reason: RefusedBecause(77),
                ..
            })
        ),
        "{result:?}"
    );
}

#[test]
fn a_server_that_lends_a_pipe_is_named() {
    let result = connect_to(
        |listener| {
            let client = listener.accept();
            client.send(&codec::encode(&Message::Greeting { interface: 7 }), &[]);
            let memory = Memory::new();
            let (pipe, _) = rustix::pipe::pipe().unwrap();
            let welcome = codec::encode(&Message::Welcome(memory.offer(7)));
            client.send(&welcome, &[pipe.as_fd(), memory.ready_bitmap.as_fd()]);
            while client.receive().is_some() {}
        },
        TIMEOUT_NS,
    );
    assert!(
        matches!(result, Err(ConnectError::Invalid { .. })),
        "{result:?}"
    );
}

#[test]
fn somebody_else_at_the_address_of_a_ticket() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let listener = RawListener::of_interface(&namespace, 5);
    let destination = Destination {
        interface: 5,
        ..victim.identity()
    };
    let deadline_ns = after_ns(&victim, TIMEOUT_NS);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let client = listener.accept();
            client.send(&codec::encode(&Message::Greeting { interface: 6 }), &[]);
            client.receive();
        });
        victim.connect(Address::Destination(destination), deadline_ns)
    });
    assert!(matches!(result, Err(ConnectError::Invalid { .. })));
}

#[test]
fn clients_that_send_nonsense_are_refused() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let interface = victim.identity().interface;
    let memory = Memory::new();
    let hello = codec::encode(&Message::Hello(memory.offer(1)));
    let mut damaged = hello.clone();
    damaged[28..32].copy_from_slice(&u32::MAX.to_le_bytes());
    let greeting = codec::encode(&Message::Greeting { interface: 1 });
    let nonsense: [&[u8]; 6] = [
        b"x",
        &[0; MESSAGE_BYTES],
        &[0xff; 60_000],
        &hello[..MESSAGE_BYTES - 1],
        &damaged,
        &greeting,
    ];
    for bytes in nonsense {
        let client = Raw::connect(&namespace, interface);
        assert!(client.send(bytes, &memory.descriptors()));
        assert_eq!(RefusedBecause(client.refusal()), RefusedBecause::INVALID);
    }
    assert_eq!(victim.rendezvous_counters().invalid, 6);
    // An empty message looks like the end.
    let client = Raw::connect(&namespace, interface);
    client.greeted();
    assert!(client.send(&[], &[]));
    assert_eq!(client.receive(), None);
    assert_eq!(victim.rendezvous_counters().peer_closed, 1);
    is_well(&mut victim, &namespace);
}

#[test]
fn memory_that_could_be_taken_away_is_refused() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let interface = victim.identity().interface;
    let Memory { ring, ready_bitmap } = Memory::new();
    let total_bytes = Geometry::DEFAULT.total_bytes();
    let (pipe, _) = rustix::pipe::pipe().unwrap();
    let unsealed = memfd_create("unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&unsealed, total_bytes as u64).unwrap();
    let small = Memfd::create("small", total_bytes - 4096, 0).unwrap();
    let large = Memfd::create("large", total_bytes + 4096, 0).unwrap();
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let (ring, ready_bitmap) = (ring.as_fd(), ready_bitmap.as_fd());
    let lent: [&[BorrowedFd<'_>]; 12] = [
        &[],
        &[ring],
        &[ring, ready_bitmap, ready_bitmap],
        &[
            ring,
            ready_bitmap,
            ready_bitmap,
            ready_bitmap,
            ready_bitmap,
            ready_bitmap,
        ],
        &[pipe.as_fd(), ready_bitmap],
        &[ring, pipe.as_fd()],
        &[file.as_fd(), ready_bitmap],
        &[unsealed.as_fd(), ready_bitmap],
        &[small.as_fd(), ready_bitmap],
        &[large.as_fd(), ready_bitmap],
        &[ready_bitmap, ring],
        &[ring, ring],
    ];
    let offer = Memory::new().offer(1);
    let hello = codec::encode(&Message::Hello(offer.clone()));
    for descriptors in lent {
        let client = Raw::connect(&namespace, interface);
        assert!(client.send(&hello, descriptors));
        assert_eq!(
            RefusedBecause(client.refusal()),
            RefusedBecause::INVALID,
            "{} descriptors",
            descriptors.len()
        );
    }
    // Sizes that are not allowed, though the memory is sound.
    for (cells, arena_bytes) in [
        (0, 1 << 20),
        (3, 1 << 20),
        (u32::MAX, 1 << 20),
        (256, 1),
        (256, u32::MAX),
    ] {
        let mut offer = offer.clone();
        (offer.cells, offer.arena_bytes) = (cells, arena_bytes);
        let client = Raw::connect(&namespace, interface);
        assert!(client.send(
            &codec::encode(&Message::Hello(offer)),
            &[ring, ready_bitmap]
        ));
        assert_eq!(RefusedBecause(client.refusal()), RefusedBecause::INVALID);
    }
    assert_eq!(victim.rendezvous_counters().invalid, 12 + 5);
    assert!(victim.next_event().is_none());
    is_well(&mut victim, &namespace);
}

#[test]
fn those_who_stall_hold_up_nobody_for_long() {
    const HANDSHAKES: u32 = 8;
    let namespace = namespace();
    let mut options = Options::default().in_namespace(&namespace);
    options.handshakes_max = HANDSHAKES;
    // All of them come within this time, on a loaded machine, too.
    options.handshake_timeout = Duration::from_secs(2);
    let mut victim = Owner::open(options).unwrap();
    let interface = victim.identity().interface;
    let stalled: Vec<Raw> = (0..HANDSHAKES / 2)
        .map(|_| {
            let client = Raw::connect(&namespace, interface);
            client.greeted();
            client
        })
        .collect();
    // One user has no more than half of the places.
    let refused = Raw::connect(&namespace, interface);
    assert_eq!(RefusedBecause(refused.refusal()), RefusedBecause::BUSY);
    // An honest peer tries again by itself, and gets its turn.
    is_well(&mut victim, &namespace);
    for client in stalled {
        assert_eq!(client.receive(), None);
    }
    let counters = victim.rendezvous_counters();
    assert_eq!(counters.stalled, u64::from(HANDSHAKES / 2));
    assert!(counters.busy >= 1);
}

#[test]
fn nobody_takes_the_place_of_a_peer() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let mut friend = unnamed(&namespace);
    let ((_, mut here), (_, mut there)) = pair(&mut friend, &mut victim);
    let memory = Memory::new();
    for (claimed, reason) in [
        (friend.identity().interface, RefusedBecause::SIMULTANEOUS),
        (victim.identity().interface, RefusedBecause::INVALID),
    ] {
        let impostor = Raw::connect(&namespace, victim.identity().interface);
        impostor.greeted();
        impostor.hello(&memory, claimed);
        assert_eq!(RefusedBecause(impostor.refusal()), reason);
    }
    exchange(&mut here, &mut there);
    assert!(victim.next_event().is_none());
}

#[test]
fn a_flood_of_rings_is_survived() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let peer = Raw::connect(&namespace, victim.identity().interface);
    peer.shake_hands(&Memory::new(), 1);
    let (linked_peer, _link) = linked(&mut victim);
    let mut sent = 0;
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let mut sent = 0u32;
            // Ends when the victim closes.
            while peer.send(&[sent as u8 & 0x7f], &[]) {
                sent += 1;
                // Descriptors that come with a ring are nothing to us.
                if sent.is_multiple_of(100) {
                    peer.send(&[1], &[peer.0.as_fd()]);
                }
            }
            sent
        });
        for _ in 0..1000 {
            victim.prepare_sleep();
            victim.sleep(Some(after_ns(&victim, 1_000_000))).unwrap();
            victim.end_sleep();
        }
        is_well(&mut victim, &namespace);
        victim.disconnect(linked_peer.token);
        sent = flood.join().unwrap();
    });
    assert!(sent > 0);
    is_well(&mut victim, &namespace);
}

#[test]
fn a_peer_that_shakes_hands_and_hangs_up_is_linked_and_lost() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    for number in 1..50 {
        let peer = Raw::connect(&namespace, victim.identity().interface);
        peer.shake_hands(&Memory::new(), number);
        drop(peer);
        // Its process lives, and it did not say goodbye.
        let (peer, _link) = linked(&mut victim);
        assert_eq!(lost(&mut victim), (peer.token, LossCause::Closed));
    }
}

#[test]
fn a_peer_that_says_hello_and_closes_leaves_nothing() {
    const PEERS: u64 = 50;
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    for number in 0..PEERS {
        let peer = Raw::connect(&namespace, victim.identity().interface);
        peer.hello(&Memory::new(), 1 + number);
    }
    let deadline_ns = after_ns(&victim, TIMEOUT_NS);
    let mut live = std::collections::HashSet::new();
    loop {
        let counters = victim.rendezvous_counters();
        while let Some(event) = victim.next_event() {
            match event {
                Event::Linked(peer, _) => assert!(live.insert(peer.token)),
                Event::Lost { token, .. } => assert!(live.remove(&token)),
            }
        }
        if counters.peer_closed + counters.busy == PEERS && live.is_empty() {
            break;
        }
        assert!(
            victim.now_ns() < deadline_ns,
            "{counters:?}, {} live",
            live.len()
        );
        std::thread::yield_now();
    }
    is_well(&mut victim, &namespace);
}

/// A connection that cannot be closed for a minute, since nobody reads what was
/// sent on it; and the end that does not read.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (unread, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    while (&stream).write(&[0; 1 << 16]).is_ok() {}
    let minute = Some(Duration::from_secs(60));
    rustix::net::sockopt::set_socket_linger(&stream, minute).unwrap();
    (stream, unread)
}

#[test]
fn descriptors_that_cannot_be_closed_hold_up_nobody() {
    let namespace = namespace();
    let mut victim = unnamed(&namespace);
    let memory = Memory::new();
    let hello = codec::encode(&Message::Hello(memory.offer(1)));
    let mut unread = Vec::new();
    for _ in 0..3 {
        let (stream, other) = lingering();
        unread.push(other);
        let client = Raw::connect(&namespace, victim.identity().interface);
        client.greeted();
        assert!(client.send(&hello, &[stream.as_fd(), memory.ready_bitmap.as_fd()]));
        // From now on the victim's is the last, unless it was quicker; then ours takes as long to
        // close.
        std::thread::spawn(move || drop(stream));
        assert_eq!(RefusedBecause(client.refusal()), RefusedBecause::INVALID);
        is_well(&mut victim, &namespace);
    }
    // Somebody reads at last, and the threads that close come to their end.
    for other in &mut unread {
        std::io::copy(other, &mut std::io::sink()).unwrap();
    }
}
