//! Many messages in one call, sent and received (`Hamlyn 3.2`).

use hamlyn::engine::notification::Notification;
use hamlyn::engine::terminus::Completion;
use hamlyn::{Message, SendError, Sent, Target, Wait};

use crate::World;
use crate::low_level::{RxSlot, target};
use crate::peer::{Peer, pattern};

/// One call, which must send something.
fn send_many(peer: &Peer, target: &Target, messages: &[Message<'_>]) -> Result<Sent, SendError> {
    peer.send(|manager, wait| {
        let terminus = manager.terminus();
        let messages = messages.iter().copied();
        manager
            .session()
            .send_many(terminus, target, messages, wait)
    })
}

/// As many calls as it takes; the last one's handle is of the last message.
fn send_all(peer: &Peer, target: &Target, messages: &[Message<'_>]) {
    let mut from = 0;
    while from < messages.len() {
        let sent = send_many(peer, target, &messages[from..]).unwrap();
        assert!(sent.count > 0 && sent.last.is_some());
        from += sent.count;
    }
    assert_eq!(from, messages.len());
}

/// Takes at most so many, and at least one.
fn receive_some(
    peer: &Peer,
    rx_slot: &mut RxSlot,
    most: usize,
    mut each: impl FnMut(Notification),
) -> usize {
    peer.until("some messages", |manager, _| {
        let count = manager
            .session()
            .receive_many(&mut rx_slot.queue, most, &mut each)
            .unwrap();
        assert!(count <= most);
        (count > 0).then_some(count)
    })
}

pub(crate) fn many_of_all_sizes_arrive_in_order(world: &World) {
    // Fewer at a time than the queue holds.
    const BATCH: usize = 200;
    const BATCHES: usize = 30;
    const PLACE_BYTES: usize = 1000;
    /// Mostly short ones, and now and then one that is not.
    fn length(number: usize) -> usize {
        match number % 37 {
            11 => 0,
            23 => 15,
            30 => 17,
            36 => PLACE_BYTES,
            _ => 16,
        }
    }
    world.run(&[
        &|peer| {
            let bytes = (BATCH * PLACE_BYTES) as u64;
            let mut rx_slot = RxSlot::new(peer, bytes, |slot| slot);
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, bytes).unwrap());
            for batch in 0..BATCHES {
                let mut words = Vec::new();
                while words.len() < BATCH {
                    // All ways to ask: one at a time, a few, more than there can be.
                    let most = [1, 3, 64, 1000][words.len() % 4];
                    receive_some(peer, &mut rx_slot, most, |it| words.push(it.word));
                }
                let first = (batch * BATCH) as u64;
                let words = peer.in_order(words);
                assert_eq!(words, (first..first + BATCH as u64).collect::<Vec<_>>());
                for place in 0..BATCH {
                    let number = batch * BATCH + place;
                    let expected = pattern(number as u64, length(number));
                    let offset = (place * PLACE_BYTES) as u64;
                    assert_eq!(rx_slot.bytes(offset, expected.len()), expected, "{number}");
                }
                peer.put(&format!("taken {batch}"), &[]);
            }
            rx_slot.nothing(peer);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            for batch in 0..BATCHES {
                let numbers = batch * BATCH..(batch + 1) * BATCH;
                let data: Vec<_> = numbers
                    .clone()
                    .map(|number| pattern(number as u64, length(number)))
                    .collect();
                let messages: Vec<_> = numbers
                    .zip(&data)
                    .map(|(number, data)| {
                        let place = (number % BATCH * PLACE_BYTES) as u64;
                        Message::new(data).at(place).word(number as u64)
                    })
                    .collect();
                send_all(peer, &target, &messages);
                peer.get(&format!("taken {batch}"));
            }
        },
    ]);
}

