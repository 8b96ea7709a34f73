//! The lower layer (`Hamlyn 3.2`): messages, tickets, queues.

use hamlyn::engine::limits::{DIRECT_BYTES_MAX, PACKET_PAYLOAD_MAX, WORK_QUEUE_ENTRIES};
use hamlyn::engine::notification::Notification;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::terminus::{Completion, PostError, SendHandle, TerminusOptions};
use hamlyn::{Area, Message, NewSlot, Queue, SendError, Slot, Target, Ticket, Wait};

use crate::World;
use crate::peer::{Peer, pattern};

/// The largest packet of a link that was not told otherwise.
pub(crate) const PACKET: usize = PACKET_PAYLOAD_MAX;

/// A receive slot: an area, a slot over it, and a queue.
pub(crate) struct RxSlot {
    pub(crate) area: Area,
    pub(crate) slot: Slot,
    pub(crate) queue: Queue,
}

impl RxSlot {
    pub(crate) fn new(peer: &Peer, bytes: u64, shape: impl FnOnce(NewSlot) -> NewSlot) -> Self {
        peer.with(|manager| {
            let area = manager.session().allocate(bytes).unwrap();
            let queue = manager.session().open_queue(256).unwrap();
            let slot = manager
                .session()
                .open_slot(shape(NewSlot::new(&area).queue(&queue)))
                .unwrap();
            Self { area, slot, queue }
        })
    }

    /// The next notification.
    pub(crate) fn next(&mut self, peer: &Peer) -> Notification {
        peer.receive("a message", |manager, wait| {
            manager.session().rcv_block(&mut self.queue, wait)
        })
    }

    /// Moves packets; there must be no notification.
    pub(crate) fn nothing(&mut self, peer: &Peer) {
        let found = peer.with(|manager| manager.session().rcv(&mut self.queue));
        assert_eq!(found, Ok(None));
    }

    pub(crate) fn bytes(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.area.read_at(offset, &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn metadata(&self, index: u16) -> Vec<u8> {
        let mut bytes = [0; 60];
        let entry = self.slot.metadata().unwrap().entry(index).unwrap();
        let length = entry.metadata(&mut bytes);
        bytes[..length].to_vec()
    }

    /// Waits until the slot has refused that often for that reason.
    pub(crate) fn refused(&self, peer: &Peer, reason: Refusal, count: u64) {
        peer.until("a refusal", |manager, _| {
            manager.session().poll();
            let info = manager.session().slot_info(&self.slot).unwrap();
            assert!(info.refusals.count(reason) <= count, "{:?}", info.refusals);
            (info.refusals.count(reason) == count).then_some(())
        });
    }
}

/// Makes a ticket usable.
pub(crate) fn target(peer: &Peer, ticket: &Ticket) -> Target {
    peer.with(|manager| {
        manager
            .session()
            .target(ticket, Wait::millis(10_000))
            .unwrap()
    })
}

/// Sends, for as long as it takes.
pub(crate) fn send(peer: &Peer, target: &Target, message: &Message<'_>) {
    peer.with(|manager| {
        let terminus = manager.terminus();
        manager
            .session()
            .send_msg(terminus, target, message, Wait::millis(20_000))
    })
    .unwrap();
}

/// The longest message of one packet, as its refusal says that one is longer.
pub(crate) fn packet_bytes(error: &SendError) -> usize {
    match error {
        SendError::Refused(PostError::FastTooLong {
            payload_max_bytes, ..
        }) => *payload_max_bytes,
        other => panic!("{other}"),
    }
}

/// Sends, and expects an error.
pub(crate) fn refused(peer: &Peer, target: &Target, message: &Message<'_>) -> SendError {
    try_send(peer, target, message).unwrap_err()
}

/// Sends, if that can be done.
pub(crate) fn try_send(
    peer: &Peer,
    target: &Target,
    message: &Message<'_>,
) -> Result<SendHandle, SendError> {
    peer.with(|manager| {
        let terminus = manager.terminus();
        manager
            .session()
            .send_msg(terminus, target, message, Wait::millis(1_000))
    })
}

/// Sizes around every boundary: the cell, direct I/O, the packet and several packets.
pub(crate) fn sizes() -> Vec<usize> {
    let mut sizes: Vec<usize> = (0..=20).collect();
    for boundary in [
        56,
        64,
        DIRECT_BYTES_MAX,
        256,
        4096,
        PACKET - 60,
        PACKET,
        2 * PACKET,
        5 * PACKET,
        200 << 10,
    ] {
        sizes.extend(boundary - 1..=boundary + 1);
    }
    sizes.push(123_457);
    sizes
}

pub(crate) fn messages_of_all_sizes_arrive_whole(world: &World) {
    const AREA: u64 = 512 << 10;
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, AREA, |slot| slot.entries(2));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(1, 0, AREA).unwrap());
            for (number, size) in sizes().into_iter().enumerate() {
                let came = rx_slot.next(peer);
                assert_eq!((came.slot, came.metadata_index), (rx_slot.slot.name(), 1));
                let offset = number as u64 * 3 % 1000;
                assert!(
                    rx_slot.bytes(offset, size) == pattern(number as u64, size),
                    "{size} bytes differ"
                );
                assert_eq!(rx_slot.metadata(1), (number as u32).to_le_bytes());
                rx_slot.nothing(peer);
                peer.put(&format!("had {number}"), &[]);
            }
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            for (number, size) in sizes().into_iter().enumerate() {
                let data = pattern(number as u64, size);
                let metadata = (number as u32).to_le_bytes();
                let message = Message::new(&data)
                    .at(number as u64 * 3 % 1000)
                    .metadata(&metadata);
                send(peer, &target, &message);
                peer.get(&format!("had {number}"));
            }
        },
    ]);
}

