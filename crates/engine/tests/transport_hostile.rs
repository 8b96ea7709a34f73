//! Whatever comes as a frame: no panic, bounded work and memory, and the honest rest goes on.

use crate::transport_world::directed::Solo;
use crate::transport_world::quick;
use crate::transport_world::random::Random;
use hamlyn_engine::transport::{
    Association, CloseReason, Incoming, Packets, Settings, answer_not_resident,
};
use proptest::prelude::*;

fn settings() -> Settings {
    Settings {
        channels: 64,
        paths: 2,
        ..quick()
    }
}

/// Two ends in the middle of something, and a frame of one of them.
fn busy(seed: u64) -> (Association, Association, Vec<Vec<u8>>) {
    let mut random = Random::new(seed);
    let (mut sender, mut receiver) = (Solo::new(settings()), Solo::new(settings()));
    let (mut now_ns, mut frames) = (1_000, Vec::new());
    sender.offer(300).unwrap();
    while let Some(frame) = sender.frame(now_ns) {
        if random.chance(700)
            && let Some(token) = receiver.take(now_ns, &frame)
        {
            if random.chance(200) {
                receiver
                    .association
                    .refused(&token, 0, hamlyn_engine::refusal::Refusal::BadKey);
            }
            receiver.association.taken(now_ns, token);
        }
        frames.push(frame);
    }
    now_ns += 30_000;
    while let Some(frame) = receiver.frame(now_ns) {
        frames.push(frame);
    }
    (sender.association, receiver.association, frames)
}

/// Takes a frame as a carrier does, and drives on.
fn endure(end: &mut Association, now_ns: &mut u64, path: u8, bytes: &[u8]) {
    if let Incoming::Packets(token) = end.take_frame(*now_ns, path, bytes) {
        let count = Packets::new(&bytes[token.range()]).count();
        assert_eq!(count, usize::from(token.count()));
        end.taken(*now_ns, token);
    }
    let mut frame = vec![0; end.settings().frame_bytes];
    let mut sent = 0;
    while end.next_frame(*now_ns, &mut frame).is_some() {
        sent += 1;
        assert!(sent < 300, "frames without end");
    }
    let mut returned = 0;
    while end.next_return().is_some() {
        returned += 1;
        assert!(returned <= 300, "more comes back than was offered");
    }
    if let Some(deadline_ns) = end.deadline_ns() {
        assert!(deadline_ns > *now_ns, "{deadline_ns} at {now_ns}");
    }
    *now_ns += 10_000;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_nothing(frames in prop::collection::vec(
        (0_u8..4, prop::collection::vec(any::<u8>(), 0..200)), 1..20,
    )) {
        let mut end = Association::new(settings()).unwrap();
        let mut now_ns = 0;
        for (path, mut bytes) in frames {
            // Most would fail at the format.
            if let Some(format) = bytes.get_mut(19) {
                *format = 1;
            }
            if let Some(flags) = bytes.get_mut(16) {
                *flags &= 3;
            }
            let mut answer = [0; 31];
            let answered = answer_not_resident(5, &bytes, &mut answer);
            prop_assert!(answered.is_none_or(|length| length <= bytes.len().max(31)));
            endure(&mut end, &mut now_ns, path, &bytes);
        }
        prop_assert!(end.close_reason().is_none());
        prop_assert_eq!(end.statistics().acknowledged, 0);
    }

    #[test]
    fn frames_with_changes_do_no_harm(
        seed in 0_u64..1_000,
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..60,
        ),
    ) {
        let (mut sender, mut receiver, mut frames) = busy(seed);
        let mut now_ns = 50_000;
        for (frame, at, byte, is_short) in changes {
            let frame = frame.index(frames.len());
            let bytes = &mut frames[frame];
            if bytes.is_empty() {
                continue;
            }
            let at = at.index(bytes.len());
            if is_short {
                // Header fields matter most.
                let near = at % 40.min(bytes.len());
                bytes[near] = byte;
            } else {
                bytes[at] = byte;
            }
            if byte == 3 {
                bytes.truncate(at);
            }
            let bytes = bytes.clone();
            endure(&mut sender, &mut now_ns, 0, &bytes);
            endure(&mut receiver, &mut now_ns, 1, &bytes);
        }
        let is_sane = |end: &Association| matches!(end.close_reason(), None | Some(CloseReason::ClosedByPeer));
        prop_assert!(is_sane(&sender) && is_sane(&receiver));
    }
}

