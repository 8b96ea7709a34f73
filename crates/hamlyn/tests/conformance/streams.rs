//! The stream protocol (`Hamlyn 3.3`): growing, holding, closing.

use hamlyn::stream::{Kept, Receiver, Record, Sender, StreamOptions, StreamSeed};
use hamlyn::{ReceiveError, SendError, Wait};

use crate::fences::fence_all;
use crate::peer::{Peer, pattern};
use crate::{Host, World};

pub(crate) const GROW: Wait = Wait::millis(10_000);

pub(crate) fn options(pieces: u32, piece_bytes: u32, limit_bytes: u64) -> StreamOptions {
    StreamOptions {
        pieces,
        piece_bytes,
        limit_bytes,
        ahead: false,
    }
}

/// All of the limit at once.
pub(crate) fn ahead(piece_bytes: u32, limit_bytes: u64) -> StreamOptions {
    StreamOptions {
        ahead: true,
        ..options(1, piece_bytes, limit_bytes)
    }
}

/// Opens the receiving end and says the seed.
pub(crate) fn receiver(peer: &Peer, options: StreamOptions) -> Receiver<Host> {
    let receiver = peer.with(|manager| Receiver::new(manager, options).unwrap());
    let seed = peer.with(|_| receiver.make_seed());
    peer.put("seed", &seed.to_bytes());
    receiver
}

pub(crate) fn sender(peer: &Peer) -> Sender<Host> {
    let seed = StreamSeed::from_bytes(&peer.get("seed")).unwrap();
    peer.with(|manager| Sender::grow(manager, &seed, GROW).unwrap())
}

pub(crate) fn next(peer: &Peer, receiver: &mut Receiver<Host>) -> Kept {
    peer.receive("a record", |_, wait| {
        Ok(receiver.recv(wait)?.map(Record::keep))
    })
}

pub(crate) fn send(peer: &Peer, sender: &mut Sender<Host>, data: &[u8]) {
    peer.send(|_, wait| sender.send(data, wait)).unwrap();
}

pub(crate) fn flush(peer: &Peer, sender: &mut Sender<Host>) {
    peer.send(|_, wait| sender.flush(wait)).unwrap();
}

pub(crate) fn close(peer: &Peer, mut sender: Sender<Host>) {
    flush(peer, &mut sender);
    peer.with(|_| sender.close(GROW)).unwrap();
}

pub(crate) fn release(peer: &Peer, receiver: &mut Receiver<Host>, record: Kept) {
    drop(record);
    peer.with(|_| receiver.reclaim());
}

pub(crate) fn ended(peer: &Peer, receiver: &mut Receiver<Host>) {
    peer.until("the end", |_, wait| match receiver.recv(wait) {
        Err(ReceiveError::Closed) => Some(()),
        Ok(None) => None,
        other => panic!("{other:?}"),
    });
    // It stays ended.
    let again = peer.with(|_| receiver.recv(Wait::Poll));
    assert!(matches!(again, Err(ReceiveError::Closed)), "{again:?}");
}

pub(crate) fn records_of_every_size_arrive_in_order(world: &World) {
    every_size_arrives_in_order(world, options(8, 1024, 8 * 1024));
}

pub(crate) fn a_sender_that_may_go_ahead_sends_records_of_every_size(world: &World) {
    every_size_arrives_in_order(world, ahead(4096, 32 << 10));
}

fn every_size_arrives_in_order(world: &World, options: StreamOptions) {
    const PIECE: usize = 1024;
    let lengths = || {
        (0..=300)
            .chain([
                PIECE - 1,
                PIECE,
                PIECE + 1,
                2 * PIECE,
                2 * PIECE + 1,
                7 * PIECE,
                8 * PIECE,
            ])
            .chain((0..38).map(|n| n * 211))
            .chain([0, 0, 8 * PIECE, 0])
    };
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options);
            for (number, length) in lengths().enumerate() {
                let record = next(peer, &mut receiver);
                assert!(receiver.view(&record).unwrap() == pattern(number as u64, length));
                release(peer, &mut receiver, record);
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for (number, length) in lengths().enumerate() {
                send(peer, &mut sender, &pattern(number as u64, length));
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn small_records_are_packed_and_flushed(world: &World) {
    const RECORDS: u32 = 100;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 1024, 4096));
            peer.get("flushed");
            // More records than pieces, none of which was given back.
            let records: Vec<Kept> = (0..RECORDS)
                .map(|number| {
                    let record = next(peer, &mut receiver);
                    assert_eq!(receiver.view(&record).unwrap(), number.to_le_bytes());
                    record
                })
                .collect();
            assert_eq!(receiver.memory_bytes(), 4096);
            drop(records);
            peer.put("released", &[]);
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..RECORDS {
                send(peer, &mut sender, &number.to_le_bytes());
            }
            flush(peer, &mut sender);
            peer.put("flushed", &[]);
            peer.get("released");
            close(peer, sender);
        },
    ]);
}

