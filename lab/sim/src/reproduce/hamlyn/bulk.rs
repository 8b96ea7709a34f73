//! Normal messages, bandwidth, packet size, and the projection (`Hamlyn 4.2` to `4.4`; Figures 7 to
//! 10; slides 21 to 24).

use super::bench::{Bench, LARGE, LARGEST_BYTES, PACKET_BYTES, RECOMMENDED, SMALL, us};
use super::{
    Experiment, bus_limit, figures, in_slope, judged, mb_per_s, out_slope, transactions, update,
    wire_slope,
};
use crate::machine::PointName;
use crate::machine::step::Direction;
use crate::reproduce::measure::{Failure, Shape, ping_pong};

/// Metadata of 4 bytes, less none, beside 32 bytes of data.
fn metadata_us(b: &Bench) -> Result<f64, Failure> {
    Ok(b.latency(SMALL, 32, 4)? - b.latency(SMALL, 32, 0)?)
}

/// MB/s of one packet more, between messages of 2 and 10.
fn marginal(b: &Bench, packet_bytes: usize) -> Result<f64, Failure> {
    let more = b.latency(packet_bytes, 10 * packet_bytes, 0)?
        - b.latency(packet_bytes, 2 * packet_bytes, 0)?;
    Ok(8.0 * packet_bytes as f64 / more)
}

/// Points of Figure 9 up to a message size: rates with 2 KB and with 4 KB packets.
fn two_against_four(b: &Bench, bytes_max: usize) -> Vec<(f64, f64)> {
    let (two, four) = (&b.figure9[3].points, &b.figure9[4].points);
    two.iter()
        .zip(four)
        .filter(|((bytes, _), _)| *bytes <= bytes_max as f64)
        .map(|(two, four)| (two.1, four.1))
        .collect()
}

