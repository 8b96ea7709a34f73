//! Relations that a model of the prototype should satisfy.

use super::comparisons::years;
use super::{calibrated, figures, given, in_slope, mb_per_s, measured, out_slope, wire_slope};
use crate::machine::parameters::transactions;
use crate::machine::{Component, Parameters};
use crate::reproduce::bench::{Bench, LARGE, SMALL, us};
use crate::reproduce::measure::{Failure, Shape, flow};
use crate::reproduce::report::Treatment;
use crate::time::Span;

/// How often the accumulator is updated for a message of so many packets: by how much longer the receiver's interface processor
/// works if an update takes 1 µs more.
fn updates(b: &Bench, packets: usize) -> Result<f64, Failure> {
    let slower = Parameters {
        accumulate: b.machine.accumulate + Span::from_us(1),
        ..b.machine
    };
    let shape = Shape::datagram(SMALL, packets * SMALL);
    let work = |machine| Ok::<_, Failure>(us(flow(machine, &shape, 10, true)?.receiving_lanai));
    Ok(work(&slower)? - work(&b.machine)?)
}

pub(super) const MEASURES: &[(&str, Treatment)] = &[
    figures(
        "D-01",
        &[
            measured("three stages", "ns/byte", 55.5, |b| {
                Ok(out_slope(b) + wire_slope(b) + in_slope(b))
            }),
            measured("the same", "MB/s", 18.0, |b| {
                Ok(mb_per_s(out_slope(b) + wire_slope(b) + in_slope(b)))
            }),
            measured("outgoing DMA", "ns/byte", 31.25, |b| Ok(out_slope(b))),
            given("wire", "ns/byte", 12.5, |b| Ok(wire_slope(b))),
            calibrated("mean slope", "MB/s", 30.7, |b| Ok(mb_per_s(b.slopes.mean))),
            calibrated("of 32 MB/s", "%", 96.0, |b| {
                Ok(mb_per_s(b.slopes.mean) / 32.0 * 100.0)
            }),
        ],
    ),
    figures(
        "D-02",
        &[
            calibrated("raw", "µs", 12.7, |b| Ok(us(b.raw.times.total()))),
            calibrated("tagged", "µs", 14.1, |b| Ok(us(b.tagged.times.total()))),
            calibrated("raw, round trip", "µs", 25.4, |b| Ok(us(b.raw.round_trip))),
            calibrated("tagged, round trip", "µs", 28.2, |b| {
                Ok(us(b.tagged.round_trip))
            }),
            measured("rows that differ", "", 1.0, |b| {
                Ok(Component::ALL
                    .into_iter()
                    .filter(|&component| b.row(component).0 != b.row(component).1)
                    .count() as f64)
            }),
        ],
    ),
    figures(
        "D-03",
        &[measured("raw, 16 bytes", "µs", 6.0, |b| {
            Ok(b.hardware()?.0)
        })],
    ),
    figures(
        "D-04",
        &[
            calibrated("both processors", "cycles", 380.0, |b| {
                Ok(us(b.tagged.processors) * 100.0)
            }),
            calibrated("on the way", "µs", 3.6, |b| {
                Ok(b.row(Component::HostWrites).1 + b.row(Component::HostSoftware).1)
            }),
            calibrated("on the way, of the message", "%", 25.5, |b| {
                let work = b.row(Component::HostWrites).1 + b.row(Component::HostSoftware).1;
                Ok(work / us(b.tagged.span) * 100.0)
            }),
            measured("all of it", "%", 27.0, |b| {
                Ok(us(b.tagged.processors) / us(b.tagged.span) * 100.0)
            }),
            measured("a 4 KB message", "%", 2.5, |b| {
                let flow = b.stream(LARGE)?;
                Ok(us(flow.sending_processor + flow.receiving_processor) / us(flow.span) * 100.0)
            }),
        ],
    ),
    figures(
        "D-05",
        &[
            calibrated("over 31.3 ns/byte", "µs", 5.3, |b| {
                Ok((b.slopes.mean - 31.3) * LARGE as f64 / 1e3)
            }),
            calibrated("a packet more", "µs", 133.5, |b| {
                Ok(b.slopes.mean * LARGE as f64 / 1e3)
            }),
            measured("knee", "bytes", 2140.0, |b| Ok(b.slopes.knee_bytes)),
            measured("knee", "%", 52.0, |b| {
                Ok(b.slopes.knee_bytes / LARGE as f64 * 100.0)
            }),
        ],
    ),
    figures(
        "D-06",
        &[
            calibrated("256 bytes", "MB/s", 19.8, |b| {
                Ok(SMALL as f64 / b.small.receive)
            }),
            calibrated("512 bytes in that time", "MB/s", 39.7, |b| {
                Ok(2.0 * SMALL as f64 / b.small.receive)
            }),
        ],
    ),
    figures(
        "D-07",
        &[
            given("1 KB on the wire", "µs", 12.8, |b| {
                Ok(wire_slope(b) * 1.024)
            }),
            calibrated("a packet received", "µs", 12.9, |b| Ok(b.small.receive)),
        ],
    ),
    figures(
        "D-08",
        &[
            given("wire", "µs", 51.2, |b| Ok(wire_slope(b) * 4.096)),
            calibrated("incoming DMA", "µs", 47.9, |b| Ok(in_slope(b) * 4.096)),
            measured("outgoing DMA", "µs", 128.0, |b| Ok(out_slope(b) * 4.096)),
        ],
    ),
    figures(
        "D-09",
        &[
            measured("both DMAs", "ns/byte", 43.0, |b| {
                Ok(out_slope(b) + in_slope(b))
            }),
            measured("the same", "MB/s", 23.3, |b| {
                Ok(mb_per_s(out_slope(b) + in_slope(b)))
            }),
            measured("40 KB messages to itself", "MB/s", 22.3, |b| {
                Ok(b.largest(&b.figure10, LARGE))
            }),
        ],
    ),
    figures(
        "D-10",
        &[measured("40 KB messages", "MB/s", 30.3, |b| {
            Ok(b.largest(&b.figure9, LARGE))
        })],
    ),
    figures(
        "D-11",
        &[calibrated("one after the other", "years", 876_800.0, |b| {
            Ok(years(b))
        })],
    ),
    figures(
        "D-12",
        &[
            measured("1 packet", "updates", 0.0, |b| updates(b, 1)),
            measured("2 packets", "updates", 2.0, |b| updates(b, 2)),
            measured("3 packets", "updates", 3.0, |b| updates(b, 3)),
            measured("4 packets", "updates", 4.0, |b| updates(b, 4)),
        ],
    ),
    figures(
        "D-13",
        &[
            given("switch, both ways", "µs", 1.0, |b| {
                Ok(2.0 * b.row(Component::Switch).0)
            }),
            given("transactions of a header", "", 1.0, |_| {
                Ok(transactions(32).map(|(count, _)| count).sum::<u64>() as f64)
            }),
            given("transactions of 28 bytes", "", 3.0, |_| {
                Ok(transactions(28).map(|(count, _)| count).sum::<u64>() as f64)
            }),
        ],
    ),
    figures(
        "D-14",
        &[
            calibrated("normal, no data, less tagged", "µs", 3.3, |b| {
                Ok(b.single(0, 0)? - us(b.tagged.span))
            }),
            calibrated("with metadata", "µs", 25.1, |b| b.single(0, 4)),
        ],
    ),
];
