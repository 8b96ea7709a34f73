//! Nothing is allocated for a datagram, on its whole way: sealed, batched, sent, received, opened;
//! nor for garbage.

use std::net::UdpSocket;

use hamlyn_link::udp::batch::{Batch, Inbox};
use hamlyn_link::udp::handshake::MESSAGE_BYTES_MAX;
use hamlyn_link::udp::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use hamlyn_link::udp::protection::{Key, RxProtection, TxProtection};
use hamlyn_link::udp::socket::{Socket, SocketSettings};
use hamlyn_link::udp_endpoint::UdpEndpoint;

#[test]
fn datagrams_allocate_nothing() {
    for key in [Key::Encrypted([7; 32].into()), Key::Clear(7)] {
        for is_offloaded in [true, false] {
            let settings = SocketSettings {
                is_offloaded,
                ..SocketSettings::default()
            };
            let at = ([127, 0, 0, 1], 0).into();
            let mut one = Socket::bind(at, &settings).expect("a flow");
            let mut other = Socket::bind(at, &settings).expect("a flow");
            one.connect(other.local()).expect("connected");
            other.connect(one.local()).expect("connected");
            let stranger = Socket::bind(at, &settings).expect("a flow");
            let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
            let (mut tx_protection, mut rx_protection) =
                (TxProtection::new(&key, 1), RxProtection::new(&key, 1));
            let mut opened = 0;
            let counted = allocation_counter::measure(|| {
                for _ in 0..100 {
                    for frame_bytes in [16, 1_000, 1_000, 1_000, 40] {
                        let room = batch
                            .room(frame_bytes + tx_protection.overhead_bytes())
                            .expect("room");
                        let protected =
                            tx_protection.protect_in_place(Kind::Data, 0, room, frame_bytes);
                        let length = protected.expect("protected");
                        batch.push(length);
                    }
                    one.send(&mut batch).expect("sent");
                    one.send_one(&[0x10; 100]).expect("sent");
                    let mut came = 0;
                    while came < 6 {
                        other.receive(&mut inbox).expect("received");
                        while let Some(datagram) = inbox.next() {
                            came += 1;
                            opened += usize::from(rx_protection.unprotect(datagram.bytes).is_ok());
                        }
                    }
                    stranger.receive(&mut inbox).expect("nothing");
                }
            });
            assert_eq!((opened, counted.count_total), (500, 0));
        }
    }
    // It does count.
    assert_eq!(
        allocation_counter::measure(|| drop(Batch::new())).count_total,
        1
    );
}

/// Before anybody looks at the code of a message it costs a copy, into memory that there is.
#[test]
fn messages_of_strangers_allocate_nothing() {
    let at = ([127, 0, 0, 1], 0).into();
    let endpoint =
        UdpEndpoint::open(at, &SocketSettings::default(), || 0, Box::new(|| {})).expect("a wire");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    stranger.connect(endpoint.local()).expect("connected");
    let message = |kind, length: usize| {
        let packet_header = PacketHeader {
            kind,
            length_bytes: length as u16,
            phase: false,
            path: 0,
            association: 0,
            packet_number: 0,
        };
        let mut message = packet_header.bytes().to_vec();
        message.resize(length, 0);
        message
    };
    let messages = [
        message(Kind::Initiation, 200),
        message(Kind::Payload, MESSAGE_BYTES_MAX),
        message(Kind::Payload, MESSAGE_BYTES_MAX + 1),
        message(Kind::Response, PACKET_HEADER_BYTES),
        message(Kind::Data, 100),
    ];
    let (mut room, mut heard) = (Vec::with_capacity(MESSAGE_BYTES_MAX), 0);
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            for message in &messages {
                stranger.send(message).expect("sent");
                endpoint.poll();
            }
            // All but some wait, whatever came last.
            if heard > 50 {
                while endpoint.handshakes().next_message(&mut room).is_some() {}
            }
            heard += u32::from(endpoint.handshakes().next_message(&mut room).is_some());
        }
    });
    assert_eq!((heard > 50, counted.count_total), (true, 0));
}
