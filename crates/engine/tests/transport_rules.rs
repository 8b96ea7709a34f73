//! The rules of the transport one by one (`virtual-networks` 4.2 to 4.4), each with a history of
//! its own in which that rule decides what happens.

use crate::transport_world;
use crate::transport_world::checker::seen;
use crate::transport_world::directed::{self, Solo};
use crate::transport_world::message::{Message, message};
use crate::transport_world::quick;
use hamlyn_engine::transport::{
    Association, CloseReason, NackReason, Packets, Return, Settings, answer_not_resident,
};

const START_NS: u64 = 5_000_000;

fn pair(settings: Settings) -> (Solo, Solo) {
    (Solo::new(settings), Solo::new(settings))
}

/// What this packet has to be when it arrives.
fn expected(number: u64, end: &Solo) -> Message {
    message(number, end.association.payload_max_bytes())
}

/// Takes a frame to the end; its packets.
fn deliver(end: &mut Solo, now_ns: u64, frame: &[u8]) -> Vec<Message> {
    let Some(token) = end.take(now_ns, frame) else {
        return Vec::new();
    };
    let packets = Packets::new(&frame[token.range()]);
    let packets = packets.map(|packet| seen(&packet)).collect();
    end.association.taken(now_ns, token);
    packets
}

/// One frame for each packet.
fn frames_of(end: &mut Solo, packets: std::ops::Range<u64>, now_ns: u64) -> Vec<Vec<u8>> {
    let payload_max_bytes = end.association.payload_max_bytes();
    let frame = |number| {
        let offered = message(number, payload_max_bytes).offer(&mut end.association, 0);
        assert!(offered.is_ok());
        end.association.flush();
        end.frame(now_ns).expect("it is sent")
    };
    packets.map(frame).collect()
}

/// A directed history, shared with the planted bugs.
fn holds(rule: fn() -> transport_world::Checked) {
    if let Err(wrong) = rule() {
        panic!("{wrong}");
    }
}

#[test]
fn a_lost_frame_is_sent_again_and_taken_once() {
    let (mut sender, mut receiver) = pair(quick());
    let mut now_ns = START_NS;
    sender.offer(1).unwrap();
    let lost = sender.frame(now_ns).expect("it is sent");
    assert!(
        sender.frame(now_ns).is_none(),
        "nothing is sent before its time"
    );
    let again = sender.frame_later(&mut now_ns).unwrap();
    assert!(now_ns > START_NS);
    let packets = deliver(&mut receiver, now_ns, &again);
    assert_eq!(packets, [expected(0, &sender)]);
    // It was only late.
    assert!(deliver(&mut receiver, now_ns, &lost).is_empty());
    let answer = receiver.frame_later(&mut now_ns).unwrap();
    assert!(sender.take(now_ns, &answer).is_none());
    assert!(sender.association.is_idle());
    assert_eq!(sender.association.statistics().retransmitted, 1);
}

#[test]
fn a_lost_acknowledgement_is_made_again_for_the_duplicate() {
    let (mut sender, mut receiver) = pair(quick());
    let mut now_ns = START_NS;
    sender.offer(1).unwrap();
    let first = sender.frame(now_ns).expect("it is sent");
    assert_eq!(deliver(&mut receiver, now_ns, &first).len(), 1);
    // All that the receiver says of it by itself is lost.
    while let Some(at_ns) = receiver.association.deadline_ns() {
        now_ns = now_ns.max(at_ns);
        while receiver.frame(now_ns).is_some() {}
    }
    let again = sender.frame_later(&mut now_ns).unwrap();
    assert!(
        deliver(&mut receiver, now_ns, &again).is_empty(),
        "taken twice"
    );
    let answer = receiver.frame_later(&mut now_ns).unwrap();
    assert!(sender.take(now_ns, &answer).is_none());
    assert!(sender.association.is_idle());
}

