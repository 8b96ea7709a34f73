//! What a sender makes of answers, and of silence: each answer is made by hand, so that time and
//! contents are exact.

use alloc::vec;
use alloc::vec::Vec;

use super::tests::{frames, new, short, take};
use super::*;
use crate::refusal::Refusal;
use crate::transport::Incoming;
use crate::transport::close_reason::NackReason;
use crate::transport::frame::{
    ASK, ECHO, Frame, FrameHeader, HEADER_BYTES, HOLD_UNKNOWN, NO_CHANNEL, Nack, RefusedRun, Run,
    TAKEN_IN_PART, TAKEN_WITHOUT, stamp_of,
};

const MICROSECOND_NS: u64 = 1_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// The round trip that is measured first.
const ROUND_TRIP_NS: u64 = 100 * MICROSECOND_NS;
/// Until here it was measured.
const START_NS: u64 = 10 * MILLISECOND_NS;

fn settings() -> Settings {
    Settings {
        resend_initial_ns: MILLISECOND_NS,
        resend_min_ns: MILLISECOND_NS,
        resend_max_ns: MILLISECOND_NS,
        not_ready_backoff_ns: 100 * MICROSECOND_NS,
        ..Settings::default()
    }
}

/// A frame without packets.
fn answer(now_ns: u64, echo: Option<u32>, flags: u8, runs: &[Run], nacks: &[Nack]) -> Vec<u8> {
    let header = FrameHeader {
        stamp: stamp_of(now_ns),
        echo: echo.unwrap_or(0),
        hold_us: 0,
        channel: NO_CHANNEL,
        sequence: 0,
        flags: flags | if echo.is_some() { ECHO } else { 0 },
        runs: runs.len() as u8,
        nacks: nacks.len() as u8,
    };
    let mut bytes = vec![0; HEADER_BYTES];
    header.write(bytes.first_chunk_mut().unwrap());
    bytes.extend(runs.iter().flat_map(|run| run.to_bytes()));
    bytes.extend(nacks.iter().flat_map(|nack| nack.to_bytes()));
    bytes
}

fn run(header: &FrameHeader) -> Run {
    Run {
        first: header.channel,
        count: 1,
        sequence: header.sequence,
    }
}

fn nack(header: &FrameHeader) -> Nack {
    Nack::whole(
        header.channel,
        header.sequence,
        header.stamp,
        NackReason::NoRoom,
    )
}

/// Acknowledges these frames.
fn acknowledge(end: &mut Association, now_ns: u64, headers: &[FrameHeader]) {
    let runs: Vec<Run> = headers.iter().map(run).collect();
    take(end, now_ns, &answer(now_ns, None, 0, &runs, &[]));
}

fn refuse(end: &mut Association, now_ns: u64, headers: &[FrameHeader]) {
    let nacks: Vec<Nack> = headers.iter().map(nack).collect();
    take(end, now_ns, &answer(now_ns, None, 0, &[], &nacks));
}

/// The headers of all frames that go at this time.
fn sent(end: &mut Association, now_ns: u64) -> Vec<FrameHeader> {
    let header = |frame: &Vec<u8>| FrameHeader::read(frame).unwrap();
    frames(end, now_ns).iter().map(header).collect()
}

/// Sends a frame of one packet.
fn send(end: &mut Association, now_ns: u64) -> FrameHeader {
    end.offer_short(&short(1)).unwrap();
    end.flush();
    let sent = sent(end, now_ns);
    assert_eq!(sent.len(), 1);
    sent[0]
}

/// A sender that has measured its first round trip.
fn measured(settings: Settings) -> Association {
    let mut sender = new(settings);
    let first = send(&mut sender, START_NS - ROUND_TRIP_NS);
    let bytes = answer(START_NS, Some(first.stamp), 0, &[run(&first)], &[]);
    take(&mut sender, START_NS, &bytes);
    assert!(sender.is_idle());
    let measured_ns = sender.path_statistics(0).unwrap().round_trip_ns;
    assert!(measured_ns.abs_diff(ROUND_TRIP_NS) < 128, "{measured_ns}");
    sender
}

