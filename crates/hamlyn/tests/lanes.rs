//! Lanes against a small model, with random calls of both ends.

use std::collections::BTreeMap;
use std::time::Instant;

use hamlyn::lane::{
    Lane, LaneMessage, LaneOptions, LaneSeed, LaneSender, SharedLane, SharedLaneOptions,
    SharedMessage,
};
use hamlyn::ticket::TICKET_BYTES;
use hamlyn::{FenceError, Message, NewPort, NewSlot, ReceiveError, SendError, Ticket, Wait};

use crate::support::{LONG, Random, TIMEOUT, namespace, open, until};

/// The debts of a lane: which message each buffer has, and which of them the receiver has.
#[derive(Default)]
struct Model {
    filled: BTreeMap<u16, u32>,
    held: Vec<LaneMessage>,
    kept: BTreeMap<u16, u32>,
}

fn bytes_of(tag: u32, most: u32) -> Vec<u8> {
    vec![tag as u8; (tag.wrapping_mul(0x9E37_79B9) % (most + 1)) as usize]
}

#[test]
fn a_lane_does_what_its_model_does() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let options = LaneOptions {
            buffers: 1 + random.below(5) as u16,
            buffer_bytes: 1 + random.below(6_000) as u32,
        };
        let namespace = namespace();
        let (here, there) = (open(&namespace), open(&namespace));
        let mut lane = Lane::open(&mut here.session(), options).unwrap();
        let mut sender = LaneSender::connect(&mut there.session(), &lane.seed(), LONG).unwrap();
        let mut model = Model::default();
        let mut next = 0;
        let mut received = 0;
        for _ in 0..1_500 {
            match random.below(5) {
                0 | 1 => {
                    let bytes = bytes_of(next, options.buffer_bytes);
                    let mut session = there.session();
                    let is_kept = random.below(2) == 0;
                    let sent = match random.below(2) {
                        _ if is_kept => match sender.try_send_kept(&mut session, next, bytes) {
                            Ok(index) => Some(index),
                            Err(not_sent) => {
                                let bytes = bytes_of(next, options.buffer_bytes);
                                assert_eq!(not_sent.data, bytes);
                                assert!(matches!(not_sent.error, SendError::WouldBlock { .. }));
                                None
                            }
                        },
                        0 => sender.try_send(&mut session, next, &bytes).unwrap(),
                        _ => {
                            let index = random.below(options.buffers.into()) as u16;
                            let sent = sender.try_send_to(&mut session, index, next, &bytes);
                            let sent = sent.unwrap();
                            assert!(sent.is_none_or(|sent| sent == index));
                            sent
                        }
                    };
                    if let Some(index) = sent {
                        // Only a buffer that was given back is filled again.
                        assert_eq!(model.filled.insert(index, next), None);
                        model.kept.remove(&index);
                        if is_kept {
                            model.kept.insert(index, next);
                        }
                        next += 1;
                    }
                }
                2 | 3 => {
                    if let Some(message) = lane.next(&mut here.session()).unwrap() {
                        assert_eq!(model.filled.get(&message.index()), Some(&message.tag()));
                        assert_eq!(message.tag(), received);
                        received += 1;
                        model.held.push(message);
                    }
                }
                _ if !model.held.is_empty() => {
                    let at = random.below(model.held.len() as u64) as usize;
                    let message = model.held.swap_remove(at);
                    let bytes = bytes_of(message.tag(), options.buffer_bytes);
                    assert_eq!(lane.bytes(&message), bytes);
                    model.filled.remove(&message.index());
                    lane.give_back(&mut here.session(), message);
                }
                _ => {
                    there.session().poll();
                }
            }
            // Credit comes later than it is given, never earlier.
            assert!(sender.credits() + model.filled.len() <= usize::from(options.buffers));
        }
        until("all credit", || {
            here.session().poll();
            there.session().poll();
            let free = usize::from(options.buffers) - model.filled.len();
            (sender.credits() == free).then_some(())
        });
        let due: Vec<_> = model
            .kept
            .iter()
            .filter(|(index, tag)| model.filled.get(index) == Some(tag))
            .map(|(&index, &tag)| (index, tag))
            .collect();
        let mut kept: Vec<_> = sender
            .take_kept()
            .iter()
            .map(|kept| (kept.index, kept.tag))
            .collect();
        kept.sort_unstable();
        assert_eq!(kept, due);
    }
}

