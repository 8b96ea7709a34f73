//! What one peer does to an end point has an end, wherever the peer is and whichever thread drives
//! the interface.

use hamlyn::datagram::{Receiver, Sender};
use hamlyn::{Message, ReceiveError, Wait};

use crate::World;
use crate::low_level::{send, target};

const GROW: Wait = Wait::millis(10_000);

/// What a datagram says of itself.
fn word(offset: u32, length_bytes: u32) -> [u8; 8] {
    (u64::from(offset) | u64::from(length_bytes) << 32).to_le_bytes()
}

pub(crate) fn a_silent_datagram_is_received_as_any_other(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = peer.with(|manager| Receiver::new(manager, 64).unwrap());
            peer.put_ticket("ticket", &inbox.ticket());
            for (round, expected) in [&b"not announced"[..], b"announced"]
                .into_iter()
                .enumerate()
            {
                inbox.ready();
                peer.put(&format!("ready {round}"), &[]);
                let came = peer.receive("a datagram", |_, wait| {
                    let came = inbox.recv(wait)?;
                    Ok(came.map(|datagram| datagram.to_vec()))
                });
                assert_eq!(came, expected);
            }
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let raw = target(peer, &ticket);
            peer.get("ready 0");
            let (data, says) = (b"not announced", word(8, 13));
            send(
                peer,
                &raw,
                &Message::new(data).at(8).metadata(&says).silent(),
            );
            peer.get("ready 1");
            let outbox = peer.with(|manager| Sender::grow(manager, &ticket, GROW).unwrap());
            peer.send(|_, _| outbox.send(b"announced", GROW)).unwrap();
        },
    ]);
}

pub(crate) fn a_datagram_shows_nothing_but_what_landed(world: &World) {
    /// Bytes that come, and bytes that they are said to be.
    const LIES: [(usize, u32); 4] = [(16, 40), (16, 8), (24, 40), (0, 40)];
    world.run(&[
        &|peer| {
            let mut inbox = peer.with(|manager| Receiver::new(manager, 40).unwrap());
            peer.put_ticket("ticket", &inbox.ticket());
            for (round, lie) in LIES.iter().enumerate() {
                inbox.ready();
                peer.put(&format!("ready {round}"), &[]);
                let came = peer.until("a lie", |_, wait| {
                    let came = inbox.recv(wait);
                    came.map(|came| came.map(|datagram| datagram.to_vec()))
                        .transpose()
                });
                let found = matches!(
                    came,
                    Err(ReceiveError::Malformed {
                        protocol: "datagram",
                        ..
                    })
                );
                assert!(found, "{lie:?}: {came:?}");
            }
        },
        &|peer| {
            let raw = target(peer, &peer.get_ticket("ticket"));
            for (round, (length, said)) in LIES.into_iter().enumerate() {
                peer.get(&format!("ready {round}"));
                let (data, says) = (vec![7; length], word(0, said));
                send(peer, &raw, &Message::new(&data).metadata(&says));
            }
        },
    ]);
}

pub(crate) fn an_end_point_that_is_dropped_leaves_nothing(world: &World) {
    world.alone(&|peer| {
        peer.with(|manager| {
            let open = manager.session().slots_open();
            for _ in 0..100 {
                // More than the manager has room for at a time.
                let streams = hamlyn::stream::Receiver::new(manager, Default::default()).unwrap();
                let inbox = Receiver::new(manager, 64).unwrap();
                drop((streams, inbox));
            }
            manager.poll_nowait().unwrap();
            assert_eq!(manager.session().slots_open(), open);
        });
    });
}
