//! Normal messages, bandwidth, packet size, and the projection (`Hamlyn 4.2` to `4.4`; Figures 7 to 10; slides 21 to 24).

use super::{
    carried_out, cited, fitted, given, in_slope, judged, mb_per_s, measured, number, out_slope,
    wire_slope,
};
use crate::machine::Parameters;
use crate::machine::parameters::{BUS_CYCLE, TRANSACTION_MAX_BYTES, transactions};
use crate::reproduce::bench::{Bench, LARGE, LARGEST_BYTES, PACKET_BYTES, RECOMMENDED, SMALL, us};
use crate::reproduce::measure::Failure;
use crate::reproduce::report::Kind::Claim;
use crate::reproduce::report::Row;
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

pub(super) const ROWS: &[Row] = &[
    carried_out(
        "H-307",
        "Fig 7",
        "latency by message size, 256-byte packets, 0, 4 and 60 bytes of metadata",
        "plot figure-7",
    ),
    number(
        "H-308",
        "4.2",
        "about 17.4 µs whatever the size",
        &[fitted("no data", "µs", 17.4, |b| b.single(0, 0))],
        "a DMA of no bytes is started, too, so that the line of H-002 begins here",
    ),
    judged(
        "H-309",
        Claim,
        "Fig 7",
        "latency jumps at each multiple of 256 bytes",
        |b| {
            let jumps = [b.jump(1)?, b.jump(2)?, b.jump(3)?];
            Ok((
                jumps.iter().all(|&jump| jump > 5.0),
                format!(
                    "{:.2}, {:.2} and {:.2} µs for one byte more than 256, 512 and 768",
                    jumps[0], jumps[1], jumps[2]
                ),
            ))
        },
    ),
    number(
        "H-310",
        "4.2",
        "receiving a 256-byte packet takes the LANai about 12.5 µs more than sending one",
        &[
            fitted("first step of Figure 7", "µs", 12.5, |b| b.jump(1)),
            fitted("receiving more than sending, as read", "µs", 2.5, |b| {
                Ok(b.small.receive - b.small.send)
            }),
        ],
        "the paper contradicts itself: with 12.9 µs a packet (H-341) sending would take 0.4 µs, less than its DMA. Two readings hold together: 2.5 µs more, and a step of 12.5 µs, which the sentence explains. Later steps are 10.1 µs, as 12.9 µs a packet less 11.7 ns/byte allow no more",
    ),
    judged(
        "H-311",
        Claim,
        "Fig 7",
        "the first step is higher than the later ones",
        |b| {
            let (first, second, third) = (b.jump(1)?, b.jump(2)?, b.jump(3)?);
            Ok((
                first > second && (second - third).abs() < 0.1,
                format!("{first:.2} µs, then {second:.2} and {third:.2}"),
            ))
        },
    ),
    judged(
        "H-312",
        Claim,
        "4.2",
        "because the accumulator is updated not at all, then twice, then once a packet",
        |b| {
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
        },
    ),
    number(
        "H-313",
        "4.2",
        "55.5 ns/byte = 18.0 MB/s: three stages one after the other",
        &[
            measured("slope in the first packet", "ns/byte", 55.5, |b| {
                b.slope_within(0)
            }),
            measured("as bandwidth", "MB/s", 18.0, |b| {
                Ok(mb_per_s(b.slope_within(0)?))
            }),
        ],
        "inside the first packet. Later packets of 256 bytes wait for the receiver only, as in Figure 8: a slope of 55.5 throughout would contradict the 20 MB/s of H-342",
    ),
    number(
        "H-314",
        "4.2",
        "stage 1, DMA to the interface: about 31.3 ns/byte",
        &[measured("the sender's bus", "ns/byte", 31.3, |b| {
            Ok(out_slope(b))
        })],
        "41 cycles for 32 bytes: one between two transactions, which the 30.7 MB/s of 4 KB packets and the 2.5 µs of H-310 ask for",
    ),
    number(
        "H-315",
        "4.2",
        "stage 2, network: 12.5 ns/byte",
        &[given("the link", "ns/byte", 12.5, |b| Ok(wire_slope(b)))],
        "",
    ),
    number(
        "H-316",
        "4.2",
        "stage 3, DMA into the host: 11.7 ns/byte; the bus could do 9.4",
        &[
            fitted("the receiver's bus", "ns/byte", 11.7, |b| Ok(in_slope(b))),
            given("limit of the bus", "ns/byte", 9.4, |b| {
                let cycles = 8 + b.machine.in_overhead_cycles;
                Ok(us(BUS_CYCLE * cycles) * 1e3 / TRANSACTION_MAX_BYTES as f64)
            }),
        ],
        "15 cycles for 32 bytes; 11.6 in the text on Figure 8",
    ),
    judged(
        "H-317",
        Claim,
        "Fig 7",
        "a fine structure repeats every 32 bytes",
        |b| {
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
        },
    ),
    number(
        "H-318",
        "4.2",
        "28 bytes take three transactions, 32 take one",
        &[
            given("28 bytes", "transactions", 3.0, |_| {
                Ok(transactions(28).map(|(count, _)| count).sum::<u64>() as f64)
            }),
            given("32 bytes", "transactions", 1.0, |_| {
                Ok(transactions(32).map(|(count, _)| count).sum::<u64>() as f64)
            }),
        ],
        "",
    ),
    number(
        "H-319",
        "4.2",
        "any metadata adds 7.7 µs",
        &[fitted("4 bytes of metadata", "µs", 7.7, metadata_us)],
        "the DMA parts are the machine's; what is left over, software of host and card, is a parameter",
    ),
    judged(
        "H-320",
        Claim,
        "Fig 7",
        "a metadata byte costs what a data byte costs, and moves the curve to the left",
        |b| {
            let more_metadata = b.latency(SMALL, 128, 60)? - b.latency(SMALL, 128, 28)?;
            let more_data = b.latency(SMALL, 60, 28)? - b.latency(SMALL, 28, 28)?;
            let step = b.latency(SMALL, 197, 60)? - b.latency(SMALL, 196, 60)?;
            Ok((
                (more_metadata - more_data).abs() < 0.01 && step > 5.0,
                format!(
                    "from 28 to 60 bytes: {more_metadata:.2} µs as metadata, {more_data:.2} as data; with 60 bytes of metadata the first step is at 196 bytes"
                ),
            ))
        },
    ),
    carried_out(
        "H-321",
        "Fig 7",
        "direct I/O or DMA is not said",
        "DMA for data and metadata throughout, which the 31.3 ns/byte of the first stage and the 7.7 µs of metadata point to",
    ),
    carried_out(
        "H-322",
        "Fig 8",
        "latency by message size, 4 KB packets",
        "plot figure-8",
    ),
    judged(
        "H-323",
        Claim,
        "Fig 8",
        "the sender's outgoing DMA is the bottleneck",
        bottleneck,
    ),
    number(
        "H-324",
        "Fig 8",
        "slopes of 55.5 and 11.6 ns/byte alternate",
        &[
            measured("steep", "ns/byte", 55.5, |b| Ok(b.slopes.steep)),
            measured("flat", "ns/byte", 11.6, |b| Ok(b.slopes.flat)),
        ],
        "in the third packet, in steps of 32 bytes",
    ),
    judged(
        "H-325",
        Claim,
        "Fig 8",
        "steep: each byte of a nearly full last packet waits for all three stages",
        |b| {
            let stages = out_slope(b) + wire_slope(b) + in_slope(b);
            Ok((
                (b.slopes.steep - stages).abs() < 0.5,
                format!(
                    "{:.1} ns/byte, the stages together {stages:.1}",
                    b.slopes.steep
                ),
            ))
        },
    ),
    judged(
        "H-326",
        Claim,
        "Fig 8",
        "flat: a small last packet waits only for the incoming DMA of the one before",
        |b| {
            Ok((
                (b.slopes.flat - in_slope(b)).abs() < 0.5,
                format!(
                    "{:.1} ns/byte, the incoming DMA {:.1}; up to {:.0} bytes",
                    b.slopes.flat,
                    in_slope(b),
                    b.slopes.knee_bytes
                ),
            ))
        },
    ),
    number(
        "H-327",
        "Fig 8",
        "32.6 ns/byte over whole packets",
        &[fitted("mean slope", "ns/byte", 32.6, |b| Ok(b.slopes.mean))],
        "",
    ),
    number(
        "H-328",
        "4.2",
        "78 µs if the receiver sleeps",
        &[fitted("no data, asleep", "µs", 78.0, Bench::asleep)],
        "interrupt service is the parameter that fills what the context switch and the message leave of it",
    ),
    number(
        "H-330",
        "4.2",
        "a context switch takes 31 µs",
        &[given("context switch", "µs", 31.0, |b| {
            Ok(us(b.machine.context_switch))
        })],
        "",
    ),
    cited(
        "H-331",
        Claim,
        "4.2",
        "78 µs compares well with other reports",
        "about other systems",
    ),
    carried_out(
        "H-332",
        "S21, S22",
        "plots of small and large packets (missing)",
        "plots figure-7 and figure-8",
    ),
    judged(
        "H-333",
        Claim,
        "4.3",
        "with 4 KB packets the I/O bus is the bottleneck",
        bottleneck,
    ),
    number(
        "H-334",
        "4.3",
        "30.7 MB/s by the slope",
        &[fitted("4 KB packets", "MB/s", 30.7, |b| marginal(b, LARGE))],
        "the text names Figure 7; Figure 8 must be meant",
    ),
    number(
        "H-335",
        "4.3",
        "96 % of the outgoing channel is payload",
        &[fitted("of 32 MB/s", "%", 96.0, |b| {
            Ok(marginal(b, LARGE)? / 32.0 * 100.0)
        })],
        "",
    ),
    judged(
        "H-336",
        Claim,
        "4.3",
        "it is in use a little more than that",
        |b| {
            let payload = marginal(b, LARGE)? / 32.0 * 100.0;
            let cycle = b.slopes.mean * LARGE as f64 / 1e3;
            let used = b.large.sending_bus / cycle * 100.0;
            Ok((
                used > payload,
                format!(
                    "{used:.1} % of the time, {payload:.1} % payload: starts and gaps between transactions. The counters that the paper names are fetched by the receiver's card, and load this bus only in loopback"
                ),
            ))
        },
    ),
    carried_out(
        "H-340",
        "Fig 9",
        "bandwidth by message size, five packet sizes",
        "plot figure-9",
    ),
    number(
        "H-341",
        "4.3",
        "receiving takes 12.9 µs a packet",
        &[fitted(
            "256-byte packets, card of the receiver",
            "µs",
            12.9,
            |b| Ok(b.small.receive),
        )],
        "the sum of its steps; the split is a parameter",
    ),
    number(
        "H-342",
        "4.3",
        "so 256-byte packets reach 20 MB/s",
        &[
            measured("40 KB messages", "MB/s", 20.0, |b| {
                Ok(b.largest(&b.figure9, SMALL))
            }),
            measured("one packet more", "MB/s", 20.0, |b| marginal(b, SMALL)),
        ],
        "",
    ),
    judged(
        "H-343",
        Claim,
        "Fig 9",
        "asymptotic bandwidth rises with packet size",
        |b| {
            let mut rates = Vec::new();
            for bytes in PACKET_BYTES {
                rates.push(marginal(b, bytes)?);
            }
            let listed: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
            Ok((
                rates.is_sorted(),
                format!("{} MB/s by the cost of one packet more", listed.join(", ")),
            ))
        },
    ),
    judged(
        "H-344",
        Claim,
        "Fig 9",
        "2 KB packets beat 4 KB ones for smaller messages",
        |b| {
            let points = two_against_four(b, LARGEST_BYTES / 2);
            let better = points.iter().filter(|(two, four)| two > four).count();
            Ok((
                better * 2 > points.len(),
                format!("at {better} of {} message sizes up to 20 KB", points.len()),
            ))
        },
    ),
    judged(
        "H-345",
        Claim,
        "Fig 9",
        "4 KB packets have only a slight and inconsistent lead up to 40 KB",
        |b| {
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
        },
    ),
    number(
        "H-346",
        "4.3",
        "28 MB/s is the asymptote of Figure 9",
        &[
            measured("4 KB packets, 40 KB messages", "MB/s", 28.0, |b| {
                Ok(b.largest(&b.figure9, LARGE))
            }),
            measured("1 KB packets, 40 KB messages", "MB/s", 28.0, |b| {
                Ok(b.largest(&b.figure9, RECOMMENDED))
            }),
        ],
        "the right end of the figure, whatever the packet size from 1 KB on: the first packet passes its stages one after the other, so 40 KB do not yet reach the 30.7 MB/s of the slope. This resolves 28 against 30.7",
    ),
    number(
        "H-350",
        "4.3",
        "a 4 KB packet holds a link and a DMA channel for about 50 µs",
        &[
            measured("link", "µs", 50.0, |b| Ok(b.large.link)),
            measured("receiver's DMA", "µs", 50.0, |b| Ok(b.large.receiving_bus)),
        ],
        "true of the wire and the incoming DMA; the outgoing one takes 132 µs",
    ),
    carried_out(
        "H-352",
        "Fig 10",
        "bandwidth in loopback",
        "plot figure-10; the axis is message size",
    ),
    number(
        "H-353",
        "4.3",
        "loopback of 4 bytes: 19.1 µs",
        &[fitted("4 bytes to itself", "µs", 19.1, |b| b.to_itself(4))],
        "the time to tell the sender that its message is out is taken from this figure; between two hosts it delays nobody",
    ),
    number(
        "H-354",
        "4.3",
        "in loopback 22 MB/s instead of 28",
        &[
            measured("4 KB packets, 40 KB messages", "MB/s", 22.0, |b| {
                Ok(b.largest(&b.figure10, LARGE))
            }),
            measured("between two hosts", "MB/s", 28.0, |b| {
                Ok(b.largest(&b.figure9, LARGE))
            }),
        ],
        "with the largest packets; 1 KB packets reach less in loopback, as each costs the shared card its work on both sides. Which size the paper means is not said",
    ),
    carried_out(
        "H-355",
        "S23, S24",
        "plots of bandwidth (missing)",
        "plots figure-9 and figure-10",
    ),
    number(
        "H-357",
        "4.4",
        "about 6 µs with state machines",
        &[measured("raw, 16 bytes", "µs", 6.0, |b| {
            Ok(b.hardware()?.0)
        })],
        "the same machine, its control program taking no time",
    ),
    judged(
        "H-358",
        Claim,
        "4.4",
        "bandwidth would hardly change",
        |b| {
            let (now, (_, then)) = (marginal(b, LARGE)?, b.hardware()?);
            Ok((
                (then / now - 1.0).abs() < 0.05,
                format!("{then:.1} MB/s instead of {now:.1}"),
            ))
        },
    ),
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
