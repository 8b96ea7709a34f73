//! Notification queues (Hamlyn 2.6): order, wrap, and overrun with exact counts.

use std::sync::atomic::{AtomicBool, Ordering};

use hamlyn_engine::limits::NOTIFICATION_ENTRIES_MAX;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::notification::{
    Notification, NotificationReader, NotificationWriter, QueueError, queue,
};
use hamlyn_engine::packet::SlotName;
use proptest::prelude::*;

/// The notification of that number; every field depends on it.
fn numbered(number: u64) -> Notification {
    Notification {
        slot: SlotName::from_bits(number.wrapping_mul(0x9E37_79B9) as u32),
        metadata_index: number.wrapping_mul(0xC2B3) as u16,
        word: number,
        from: LinkId::from_bits(number.wrapping_mul(0xD6E8_FEB8_6659_FD93)),
    }
}

fn push(writer: &mut NotificationWriter, from: u64, count: u64) -> u64 {
    (from..from + count).for_each(|number| writer.push(numbered(number)));
    from + count
}

/// Reads everything that is there; returns the numbers read and lost.
fn read_all(reader: &mut NotificationReader) -> (Vec<u64>, u64) {
    let (mut read, mut lost) = (Vec::new(), 0);
    loop {
        match reader.pop() {
            Ok(Some(notification)) => {
                assert_eq!(notification, numbered(notification.word));
                read.push(notification.word);
            }
            Ok(None) => return (read, lost),
            Err(overrun) => lost += overrun.lost,
        }
    }
}

#[test]
fn queue_lengths_are_bounded_and_rounded_up() {
    for asked in [0, 1, NOTIFICATION_ENTRIES_MAX + 1, usize::MAX] {
        assert_eq!(queue(asked).unwrap_err(), QueueError::Length { asked });
    }
    for (asked, given) in [(2, 2), (3, 4), (4, 4), (5, 8), (1_000, 1_024)] {
        let (writer, reader) = queue(asked).unwrap();
        assert_eq!((writer.capacity(), reader.capacity()), (given, given));
    }
}

#[test]
fn notifications_come_in_order_across_many_wraps() {
    let (mut writer, mut reader) = queue(4).unwrap();
    // Far across the wrap of the 15-bit count of generations, at every fill level.
    let mut next = 0;
    while next < 4 * 3 * (1 << 15) {
        let count = next % 5;
        let count = count.clamp(1, 4);
        assert!(!reader.is_pending());
        let before = next;
        next = push(&mut writer, next, count);
        assert!(reader.is_pending());
        assert_eq!(read_all(&mut reader), ((before..next).collect(), 0));
    }
    assert_eq!(reader.lost(), 0);
}

#[test]
fn overrun_loses_exactly_the_oldest() {
    let (mut writer, mut reader) = queue(4).unwrap();
    push(&mut writer, 0, 5);
    assert!(reader.is_pending());
    assert_eq!(reader.pop().unwrap_err().lost, 1);
    assert_eq!(reader.lost(), 1);
    assert_eq!(read_all(&mut reader), (vec![1, 2, 3, 4], 0));
}

#[test]
fn overrun_by_many_laps_is_counted_exactly_wherever_the_lap_count_stands() {
    let laps_max = (1_u64 << 15) - 2;
    for start_laps in [
        0,
        1,
        (1 << 15) - 3,
        (1 << 15) - 2,
        (1 << 15) - 1,
        1 << 15,
        (1 << 16) - 1,
    ] {
        for behind in [
            5,
            8,
            9,
            4 * 77 + 3,
            4 * (laps_max - 1),
            4 * laps_max,
            4 * laps_max + 3,
        ] {
            let (mut writer, mut reader) = queue(4).unwrap();
            let mut next = 0;
            for _ in 0..start_laps {
                next = push(&mut writer, next, 4);
                assert_eq!(read_all(&mut reader).1, 0);
            }
            next = push(&mut writer, next, 1);
            assert_eq!(read_all(&mut reader).0, [next - 1]);
            let first_unread = next;
            next = push(&mut writer, next, behind);
            let (read, lost) = read_all(&mut reader);
            assert_eq!(
                read,
                (next - 4..next).collect::<Vec<_>>(),
                "{start_laps} {behind}"
            );
            assert_eq!(lost, next - 4 - first_unread);
            assert_eq!(reader.lost(), lost);
        }
    }
}

#[test]
fn reader_further_behind_than_laps_can_count_still_reads_whole_entries() {
    for extra in 0..12 {
        let (mut writer, mut reader) = queue(4).unwrap();
        let next = push(&mut writer, 0, 4 * (1 << 15) + extra);
        // At worst one more generation wakes it; what it then reads are real entries.
        let next = push(&mut writer, next, 4);
        let (read, _) = read_all(&mut reader);
        assert!(
            read.iter().all(|number| (next - 4..next).contains(number)),
            "{read:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queue_agrees_with_the_model(
        shift in 1_u32..5,
        steps in prop::collection::vec((0_u64..60, 0_usize..40), 1..80),
    ) {
        let capacity = 1_u64 << shift;
        let (mut writer, mut reader) = queue(capacity as usize).unwrap();
        let (mut written, mut position, mut lost) = (0, 0, 0);
        for (pushes, pops) in steps {
            written = push(&mut writer, written, pushes);
            for _ in 0..pops {
                let oldest: u64 = u64::saturating_sub(written, capacity);
                prop_assert_eq!(reader.is_pending(), position < written);
                match reader.pop() {
                    Ok(Some(notification)) => {
                        prop_assert!(position >= oldest);
                        prop_assert_eq!(notification, numbered(position));
                        position += 1;
                    }
                    Ok(None) => prop_assert_eq!(position, written),
                    Err(overrun) => {
                        prop_assert!(position < oldest);
                        prop_assert_eq!(overrun.lost, oldest - position);
                        lost += oldest - position;
                        position = oldest;
                    }
                }
                prop_assert_eq!(reader.lost(), lost);
            }
        }
    }
}

/// Two real threads; loom tries every order of a few steps, this a few orders of many.
#[test]
fn threads_never_tear_a_notification_and_lose_no_count() {
    let (mut writer, mut reader) = queue(8).unwrap();
    // Fewer generations than the count of generations holds, as the reader may be descheduled all
    // the while.
    let total = 8 * ((1 << 15) - 2);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            push(&mut writer, 0, total);
            done.store(true, Ordering::Release);
        });
        let (mut read, mut last) = (0, None);
        loop {
            let finished = done.load(Ordering::Acquire);
            let (numbers, _) = read_all(&mut reader);
            for number in numbers {
                assert!(last < Some(number), "order");
                read += 1;
                last = Some(number);
            }
            if finished {
                break;
            }
        }
        assert_eq!(
            read + reader.lost(),
            total,
            "read and lost together are all"
        );
        assert_eq!(last, Some(total - 1));
    });
}
