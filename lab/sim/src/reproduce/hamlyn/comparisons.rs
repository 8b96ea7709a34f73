//! Other systems, conclusions, and the slides' own figures (`Hamlyn 5` and `6`; slides 26 to 29).

use super::bench::{Bench, LARGE, us};
use super::{Experiment, figures, judged, mb_per_s};
use crate::machine::Component::HostSoftware;
use crate::machine::Protocol;
use crate::network::saturation::Traffic;
use crate::reproduce::beyond::saturation::of_64_hosts;
use crate::reproduce::measure::{Failure, Shape, flow};

/// Cycles of 10 ns of tagged remote write: sending, receiving.
fn cycles(b: &Bench) -> Result<(f64, f64), Failure> {
    let flow = flow(&b.machine, &Shape::short(Protocol::Tagged), 1_000, true)?;
    Ok((
        us(flow.sending_processor) * 100.0,
        us(flow.receiving_processor) * 100.0,
    ))
}

/// The part of the time, in percent, that the processors of both hosts work for messages of so many
/// bytes.
fn processors(b: &Bench, data_bytes: usize) -> Result<f64, Failure> {
    let flow = b.stream(data_bytes)?;
    Ok(us(flow.sending_processor + flow.receiving_processor) / us(flow.span) * 100.0)
}

pub(super) const EXPERIMENTS: &[(&str, Experiment)] = &[
    figures("H-365", &[|b| Ok(cycles(b)?.0)]),
    figures("H-366", &[|b| Ok(cycles(b)?.1)]),
    figures(
        "H-370",
        &[
            |b| Ok(us(b.tagged.round_trip)),
            |b| b.single(0, 0),
            |b| Ok(b.slopes.mean),
        ],
    ),
    judged("H-371", |b| {
        let ours = us(b.tagged.round_trip) - 2.0 * us(b.machine.link().switch.0);
        Ok((
            79.0 - 41.0 > ours,
            format!(
                "without switches 38 µs (cited) against {ours:.1} there and back; 200 ns/byte (cited) against {:.1}",
                b.slopes.mean
            ),
        ))
    }),
    judged("H-375", |b| {
        let switch = us(b.machine.context_switch());
        Ok((
            switch > b.small.receive,
            format!(
                "a context switch takes {switch:.0} µs, the board {:.1} µs for a packet of 256 bytes",
                b.small.receive
            ),
        ))
    }),
    judged("H-380", |b| {
        let latency = us(b.raw.span);
        Ok((
            latency < 20.0 && b.refused.refused == 1_000,
            format!(
                "{latency:.1} µs, {:.1} MB/s, wrong keys refused, no operating system on the way",
                mb_per_s(b.slopes.mean)
            ),
        ))
    }),
    figures(
        "H-382",
        &[
            |_| Ok(of_64_hosts(Traffic::Uniform)?.over_pair),
            |_| Ok(of_64_hosts(Traffic::BitReversal)?.over_pair),
            |_| Ok(of_64_hosts(Traffic::BitReversal)?.over_receiver),
        ],
    ),
    figures("H-394", &[|b| Ok(us(b.refused.receiving_lanai))]),
    figures("H-395", &[|b| Ok(years(b))]),
    judged("H-403", |b| {
        let (raw, normal) = (us(b.raw.span), b.single(0, 0)?);
        Ok((normal < 20.0, format!("{raw:.1} to {normal:.1} µs one way")))
    }),
    judged("H-405", |b| {
        let late = f64::from(of_64_hosts(Traffic::Permutation)?.reordered_per_million) / 1e4;
        let (receive, counting) = b.counting()?;
        let share = 100.0 * counting / receive;
        Ok((
            late > 1.0 && share < 25.0,
            format!(
                "64 hosts in fixed pairs, adaptively and at full load: {late:.0} % of frames come late. What takes them in any order is counting, {counting:.2} of {receive:.1} µs of the receiver's board for a packet of 256 bytes, {share:.0} %; that messages are announced at the last packet in any order: engine test packets_in_any_order_announce_each_message_at_its_last"
            ),
        ))
    }),
    judged("H-406", |b| {
        let metadata = b.latency(256, 32, 4)? - b.latency(256, 32, 0)?;
        let written = us(b.machine.store());
        Ok((
            metadata > 10.0 * written,
            format!(
                "4 bytes of metadata cost {metadata:.1} µs as they are fetched by DMA, where one store takes {written:.3}"
            ),
        ))
    }),
    figures(
        "H-408",
        &[
            |b| Ok(us(b.raw.round_trip)),
            |b| Ok(us(b.tagged.processors) / us(b.tagged.span) * 100.0),
        ],
    ),
    figures(
        "H-409",
        &[
            |b| Ok(b.largest(&b.figure9, LARGE)),
            |b| {
                let flow = b.stream(LARGE)?;
                Ok(us(flow.sending_processor) / us(flow.span) * 100.0)
            },
            |b| processors(b, 1_024),
        ],
    ),
    figures("H-410", &[|b| Ok(mb_per_s(b.slopes.mean) / 32.0 * 100.0)]),
    judged("H-411", |b| {
        let software = b.row(HostSoftware).1 / us(b.tagged.span) * 100.0;
        let sender = b.stream(LARGE)?;
        let busy = us(sender.sending_processor) / us(sender.span) * 100.0;
        Ok((
            software < 50.0 && busy < 10.0,
            format!(
                "software is {software:.0} % of a short message; the sender's processor works {busy:.1} % of the time that 4 KB messages take"
            ),
        ))
    }),
];

/// Years for half of all keys, one after the other.
pub(super) fn years(b: &Bench) -> f64 {
    let seconds = us(b.refused.receiving_lanai) / 1e6 * 2_f64.powi(63);
    seconds / (365.25 * 86_400.0)
}
