//! The link between two processes: with a peer that keeps the rules, and with
//! one that writes anything anywhere at any time.

use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::overflow::LOG_BYTES_MIN;
use hamlyn_ring::ready_bitmap::READY_BITMAP_BYTES;
use hamlyn_ring::shared::Access;

use super::*;
use crate::carrier::tests::{Packet, bytes, carries_everything, header, receive};
use crate::{LinkFault, ReceiveEnd, TransmitEnd};

/// One side of a link, and what its peer can do to it.
pub(super) struct Side {
    pub(super) link: PairLink,
    /// Rings arrive here.
    socket: UnixStream,
    /// The memory it receives in, as its peer has it.
    pub(super) receives_in: Mapping,
    /// The memory it sends to, as its peer has it.
    pub(super) sends_to: Mapping,
}

pub(super) fn pair_of(geometry: Geometry, payload_max: usize, fence: Fence) -> (Side, Side) {
    pair_with_logs(geometry, payload_max, fence, None)
}

/// The same with an overflow log of those options in each direction, if there are some.
pub(super) fn pair_with_logs(
    geometry: Geometry,
    payload_max: usize,
    fence: Fence,
    logs: Option<LogOptions>,
) -> (Side, Side) {
    let log = || {
        let bytes = logs?.geometry.bytes() as usize;
        Some(Memfd::create("pair-test-log", bytes, 0).unwrap())
    };
    let (left_log, right_log) = (log(), log());
    let mapped = |log: &Option<Memfd>| {
        let mapping = log.as_ref()?.map(Access::Writable).unwrap();
        Some((mapping, logs?))
    };
    let memory = || Memfd::create_ring("pair-test", geometry, payload_max).unwrap();
    let (left_memory, right_memory) = (memory(), memory());
    let page = || {
        Memfd::create(
            "pair-test-ready-bits",
            READY_BITMAP_BYTES,
            READY_BITMAP_BYTES,
        )
        .unwrap()
    };
    let (left_bitmap, right_bitmap) = (page(), page());
    let (left_socket, right_socket) = UnixStream::pair().unwrap();
    let side = |own: &Memfd, peers: &Memfd, ready_bitmap: &Memfd, socket: UnixStream, order| {
        let (own_log, peers_log) = match order {
            LineOrder::First => (&left_log, &right_log),
            _ => (&right_log, &left_log),
        };
        let fd = peers.as_fd().try_clone_to_owned().unwrap();
        let adopted = Memfd::adopt(fd, geometry.total_bytes()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let link = PairLink::new(PairParts {
            receive: own.map(Access::Writable).unwrap(),
            receive_geometry: geometry,
            receive_log: mapped(own_log).map(|(log, options)| (log, options.geometry)),
            send_log: mapped(peers_log),
            send: adopted.map(Access::Writable).unwrap(),
            send_file: adopted.into_fd(),
            send_geometry: geometry,
            order,
            peer_bitmap: ready_bitmap.map(Access::Writable).unwrap(),
            bit_at_peer: 5,
            ready_bit: 5,
            lease: None,
            fence,
            doorbell: OwnedFd::from(socket.try_clone().unwrap()).into(),
            payload_max_bytes: payload_max,
        });
        Side {
            link: link.unwrap(),
            socket,
            receives_in: own.map(Access::Writable).unwrap(),
            sends_to: peers.map(Access::Writable).unwrap(),
        }
    };
    let left = side(
        &left_memory,
        &right_memory,
        &right_bitmap,
        left_socket,
        LineOrder::First,
    );
    let right = side(
        &right_memory,
        &left_memory,
        &left_bitmap,
        right_socket,
        LineOrder::Second,
    );
    (left, right)
}

/// Logs that are used as soon as a ring is full.
pub(super) fn logs_at_once() -> LogOptions {
    LogOptions {
        geometry: LogGeometry::new(LOG_BYTES_MIN).unwrap(),
        patience_ns: 0,
    }
}

pub(super) fn pair() -> (Side, Side) {
    pair_of(Geometry::DEFAULT, PAYLOAD_MAX_DEFAULT_BYTES, Fence::Light)
}

pub(super) fn send(side: &mut Side, metadata: &[u8], data: &[u8]) -> Result<(), Unsent> {
    side.link.transmit.try_send(
        &header(metadata.len(), data.len()),
        metadata,
        &[Part::Bytes(data)],
    )
}

pub(super) fn rings(side: &mut Side) -> usize {
    let mut buffer = [0; 64];
    side.socket.read(&mut buffer).unwrap_or(0)
}

#[test]
fn carries_packets_of_every_shape() {
    for payload_max in [64, PAYLOAD_MAX_DEFAULT_BYTES, 64 << 10] {
        let (mut left, mut right) = pair_of(Geometry::DEFAULT, payload_max, Fence::Heavy);
        carries_everything(
            |link: &mut PairLink, header, metadata, parts| {
                link.transmit.try_send(header, metadata, parts).unwrap();
            },
            &mut left.link,
            |_| {
                let packet = receive(&mut right.link).unwrap();
                right.link.receive.return_credit();
                packet
            },
        );
    }
}

#[test]
fn refuses_parts_that_do_not_fit() {
    let geometry = Geometry::DEFAULT;
    let make = |send_len: usize, access, payload_max_bytes| {
        let receive = Memfd::create("pair-test", geometry.total_bytes(), 0).unwrap();
        let send = Memfd::create("pair-test", send_len, 0).unwrap();
        let ready_bitmap = Memfd::create(
            "pair-test-ready-bits",
            READY_BITMAP_BYTES,
            READY_BITMAP_BYTES,
        )
        .unwrap();
        let parts = PairParts {
            receive: receive.map(Access::Writable).unwrap(),
            receive_geometry: geometry,
            receive_log: None,
            send_log: None,
            send: send.map(access).unwrap(),
            send_file: send.into_fd(),
            send_geometry: geometry,
            order: LineOrder::First,
            peer_bitmap: ready_bitmap.map(Access::Writable).unwrap(),
            bit_at_peer: 5,
            ready_bit: 5,
            lease: None,
            fence: Fence::Light,
            doorbell: OwnedFd::from(UnixStream::pair().unwrap().0).into(),
            payload_max_bytes,
        };
        PairLink::new(parts).err()
    };
    let total = geometry.total_bytes();
    assert_eq!(make(total, Access::Writable, 64), None);
    assert_eq!(
        make(total, Access::Writable, 63),
        Some(LinkError::PayloadMax(63))
    );
    assert_eq!(
        make(total - 4096, Access::Writable, 64),
        Some(LinkError::Layout)
    );
    assert_eq!(make(total, Access::ReadOnly, 64), Some(LinkError::Layout));
}

#[test]
fn the_arena_wraps_and_grows() {
    let geometry = Geometry::new(16, 128 << 10).unwrap();
    let (mut left, mut right) = pair_of(geometry, PAYLOAD_MAX_DEFAULT_BYTES, Fence::Light);
    let (mut sent, mut taken) = (0, 0);
    let length = |number: usize| 17 + number * 4999 % 16_000;
    for round in 0..2000 {
        while send(&mut left, &[], &bytes(sent, length(sent))).is_ok() {
            sent += 1;
        }
        assert!(sent > taken, "there is room when everything was taken");
        for _ in 0..=round % 9 {
            let Some(packet) = receive(&mut right.link).unwrap() else {
                break;
            };
            assert_eq!(packet.data, bytes(taken, length(taken)));
            taken += 1;
        }
        right.link.receive.return_credit();
    }
    assert!(taken > 4000, "{taken}");
}

#[test]
fn rings_only_for_those_that_sleep() {
    let (mut left, mut right) = pair();
    send(&mut left, &[], &[1]).unwrap();
    assert_eq!(rings(&mut right), 0);
    for _ in 0..2 {
        right.link.receive.announce_sleep();
        send(&mut left, &[], &[1]).unwrap();
        send(&mut left, &[], &[1]).unwrap();
        assert_eq!(rings(&mut right), 1, "once for each sleep");
        right.link.receive.suppress_events();
        send(&mut left, &[], &[1]).unwrap();
        assert_eq!(rings(&mut right), 0);
    }
    // A peer that is gone, or whose socket is full, does not hold us up.
    right.link.receive.announce_sleep();
    drop(right.socket);
    drop(right.link);
    send(&mut left, &[], &[1]).unwrap();
}

/// A ring that the system could not make is made later, though nothing more is sent.
#[test]
fn a_ring_that_failed_is_tried_again_without_another_message() {
    let (mut left, mut right) = pair();
    let ears = UdpSocket::bind("127.0.0.1:0").unwrap();
    ears.set_nonblocking(true).unwrap();
    let heard = || ears.recv(&mut [0]).is_ok();
    for return_credit in [PairReceive::return_credit, PairReceive::return_arena_credit] {
        // As long as it is not connected, sending there fails.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let doorbell = Arc::new(Doorbell::new(
            left.link.transmit.doorbell.word.clone(),
            Notifier::Socket(OwnedFd::from(socket.try_clone().unwrap()).into()),
        ));
        left.link.transmit.doorbell = Arc::clone(&doorbell);
        left.link.receive.doorbell = doorbell;
        right.link.receive.announce_sleep();
        send(&mut left, &[], &[1]).unwrap();
        return_credit(&mut left.link.receive);
        assert!(!heard() && left.link.receive.owes_ring());
        socket.connect(ears.local_addr().unwrap()).unwrap();
        return_credit(&mut left.link.receive);
        assert!(heard(), "the sleeper is not rung for");
        assert!(!left.link.receive.owes_ring());
        return_credit(&mut left.link.receive);
        assert!(!heard(), "once");
    }
}

