//! Ports (decision 49): which messages they take, in which order they refuse, and what they keep.

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{HANDLERS_MAX, KNOCKS_MAX};
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::Notification;
use hamlyn_engine::packet::{Flags, Header, Kind, PortAddress, PortName};
use hamlyn_engine::port::{Arrived, InPlace, PortError, PortOptions, queue_of};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::Mode;

use crate::host::{PEER, Packet, VecArea};
use crate::scene::Scene;

const OPTIONS: PortOptions = PortOptions {
    key: Key::from_bits(0x00A1_1CE0),
    group: 7,
    handlers: 3,
    queue_bytes: 512,
    peer_bytes: 256,
};

fn ready() -> Receiver<VecArea> {
    let mut receiver = Receiver::new(Some(100));
    receiver.set_up(0);
    receiver
}

fn to(port: PortName) -> PortAddress {
    PortAddress {
        port,
        key: OPTIONS.key,
        group: OPTIONS.group,
    }
}

fn link(index: u32) -> LinkId {
    LinkId {
        index,
        generation: 1,
    }
}

fn send(
    receiver: &mut Receiver<VecArea>,
    from: LinkId,
    header: Header,
    data: &[u8],
) -> Result<Received, Refusal> {
    let packet = Packet::new(header, &[], data);
    receiver.receive(from, &packet.header, &packet, None)
}

/// The next message that waits: its handler and its bytes.
fn pop(receiver: &mut Receiver<VecArea>, port: PortName) -> Option<(LinkId, u16, Vec<u8>)> {
    let mut buffer = Vec::new();
    let arrived = receiver.pop_message(port, &mut buffer)?;
    buffer.truncate(arrived.length_bytes as usize);
    Some((arrived.from, arrived.handler, buffer))
}

#[test]
fn checks_happen_in_the_promised_order() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    receiver.park_port(port, true).unwrap();
    // Wrong in every way; cured one by one.
    let mut header = Header {
        metadata_index: 0,
        key: Key::from_bits(1),
        offset: u64::MAX,
        word: u64::MAX,
        flags: Flags::SILENT,
        ..to(PortName::from_bits(port.to_bits() + 1)).header(0, 0)
    };
    let mut metadata = vec![1; 8];
    let mut data = vec![7; 257];
    macro_rules! refused {
        ($reason:ident) => {{
            let packet = Packet::new(header, &metadata, &data);
            let reception = receiver.receive(PEER, &packet.header, &packet, None);
            assert_eq!(reception, Err(Refusal::$reason));
            assert_eq!(receiver.refusals().count(Refusal::$reason), 1);
        }};
    }
    receiver.tick(1_000);
    refused!(HandshakeLapsed);
    receiver.handshake(1_000);
    refused!(PortClosed);
    header.slot = to(port).header(0, 0).slot;
    refused!(BadKey);
    header.key = OPTIONS.key;
    refused!(WrongGroup);
    header.offset = OPTIONS.group;
    refused!(UnknownFlag);
    header.flags = Flags::NONE;
    refused!(BadMetadata);
    metadata.clear();
    header.metadata_index = u16::MAX;
    refused!(NoSuchHandler);
    header.word = 2;
    refused!(NotResident);
    receiver.park_port(port, false).unwrap();
    refused!(QueueFull);
    data.truncate(256);
    assert_eq!(
        send(&mut receiver, PEER, header, &data),
        Ok(Received::Queued)
    );
    let info = receiver.port_info(port).unwrap();
    assert_eq!(info.refusals.total(), 7, "{:?}", info.refusals);
    assert_eq!((info.waiting, info.waiting_bytes, info.queued), (1, 256, 1));
    assert_eq!(pop(&mut receiver, port), Some((PEER, 2, data)));
    assert_eq!(pop(&mut receiver, port), None);
}

/// A slot and a port with the same name and key are two things.
#[test]
fn a_slot_is_no_port_and_a_port_no_slot() {
    let mut scene = Scene::new(Mode::Normal);
    let options = PortOptions {
        key: Key::from_bits(crate::scene::KEY),
        group: 0,
        ..OPTIONS
    };
    let port = scene.receiver.open_port(options).unwrap();
    assert_eq!(port.to_bits(), scene.slot.to_bits());
    let address = PortAddress {
        port,
        key: options.key,
        group: 0,
    };
    let message = address.header(0, 0);
    assert_eq!(
        send(&mut scene.receiver, PEER, message, &[1; 8]),
        Ok(Received::Queued)
    );
    assert_eq!(
        scene
            .receiver
            .pop_message(port, &mut Vec::new())
            .map(|a| a.handler),
        Some(0)
    );
    let write = Header {
        kind: Kind::WRITE,
        ..message
    };
    scene.receiver.close_port(port).unwrap();
    assert_eq!(
        send(&mut scene.receiver, PEER, write, &[]),
        Ok(Received::Complete)
    );
    assert_eq!(
        send(&mut scene.receiver, PEER, message, &[]),
        Err(Refusal::PortClosed)
    );
    // Of the slot nothing was refused.
    assert_eq!(
        scene
            .receiver
            .slot_info(scene.slot)
            .unwrap()
            .refusals
            .total(),
        0
    );
}