fn window(end: &Association) -> u64 {
    end.path_statistics(0).unwrap().window_milliframes
}

#[test]
fn a_refused_frame_gives_a_peer_that_falls_silent_its_time_again() {
    let settings = Settings {
        retries_max: 2,
        no_answer_ns: 10 * MILLISECOND_NS,
        ..settings()
    };
    let mut sender = measured(settings);
    let mut now_ns = START_NS;
    let mut header = send(&mut sender, now_ns);
    let mut answered_ns = now_ns;
    while now_ns < START_NS + 40 * MILLISECOND_NS {
        answered_ns = now_ns;
        refuse(&mut sender, now_ns, &[header]);
        let again = loop {
            now_ns = sender.deadline_ns().unwrap().max(now_ns);
            if let Some(again) = sent(&mut sender, now_ns).first() {
                break *again;
            }
        };
        header = again;
    }
    while sender.close_reason().is_none() {
        sent(&mut sender, now_ns);
        now_ns = sender.deadline_ns().unwrap_or(now_ns).max(now_ns);
    }
    assert!(now_ns >= answered_ns + settings.no_answer_ns);
}

#[test]
fn frames_refused_in_one_round_lengthen_the_pause_once() {
    let mut sender = measured(settings());
    let headers: Vec<_> = (0..5).map(|_| send(&mut sender, START_NS)).collect();
    let mut now_ns = START_NS + 50 * MICROSECOND_NS;
    refuse(&mut sender, now_ns, &headers);
    assert_eq!(sender.statistics().receiver_not_ready, 5);
    for doublings in [0, 1, 2, 3, 4, 5, 6, 6, 6] {
        let due_ns = now_ns + ((100 * MICROSECOND_NS) << doublings);
        assert!(sent(&mut sender, due_ns - 1).is_empty());
        let again = sent(&mut sender, due_ns);
        assert_eq!(again.len(), 1, "one at a time while the peer is not ready");
        now_ns = due_ns;
        refuse(&mut sender, now_ns, &again);
    }
}

/// An acknowledgement that comes sooner after a retransmission than a round trip takes is that of
/// the first transmission.
#[test]
fn an_early_acknowledgement_shows_that_nothing_was_lost() {
    for (after_ns, is_early) in [(ROUND_TRIP_NS / 2, true), (ROUND_TRIP_NS + 200, false)] {
        let mut sender = measured(settings());
        let before = window(&sender);
        let header = send(&mut sender, START_NS);
        let again_ns = START_NS + MILLISECOND_NS;
        assert_eq!(sent(&mut sender, again_ns).len(), 1);
        assert_eq!(window(&sender), 1_000);
        acknowledge(&mut sender, again_ns + after_ns, &[header]);
        assert_eq!(window(&sender), if is_early { before } else { 1_000 });
    }
}

#[test]
fn an_acknowledgement_of_a_frame_thought_lost_opens_the_window_again() {
    let mut sender = measured(settings());
    let before = window(&sender);
    let headers: Vec<_> = (0..5).map(|_| send(&mut sender, START_NS)).collect();
    let now_ns = START_NS + MILLISECOND_NS;
    assert_eq!(sent(&mut sender, now_ns)[0].channel, headers[0].channel);
    assert_eq!((window(&sender), sender.outstanding()), (1_000, 5));
    acknowledge(&mut sender, now_ns, &headers[4..]);
    assert_eq!(window(&sender), before);
}

/// What the newest acknowledged frame says of those before it stays true when an older one is
/// acknowledged.
#[test]
fn an_older_acknowledgement_takes_nothing_back() {
    let mut sender = measured(settings());
    let headers: Vec<_> = (0..4).map(|at| send(&mut sender, START_NS + at)).collect();
    let now_ns = START_NS + ROUND_TRIP_NS;
    acknowledge(&mut sender, now_ns, &headers[3..]);
    acknowledge(&mut sender, now_ns, &headers[..1]);
    let lost_ns = START_NS + ROUND_TRIP_NS * 5 / 4 + 5 * MICROSECOND_NS;
    assert!(sender.deadline_ns().unwrap() < lost_ns);
    assert_eq!(sent(&mut sender, lost_ns).len(), 2);
}