pub(crate) fn many_are_received_as_they_are_asked_for(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 16, |slot| slot);
            peer.with(|manager| {
                let mut none = |_: Notification| panic!("nothing was sent");
                assert_eq!(
                    manager
                        .session()
                        .receive_many(&mut rx_slot.queue, 0, &mut none),
                    Ok(0)
                );
                assert_eq!(
                    manager
                        .session()
                        .receive_many(&mut rx_slot.queue, 9, &mut none),
                    Ok(0)
                );
            });
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 16).unwrap());
            peer.get("sent");
            let mut words = Vec::new();
            while words.len() < 8 {
                let most = 4.min(8 - words.len());
                receive_some(peer, &mut rx_slot, most, |it| words.push(it.word));
            }
            // One by one and many at a time go on where the other left off.
            words.push(rx_slot.next(peer).word);
            receive_some(peer, &mut rx_slot, 1, |it| words.push(it.word));
            assert_eq!(peer.in_order(words), (0..10).collect::<Vec<_>>());
            rx_slot.nothing(peer);
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let messages: Vec<_> = (0..10)
                .map(|word| Message::new(&[9; 16]).word(word))
                .collect();
            let sent = send_many(peer, &target, &messages).unwrap();
            assert_eq!(sent.count, 10, "an idle ring has room for them");
            let last = sent.last.unwrap();
            let completion = peer.until("the completion", |manager, _| {
                let completion = manager.session().drain(last, Wait::millis(100)).unwrap();
                (completion != Completion::Pending).then_some(completion)
            });
            assert_eq!(completion, Completion::Sent);
            peer.put("sent", &[]);
        },
    ]);
}

pub(crate) fn many_end_at_the_first_that_cannot_be_sent(world: &World) {
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 64, |slot| slot);
            peer.put_ticket("ticket", &rx_slot.slot.fast_ticket(0, 48).unwrap());
            peer.get("sent");
            let words = (0..3).map(|_| rx_slot.next(peer).word).collect();
            assert_eq!(peer.in_order(words), [0, 1, 4]);
            rx_slot.nothing(peer);
            assert_eq!(rx_slot.bytes(48, 16), [0; 16], "outside the ticket");
        },
        &|peer| {
            let target = target(peer, &peer.get_ticket("ticket"));
            let message = |word, offset| Message::new(&[7; 16]).at(offset).word(word);
            let messages = [message(0, 0), message(1, 32), message(2, 33), message(3, 0)];
            let sent = send_many(peer, &target, &messages).unwrap();
            assert_eq!(sent.count, 2);
            let error = send_many(peer, &target, &messages[2..]).unwrap_err();
            assert!(matches!(error, SendError::OutsideTicket(_)), "{error}");
            assert_eq!(sent.stopped_by, Some(error), "the error of a later one");
            let sent = send_many(peer, &target, &[]).unwrap();
            assert_eq!((sent.count, sent.last), (0, None));
            send_all(peer, &target, &[message(4, 0)]);
            peer.put("sent", &[]);
        },
    ]);
}

pub(crate) fn many_with_metadata_arrive_at_their_entries(world: &World) {
    const ENTRIES: u16 = 8;
    world.run(&[
        &|peer| {
            let mut rx_slot = RxSlot::new(peer, 16 * u64::from(ENTRIES), |slot| {
                slot.entries(ENTRIES.into())
            });
            for index in 0..ENTRIES {
                let place = 16 * u64::from(index);
                let ticket = rx_slot.slot.ticket(index, place, 16).unwrap();
                peer.put_ticket(&format!("ticket {index}"), &ticket);
            }
            peer.get("sent");
            let mut indices = Vec::new();
            while indices.len() < usize::from(ENTRIES) {
                receive_some(peer, &mut rx_slot, 100, |it| {
                    indices.push(it.metadata_index)
                });
            }
            assert_eq!(peer.in_order(indices), (0..ENTRIES).collect::<Vec<_>>());
            for index in 0..ENTRIES {
                let number = index as u8;
                assert_eq!(rx_slot.metadata(index), [number; 8]);
                assert_eq!(rx_slot.bytes(16 * u64::from(index), 16), [number; 16]);
            }
        },
        &|peer| {
            for index in 0..ENTRIES {
                let target = target(peer, &peer.get_ticket(&format!("ticket {index}")));
                let (data, metadata) = ([index as u8; 16], [index as u8; 8]);
                let message = Message::new(&data).metadata(&metadata);
                send_all(peer, &target, &[message]);
            }
            peer.put("sent", &[]);
        },
    ]);
}
