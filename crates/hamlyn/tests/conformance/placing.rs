//! Direct placement: messages to attached regions arrive as others do.

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::terminus::{Completion, GatherPiece};
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, Attached, Holders, Message, NewPort, NewSlot, Region, RegionTicket, Slot, Target,
    Wait,
};

use crate::World;
use crate::low_level::{RxSlot, send, target};
use crate::peer::{Peer, TIMEOUT, pattern};

const PAGE: u64 = 4096;
const AREA: u64 = 64 * PAGE;
const WAIT: Wait = Wait::For(TIMEOUT);

/// An rx_slot over memory that can be shared.
fn rx_slot(peer: &Peer, entries: usize) -> RxSlot {
    peer.with(|manager| {
        let area = Area::shared(SharedOptions::reserved(AREA)).unwrap();
        let queue = manager.session().open_queue(256).unwrap();
        let new = NewSlot::new(&area).queue(&queue).entries(entries);
        let slot = manager.session().open_slot(new).unwrap();
        RxSlot { area, slot, queue }
    })
}

/// Shares pages with the one peer that there is, as soon as it is linked.
fn share(peer: &Peer, slot: &Slot, pages: std::ops::Range<u64>) -> Region {
    let link = peer.until("a peer", |manager, _| {
        manager.session().poll();
        let interface = manager.session();
        interface.peers().map(|(link, _)| link).next()
    });
    let range = pages.start * PAGE..pages.end * PAGE;
    let holders = Holders::One(link);
    let shared = peer.with(|manager| {
        let mut session = manager.session();
        session.share(slot, range, Access::Writable, holders)
    });
    let region = shared.unwrap();
    peer.put("region", &region.ticket().to_bytes());
    region
}

/// Makes the ticket usable, and attaches the region.
fn attach(peer: &Peer) -> (Target, Attached) {
    let target = target(peer, &peer.get_ticket("ticket"));
    let ticket = RegionTicket::from_bytes(&peer.get("region")).unwrap();
    let attached = peer.with(|manager| {
        let attached = manager.session().attach(&ticket, WAIT).unwrap();
        assert_eq!(manager.session().regions_attached(), 1);
        attached
    });
    (target, attached)
}

pub(crate) fn a_placed_message_is_there_before_it_is_announced(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = rx_slot(peer, 1);
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, AREA).unwrap());
            let _region = share(peer, &rx_slot.slot, 0..64);
            // No packet is taken here, and yet the bytes are there.
            peer.get_without_polling("placed");
            assert!(rx_slot.bytes(5, 100_000) == pattern(1, 100_000));
            assert_eq!(rx_slot.next(peer).metadata_index, 0);
            assert_eq!(rx_slot.metadata(0), b"about them");
            let refused = peer.with(|manager| manager.session().refusals().total());
            assert_eq!(refused, 0);
        },
        &|peer| {
            let (target, _) = attach(peer);
            let bytes = pattern(1, 100_000);
            let message = Message::new(&bytes).at(5).metadata(b"about them");
            send(peer, &target, &message);
            peer.put("placed", &[]);
        },
    ]);
}

/// Sizes and places around the limits of the region, which is of the middle pages only.
fn cases() -> Vec<(u64, usize)> {
    let (start, end) = (8 * PAGE, 40 * PAGE);
    let mut cases = Vec::new();
    for length in [1, 16, 17, 1023, 1024, 1025, 4096, 70_000, 32 * 4096] {
        for offset in [
            0,
            start - 1,
            start,
            start + 7,
            end - length as u64,
            end - length as u64 + 1,
            end,
        ] {
            cases.push((offset, length));
        }
    }
    cases.retain(|(offset, length)| offset + *length as u64 <= AREA);
    cases
}

pub(crate) fn messages_of_all_sizes_are_whole_attached_or_not(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = rx_slot(peer, 2);
            peer.put_ticket("ticket", &rx_slot.slot.ticket(1, 0, AREA).unwrap());
            let _region = share(peer, &rx_slot.slot, 8..40);
            for (number, (offset, length)) in cases().into_iter().enumerate() {
                assert_eq!(rx_slot.next(peer).metadata_index, 1);
                let expected = pattern(number as u64, length);
                assert!(
                    rx_slot.bytes(offset, length) == expected,
                    "{offset} {length}"
                );
                peer.put(&format!("had {number}"), &[]);
            }
            let refused = peer.with(|manager| manager.session().refusals().total());
            assert_eq!(refused, 0);
        },
        &|peer| {
            let (target, _) = attach(peer);
            for (number, (offset, length)) in cases().into_iter().enumerate() {
                let bytes = pattern(number as u64, length);
                send(peer, &target, &Message::new(&bytes).at(offset));
                peer.get(&format!("had {number}"));
            }
        },
    ]);
}