/// To the limit, though the receiver's program reads nothing before, twice.
pub(crate) fn a_sender_goes_ahead_to_the_limit(world: &World) {
    const PIECES: u64 = 32;
    const PIECE: usize = 4096;
    // A quarter that was read may not be told yet to a sender that does not wait.
    const AGAIN: u64 = PIECES - PIECES / 4;
    let rounds = || [0..PIECES, PIECES..PIECES + AGAIN].into_iter().enumerate();
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, ahead(PIECE as u32, PIECES * PIECE as u64));
            for (round, records) in rounds() {
                peer.get(&format!("sent {round}"));
                for number in records {
                    let record = next(peer, &mut receiver);
                    assert!(receiver.view(&record).unwrap() == pattern(number, PIECE));
                    release(peer, &mut receiver, record);
                }
                // The sender's greeting may be noticed after its records, and then it is told what
                // was given back when a receiver has looked for nothing for a while.
                for _ in 0..256 {
                    let nothing =
                        peer.with(|_| receiver.recv(Wait::Poll).map(|came| came.is_none()));
                    assert!(nothing.unwrap());
                }
                // A sender that asks before it hears of that waits for an answer.
                match peer.receives_unasked() {
                    true => fence_all(peer).unwrap(),
                    false => peer.flush(),
                }
                peer.put(&format!("read {round}"), &[]);
            }
            assert_eq!(receiver.memory_bytes(), PIECES * PIECE as u64);
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for (round, records) in rounds() {
                for number in records {
                    send(peer, &mut sender, &pattern(number, PIECE));
                }
                flush(peer, &mut sender);
                if round == 0 {
                    assert_eq!(sender.pieces_free(), 0);
                }
                peer.put(&format!("sent {round}"), &[]);
                peer.get(&format!("read {round}"));
            }
            close(peer, sender);
        },
    ]);
}

/// A look that finds nothing gives nothing back: its sender would write over a record that is kept.
pub(crate) fn a_look_that_finds_nothing_leaves_kept_records_alone(world: &World) {
    const PIECES: u32 = 4;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(PIECES, 256, 1024));
            for length in [1, 8, 200] {
                let record = next(peer, &mut receiver);
                for _ in 0..3 {
                    let nothing =
                        peer.with(|_| receiver.recv(Wait::Poll).map(|came| came.is_none()));
                    assert_eq!(nothing, Ok(true));
                    assert_eq!(receiver.view(&record), Some(&*pattern(7, length)));
                }
                peer.put(&format!("kept {length}"), &[]);
                let more: Vec<Kept> = (1..PIECES).map(|_| next(peer, &mut receiver)).collect();
                assert_eq!(receiver.view(&record), Some(&*pattern(7, length)));
                drop(more);
                release(peer, &mut receiver, record);
                peer.put(&format!("given back {length}"), &[]);
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for length in [1, 8, 200] {
                send(peer, &mut sender, &pattern(7, length));
                flush(peer, &mut sender);
                peer.get(&format!("kept {length}"));
                for number in 1..PIECES {
                    send(peer, &mut sender, &pattern(number.into(), length));
                    flush(peer, &mut sender);
                }
                peer.get(&format!("given back {length}"));
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_receiver_that_holds_everything_gets_more_memory(world: &World) {
    const RECORDS: u64 = 60;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 256, 1 << 20));
            let records: Vec<Kept> = (0..RECORDS).map(|_| next(peer, &mut receiver)).collect();
            let memory = receiver.memory_bytes();
            assert!((RECORDS * 256..=1 << 20).contains(&memory), "{memory}");
            for (number, record) in records.iter().enumerate() {
                assert!(receiver.view(record).unwrap() == pattern(number as u64, 200));
            }
            ended(peer, &mut receiver);
            // What is not needed any more goes back. (While the end was awaited, more may have
            // been opened, since everything was held.)
            let memory = receiver.memory_bytes();
            drop(records);
            peer.with(|_| receiver.reclaim());
            assert!(receiver.memory_bytes() < memory);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..RECORDS {
                send(peer, &mut sender, &pattern(number, 200));
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_record_longer_than_the_extent_enlarges_it(world: &World) {
    let lengths = [10, 5_000, 100, 40_000, 3, 200_000, 0, 199_999];
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 256, 1 << 20));
            let mut held = Vec::new();
            for (number, &length) in lengths.iter().enumerate() {
                let record = next(peer, &mut receiver);
                assert!(receiver.view(&record).unwrap() == pattern(number as u64, length));
                // The second is held while the stream moves on twice.
                if number == 1 {
                    held.push(record);
                } else if number > 4 {
                    release(peer, &mut receiver, record);
                }
                if number == 4 {
                    assert!(receiver.view(&held[0]).unwrap() == pattern(1, 5_000));
                }
            }
            ended(peer, &mut receiver);
            assert!(receiver.memory_bytes() <= 1 << 20);
        },
        &|peer| {
            let mut sender = sender(peer);
            for (number, &length) in lengths.iter().enumerate() {
                send(peer, &mut sender, &pattern(number as u64, length));
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_record_of_exactly_the_limit_arrives(world: &World) {
    const LIMIT: usize = 1 << 18;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(16, 4096, LIMIT as u64));
            for length in [10, LIMIT, 1, LIMIT] {
                let record = next(peer, &mut receiver);
                assert!(
                    receiver.view(&record).unwrap() == pattern(1, length),
                    "{length}"
                );
                assert!(receiver.memory_bytes() <= LIMIT as u64);
                release(peer, &mut receiver, record);
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for length in [10, LIMIT, 1, LIMIT] {
                send(peer, &mut sender, &pattern(1, length));
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_record_beyond_the_limit_is_refused(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 256, 4096));
            let record = next(peer, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), b"before");
            release(peer, &mut receiver, record);
            let record = next(peer, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), b"after");
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            send(peer, &mut sender, b"before");
            let error = peer
                .send(|_, wait| sender.send(&[0; 4097], wait))
                .unwrap_err();
            assert!(
                matches!(
                    error,
                    SendError::RecordTooLarge {
                        length_bytes: 4097,
                        ..
                    }
                ),
                "{error}"
            );
            assert!(
                error.to_string().contains("raise the receiver's limit"),
                "{error}"
            );
            // Nothing of it was sent, and the stream goes on.
            send(peer, &mut sender, b"after");
            close(peer, sender);
        },
    ]);
}