/// The same between two paths.
#[test]
fn an_older_acknowledgement_of_another_path_takes_nothing_back() {
    let mut sender = measured(Settings {
        paths: 2,
        ..settings()
    });
    let at = [0, 1, 2, 150].map(|at| START_NS + at * MICROSECOND_NS);
    let headers = at.map(|now_ns| send(&mut sender, now_ns));
    let in_flight = |sender: &Association, path| sender.path_statistics(path).unwrap().in_flight;
    assert_eq!((in_flight(&sender, 0), in_flight(&sender, 1)), (2, 2));
    let now_ns = START_NS + 230 * MICROSECOND_NS;
    acknowledge(&mut sender, now_ns, &headers[3..]);
    acknowledge(&mut sender, now_ns, &headers[1..2]);
    // Two round trips of the slowest, and two delays of an acknowledgement, after it was sent.
    let lost_ns = START_NS + 240 * MICROSECOND_NS;
    assert!(sent(&mut sender, lost_ns - MICROSECOND_NS).is_empty());
    assert!(sender.deadline_ns().unwrap() <= lost_ns + 200);
    assert_eq!(sent(&mut sender, lost_ns + 200).len(), 1);
}

/// The clock may stand still while a frame comes: what it shows to be lost is sent again all the
/// same.
#[test]
fn what_a_frame_shows_is_seen_though_no_time_has_passed() {
    let mut sender = measured(settings());
    let headers: Vec<_> = (0..2).map(|_| send(&mut sender, START_NS)).collect();
    let now_ns = START_NS + 2 * ROUND_TRIP_NS;
    assert!(sent(&mut sender, now_ns).is_empty());
    acknowledge(&mut sender, now_ns, &headers[1..]);
    let again = sent(&mut sender, now_ns);
    assert_eq!((again.len(), again[0].flags & ASK), (1, ASK));
}

/// 4.4.4: a NACK is of the latest transmission only if it has its timestamp, so no two
/// transmissions have the same.
#[test]
fn two_transmissions_differ_in_their_timestamp_however_soon_they_follow() {
    let mut sender = measured(Settings {
        not_ready_backoff_ns: 1,
        ..settings()
    });
    let first = send(&mut sender, START_NS);
    refuse(&mut sender, START_NS, &[first]);
    let again = sent(&mut sender, START_NS + 1);
    assert_eq!(again.len(), 1);
    assert_ne!(again[0].stamp, first.stamp);
    refuse(&mut sender, START_NS + 1, &[first]);
    assert!(!sender.can_suspend(), "the latest may still be taken");
    refuse(&mut sender, START_NS + 1, &again);
    assert!(sender.can_suspend());
}

/// 4.4.2: a frame is sent again as often as may be, and for as long as must be.
#[test]
fn silence_ends_an_association_after_its_retries_and_its_time() {
    for (no_answer_ns, is_by_retries) in [(1, true), (50 * MILLISECOND_NS, false)] {
        let mut sender = measured(Settings {
            retries_max: 3,
            no_answer_ns,
            // So that silence for as long as all retries may take is not what ends it.
            resend_max_ns: 40 * MILLISECOND_NS,
            ..settings()
        });
        let mut now_ns = START_NS;
        send(&mut sender, now_ns);
        let mut retries = 0;
        while sender.close_reason().is_none() {
            now_ns = sender.deadline_ns().unwrap().max(now_ns);
            retries += sent(&mut sender, now_ns).len();
        }
        assert_eq!(sender.close_reason(), Some(CloseReason::NoAnswer));
        if is_by_retries {
            assert_eq!(retries, 3);
        } else {
            assert!(retries > 3 && now_ns >= START_NS + no_answer_ns);
        }
    }
}

