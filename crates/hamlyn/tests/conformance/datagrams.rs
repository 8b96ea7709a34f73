//! The simple datagram protocol (`Hamlyn 3.3`).

use hamlyn::datagram::{Receiver, Sender};
use hamlyn::engine::refusal::Refusal;
use hamlyn::{Message, ReceiveError, Ticket, Wait};

use crate::low_level::{send, target};
use crate::peer::{Peer, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

fn inbox(peer: &Peer, bytes: u32) -> Receiver<Host> {
    peer.with(|manager| Receiver::new(manager, bytes).unwrap())
}

fn outbox(peer: &Peer, ticket: &Ticket) -> Sender<Host> {
    peer.with(|manager| Sender::grow(manager, ticket, GROW).unwrap())
}

fn refused(peer: &Peer, inbox: &Receiver<Host>, reason: Refusal, count: u64) {
    peer.until("a refusal", |manager, _| {
        manager.session().poll();
        let refusals = inbox.info().unwrap().refusals;
        assert!(refusals.count(reason) <= count, "{refusals:?}");
        (refusals.count(reason) == count).then_some(())
    });
}

/// Waits for a datagram and copies it; the receiver is not ready afterwards.
fn next(peer: &Peer, inbox: &mut Receiver<Host>) -> (u32, Vec<u8>, Option<Ticket>) {
    peer.receive("a datagram", |_, wait| {
        let found = inbox.recv(wait)?;
        Ok(found.map(|datagram| {
            let found = (
                datagram.offset(),
                datagram.to_vec(),
                datagram.reply_ticket(),
            );
            datagram.keep();
            found
        }))
    })
}

pub(crate) fn datagrams_arrive_and_a_receiver_must_be_ready(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer, 100);
            let error = peer.with(|_| inbox.recv(Wait::Poll).map(|_| ()).unwrap_err());
            assert_eq!(error, ReceiveError::NotReady);
            peer.put_ticket("ticket", &inbox.ticket());
            refused(peer, &inbox, Refusal::EntrySpent, 1);
            inbox.ready();
            inbox.ready();
            assert!(inbox.is_ready());
            let none = peer.with(|_| inbox.recv(Wait::Poll).map(|d| d.is_some()));
            assert_eq!(none, Ok(false));
            peer.put("ready", &[]);
            assert_eq!(next(peer, &mut inbox), (90, vec![1; 10], None));
            assert!(!inbox.is_ready());
            peer.put("had it", &[]);
            refused(peer, &inbox, Refusal::EntrySpent, 2);
            // What came stays until the receiver is made ready again.
            assert_eq!(inbox.latest().unwrap(), [1; 10]);
            inbox.ready();
            assert!(inbox.latest().is_none());
            peer.put("ready again", &[]);
            assert_eq!(next(peer, &mut inbox), (0, vec![], None));
        },
        &|peer| {
            let outbox = outbox(peer, &peer.get_ticket("ticket"));
            let send = |offset, data: &[u8]| {
                peer.send(|_, _| outbox.send_to(offset, data, None, GROW))
                    .unwrap();
            };
            send(0, b"too early");
            peer.get("ready");
            send(90, &[1; 10]);
            peer.keep_order("had it");
            send(0, b"too late");
            peer.get("ready again");
            send(0, b"");
            let beyond = peer.with(|_| outbox.send_to(91, &[1; 10], None, GROW));
            assert!(beyond.is_err());
        },
    ]);
}

pub(crate) fn a_reply_ticket_makes_a_round_trip(world: &World) {
    const ROUNDS: u32 = 200;
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer, 5000);
            inbox.ready();
            peer.put_ticket("ticket", &inbox.ticket());
            for _ in 0..ROUNDS {
                let (offset, data, reply) = next(peer, &mut inbox);
                inbox.ready();
                let outbox = outbox(peer, &reply.unwrap());
                peer.send(|_, _| outbox.send_to(offset, &data, None, GROW))
                    .unwrap();
            }
        },
        &|peer| {
            let outbox = outbox(peer, &peer.get_ticket("ticket"));
            let mut answers = inbox(peer, 5000);
            for round in 0..ROUNDS {
                answers.ready();
                let reply = answers.ticket();
                let data = pattern(round.into(), (round * 23) as usize % 4700);
                let offset = round % 300;
                peer.send(|_, _| outbox.send_to(offset, &data, Some(&reply), GROW))
                    .unwrap();
                assert_eq!(next(peer, &mut answers), (offset, data, None));
            }
        },
    ]);
}

