//! The simple datagram protocol (`Hamlyn 3.3`).

use hamlyn::datagram::{Receiver, Sender};
use hamlyn::engine::refusal::Refusal;
use hamlyn::{Message, ReceiveError, Ticket, Wait};

use crate::low_level::{send, target};
use crate::party::{Party, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

fn inbox(party: &Party, bytes: u32) -> Receiver<Host> {
    party.with(|manager| Receiver::new(manager, bytes).unwrap())
}

fn outbox(party: &Party, ticket: &Ticket) -> Sender<Host> {
    party.with(|manager| Sender::grow(manager, ticket, GROW).unwrap())
}

fn refused(party: &Party, inbox: &Receiver<Host>, reason: Refusal, count: u64) {
    party.until("a refusal", |manager, _| {
        manager.interface().poll();
        let refusals = inbox.info().unwrap().refusals;
        assert!(refusals.count(reason) <= count, "{refusals:?}");
        (refusals.count(reason) == count).then_some(())
    });
}

/// Waits for a datagram and copies it; the receiver is not ready afterwards.
fn next(party: &Party, inbox: &mut Receiver<Host>) -> (u32, Vec<u8>, Option<Ticket>) {
    party.receive("a datagram", |_, wait| {
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
        &|party| {
            let mut inbox = inbox(party, 100);
            let error = party.with(|_| inbox.recv(Wait::Poll).map(|_| ()).unwrap_err());
            assert_eq!(error, ReceiveError::NotReady);
            party.tell_ticket("ticket", &inbox.ticket());
            refused(party, &inbox, Refusal::EntrySpent, 1);
            inbox.ready();
            inbox.ready();
            assert!(inbox.is_ready());
            let none = party.with(|_| inbox.recv(Wait::Poll).map(|d| d.is_some()));
            assert_eq!(none, Ok(false));
            party.tell("ready", &[]);
            assert_eq!(next(party, &mut inbox), (90, vec![1; 10], None));
            assert!(!inbox.is_ready());
            party.tell("had it", &[]);
            refused(party, &inbox, Refusal::EntrySpent, 2);
            // What came stays until the receiver is made ready again.
            assert_eq!(inbox.latest().unwrap(), [1; 10]);
            inbox.ready();
            assert!(inbox.latest().is_none());
            party.tell("ready again", &[]);
            assert_eq!(next(party, &mut inbox), (0, vec![], None));
        },
        &|party| {
            let outbox = outbox(party, &party.hear_ticket("ticket"));
            let send = |offset, data: &[u8]| {
                party
                    .send(|_, _| outbox.send_to(offset, data, None, GROW))
                    .unwrap();
            };
            send(0, b"too early");
            party.hear("ready");
            send(90, &[1; 10]);
            party.keep_order("had it");
            send(0, b"too late");
            party.hear("ready again");
            send(0, b"");
            let beyond = party.with(|_| outbox.send_to(91, &[1; 10], None, GROW));
            assert!(beyond.is_err());
        },
    ]);
}

pub(crate) fn a_reply_ticket_makes_a_round_trip(world: &World) {
    const ROUNDS: u32 = 200;
    world.run(&[
        &|party| {
            let mut inbox = inbox(party, 5000);
            inbox.ready();
            party.tell_ticket("ticket", &inbox.ticket());
            for _ in 0..ROUNDS {
                let (offset, data, reply) = next(party, &mut inbox);
                inbox.ready();
                let outbox = outbox(party, &reply.unwrap());
                party
                    .send(|_, _| outbox.send_to(offset, &data, None, GROW))
                    .unwrap();
            }
        },
        &|party| {
            let outbox = outbox(party, &party.hear_ticket("ticket"));
            let mut answers = inbox(party, 5000);
            for round in 0..ROUNDS {
                answers.ready();
                let reply = answers.ticket();
                let data = pattern(round.into(), (round * 23) as usize % 4700);
                let offset = round % 300;
                party
                    .send(|_, _| outbox.send_to(offset, &data, Some(&reply), GROW))
                    .unwrap();
                assert_eq!(next(party, &mut answers), (offset, data, None));
            }
        },
    ]);
}

pub(crate) fn datagrams_of_many_packets_arrive(world: &World) {
    world.run(&[
        &|party| {
            let mut inbox = inbox(party, 2 << 20);
            party.tell_ticket("ticket", &inbox.ticket());
            for round in 0..5 {
                inbox.ready();
                party.tell(&format!("ready {round}"), &[]);
                let (offset, data, _) = next(party, &mut inbox);
                assert_eq!(offset, round as u32);
                assert!(data == pattern(round, (1 << 20) + round as usize));
            }
        },
        &|party| {
            let outbox = outbox(party, &party.hear_ticket("ticket"));
            for round in 0..5 {
                party.hear(&format!("ready {round}"));
                let data = pattern(round, (1 << 20) + round as usize);
                party
                    .send(|_, _| outbox.send_to(round as u32, &data, None, GROW))
                    .unwrap();
            }
        },
    ]);
}

pub(crate) fn a_revoked_datagram_ticket_is_worthless(world: &World) {
    world.run(&[
        &|party| {
            let mut inbox = inbox(party, 64);
            inbox.ready();
            party.tell_ticket("old", &inbox.ticket());
            party.hear("has it");
            party.with(|_| inbox.revoke().unwrap());
            party.tell_ticket("new", &inbox.ticket());
            assert_eq!(next(party, &mut inbox).1, b"new");
            refused(party, &inbox, Refusal::BadEntryKey, 1);
        },
        &|party| {
            let old = outbox(party, &party.hear_ticket("old"));
            party.tell("has it", &[]);
            let new = outbox(party, &party.hear_ticket("new"));
            for (outbox, data) in [(old, b"old"), (new, b"new")] {
                party.send(|_, _| outbox.send(data, GROW)).unwrap();
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
        &|party| {
            let mut inbox = inbox(party, 64);
            party.tell_ticket("ticket", &inbox.ticket());
            for number in 0..malformed().len() {
                inbox.ready();
                party.tell(&format!("ready {number}"), &[]);
                let error = party.until("a malformed datagram", |_, wait| match inbox.recv(wait) {
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
            party.tell("ready", &[]);
            assert_eq!(next(party, &mut inbox).1, b"fine");
        },
        &|party| {
            let ticket = party.hear_ticket("ticket");
            let raw = target(party, &ticket);
            for (number, metadata) in malformed().iter().enumerate() {
                party.hear(&format!("ready {number}"));
                send(party, &raw, &Message::new(b"abc").metadata(metadata));
            }
            party.hear("ready");
            let outbox = outbox(party, &ticket);
            party
                .send(|_, _| outbox.send_to(4, b"fine", None, GROW))
                .unwrap();
        },
    ]);
}

/// The first part of a message of two packets, and no more: as if its sender had died.
pub(crate) fn a_datagram_cut_in_the_middle_is_forgotten_on_reset(world: &World) {
    world.run(&[
        &|party| {
            let mut inbox = inbox(party, 100_000);
            inbox.ready();
            party.tell_ticket("ticket", &inbox.ticket());
            // What is sent after the cut comes after it.
            let mut mark = self::inbox(party, 64);
            mark.ready();
            party.hear("linked");
            party.linked();
            let before = party.activity();
            party.tell_ticket("mark", &mark.ticket());
            assert_eq!(next(party, &mut mark).1, vec![3; 8]);
            party.taken(before, 2);
            let none = party.with(|_| inbox.recv(Wait::Poll).map(|d| d.is_some()));
            assert_eq!(none, Ok(false));
            party.with(|_| inbox.reset());
            party.tell("reset", &[]);
            assert_eq!(next(party, &mut inbox).1, vec![2; 80_000]);
        },
        &|party| {
            let ticket = party.hear_ticket("ticket");
            // The share of a message that has a second packet: the first has delta 1.
            let (first, _) = hamlyn::engine::counting::Share::whole(ticket.counting)
                .take(1)
                .unwrap();
            let word = 80_000_u64 << 32;
            let raw = target(party, &ticket);
            party.tell("linked", &[]);
            let mark = outbox(party, &party.hear_ticket("mark"));
            let metadata = word.to_le_bytes();
            let message = Message::new(&[1; 1000]).metadata(&metadata).share(first);
            send(party, &raw, &message);
            party.send(|_, _| mark.send(&[3; 8], GROW)).unwrap();
            party.hear("reset");
            let outbox = outbox(party, &ticket);
            party.send(|_, _| outbox.send(&[2; 80_000], GROW)).unwrap();
        },
    ]);
}