#[test]
fn each_path_that_asks_has_an_answer() {
    let mut receiver = new(Settings {
        paths: 3,
        ..settings()
    });
    let asking = answer(5, None, ASK, &[], &[]);
    for path in [2, 0] {
        let incoming = receiver.take_frame(START_NS, path, &asking);
        assert!(matches!(incoming, Incoming::Nothing));
    }
    let mut bytes = [0; 1_400];
    let mut next = || {
        receiver
            .next_frame(START_NS, &mut bytes)
            .map(|next| next.path)
    };
    assert_eq!((next(), next(), next()), (Some(0), Some(2), None));
}

/// A frame with packets has room for few acknowledgements. If the peer asked for them, a frame with
/// the others follows at once.
#[test]
fn acknowledgements_that_were_asked_for_do_not_wait_for_room() {
    let mut sender = new(Settings {
        window_initial_frames: 24,
        ..settings()
    });
    let mut receiver = new(Settings {
        eager_frames: 1,
        ..settings()
    });
    let mut all: Vec<Vec<u8>> = Vec::new();
    for number in 0..24 {
        sender.offer_short(&short(number)).unwrap();
        sender.flush();
        all.extend(frames(&mut sender, START_NS));
    }
    // Every other one, so that each is a run of its own; the last one asks.
    let count = all.len();
    for (at, frame) in all.iter_mut().enumerate().step_by(2) {
        if at + 2 >= count {
            frame[16] |= ASK;
        }
        assert_eq!(take(&mut receiver, START_NS, frame).len(), 1);
    }
    while receiver.ready() == 0 {
        receiver.offer_short(&short(9)).unwrap();
    }
    let told = frames(&mut receiver, START_NS);
    let runs: usize = told
        .iter()
        .map(|frame| Frame::read(frame).unwrap().runs().count())
        .sum();
    assert!(runs >= 12, "{runs} in {} frames", told.len());
    for frame in &told {
        take(&mut sender, START_NS, frame);
    }
    assert_eq!(sender.outstanding(), 12);
}

/// What the peer cannot mean is counted.
#[test]
fn answers_to_what_was_never_sent_are_counted() {
    let mut sender = measured(settings());
    let header = send(&mut sender, START_NS);
    let wrong = [
        FrameHeader {
            channel: 60_000,
            ..header
        },
        FrameHeader {
            sequence: header.sequence + 1,
            ..header
        },
    ];
    refuse(&mut sender, START_NS, &wrong);
    assert_eq!(sender.statistics().baseless, 2);
    assert_eq!(sender.statistics().receiver_not_ready, 0);
    acknowledge(&mut sender, START_NS, &wrong);
    assert_eq!(sender.statistics().baseless, 4);
    // Known, and over.
    acknowledge(&mut sender, START_NS, &[header]);
    acknowledge(&mut sender, START_NS, &[header]);
    assert_eq!(
        (
            sender.statistics().baseless,
            sender.statistics().acknowledged
        ),
        (4, 2)
    );
}

#[test]
fn every_path_is_told_of_the_end() {
    let mut sender = measured(Settings {
        paths: 3,
        ..settings()
    });
    sender.close();
    let mut bytes = [0; 1_400];
    let mut next = || {
        sender
            .next_frame(START_NS, &mut bytes)
            .map(|next| next.path)
    };
    assert_eq!(
        [next(), next(), next(), next()],
        [Some(0), Some(1), Some(2), None]
    );
}

