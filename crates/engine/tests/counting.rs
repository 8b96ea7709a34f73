//! Packet counting (Hamlyn 2.5): a count is complete at its last packet and never
//! before, however it is divided, delegated and interleaved.

use crate::host::{PEER, Packet, VecArea, header};
use hamlyn_engine::counting::{Counting, DivideError, Share, packets_needed};
use hamlyn_engine::key::Key;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::packet::Header;
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::segment::Segmenter;
use hamlyn_engine::slot::{Mode, Rights, SlotOptions};
use proptest::prelude::*;

fn parts(share: Share, needed: &[u64]) -> Result<Vec<Share>, DivideError> {
    let mut parts = Vec::new();
    share.divide(needed, |part| parts.push(part))?;
    Ok(parts)
}

fn amount(share: Share) -> u128 {
    u128::from(share.minus_one()) + 1
}

/// The deltas of a message of so many packets, as the terminus makes them.
fn deltas(share: Share, packets: u64) -> Vec<u64> {
    let template = header(hamlyn_engine::packet::SlotName::new(0, 0), 0, 0);
    let mut segmenter = Segmenter::new(template, share, packets * 64, 64).unwrap();
    (0..packets)
        .map(|number| {
            let segment = segmenter.next(64);
            assert_eq!(segment.last, number + 1 == packets);
            segmenter.advance(&segment);
            segment.header.word
        })
        .collect()
}

/// A receiver with one entry, to which empty packets with deltas are delivered.
struct Count {
    receiver: Receiver<VecArea>,
    packet: Packet,
}

impl Count {
    fn new(counting: Counting) -> Self {
        let mut receiver = Receiver::new(None);
        receiver.set_up(0);
        let slot = receiver
            .open_slot(SlotOptions {
                area: VecArea::new(0),
                base: 0,
                length_bytes: 0,
                key: Key::from_bits(1),
                rights: Rights::WRITE,
                mode: Mode::Normal,
                metadata: Some(MetadataArea::new(1).unwrap()),
                queue: None,
                counting,
            })
            .unwrap();
        Self {
            receiver,
            packet: Packet::new(header(slot, 1, 0), &[], &[]),
        }
    }

    /// Whether the count is complete with this delta.
    fn add(&mut self, delta: u64) -> bool {
        let header = Header {
            word: delta,
            ..self.packet.header
        };
        self.receiver.receive(PEER, &header, &self.packet, None) == Ok(Received::Complete)
    }
}

fn whole_of(counting: Counting) -> u128 {
    match counting {
        Counting::Bits32 => 1 << 32,
        Counting::Bits64 => 1 << 64,
    }
}

fn width() -> impl Strategy<Value = Counting> {
    prop_oneof![Just(Counting::Bits32), Just(Counting::Bits64)]
}

/// How a share is handed on: kept for so many packets, or divided among delegates.
#[derive(Clone, Debug)]
enum Plan {
    Send(u64),
    Delegate(Vec<Plan>),
}

impl Plan {
    fn packets(&self) -> u64 {
        match self {
            Plan::Send(packets) => *packets,
            Plan::Delegate(plans) => plans.iter().map(Plan::packets).sum(),
        }
    }