/// The worst that a frame can ask for: acknowledgements of all channels, over and over.
#[test]
fn a_frame_of_runs_costs_one_table() {
    let mut end = Association::new(Settings::default()).unwrap();
    let channels = end.settings().channels;
    let mut frame = vec![0_u8; 20 + 255 * 8];
    frame[10..12].fill(0xFF);
    frame[17] = 255;
    frame[19] = 1;
    for run in frame[20..].chunks_exact_mut(8) {
        run[2..4].copy_from_slice(&channels.to_le_bytes());
        run[4] = 9;
    }
    assert!(matches!(end.take_frame(0, 0, &frame), Incoming::Nothing));
    // One run for what was never sent, channel by channel; the others were not looked at.
    assert_eq!(end.statistics().baseless, u64::from(channels) + 254);
}

/// An acknowledgement of what was never sent frees nothing, neither of a frame that waits nor of
/// one that will be.
#[test]
fn acknowledgements_of_what_was_not_sent_are_ignored() {
    let (mut sender, mut receiver) = (Solo::new(settings()), Solo::new(settings()));
    sender.offer(40).unwrap();
    let mut forged = vec![0_u8; 28];
    forged[10..12].fill(0xFF);
    (forged[17], forged[19]) = (1, 1);
    forged[22..24].copy_from_slice(&64_u16.to_le_bytes());
    for sequence in [1_u32, 2, 77, u32::MAX] {
        forged[24..28].copy_from_slice(&sequence.to_le_bytes());
        assert!(sender.take(500, &forged).is_none());
    }
    assert!(sender.association.statistics().baseless > 0);
    let mut taken = 0;
    let mut now_ns = 1_000;
    while let Ok(frame) = sender.frame_later(&mut now_ns) {
        if let Some(token) = receiver.take(now_ns, &frame) {
            taken += usize::from(token.count());
            receiver.association.taken(now_ns, token);
        }
        now_ns += 30_000;
        while let Some(frame) = receiver.frame(now_ns) {
            assert!(sender.take(now_ns, &frame).is_none());
        }
    }
    assert_eq!(taken, 40);
}

/// Timestamps from the future, and of long ago, leave the round trip what it was, or let it be
/// measured anew.
#[test]
fn wild_timestamps_do_not_break_round_trips() {
    let mut end = Solo::new(settings());
    let mut now_ns = 1_000_000_000;
    let mut random = Random::new(5);
    for at in 0..1_000 {
        // When the path is slow, nothing more may be offered for a while.
        let _ = end.offer(1);
        end.association.flush();
        while end.frame(now_ns).is_some() {}
        let mut frame = [0_u8; 20];
        frame[10..12].fill(0xFF);
        (frame[16], frame[19]) = (1, 1);
        frame[..4].copy_from_slice(&(random.next() as u32).to_le_bytes());
        let echo = match at % 3 {
            0 => random.next() as u32,
            1 => (now_ns >> 6) as u32 + 1 + random.below(1 << 20) as u32,
            _ => (now_ns >> 6) as u32,
        };
        frame[4..8].copy_from_slice(&echo.to_le_bytes());
        assert!(end.take(now_ns, &frame).is_none());
        let path = end.association.path_statistics(0).unwrap();
        assert!(path.round_trip_ns < 1 << 38, "{path:?}");
        assert!(path.window_milliframes >= 9, "{path:?}");
        now_ns += 1_000;
        if end.association.outstanding() > 50 {
            let mut all = vec![0_u8; 28];
            all[10..12].fill(0xFF);
            (all[17], all[19]) = (1, 1);
            all[22..24].copy_from_slice(&64_u16.to_le_bytes());
            for lap in 0..100_u32 {
                all[24..28].copy_from_slice(&lap.to_le_bytes());
                assert!(end.take(now_ns, &all).is_none());
            }
        }
    }
    assert!(end.association.statistics().future_echoes > 300);
}