/// A resumed association knows what it knew, and begins its patience anew, however long it was
/// away.
#[test]
fn a_resumed_association_goes_on() {
    let settings = Settings {
        retries_max: 2,
        no_answer_ns: 10 * MILLISECOND_NS,
        ..settings()
    };
    let mut sender = measured(settings);
    let header = send(&mut sender, START_NS);
    refuse(&mut sender, START_NS, &[header]);
    let statistics = *sender.statistics();
    let now_ns = START_NS + 10 * settings.no_progress_ns;
    let mut sender = Association::resume(sender.suspend().unwrap(), now_ns);
    assert_eq!(*sender.statistics(), statistics);
    // The same frame again.
    let again = sent(&mut sender, now_ns);
    assert_eq!((again.len(), again[0].sequence), (1, header.sequence));
    refuse(&mut sender, now_ns, &again);
    // Another timestamp, though the clock shows the same again.
    let wrapped_ns = now_ns + (64 << 32);
    let mut sender = Association::resume(sender.suspend().unwrap(), wrapped_ns);
    assert_ne!(sent(&mut sender, wrapped_ns)[0].stamp, again[0].stamp);
    let mut at_ns = wrapped_ns;
    while sender.close_reason().is_none() {
        at_ns = sender.deadline_ns().unwrap().max(at_ns);
        sent(&mut sender, at_ns);
    }
    assert_eq!(sender.close_reason(), Some(CloseReason::NoAnswer));
    assert!(at_ns >= wrapped_ns + settings.no_answer_ns);
    assert!(!sender.can_suspend());
}

/// What came back and was not fetched would be lost.
#[test]
fn an_association_with_returned_packets_cannot_be_suspended() {
    let mut sender = measured(settings());
    let header = send(&mut sender, START_NS);
    let nack = Nack {
        reason: TAKEN_WITHOUT,
        ..nack(&header)
    };
    let mut bytes = answer(START_NS, None, 0, &[], &[nack]);
    let refused = RefusedRun {
        first: 0,
        count: 1,
        reason: 0,
    };
    bytes.extend([1, 0]);
    bytes.extend(refused.to_bytes());
    take(&mut sender, START_NS, &bytes);
    assert_eq!((sender.outstanding(), sender.can_suspend()), (0, false));
    assert!(sender.next_return().is_some() && sender.next_return().is_none());
    assert!(sender.can_suspend());
}

/// An end that was stopped for long after it asked asks often enough before it gives up.
#[test]
fn a_stopped_end_asks_again_before_it_gives_up() {
    let settings = Settings {
        keep_alive_ns: 2_000 * MILLISECOND_NS,
        ..settings()
    };
    let mut end = measured(settings);
    let mut now_ns = end.deadline_ns().unwrap();
    assert_eq!(sent(&mut end, now_ns).len(), 1);
    now_ns += 3_600_000 * MILLISECOND_NS;
    for _ in 0..7 {
        assert_eq!(
            (sent(&mut end, now_ns).len(), end.close_reason()),
            (1, None)
        );
        now_ns = end.deadline_ns().unwrap();
    }
    sent(&mut end, now_ns);
    assert_eq!(end.close_reason(), Some(CloseReason::NoAnswer));
}

/// What is just being taken is part of an answer that was asked for, if it does not take longer
/// than answers may.
#[test]
fn an_answer_waits_for_what_is_being_taken_and_not_for_long() {
    let (mut sender, mut receiver) = (new(settings()), new(settings()));
    sender.offer_short(&short(1)).unwrap();
    let mut frame = frames(&mut sender, START_NS).remove(0);
    frame[16] |= ASK;
    let Incoming::Packets(token) = receiver.take_frame(START_NS, 0, &frame) else {
        panic!("it is fresh");
    };
    let due_ns = START_NS + receiver.settings().acknowledge_ns;
    assert_eq!(receiver.deadline_ns(), Some(due_ns));
    assert!(sent(&mut receiver, due_ns - 1).is_empty());
    let answer = sent(&mut receiver, due_ns);
    assert_eq!((answer.len(), answer[0].runs), (1, 0));
    receiver.taken(due_ns, token);
}