pub(crate) fn metadata_of_every_length_arrives(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100_000, |slot| slot.entries(61));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 100_000).unwrap());
            let indices = (0..=60).map(|_| rx_slot.next(peer).metadata_index);
            let indices = peer.in_order(indices.collect());
            assert_eq!(indices, (0..=60).collect::<Vec<_>>());
            for length in 0..=60_u16 {
                assert_eq!(
                    rx_slot.metadata(length),
                    pattern(length.into(), length.into())
                );
            }
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            for length in 0..=60_u16 {
                // One packet or several; metadata come with the first.
                let data = vec![1; if length % 2 == 0 { 9 } else { 40_000 }];
                let target = target(
                    peer,
                    &Ticket {
                        metadata_index: length,
                        ..ticket
                    },
                );
                let metadata = pattern(length.into(), length.into());
                send(peer, &target, &Message::new(&data).metadata(&metadata));
            }
        },
    ]);
}

pub(crate) fn metadata_of_61_bytes_are_refused_and_nothing_is_sent(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            assert_eq!(rx_slot.next(peer).metadata_index, 0);
            assert_eq!(rx_slot.metadata(0), b"the only one");
            rx_slot.nothing(peer);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            for length in [61, 100, 70_000] {
                let metadata = vec![0; length];
                for data in [&[][..], &[0; 64]] {
                    let error = refused(peer, &target, &Message::new(data).metadata(&metadata));
                    let wrong = PostError::MetadataTooLong {
                        length_bytes: length,
                    };
                    assert_eq!(error, SendError::Refused(wrong));
                    assert!(error.to_string().contains("60"), "{error}");
                }
            }
            send(peer, &target, &Message::new(b"x").metadata(b"the only one"));
        },
    ]);
}

pub(crate) fn a_message_without_bytes_is_announced(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 0, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 0).unwrap());
            for length in [0, 8, 60] {
                rx_slot.next(peer);
                assert_eq!(rx_slot.metadata(0), vec![7; length]);
                peer.put(&format!("had {length}"), &[]);
            }
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            for length in [0, 8, 60] {
                send(peer, &target, &Message::new(&[]).metadata(&vec![7; length]));
                peer.get(&format!("had {length}"));
            }
        },
    ]);
}