#[test]
fn rings_for_those_that_sleep_for_room() {
    let (mut left, mut right) = pair();
    while send(&mut left, &[], &[1]).is_ok() {}
    left.link.transmit.await_credit(true, None);
    assert!(!left.link.transmit.credit_came());
    for _ in 0..100 {
        assert!(receive(&mut right.link).unwrap().is_some());
    }
    right.link.receive.return_credit();
    assert!(left.link.transmit.credit_came());
    assert_eq!(rings(&mut left), 0, "a sleep is worth half of the ring");
    for _ in 100..Geometry::DEFAULT.cells() {
        assert!(receive(&mut right.link).unwrap().is_some());
    }
    right.link.receive.return_credit();
    assert_eq!(rings(&mut left), 1);
}

#[test]
fn an_impossible_flag_ends_the_link() {
    let (mut left, mut right) = pair();
    let peer = &left.sends_to;
    peer.store_u64(Geometry::DEFAULT.cells_offset(), 7).unwrap();
    assert!(right.link.receive.is_pending());
    for _ in 0..3 {
        assert_eq!(receive(&mut right.link), Err(LinkFault::Flag));
        assert!(right.link.receive.is_pending());
    }
    // Nothing heals it.
    send(&mut left, &[], &[1]).unwrap();
    assert_eq!(receive(&mut right.link), Err(LinkFault::Flag));
}