/// Peers fill what they may of the queue; the user keeps buffers for as long as it likes.
#[test]
fn a_shared_lane_does_what_its_model_does() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let options = SharedLaneOptions {
            buffers: 1 + random.below(6) as u16,
            buffer_bytes: 200,
            ..SharedLaneOptions::default()
        };
        let namespace = namespace();
        let here = open(&namespace);
        let mut lane = SharedLane::open(&mut here.session(), options).unwrap();
        let peers = [0, 1, 2].map(|_| open(&namespace));
        let ticket = lane.ticket();
        let targets = [0, 1, 2].map(|peer: usize| {
            let target = peers[peer].session().target(&ticket, LONG);
            target.unwrap()
        });
        let mut sent = [0_u32; 3];
        let mut received: BTreeMap<u64, u32> = BTreeMap::new();
        let mut held: Vec<SharedMessage> = Vec::new();
        for _ in 0..1_000 {
            match random.below(4) {
                0 => {
                    let peer = random.below(3) as usize;
                    // No more than the share of a peer in the queue.
                    let had: u32 = received.values().sum();
                    if sent.iter().sum::<u32>() - had >= 8 {
                        continue;
                    }
                    let number = sent[peer];
                    let mut data = number.to_le_bytes().to_vec();
                    data.extend(bytes_of(number, 190));
                    let mut session = peers[peer].session();
                    let target = &targets[peer];
                    let done = session.send_message(target, peer as u16, &data, Wait::Poll);
                    sent[peer] += u32::from(done.is_ok());
                }
                1 | 2 => {
                    let message = lane.next(&mut here.session()).unwrap();
                    if held.len() == usize::from(options.buffers) {
                        assert!(message.is_none());
                    }
                    let Some(message) = message else {
                        continue;
                    };
                    let due = received.entry(message.tag().into()).or_default();
                    let number = u32::from_le_bytes(*message.first_chunk().unwrap());
                    assert_eq!(number, *due);
                    assert_eq!(message[4..], bytes_of(number, 190));
                    *due += 1;
                    held.push(message);
                }
                _ if !held.is_empty() => {
                    let at = random.below(held.len() as u64) as usize;
                    lane.give_back(held.swap_remove(at));
                }
                _ => {}
            }
        }
        held.drain(..).for_each(|message| lane.give_back(message));
        until("all", || {
            while let Some(message) = lane.next(&mut here.session()).unwrap() {
                *received.entry(message.tag().into()).or_default() += 1;
                lane.give_back(message);
            }
            peers.iter().for_each(|peer| {
                peer.session().poll();
            });
            let all =
                (0..3).all(|peer| received.get(&(peer as u64)).copied().unwrap_or(0) == sent[peer]);
            all.then_some(())
        });
    }
}

/// A receiver that gives credit which it does not have, or for buffers that there are not, frees
/// nothing; what it says of a buffer that was not given back is its own loss.
#[test]
fn a_receiver_that_lies_about_credit_harms_only_its_lane() {
    let namespace = namespace();
    let (liar, there) = (open(&namespace), open(&namespace));
    let mut session = liar.session();
    let area = session.allocate(2 * 64).unwrap();
    let slot = session.open_slot(NewSlot::new(&area).entries(4)).unwrap();
    let mut seed = slot.ticket(0, 0, 128).unwrap().to_bytes().to_vec();
    seed.extend([2, 0, 0, 0, 64, 0, 0, 0]);
    let seed = LaneSeed::from_bytes(&seed).unwrap();
    let mut sender = LaneSender::connect(&mut there.session(), &seed, LONG).unwrap();
    let mut sent = 0;
    while sender
        .try_send_kept(&mut there.session(), sent, vec![sent as u8; 60])
        .is_ok()
    {
        sent += 1;
    }
    assert_eq!(sent, 2);
    let mut greeting = [0; 60];
    until("the greeting", || {
        there.session().poll();
        session.poll();
        let entry = slot.metadata()?.entry(2)?;
        (entry.metadata(&mut greeting) == TICKET_BYTES).then_some(())
    });
    let board = Ticket::from_bytes(&greeting[..TICKET_BYTES]).unwrap();
    assert_eq!(board.length_bytes, 24);
    let board = session.target(&board, LONG).unwrap();
    let terminus = session.terminus();
    let mut say = |offset: u64, value: u64| {
        let data = value.to_le_bytes();
        let message = Message::new(&data).at(offset);
        session.send_msg(terminus, &board, &message, LONG)
    };
    for value in [2, 3, u64::MAX] {
        say(0, value).unwrap();
        say(8, value).unwrap();
    }
    assert!(matches!(say(24, 1), Err(SendError::OutsideTicket(_))));
    for _ in 0..100 {
        there.session().poll();
        assert_eq!(sender.credits(), 0);
    }
    // The true word frees one buffer, once.
    say(8, 1).unwrap();
    until("credit", || {
        there.session().poll();
        sender.is_free(1).then_some(())
    });
    let kept = sender.try_send_kept(&mut there.session(), 2, b"again".to_vec());
    assert_eq!(kept, Ok(1));
    say(8, 1).unwrap();
    for _ in 0..100 {
        there.session().poll();
        assert_eq!(sender.credits(), 0);
    }
    let tags: Vec<_> = sender.take_kept().iter().map(|kept| kept.tag).collect();
    assert_eq!(tags, [0, 2]);
}