pub(super) const EXPERIMENTS: &[(&str, Experiment)] = &[
    figures("H-308", &[|b| b.single(0, 0)]),
    judged("H-309", |b| {
        let jumps = [b.jump(1)?, b.jump(2)?, b.jump(3)?];
        Ok((
            jumps.iter().all(|&jump| jump > 5.0),
            format!(
                "{:.2}, {:.2} and {:.2} µs for one byte more than 256, 512 and 768",
                jumps[0], jumps[1], jumps[2]
            ),
        ))
    }),
    figures(
        "H-310",
        &[|b| b.jump(1), |b| Ok(b.small.receive - b.small.send)],
    ),
    judged("H-311", |b| {
        let (first, second, third) = (b.jump(1)?, b.jump(2)?, b.jump(3)?);
        Ok((
            first > second && (second - third).abs() < 0.1,
            format!("{first:.2} µs, then {second:.2} and {third:.2}"),
        ))
    }),
    judged("H-312", |b| {
        let without = b
            .machine
            .without("interface", PointName::AccumulatorWritten);
        let mut rises = [0.0; 3];
        for (at, rise) in rises.iter_mut().enumerate() {
            let bytes = at * SMALL + 1;
            let shape = Shape::datagram(SMALL, bytes);
            let quick = us(ping_pong(&without, &shape, 4)?.span);
            *rise = (b.latency(SMALL, bytes, 0)? - quick) / us(update(b));
        }
        Ok((
            rises.map(|rise| rise.round() as i32) == [0, 2, 3],
            format!(
                "1, 2 and 3 packets wait for {:.1}, {:.1} and {:.1} updates of an accumulator",
                rises[0], rises[1], rises[2]
            ),
        ))
    }),
    figures(
        "H-313",
        &[|b| b.slope_within(0), |b| Ok(mb_per_s(b.slope_within(0)?))],
    ),
    figures("H-314", &[|b| Ok(out_slope(b))]),
    figures("H-315", &[|b| Ok(wire_slope(b))]),
    figures(
        "H-316",
        &[
            |b| Ok(in_slope(b)),
            |b| Ok(1e3 / bus_limit(b, Direction::In)),
        ],
    ),
    judged("H-317", |b| {
        let mut falls = Vec::new();
        for whole in (32..=SMALL).step_by(32) {
            falls.push(b.latency(SMALL, whole - 4, 0)? - b.latency(SMALL, whole, 0)?);
        }
        let same = falls.iter().all(|&fall| (fall - falls[0]).abs() < 1e-6);
        Ok((
            same && falls[0] > 0.0,
            format!(
                "4 bytes less than a multiple of 32 take {:.2} µs longer than the multiple, at each of 8 multiples",
                falls[0]
            ),
        ))
    }),
    figures(
        "H-318",
        &[|b| Ok(transactions(b, 28)), |b| Ok(transactions(b, 32))],
    ),
    figures("H-319", &[metadata_us]),
    judged("H-320", |b| {
        let more_metadata = b.latency(SMALL, 128, 60)? - b.latency(SMALL, 128, 28)?;
        let more_data = b.latency(SMALL, 60, 28)? - b.latency(SMALL, 28, 28)?;
        let step = b.latency(SMALL, 197, 60)? - b.latency(SMALL, 196, 60)?;
        Ok((
            (more_metadata - more_data).abs() < 0.01 && step > 5.0,
            format!(
                "from 28 to 60 bytes: {more_metadata:.2} µs as metadata, {more_data:.2} as data; with 60 bytes of metadata the first step is at 196 bytes"
            ),
        ))
    }),
    judged("H-323", bottleneck),
    figures("H-324", &[|b| Ok(b.slopes.steep), |b| Ok(b.slopes.flat)]),
    judged("H-325", |b| {
        let stages = out_slope(b) + wire_slope(b) + in_slope(b);
        Ok((
            (b.slopes.steep - stages).abs() < 0.5,
            format!(
                "{:.1} ns/byte, the stages together {stages:.1}",
                b.slopes.steep
            ),
        ))
    }),
    judged("H-326", |b| {
        Ok((
            (b.slopes.flat - in_slope(b)).abs() < 0.5,
            format!(
                "{:.1} ns/byte, the incoming DMA {:.1}; up to {:.0} bytes",
                b.slopes.flat,
                in_slope(b),
                b.slopes.knee_bytes
            ),
        ))
    }),
    figures("H-327", &[|b| Ok(b.slopes.mean)]),
    figures("H-328", &[Bench::asleep]),
    figures("H-330", &[|b| Ok(us(b.machine.context_switch()))]),
    judged("H-333", bottleneck),
    figures("H-334", &[|b| marginal(b, LARGE)]),
    figures("H-335", &[|b| Ok(marginal(b, LARGE)? / 32.0 * 100.0)]),
    judged("H-336", |b| {
        let payload = marginal(b, LARGE)? / 32.0 * 100.0;
        let cycle = b.slopes.mean * LARGE as f64 / 1e3;
        let used = b.large.sending_bus / cycle * 100.0;
        Ok((
            used > payload,
            format!(
                "{used:.1} % of the time, {payload:.1} % payload: starts and gaps between transactions. The counters that the paper names are fetched by the receiver's board, and load this bus only in loopback"
            ),
        ))
    }),
    figures("H-341", &[|b| Ok(b.small.receive)]),
    figures(
        "H-342",
        &[|b| Ok(b.largest(&b.figure9, SMALL)), |b| marginal(b, SMALL)],
    ),
    judged("H-343", |b| {
        let mut rates = Vec::new();
        for bytes in PACKET_BYTES {
            rates.push(marginal(b, bytes)?);
        }
        let listed: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
        Ok((
            rates.is_sorted(),
            format!("{} MB/s by the cost of one packet more", listed.join(", ")),
        ))
    }),
    judged("H-344", |b| {
        let points = two_against_four(b, LARGEST_BYTES / 2);
        let better = points.iter().filter(|(two, four)| two > four).count();
        Ok((
            better * 2 > points.len(),
            format!("at {better} of {} message sizes up to 20 KB", points.len()),
        ))
    }),
    judged("H-345", |b| {
        let points = two_against_four(b, LARGEST_BYTES);
        let better = points.iter().filter(|(two, four)| four > two).count();
        let lead = points
            .iter()
            .fold(0.0_f64, |lead, (two, four)| lead.max(four / two - 1.0))
            * 100.0;
        Ok((
            better < points.len() && lead < 10.0,
            format!(
                "they lead at {better} of {} sizes, by {lead:.1} % at most",
                points.len()
            ),
        ))
    }),
    figures(
        "H-346",
        &[
            |b| Ok(b.largest(&b.figure9, LARGE)),
            |b| Ok(b.largest(&b.figure9, RECOMMENDED)),
        ],
    ),
    figures(
        "H-350",
        &[|b| Ok(b.large.link), |b| Ok(b.large.receiving_bus)],
    ),
    figures("H-353", &[|b| b.to_itself(4)]),
    figures(
        "H-354",
        &[
            |b| Ok(b.largest(&b.figure10, LARGE)),
            |b| Ok(b.largest(&b.figure9, LARGE)),
        ],
    ),
    figures("H-357", &[|b| Ok(b.hardware()?.0)]),
    judged("H-358", |b| {
        let (now, (_, then)) = (marginal(b, LARGE)?, b.hardware()?);
        Ok((
            (then / now - 1.0).abs() < 0.05,
            format!("{then:.1} MB/s instead of {now:.1}"),
        ))
    }),
];

fn bottleneck(b: &Bench) -> Result<(bool, String), Failure> {
    let cycle = b.slopes.mean * LARGE as f64 / 1e3;
    let [out, wire, into] =
        [b.large.sending_bus, b.large.link, b.large.receiving_bus].map(|busy| busy / cycle * 100.0);
    Ok((
        out > 90.0 && wire < 50.0 && into < 50.0,
        format!(
            "of the time between two packets of 4 KB the sender's bus is in use {out:.0} %, the link {wire:.0} %, the receiver's bus {into:.0} %"
        ),
    ))
}
