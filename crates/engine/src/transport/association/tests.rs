use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::key::Key;
use crate::limits::{CHANNELS_OPEN_FIRST, FRAME_BYTES_MIN};
use crate::packet::SlotName;
use crate::transport::frame::{ASK, Frame, FrameHeader, HEADER_BYTES, NO_CHANNEL};
use crate::transport::{Incoming, NackReason, Packets};

pub(super) fn short(number: u64) -> Short {
    Short {
        to: Address::new(SlotName::new(1, 1), u16::MAX),
        key: Key::from_bits(9),
        offset: 0,
        word: number,
        has_metadata: false,
        length_bytes: 16,
        data: [number, 0, 0, 0],
    }
}

pub(super) fn new(settings: Settings) -> Association {
    Association::new(settings).unwrap()
}

/// All that an end sends at this time.
pub(super) fn frames(end: &mut Association, now_ns: u64) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; end.settings.frame_bytes];
    let mut all = Vec::new();
    while let Some(outgoing) = end.next_frame(now_ns, &mut bytes) {
        all.push(bytes[..outgoing.length_bytes].to_vec());
    }
    all
}

/// Takes a frame; the words of its packets.
pub(super) fn take(end: &mut Association, now_ns: u64, frame: &[u8]) -> Vec<u64> {
    match end.take_frame(now_ns, 0, frame) {
        Incoming::Nothing => vec![],
        Incoming::Packets(token) => {
            let packets = Packets::new(&frame[token.range()]);
            let words = packets.map(|packet| packet.header().word).collect();
            end.taken(now_ns, token);
            words
        }
    }
}

/// Sequence numbers go round: what is newer is newer across the end, too.
#[test]
fn numbers_may_wrap() {
    let settings = Settings {
        channels: 3,
        ..Settings::default()
    };
    let (mut sender, mut receiver) = (new(settings), new(settings));
    sender.send.go_to(u32::MAX - 5, 0);
    receiver.receive.set_taken(u32::MAX - 6);
    let (mut now_ns, mut words) = (0, Vec::new());
    for number in 0..60 {
        sender.offer_short(&short(number)).unwrap();
        let sent = frames(&mut sender, now_ns);
        assert_eq!(sent.len(), 1);
        words.extend(take(&mut receiver, now_ns, &sent[0]));
        // A duplicate is one on either side of the end.
        assert!(take(&mut receiver, now_ns, &sent[0]).is_empty());
        now_ns += 30_000;
        for frame in frames(&mut receiver, now_ns) {
            assert!(take(&mut sender, now_ns, &frame).is_empty());
        }
        assert!(sender.is_idle());
    }
    assert_eq!(words, Vec::from_iter(0..60));
    assert_eq!(sender.send.position().0, 13);
}

/// Frames and acknowledgements are lost and come in any order, and sequence numbers go round: what
/// lies before a mark that is settled was taken, and a mark is settled when all before it was.
#[test]
fn what_lies_before_a_settled_mark_was_taken() {
    let settings = Settings {
        channels: 7,
        ..Settings::default()
    };
    let (mut sender, mut receiver) = (new(settings), new(settings));
    sender.send.go_to(u32::MAX - 20, 0);
    receiver.receive.set_taken(u32::MAX - 21);
    let mut state = 1_u64;
    let mut random = |bound: usize| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let (mut now_ns, mut offered) = (0, 0_u64);
    let (mut taken, mut marks, mut under_way) = (vec![], Vec::new(), Vec::new());
    let mut settled = 0;
    for round in 0..4_000 {
        now_ns += 20_000;
        let is_over = round > 3_500;
        if !is_over && random(3) > 0 && sender.offer_short(&short(offered)).is_ok() {
            offered += 1;
            taken.push(false);
        }
        if !is_over && random(5) == 0 {
            marks.push((sender.mark(), offered));
        }
        under_way.extend(frames(&mut sender, now_ns));
        while under_way.len() > random(4) {
            let frame = under_way.swap_remove(random(under_way.len()));
            if is_over || random(4) > 0 {
                for word in take(&mut receiver, now_ns, &frame) {
                    taken[word as usize] = true;
                }
            }
        }
        for frame in frames(&mut receiver, now_ns) {
            if is_over || random(4) > 0 {
                take(&mut sender, now_ns, &frame);
            }
        }
        marks.retain(|&(mark, before)| {
            let is_settled = sender.is_settled(mark);
            assert!(!is_settled || taken[..before as usize].iter().all(|taken| *taken));
            settled += usize::from(is_settled);
            !is_settled
        });
    }
    assert!(sender.close_reason().is_none() && marks.is_empty());
    assert!(
        settled > 300 && sender.send.position().0 < 1_000,
        "{settled}"
    );
    // Room that was looked for and not used is nobody's packet.
    assert!(sender.has_room());
    let mark = sender.mark();
    assert!(sender.is_settled(mark));
    sender.offer_short(&short(1)).unwrap();
    assert!(
        sender.is_settled(mark)
            && !{
                let mark = sender.mark();
                sender.is_settled(mark)
            }
    );
}

