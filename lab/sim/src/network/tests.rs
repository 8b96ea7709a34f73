//! Drives any network, for the tests of each.

use std::collections::{BTreeMap, VecDeque};

use super::*;

/// Instants in nanoseconds, for tests.
pub(crate) fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// A frame whose payload is its number.
pub(crate) fn frame(number: u64, from: u32, to: u32, bytes: u32) -> Frame<u64> {
    Frame::new(number, HostId(from), HostId(to), bytes, number)
}

/// What a network did.
#[derive(PartialEq, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<Event<u64>>,
    /// When each frame was taken.
    pub(crate) taken: BTreeMap<u64, Time>,
    /// Frames that were still waiting when nothing happened any more.
    pub(crate) stuck: usize,
}

impl Outcome {
    /// Instant and number of what arrived at a host, in order.
    pub(crate) fn arrivals(&self, at_host: u32) -> Vec<(Time, u64)> {
        let of_host = |event: &Event<u64>| match event {
            Event::Delivered { at, host, frame } if host.0 == at_host => Some((*at, frame.number)),
            _ => None,
        };
        self.events.iter().filter_map(of_host).collect()
    }

    pub(crate) fn delivered(&self) -> impl Iterator<Item = (Time, &Frame<u64>)> {
        self.events.iter().filter_map(|event| match event {
            Event::Delivered { at, frame, .. } => Some((*at, frame)),
            _ => None,
        })
    }

    pub(crate) fn lost(&self) -> Vec<(u64, Loss)> {
        let lost = |event: &Event<u64>| match event {
            Event::Lost { number, reason, .. } => Some((*number, *reason)),
            _ => None,
        };
        self.events.iter().filter_map(lost).collect()
    }

    /// How often each number arrived.
    pub(crate) fn counts(&self) -> BTreeMap<u64, u32> {
        let mut counts = BTreeMap::new();
        for (_, frame) in self.delivered() {
            *counts.entry(frame.number).or_default() += 1;
        }
        counts
    }
}

/// Something else that is done to a network at an instant.
pub(crate) type Act<'a, N> = (Time, Box<dyn FnOnce(&mut N, Time) + 'a>);

/// A host takes frames again.
pub(crate) fn resume<N: Network<u64>>(at: Time, host: u32) -> Act<'static, N> {
    (
        at,
        Box::new(move |network, now| network.set_receiving(now, HostId(host), true)),
    )
}

/// Sends each frame at its instant, or as soon after it as its host has room; frames of one host in
/// their order. Goes on until nothing happens any more. At certain instants it does other things to
/// the network.
pub(crate) fn drive_with<N: Network<u64>>(
    network: &mut N,
    sends: Vec<(Time, Frame<u64>)>,
    mut others: VecDeque<Act<'_, N>>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut queues: BTreeMap<HostId, VecDeque<(Time, Frame<u64>)>> = BTreeMap::new();
    for (at, frame) in sends {
        queues.entry(frame.from).or_default().push_back((at, frame));
    }
    let mut stopped: BTreeMap<HostId, bool> = BTreeMap::new();
    let mut last = Time::ZERO;
    loop {
        let due = queues
            .iter()
            .filter(|(host, _)| !stopped.get(host).copied().unwrap_or(false))
            .filter_map(|(_, queue)| queue.front().map(|(at, _)| (*at).max(last)));
        let other = others.front().map(|(at, _)| *at);
        let Some(now) = due.chain(network.next()).chain(other).min() else {
            break;
        };
        assert!(now >= last, "time went back from {last} to {now}");
        last = now;
        if other == Some(now)
            && let Some((_, act)) = others.pop_front()
        {
            act(network, now);
        }
        network.advance(now, &mut |event| {
            assert!(event.at() <= now, "{event:?} was told at {now}");
            if let Event::Room { host, .. } = event {
                stopped.insert(host, false);
            }
            outcome.events.push(event);
        });
        assert!(
            network.next().is_none_or(|next| next > now),
            "something at {now} was left"
        );
        for (host, queue) in &mut queues {
            while !stopped.get(host).copied().unwrap_or(false)
                && queue.front().is_some_and(|(at, _)| *at <= now)
                && let Some((at, frame)) = queue.pop_front()
            {
                let number = frame.number;
                match network.send(now, frame) {
                    Ok(()) => drop(outcome.taken.insert(number, now)),
                    Err((frame, Refusal::Full)) => {
                        queue.push_front((at, frame));
                        stopped.insert(*host, true);
                    }
                    Err((frame, refusal)) => panic!("{frame:?} was refused: {refusal}"),
                }
            }
        }
    }
    outcome.stuck = queues.values().map(VecDeque::len).sum();
    outcome
}

/// [`drive_with`] without anything else.
pub(crate) fn drive(network: &mut impl Network<u64>, sends: Vec<(Time, Frame<u64>)>) -> Outcome {
    drive_with(network, sends, VecDeque::new())
}

#[test]
fn noise_changes_one_bit_and_every_bit_can_be_hit() {
    let mut random = Random::new(1);
    let mut seen = 0;
    for _ in 0..2_000 {
        let mut number = 0u64;
        number.damage(&mut random);
        assert_eq!(number.count_ones(), 1);
        seen |= number;
        let mut bytes = vec![0u8; 5];
        bytes.damage(&mut random);
        assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }
    assert_eq!(seen, u64::MAX);
    let mut nothing = Vec::<u8>::new();
    nothing.damage(&mut random);
    assert!(nothing.is_empty());
    assert_eq!(frame(1, 0, 1, 0).bytes, 1, "a frame takes room on the wire");
}