pub(crate) fn datagrams_of_many_packets_arrive(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer, 2 << 20);
            peer.put_ticket("ticket", &inbox.ticket());
            for round in 0..5 {
                inbox.ready();
                peer.put(&format!("ready {round}"), &[]);
                let (offset, data, _) = next(peer, &mut inbox);
                assert_eq!(offset, round as u32);
                assert!(data == pattern(round, (1 << 20) + round as usize));
            }
        },
        &|peer| {
            let outbox = outbox(peer, &peer.get_ticket("ticket"));
            for round in 0..5 {
                peer.get(&format!("ready {round}"));
                let data = pattern(round, (1 << 20) + round as usize);
                peer.send(|_, _| outbox.send_to(round as u32, &data, None, GROW))
                    .unwrap();
            }
        },
    ]);
}

pub(crate) fn a_revoked_datagram_ticket_is_worthless(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer, 64);
            inbox.ready();
            peer.put_ticket("old", &inbox.ticket());
            peer.get("has it");
            peer.with(|_| inbox.revoke().unwrap());
            peer.put_ticket("new", &inbox.ticket());
            assert_eq!(next(peer, &mut inbox).1, b"new");
            refused(peer, &inbox, Refusal::BadEntryKey, 1);
        },
        &|peer| {
            let old = outbox(peer, &peer.get_ticket("old"));
            peer.put("has it", &[]);
            let new = outbox(peer, &peer.get_ticket("new"));
            for (outbox, data) in [(old, b"old"), (new, b"new")] {
                peer.send(|_, _| outbox.send(data, GROW)).unwrap();
            }
        },
    ]);
}

/// Metadata that no correct sender writes, sent through the raw layer.
fn malformed() -> Vec<Vec<u8>> {
    let word = |offset: u32, length: u32| [offset.to_le_bytes(), length.to_le_bytes()].concat();
    let mut damaged_reply = word(0, 3);
    damaged_reply.resize(60, 0xAB);
    vec![
        vec![],
        vec![0],
        vec![0; 7],
        vec![0; 9],
        vec![0; 59],
        word(0, 65),
        word(65, 0),
        word(1, u32::MAX),
        word(u32::MAX, 1),
        word(u32::MAX, u32::MAX),
        damaged_reply,
    ]
}

pub(crate) fn malformed_datagrams_are_named_and_harmless(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer, 64);
            peer.put_ticket("ticket", &inbox.ticket());
            for number in 0..malformed().len() {
                inbox.ready();
                peer.put(&format!("ready {number}"), &[]);
                let error = peer.until("a malformed datagram", |_, wait| match inbox.recv(wait) {
                    Ok(None) => None,
                    Ok(Some(datagram)) => panic!("{number}: {datagram:?}"),
                    Err(error) => Some(error),
                });
                assert!(
                    matches!(
                        error,
                        ReceiveError::Malformed {
                            protocol: "datagram",
                            ..
                        }
                    ),
                    "{number}: {error}"
                );
            }
            inbox.ready();
            peer.put("ready", &[]);
            assert_eq!(next(peer, &mut inbox).1, b"fine");
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let raw = target(peer, &ticket);
            for (number, metadata) in malformed().iter().enumerate() {
                peer.get(&format!("ready {number}"));
                send(peer, &raw, &Message::new(b"abc").metadata(metadata));
            }
            peer.get("ready");
            let outbox = outbox(peer, &ticket);
            peer.send(|_, _| outbox.send_to(4, b"fine", None, GROW))
                .unwrap();
        },
    ]);
}

/// The first part of a message of two packets, and no more: as if its sender had died.
pub(crate) fn a_datagram_cut_in_the_middle_is_forgotten_on_reset(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = inbox(peer, 100_000);
            inbox.ready();
            peer.put_ticket("ticket", &inbox.ticket());
            // What is sent after the cut comes after it.
            let mut mark = self::inbox(peer, 64);
            mark.ready();
            peer.get("linked");
            peer.linked();
            let before = peer.activity();
            peer.put_ticket("mark", &mark.ticket());
            assert_eq!(next(peer, &mut mark).1, vec![3; 8]);
            peer.taken(before, 2);
            let none = peer.with(|_| inbox.recv(Wait::Poll).map(|d| d.is_some()));
            assert_eq!(none, Ok(false));
            peer.with(|_| inbox.reset());
            peer.put("reset", &[]);
            assert_eq!(next(peer, &mut inbox).1, vec![2; 80_000]);
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            // The share of a message that has a second packet: the first has delta 1.
            let (first, _) = hamlyn::engine::counting::Share::whole(ticket.counting)
                .take(1)
                .unwrap();
            let word = 80_000_u64 << 32;
            let raw = target(peer, &ticket);
            peer.put("linked", &[]);
            let mark = outbox(peer, &peer.get_ticket("mark"));
            let metadata = word.to_le_bytes();
            let message = Message::new(&[1; 1000]).metadata(&metadata).share(first);
            send(peer, &raw, &message);
            peer.send(|_, _| mark.send(&[3; 8], GROW)).unwrap();
            peer.get("reset");
            let outbox = outbox(peer, &ticket);
            peer.send(|_, _| outbox.send(&[2; 80_000], GROW)).unwrap();
        },
    ]);
}