#[test]
fn a_link_has_its_share_of_the_queue_and_no_more() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    let header = to(port).header(1, 0);
    for number in 0..6_u8 {
        let sent = send(&mut receiver, link(1), header, &[number]);
        assert_eq!(
            sent,
            if number < 4 {
                Ok(Received::Queued)
            } else {
                Err(Refusal::QueueFull)
            }
        );
    }
    for number in 10..15_u8 {
        let sent = send(&mut receiver, link(2), header, &[number]);
        assert_eq!(
            sent,
            if number < 14 {
                Ok(Received::Queued)
            } else {
                Err(Refusal::QueueFull)
            }
        );
    }
    // The queue is full, and a third link has nothing of its share.
    assert_eq!(
        send(&mut receiver, link(3), header, &[]),
        Err(Refusal::QueueFull)
    );
    for (from, number) in [
        (1, 0),
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 10),
        (2, 11),
        (2, 12),
        (2, 13),
    ] {
        assert_eq!(
            pop(&mut receiver, port),
            Some((link(from), 1, vec![number]))
        );
    }
    assert_eq!(
        send(&mut receiver, link(3), header, &[]),
        Ok(Received::Queued)
    );
}

#[test]
fn a_message_that_is_waited_for_is_handed_over() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    let other = receiver.open_port(OPTIONS).unwrap();
    let header = to(port).header(2, 0);
    let packet = Packet::new(header, &[], b"handed");
    let receive = |receiver: &mut Receiver<VecArea>, waiting| {
        receiver.receive(PEER, &packet.header, &packet, Some(queue_of(waiting)))
    };
    let notification = Notification {
        slot: packet.header.slot,
        metadata_index: u16::MAX,
        word: 2 << 32 | 6,
        from: PEER,
    };
    assert_eq!(
        receive(&mut receiver, port),
        Ok(Received::Handed(notification))
    );
    let mut bytes = vec![0; 3];
    receiver.swap_handed(&mut bytes);
    assert_eq!(&bytes[..6], b"handed");
    // Who waits for another port leaves it, and then it has its turn.
    assert_eq!(receive(&mut receiver, other), Ok(Received::Queued));
    assert_eq!(receive(&mut receiver, port), Ok(Received::Queued));
    assert_eq!(receiver.port_info(port).unwrap().waiting, 2);
}

#[test]
fn only_what_is_next_of_all_is_read_in_place() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    let address = to(port);
    let takes = |receiver: &Receiver<VecArea>, to: &PortAddress, handler| {
        receiver.takes_in_place(port, &InPlace { to, handler })
    };
    assert!(takes(&receiver, &address, 2));
    assert!(!takes(&receiver, &address, 3));
    let wrong_key = PortAddress {
        key: Key::from_bits(0),
        ..address
    };
    assert!(!takes(&receiver, &wrong_key, 0));
    assert!(!takes(
        &receiver,
        &PortAddress {
            group: 8,
            ..address
        },
        0
    ));
    let elsewhere = PortName::from_bits(port.to_bits() | 1 << 16);
    let stale = PortAddress {
        port: elsewhere,
        ..address
    };
    assert!(!takes(&receiver, &stale, 0));
    receiver.park_port(port, true).unwrap();
    assert!(!takes(&receiver, &address, 0));
    receiver.park_port(port, false).unwrap();
    send(&mut receiver, PEER, address.header(0, 0), &[]).unwrap();
    // One that came before waits.
    assert!(!takes(&receiver, &address, 0));
    pop(&mut receiver, port).unwrap();
    assert!(takes(&receiver, &address, 0));
    receiver.tick(1_000);
    assert!(!takes(&receiver, &address, 0));
    receiver.handshake(1_000);
    receiver.rekey_port(port, Key::from_bits(5)).unwrap();
    assert!(!takes(&receiver, &address, 0));
    receiver.close_port(port).unwrap();
    assert!(!takes(&receiver, &address, 0));
}

