use super::*;

/// The first channels of the runs that are written into so many bytes.
fn told(table: &mut ReceiveTable, bytes: usize) -> Vec<u16> {
    let mut into = vec![0; bytes];
    let written = table.write_acknowledgements(&mut into);
    let runs = into[..usize::from(written.runs) * RUN_BYTES].chunks_exact(RUN_BYTES);
    runs.map(|run| u16::from_le_bytes([run[0], run[1]]))
        .collect()
}

/// When a frame has no room for all, the next frame goes on behind what was told: nothing waits for
/// channels before it.
#[test]
fn telling_goes_on_where_it_stopped() {
    let mut table = ReceiveTable::new(8);
    for channel in [0, 2, 4, 6] {
        table.deliver(channel, 1);
        table.take(0, channel, 1);
    }
    assert_eq!(told(&mut table, 2 * RUN_BYTES - 1), [0]);
    assert!(table.waiting() > 0);
    assert_eq!(told(&mut table, RUN_BYTES), [2]);
    assert_eq!(told(&mut table, 3 * RUN_BYTES), [4, 6, 0]);
    assert_eq!(table.waiting(), 0, "all was told once");
    // And each a second time, with what comes next.
    table.take(0, 7, 1);
    assert_eq!(told(&mut table, 9 * RUN_BYTES), [2, 4, 6]);
    assert_eq!(table.run_from(7, 8).count, 1);
}

/// What waits to be answered is bounded; the peer sends such frames again.
#[test]
fn nacks_that_wait_are_bounded() {
    let mut table = ReceiveTable::new(8);
    for stamp in 0..2 * NACKS_MAX as u32 {
        table.push_nack(0, 1, 1, stamp, NackReason::NoRoom);
    }
    let mut into = vec![0; 300 * NACK_BYTES];
    let written = table.write_acknowledgements(&mut into);
    assert_eq!(usize::from(written.nacks), NACKS_MAX);
    assert_eq!((table.waiting(), table.waiting_since_ns()), (0, None));
}

/// An acknowledgement waits no longer because others follow.
#[test]
fn what_waits_waits_since_the_first_came() {
    let mut table = ReceiveTable::new(8);
    for (now_ns, channel) in [(5, 0), (7, 1), (9, 2)] {
        table.deliver(channel, 1);
        table.take(now_ns, channel, 1);
        assert_eq!(table.waiting_since_ns(), Some(5));
    }
    assert_eq!(told(&mut table, RUN_BYTES), [0]);
    table.acknowledge(20, 0);
    assert_eq!(table.waiting_since_ns(), Some(20));
}

/// Whether a frame is new, while the one before it of its channel is being taken, too.
#[test]
fn a_channel_takes_one_frame_at_a_time_and_only_newer_ones() {
    let mut table = ReceiveTable::new(2);
    table.set_taken(u32::MAX);
    let standing = |table: &ReceiveTable, sequence| table.standing(1, sequence);
    assert_eq!(standing(&table, u32::MAX), Standing::Taken);
    assert_eq!(standing(&table, u32::MAX - 1), Standing::Stale);
    assert_eq!(standing(&table, 0), Standing::Fresh);
    table.deliver(1, 1);
    assert_eq!(standing(&table, 0), Standing::Delivering);
    assert_eq!(standing(&table, u32::MAX), Standing::Stale);
    table.take(0, 1, 0);
    assert_eq!(standing(&table, 0), Standing::Taken);
    assert_eq!(table.standing(2, 0), Standing::NoSuchChannel);
}

/// The channels that are told, each time they are.
fn channels_told(table: &mut ReceiveTable, bytes: usize) -> Vec<u16> {
    let mut into = vec![0; bytes];
    let written = table.write_acknowledgements(&mut into);
    let runs = into[..usize::from(written.runs) * RUN_BYTES].chunks_exact(RUN_BYTES);
    let channels = runs.flat_map(|run| {
        let first = u16::from_le_bytes([run[0], run[1]]);
        first..first + u16::from_le_bytes([run[2], run[3]])
    });
    channels.collect()
}

/// A peer believes no frame that names more channels than there are.
#[test]
fn a_frame_names_each_channel_once() {
    const CHANNELS: u16 = 16;
    let mut table = ReceiveTable::new(CHANNELS);
    let take = |table: &mut ReceiveTable, channels: core::ops::Range<u16>, sequence| {
        for channel in channels {
            table.deliver(channel, 1);
            table.take(0, channel, sequence);
        }
    };
    // One run of the two has room, so the next frame begins in the middle.
    take(&mut table, 0..4, 1);
    take(&mut table, 10..12, 1);
    assert_eq!(channels_told(&mut table, RUN_BYTES), [0, 1, 2, 3]);
    take(&mut table, 0..CHANNELS, 2);
    let mut told = channels_told(&mut table, 9 * RUN_BYTES);
    told.sort_unstable();
    assert_eq!(told, (0..CHANNELS).collect::<Vec<_>>());
}

/// Channels are opened when their first frame comes, whatever its number, and others of the same
/// round may come later.
#[test]
fn channels_are_opened_by_their_first_frames() {
    let mut table = ReceiveTable::new(4_096);
    let round = u32::MAX - 3;
    assert_eq!(table.standing(4_095, round), Standing::Fresh);
    assert_eq!(table.standing(4_096, round), Standing::NoSuchChannel);
    table.deliver(4_095, round);
    assert_eq!(table.standing(4_095, round), Standing::Delivering);
    table.take(0, 4_095, round);
    assert_eq!(table.standing(4_095, round), Standing::Taken);
    for earlier in [round - 1_000, round, round.wrapping_add(1_000)] {
        assert_eq!(table.standing(3_000, earlier), Standing::Fresh);
    }
    // They are acknowledged as any.
    let mut frame = [0; RUN_BYTES];
    let written = table.write_acknowledgements(&mut frame);
    assert_eq!((written.runs, table.waiting()), (1, 0));
}

/// A peer may have every packet of every channel refused, each for another reason than the one
/// before, and use no channel again: while too much of that is not told yet its frames are not
/// taken, and then it is forgotten.
#[test]
fn runs_of_refused_packets_are_bounded() {
    const CHANNELS: u16 = 1024;
    const PACKETS: u16 = 8000;
    let mut table = ReceiveTable::new(CHANNELS);
    let mut into = vec![0; 1400];
    let (mut taken, mut forgotten, mut most_bytes) = (0, 0, 0);
    for channel in 0..CHANNELS {
        while !table.has_room_for_refusals(&mut forgotten) {
            let _ = table.write_acknowledgements(&mut into);
        }
        table.deliver(channel, 1);
        for index in 0..PACKETS {
            let reason = Refusal::ALL[usize::from(index) % 2];
            table.refuse(channel, 1, 1, index, reason);
        }
        table.take(0, channel, 1);
        taken += 1;
        let kept = table
            .refused
            .values()
            .map(|refused| refused.runs.capacity());
        most_bytes = most_bytes.max(kept.sum::<usize>() * size_of::<RefusedRun>());
    }
    // The limit, and one frame that was taken when it was not reached.
    assert!(most_bytes <= 256 << 10, "{most_bytes}");
    assert!(forgotten > 0 && forgotten < taken, "{forgotten}");
    // What is forgotten counts as taken, if its sender asks once more.
    table.acknowledge(0, 0);
    assert!(table.unacknowledged.contains(0));
}