pub(crate) fn after_revocation_messages_go_as_copies(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = rx_slot(peer, 1);
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, AREA).unwrap());
            for round in 0..3 {
                let region = share(peer, &rx_slot.slot, 0..64);
                peer.put(&format!("region {round}"), &region.ticket().to_bytes());
                rx_slot.next(peer);
                let expected = pattern(2 * round, 50_000);
                assert!(rx_slot.bytes(0, 50_000) == expected);
                peer.with(|manager| {
                    manager.session().revoke(&region).unwrap();
                    assert_eq!(manager.session().regions_shared(), 0);
                    assert!(manager.session().revoke(&region).is_err());
                });
                assert!(rx_slot.bytes(0, 50_000) == expected, "kept");
                peer.put(&format!("revoked {round}"), &[]);
                rx_slot.next(peer);
                assert!(rx_slot.bytes(0, 50_000) == pattern(2 * round + 1, 50_000));
            }
            let refused = peer.with(|manager| manager.session().refusals().total());
            assert_eq!(refused, 0);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            for round in 0..3 {
                let ticket = RegionTicket::from_bytes(&peer.get(&format!("region {round}")));
                let ticket = ticket.unwrap();
                peer.with(|manager| {
                    manager.session().attach(&ticket, WAIT).unwrap();
                });
                send(peer, &target, &Message::new(&pattern(2 * round, 50_000)));
                peer.get(&format!("revoked {round}"));
                send(
                    peer,
                    &target,
                    &Message::new(&pattern(2 * round + 1, 50_000)),
                );
                let left = peer.with(|manager| manager.session().regions_attached());
                assert_eq!(left, 0, "it has noticed");
            }
        },
    ]);
}

pub(crate) fn an_announcement_that_finds_no_room_waits(world: &World) {
    // More than the deepest ring and the work queue hold.
    const MESSAGES: u64 = 10_000;
    world.run(&[
        &|peer| {
            let mut rx_slot = rx_slot(peer, 1);
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, AREA).unwrap());
            let _region = share(peer, &rx_slot.slot, 0..64);
            // Nothing is taken until the sender's queue is full.
            peer.get_without_polling("full");
            for _ in 0..MESSAGES {
                if rx_slot.next(peer).metadata_index != 0 {
                    unreachable!();
                }
            }
            assert!(rx_slot.bytes(0, 2048) == pattern(MESSAGES - 1, 2048));
            peer.put("had all", &[]);
        },
        &|peer| {
            let (target, _) = attach(peer);
            let mut last = None;
            let mut told = false;
            for number in 0..MESSAGES {
                let bytes = pattern(number, 2048);
                last = Some(peer.until("room", |manager, _| {
                    let terminus = manager.terminus();
                    let message = Message::new(&bytes);
                    let sent = manager
                        .session()
                        .send_msg(terminus, &target, &message, Wait::Poll);
                    if sent.is_err() && !told {
                        told = true;
                        peer.put("full", &[]);
                    }
                    sent.ok()
                }));
            }
            assert!(told, "all of them found room at once");
            let done = peer.with(|manager| manager.session().drain(last.unwrap(), WAIT).unwrap());
            assert_eq!(done, Completion::Sent);
            peer.get("had all");
        },
    ]);
}