#[test]
fn an_idle_association_waits_for_nothing_and_gives_its_memory_back() {
    let (mut sender, mut receiver) = (new(Settings::default()), new(Settings::default()));
    assert_eq!(sender.buffer_bytes(), 0);
    for number in 0..1_000 {
        sender.offer_short(&short(number)).unwrap();
    }
    sender.flush();
    assert!(sender.buffer_bytes() > 10_000);
    sender.give_back();
    assert!(sender.buffer_bytes() > 10_000);
    for frame in frames(&mut sender, 5) {
        take(&mut receiver, 5, &frame);
    }
    assert!(sender.deadline_ns().is_some() && receiver.deadline_ns().is_some());
    for frame in frames(&mut receiver, 50_000) {
        take(&mut sender, 50_000, &frame);
    }
    for frame in frames(&mut sender, 50_000) {
        take(&mut receiver, 50_000, &frame);
    }
    for frame in frames(&mut receiver, 90_000) {
        take(&mut sender, 90_000, &frame);
    }
    for end in [&mut sender, &mut receiver] {
        assert!(end.is_idle());
        assert_eq!(end.deadline_ns(), None);
        end.give_back();
        assert_eq!(end.buffer_bytes(), 0);
    }
}

/// Beside its buffers, which are given back, a peer that never had much in flight takes less than
/// 20 KiB.
#[test]
fn tables_are_small() {
    let channels = usize::from(CHANNELS_OPEN_FIRST);
    let bytes = channels * (size_of::<crate::transport::send_table::Entry>() + size_of::<u32>());
    let bytes =
        bytes + size_of::<Association>() + size_of::<Path>() * 4 + 5 * channels / 8 + 64 * 12;
    assert!(bytes < 20 << 10, "{bytes}");
}

#[test]
fn an_end_that_closes_says_so_at_once_and_again_when_asked() {
    let (mut one, mut other) = (new(Settings::default()), new(Settings::default()));
    other.offer_short(&short(1)).unwrap();
    let late = frames(&mut other, 0);
    other.offer_short(&short(2)).unwrap();
    one.offer_short(&short(3)).unwrap();
    one.close();
    assert_eq!(one.close_reason(), Some(CloseReason::Closed));
    assert_eq!(one.deadline_ns(), Some(0));
    let returned = one
        .next_return()
        .map(|back| (back.header.word, back.was_never_sent));
    assert_eq!(returned, Some((3, true)));
    assert!(one.next_return().is_none());
    let closing = frames(&mut one, 10);
    assert_eq!((closing.len(), one.deadline_ns()), (1, None));
    // That was lost. Whatever comes is answered.
    assert!(take(&mut one, 20, &late[0]).is_empty());
    let closing = frames(&mut one, 20);
    assert!(take(&mut other, 30, &closing[0]).is_empty());
    assert_eq!(other.close_reason(), Some(CloseReason::ClosedByPeer));
    let mut back = || {
        other
            .next_return()
            .map(|back| (back.header.word, back.was_never_sent))
    };
    assert_eq!(
        (back(), back(), back()),
        (Some((1, false)), Some((2, true)), None)
    );
    assert!(frames(&mut other, 30).is_empty());
    assert_eq!(other.offer_short(&short(4)), Err(Unsent::Gone));
    // Nobody answers a closing for ever.
    assert!(take(&mut one, 40, &closing[0]).is_empty());
    assert!(frames(&mut one, 40).is_empty());
}