#[test]
fn an_acknowledgement_deletes_the_timer() {
    let (mut sender, mut receiver) = pair(quick());
    let mut now_ns = START_NS;
    sender.offer(1).unwrap();
    let frame = sender.frame(now_ns).expect("it is sent");
    let timeout_ns = sender.association.deadline_ns().expect("a timer");
    assert!(timeout_ns > now_ns);
    deliver(&mut receiver, now_ns, &frame);
    let answer = receiver.frame_later(&mut now_ns).unwrap();
    assert!(now_ns < timeout_ns, "or the timer went off before");
    assert!(sender.take(now_ns, &answer).is_none());
    assert_eq!(sender.association.deadline_ns(), None);
    assert!(sender.frame(timeout_ns).is_none());
    assert!(sender.frame(timeout_ns + 1_000_000_000).is_none());
    assert_eq!(sender.association.statistics().retransmitted, 0);
}

/// An answer to the frame that was in a channel before frees nothing of the frame that is in it
/// now.
#[test]
fn late_acknowledgements_and_nacks_leave_the_next_frame_of_their_channel_alone() {
    let settings = Settings {
        channels: 1,
        ..quick()
    };
    let (mut sender, mut receiver) = pair(settings);
    let mut now_ns = START_NS;
    let first = frames_of(&mut sender, 0..1, now_ns).remove(0);
    let mut nack = vec![0; settings.frame_bytes];
    let length_bytes = answer_not_resident(now_ns, &first, &mut nack).expect("an answer");
    nack.truncate(length_bytes);
    assert_eq!(deliver(&mut receiver, now_ns, &first).len(), 1);
    let answer = receiver.frame_later(&mut now_ns).unwrap();
    assert!(sender.take(now_ns, &answer).is_none());
    let second = frames_of(&mut sender, 1..2, now_ns).remove(0);
    for old in [&answer, &nack, &answer] {
        assert!(sender.take(now_ns, old).is_none());
        assert_eq!(
            sender.association.outstanding(),
            1,
            "freed by an old answer"
        );
    }
    assert_eq!(
        deliver(&mut receiver, now_ns, &second),
        [expected(1, &sender)]
    );
    let answer = receiver.frame_later(&mut now_ns).unwrap();
    assert!(sender.take(now_ns, &answer).is_none());
    assert!(sender.association.is_idle());
}

#[test]
fn a_lost_frame_stops_its_own_channel_and_no_other() {
    let settings = Settings {
        channels: 2,
        ..quick()
    };
    let (mut sender, mut receiver) = pair(settings);
    let lost = frames_of(&mut sender, 0..1, START_NS).remove(0);
    let mut now_ns = START_NS;
    // The other channel is used again and again. The network drops the first packet, however often
    // it is sent.
    for number in 1..20 {
        let offered = expected(number, &sender).offer(&mut sender.association, 0);
        assert!(offered.is_ok());
        sender.association.flush();
        let frame = loop {
            let frame = sender.frame_later(&mut now_ns).unwrap();
            if frame.len() != lost.len() || frame[20..] != lost[20..] {
                break frame;
            }
        };
        assert_eq!(
            deliver(&mut receiver, now_ns, &frame),
            [expected(number, &sender)]
        );
        let answer = receiver.frame_later(&mut now_ns).unwrap();
        assert!(sender.take(now_ns, &answer).is_none());
        assert_eq!(sender.association.outstanding(), 1);
    }
    assert_eq!(
        deliver(&mut receiver, now_ns, &lost),
        [expected(0, &sender)]
    );
}

#[test]
fn a_frame_without_room_is_answered_and_comes_again() {
    for why in [NackReason::NoRoom, NackReason::NotResident] {
        let (mut sender, mut receiver) = pair(quick());
        let mut now_ns = START_NS;
        sender.offer(1).unwrap();
        let frame = sender.frame(now_ns).expect("it is sent");
        let token = receiver.take(now_ns, &frame).expect("it is fresh");
        receiver.association.nack(now_ns, token, why);
        let nack = receiver.frame_later(&mut now_ns).unwrap();
        assert!(sender.take(now_ns, &nack).is_none());
        assert_eq!(sender.association.outstanding(), 1);
        let again = sender.frame_later(&mut now_ns).unwrap();
        assert_eq!(
            deliver(&mut receiver, now_ns, &again),
            [expected(0, &sender)]
        );
    }
}

