//! Tagged remote write (`Hamlyn 3.3`).

use std::collections::BTreeSet;

use hamlyn::engine::refusal::Refusal;
use hamlyn::tagged_write::{Receiver, Sender};
use hamlyn::{ReceiveError, SendError, Ticket, Wait, datagram};

use crate::low_level::packet_bytes;
use crate::peer::{Peer, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

fn receiver(peer: &Peer, bytes: u64, tags: usize) -> Receiver<Host> {
    peer.with(|manager| Receiver::new(manager, bytes, tags).unwrap())
}

fn sender(peer: &Peer, ticket: &Ticket) -> Sender<Host> {
    peer.with(|manager| Sender::grow(manager, ticket, GROW).unwrap())
}

fn send(peer: &Peer, sender: &Sender<Host>, offset: u64, data: &[u8], tag: u64) {
    peer.send(|_, _| sender.send(offset, data, tag, GROW))
        .unwrap();
}

pub(crate) fn tags_arrive_with_their_data(world: &World) {
    const TAGS: u64 = 500;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 100_000, 1024);
            peer.put_ticket("ticket", &receiver.ticket());
            assert!(receiver.ticket_for(99_999, 2).is_err());
            let mut tags = Vec::new();
            for _ in 0..TAGS {
                let tag = peer.receive("a tag", |_, wait| receiver.get_tag(wait));
                let mut bytes = vec![0; 16];
                receiver.area().read_at(tag * 16, &mut bytes).unwrap();
                assert_eq!(bytes, pattern(tag, 16));
                tags.push(tag);
            }
            assert_eq!(peer.in_order(tags), (0..TAGS).collect::<Vec<_>>());
            assert_eq!(receiver.lost(), 0);
            peer.put("had them", &[]);
            let whole = peer.receive("a tag", |_, wait| receiver.get_tag(wait));
            assert_eq!(whole, u64::MAX);
            let sent = peer.get("length");
            let sent = usize::from_le_bytes(sent.try_into().unwrap());
            let mut bytes = vec![0; sent];
            receiver.area().read_at(0, &mut bytes).unwrap();
            assert!(bytes == pattern(9, sent));
        },
        &|peer| {
            let sender = sender(peer, &peer.get_ticket("ticket"));
            for tag in 0..TAGS {
                send(peer, &sender, tag * 16, &pattern(tag, 16), tag);
            }
            peer.get("had them");
            let refused = |offset, length| {
                let data = vec![0; length];
                peer.with(|_| sender.send(offset, &data, 0, GROW))
                    .unwrap_err()
            };
            let packet = packet_bytes(&refused(0, 100_000));
            peer.put("length", &packet.to_le_bytes());
            send(peer, &sender, 0, &pattern(9, packet), u64::MAX);
            // More than a packet is refused, and so is what lies outside.
            for (offset, length) in [(0, packet + 1), (99_999, 2)] {
                let error = refused(offset, length);
                assert!(
                    matches!(error, SendError::Refused(_) | SendError::OutsideTicket(_)),
                    "{error}"
                );
            }
        },
    ]);
}

pub(crate) fn a_specific_tag_is_found_and_the_others_wait(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 64, 16);
            peer.put_ticket("ticket", &receiver.ticket());
            let get = |receiver: &mut Receiver<Host>, tag| {
                peer.receive("that tag", |_, wait| receiver.get_specific_tag(tag, wait))
            };
            assert_eq!(get(&mut receiver, 3), 3);
            assert_eq!(get(&mut receiver, 2), 2);
            let none = peer.with(|_| receiver.get_specific_tag(9, Wait::Poll));
            assert_eq!(none, Ok(None));
            let others = [1, 4, 1].map(|_| peer.receive("a tag", |_, wait| receiver.get_tag(wait)));
            let others = peer.in_order(others.into());
            assert_eq!(others, peer.in_order(vec![1, 4, 1]));
            let none = peer.with(|_| receiver.get_tag(Wait::millis(5)));
            assert_eq!(none, Ok(None));
        },
        &|peer| {
            let sender = sender(peer, &peer.get_ticket("ticket"));
            for tag in [1, 2, 3, 4, 1] {
                send(peer, &sender, 0, &[], tag);
            }
        },
    ]);
}