#[test]
fn an_impossible_placement_ends_the_link() {
    let (mut left, mut right) = pair();
    send(&mut left, &[1; 20], &[2; 100]).unwrap();
    let word = Geometry::DEFAULT.cells_offset() + 4 * 8;
    let peer = &left.sends_to;
    peer.store_u64(word, 100 | u64::from(u32::MAX) << 32)
        .unwrap();
    assert_eq!(receive(&mut right.link), Err(LinkFault::Placement));
    peer.store_u64(word, 100).unwrap();
    assert_eq!(receive(&mut right.link), Err(LinkFault::Placement));
}

#[test]
fn impossible_credit_ends_the_link() {
    let cells = u64::from(Geometry::DEFAULT.cells());
    for lie in [cells + 1, u64::MAX] {
        let (mut left, right) = pair();
        for _ in 0..cells {
            send(&mut left, &[], &[1]).unwrap();
        }
        assert_eq!(send(&mut left, &[], &[1]), Err(Unsent::Full));
        let peer = &right.receives_in;
        peer.store_u64(Geometry::DEFAULT.consumed_offset(), lie)
            .unwrap();
        assert_eq!(send(&mut left, &[], &[1]), Err(Unsent::Gone));
        peer.store_u64(Geometry::DEFAULT.consumed_offset(), cells)
            .unwrap();
        assert_eq!(send(&mut left, &[], &[1]), Err(Unsent::Gone));
        assert_eq!(left.link.transmit.fault(), Some(LinkFault::Credit));
    }
}

