use super::*;

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

#[test]
fn joined_datagrams_come_one_by_one() {
    let mut inbox = Inbox::new();
    assert!(inbox.next().is_none());
    inbox.bytes[..8].copy_from_slice(&[1, 1, 1, 2, 2, 2, 3, 3]);
    inbox.fill(8, Some(3), None);
    assert_eq!(inbox.current(), []);
    assert_eq!(inbox.next().unwrap().bytes, [1; 3]);
    let second = inbox.next().unwrap();
    second.bytes[0] = 9;
    assert_eq!(inbox.current(), [9, 2, 2]);
    assert_eq!(inbox.next().unwrap().bytes, [3; 2]);
    assert!(inbox.next().is_none() && inbox.is_empty());
}

#[test]
fn what_the_system_says_is_cut_to_what_there_is() {
    let mut inbox = Inbox::new();
    inbox.fill(usize::MAX, Some(usize::MAX), None);
    assert_eq!(inbox.next().unwrap().bytes.len(), INBOX_BYTES);
    assert!(inbox.next().is_none());
    inbox.fill(4, Some(0), None);
    assert_eq!(inbox.next().unwrap().bytes.len(), 4);
    assert!(inbox.next().is_none());
}