pub(crate) fn records_are_given_back_in_any_order(world: &World) {
    const ROUNDS: u64 = 50;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(8, 64, 8 * 64));
            for round in 0..ROUNDS {
                let mut records: Vec<Kept> = (0..4).map(|_| next(peer, &mut receiver)).collect();
                for (number, record) in records.iter().enumerate() {
                    let expected = pattern(round * 4 + number as u64, 60);
                    assert!(receiver.view(record).unwrap() == expected);
                }
                // Those that are left are what they were, and the first holds back the memory of
                // all.
                while !records.is_empty() {
                    let index = (round as usize * 7 + records.len() * 3) % records.len();
                    release(peer, &mut receiver, records.remove(index));
                    for record in &records {
                        assert_eq!(receiver.view(record).unwrap().len(), 60);
                    }
                }
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..ROUNDS * 4 {
                send(peer, &mut sender, &pattern(number, 60));
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_sender_that_polls_is_told_that_it_would_block(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 64, 4 * 64));
            let sent = peer.get("sent");
            let mut held = Vec::new();
            for number in 0..sent[0] {
                let record = next(peer, &mut receiver);
                assert_eq!(receiver.view(&record).unwrap(), [number; 50]);
                held.push(record);
            }
            let none = peer.with(|_| receiver.recv(Wait::Poll).unwrap().is_none());
            assert!(none, "what would have blocked was not sent");
            drop(held);
            let record = next(peer, &mut receiver);
            assert_eq!(receiver.view(&record).unwrap(), [99; 50]);
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            let mut sent = 0;
            let error = loop {
                match peer.with(|_| sender.send(&[sent; 50], Wait::Poll)) {
                    Ok(()) => sent += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, SendError::WouldBlock { .. }), "{error}");
            assert_eq!(sent, 4, "as many records as there are pieces");
            assert_eq!(sender.pieces_free(), 0);
            for _ in 0..100 {
                let again = peer.with(|_| sender.send(&[98; 50], Wait::Poll));
                assert!(matches!(again, Err(SendError::WouldBlock { .. })));
            }
            let late = peer.with(|_| sender.send(&[98; 50], Wait::millis(5)));
            assert!(matches!(late, Err(SendError::WouldBlock { .. })));
            peer.put("sent", &[sent]);
            send(peer, &mut sender, &[99; 50]);
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_staged_record_arrives_whole(world: &World) {
    // Far more than fits a work queue of 63 pieces.
    let lengths = [300, 70_000, 129, 150_000, 128, 150_000];
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(200, 1024, 200 << 10));
            for (number, &length) in lengths.iter().enumerate() {
                let record = next(peer, &mut receiver);
                assert!(receiver.view(&record).unwrap() == pattern(number as u64, length));
                release(peer, &mut receiver, record);
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for (number, &length) in lengths.iter().enumerate() {
                // The buffer is the caller's again when the call returns.
                peer.send(|_, _| {
                    let mut data = pattern(number as u64, length);
                    let sent = sender.send(&data, Wait::Poll);
                    data.fill(0xEE);
                    sent
                })
                .unwrap();
            }
            close(peer, sender);
        },
    ]);
}

