//! Normal messages, bandwidth, packet size, and the projection (`Hamlyn 4.2` to `4.4`; Figures 7 to 10; slides 21 to 24).

use super::{
    calibrated, figures, given, in_slope, judged, mb_per_s, measured, out_slope, wire_slope,
};
use crate::machine::Parameters;
use crate::machine::parameters::{BUS_CYCLE, TRANSACTION_MAX_BYTES, transactions};
use crate::reproduce::bench::{Bench, LARGE, LARGEST_BYTES, PACKET_BYTES, RECOMMENDED, SMALL, us};
use crate::reproduce::measure::Failure;
use crate::reproduce::report::Treatment;
use crate::time::Span;

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

pub(super) const MEASURES: &[(&str, Treatment)] = &[
    figures(
        "H-308",
        &[calibrated("no data", "µs", 17.4, |b| b.single(0, 0))],
    ),
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
        &[
            calibrated("first step of Figure 7", "µs", 12.5, |b| b.jump(1)),
            calibrated("receiving more than sending, as read", "µs", 2.5, |b| {
                Ok(b.small.receive - b.small.send)
            }),
        ],
    ),
    judged("H-311", |b| {
        let (first, second, third) = (b.jump(1)?, b.jump(2)?, b.jump(3)?);
        Ok((
            first > second && (second - third).abs() < 0.1,
            format!("{first:.2} µs, then {second:.2} and {third:.2}"),
        ))
    }),
    judged("H-312", |b| {
        let slower = Parameters {
            accumulate: b.machine.accumulate + Span::from_us(1),
            ..b.machine
        };
        let mut rises = [0.0; 3];
        for (at, rise) in rises.iter_mut().enumerate() {
            let bytes = at * SMALL + 1;
            let shape = crate::reproduce::measure::Shape::datagram(SMALL, bytes);
            let slow = us(crate::reproduce::measure::ping_pong(&slower, &shape, 4)?.span);
            *rise = slow - b.latency(SMALL, bytes, 0)?;
        }
        Ok((
            rises.map(|rise| rise.round() as i32) == [0, 2, 3],
            format!(
                "an update that takes 1 µs longer delays 1, 2 and 3 packets by {:.1}, {:.1} and {:.1} µs",
                rises[0], rises[1], rises[2]
            ),
        ))
    }),
    figures(
        "H-313",
        &[
            measured("slope in the first packet", "ns/byte", 55.5, |b| {
                b.slope_within(0)
            }),
            measured("as bandwidth", "MB/s", 18.0, |b| {
                Ok(mb_per_s(b.slope_within(0)?))
            }),
        ],
    ),
    figures(
        "H-314",
        &[measured("the sender's bus", "ns/byte", 31.3, |b| {
            Ok(out_slope(b))
        })],
    ),
    figures(
        "H-315",
        &[given("the link", "ns/byte", 12.5, |b| Ok(wire_slope(b)))],
    ),
    figures(
        "H-316",
        &[
            calibrated("the receiver's bus", "ns/byte", 11.7, |b| Ok(in_slope(b))),
            given("limit of the bus", "ns/byte", 9.4, |b| {
                let cycles = 8 + b.machine.in_overhead_cycles;
                Ok(us(BUS_CYCLE * cycles) * 1e3 / TRANSACTION_MAX_BYTES as f64)
            }),
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
        &[
            given("28 bytes", "transactions", 3.0, |_| {
                Ok(transactions(28).map(|(count, _)| count).sum::<u64>() as f64)
            }),
            given("32 bytes", "transactions", 1.0, |_| {
                Ok(transactions(32).map(|(count, _)| count).sum::<u64>() as f64)
            }),
        ],
    ),
    figures(
        "H-319",
        &[calibrated("4 bytes of metadata", "µs", 7.7, metadata_us)],
    ),
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
    figures(
        "H-324",
        &[
            measured("steep", "ns/byte", 55.5, |b| Ok(b.slopes.steep)),
            measured("flat", "ns/byte", 11.6, |b| Ok(b.slopes.flat)),
        ],
    ),
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
    figures(
        "H-327",
        &[calibrated("mean slope", "ns/byte", 32.6, |b| {
            Ok(b.slopes.mean)
        })],
    ),
    figures(
        "H-328",
        &[calibrated("no data, asleep", "µs", 78.0, Bench::asleep)],
    ),
    figures(
        "H-330",
        &[given("context switch", "µs", 31.0, |b| {
            Ok(us(b.machine.context_switch))
        })],
    ),
    judged("H-333", bottleneck),
    figures(
        "H-334",
        &[calibrated("4 KB packets", "MB/s", 30.7, |b| {
            marginal(b, LARGE)
        })],
    ),
    figures(
        "H-335",
        &[calibrated("of 32 MB/s", "%", 96.0, |b| {
            Ok(marginal(b, LARGE)? / 32.0 * 100.0)
        })],
    ),
    judged("H-336", |b| {
        let payload = marginal(b, LARGE)? / 32.0 * 100.0;
        let cycle = b.slopes.mean * LARGE as f64 / 1e3;
        let used = b.large.sending_bus / cycle * 100.0;
        Ok((
            used > payload,
            format!(
                "{used:.1} % of the time, {payload:.1} % payload: starts and gaps between transactions. The counters that the paper names are fetched by the receiver's card, and load this bus only in loopback"
            ),
        ))
    }),
    figures(
        "H-341",
        &[calibrated(
            "256-byte packets, card of the receiver",
            "µs",
            12.9,
            |b| Ok(b.small.receive),
        )],
    ),
    figures(
        "H-342",
        &[
            measured("40 KB messages", "MB/s", 20.0, |b| {
                Ok(b.largest(&b.figure9, SMALL))
            }),
            measured("one packet more", "MB/s", 20.0, |b| marginal(b, SMALL)),
        ],
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
            measured("4 KB packets, 40 KB messages", "MB/s", 28.0, |b| {
                Ok(b.largest(&b.figure9, LARGE))
            }),
            measured("1 KB packets, 40 KB messages", "MB/s", 28.0, |b| {
                Ok(b.largest(&b.figure9, RECOMMENDED))
            }),
        ],
    ),
    figures(
        "H-350",
        &[
            measured("link", "µs", 50.0, |b| Ok(b.large.link)),
            measured("receiver's DMA", "µs", 50.0, |b| Ok(b.large.receiving_bus)),
        ],
    ),
    figures(
        "H-353",
        &[calibrated("4 bytes to itself", "µs", 19.1, |b| {
            b.to_itself(4)
        })],
    ),
    figures(
        "H-354",
        &[
            measured("4 KB packets, 40 KB messages", "MB/s", 22.0, |b| {
                Ok(b.largest(&b.figure10, LARGE))
            }),
            measured("between two hosts", "MB/s", 28.0, |b| {
                Ok(b.largest(&b.figure9, LARGE))
            }),
        ],
    ),
    figures(
        "H-357",
        &[measured("raw, 16 bytes", "µs", 6.0, |b| {
            Ok(b.hardware()?.0)
        })],
    ),
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