pub(crate) fn a_closed_slot_takes_its_regions_with_it(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = rx_slot(peer, 1);
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, AREA).unwrap());
            let region = share(peer, &rx_slot.slot, 3..5);
            rx_slot.next(peer);
            peer.with(|manager| {
                manager.session().close_slot(rx_slot.slot).unwrap();
                assert_eq!(manager.session().regions_shared(), 0);
                assert!(manager.session().revoke(&region).is_err());
            });
            peer.put("closed", &[]);
            peer.get("sent");
            let closed = peer.until("a refusal", |manager, _| {
                manager.session().poll();
                let refusals = manager.session().refusals();
                let closed = refusals.count(Refusal::SlotClosed);
                (closed > 0).then_some((closed, refusals.total()))
            });
            assert_eq!(closed, (1, 1));
            let mut bytes = vec![0; 4096];
            rx_slot.area.read_at(3 * PAGE, &mut bytes).unwrap();
            assert!(bytes == pattern(1, 4096));
        },
        &|peer| {
            let (target, _) = attach(peer);
            send(peer, &target, &Message::new(&pattern(1, 4096)).at(3 * PAGE));
            peer.get("closed");
            send(peer, &target, &Message::new(&pattern(2, 4096)).at(3 * PAGE));
            peer.put("sent", &[]);
        },
    ]);
}

/// Of any length that is placed, gathered or not: nothing that was sent before lands over what was
/// sent later.
pub(crate) fn messages_to_attached_regions_land_in_the_order_in_which_they_are_sent(world: &World) {
    const LENGTHS: [usize; 6] = [512, 513, 600, 2048, 1000, 4096];
    world.run(&[
        &|peer| {
            let mut rx_slot = rx_slot(peer, 1);
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, AREA).unwrap());
            let _region = share(peer, &rx_slot.slot, 0..64);
            // All of them are on their way before the first is taken.
            peer.get_without_polling("sent");
            let mut expected = vec![0; 4096];
            for (number, length) in LENGTHS.into_iter().enumerate() {
                rx_slot.next(peer);
                expected[..length].copy_from_slice(&pattern(number as u64 + 1, length));
            }
            assert!(rx_slot.bytes(0, 4096) == expected);
        },
        &|peer| {
            let (target, _) = attach(peer);
            for (number, length) in LENGTHS.into_iter().enumerate() {
                let data = pattern(number as u64 + 1, length);
                if number != 3 {
                    send(peer, &target, &Message::new(&data));
                    continue;
                }
                peer.with(|manager| {
                    let terminus = manager.terminus();
                    let area = manager.session().allocate(4096).unwrap();
                    area.write_at(0, &data).unwrap();
                    let tag = manager
                        .session()
                        .bind_area(terminus, &area, 0..4096)
                        .unwrap();
                    let length_bytes = data.len() as u64 / 2;
                    let pieces = [0, length_bytes].map(|offset| GatherPiece {
                        tag,
                        offset,
                        length_bytes,
                    });
                    let message = Message::new(&[]);
                    manager
                        .session()
                        .send_gather(terminus, &target, &message, &pieces)
                        .unwrap();
                });
            }
            peer.put("sent", &[]);
        },
    ]);
}

/// A port and a slot may have the same name; a message to the one is not stored into the other.
pub(crate) fn a_message_to_a_port_is_stored_in_no_region(world: &World) {
    world.run(&[
        &|peer| {
            let rx_slot = rx_slot(peer, 0);
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, AREA).unwrap());
            let _region = share(peer, &rx_slot.slot, 0..64);
            let mut port = peer.with(|manager| {
                let mut session = manager.session();
                loop {
                    let port = session.open_port(NewPort::new()).unwrap();
                    if port.name().to_bits() == rx_slot.slot.name().to_bits() {
                        break port;
                    }
                    assert!(port.name().index() < 64, "the slot's name is another kind");
                }
            });
            peer.put_ticket("port", &port.ticket());
            let bytes = peer.receive("a message", |manager, wait| {
                let mut session = manager.session();
                let Some(message) = session.recv_message(&mut port, wait)? else {
                    return Ok(None);
                };
                let mut bytes = vec![0; message.len()];
                message.copy_to(&mut bytes);
                message.dispose();
                Ok(Some(bytes))
            });
            assert!(bytes == pattern(2, 2 * PAGE as usize));
            assert!(rx_slot.bytes(0, AREA as usize) == vec![0; AREA as usize]);
            peer.put("had it", &[]);
        },
        &|peer| {
            let (_, _) = attach(peer);
            let port = target(peer, &peer.get_ticket("port"));
            let bytes = pattern(2, 2 * PAGE as usize);
            peer.send(|manager, _| {
                let mut session = manager.session();
                session.send_message(&port, 0, &bytes, Wait::Poll)
            })
            .unwrap();
            peer.get("had it");
        },
    ]);
}