/// A frame that was sent again comes first, so that its retries run out before those of others
/// begin; and it asks for an answer.
#[test]
fn what_was_sent_again_is_sent_again_first() {
    let mut sender = measured(settings());
    let headers: Vec<_> = (0..5).map(|_| send(&mut sender, START_NS)).collect();
    assert!(headers.iter().all(|header| header.flags & ASK == 0));
    let mut now_ns = START_NS;
    for _ in 0..10 {
        now_ns = sender.deadline_ns().unwrap().max(now_ns);
        for again in sent(&mut sender, now_ns) {
            assert_eq!(again.channel, headers[0].channel);
            assert!(again.flags & ASK != 0);
        }
    }
}

/// Nobody knows how long a frame took that was held for longer than can be said.
#[test]
fn a_hold_that_is_not_known_is_no_round_trip() {
    let mut sender = new(settings());
    let first = send(&mut sender, START_NS);
    let now_ns = START_NS + 100 * MILLISECOND_NS;
    let mut bytes = answer(now_ns, Some(first.stamp), 0, &[run(&first)], &[]);
    bytes[8..10].copy_from_slice(&HOLD_UNKNOWN.to_le_bytes());
    take(&mut sender, now_ns, &bytes);
    assert!(sender.is_idle());
    assert_eq!(sender.path_statistics(0).unwrap().round_trip_ns, 0);
}

/// What was refused may be told more than once, by answers of which some are lost; it counts once.
#[test]
fn a_refusal_that_is_told_twice_counts_once() {
    let mut sender = measured(settings());
    for number in 0..4 {
        sender.offer_short(&short(number)).unwrap();
    }
    let header = sent(&mut sender, START_NS)[0];
    let told = |reason, runs: &[(u16, u16)]| {
        let nack = Nack {
            reason,
            ..nack(&header)
        };
        let mut bytes = answer(START_NS, None, 0, &[], &[nack]);
        bytes.extend((runs.len() as u16).to_le_bytes());
        for &(first, count) in runs {
            bytes.extend(
                RefusedRun {
                    first,
                    count,
                    reason: 0,
                }
                .to_bytes(),
            );
        }
        bytes
    };
    for bytes in [
        told(TAKEN_IN_PART, &[(0, 2)]),
        told(TAKEN_IN_PART, &[(0, 2)]),
        told(TAKEN_WITHOUT, &[(0, 2), (3, 1)]),
    ] {
        take(&mut sender, START_NS, &bytes);
    }
    let mut back = Vec::new();
    while let Some(returned) = sender.next_return() {
        back.push(returned.header.word);
    }
    assert_eq!((back, sender.statistics().refused), (vec![0, 1, 3], 3));
    assert!(sender.is_idle());
}

/// An end is idle when nothing is left to be sent, taken, answered or fetched, and not before.
#[test]
fn an_end_is_idle_when_nothing_is_left_to_do() {
    let (mut sender, mut receiver) = (new(settings()), new(settings()));
    sender.offer_short(&short(1)).unwrap();
    assert!(!sender.is_idle(), "a frame is open");
    sender.flush();
    assert!(!sender.is_idle(), "a frame is ready");
    let frame = frames(&mut sender, START_NS).remove(0);
    assert!(!sender.is_idle(), "a frame is in flight");
    let Incoming::Packets(token) = receiver.take_frame(START_NS, 0, &frame) else {
        panic!("it is fresh");
    };
    assert!(!receiver.is_idle(), "a frame is being taken");
    receiver.refused(&token, 0, Refusal::BadKey);
    receiver.taken(START_NS, token);
    assert!(!receiver.is_idle(), "a frame waits to be acknowledged");
    let answer = frames(&mut receiver, START_NS + MILLISECOND_NS).remove(0);
    assert!(receiver.is_idle());
    take(&mut sender, START_NS + MILLISECOND_NS, &answer);
    assert!(!sender.is_idle(), "a packet came back");
    assert!(sender.next_return().is_some() && sender.next_return().is_none());
    assert!(sender.is_idle());
    sender.close();
    assert!(!sender.is_idle(), "the peer is not told");
    frames(&mut sender, START_NS + MILLISECOND_NS);
    assert!(sender.is_idle());
}
