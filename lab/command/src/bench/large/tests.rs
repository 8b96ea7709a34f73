use super::hand_off::{Field, Transfer};
use super::{Buffers, ways, word_at};

/// Few, but more than have places of their own.
const MESSAGES: u64 = 70;
const REUSED: Buffers = Buffers {
    size_bytes: 4096,
    fresh: false,
};

/// What the receiver finds when the sender has these bytes.
fn brought(transfer: Transfer, source: &[u8]) -> anyhow::Result<()> {
    let mut ours = Field::create().expect("memory");
    let mut theirs = Field::open(&ours.path()).expect("the same memory");
    theirs.clear(transfer, REUSED, 0, MESSAGES).expect("memory");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            theirs
                .follow(transfer, REUSED, 0, MESSAGES)
                .expect("a follower");
            theirs.check(transfer, REUSED, 0, MESSAGES)
        });
        let rate = ours.lead(transfer, REUSED, source, 0, MESSAGES);
        assert!(rate.expect("a leader") > 0.0);
        other.join().expect("no panic")
    })
}

fn source() -> Vec<u8> {
    (0..REUSED.size_bytes / 8)
        .flat_map(|number| word_at(8 * number).to_le_bytes())
        .collect()
}

#[test]
fn every_way_to_copy_brings_what_was_sent() {
    let (puts, two_copies) = ways();
    for transfer in puts.into_iter().chain(two_copies) {
        brought(transfer, &source()).unwrap_or_else(|error| panic!("{transfer:?}: {error}"));
    }
}

#[test]
fn other_bytes_are_noticed() {
    let (puts, two_copies) = ways();
    for transfer in puts.into_iter().chain(two_copies) {
        for byte in [0, REUSED.size_bytes / 2, REUSED.size_bytes - 1] {
            let mut wrong = source();
            wrong[byte] ^= 1;
            assert!(brought(transfer, &wrong).is_err(), "{transfer:?} at {byte}");
        }
    }
}