/// Two sides that end at once, and take nothing any more, do not wait for each other. One that ends
/// alone waits until all that it has sent is taken.
#[test]
fn two_sides_that_leave_do_not_wait_for_each_other() {
    for why in [
        NackReason::NoRoom,
        NackReason::NotResident,
        NackReason::Leaving,
    ] {
        let mut ends = [0, 1].map(|_| new(Settings::default()));
        let sent = ends.each_mut().map(|end| {
            end.offer_short(&short(1)).unwrap();
            frames(end, 0).remove(0)
        });
        let nacks = [0, 1].map(|at: usize| {
            let Incoming::Packets(token) = ends[at].take_frame(10, 0, &sent[1 - at]) else {
                panic!("no packets");
            };
            ends[at].nack(10, token, why);
            assert!(!ends[at].may_close());
            frames(&mut ends[at], 100_000).remove(0)
        });
        for at in [0, 1] {
            assert!(take(&mut ends[at], 100_010, &nacks[1 - at]).is_empty());
            assert!(!ends[at].is_idle());
            assert_eq!(ends[at].may_close(), why == NackReason::Leaving);
            // Frames of the peer are to be answered first, all the same.
            ends[at].offer_short(&short(2)).unwrap();
        }
        let again = frames(&mut ends[0], 40_000_000);
        let token = ends[1].take_frame(40_000_010, 0, &again[0]);
        assert!(!ends[1].may_close(), "{token:?}");
    }
}

/// A frame that is not full goes while few are in flight; then it waits, to be filled.
#[test]
fn frames_are_filled_when_some_are_under_way() {
    let mut sender = new(Settings::default());
    for number in 0..4 {
        sender.offer_short(&short(number)).unwrap();
        assert_eq!(frames(&mut sender, 0).len(), 1);
    }
    for number in 4..20 {
        sender.offer_short(&short(number)).unwrap();
        assert!(frames(&mut sender, 0).is_empty());
    }
    assert_eq!(sender.outstanding(), 4);
    sender.flush();
    assert_eq!(frames(&mut sender, 0).len(), 1);
    assert_eq!(sender.statistics().offered, 20);
}