#[test]
fn a_parked_port_notes_who_knocked_once_and_boundedly() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    receiver.park_port(port, true).unwrap();
    let header = to(port).header(0, 0);
    for from in (0..1000).chain(0..10) {
        assert_eq!(
            send(&mut receiver, link(from), header, &[]),
            Err(Refusal::NotResident)
        );
    }
    for from in 0..KNOCKS_MAX as u32 {
        let knock = receiver.next_knock().unwrap();
        assert_eq!((knock.port, knock.from), (port, link(from)));
    }
    assert_eq!(receiver.next_knock(), None);
    send(&mut receiver, link(3), header, &[]).unwrap_err();
    assert_eq!(receiver.next_knock().map(|knock| knock.from), Some(link(3)));
    // A stranger who has not the key is no sender that knocks.
    let stranger = Header {
        key: Key::from_bits(9),
        ..header
    };
    assert_eq!(
        send(&mut receiver, link(4), stranger, &[]),
        Err(Refusal::BadKey)
    );
    assert_eq!(receiver.next_knock(), None);
}

#[test]
fn a_port_is_opened_within_its_limits_and_named_once() {
    let mut receiver = ready();
    for handlers in [0, HANDLERS_MAX + 1] {
        let opened = receiver.open_port(PortOptions {
            handlers,
            ..OPTIONS
        });
        assert_eq!(opened, Err(PortError::Handlers(handlers)));
    }
    for queue_bytes in [0, 63, (1 << 30) + 1] {
        let opened = receiver.open_port(PortOptions {
            queue_bytes,
            ..OPTIONS
        });
        assert_eq!(opened, Err(PortError::QueueBytes(queue_bytes)));
    }
    let opened = receiver.open_port(PortOptions {
        peer_bytes: 63,
        ..OPTIONS
    });
    assert_eq!(opened, Err(PortError::PeerBytes(63)));
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..100 {
        let port = receiver.open_port(OPTIONS).unwrap();
        assert!(names.insert(port), "{port} was given twice");
        receiver.close_port(port).unwrap();
        let refused = send(&mut receiver, PEER, to(port).header(0, 0), &[]);
        assert_eq!(refused, Err(Refusal::PortClosed));
        assert_eq!(receiver.close_port(port), Err(PortError::NotOpen(port)));
        assert_eq!(
            receiver.park_port(port, true),
            Err(PortError::NotOpen(port))
        );
        assert!(receiver.port_info(port).is_err() && receiver.next_knock().is_none());
    }
}

/// `Arrived` says the length that the packet has.
#[test]
fn a_message_waits_with_its_bytes() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    for length in [0, 1, 63, 64, 65, 200] {
        let data: Vec<u8> = (0..length).map(|at| at as u8).collect();
        send(&mut receiver, PEER, to(port).header(0, 0), &data).unwrap();
        let mut buffer = vec![0xFF; 8];
        let arrived = receiver.pop_message(port, &mut buffer);
        let expected = Arrived {
            handler: 0,
            length_bytes: length,
            from: PEER,
        };
        assert_eq!(arrived, Some(expected));
        assert_eq!(&buffer[..length as usize], &data[..]);
    }
}

#[test]
fn a_parked_port_has_no_memory_for_a_queue_once_none_waits() {
    let mut receiver = ready();
    let port = receiver.open_port(OPTIONS).unwrap();
    let held = |receiver: &Receiver<VecArea>| receiver.port_info(port).unwrap().held_bytes;
    let header = to(port).header(2, 3);
    send(&mut receiver, link(0), header, b"one").unwrap();
    assert_eq!(held(&receiver), OPTIONS.queue_bytes);
    receiver.park_port(port, true).unwrap();
    assert_eq!(held(&receiver), OPTIONS.queue_bytes, "one waits");
    let mut buffer = Vec::new();
    assert_eq!(receiver.pop_message(port, &mut buffer).unwrap().handler, 2);
    assert_eq!(&buffer[..3], b"one");
    assert_eq!(held(&receiver), 0);
    assert_eq!(
        receiver.port_info(port).unwrap().queue_bytes,
        OPTIONS.queue_bytes
    );
    receiver.park_port(port, false).unwrap();
    assert_eq!(held(&receiver), OPTIONS.queue_bytes);
    send(&mut receiver, link(0), header, b"two").unwrap();
    assert!(receiver.pop_message(port, &mut buffer).is_some());
    receiver.park_port(port, true).unwrap();
    assert_eq!(held(&receiver), 0);
}