/// Together they are longer than a packet, and than what may be copied into a queue.
pub(crate) fn packed_records_go_though_their_sender_only_polls(world: &World) {
    const RECORDS: u64 = 9;
    const BYTES: usize = 32000;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 256 << 10, 1 << 20));
            for number in 0..RECORDS {
                let record = next(peer, &mut receiver);
                assert_eq!(receiver.view(&record).unwrap(), pattern(number, BYTES));
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..RECORDS {
                let data = pattern(number, BYTES);
                peer.send(|_, _| sender.send(&data, Wait::Poll)).unwrap();
            }
            peer.send(|_, _| sender.flush(Wait::Poll)).unwrap();
            close(peer, sender);
        },
    ]);
}

/// What may be copied into a queue may be longer than a piece, and there may be room for one of
/// them only.
pub(crate) fn a_polled_record_in_several_pieces_is_never_cut(world: &World) {
    const RECORDS: u64 = 300;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(1024, 64, 64 << 10));
            for number in 0..RECORDS {
                let record = next(peer, &mut receiver);
                assert_eq!(receiver.view(&record).unwrap(), pattern(number, 128));
                release(peer, &mut receiver, record);
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..RECORDS {
                let data = pattern(number, 128);
                peer.send(|_, _| sender.send(&data, Wait::Poll)).unwrap();
            }
            close(peer, sender);
        },
    ]);
}

/// At the limit, with everything held, a receiver gives back single pieces: less than it
/// would report on its own account.
pub(crate) fn small_releases_at_the_limit_do_not_stall(world: &World) {
    const PIECES: usize = 16;
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(PIECES as u32, 64, PIECES as u64 * 64));
            let mut held = std::collections::VecDeque::new();
            for number in 0..200_u8 {
                let record = next(peer, &mut receiver);
                assert_eq!(receiver.view(&record).unwrap(), [number; 64]);
                held.push_back(record);
                if held.len() == PIECES {
                    // Let the sender notice, and ask, and be denied.
                    let none = peer.with(|_| {
                        receiver
                            .recv(Wait::millis(1))
                            .map(|record| record.is_some())
                    });
                    assert!(
                        matches!(none, Ok(false) | Err(ReceiveError::Closed)),
                        "{none:?}"
                    );
                    release(peer, &mut receiver, held.pop_front().unwrap());
                }
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..200 {
                send(peer, &mut sender, &[number; 64]);
            }
            close(peer, sender);
        },
    ]);
}

/// A record is held while pieces after it are passed over, because the next does not fit
/// before the end.
pub(crate) fn pieces_passed_over_are_given_back(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 64, 4 * 64));
            for number in 0..100_u8 {
                let length = if number % 2 == 0 { 60 } else { 250 };
                let record = next(peer, &mut receiver);
                assert_eq!(receiver.view(&record).unwrap(), vec![number; length]);
                let none = peer.with(|_| {
                    receiver
                        .recv(Wait::millis(1))
                        .map(|record| record.is_some())
                });
                assert!(
                    matches!(none, Ok(false) | Err(ReceiveError::Closed)),
                    "there is no room for another: {none:?}"
                );
                release(peer, &mut receiver, record);
            }
            ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = sender(peer);
            for number in 0..100 {
                let length = if number % 2 == 0 { 60 } else { 250 };
                send(peer, &mut sender, &vec![number; length]);
            }
            close(peer, sender);
        },
    ]);
}

pub(crate) fn a_receiver_that_closes_is_noticed(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 64, 256));
            next(peer, &mut receiver);
            peer.with(|_| drop(receiver));
        },
        &|peer| {
            let mut sender = sender(peer);
            send(peer, &mut sender, &[1; 60]);
            // At the latest when it cannot go on.
            let error = loop {
                match peer.send(|_, wait| sender.send(&[2; 60], wait)) {
                    Ok(()) => {}
                    Err(error) => break error,
                }
            };
            assert!(
                matches!(error, SendError::ClosedByReceiver | SendError::PeerLost(_)),
                "{error:?}"
            );
            assert!(peer.with(|_| sender.close(GROW)).is_err());
        },
    ]);
}

pub(crate) fn a_sender_that_closes_without_records_is_noticed(world: &World) {
    world.run(&[
        &|peer| {
            let mut receiver = receiver(peer, options(4, 64, 256));
            assert_eq!(receiver.sender(), None);
            ended(peer, &mut receiver);
            assert!(receiver.sender().is_some());
        },
        &|peer| close(peer, sender(peer)),
    ]);
}