/// What comes to be written in the documentation of the protocol: a frame with one packet, byte by
/// byte.
#[test]
fn a_frame_byte_by_byte() {
    let mut sender = new(Settings::default());
    let mut short = short(0x1122);
    short.offset = 0x0102_0304;
    sender.offer_short(&short).unwrap();
    let frame = frames(&mut sender, 0x40 * 0x0A0B_0C0D).remove(0);
    let expected = [
        // Timestamp, echo, hold.
        0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, //
        // Channel 0, sequence 1, no flags, no runs, no NACKs, format 1.
        0, 0, 1, 0, 0, 0, 0, 0, 0, 1, //
        // A short packet: offset in 4 bytes, word in 8.
        0x96, 1, 0, 1, 0, 0xFF, 0xFF, 9, 0, 0, 0, 0, 0, 0, 0, //
        4, 3, 2, 1, 0x22, 0x11, 0, 0, 0, 0, 0, 0, //
        0x22, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(frame, expected);
    let mut receiver = new(Settings::default());
    take(&mut receiver, 5, &frame);
    let answer = frames(&mut receiver, 3_000_000).remove(0);
    let stamp = (3_000_000_u32 >> 6).to_le_bytes();
    let expected = [
        stamp[0], stamp[1], stamp[2], stamp[3], 0x0D, 0x0C, 0x0B, 0x0A, 0xB7, 0x0B, //
        0xFF, 0xFF, 0, 0, 0, 0, 1, 1, 0, 1, //
        0, 0, 1, 0, 1, 0, 0, 0,
    ];
    assert_eq!(answer, expected);
}

/// A buffer that is too small for a frame gets none, and nothing is lost by that.
#[test]
fn nothing_is_written_where_a_frame_has_no_room() {
    let mut sender = new(Settings::default());
    sender.offer_short(&short(1)).unwrap();
    assert!(sender.next_frame(0, &mut [0; 1_399]).is_none());
    assert_eq!(frames(&mut sender, 0).len(), 1);
}

#[test]
fn offers_are_bounded() {
    let settings = Settings {
        ready_frames_max: 3,
        ..Settings::default()
    };
    let mut sender = new(settings);
    let mut offered = 0;
    while sender.offer_short(&short(offered)).is_ok() {
        offered += 1;
    }
    assert_eq!(sender.offer_short(&short(0)), Err(Unsent::Full));
    assert_eq!(sender.send.count(ListId::READY), 3);
    let one_bytes = Settings::one_buffer_bytes(settings.frame_bytes);
    assert_eq!(sender.buffer_bytes(), 3 * one_bytes);
    // Two buffers, and nothing acknowledged: two frames.
    let settings = Settings {
        buffer_bytes_max: 2 * one_bytes,
        ..Settings::default()
    };
    let mut sender = new(settings);
    let mut sent = 0;
    for number in 0..1_000 {
        let _ = sender.offer_short(&short(number));
        sent += frames(&mut sender, 0).len();
    }
    assert_eq!(sent, 2);
}

/// A header with all bits that it may have is what was written.
#[test]
fn headers_are_what_was_written() {
    let header = FrameHeader {
        stamp: 0x0102_0304,
        echo: 0x0506_0708,
        hold_us: 0x090A,
        channel: NO_CHANNEL,
        sequence: 0x0B0C_0D0E,
        flags: 7,
        runs: 3,
        nacks: 4,
    };
    let mut bytes = [0; HEADER_BYTES];
    header.write(&mut bytes);
    assert_eq!(FrameHeader::read(&bytes), Some(header));
    for (at, value) in [(16, 8), (19, 0), (19, 2)] {
        let mut bytes = bytes;
        bytes[at] = value;
        assert_eq!(FrameHeader::read(&bytes), None);
    }
    assert_eq!(FrameHeader::read(&bytes[..19]), None);
}

/// Two ends that carry nothing ask each other now and then, and go on; once one is silent, the
/// other finds out.
#[test]
fn a_silent_peer_is_asked_and_then_given_up_on() {
    const SECOND_NS: u64 = 1_000_000_000;
    let settings = Settings {
        keep_alive_ns: 2 * SECOND_NS,
        ..Settings::default()
    };
    let (mut one, mut other) = (new(settings), new(settings));
    let (mut now_ns, mut asked) = (0, 0);
    assert!(frames(&mut one, now_ns).is_empty() && frames(&mut other, now_ns).is_empty());
    while now_ns < 60 * SECOND_NS {
        let due_ns = [&one, &other].map(|end| end.deadline_ns().unwrap());
        now_ns = due_ns[0].min(due_ns[1]);
        for _ in 0..2 {
            for frame in frames(&mut one, now_ns) {
                asked += 1;
                assert!(take(&mut other, now_ns, &frame).is_empty());
            }
            for frame in frames(&mut other, now_ns) {
                assert!(take(&mut one, now_ns, &frame).is_empty());
            }
        }
        assert_eq!((one.close_reason(), other.close_reason()), (None, None));
    }
    // One of each pair asks, the other answers; neither more often than it must.
    assert!((30..=31).contains(&asked), "{asked}");
    let silent_ns = now_ns;
    let mut asked = 0;
    while one.close_reason().is_none() {
        now_ns = one.deadline_ns().unwrap();
        asked += frames(&mut one, now_ns).len();
    }
    assert_eq!(one.close_reason(), Some(CloseReason::NoAnswer));
    assert_eq!(
        now_ns - silent_ns,
        settings.keep_alive_ns + settings.no_answer_ns
    );
    assert_eq!(asked, 20);
    // An end that was stopped meanwhile asks often enough before it gives up.
    now_ns += 3600 * SECOND_NS;
    for _ in 0..8 {
        assert!(!frames(&mut other, now_ns).is_empty());
        now_ns = other.deadline_ns().unwrap();
    }
    assert_eq!(other.close_reason(), None);
}

/// With something in flight the retries tell.
#[test]
fn nobody_is_asked_while_frames_are_under_way() {
    let settings = Settings {
        keep_alive_ns: 1_000_000,
        ..Settings::default()
    };
    let mut sender = new(settings);
    sender.offer_short(&short(1)).unwrap();
    let mut now_ns = 0;
    while sender.close_reason().is_none() {
        for frame in frames(&mut sender, now_ns) {
            let header = FrameHeader::read(&frame).unwrap();
            assert_ne!(header.channel, NO_CHANNEL);
        }
        now_ns = sender.deadline_ns().unwrap_or(now_ns);
    }
    assert_eq!(sender.close_reason(), Some(CloseReason::NoAnswer));
}

/// Frames may become shorter and longer while packets are in flight; what was in a long one stays
/// in it.
#[test]
fn frames_follow_a_limit() {
    let (mut sender, mut receiver) = (new(Settings::default()), new(Settings::default()));
    let most = sender.payload_max_bytes();
    let mut words = Vec::new();
    for (limit, is_at_most) in [
        (500, 500),
        (0, FRAME_BYTES_MIN),
        (1 << 20, 1_400),
        (700, 700),
    ] {
        let long = words.len() as u64;
        // The open frame is of the limit before.
        sender.offer_short(&short(long)).unwrap();
        words.push(long);
        sender.flush();
        sender.limit_frames(limit);
        assert_eq!(sender.payload_max_bytes(), most + is_at_most - 1_400);
        for number in long + 1..long + 50 {
            sender.offer_short(&short(number)).unwrap();
            words.push(number);
        }
        sender.flush();
        // Acknowledgements that ride along have no more room either.
        receiver.limit_frames(limit);
        receiver.offer_short(&short(9_999)).unwrap();
        for frame in frames(&mut sender, 5) {
            assert!(frame.len() <= is_at_most, "{} of {is_at_most}", frame.len());
            take(&mut receiver, 5, &frame);
        }
        for frame in frames(&mut receiver, 50_000) {
            assert!(frame.len() <= is_at_most);
            take(&mut sender, 50_000, &frame);
        }
    }
    assert_eq!(sender.statistics().offered, words.len() as u64);
    assert_eq!(
        sender.statistics().acknowledged,
        receiver.statistics().taken
    );
    assert_eq!(sender.outstanding(), 0);
}

/// What is in a long frame goes in a long frame, however often.
#[test]
fn a_long_frame_stays_whole_when_the_limit_falls() {
    let settings = Settings::default();
    let (mut sender, mut receiver) = (new(settings), new(settings));
    let mut words = Vec::new();
    for number in 0..40 {
        sender.offer_short(&short(number)).unwrap();
    }
    sender.flush();
    let lost = frames(&mut sender, 0);
    sender.limit_frames(FRAME_BYTES_MIN);
    let now_ns = sender.deadline_ns().unwrap();
    for frame in frames(&mut sender, now_ns) {
        words.extend(take(&mut receiver, now_ns, &frame));
    }
    assert!(lost.iter().any(|frame| frame.len() > FRAME_BYTES_MIN));
    assert_eq!(words, Vec::from_iter(0..40));
}

/// A path that was slow has a window far below a frame, and then a retry now and then only. Still
/// it is found out in bounded time that nobody is there any more.
#[test]
fn a_slow_path_that_falls_silent_is_given_up_on_in_time() {
    let settings = Settings::default();
    let (mut sender, mut receiver) = (new(settings), new(settings));
    let mut now_ns = 0;
    for number in 0..200 {
        // Now and then it is quick, so that it does not pass for a far one.
        let way_ns = if number % 4 == 0 { 50_000 } else { 20_000_000 };
        sender.offer_short(&short(number)).unwrap();
        for frame in frames(&mut sender, now_ns) {
            take(&mut receiver, now_ns + way_ns, &frame);
        }
        let answered_ns = now_ns + way_ns + settings.acknowledge_ns;
        for frame in frames(&mut receiver, answered_ns) {
            take(&mut sender, answered_ns + way_ns, &frame);
        }
        now_ns += 1_000_000_000;
    }
    let pace_ns = |sender: &Association| {
        let path = sender.path_statistics(0).unwrap();
        path.round_trip_ns * 1000 / path.window_milliframes.max(1)
    };
    // Or this test says nothing: all retries at that pace would take much longer.
    assert!(pace_ns(&sender) > 200_000_000, "{}", pace_ns(&sender));
    let pace_ns = pace_ns(&sender);
    sender.offer_short(&short(1_000)).unwrap();
    let silent_ns = now_ns;
    while sender.close_reason().is_none() {
        frames(&mut sender, now_ns);
        now_ns = sender.deadline_ns().unwrap_or(now_ns);
    }
    assert_eq!(sender.close_reason(), Some(CloseReason::NoAnswer));
    let took_ns = now_ns - silent_ns;
    let all_ns = settings.no_answer_ns + 255 * settings.resend_max_ns;
    assert!(
        (settings.no_answer_ns..=all_ns + 9 * pace_ns).contains(&took_ns),
        "{took_ns}"
    );
    // And not at once, though it had been silent for long: a few retries come first.
    assert!(sender.statistics().retransmitted >= 8);
}

/// A wait in a host, the receiver's or the sender's own, is no delay of the network: windows
/// do not shrink for it. What the network delays is.
#[test]
fn who_looks_late_does_not_slow_the_sender_down() {
    // Less than a far path takes.
    const LATE_NS: u64 = 900_000;
    let window_after = |receiver_waited_ns, sender_waited_ns| {
        let (mut sender, mut receiver) = (new(Settings::default()), new(Settings::default()));
        let mut now_ns = 0;
        for turn in 0..20 {
            sender.offer_short(&short(0)).unwrap();
            sender.flush();
            let sent = frames(&mut sender, now_ns);
            // The first one shows the path as it is.
            let late_ns = if turn == 0 { 5_000 } else { LATE_NS };
            now_ns += late_ns;
            for frame in sent {
                let waited_ns = late_ns.min(receiver_waited_ns);
                if let Incoming::Packets(token) =
                    receiver.take_delayed_frame(now_ns, waited_ns, 0, &frame)
                {
                    receiver.taken(now_ns, token);
                }
            }
            let answers = frames(&mut receiver, now_ns + 20_000);
            now_ns += 20_000 + late_ns;
            for frame in answers {
                let _ = sender.take_delayed_frame(now_ns, late_ns.min(sender_waited_ns), 0, &frame);
            }
        }
        sender.path_statistics(0).unwrap().window_milliframes
    };
    let initial = u64::from(Settings::default().window_initial_frames) * 1_000;
    assert!(window_after(LATE_NS, LATE_NS) >= initial);
    assert!(window_after(LATE_NS, 0) < initial / 2);
    assert!(window_after(0, LATE_NS) < initial / 2);
}

/// Answers that wait in the socket of an end that was away are not given up on before they are
/// read.
#[test]
fn who_was_away_does_not_give_up_on_what_is_still_unread() {
    let (mut sender, mut receiver) = (new(Settings::default()), new(Settings::default()));
    let mut now_ns = 0;
    for _ in 0..20 {
        sender.offer_short(&short(0)).unwrap();
        for frame in frames(&mut sender, now_ns) {
            take(&mut receiver, now_ns + 10_000, &frame);
        }
        now_ns += 40_000;
        for frame in frames(&mut receiver, now_ns) {
            take(&mut sender, now_ns, &frame);
        }
    }
    // Two frames, each answered by one of its own.
    let mut answers = Vec::new();
    for _ in 0..2 {
        sender.offer_short(&short(0)).unwrap();
        sender.flush();
        for frame in frames(&mut sender, now_ns) {
            take(&mut receiver, now_ns + 10_000, &frame);
        }
        now_ns += 40_000;
        answers.extend(frames(&mut receiver, now_ns));
    }
    let lost = sender.path_statistics(0).unwrap().lost;
    let away_ns = 50_000_000;
    now_ns += away_ns;
    for answer in answers {
        let _ = sender.take_delayed_frame(now_ns, away_ns, 0, &answer);
        frames(&mut sender, now_ns);
    }
    assert_eq!(sender.path_statistics(0).unwrap().lost, lost);
    assert_eq!(sender.outstanding(), 0);
}

/// In a round trip of one frame nobody asks for an acknowledgement that the answer brings along;
/// who has filled half of the window does.
#[test]
fn who_has_room_left_does_not_ask() {
    let asks = |frame: &[u8]| Frame::read(frame).unwrap().header.flags & ASK != 0;
    let mut sender = new(Settings::default());
    let mut receiver = new(Settings::default());
    let mut now_ns = 0;
    for _ in 0..100 {
        sender.offer_short(&short(0)).unwrap();
        let [there] = &frames(&mut sender, now_ns)[..] else {
            panic!("one frame")
        };
        assert!(!asks(there));
        now_ns += 5_000;
        take(&mut receiver, now_ns, there);
        receiver.offer_short(&short(1)).unwrap();
        let [back] = &frames(&mut receiver, now_ns)[..] else {
            panic!("one frame")
        };
        now_ns += 5_000;
        take(&mut sender, now_ns, back);
    }
    for _ in 0..Settings::default().window_initial_frames {
        sender.offer_short(&short(0)).unwrap();
        sender.flush();
    }
    let sent = frames(&mut sender, now_ns);
    assert!(sent.len() > 8 && sent.iter().any(|frame| asks(frame)));
}