#[test]
fn a_frame_for_an_interface_that_is_not_resident_comes_again() {
    let (mut sender, mut receiver) = pair(quick());
    let mut now_ns = START_NS;
    sender.offer(1).unwrap();
    for _ in 0..20 {
        let frame = sender.frame_later(&mut now_ns).unwrap();
        let mut nack = [0; 64];
        let length_bytes = answer_not_resident(now_ns, &frame, &mut nack).expect("an answer");
        assert!(sender.take(now_ns, &nack[..length_bytes]).is_none());
        assert_eq!(sender.association.outstanding(), 1);
    }
    let frame = sender.frame_later(&mut now_ns).unwrap();
    assert_eq!(
        deliver(&mut receiver, now_ns, &frame),
        [expected(0, &sender)]
    );
    assert_eq!(sender.association.close_reason(), None);
}

#[test]
fn a_frame_that_was_cut_is_dropped_and_comes_again() {
    let (mut sender, mut receiver) = pair(quick());
    let mut now_ns = START_NS;
    sender.offer(1).unwrap();
    let frame = sender.frame(now_ns).expect("it is sent");
    for length_bytes in 0..frame.len() {
        assert!(deliver(&mut receiver, now_ns, &frame[..length_bytes]).is_empty());
    }
    let again = sender.frame_later(&mut now_ns).unwrap();
    assert_eq!(
        deliver(&mut receiver, now_ns, &again),
        [expected(0, &sender)]
    );
}

/// What is kept for a retransmission is what comes back: no other copy is made.
#[test]
fn what_comes_back_is_what_was_kept_to_be_sent_again() {
    let mut sender = Solo::new(quick());
    sender.offer(100).unwrap();
    while sender.frame(START_NS).is_some() {}
    let kept_bytes = sender.association.buffer_bytes();
    assert!(kept_bytes > 0);
    sender.association.fail(CloseReason::PeerDead);
    assert!(sender.association.buffer_bytes() <= kept_bytes);
    let payload_max_bytes = sender.association.payload_max_bytes();
    for number in 0..100 {
        let returned = sender.association.next_return().expect("all come back");
        assert_eq!(returned.reason, Return::Ended(CloseReason::PeerDead));
        let returned = Message {
            header: returned.header,
            metadata: returned.metadata().to_vec(),
            data: returned.data.to_vec(),
        };
        assert_eq!(returned, message(number, payload_max_bytes));
        assert!(sender.association.buffer_bytes() <= kept_bytes);
    }
    assert!(sender.association.next_return().is_none());
}

/// Answers that come late, to an association that was unloaded and loaded again, change nothing of
/// what it sends now.
#[test]
fn late_answers_to_a_suspended_association_do_no_harm() {
    let (mut sender, mut receiver) = pair(quick());
    let mut now_ns = START_NS;
    sender.offer(1).unwrap();
    let first = sender.frame(now_ns).expect("it is sent");
    assert_eq!(deliver(&mut receiver, now_ns, &first).len(), 1);
    let answer = receiver.frame_later(&mut now_ns).unwrap();
    assert!(sender.take(now_ns, &answer).is_none());
    sender.association.prepare_suspend();
    let settings = quick();
    let Ok(saved) = std::mem::replace(&mut sender, Solo::new(settings))
        .association
        .suspend()
    else {
        panic!("all is acknowledged");
    };
    sender.association = Association::resume(saved, now_ns);
    assert!(sender.take(now_ns, &answer).is_none());
    let second = frames_of(&mut sender, 1..2, now_ns).remove(0);
    assert!(sender.take(now_ns, &answer).is_none());
    assert_eq!(
        sender.association.outstanding(),
        1,
        "freed by an old answer"
    );
    assert!(
        deliver(&mut receiver, now_ns, &first).is_empty(),
        "taken twice"
    );
    assert_eq!(
        deliver(&mut receiver, now_ns, &second),
        [expected(1, &sender)]
    );
}

#[test]
fn a_frame_that_waits_to_be_taken_is_answered() {
    holds(directed::a_frame_that_waits_to_be_taken_is_answered);
}

#[test]
fn suspension_waits_for_the_nack_of_the_latest_transmission() {
    holds(directed::suspension_waits_for_the_nack_of_the_latest_transmission);
}

#[test]
fn a_nack_is_an_answer() {
    holds(directed::a_nack_is_an_answer);
}

#[test]
fn silence_closes_after_255_retries() {
    holds(directed::silence_closes_after_255_retries);
}

#[test]
fn no_progress_closes() {
    holds(directed::no_progress_closes);
}
