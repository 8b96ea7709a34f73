//! Relations that a model of the prototype should satisfy.

use super::bench::{Bench, LARGE, SMALL, us};
use super::comparisons::years;
use super::{Experiment, figures, in_slope, mb_per_s, out_slope, transactions, update, wire_slope};
use crate::machine::{Component, PointName};
use crate::reproduce::measure::{Failure, Shape, flow};

/// How often the accumulator is updated for a message of so many packets: by how much less the
/// receiver's bus is in use if writing one takes no time, in what writing one takes.
fn updates(b: &Bench, packets: usize) -> Result<f64, Failure> {
    let without = b
        .machine
        .without("interface", PointName::AccumulatorWritten);
    let shape = Shape::datagram(SMALL, packets * SMALL);
    let busy = |machine| Ok::<_, Failure>(us(flow(machine, &shape, 10, true)?.receiving_bus));
    Ok((busy(&b.machine)? - busy(&without)?) / us(update(b)))
}

pub(super) const EXPERIMENTS: &[(&str, Experiment)] = &[
    figures(
        "D-01",
        &[
            |b| Ok(out_slope(b) + wire_slope(b) + in_slope(b)),
            |b| Ok(mb_per_s(out_slope(b) + wire_slope(b) + in_slope(b))),
            |b| Ok(out_slope(b)),
            |b| Ok(wire_slope(b)),
            |b| Ok(mb_per_s(b.slopes.mean)),
            |b| Ok(mb_per_s(b.slopes.mean) / 32.0 * 100.0),
        ],
    ),
    figures(
        "D-02",
        &[
            |b| Ok(us(b.raw.times.total())),
            |b| Ok(us(b.tagged.times.total())),
            |b| Ok(us(b.raw.round_trip)),
            |b| Ok(us(b.tagged.round_trip)),
            |b| {
                Ok(Component::ALL
                    .into_iter()
                    .filter(|&component| b.row(component).0 != b.row(component).1)
                    .count() as f64)
            },
        ],
    ),
    figures("D-03", &[|b| Ok(b.hardware()?.0)]),
    figures(
        "D-04",
        &[
            |b| Ok(us(b.tagged.processors) * 100.0),
            |b| Ok(b.row(Component::HostWrites).1 + b.row(Component::HostSoftware).1),
            |b| {
                let work = b.row(Component::HostWrites).1 + b.row(Component::HostSoftware).1;
                Ok(work / us(b.tagged.span) * 100.0)
            },
            |b| Ok(us(b.tagged.processors) / us(b.tagged.span) * 100.0),
            |b| {
                let flow = b.stream(LARGE)?;
                Ok(us(flow.sending_processor + flow.receiving_processor) / us(flow.span) * 100.0)
            },
        ],
    ),
    figures(
        "D-05",
        &[
            |b| Ok((b.slopes.mean - 31.3) * LARGE as f64 / 1e3),
            |b| Ok(b.slopes.mean * LARGE as f64 / 1e3),
            |b| Ok(b.slopes.knee_bytes),
            |b| Ok(b.slopes.knee_bytes / LARGE as f64 * 100.0),
        ],
    ),
    figures(
        "D-06",
        &[
            |b| Ok(SMALL as f64 / b.small.receive),
            |b| Ok(2.0 * SMALL as f64 / b.small.receive),
        ],
    ),
    figures(
        "D-07",
        &[|b| Ok(wire_slope(b) * 1.024), |b| Ok(b.small.receive)],
    ),
    figures(
        "D-08",
        &[
            |b| Ok(wire_slope(b) * 4.096),
            |b| Ok(in_slope(b) * 4.096),
            |b| Ok(out_slope(b) * 4.096),
        ],
    ),
    figures(
        "D-09",
        &[
            |b| Ok(out_slope(b) + in_slope(b)),
            |b| Ok(mb_per_s(out_slope(b) + in_slope(b))),
            |b| Ok(b.largest(&b.figure10, LARGE)),
        ],
    ),
    figures("D-10", &[|b| Ok(b.largest(&b.figure9, LARGE))]),
    figures("D-11", &[|b| Ok(years(b))]),
    figures(
        "D-12",
        &[
            |b| updates(b, 1),
            |b| updates(b, 2),
            |b| updates(b, 3),
            |b| updates(b, 4),
        ],
    ),
    figures(
        "D-13",
        &[
            |b| Ok(2.0 * b.row(Component::Switch).0),
            |b| Ok(transactions(b, 32)),
            |b| Ok(transactions(b, 28)),
        ],
    ),
    figures(
        "D-14",
        &[
            |b| Ok(b.single(0, 0)? - us(b.tagged.span)),
            |b| b.single(0, 4),
        ],
    ),
];