pub(crate) fn an_overrun_is_counted_and_hurts_no_other_receiver(world: &World) {
    const SENT: u64 = 1000;
    world.run(&[
        &|peer| {
            let mut flooded = receiver(peer, 64, 16);
            let mut other = receiver(peer, 64, 16);
            let mut inbox = peer.with(|manager| datagram::Receiver::new(manager, 64).unwrap());
            inbox.ready();
            peer.put_ticket("inbox", &inbox.ticket());
            peer.get("linked");
            peer.linked();
            let before = peer.activity();
            peer.put_ticket("flooded", &flooded.ticket());
            peer.put_ticket("other", &other.ticket());
            // Sent last, by the same sender, in order.
            let last = peer.receive("the other's tag", |_, wait| other.get_tag(wait));
            assert_eq!(last, 5);
            let bytes = peer.receive("a datagram", |_, wait| {
                Ok(inbox.recv(wait)?.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(bytes, b"unharmed");
            peer.taken(before, SENT + 2);
            let overrun = peer.with(|_| flooded.get_tag(Wait::Poll)).unwrap_err();
            let ReceiveError::Overrun(overrun) = overrun else {
                panic!("{overrun}")
            };
            assert_eq!(overrun.lost, SENT - 16);
            assert_eq!(flooded.lost(), SENT - 16);
            let tags: Vec<_> = (0..16)
                .map(|_| {
                    let tag = peer.with(|_| flooded.get_tag(Wait::Poll));
                    tag.unwrap().unwrap()
                })
                .collect();
            if peer.is_in_order {
                assert_eq!(tags, (SENT - 16..SENT).collect::<Vec<_>>());
            } else {
                // The latest to come, whichever those are.
                let different: BTreeSet<_> = tags.into_iter().collect();
                assert_eq!(different.len(), 16);
                assert!(different.last() < Some(&SENT));
            }
        },
        &|peer| {
            let inbox = peer.get_ticket("inbox");
            let outbox =
                peer.with(|manager| datagram::Sender::grow(manager, &inbox, GROW).unwrap());
            peer.put("linked", &[]);
            let flooded = sender(peer, &peer.get_ticket("flooded"));
            let other = sender(peer, &peer.get_ticket("other"));
            for tag in 0..SENT {
                send(peer, &flooded, 0, &[], tag);
            }
            send(peer, &other, 0, &[], 5);
            peer.send(|_, _| outbox.send(b"unharmed", GROW)).unwrap();
        },
    ]);
}

pub(crate) fn tags_passed_over_without_room_are_counted(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 64, 4);
            peer.put_ticket("ticket", &receiver.ticket());
            peer.get("linked");
            peer.linked();
            let mut overruns = 0;
            // One at a time, so that the queue itself is never overrun.
            for tag in 0..6_u64 {
                let before = peer.activity();
                peer.put(&format!("send {tag}"), &[]);
                peer.get(&format!("sent {tag}"));
                peer.taken(before, 1);
                let found = peer.with(|_| receiver.get_specific_tag(77, Wait::Poll));
                match found {
                    Ok(None) => {}
                    Err(ReceiveError::Overrun(overrun)) => overruns += overrun.lost,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((overruns, receiver.lost()), (2, 2));
            for expected in 2..6 {
                let tag = peer.with(|_| receiver.get_tag(Wait::Poll));
                assert_eq!(tag, Ok(Some(expected)));
            }
        },
        &|peer| {
            let sender = sender(peer, &peer.get_ticket("ticket"));
            peer.put("linked", &[]);
            for tag in 0..6 {
                peer.get(&format!("send {tag}"));
                send(peer, &sender, 0, &[], tag);
                peer.flush();
                peer.put(&format!("sent {tag}"), &[]);
            }
        },
    ]);
}

pub(crate) fn a_revoked_tagged_ticket_is_worthless(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, 64, 16);
            peer.put_ticket("old", &receiver.ticket());
            peer.get("has it");
            peer.with(|_| receiver.revoke().unwrap());
            peer.put_ticket("new", &receiver.ticket_for(8, 8).unwrap());
            let tag = peer.receive("a tag", |_, wait| receiver.get_tag(wait));
            assert_eq!(tag, 2);
            peer.until("the refusal", |manager, _| {
                if !peer.is_in_order {
                    manager.session().poll();
                }
                let refused = receiver.info().unwrap().refusals;
                let refused = refused.count(Refusal::BadKey);
                assert!(
                    refused == 1 || refused == 0 && !peer.is_in_order,
                    "{refused}"
                );
                (refused == 1).then_some(())
            });
            let mut bytes = [0; 10];
            receiver.area().read_at(0, &mut bytes).unwrap();
            assert_eq!(&bytes, b"\0\0\0\0\0\0\0\0xy");
            peer.with(|_| drop(receiver));
        },
        &|peer| {
            let old = sender(peer, &peer.get_ticket("old"));
            peer.put("has it", &[]);
            let new = sender(peer, &peer.get_ticket("new"));
            send(peer, &old, 0, b"old", 1);
            send(peer, &new, 0, b"xy", 2);
        },
    ]);
}