    /// Who sends in the end, with which share.
    fn carry_out(&self, share: Share, senders: &mut Vec<(Share, u64)>) {
        match self {
            Plan::Send(packets) => senders.push((share, *packets)),
            Plan::Delegate(plans) => {
                let needed: Vec<_> = plans.iter().map(Plan::packets).collect();
                for (plan, part) in plans.iter().zip(parts(share, &needed).unwrap()) {
                    plan.carry_out(part, senders);
                }
            }
        }
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    (1_u64..12)
        .prop_map(Plan::Send)
        .prop_recursive(4, 40, 6, |inner| {
            prop::collection::vec(inner, 1..6).prop_map(Plan::Delegate)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// However a group is divided and delegated, and in whatever order all its packets come.
    #[test]
    fn group_is_complete_at_its_last_packet_and_never_before(
        plan in plan(),
        counting in width(),
        order in prop::collection::vec(any::<u32>(), 1..200),
    ) {
        let mut senders = Vec::new();
        plan.carry_out(Share::whole(counting), &mut senders);
        prop_assert_eq!(senders.iter().map(|&(share, _)| amount(share)).sum::<u128>(), whole_of(counting));
        let mut under_way: Vec<u64> = senders.iter().flat_map(|&(share, packets)| deltas(share, packets)).collect();
        if under_way.len() > 1 {
            prop_assert!(under_way.iter().all(|&delta| delta != 0), "a delta of zero would announce at once");
        }
        let mut count = Count::new(counting);
        for step in 0.. {
            if under_way.is_empty() {
                break;
            }
            let which = order[step % order.len()] as usize % under_way.len();
            let delta = under_way.swap_remove(which);
            prop_assert_eq!(count.add(delta), under_way.is_empty());
        }
    }

    /// Shares as tight as they can be: each exactly as large as its number of packets, but one.
    #[test]
    fn tight_shares_count_exactly(packets in prop::collection::vec(1_u64..40, 1..20), counting in width(), seed in any::<u64>()) {
        let tight: Vec<_> = packets.iter().map(|&packets| Share::from_minus_one(packets - 1, counting).unwrap()).collect();
        let used: u128 = packets.iter().copied().map(u128::from).sum();
        let rest = Share::from_minus_one((whole_of(counting) - used - 1) as u64, counting).unwrap();
        let mut under_way: Vec<_> = tight.iter().zip(&packets).flat_map(|(&share, &packets)| deltas(share, packets)).collect();
        under_way.extend(deltas(rest, 3));
        let mut random = seed | 1;
        let mut count = Count::new(counting);
        while !under_way.is_empty() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let delta = under_way.swap_remove((random >> 33) as usize % under_way.len());
            prop_assert_eq!(count.add(delta), under_way.is_empty());
        }
        for (share, packets) in tight.iter().zip(&packets) {
            prop_assert!(share.check(*packets).is_ok());
            prop_assert!(share.check(packets + 1).is_err());
        }
    }

    /// Parts sum to the share, each is enough, and the rest is spread evenly.
    #[test]
    fn division_gives_what_is_needed_and_spreads_the_rest(
        minus_one in any::<u64>(),
        needed in prop::collection::vec(prop_oneof![0_u64..100, any::<u64>()], 1..40),
        counting in width(),
    ) {
        let share = Share::from_minus_one((u128::from(minus_one) % whole_of(counting)) as u64, counting).unwrap();
        let least = |packets: u64| u128::from(packets.max(1));
        let sum: u128 = needed.iter().map(|&packets| least(packets)).sum();
        match parts(share, &needed) {
            Ok(parts) => {
                prop_assert!(sum <= amount(share));
                prop_assert_eq!(parts.len(), needed.len());
                prop_assert_eq!(parts.iter().map(|&part| amount(part)).sum::<u128>(), amount(share));
                let extras: Vec<_> = parts.iter().zip(&needed).map(|(&part, &packets)| {
                    assert!(part.check(packets).is_ok() && part.counting() == counting);
                    amount(part) - least(packets)
                }).collect();
                prop_assert!(extras.iter().max().unwrap() - extras.iter().min().unwrap() <= 1);
            }
            Err(DivideError::TooSmall { packets, parts, .. }) => {
                prop_assert!(sum > amount(share));
                prop_assert_eq!((packets, parts), (share.packets_max(), needed.len()));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    /// One after the other takes exactly what it sends; the last one has the rest.
    #[test]
    fn shares_taken_one_by_one_sum_to_the_whole(packets in prop::collection::vec(0_u64..50, 1..30), counting in width()) {
        let mut rest = Share::whole(counting);
        let mut sum = 0;
        for packets in packets {
            let (taken, left) = rest.take(packets).unwrap();
            prop_assert_eq!(amount(taken), u128::from(packets.max(1)));
            prop_assert_eq!(amount(taken) + amount(left), amount(rest));
            prop_assert!(taken.counting() == counting && left.counting() == counting);
            sum += amount(taken);
            rest = left;
        }
        prop_assert_eq!(sum + amount(rest), whole_of(counting));
        // Something is always left, so that the last member has a share at all.
        let all = rest.packets_max();
        let taken = rest.take(all);
        prop_assert_eq!(taken.is_ok(), u128::from(all) < amount(rest));
    }

    /// Hamlyn 2.5: the deltas of a message sum to Y; every one but the last is 1.
    #[test]
    fn deltas_sum_to_the_share(packets in 1_u64..300, extra in any::<u64>(), counting in width()) {
        let minus_one = u128::from(packets - 1) + u128::from(extra);
        let share = Share::from_minus_one((minus_one % whole_of(counting)) as u64, counting).unwrap();
        prop_assume!(share.check(packets).is_ok());
        let deltas = deltas(share, packets);
        let sum: u128 = deltas.iter().copied().map(u128::from).sum();
        prop_assert_eq!(sum % whole_of(counting), amount(share) % whole_of(counting));
        prop_assert!(deltas[..deltas.len() - 1].iter().all(|&delta| delta == 1));
    }

    /// As many packets as the segmenter really makes.
    #[test]
    fn packets_needed_is_what_the_segmenter_sends(data in 0_u64..20_000, metadata in 0_u8..=60, payload in 64_usize..3_000) {
        let template = Header { metadata_length_bytes: metadata, ..header(hamlyn_engine::packet::SlotName::new(0, 0), 0, 5) };
        let mut segmenter = Segmenter::new(template, Share::whole(Counting::Bits32), data, payload).unwrap();
        let mut packets = 0;
        loop {
            let segment = segmenter.next(payload);
            prop_assert_eq!(segment.header.offset, 5 + segment.start);
            prop_assert_eq!(segment.header.metadata_length_bytes, if packets == 0 { metadata } else { 0 });
            prop_assert!(segmenter.sent_bytes() == segment.start && segmenter.is_started() == (packets > 0));
            segmenter.advance(&segment);
            packets += 1;
            if segment.last {
                break;
            }
        }
        prop_assert_eq!(segmenter.sent_bytes(), data);
        prop_assert_eq!(packets_needed(data, metadata.into(), payload), packets);
    }
}

/// The paper's rule alone fires early: raw shares 5 and 2^32 - 5 with 10 packets and 1.
#[test]
fn the_papers_rule_alone_announces_after_six_of_eleven_packets() {
    let raw = |y: u32, packets: u32| -> Vec<u32> {
        (0..packets)
            .map(|number| {
                if number + 1 < packets {
                    1
                } else {
                    y.wrapping_sub(packets - 1)
                }
            })
            .collect()
    };
    let (first, second) = (raw(5, 10), raw(5_u32.wrapping_neg(), 1));
    let all = first
        .iter()
        .chain(&second)
        .fold(0_u32, |sum, &delta| sum.wrapping_add(delta));
    assert_eq!(all, 0, "the shares do sum to 2^32");
    let early = first[..5]
        .iter()
        .chain(&second)
        .fold(0_u32, |sum, &delta| sum.wrapping_add(delta));
    assert_eq!(early, 0, "and yet the sum is zero after six packets");
    // The engine, given such deltas, can only follow them.
    let mut count = Count::new(Counting::Bits32);
    let fired: Vec<_> = first[..5]
        .iter()
        .chain(&second)
        .map(|&delta| count.add(delta.into()))
        .collect();
    assert_eq!(fired, [false, false, false, false, false, true]);
}

#[test]
fn the_early_announcement_is_refused_before_its_first_packet() {
    let five = Share::from_minus_one(4, Counting::Bits32).unwrap();
    let error = five.check(10).unwrap_err();
    assert_eq!((error.packets, error.share), (10, 5));
    let template = header(hamlyn_engine::packet::SlotName::new(0, 0), 0, 0);
    assert_eq!(Segmenter::new(template, five, 640, 64).unwrap_err(), error);
    assert!(
        error
            .to_string()
            .contains("needs 10 packets but its share counts only 5")
    );
    // And nobody who says what the members need is ever given such a share.
    let rest = Share::from_minus_one(u32::MAX as u64 - 5, Counting::Bits32).unwrap();
    assert_eq!(amount(five) + amount(rest), 1 << 32);
    for part in parts(Share::whole(Counting::Bits32), &[10, 1]).unwrap() {
        assert!(part.check(10).is_ok());
    }
    assert!(matches!(
        parts(five, &[10, 1]),
        Err(DivideError::TooSmall {
            packets: 5,
            parts: 2,
            needed: 11
        })
    ));
}

#[test]
fn share_one_below_its_packets_is_refused_as_its_last_delta_would_be_zero() {
    let share = Share::from_minus_one(2, Counting::Bits32).unwrap();
    assert!(share.check(4).is_err());
    assert_eq!(deltas(share, 3), [1, 1, 1]);
}

#[test]
fn division_too_small_says_why() {
    let small = Share::from_minus_one(9, Counting::Bits32).unwrap();
    let error = parts(small, &[5, 0, 5]).unwrap_err();
    assert_eq!(
        error,
        DivideError::TooSmall {
            packets: 10,
            parts: 3,
            needed: 11
        }
    );
    assert_eq!(
        error.to_string(),
        "a share of 10 packets cannot give 3 parts that need 11 packets in all: divide it into fewer parts, or give the group 64-bit accumulators"
    );
    assert_eq!(parts(small, &[]).unwrap_err(), DivideError::NoParts);
    assert_eq!(parts(small, &[5, 5]).unwrap().len(), 2);
    let whole = Share::whole(Counting::Bits64);
    let error = parts(whole, &[u64::MAX, u64::MAX]).unwrap_err();
    assert_eq!(
        error,
        DivideError::TooSmall {
            packets: u64::MAX,
            parts: 2,
            needed: u64::MAX
        }
    );
    assert_eq!(
        amount(parts(whole, &[u64::MAX, 1]).unwrap()[0]),
        u128::from(u64::MAX)
    );
}

#[test]
fn whole_share_with_one_packet_has_delta_zero() {
    for counting in [Counting::Bits32, Counting::Bits64] {
        let whole = Share::whole(counting);
        assert!(whole.is_whole());
        assert_eq!(deltas(whole, 1), [0]);
        let modulus_less_one = (whole_of(counting) - 1) as u64;
        assert_eq!(deltas(whole, 2), [1, modulus_less_one]);
        assert_eq!(deltas(whole, 3), [1, 1, modulus_less_one - 1]);
        assert!(
            !Share::from_minus_one(modulus_less_one - 1, counting)
                .unwrap()
                .is_whole()
        );
    }
}

#[test]
fn delta_zero_announces_without_a_look_at_the_accumulator() {
    for counting in [Counting::Bits32, Counting::Bits64] {
        let mut count = Count::new(counting);
        assert!(!count.add(1));
        assert!(count.add(0), "at once");
        assert!(
            count.add((whole_of(counting) - 1) as u64),
            "and the sum is as it was"
        );
    }
}

#[test]
fn accumulators_count_in_their_own_width() {
    // Upper bits of a word are not part of a 32-bit delta.
    let mut narrow = Count::new(Counting::Bits32);
    assert!(narrow.add(1 << 32));
    assert!(!narrow.add(5 | 1 << 40));
    assert!(narrow.add((1 << 32) - 5));
    let mut wide = Count::new(Counting::Bits64);
    assert!(!wide.add(1 << 32));
    assert!(!wide.add((1 << 32) - 5));
    assert!(wide.add(((1_u64 << 33) - 5).wrapping_neg()));
}

#[test]
fn shares_beyond_their_width_do_not_exist() {
    assert!(Share::from_minus_one(1 << 32, Counting::Bits32).is_none());
    assert_eq!(
        Share::from_minus_one(u32::MAX.into(), Counting::Bits32),
        Some(Share::whole(Counting::Bits32))
    );
    assert_eq!(
        Share::from_minus_one(u64::MAX, Counting::Bits64),
        Some(Share::whole(Counting::Bits64))
    );
    assert_eq!(Share::whole(Counting::Bits32).packets_max(), 1 << 32);
    assert_eq!(Share::whole(Counting::Bits64).packets_max(), u64::MAX);
    assert!(Share::whole(Counting::Bits32).check(1 << 32).is_ok());
    assert!(Share::whole(Counting::Bits32).check((1 << 32) + 1).is_err());
    assert!(
        Share::from_minus_one(0, Counting::Bits32)
            .unwrap()
            .check(0)
            .is_ok()
    );
}
