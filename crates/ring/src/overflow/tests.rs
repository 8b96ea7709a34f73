//! A sender's knowledge of its log, without its ring. `crates/ring/tests/overflow.rs` has both ends
//! together; `loom` has them against the model checker.

mod loom;

use super::*;

const LOG: u32 = LOG_BYTES_MIN;

#[test]
fn laps_that_say_nothing_are_passed_over() {
    let log = LogGeometry::new(LOG).unwrap();
    let silent = (1 << 31) - 1;
    assert!(!log.is_lap_usable(silent) && !log.is_lap_usable(silent + 1));
    assert!(!log.is_beyond(silent * log.bytes() - 64) && log.is_beyond(silent * log.bytes()));
    let before = silent * log.bytes() - 64;
    assert_eq!(log.next_lap(before), 0);
    let mut writer = LogWriter::new(
        LogOptions {
            geometry: log,
            patience_ns: 0,
        },
        PayloadArena::put_aside(0),
    );
    writer.drained_bytes = before;
    assert_eq!(writer.room_end_bytes(), silent * log.bytes());
    assert!(writer.forgets(before, 0));
}

/// What is reserved and not used is given back, so it must not be where messages lie.
#[test]
fn nothing_is_reserved_where_untaken_messages_may_lie() {
    let log = LogGeometry::new(LOG).unwrap();
    let options = LogOptions {
        geometry: log,
        patience_ns: 0,
    };
    let mut writer = LogWriter::new(options, PayloadArena::put_aside(0));
    for drained_bytes in (0..2 * log.bytes()).step_by(4_160) {
        writer.drained_bytes = drained_bytes;
        writer.reserved_bytes = drained_bytes.next_multiple_of(4_096);
        while writer.reserved_bytes < writer.room_end_bytes() {
            let places = writer.next_reservation();
            assert!(places.start == writer.reserved_bytes && places.end > places.start);
            writer.reserved(&places);
        }
        let free_end = drained_bytes + log.bytes() - GIVEN_BACK_BYTES;
        assert!(writer.reserved_bytes <= free_end, "{drained_bytes}");
    }
}
