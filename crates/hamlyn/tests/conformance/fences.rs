//! Fences: what was sent is in its place when they return, and what was refused is known (decision
//! 0020).

use hamlyn::datagram::{Receiver, Sender};
use hamlyn::engine::key::Key;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::{FenceError, Message, Ticket, Undelivered, Wait, tagged_write};

use crate::low_level::{RxSlot, send, sizes, target};
use crate::peer::{Peer, pattern};
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);
/// How long a peer that is stopped is waited for.
const SHORT: Wait = Wait::millis(20);

/// Fences until that is not over before it is answered.
fn fence(
    peer: &Peer,
    mut call: impl FnMut(Wait) -> Result<(), FenceError>,
) -> Result<(), FenceError> {
    peer.until("a fence", |_, wait| match call(wait) {
        Err(FenceError::TimedOut { .. }) => None,
        other => Some(other),
    })
}

pub(crate) fn fence_all(peer: &Peer) -> Result<(), FenceError> {
    peer.until("a fence", |manager, wait| match manager.fence(wait) {
        Err(FenceError::TimedOut { .. }) => None,
        other => Some(other),
    })
}

fn next_undelivered(peer: &Peer) -> Option<Undelivered> {
    peer.with(|manager| manager.session().next_undelivered())
}

/// The last packet of an error that says that so many were refused.
fn last_refused(fenced: Result<(), FenceError>, packets: u64) -> Undelivered {
    match fenced {
        Err(FenceError::Refused { count, last }) => {
            assert_eq!(count, packets, "{last}");
            last
        }
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_datagram_to_nobody_is_known_at_the_fence(world: &World) {
    world.run(&[
        &|peer| {
            let mut inbox = peer.with(|manager| Receiver::<Host>::new(manager, 100).unwrap());
            peer.put_ticket("ticket", &inbox.ticket());
            peer.get("knows");
            inbox.ready();
            peer.put("ready", &[]);
            peer.get("fenced");
            // All that a fence was waited for is here: nothing is taken in any more.
            let came = peer.receive("a datagram", |_, _| {
                let came = inbox.recv(Wait::Poll)?;
                Ok(came.map(|datagram| datagram.to_vec()))
            });
            assert_eq!(came, b"heard");
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let outbox = peer.with(|manager| Sender::grow(manager, &ticket, GROW).unwrap());
            let send = |data: &[u8]| {
                peer.send(|_, _| outbox.send_to(7, data, None, GROW))
                    .unwrap();
            };
            assert_eq!(fence(peer, |wait| outbox.fence(wait)), Ok(()));
            for data in [&b"too early"[..], &[1; 16]] {
                send(data);
                let last = last_refused(fence(peer, |wait| outbox.fence(wait)), 1);
                assert_eq!(last.to, Some(ticket.destination));
                assert_eq!((last.slot, last.offset), (ticket.slot, ticket.base + 7));
                assert_eq!(last.length_bytes, data.len() as u32);
                assert_eq!(last.reason, Return::Refused(Refusal::EntrySpent));
                // Told once by fences, and once each.
                assert_eq!(fence(peer, |wait| outbox.fence(wait)), Ok(()));
                assert_eq!(next_undelivered(peer), Some(last));
                assert_eq!(next_undelivered(peer), None);
            }
            peer.put("knows", &[]);
            peer.get("ready");
            send(b"heard");
            assert_eq!(fence_all(peer), Ok(()));
            peer.put("fenced", &[]);
        },
    ]);
}

pub(crate) fn a_refused_write_is_known_at_the_fence(world: &World) {
    world.run(&[
        &|peer| {
            let tags = peer
                .with(|manager| tagged_write::Receiver::<Host>::new(manager, 1000, 64).unwrap());
            peer.put_ticket("ticket", &tags.ticket());
            peer.get("done");
            assert_eq!(tags.info().unwrap().refusals.total(), 4);
        },
        &|peer| {
            let honest = peer.get_ticket("ticket");
            let wrong_key = Ticket {
                key: Key::from_bits(!honest.key.to_bits()),
                ..honest
            };
            let beyond = Ticket {
                length_bytes: honest.length_bytes + 1,
                ..honest
            };
            let sender = |ticket: &Ticket| {
                peer.with(|manager| tagged_write::Sender::grow(manager, ticket, GROW).unwrap())
            };
            let good = sender(&honest);
            let mut undelivered = Vec::new();
            let cases = [
                (wrong_key, 0, vec![1; 16], Refusal::BadKey),
                (wrong_key, 3, vec![1; 40], Refusal::BadKey),
                (beyond, 985, vec![1; 16], Refusal::OutOfBounds),
                (beyond, 1, vec![1; 1000], Refusal::OutOfBounds),
            ];
            for (tag, (ticket, offset, data, reason)) in cases.into_iter().enumerate() {
                let bad = sender(&ticket);
                let tag = tag as u64;
                peer.send(|_, _| good.send(0, b"fine", tag, GROW)).unwrap();
                peer.send(|_, _| bad.send(offset, &data, tag, GROW))
                    .unwrap();
                peer.send(|_, _| good.send(0, b"fine", tag, GROW)).unwrap();
                // Either end point sent it to the same interface.
                let fenced = match tag % 2 {
                    0 => fence(peer, |wait| good.fence(wait)),
                    _ => fence_all(peer),
                };
                let last = last_refused(fenced, 1);
                assert_eq!((last.word, last.offset), (tag, offset));
                assert_eq!(last.reason, Return::Refused(reason));
                undelivered.push(last);
            }
            // They were kept.
            for last in undelivered {
                assert_eq!(next_undelivered(peer), Some(last));
            }
            assert_eq!(next_undelivered(peer), None);
            assert_eq!(fence_all(peer), Ok(()));
            peer.put("done", &[]);
        },
    ]);
}

pub(crate) fn what_was_sent_before_a_fence_is_in_its_place(world: &World) {
    /// Bytes for a message.
    const ROOM: u64 = 160 << 10;
    const ROUNDS: u64 = 3;
    let sizes = || {
        let sizes = sizes().into_iter().filter(|&size| size as u64 <= ROOM);
        sizes
            .enumerate()
            .map(|(number, size)| (number as u64, size))
    };
    world.run(&[
        &|peer| {
            let count = sizes().count() as u64;
            let mut rx_slot = RxSlot::new(peer, ROOM * count, |slot| slot.entries(count as usize));
            for (number, _) in sizes() {
                let ticket = rx_slot
                    .slot
                    .ticket(number as u16, number * ROOM, ROOM)
                    .unwrap();
                peer.put_ticket(&format!("ticket {number}"), &ticket);
            }
            for round in 0..ROUNDS {
                peer.get(&format!("fenced {round}"));
                for (number, size) in sizes() {
                    let bytes = rx_slot.bytes(number * ROOM, size);
                    assert!(bytes == pattern(round * 1000 + number, size), "{size}");
                }
                // Announced, too.
                for _ in sizes() {
                    let told = peer.with(|manager| manager.session().rcv(&mut rx_slot.queue));
                    assert!(told.unwrap().is_some());
                }
                peer.put(&format!("seen {round}"), &[]);
            }
        },
        &|peer| {
            let targets: Vec<_> = sizes()
                .map(|(number, _)| target(peer, &peer.get_ticket(&format!("ticket {number}"))))
                .collect();
            for round in 0..ROUNDS {
                for (number, size) in sizes() {
                    let data = pattern(round * 1000 + number, size);
                    send(peer, &targets[number as usize], &Message::new(&data));
                }
                assert_eq!(fence_all(peer), Ok(()));
                peer.put(&format!("fenced {round}"), &[]);
                peer.get(&format!("seen {round}"));
            }
        },
    ]);
}

pub(crate) fn more_refusals_than_are_kept_are_counted(world: &World) {
    /// More than are kept of a link.
    const SENT: u64 = 1_500;
    world.run(&[
        &|peer| {
            let inbox = peer.with(|manager| Receiver::<Host>::new(manager, 64).unwrap());
            peer.put_ticket("ticket", &inbox.ticket());
            peer.get("done");
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let outbox = peer.with(|manager| Sender::grow(manager, &ticket, GROW).unwrap());
            for number in 0..SENT {
                let offset = (number % 40) as u32;
                peer.send(|_, _| outbox.send_to(offset, b"nobody", None, GROW))
                    .unwrap();
            }
            last_refused(fence(peer, |wait| outbox.fence(wait)), SENT);
            let mut fetched = 0;
            while next_undelivered(peer).is_some() {
                fetched += 1;
            }
            assert!((1..SENT).contains(&fetched), "{fetched}");
            let forgotten = peer.with(|manager| manager.session().undelivered_forgotten());
            assert_eq!(fetched + forgotten, SENT);
            peer.put("done", &[]);
        },
    ]);
}

pub(crate) fn records_are_in_their_place_after_a_fence(world: &World) {
    const RECORDS: usize = 40;
    let length = |number: usize| number * 97 % 3000;
    world.run(&[
        &|peer| {
            let mut stream = peer.with(|manager| {
                hamlyn::stream::Receiver::<Host>::new(manager, Default::default()).unwrap()
            });
            peer.put("seed", &stream.make_seed().to_bytes());
            // Only the interface takes anything until then, but for what it needs to know who
            // sends.
            for number in 0..RECORDS {
                let record = peer.receive("a record", |_, wait| {
                    Ok(stream.recv(wait)?.map(|record| record.to_vec()))
                });
                assert_eq!(record, pattern(number as u64, length(number)));
            }
            peer.get("fenced");
        },
        &|peer| {
            let seed = hamlyn::stream::StreamSeed::from_bytes(&peer.get("seed")).unwrap();
            let mut stream = peer.with(|manager| {
                hamlyn::stream::Sender::<Host>::grow(manager, &seed, GROW).unwrap()
            });
            for number in 0..RECORDS {
                let data = pattern(number as u64, length(number));
                peer.send(|_, wait| stream.send(&data, wait)).unwrap();
            }
            assert_eq!(fence(peer, |wait| stream.fence(wait)), Ok(()));
            peer.put("fenced", &[]);
        },
    ]);
}

pub(crate) fn a_stopped_peer_is_named_and_no_other_waits(world: &World) {
    world.run(&[
        // It takes nothing until it is told to.
        &|peer| {
            let rx_slot = RxSlot::new(peer, 64, |slot| slot);
            peer.put_ticket("stopped", &rx_slot.slot.fast_ticket(0, 64).unwrap());
            peer.get_without_polling("go on");
            peer.get("all fenced");
            rx_slot.refused(peer, Refusal::BadKey, 0);
        },
        &|peer| {
            let rx_slot = RxSlot::new(peer, 64, |slot| slot);
            peer.put_ticket("live", &rx_slot.slot.fast_ticket(0, 64).unwrap());
            peer.get("all fenced");
            assert_eq!(rx_slot.bytes(0, 16), [5; 16]);
        },
        &|peer| {
            let stopped_ticket = peer.get_ticket("stopped");
            let stopped = target(peer, &stopped_ticket);
            let live = target(peer, &peer.get_ticket("live"));
            let message = Message::new(&[5; 16]);
            send(peer, &stopped, &message);
            send(peer, &live, &message);
            let fence_live = || {
                fence(peer, |wait| {
                    peer.manager.session().fence_link(live.link(), wait)
                })
            };
            assert_eq!(fence_live(), Ok(()));
            if !peer.receives_unasked() {
                let stopped_peer = stopped_ticket.destination;
                let timed_out = Err(FenceError::TimedOut { peer: stopped_peer });
                let fence_stopped = |wait| peer.manager.session().fence_link(stopped.link(), wait);
                for wait in [Wait::Poll, SHORT] {
                    assert_eq!(fence_stopped(wait), timed_out);
                    assert_eq!(peer.manager.fence(wait), timed_out);
                }
                send(peer, &live, &message);
                assert_eq!(fence_live(), Ok(()));
            }
            peer.put("go on", &[]);
            assert_eq!(fence_all(peer), Ok(()));
            peer.put("all fenced", &[]);
        },
    ]);
}

/// A peer that has taken all may end its link before it sees that a fence asks. What it refused
/// before is told, once.
pub(crate) fn what_was_taken_before_the_end_is_fenced(world: &World) {
    /// In the line, in one cell and in several, and in the arena where packets are that long.
    const LENGTHS: [usize; 6] = [0, 8, 16, 40, 300, 1_000];
    const ROOM: usize = 1_000;
    world.run(&[
        &|peer| {
            let mut tags = peer.with(|manager| {
                let room = (ROOM * LENGTHS.len()) as u64;
                tagged_write::Receiver::<Host>::new(manager, room, 64).unwrap()
            });
            peer.put_ticket("ticket", &tags.ticket());
            peer.get("sent");
            for _ in LENGTHS {
                let tag = peer.receive("a tag", |_, wait| tags.get_tag(wait));
                let mut bytes = vec![0; LENGTHS[tag as usize]];
                tags.area().read_at(tag * ROOM as u64, &mut bytes).unwrap();
                assert_eq!(bytes, pattern(tag, bytes.len()));
            }
            peer.until("a refusal", |manager, _| {
                manager.session().poll();
                let count = tags.info().unwrap().refusals.count(Refusal::BadKey);
                (count == 1).then_some(())
            });
            peer.end_links();
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            let sender = |ticket: &Ticket| {
                peer.with(|manager| tagged_write::Sender::grow(manager, ticket, GROW).unwrap())
            };
            let good = sender(&ticket);
            let key = Key::from_bits(!ticket.key.to_bits());
            let bad = sender(&Ticket { key, ..ticket });
            peer.send(|_, _| bad.send(0, b"refused", 0, GROW)).unwrap();
            for (tag, length) in (0_u64..).zip(LENGTHS) {
                let (offset, data) = (tag * ROOM as u64, pattern(tag, length));
                peer.send(|_, _| good.send(offset, &data, tag, GROW))
                    .unwrap();
            }
            // While the peer ends the link, and when it has.
            peer.put("sent", &[]);
            last_refused(fence(peer, |wait| good.fence(wait)), 1);
            peer.unlinked();
            assert_eq!(fence(peer, |wait| good.fence(wait)), Ok(()));
            assert_eq!(fence_all(peer), Ok(()));
        },
    ]);
}
