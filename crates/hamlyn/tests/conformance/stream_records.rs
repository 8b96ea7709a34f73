//! Streams against a reference: whatever the sizes, however the sender waits and
//! whatever the receiver holds, what comes out is what went in.

use std::collections::VecDeque;
use std::time::Duration;

use hamlyn::{SendError, Wait};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::World;
use crate::peer::{self, Peer, TIMEOUT, pattern};
use crate::streams;

#[derive(Clone, Debug)]
struct Record {
    length: usize,
    /// How the sender waits.
    poll: bool,
    flush: bool,
    /// How many records the receiver holds at most after this one.
    hold: usize,
}

#[derive(Clone, Debug)]
struct History {
    pieces: u32,
    piece_bytes: u32,
    limit_times: u64,
    ahead: bool,
    records: Vec<Record>,
}

fn history() -> impl Strategy<Value = History> {
    let length = prop_oneof![
        4 => 0..40_usize,
        3 => 0..600_usize,
        2 => 500..5_000_usize,
        1 => 5_000..30_000_usize,
    ];
    let record = (
        length,
        any::<bool>(),
        prop::bool::weighted(0.1),
        0..12_usize,
    )
        .prop_map(|(length, poll, flush, hold)| Record {
            length,
            poll,
            flush,
            hold,
        });
    let piece_bytes = (6..11_u32).prop_map(|shift| 1 << shift);
    (
        1..20_u32,
        piece_bytes,
        1..60_u64,
        prop::collection::vec(record, 1..120),
    )
        .prop_map(|(pieces, piece_bytes, limit_times, records)| History {
            pieces,
            piece_bytes,
            limit_times,
            ahead: false,
            records,
        })
}

/// The same histories in every process of a test.
fn histories(count: usize) -> Vec<History> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    (0..count)
        .map(|_| history().new_tree(&mut runner).unwrap().current())
        .collect()
}

pub(crate) fn random_records_arrive_whatever_is_held(world: &World) {
    all_arrive(world, &histories(24));
}

pub(crate) fn random_records_of_a_sender_that_may_go_ahead_arrive(world: &World) {
    let mut histories = histories(24);
    for history in &mut histories {
        history.ahead = true;
        // Whole pages.
        history.piece_bytes <<= 6;
    }
    all_arrive(world, &histories);
}

/// The time of each send is over while its record goes, and there is room again at once.
pub(crate) fn pieces_that_are_cut_one_after_the_other_arrive_whole(world: &World) {
    const PIECE_BYTES: u32 = 256 << 10;
    const PIECES: u32 = 24;
    const RECORDS: u64 = 16;
    // The last piece is shorter than the others.
    let record = |number| pattern(number, 4 * PIECE_BYTES as usize - 1_000);
    world.run(&[
        &|peer| {
            let limit_bytes = u64::from(PIECES * PIECE_BYTES);
            let options = streams::options(PIECES, PIECE_BYTES, limit_bytes);
            let mut receiver = streams::receiver(peer, options);
            for number in 0..RECORDS {
                let kept = streams::next(peer, &mut receiver);
                assert!(receiver.view(&kept).unwrap() == record(number));
                streams::release(peer, &mut receiver, kept);
            }
            streams::ended(peer, &mut receiver);
        },
        &|peer| {
            let mut sender = streams::sender(peer);
            for number in 0..RECORDS {
                let data = record(number);
                let mut waits_us = (0..=40).cycle().map(|step| 1 + 10 * step);
                peer.send(|_, _| {
                    let wait_us = waits_us.next().unwrap_or(1);
                    sender.send(&data, Wait::For(Duration::from_micros(wait_us)))
                })
                .unwrap();
            }
            streams::close(peer, sender);
        },
    ]);
}

fn all_arrive(world: &World, histories: &[History]) {
    world.run(&[
        &|peer| {
            for (number, history) in histories.iter().enumerate() {
                receive(peer, number, history);
            }
        },
        &|peer| {
            for (number, history) in histories.iter().enumerate() {
                send(peer, number, history);
            }
        },
    ]);
}

impl History {
    fn options(&self) -> hamlyn::stream::StreamOptions {
        let least = u64::from(self.pieces) * u64::from(self.piece_bytes);
        let limit_bytes = least * self.limit_times;
        match self.ahead {
            true => streams::ahead(self.piece_bytes, limit_bytes),
            false => streams::options(self.pieces, self.piece_bytes, limit_bytes),
        }
    }
}

