//! Many messages in one call, sent and received (`Hamlyn 3.2`).

use hamlyn::engine::notification::Notification;
use hamlyn::engine::terminus::Completion;
use hamlyn::{Message, SendError, Sent, Target, Wait};

use crate::World;
use crate::low_level::{Inlet, target};
use crate::party::{Party, pattern};

/// One call, which must send something.
fn send_many(party: &Party, target: &Target, messages: &[Message<'_>]) -> Result<Sent, SendError> {
    party.send(|manager, wait| {
        let terminus = manager.terminus();
        let messages = messages.iter().copied();
        manager
            .interface()
            .send_many(terminus, target, messages, wait)
    })
}

/// As many calls as it takes; the last one's handle is of the last message.
fn send_all(party: &Party, target: &Target, messages: &[Message<'_>]) {
    let mut from = 0;
    while from < messages.len() {
        let sent = send_many(party, target, &messages[from..]).unwrap();
        assert!(sent.count > 0 && sent.last.is_some());
        from += sent.count;
    }
    assert_eq!(from, messages.len());
}

/// Takes at most so many, and at least one.
fn receive_some(
    party: &Party,
    inlet: &mut Inlet,
    most: usize,
    mut each: impl FnMut(Notification),
) -> usize {
    party.until("some messages", |manager, _| {
        let count = manager
            .interface()
            .receive_many(&mut inlet.queue, most, &mut each)
            .unwrap();
        assert!(count <= most);
        (count > 0).then_some(count)
    })
}

pub(crate) fn many_of_all_sizes_arrive_in_order(world: &World) {
    // Fewer at a time than the queue holds, whoever fills it.
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
        &|party| {
            let bytes = (BATCH * PLACE_BYTES) as u64;
            let mut inlet = Inlet::new(party, bytes, |slot| slot);
            party.tell_ticket("ticket", &inlet.slot.fast_ticket(0, bytes).unwrap());
            for batch in 0..BATCHES {
                let mut words = Vec::new();
                while words.len() < BATCH {
                    // All ways to ask: one at a time, a few, more than there can be.
                    let most = [1, 3, 64, 1000][words.len() % 4];
                    receive_some(party, &mut inlet, most, |it| words.push(it.word));
                }
                let first = (batch * BATCH) as u64;
                let words = party.in_order(words);
                assert_eq!(words, (first..first + BATCH as u64).collect::<Vec<_>>());
                for place in 0..BATCH {
                    let number = batch * BATCH + place;
                    let expected = pattern(number as u64, length(number));
                    let offset = (place * PLACE_BYTES) as u64;
                    assert_eq!(inlet.bytes(offset, expected.len()), expected, "{number}");
                }
                party.tell(&format!("taken {batch}"), &[]);
            }
            inlet.nothing(party);
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
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
                send_all(party, &target, &messages);
                party.hear(&format!("taken {batch}"));
            }
        },
    ]);
}

pub(crate) fn many_are_received_as_they_are_asked_for(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 16, |slot| slot);
            party.with(|manager| {
                let mut none = |_: Notification| panic!("nothing was sent");
                assert_eq!(
                    manager
                        .interface()
                        .receive_many(&mut inlet.queue, 0, &mut none),
                    Ok(0)
                );
                assert_eq!(
                    manager
                        .interface()
                        .receive_many(&mut inlet.queue, 9, &mut none),
                    Ok(0)
                );
            });
            party.tell_ticket("ticket", &inlet.slot.fast_ticket(0, 16).unwrap());
            party.hear("sent");
            let mut words = Vec::new();
            while words.len() < 8 {
                let most = 4.min(8 - words.len());
                receive_some(party, &mut inlet, most, |it| words.push(it.word));
            }
            // One by one and many at a time go on where the other left off.
            words.push(inlet.next(party).word);
            receive_some(party, &mut inlet, 1, |it| words.push(it.word));
            assert_eq!(party.in_order(words), (0..10).collect::<Vec<_>>());
            inlet.nothing(party);
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
            let messages: Vec<_> = (0..10)
                .map(|word| Message::new(&[9; 16]).word(word))
                .collect();
            let sent = send_many(party, &target, &messages).unwrap();
            assert_eq!(sent.count, 10, "an idle ring has room for them");
            let last = sent.last.unwrap();
            let completion = party.until("the completion", |manager, _| {
                let completion = manager.interface().drain(last, Wait::millis(100)).unwrap();
                (completion != Completion::Pending).then_some(completion)
            });
            assert_eq!(completion, Completion::Sent);
            party.tell("sent", &[]);
        },
    ]);
}

pub(crate) fn many_end_at_the_first_that_cannot_be_sent(world: &World) {
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 64, |slot| slot);
            party.tell_ticket("ticket", &inlet.slot.fast_ticket(0, 48).unwrap());
            party.hear("sent");
            let words = (0..3).map(|_| inlet.next(party).word).collect();
            assert_eq!(party.in_order(words), [0, 1, 4]);
            inlet.nothing(party);
            assert_eq!(inlet.bytes(48, 16), [0; 16], "outside the ticket");
        },
        &|party| {
            let target = target(party, &party.hear_ticket("ticket"));
            let message = |word, offset| Message::new(&[7; 16]).at(offset).word(word);
            let messages = [message(0, 0), message(1, 32), message(2, 33), message(3, 0)];
            let sent = send_many(party, &target, &messages).unwrap();
            assert_eq!(sent.count, 2);
            let error = send_many(party, &target, &messages[2..]).unwrap_err();
            assert!(matches!(error, SendError::OutsideTicket(_)), "{error}");
            assert_eq!(sent.stopped_by, Some(error), "the error of a later one");
            let sent = send_many(party, &target, &[]).unwrap();
            assert_eq!((sent.count, sent.last), (0, None));
            send_all(party, &target, &[message(4, 0)]);
            party.tell("sent", &[]);
        },
    ]);
}

pub(crate) fn many_with_metadata_arrive_at_their_entries(world: &World) {
    const ENTRIES: u16 = 8;
    world.run(&[
        &|party| {
            let mut inlet = Inlet::new(party, 16 * u64::from(ENTRIES), |slot| {
                slot.entries(ENTRIES.into())
            });
            for index in 0..ENTRIES {
                let place = 16 * u64::from(index);
                let ticket = inlet.slot.ticket(index, place, 16).unwrap();
                party.tell_ticket(&format!("ticket {index}"), &ticket);
            }
            party.hear("sent");
            let mut indices = Vec::new();
            while indices.len() < usize::from(ENTRIES) {
                receive_some(party, &mut inlet, 100, |it| indices.push(it.metadata_index));
            }
            assert_eq!(party.in_order(indices), (0..ENTRIES).collect::<Vec<_>>());
            for index in 0..ENTRIES {
                let number = index as u8;
                assert_eq!(inlet.metadata(index), [number; 8]);
                assert_eq!(inlet.bytes(16 * u64::from(index), 16), [number; 16]);
            }
        },
        &|party| {
            for index in 0..ENTRIES {
                let target = target(party, &party.hear_ticket(&format!("ticket {index}")));
                let (data, metadata) = ([index as u8; 16], [index as u8; 8]);
                let message = Message::new(&data).metadata(&metadata);
                send_all(party, &target, &[message]);
            }
            party.tell("sent", &[]);
        },
    ]);
}
