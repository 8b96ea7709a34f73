//! Packets that the interface refuses come back however many they are, and whatever of the answers
//! is lost; and an answer that does not fit one frame takes a bounded number of frames.

use crate::transport_world::directed::Solo;
use crate::transport_world::quick;
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::packet::{Address, Short, SlotName};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Return, Settings};
use proptest::prelude::*;

/// Frames as of a path that carries much.
fn long() -> Settings {
    Settings {
        frame_bytes: 8_920,
        ..quick()
    }
}

const REASONS: [Refusal; 2] = [Refusal::BadKey, Refusal::OutOfBounds];

fn short() -> Short {
    Short {
        to: Address::new(SlotName::new(3, 1), FAST_INDEX),
        key: Key::from_bits(7),
        offset: 0,
        word: 0,
        has_metadata: false,
        length_bytes: 16,
        data: [1, 2, 0, 0],
    }
}

/// Sends a frame of so many packets, of which every `stride`th is refused, each for another reason
/// than the one before, over paths whose answers have so many bytes; `is_lost` says which answers
/// are. Gives how many packets were refused and the reasons that came back, by packet.
fn told(
    packets: u64,
    stride: usize,
    answer_bytes: usize,
    mut is_lost: impl FnMut() -> bool,
) -> (usize, Vec<Return>) {
    let (mut sender, mut receiver) = (Solo::new(long()), Solo::new(long()));
    let mut now_ns = 5_000_000;
    for _ in 0..packets {
        let short = short();
        sender
            .association
            .offer_short(&short)
            .expect("there is room");
    }
    let frame = sender.frame(now_ns).expect("it is sent");
    let token = receiver.take(now_ns, &frame).expect("it is fresh");
    let refused: Vec<u16> = (0..token.count()).step_by(stride).collect();
    for (at, &index) in refused.iter().enumerate() {
        let reason = REASONS[at % REASONS.len()];
        receiver.association.refused(&token, index, reason);
    }
    receiver.association.limit_frames(answer_bytes);
    receiver.association.taken(now_ns, token);
    let mut came_back = Vec::new();
    for _ in 0..1_000 {
        now_ns += 1_000_000;
        let mut answers = 0;
        while let Some(answer) = receiver.frame(now_ns) {
            answers += 1;
            assert!(answers <= 64, "frames without end");
            if !is_lost() {
                assert!(sender.take(now_ns, &answer).is_none());
            }
        }
        while let Some(returned) = sender.association.next_return() {
            came_back.push(returned.reason);
        }
        if sender.association.is_idle() {
            break;
        }
        while let Some(again) = sender.frame(now_ns) {
            assert!(receiver.take(now_ns, &again).is_none(), "it was taken");
        }
    }
    assert!(sender.association.is_idle(), "it is acknowledged");
    (refused.len(), came_back)
}

#[test]
fn refusals_that_do_not_fit_a_frame_take_several() {
    for (stride, answer_bytes) in [(1, 1_184), (1, 256), (2, 256)] {
        let (refused, came_back) = told(286, stride, answer_bytes, || false);
        assert!(refused >= 143);
        let expected = (0..refused).map(|at| Return::Refused(REASONS[at % REASONS.len()]));
        assert_eq!(came_back, expected.collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lost_answers_change_nothing_of_it(
        packets in 1_u64..286,
        stride in 1_usize..4,
        answer_bytes in 256_usize..1_500,
        losses in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let mut losses = losses.into_iter();
        let (refused, came_back) = told(packets, stride, answer_bytes, || losses.next().unwrap_or(false));
        let expected = (0..refused).map(|at| Return::Refused(REASONS[at % REASONS.len()]));
        prop_assert_eq!(came_back, expected.collect::<Vec<_>>());
    }
}
