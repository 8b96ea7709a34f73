//! Set-up and short messages (`Hamlyn 4`, `4.1`; Figure 6, Table 4; slides 8 to 10, 19, 20).

use super::{calibrated, figures, given, judged};
use crate::machine::Component::{Dma, HostSoftware, HostWrites, Lanai, Switch};
use crate::machine::Protocol;
use crate::machine::parameters::{BUS_CYCLE, BUS_WORD_BYTES, TRANSACTION_MAX_BYTES};
use crate::reproduce::bench::{Bench, us};
use crate::reproduce::measure::{Failure, Shape, ping_pong};
use crate::reproduce::report::Treatment;

/// MB/s of transactions of the largest size, with so many cycles besides those that move data.
fn bus_limit(overhead_cycles: u64) -> f64 {
    let cycles = TRANSACTION_MAX_BYTES / BUS_WORD_BYTES + overhead_cycles;
    TRANSACTION_MAX_BYTES as f64 / us(BUS_CYCLE * cycles)
}

/// Nanoseconds of a store: what two more of them add to a message.
fn store_ns(b: &Bench) -> Result<f64, Failure> {
    let of = |data_bytes| {
        let shape = Shape {
            data_bytes,
            ..Shape::short(Protocol::Raw)
        };
        Ok::<_, Failure>(ping_pong(&b.machine, &shape, 4)?.times.of(HostWrites))
    };
    Ok(us(of(32)? - of(16)?) * 1e3 / 2.0)
}

pub(super) const MEASURES: &[(&str, Treatment)] = &[
    figures(
        "H-282",
        &[given("limit of the bus", "MB/s", 106.0, |b| {
            Ok(bus_limit(b.machine.in_overhead_cycles))
        })],
    ),
    figures(
        "H-283",
        &[given("limit of the bus", "MB/s", 32.0, |b| {
            Ok(bus_limit(b.machine.out_overhead_cycles))
        })],
    ),
    judged("H-289", |b| {
        let (few, many) = (b.latency(256, 4, 0)?, b.single(4, 0)?);
        let percent = (few - many).abs() / many * 100.0;
        Ok((
            percent < 1.0,
            format!(
                "{percent:.2} % between 4 messages and 10,000, and nothing at all between two runs"
            ),
        ))
    }),
    judged("H-293", |b| {
        let normal = b.single(16, 0)?;
        let (raw, tagged) = (us(b.raw.span), us(b.tagged.span));
        Ok((
            raw < tagged && tagged < normal,
            format!(
                "16 bytes: {raw:.1} µs raw, {tagged:.1} by the library, {normal:.1} as a normal message"
            ),
        ))
    }),
    figures(
        "H-294",
        &[
            calibrated("one way", "µs", 12.7, |b| Ok(us(b.raw.span))),
            calibrated("round trip", "µs", 25.4, |b| Ok(us(b.raw.round_trip))),
        ],
    ),
    figures(
        "H-295",
        &[calibrated("added", "µs", 1.4, |b| {
            Ok(us(b.tagged.span) - us(b.raw.span))
        })],
    ),
    figures(
        "H-296",
        &[
            calibrated("one way", "µs", 14.1, |b| Ok(us(b.tagged.span))),
            calibrated("round trip", "µs", 28.2, |b| Ok(us(b.tagged.round_trip))),
        ],
    ),
    figures(
        "H-297",
        &[
            calibrated("raw", "µs", 3.3, |b| Ok(b.row(Dma).0)),
            calibrated("tagged", "µs", 3.3, |b| Ok(b.row(Dma).1)),
        ],
    ),
    figures(
        "H-298",
        &[
            calibrated("raw", "µs", 6.7, |b| Ok(b.row(Lanai).0)),
            calibrated("tagged", "µs", 6.7, |b| Ok(b.row(Lanai).1)),
        ],
    ),
    figures(
        "H-299",
        &[
            given("raw", "µs", 0.5, |b| Ok(b.row(Switch).0)),
            given("tagged", "µs", 0.5, |b| Ok(b.row(Switch).1)),
        ],
    ),
    figures(
        "H-300",
        &[
            calibrated("raw", "µs", 1.4, |b| Ok(b.row(HostWrites).0)),
            calibrated("tagged", "µs", 1.4, |b| Ok(b.row(HostWrites).1)),
        ],
    ),
    figures(
        "H-301",
        &[
            calibrated("raw", "µs", 0.8, |b| Ok(b.row(HostSoftware).0)),
            calibrated("tagged", "µs", 2.2, |b| Ok(b.row(HostSoftware).1)),
        ],
    ),
    figures(
        "H-302",
        &[
            calibrated("raw", "µs", 12.7, |b| Ok(us(b.raw.times.total()))),
            calibrated("tagged", "µs", 14.1, |b| Ok(us(b.tagged.times.total()))),
        ],
    ),
    figures(
        "H-303",
        &[
            calibrated("stores", "", 8.0, |b| {
                Ok(b.row(HostWrites).0 * 1e3 / store_ns(b)?)
            }),
            given("a store", "ns", 175.0, store_ns),
        ],
    ),
    judged("H-304", |b| {
        let store = store_ns(b)? / 10.0;
        let (raw, tagged) = b.row(HostSoftware);
        Ok((
            store > 10.0 && raw * 100.0 > 10.0 && tagged * 100.0 < 1_000.0,
            format!(
                "a store takes {store:.1} cycles; the software {:.0} and {:.0} cycles",
                raw * 100.0,
                tagged * 100.0
            ),
        ))
    }),
    judged("H-306", |b| {
        let lanai = b.row(Lanai).0;
        let others = [Dma, Switch, HostWrites, HostSoftware].map(|other| b.row(other).0);
        let whole = us(b.raw.span);
        Ok((
            others.iter().all(|&other| other < lanai),
            format!("{lanai:.1} of {whole:.1} µs"),
        ))
    }),
];
