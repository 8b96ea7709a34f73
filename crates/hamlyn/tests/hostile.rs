//! Peers that keep the rules of the link and break those of the protocols: forged keys,
//! floods, and lies about positions and credit.

use crate::support;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::by_hand::{
    CLOSE, ENLARGE, HELLO, HandReceiver, control_ticket, raw, seed_ticket, summed,
};
use crate::support::{LONG, Random, StopOnDrop, namespace, open, until};
use hamlyn::engine::key::Key;
use hamlyn::engine::refusal::Refusal;
use hamlyn::host::process::ProcessHost;
use hamlyn::stream::{Receiver, Sender, StreamOptions, StreamSeed};
use hamlyn::{
    LinkEnd, Manager, Message, NewSlot, ReceiveError, SendError, Ticket, Wait, tagged_write,
};

const OPTIONS: StreamOptions = StreamOptions {
    pieces: 4,
    piece_bytes: 64,
    limit_bytes: 1 << 14,
    ahead: false,
};
/// As many pieces, at once.
const AHEAD: StreamOptions = StreamOptions {
    piece_bytes: 4096,
    ahead: true,
    ..OPTIONS
};
/// Stops the threads that read it.
struct Stop(AtomicBool);

impl Stop {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn a_peer_that_tries_keys_is_cut_off_and_others_are_not() {
    const BUDGET: u32 = 500;
    let namespace = namespace();
    let victim = open(&namespace);
    victim.session().set_bad_keys_max(BUDGET);
    let mut receiver = tagged_write::Receiver::new(&victim, 64, 1024).unwrap();
    let ticket = receiver.ticket();
    let honest = open(&namespace);
    let friend = tagged_write::Sender::grow(&honest, &ticket, LONG).unwrap();
    std::thread::scope(|scope| {
        let namespace = &namespace;
        let guesser = scope.spawn(move || {
            let manager = open(namespace);
            let target = manager.session().target(&ticket, LONG).unwrap();
            let identity = manager.session().identity();
            let mut random = Random::new(5);
            let error = loop {
                let guess = Ticket {
                    key: Key::from_bits(random.next()),
                    ..ticket
                };
                let guess = target.with_ticket(guess).unwrap();
                let terminus = manager.terminus();
                let message = Message::new(b"guess");
                match manager.session().send_msg(terminus, &guess, &message, LONG) {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, SendError::PeerLost(_)), "{error}");
            identity
        });
        let lost = support::next_loss(&victim, LONG);
        let lost = lost.expect("the cut");
        assert_eq!(lost.end, LinkEnd::BadKeys);
        assert!(lost.to_string().contains("too many wrong keys"), "{lost}");
        assert_eq!(lost.peer, guesser.join().unwrap());
    });
    let refusals = victim.session().refusals().count(Refusal::BadKey);
    assert_eq!(refusals, u64::from(BUDGET) + 1);
    // Nothing was let in, and the friend is a friend still.
    friend.send(0, b"friend", 7, LONG).unwrap();
    assert_eq!(receiver.get_tag(LONG), Ok(Some(7)));
}

/// A re-key is told to nobody on one host: an honest writer goes on with its old key for a while,
/// at full rate.
#[test]
fn a_writer_with_stale_keys_keeps_its_link_however_much_it_sends() {
    const BUDGET: u32 = 50;
    const STALE: u64 = 20_000;
    let namespace = namespace();
    let owner = open(&namespace);
    owner.session().set_bad_keys_max(BUDGET);
    let area = owner.session().allocate(64).unwrap();
    let slots = [0, 1, 2].map(|_| owner.session().open_slot(NewSlot::new(&area)).unwrap());
    let mut slots = slots.map(Some);
    let writer = open(&namespace);
    let targets = [0, 1, 2].map(|place| {
        let slot = slots[place].as_ref().unwrap();
        let ticket = slot.fast_ticket(0, 64).unwrap();
        writer.session().target(&ticket, LONG).unwrap()
    });
    for slot in slots.iter_mut().flatten() {
        owner.session().rekey_slot(slot).unwrap();
    }
    let terminus = writer.terminus();
    let mut sent = 0;
    until("all of them", || {
        while sent < STALE {
            let target = &targets[(sent % 3) as usize];
            let message = Message::new(b"stale");
            match writer
                .session()
                .send_msg(terminus, target, &message, Wait::Poll)
            {
                Ok(_) => sent += 1,
                Err(SendError::WouldBlock { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        writer.session().poll();
        owner.session().poll();
        let refused = owner.session().refusals().count(Refusal::BadKey);
        (refused == STALE).then_some(())
    });
    assert_eq!(owner.session().peers().count(), 1, "the link stays");
}

#[test]
fn a_flood_of_fast_messages_hurts_its_own_receiver_only() {
    let namespace = namespace();
    let victim = open(&namespace);
    let mut flooded = tagged_write::Receiver::new(&victim, 64, 64).unwrap();
    let mut other = tagged_write::Receiver::new(&victim, 64, 64).unwrap();
    let (flood_ticket, ticket) = (flooded.ticket(), other.ticket());
    let stop = Stop(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (stop, namespace) = (&stop, &namespace);
        let _stopper = StopOnDrop(&stop.0);
        scope.spawn(move || {
            let manager = open(namespace);
            let sender = tagged_write::Sender::grow(&manager, &flood_ticket, LONG).unwrap();
            for tag in 0_u64.. {
                let _ = sender.send(0, &[], tag, Wait::millis(10));
                if stop.is_set() {
                    break;
                }
            }
        });
        scope.spawn(move || {
            let manager = open(namespace);
            let sender = tagged_write::Sender::grow(&manager, &ticket, LONG).unwrap();
            let mut echo = tagged_write::Receiver::new(&manager, 64, 16).unwrap();
            for tag in 0..500 {
                let bytes = echo.ticket().to_bytes();
                sender.send(0, &bytes, tag, LONG).unwrap();
                assert_eq!(echo.get_tag(LONG), Ok(Some(tag)));
            }
        });
        // The flood is under way when the honest one begins.
        let mut polls = 0_u64;
        until("the flood", || {
            polls += 1;
            victim.session().poll();
            let looked = polls
                .is_multiple_of(1_000)
                .then(|| flooded.get_tag(Wait::Poll));
            matches!(looked, Some(Err(ReceiveError::Overrun(_)))).then_some(())
        });
        // The honest one waits for its answer each time, so nothing of it may be lost.
        for expected in 0..500 {
            let tag = until("a tag", || other.get_tag(LONG).unwrap());
            assert_eq!(tag, expected);
            let mut bytes = [0; 52];
            other.area().read_at(0, &mut bytes).unwrap();
            let echo = Ticket::from_bytes(&bytes).unwrap();
            let echo = tagged_write::Sender::grow(&victim, &echo, LONG).unwrap();
            echo.send(0, &[], tag, LONG).unwrap();
        }
        assert_eq!(other.lost(), 0);
    });
    while flooded.get_tag(Wait::Poll) != Ok(None) {}
    assert!(flooded.lost() > 0);
}

/// Credit that no honest receiver gives, or that is just so.
fn lie(random: &mut Random) -> u64 {
    let released = match random.below(4) {
        0 => random.below(8),
        1 => random.below(1 << 16),
        2 => (1 << 32) - 1,
        _ => random.next() & ((1 << 32) - 1),
    };
    let extent = if random.below(2) == 0 {
        random.below(3)
    } else {
        random.below(1 << 14)
    };
    let answers = if random.below(2) == 0 {
        random.below(8)
    } else {
        random.below(1 << 16)
    };
    let flags = if random.below(4) == 0 {
        random.below(4)
    } else {
        0
    };
    released | extent << 32 | answers << 46 | flags << 62
}

/// An extent that is none, or one that is not there.
fn lying_note(random: &mut Random) -> Vec<u8> {
    let serial = match random.below(3) {
        0 => random.next(),
        _ => random.below(5),
    };
    let pieces = match random.below(4) {
        0 => random.next() as u32,
        // Sizes of pieces from 1 byte to 1 GiB.
        _ => random.below(9) as u32 | (random.below(31) as u32) << 16,
    };
    let mut note = summed(
        [
            &serial.to_le_bytes()[..],
            &(random.next() as u32).to_le_bytes(),
            &random.next().to_le_bytes(),
            &pieces.to_le_bytes(),
            &(random.below(8) as u16).to_le_bytes(),
        ]
        .concat(),
    );
    match random.below(4) {
        0 => note.truncate(random.below(30) as usize),
        1 => note.extend(random.bytes(30)),
        _ => {}
    }
    note
}

#[test]
fn a_receiver_that_lies_about_credit_harms_only_its_stream() {
    for round in 0..60_u64 {
        let namespace = namespace();
        let liar = open(&namespace);
        let mut lying = HandReceiver::new(&liar, OPTIONS);
        let seed = lying.seed;
        let done = Stop(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (done, namespace) = (&done, &namespace);
            scope.spawn(move || {
                let _stopper = StopOnDrop(&done.0);
                let victim = open(namespace);
                let mut sender = Sender::grow(&victim, &seed, LONG).unwrap();
                let mut random = Random::new(round);
                for _ in 0..300 {
                    let length = random.below(400) as usize;
                    let wait = if random.below(4) == 0 {
                        Wait::millis(1)
                    } else {
                        Wait::Poll
                    };
                    let begun = Instant::now();
                    match sender.send(&vec![1; length], wait) {
                        Ok(()) | Err(SendError::WouldBlock { .. }) => {}
                        Err(
                            SendError::RecordTooLarge { .. }
                            | SendError::ClosedByReceiver
                            | SendError::Finished
                            | SendError::Refused(_)
                            | SendError::OutsideTicket(_),
                        ) => {}
                        Err(error) => panic!("{error}"),
                    }
                    assert!(
                        begun.elapsed() < Duration::from_secs(5),
                        "kept for too long"
                    );
                    assert!(sender.pieces_free() <= 1 << 16);
                }
                let _ = sender.close(Wait::millis(1));
                assert_eq!(victim.session().slots_open(), 0);
            });
            let credit = lying.credit(&liar);
            let target = liar.session().target(&credit, LONG).unwrap();
            let mut random = Random::new(round + 1000);
            while !done.is_set() {
                if random.below(3) > 0 {
                    raw(&liar, &target, &Message::new(&[]).word(lie(&mut random)));
                } else {
                    let note = Ticket {
                        metadata_index: 0,
                        ..credit
                    };
                    let note = target.with_ticket(note).unwrap();
                    let bytes = lying_note(&mut random);
                    raw(&liar, &note, &Message::new(&[]).metadata(&bytes));
                }
                liar.session().poll();
            }
        });
    }
}

#[test]
fn a_sender_that_lies_about_positions_harms_only_its_stream() {
    let mut ends = [0_u32; 3];
    for round in 0..60_u64 {
        let namespace = namespace();
        let victim = open(&namespace);
        let options = if round % 2 == 0 { OPTIONS } else { AHEAD };
        let mut receiver = Receiver::new(&victim, options).unwrap();
        let mut healthy = Receiver::new(&victim, options).unwrap();
        let seed = receiver.make_seed();
        let healthy_seed = healthy.make_seed();
        let done = Stop(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (done, namespace) = (&done, &namespace);
            let _stopper = StopOnDrop(&done.0);
            scope.spawn(move || tell_lies(namespace, &seed, round, done));
            scope.spawn(move || {
                let honest = open(namespace);
                let mut sender = Sender::grow(&honest, &healthy_seed, LONG).unwrap();
                for number in 0..200_u8 {
                    sender.send(&[number; 40], LONG).unwrap();
                }
                sender.close(LONG).unwrap();
            });
            for number in 0..200_u8 {
                for _ in 0..3 {
                    let begun = Instant::now();
                    match receiver.recv(Wait::Poll) {
                        Ok(Some(record)) => {
                            // Whatever it is, it lies in our hands and does not change.
                            let bytes = record.to_vec();
                            victim.session().poll();
                            assert_eq!(record, bytes);
                            ends[0] += 1;
                        }
                        Ok(None) => {}
                        Err(ReceiveError::Malformed {
                            protocol: "stream", ..
                        }) => ends[1] += 1,
                        Err(ReceiveError::Closed) => ends[2] += 1,
                        Err(ReceiveError::PeerLost(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                    assert!(
                        begun.elapsed() < Duration::from_secs(5),
                        "kept for too long"
                    );
                }
                let record = healthy.recv(LONG).expect("no error");
                let record = record.expect("a healthy record");
                assert_eq!(*record, [number; 40]);
                drop(record);
            }
            assert!(receiver.memory_bytes() <= options.limit_bytes);
        });
        drop(receiver);
        drop(healthy);
        assert_eq!(victim.session().slots_open(), 0);
    }
    println!(
        "{} records, {} malformed, {} closed",
        ends[0], ends[1], ends[2]
    );
    assert!(
        ends[0] > 0 && ends[1] > 0,
        "the lies never got so far: {ends:?}"
    );
}

/// Raw messages to all entries of a stream: some as a correct sender writes them.
fn tell_lies(namespace: &str, seed: &StreamSeed, round: u64, done: &Stop) {
    let manager = open(namespace);
    let ticket = seed_ticket(seed);
    let target = manager.session().target(&ticket, LONG).unwrap();
    let mut random = Random::new(round);
    let own = tagged_write::Receiver::new(&manager, 0, 16)
        .unwrap()
        .ticket();
    let quiet = round.is_multiple_of(3);
    let hello = match round % 5 {
        _ if quiet => own.to_bytes().to_vec(),
        // Somebody else's ticket; a ticket to nobody; none at all.
        0 => ticket.to_bytes().to_vec(),
        1 => Ticket {
            destination: hamlyn::Destination {
                node: 0,
                user: 0,
                interface: 1,
            },
            ..own
        }
        .to_bytes()
        .to_vec(),
        2 if round.is_multiple_of(2) => random.bytes(60),
        _ => own.to_bytes().to_vec(),
    };
    let control = |which| target.with_ticket(control_ticket(seed, which));
    let end = ticket.length_bytes;
    let empty = Message::new(&[]);
    raw(&manager, &control(HELLO).unwrap(), &empty.metadata(&hello));
    let mut next = 0_u64;
    let extent = |random: &mut Random| match random.below(8) {
        0 if !quiet => random.next(),
        1 if !quiet => random.below(3),
        _ => 0,
    };
    for step in 0_u64.. {
        if done.is_set() {
            return;
        }
        match random.below(if quiet { 30 } else { 12 }) {
            0 => {
                let position = if quiet || random.below(2) == 0 {
                    next
                } else {
                    random.below(20)
                };
                let note = [extent(&mut random), position, random.below(1 << 15)];
                let note = note.map(u64::to_le_bytes).concat();
                raw(&manager, &control(ENLARGE).unwrap(), &empty.metadata(&note));
            }
            1 if step > 20 && random.below(20) == 0 || quiet && step > 500 => {
                let position = if quiet || random.below(3) > 0 {
                    next
                } else {
                    random.next()
                };
                let note = [extent(&mut random), position]
                    .map(u64::to_le_bytes)
                    .concat();
                raw(&manager, &control(CLOSE).unwrap(), &empty.metadata(&note));
            }
            _ => {
                // At its own pace, so that the piece it writes is free.
                if quiet {
                    random.dawdle(Duration::from_micros(20));
                }
                let right = quiet || random.below(8) > 0;
                let index = if right { next % 4 } else { random.below(7) };
                let length = random.below(65) as u32;
                let (kind, said) = if right {
                    ([1, 5][random.below(2) as usize], length)
                } else {
                    (random.below(8), random.below(300) as u32)
                };
                let word = (u64::from(said) | kind << 32).to_le_bytes();
                let entry = Ticket {
                    metadata_index: index as u16,
                    ..ticket
                };
                let piece = target.with_ticket(entry).unwrap();
                let data = vec![step as u8; length as usize];
                let at = if right {
                    index * (end / 4)
                } else {
                    random.below(end - 64)
                };
                let message = Message::new(&data).at(at).metadata(&word);
                if raw(&manager, &piece, &message) && right {
                    next += 1;
                }
            }
        }
    }
}

/// Messages of 16 bytes, which take the fast path, and are checked as others are.
#[test]
fn short_lies_are_checked_as_others_are() {
    const OPTIONS: StreamOptions = StreamOptions {
        pieces: 8,
        piece_bytes: 256,
        limit_bytes: 1 << 14,
        ahead: false,
    };
    const WHOLE: u64 = 1 << 32;
    let namespace = namespace();
    let (mut victim, liar) = (open(&namespace), open(&namespace));
    let mut receiver = Receiver::new(&victim, OPTIONS).unwrap();
    let seed = receiver.make_seed();
    let ticket = seed_ticket(&seed);
    let target = liar.session().target(&ticket, LONG).unwrap();
    // What is said beside the records has no place for data.
    let control = Ticket {
        length_bytes: 16,
        ..control_ticket(&seed, ENLARGE)
    };
    let said = Message::new(&[9; 16]).metadata(&[9; 8]);
    assert!(raw(&liar, &target.with_ticket(control).unwrap(), &said));
    until("its refusal", || {
        victim.session().poll();
        let refusals = victim.session().refusals();
        (refusals.count(Refusal::OutOfBounds) == 1).then_some(())
    });
    let lie = |index: u64, offset: u64, word: u64, data: &[u8]| {
        let to = Ticket {
            metadata_index: index as u16,
            ..ticket
        };
        let metadata = word.to_le_bytes();
        let message = Message::new(data).at(offset).metadata(&metadata);
        assert!(raw(&liar, &target.with_ticket(to).unwrap(), &message));
    };
    let refused = |receiver: &Receiver, victim: &Manager<ProcessHost>, count, reason| {
        until("a refusal", || {
            victim.session().poll();
            let info = receiver.info().unwrap().unwrap();
            (info.refusals.count(reason) == count).then_some(())
        });
    };
    let take = |receiver: &mut Receiver, _: &Manager<ProcessHost>, expected: &[u8]| {
        let record = receiver.recv(LONG).expect("no error");
        let record = record.expect("a record");
        assert_eq!(record, expected);
        record.keep()
    };
    // A peer that was never heard of has no credit, so no more is armed than at first.
    lie(0, 0, WHOLE | 16, &[1; 16]);
    let first = take(&mut receiver, &mut victim, &[1; 16]);
    // In our hands; and released, but not told: no write is let in, and what is read stays.
    lie(0, 0, WHOLE | 16, &[9; 16]);
    refused(&receiver, &mut victim, 1, Refusal::EntrySpent);
    assert_eq!(receiver.view(&first).unwrap(), [1; 16]);
    drop(first);
    receiver.reclaim();
    lie(0, 0, WHOLE | 16, &[9; 16]);
    refused(&receiver, &mut victim, 2, Refusal::EntrySpent);
    // Into the place of another entry, or across its end; nothing is let in there.
    lie(1, 512, WHOLE | 16, &[9; 16]);
    lie(1, 256 + 248, WHOLE | 16, &[9; 16]);
    refused(&receiver, &mut victim, 2, Refusal::OutOfLimits);
    assert!(receiver.recv(Wait::Poll).unwrap().is_none());
    // Out of turn: delivered in turn. Not where a record begins: shown is what the piece holds
    // there.
    lie(3, 768, WHOLE | 16, &[4; 16]);
    lie(2, 512, WHOLE | 16, &[3; 16]);
    assert!(receiver.recv(Wait::millis(1)).unwrap().is_none());
    lie(1, 256 + 16, WHOLE | 16, &[2; 16]);
    take(&mut receiver, &mut victim, &[0; 16]);
    take(&mut receiver, &mut victim, &[3; 16]);
    let third = take(&mut receiver, &mut victim, &[4; 16]);
    // Longer than was sent, but not than the piece: the rest of our own memory.
    lie(4, 1024, WHOLE | 20, &[5; 16]);
    let long = [[5; 16].as_slice(), &[0; 4]].concat();
    take(&mut receiver, &mut victim, &long);
    drop(third);
    // The next is short again, so the fast path is taken up again.
    lie(5, 1280, WHOLE | 16, &[6; 16]);
    take(&mut receiver, &mut victim, &[6; 16]);
    // Nor has what is no piece an entry here.
    lie(8, 2048 - 16, WHOLE | 16, &[9; 16]);
    refused(&receiver, &mut victim, 1, Refusal::NoMetadataEntry);
    // Of a kind that there is not.
    lie(6, 1536, 77 << 32 | 16, &[7; 16]);
    let error = until("the end", || receiver.recv(LONG).err());
    assert!(
        matches!(
            error,
            ReceiveError::Malformed {
                protocol: "stream",
                ..
            }
        ),
        "{error}"
    );
    // It stays broken, also when the next piece is right.
    lie(7, 1792, WHOLE | 16, &[8; 16]);
    let again = receiver
        .recv(Wait::millis(1))
        .map(|record| record.is_some());
    assert!(matches!(again, Err(ReceiveError::Malformed { .. })));
    drop(receiver);
}