pub(crate) fn several_slots_share_an_area_and_a_queue(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 300, |slot| slot.range(0..100).entries(1));
            let others: Vec<Slot> = [100..200, 50..250]
                .into_iter()
                .map(|range| {
                    let new = NewSlot::new(&rx_slot.area)
                        .range(range)
                        .queue(&rx_slot.queue)
                        .entries(1);
                    peer.with(|manager| manager.session().open_slot(new).unwrap())
                })
                .collect();
            for (number, slot) in [&rx_slot.slot, &others[0], &others[1]]
                .into_iter()
                .enumerate()
            {
                let ticket = slot.ticket(0, 0, slot.length_bytes()).unwrap();
                peer.put_ticket(&format!("ticket {number}"), &ticket);
            }
            let names = [rx_slot.slot.name(), others[0].name(), others[1].name()];
            let mut came: Vec<_> = names.map(|_| rx_slot.next(peer).slot).into();
            if !peer.is_in_order {
                came.sort_unstable_by_key(|name| names.iter().position(|known| known == name));
            }
            assert_eq!(came, names);
            assert_eq!(rx_slot.bytes(0, 300)[10], 1);
            assert_eq!(rx_slot.bytes(0, 300)[110], 2);
            assert_eq!(rx_slot.bytes(0, 300)[60], 3);
        },
        &|peer| {
            for number in 0..3_u8 {
                let ticket = peer.get_ticket(&format!("ticket {number}"));
                send(
                    peer,
                    &target(peer, &ticket),
                    &Message::new(&[number + 1]).at(10),
                );
            }
        },
    ]);
}

pub(crate) fn slots_feed_queues_of_their_own(world: &World) {
    world.run(&[
        &|peer| {
            let mut one = RxSlot::new(peer, 16, |slot| slot.entries(1));
            let mut two = RxSlot::new(peer, 16, |slot| slot.entries(1));
            peer.put_ticket("one", &one.slot.ticket(0, 0, 16).unwrap());
            peer.put_ticket("two", &two.slot.ticket(0, 0, 16).unwrap());
            two.next(peer);
            one.nothing(peer);
            peer.put("next", &[]);
            one.next(peer);
            two.nothing(peer);
        },
        &|peer| {
            let (one, two) = (peer.get_ticket("one"), peer.get_ticket("two"));
            send(peer, &target(peer, &two), &Message::new(b"2"));
            peer.get("next");
            send(peer, &target(peer, &one), &Message::new(b"1"));
        },
    ]);
}

pub(crate) fn a_ticket_travels_in_a_message_and_serves_for_the_answer(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 64).unwrap());
            rx_slot.next(peer);
            let answer = Ticket::from_bytes(&rx_slot.metadata(0)).unwrap();
            send(peer, &target(peer, &answer), &Message::new(b"answer").at(3));
        },
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot.entries(1));
            let answer = rx_slot.slot.ticket(0, 8, 20).unwrap().to_bytes();
            let target = target(peer, &peer.get_ticket("ticket"));
            send(peer, &target, &Message::new(b"question").metadata(&answer));
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(11, 6), b"answer");
        },
    ]);
}

pub(crate) fn a_narrowed_ticket_reaches_its_part_only(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100, |slot| slot.entries(1));
            let ticket = rx_slot.slot.ticket(0, 10, 80).unwrap();
            assert!(rx_slot.slot.ticket(0, 10, 91).is_err());
            assert!(rx_slot.slot.ticket(1, 0, 1).is_err(), "no such entry");
            assert!(rx_slot.slot.ticket(0, u64::MAX, 2).is_err());
            peer.put_ticket("ticket", &ticket.narrow(10, 20).unwrap());
            rx_slot.next(peer);
            let mut expected = vec![0; 100];
            expected[20..40].fill(1);
            assert_eq!(rx_slot.bytes(0, 100), expected);
            rx_slot.nothing(peer);
        },
        &|peer| {
            let ticket = peer.get_ticket("ticket");
            assert_eq!((ticket.base, ticket.length_bytes), (20, 20));
            assert!(ticket.narrow(0, 21).is_err());
            assert!(ticket.narrow(20, 0).is_ok());
            assert!(ticket.narrow(21, 0).is_err());
            let target = target(peer, &ticket);
            for (offset, length) in [(0, 21), (20, 1), (21, 0), (u64::MAX, 1)] {
                let error = refused(peer, &target, &Message::new(&vec![9; length]).at(offset));
                assert!(matches!(error, SendError::OutsideTicket(_)), "{error}");
                assert!(error.to_string().contains("20 bytes"), "{error}");
            }
            send(peer, &target, &Message::new(&[1; 20]));
        },
    ]);
}

