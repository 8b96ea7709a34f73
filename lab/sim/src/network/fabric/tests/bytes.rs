//! The wormhole packets of the fabric against their bytes, one by one.
//!
//! The fabric says when the last byte of a wormhole packet is off a channel. Here all bytes are
//! followed by the three rules that the fabric's documentation names, and the buffers are counted.

use proptest::prelude::*;

use super::*;

/// When each byte of a wormhole packet is off each channel that it has been granted;
/// [`Time::NEVER`] if that is not decided yet.
fn offs(fabric: &Fabric<u64>, legs: &[super::super::Leg], bytes: usize) -> Vec<Vec<Time>> {
    let channel = |leg: usize| &fabric.channels[legs[leg].channel as usize];
    let mut offs = vec![vec![Time::NEVER; bytes + 1]; legs.len()];
    for (leg, offs) in offs.iter_mut().enumerate() {
        offs[0] = legs[leg].granted;
    }
    for byte in 1..=bytes {
        for leg in 0..legs.len() {
            let mut at = offs[leg][byte - 1] + Span::from_ps(channel(leg).ps_per_byte);
            if leg > 0 {
                let before = channel(leg - 1);
                at = at.max(offs[leg - 1][byte] + before.delay + before.latency);
            }
            let buffer = channel(leg).buffer_bytes as usize;
            if !channel(leg).is_to_host() && byte > buffer {
                let left = offs
                    .get(leg + 1)
                    .map_or(Time::NEVER, |next| next[byte - buffer]);
                at = at.max(left);
            }
            offs[leg][byte] = at;
        }
    }
    offs
}

/// Bytes in each buffer at an instant.
fn held(fabric: &Fabric<u64>, now: Time) -> Vec<u64> {
    let count = |offs: &[Time]| offs[1..].partition_point(|off| *off <= now) as u64;
    let mut held = vec![0; fabric.channels.len()];
    for packet in fabric
        .packets
        .iter()
        .filter(|packet| packet.frame.is_some())
    {
        let offs = offs(fabric, &packet.legs, packet.bytes as usize);
        for (at, leg) in packet.legs.iter().enumerate() {
            let gone = offs.get(at + 1).map_or(0, |next| count(next));
            held[leg.channel as usize] += count(&offs[at]) - gone;
        }
    }
    held
}