/// Not a good generator, but one that the tests can seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Overwrites what the peer of a link may write: credit, cells, payload arena; sometimes
/// with values that are nearly right.
fn vandalise(random: &mut Random, memory: &Mapping) {
    let geometry = Geometry::DEFAULT;
    // Where the traffic of a test is: the first half of the ring.
    let cells = geometry.cells() as usize / 2;
    let near = geometry.cells_offset() + cells * 64;
    let word = match random.next() % 8 {
        0 => geometry.consumed_offset() + random.next() as usize % 2 * 8,
        1..=3 => geometry.cells_offset() + random.next() as usize % cells * 64,
        4..=5 => random.next() as usize % near / 8 * 8,
        6 => geometry.arena_offset() + random.next() as usize % (32 << 10) / 8 * 8,
        _ => random.next() as usize % memory.len() / 8 * 8,
    };
    let value = match random.next() % 4 {
        0 => random.next(),
        1 => random.next() % 600,
        2 => (random.next() % 8) | ((random.next() % 4) << 56) | (random.next() % 64) << 48,
        _ => (random.next() % (64 << 10)) | ((random.next() % (1 << 15)) << 38),
    };
    let _ = memory.store_u64(word.min(memory.len() - 8), value);
    if random.next().is_multiple_of(64) {
        let mut junk = [0; 512];
        junk.fill_with(|| random.next() as u8);
        let _ = memory.copy_in(random.next() as usize % near, &junk);
    }
}

/// A peer that writes anything, at any time, can only end its own link.
#[test]
fn a_hostile_peer_harms_only_its_own_link() {
    let (mut good, mut good_peer) = pair();
    let mut faults = 0;
    for round in 0..300_u64 {
        // At any time; or between two steps of the victim, so that what comes of it is the same on
        // every machine.
        let is_any_time = round % 2 == 1;
        let (mut victim, mut hostile) = pair();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let (to_victim, from_victim) = (&hostile.sends_to, &victim.sends_to);
            let somewhere = move |random: &mut Random| {
                let memory = [to_victim, from_victim][random.next() as usize % 2];
                vandalise(random, memory);
            };
            let mut vandal = Random(round * 2 + 1);
            if is_any_time {
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        somewhere(&mut vandal);
                        // Some of the time the victim is left in peace, so that it gets far.
                        for _ in 0..round % 50 {
                            std::hint::spin_loop();
                        }
                    }
                });
            }
            let mut random = Random(round + 1_000_003);
            let mut fault = None;
            for number in 0..200_usize {
                let data = bytes(number, random.next() as usize % 400);
                let metadata = bytes(number, random.next() as usize % 61);
                // The peer also sends, now and then, what a good one would.
                let _ = hostile.link.transmit.try_send(
                    &header(metadata.len(), data.len()),
                    &metadata,
                    &[Part::Bytes(&data)],
                );
                let sent = victim.link.transmit.try_send(
                    &header(metadata.len(), data.len()),
                    &metadata,
                    &[Part::Bytes(&data)],
                );
                if !is_any_time {
                    (0..round % 10).for_each(|_| somewhere(&mut random));
                }
                match receive(&mut victim.link) {
                    Ok(Some(Packet {
                        header,
                        metadata,
                        data,
                    })) => {
                        assert_eq!(data.len(), header.length_bytes as usize);
                        assert!(metadata.len() <= 60);
                        assert!(metadata.len() + data.len() <= PAYLOAD_MAX_DEFAULT_BYTES);
                        assert_eq!(fault, None, "nothing comes after a fault");
                    }
                    Ok(None) => victim.link.receive.return_credit(),
                    Err(found) => {
                        // The first fault stays the fault.
                        assert_eq!(*fault.get_or_insert(found), found);
                        assert!(victim.link.receive.is_pending());
                    }
                }
                let cheated = victim.link.transmit.fault();
                let gone = (sent == Err(Unsent::Gone)).then_some(LinkFault::Credit);
                assert_eq!(cheated, gone, "told by the end that it was done to");
                // The same thread's other link is as good as ever.
                send(&mut good, &metadata, &data).unwrap();
                let packet = receive(&mut good_peer.link).unwrap().unwrap();
                assert_eq!((packet.metadata, packet.data), (metadata, data));
                good_peer.link.receive.return_credit();
            }
            faults += usize::from(fault.is_some() && !is_any_time);
            stop.store(true, Ordering::Relaxed);
        });
    }
    assert!(faults > 30, "the hostile peer was hardly noticed: {faults}");
}