/// A lane has one sender: the greeting of another is refused, and so are its messages.
#[test]
fn a_second_sender_of_a_lane_is_refused() {
    let namespace = namespace();
    let (here, first, second) = (open(&namespace), open(&namespace), open(&namespace));
    let mut session = here.session();
    let mut lane = Lane::open(&mut session, LaneOptions::default()).unwrap();
    let mut sender = LaneSender::connect(&mut first.session(), &lane.seed(), LONG).unwrap();
    sender
        .send(&mut first.session(), 1, b"first", LONG)
        .unwrap();
    let message = lane.recv(&mut session, LONG).unwrap().expect("a message");
    drop(session);
    let stranger = LaneSender::connect(&mut second.session(), &lane.seed(), LONG).unwrap();
    let refused = until("a fence", || {
        here.session().poll();
        match second.fence(Wait::millis(1)) {
            Err(FenceError::TimedOut { .. }) => None,
            other => Some(other),
        }
    });
    assert!(
        matches!(refused, Err(FenceError::Refused { count: 1, .. })),
        "{refused:?}"
    );
    // A peer that has the keys and is not the sender can end the lane, and nothing else.
    stranger.close(&mut second.session());
    second.session().flush(LONG).unwrap();
    let mut session = here.session();
    let ended = lane.recv(&mut session, LONG);
    assert!(
        matches!(ended, Err(ReceiveError::Malformed { .. })),
        "{ended:?}"
    );
    assert_eq!(lane.bytes(&message), b"first");
}

/// A sender that does not keep to the ticket hides no message that waits behind its own.
/// The program does nothing with its manager but poll.
#[test]
fn a_poll_ends_a_lane_that_was_dropped() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let options = LaneOptions {
        buffers: 2,
        buffer_bytes: 64,
    };
    let mut session = here.session();
    let mut theirs = there.session();
    let mut lane = Lane::open(&mut session, options).unwrap();
    let seed = lane.seed();
    let mut sender = LaneSender::connect(&mut theirs, &seed, LONG).unwrap();
    assert_eq!(sender.try_send(&mut theirs, 0, b"one"), Ok(Some(0)));
    assert!(lane.recv(&mut session, LONG).unwrap().is_some());
    drop(sender);
    let mut polls = 0;
    while !matches!(
        lane.recv(&mut session, Wait::Poll),
        Err(ReceiveError::Closed)
    ) {
        theirs.poll();
        polls += 1;
        assert!(
            polls < 100_000,
            "its receiver learns that nothing more comes"
        );
    }
}

#[test]
fn messages_that_are_too_long_for_a_shared_lane_hide_no_other() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let options = SharedLaneOptions {
        buffer_bytes: 64,
        ..SharedLaneOptions::default()
    };
    let mut lane = SharedLane::open(&mut here.session(), options).unwrap();
    let forged = Ticket {
        length_bytes: 1_000,
        ..lane.ticket()
    };
    let mut session = there.session();
    let to = session.target(&forged, LONG).unwrap();
    for _ in 0..3 {
        session.send_message(&to, 1, &[1; 65], LONG).unwrap();
    }
    session.send_message(&to, 2, b"short", LONG).unwrap();
    let mut session = here.session();
    until("all messages in the queue", || {
        session.poll();
        let waiting = session.port_info(lane.port()).unwrap().waiting;
        (waiting == 4).then_some(())
    });
    let message = lane.next(&mut session).unwrap().expect("it is there");
    assert_eq!((message.tag(), &message[..]), (2, &b"short"[..]));
    assert_eq!(lane.too_long(), 3);
    lane.give_back(message);
    assert!(lane.next(&mut session).unwrap().is_none());
}

/// A look drops so many of them, and no more; what is behind them is news for the next wait.
#[test]
fn a_flood_of_messages_that_are_too_long_hides_no_other() {
    const TOO_LONG: u64 = 5_000;
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let options = SharedLaneOptions {
        buffer_bytes: 64,
        port: NewPort {
            queue_bytes: 2 << 20,
            peer_bytes: Some(2 << 20),
            ..NewPort::new().handlers(4096)
        },
        ..SharedLaneOptions::default()
    };
    let mut lane = SharedLane::open(&mut here.session(), options).unwrap();
    let forged = Ticket {
        length_bytes: 1_000,
        ..lane.ticket()
    };
    let to = there.session().target(&forged, LONG).unwrap();
    let send = |tag, data: &[u8]| {
        until("room", || {
            here.session().poll();
            let sent = there.session().send_message(&to, tag, data, Wait::Poll);
            sent.is_ok().then_some(())
        });
    };
    for _ in 0..TOO_LONG {
        send(1, &[1; 65]);
    }
    send(2, b"short");
    until("all messages in the queue", || {
        here.session().poll();
        let waiting = here.session().port_info(lane.port()).unwrap().waiting;
        (waiting as u64 == TOO_LONG + 1).then_some(())
    });
    // All that has come is known to the wait.
    here.wait(Wait::Poll).unwrap();
    let begun = Instant::now();
    let message = loop {
        let next = lane.next(&mut here.session()).unwrap();
        match next {
            Some(message) => break message,
            None => here.wait(LONG).unwrap(),
        }
        assert!(
            begun.elapsed() < TIMEOUT,
            "it waited though a message was there"
        );
    };
    assert_eq!((message.tag(), &message[..]), (2, &b"short"[..]));
    assert_eq!(lane.too_long(), TOO_LONG);
}
