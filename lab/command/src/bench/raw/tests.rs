use super::{Ground, HandOff, Store};

const ROUND_TRIPS: u64 = 200;

/// What the one who leads finds when the other follows in that way.
fn led(lead: HandOff, follow: HandOff) -> anyhow::Result<f64> {
    let mut ours = Ground::create().expect("memory");
    let mut theirs = Ground::open(&ours.path()).expect("the same memory");
    std::thread::scope(|scope| {
        let other = scope.spawn(move || theirs.follow(follow, ROUND_TRIPS));
        let led = ours.lead(lead, ROUND_TRIPS);
        // It may have been deceived, too.
        let _ = other.join().expect("no panic");
        led
    })
}

fn put(length_bytes: usize, store: Store) -> HandOff {
    HandOff::Put {
        length_bytes,
        store,
    }
}

fn two_copies(length_bytes: usize, store: Store, pieces: usize) -> HandOff {
    HandOff::TwoCopies {
        length_bytes,
        store,
        pieces,
    }
}

#[test]
fn every_hand_off_brings_what_was_sent() {
    let mut all = vec![HandOff::LINE];
    all.extend([33, 64, 128, 256].map(HandOff::lines_of));
    for length_bytes in [1024, 4096] {
        for store in [Store::Through, Store::Past] {
            all.push(put(length_bytes, store));
            all.extend([1, 4].map(|pieces| two_copies(length_bytes, store, pieces)));
        }
    }
    for hand_off in all {
        let one_way_ns =
            led(hand_off, hand_off).unwrap_or_else(|error| panic!("{hand_off:?}: {error}"));
        assert!(one_way_ns > 0.0, "{hand_off:?}");
    }
}

#[test]
fn lines_are_those_of_a_header_and_the_data() {
    let lines = [33, 64, 128, 256].map(HandOff::lines_of);
    assert_eq!(lines, [1, 1, 2, 4].map(|more| HandOff::Lines { more }));
}

/// Whoever does less than it should is noticed.
#[test]
fn a_hand_off_of_fewer_bytes_is_noticed() {
    for (lead, follow) in [
        (HandOff::lines_of(128), HandOff::LINE),
        (HandOff::lines_of(256), HandOff::lines_of(64)),
        (put(4096, Store::Through), HandOff::LINE),
        (put(4096, Store::Through), put(1024, Store::Through)),
        (
            two_copies(4096, Store::Through, 1),
            two_copies(1024, Store::Through, 1),
        ),
    ] {
        assert!(led(lead, follow).is_err(), "{lead:?} {follow:?}");
    }
}