fn receive(peer: &Peer, number: usize, history: &History) {
    let options = history.options();
    let mut receiver =
        peer.with(|manager| hamlyn::stream::Receiver::new(manager, options).unwrap());
    let seed = peer.with(|_| receiver.make_seed());
    peer.put(&format!("seed {number}"), &seed.to_bytes());
    let mut held: VecDeque<(usize, hamlyn::stream::Kept)> = VecDeque::new();
    let mut holds = history.records.iter().map(|record| record.hold);
    let begun = peer::now();
    loop {
        let found = peer.with(|_| {
            let found = receiver.recv(match peer.shares_interface() {
                true => Wait::Poll,
                // At the limit nothing comes, hundreds of times.
                false => Wait::millis(5),
            });
            found.map(|record| record.map(hamlyn::stream::Record::keep))
        });
        match found {
            Ok(Some(record)) => {
                // The first four bytes say which one it is, if there are so many.
                let bytes = receiver.view(&record).unwrap();
                let index = held.back().map_or(0, |&(index, _)| index);
                let index = match bytes.first_chunk() {
                    Some(&first) => u32::from_le_bytes(first) as usize,
                    None => index,
                };
                held.push_back((index, record));
                let hold = holds.next().unwrap_or(0);
                while held.len() > hold {
                    if let Some((_, oldest)) = held.pop_front() {
                        peer.with(|_| drop(oldest));
                    }
                }
                if bytes_differ(&receiver, &held, history) {
                    panic!("history {number}: {history:?}");
                }
            }
            Ok(None) => {
                peer::pause();
                // At the limit, only releasing helps.
                if let Some((_, oldest)) = held.pop_front() {
                    peer.with(|_| drop(oldest));
                }
            }
            Err(hamlyn::ReceiveError::Closed) => break,
            Err(error) => panic!("history {number}: {error}"),
        }
        assert!(
            peer::now() - begun < TIMEOUT,
            "history {number} stalls: {history:?}"
        );
    }
    let sent = peer.get(&format!("sent {number}"));
    let sent = u32::from_le_bytes(sent.try_into().unwrap());
    let received = history.records.len() - holds.len();
    assert_eq!(received, sent as usize, "history {number}: {history:?}");
    assert!(receiver.memory_bytes() <= options.limit_bytes);
    peer.with(|_| drop(receiver));
}

/// Whether any record in our hands is not what was sent.
fn bytes_differ(
    receiver: &hamlyn::stream::Receiver<crate::Host>,
    held: &VecDeque<(usize, hamlyn::stream::Kept)>,
    history: &History,
) -> bool {
    held.iter().any(|(index, record)| {
        let bytes = receiver.view(record).unwrap_or_default();
        bytes.len() >= 4
            && (bytes.len() != history.records[*index].length
                || *bytes != content(*index, bytes.len())[..])
    })
}

fn content(index: usize, length: usize) -> Vec<u8> {
    let mut bytes = pattern(index as u64, length);
    if let Some(first) = bytes.first_chunk_mut() {
        *first = (index as u32).to_le_bytes();
    }
    bytes
}

fn send(peer: &Peer, number: usize, history: &History) {
    let seed = peer.get(&format!("seed {number}"));
    let seed = hamlyn::stream::StreamSeed::from_bytes(&seed).unwrap();
    let mut sender = peer.with(|manager| {
        hamlyn::stream::Sender::grow(manager, &seed, Wait::millis(10_000)).unwrap()
    });
    let mut sent = 0_u32;
    for (index, record) in history.records.iter().enumerate() {
        let data = content(index, record.length);
        let result =
            peer.send(|_, wait| sender.send(&data, if record.poll { Wait::Poll } else { wait }));
        match result {
            Ok(()) => sent += 1,
            Err(SendError::RecordTooLarge { limit_bytes, .. }) => {
                let limit = history.options().limit_bytes;
                assert_eq!(limit_bytes, limit, "history {number}: {history:?}");
                assert!(
                    record.length as u64 > limit,
                    "history {number}: {history:?}"
                );
            }
            Err(error) => panic!("history {number}, record {index}: {error}, {history:?}"),
        }
        if record.flush {
            streams::flush(peer, &mut sender);
        }
    }
    streams::close(peer, sender);
    peer.put(&format!("sent {number}"), &sent.to_le_bytes());
}