pub(crate) fn offsets_that_overflow_are_refused(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100, |slot| slot.entries(1));
            peer.put_ticket("ticket", &rx_slot.slot.ticket(0, 0, 100).unwrap());
            // What gets past the sender's library is refused here.
            rx_slot.refused(peer, Refusal::OutOfBounds, 3);
            peer.put("refused", &[]);
            rx_slot.next(peer);
            assert_eq!(rx_slot.bytes(0, 100), [&[5; 3][..], &[0; 97]].concat());
        },
        &|peer| {
            let honest = peer.get_ticket("ticket");
            let forged = |base, length_bytes| Ticket {
                base,
                length_bytes,
                ..honest
            };
            for (ticket, offset) in [
                (forged(0, u64::MAX), 101),
                (forged(u64::MAX - 8, 8), 0),
                (forged(98, 100), 1),
            ] {
                send(
                    peer,
                    &target(peer, &ticket),
                    &Message::new(&[6; 3]).at(offset),
                );
            }
            // The end of this one cannot be named.
            let ticket = forged(u64::MAX - 8, 8);
            let error = refused(peer, &target(peer, &ticket), &Message::new(&[6; 9]));
            assert!(matches!(error, SendError::OutsideTicket(_)), "{error}");
            peer.get("refused");
            send(peer, &target(peer, &honest), &Message::new(&[5; 3]));
        },
    ]);
}

pub(crate) fn a_full_work_queue_says_so_and_loses_nothing(world: &World) {
    // More than any ring holds, in messages that need a place in the payload arena.
    const DATA: [u8; 100] = [3; 100];
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 100, |slot| slot);
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 100).unwrap());
            // One that polls may keep up with its sender.
            let sent = peer.get_without_polling("sent");
            let sent = u64::from_le_bytes(sent.try_into().unwrap());
            let mut words = 0;
            let mut lost = 0;
            while words + lost < sent {
                // The queue is shorter than the ring: what it cannot hold is counted.
                let came = peer.until("all words", |manager, _| {
                    match manager.session().rcv(&mut rx_slot.queue) {
                        Ok(found) => found.map(Ok),
                        Err(overrun) => Some(Err(overrun)),
                    }
                });
                match came {
                    Ok(_) => words += 1,
                    Err(_) => lost = rx_slot.queue.lost(),
                }
            }
            assert_eq!(words + lost, sent);
            rx_slot.nothing(peer);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let (terminus, sent, last) = peer.with(|manager| {
                let terminus = manager
                    .session()
                    .open_terminus(TerminusOptions::default())
                    .unwrap();
                let message = Message::new(&DATA);
                let mut sent = 0_u64;
                let mut last = None;
                let error = loop {
                    match manager
                        .session()
                        .send_msg(terminus, &target, &message, Wait::Poll)
                    {
                        Ok(handle) => {
                            sent += 1;
                            last = Some(handle);
                        }
                        Err(error) => break error,
                    }
                    if sent == 1 << 20 {
                        // A peer that receives while we send need never be full.
                        assert!(peer.receives_unasked());
                        break SendError::WouldBlock {
                            peer: target.ticket().destination,
                        };
                    }
                };
                assert!(matches!(error, SendError::WouldBlock { .. }), "{error}");
                (terminus, sent, last.unwrap())
            });
            // A network processor need not have sent any of it yet.
            assert!(sent >= WORK_QUEUE_ENTRIES as u64);
            peer.put("sent", &sent.to_le_bytes());
            let completion = peer.until("the queue's end", |manager, _| {
                let completion = manager.session().drain(last, Wait::millis(100)).unwrap();
                (completion != Completion::Pending).then_some(completion)
            });
            assert_eq!(completion, Completion::Sent);
            peer.with(|manager| manager.session().close_terminus(terminus).unwrap());
        },
    ]);
}
