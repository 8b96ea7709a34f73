use proptest::prelude::*;

use super::super::packet_header::VERSION;
use super::*;

/// What one datagram has at most.
const SINGLE: usize = 600;

fn put(batch: &mut Batch, bytes: &[u8]) -> bool {
    let Some(room) = batch.room(bytes.len()) else {
        return false;
    };
    room.copy_from_slice(bytes);
    batch.push(bytes.len());
    true
}

#[test]
fn runs_are_of_equal_lengths_and_the_last_may_be_shorter() {
    let mut batch = Batch::new();
    for (length, byte) in [(5, 1), (5, 2), (3, 3), (3, 4), (4, 5)] {
        assert!(put(&mut batch, &vec![byte; length]));
    }
    let mut runs = Vec::new();
    while let Some(run) = batch.run(BATCH_DATAGRAMS) {
        let (datagrams, bytes) = (run.datagrams, run.bytes.len());
        runs.push((datagrams, run.segment_bytes, run.bytes.to_vec()));
        batch.done(datagrams, bytes);
    }
    assert_eq!(
        runs,
        [
            (3, 5, vec![1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3]),
            (1, 3, vec![4; 3]),
            (1, 4, vec![5; 4]),
        ]
    );
    assert!(batch.is_empty());
    assert_eq!(
        batch.room(DATAGRAM_BYTES_MAX).map(|room| room.len()),
        Some(DATAGRAM_BYTES_MAX)
    );
}

#[test]
fn one_at_a_time_without_offload() {
    let mut batch = Batch::new();
    assert!(put(&mut batch, &[1; 9]) && put(&mut batch, &[2; 9]));
    let run = batch.run(1).unwrap();
    assert_eq!((run.datagrams, run.bytes), (1, [1; 9].as_slice()));
    assert_eq!(batch.drop_first(), Some(9));
    assert_eq!(batch.run(1).unwrap().bytes, [2; 9]);
    assert_eq!(batch.waiting(), 1);
}

#[test]
fn a_full_batch_takes_nothing() {
    let mut batch = Batch::new();
    for _ in 0..BATCH_DATAGRAMS {
        assert!(put(&mut batch, &[7]));
    }
    assert!(!put(&mut batch, &[7]));
    assert_eq!(batch.waiting(), BATCH_DATAGRAMS);
    batch.clear();
    assert!(put(&mut batch, &vec![1; DATAGRAM_BYTES_MAX]));
    assert!(batch.room(1).is_none());
    assert!(batch.room(usize::MAX).is_none());
}

/// A datagram that says how long it is.
fn honest(length: usize, byte: u8) -> Vec<u8> {
    let mut datagram = vec![byte; length];
    datagram[0] = VERSION << 4;
    datagram[2..4].copy_from_slice(&(length as u16).to_le_bytes());
    datagram
}

fn given_out(datagrams: &[Vec<u8>], single_bytes_max: usize) -> Vec<Vec<u8>> {
    let mut inbox = Inbox::new();
    let joined = datagrams.concat();
    inbox.bytes[..joined.len()].copy_from_slice(&joined);
    inbox.fill(joined.len(), Some(single_bytes_max), None);
    let mut out = Vec::new();
    while let Some(datagram) = inbox.next() {
        out.push(datagram.bytes.to_vec());
    }
    out
}

#[test]
fn joined_datagrams_come_one_by_one() {
    let mut inbox = Inbox::new();
    assert!(inbox.next().is_none());
    let joined = [honest(20, 1), honest(20, 2), honest(18, 3)];
    inbox.bytes[..58].copy_from_slice(&joined.concat());
    inbox.fill(58, Some(SINGLE), None);
    assert_eq!(inbox.current(), []);
    assert_eq!(inbox.next().unwrap().bytes, joined[0]);
    let second = inbox.next().unwrap();
    second.bytes[0] = 9;
    assert_eq!(inbox.current()[0], 9);
    assert_eq!(inbox.next().unwrap().bytes, joined[2]);
    assert!(inbox.next().is_none() && inbox.is_empty());
    inbox.fill(58, None, None);
    assert_eq!(inbox.next().unwrap().bytes.len(), 58);
    assert!(inbox.next().is_none());
}

#[test]
fn what_the_system_says_is_cut_to_what_there_is() {
    let mut inbox = Inbox::new();
    inbox.fill(usize::MAX, Some(SINGLE), None);
    assert_eq!(inbox.next().unwrap().bytes.len(), INBOX_BYTES);
    assert!(inbox.next().is_none());
    inbox.fill(0, Some(SINGLE), None);
    assert!(inbox.next().is_none());
}

#[test]
fn a_lie_about_all_of_a_run_is_seen_through() {
    for claimed in [1_000_u16, 900, 500, 1_001, 0, u16::MAX] {
        let mut datagrams = (0..10).map(|at| honest(100, at)).collect::<Vec<_>>();
        datagrams[0][2..4].copy_from_slice(&claimed.to_le_bytes());
        assert_eq!(given_out(&datagrams, 200), datagrams, "{claimed}");
        // One datagram that is longer than any was thought to be stays one.
        assert_eq!(given_out(&[honest(1_000, 7)], 200), [honest(1_000, 7)]);
    }
}

proptest! {
    #[test]
    fn honest_datagrams_are_told_apart(length in PACKET_HEADER_BYTES..2_000, count in 1..32_usize, last in PACKET_HEADER_BYTES..2_000, single in 0..3_000_usize) {
        let mut datagrams = (0..count).map(|at| honest(length, at as u8)).collect::<Vec<_>>();
        datagrams.push(honest(last.min(length), 0x77));
        prop_assert_eq!(given_out(&datagrams, single), datagrams);
    }

    #[test]
    fn liars_are_outvoted(
        length in PACKET_HEADER_BYTES..600,
        count in 3..40_usize,
        liars in prop::collection::vec((0..40_usize, prop::collection::vec(any::<u8>(), 600), 0..700_u16), 1..12),
    ) {
        let mut datagrams = (0..count).map(|at| honest(length, at as u8)).collect::<Vec<_>>();
        let (mut lie, single) = (0, length);
        for (at, bytes, claimed) in liars {
            // Fewer than half of them, or it is theirs to say.
            let is_few = (lie + 1) * 2 < count && at % count != LIARS_MAX - 1;
            if is_few {
                datagrams[at % count].copy_from_slice(&bytes[..length]);
                datagrams[at % count][0] = VERSION << 4;
                datagrams[at % count][2..4].copy_from_slice(&claimed.to_le_bytes());
                lie += 1;
            }
        }
        prop_assert_eq!(given_out(&datagrams, single), datagrams);
    }

    #[test]
    fn all_bytes_are_given_out_whatever_they_are(mut bytes in prop::collection::vec(any::<u8>(), 0..3_000), few: bool) {
        if few {
            bytes.iter_mut().for_each(|byte| *byte = [VERSION << 4, 0, 16, 32][usize::from(*byte) % 4]);
        }
        prop_assert_eq!(given_out(&[bytes.clone()], SINGLE).concat(), bytes);
    }
}