/// Small numbers, all times in whole nanoseconds and all cables alike, so that bytes of different
/// wormhole packets end at the same instants.
fn small(mut topology: Topology, buffers: &[u64], rates: &[u64]) -> Topology {
    for switch in &mut topology.switches {
        switch.latency = Span::from_ns(4);
    }
    for (at, cable) in topology.cables.iter_mut().enumerate() {
        cable.ps_per_byte = 1_000 * rates[at % rates.len()];
        cable.delay = Span::from_ns(2);
        cable.buffer_bytes = 6 + buffers[at % buffers.len()];
    }
    topology
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stopped_worm_is_off_each_channel_when_its_last_byte_is(
        switches in 1..6u16,
        buffers in prop::collection::vec(0..40u64, 7),
        rates in prop_oneof![Just(vec![1]), prop::collection::vec(1..4u64, 7)],
        bytes in 1..150u32,
        stop_ns in 0..400u64,
    ) {
        let topology = small(Topology::line(switches), &buffers, &rates);
        let mut fabric = fabric(&topology, Routing::Pair, 1);
        take_nothing(&mut fabric, 1);
        fabric.send(ns(0), frame(0, 0, 1, bytes)).unwrap();
        let mut legs = Vec::new();
        for now in 0..5_000 {
            if now == stop_ns {
                fabric.set_receiving(ns(now), HostId(1), true);
            }
            if !fabric.packets[0].legs.is_empty() {
                legs.clone_from(&fabric.packets[0].legs);
            }
            fabric.advance(ns(now), &mut |_| ());
        }
        prop_assert_eq!(legs.len(), usize::from(switches) + 1);
        let offs = offs(&fabric, &legs, bytes as usize);
        for (leg, offs) in legs.iter().zip(offs) {
            let byte_by_byte = offs[bytes as usize];
            if rates.len() == 1 {
                prop_assert_eq!(leg.clear, byte_by_byte);
            } else {
                // A byte that has begun is not stopped, where the fabric stops within it: one byte
                // of the slowest a hop.
                prop_assert!(leg.clear >= byte_by_byte);
                prop_assert!(leg.clear.since(byte_by_byte) <= Span::from_ns(3) * legs.len() as u64);
            }
        }
    }

    #[test]
    fn no_buffer_ever_holds_more_than_its_size(
        shape in 0..3u8,
        buffers in prop::collection::vec(0..40u64, 5),
        rates in prop_oneof![Just(vec![1]), prop::collection::vec(1..4u64, 7)],
        sends in prop::collection::vec((0..60u64, any::<u32>(), any::<u32>(), 1..80u32), 1..40),
        stops in prop::collection::vec((0..1_500u64, any::<u32>(), 1..600u64), 0..6),
        routing in prop::sample::select(Routing::ALL.to_vec()),
    ) {
        let topology = match shape {
            0 => Topology::line(3),
            1 => Topology::folded_clos(3, 2, 2, 1).unwrap(),
            _ => Topology::fat_tree(2, 3).unwrap(),
        };
        let topology = small(topology, &buffers, &rates);
        let hosts = topology.host_count() as u32;
        let mut fabric = fabric(&topology, routing, 1);
        let mut now = 0;
        let sends: Vec<_> = sends.into_iter().enumerate().map(|(number, (step, from, to, bytes))| {
            now += step;
            (ns(now), frame(number as u64, from % hosts, to % hosts, bytes))
        }).collect();
        // Hosts stop and start, and the bytes are counted at every nanosecond at which there are
        // frames.
        let mut others: Vec<Act<'_>> = Vec::new();
        for (from, host, span) in stops {
            let host = HostId(host % hosts);
            others.push(act(ns(from), move |fabric, now| fabric.set_receiving(now, host, false)));
            others.push(act(ns(from + span), move |fabric, now| fabric.set_receiving(now, host, true)));
        }
        for at in 0..3_000 {
            others.push(act(ns(at), |fabric, now| {
                fabric.advance(now, &mut |_| ());
                for (channel, held) in fabric.channels.iter().zip(held(fabric, now)) {
                    assert!(
                        channel.is_to_host() || held <= channel.buffer_bytes,
                        "{held} of {} bytes at {now}", channel.buffer_bytes
                    );
                }
            }));
        }
        others.sort_by_key(|(at, _)| *at);
        let count = sends.len();
        let outcome = drive_counting(&mut fabric, sends, others);
        prop_assert_eq!(outcome, count);
    }
}

/// As [`drive_with`], for acts that hear events themselves: only counts what is taken.
fn drive_counting(
    fabric: &mut Fabric<u64>,
    sends: Vec<(Time, Frame<u64>)>,
    others: Vec<Act<'_>>,
) -> usize {
    let mut sends: VecDeque<_> = sends.into();
    let mut taken = 0;
    for (at, act) in others {
        act(fabric, at);
        for _ in 0..sends.len() {
            let Some((due, frame)) = sends.pop_front() else {
                break;
            };
            if due > at {
                sends.push_front((due, frame));
                break;
            }
            match fabric.send(at, frame) {
                Ok(()) => taken += 1,
                Err((frame, _)) => sends.push_back((due, frame)),
            }
        }
    }
    while let Some(next) = fabric.next() {
        fabric.advance(next, &mut |_| ());
        while let Some((due, frame)) = sends.pop_front() {
            match fabric.send(next, frame) {
                Ok(()) => taken += 1,
                Err((frame, _)) => {
                    sends.push_front((due, frame));
                    break;
                }
            }
        }
    }
    assert_eq!(fabric.frames(), 0);
    taken
}
