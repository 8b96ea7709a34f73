//! Set-up and short messages (`Hamlyn 4`, `4.1`; Figure 6, Table 4; slides 8 to 10, 19, 20).

use super::{carried_out, cited, fitted, given, judged, not_measurable, number};
use crate::machine::Component::{Dma, HostSoftware, HostWrites, Lanai, Switch};
use crate::machine::Way;
use crate::machine::parameters::{BUS_CYCLE, BUS_WORD_BYTES, TRANSACTION_MAX_BYTES};
use crate::reproduce::bench::{Bench, us};
use crate::reproduce::measure::{Failure, Shape, ping_pong};
use crate::reproduce::report::Kind::{Claim, Experiment, Number};
use crate::reproduce::report::Row;

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
            ..Shape::short(Way::Raw)
        };
        Ok::<_, Failure>(ping_pong(&b.machine, &shape, 4)?.ledger.of(HostWrites))
    };
    Ok(us(of(32)? - of(16)?) * 1e3 / 2.0)
}

pub(super) const ROWS: &[Row] = &[
    carried_out(
        "H-272",
        "4",
        "the prototype card",
        "modelled by its resources: interface processor, host DMA unit with the I/O bus, network DMA units, memory",
    ),
    number(
        "H-282",
        "4, S19",
        "DMA into the host: up to 106 MB/s",
        &[given("limit of the bus", "MB/s", 106.0, |b| {
            Ok(bus_limit(b.machine.in_overhead_cycles))
        })],
        "12 cycles of 25 ns for 32 bytes; reached is 85 (H-316)",
    ),
    number(
        "H-283",
        "4, S19",
        "DMA out of the host: up to 32 MB/s",
        &[given("limit of the bus", "MB/s", 32.0, |b| {
            Ok(bus_limit(b.machine.out_overhead_cycles))
        })],
        "40 cycles of 25 ns for 32 bytes; reached are 31.2",
    ),
    not_measurable(
        "H-285",
        Claim,
        "4",
        "cache coherence lets applications wait without using the bus",
        "the machine has no caches; see H-173",
    ),
    carried_out(
        "H-287",
        "4",
        "ping-pong between two applications, half of the round trip",
        "so are all latencies here",
    ),
    carried_out(
        "H-288",
        "4",
        "single figures from 10,000 messages at least",
        "so are ours; points of plots come from 4, as nothing varies",
    ),
    judged("H-289", Number, "4", "runs vary by less than 1 %", |b| {
        let (few, many) = (b.latency(256, 4, 0)?, b.single(4, 0)?);
        let percent = (few - many).abs() / many * 100.0;
        Ok((
            percent < 1.0,
            format!(
                "{percent:.2} % between 4 messages and 10,000, and nothing at all between two runs"
            ),
        ))
    }),
    not_measurable(
        "H-290",
        Experiment,
        "Fig 6, S8 to S10",
        "drawings of the interface",
        "the drawings are missing from the text that survives",
    ),
    cited(
        "H-291",
        Experiment,
        "4",
        "the figures hold for the test systems only",
        "and ours for a model of them",
    ),
    carried_out(
        "H-292",
        "4.1",
        "fast mode, 16 bytes, with and without the library",
        "Table 4",
    ),
    judged(
        "H-293",
        Claim,
        "4.1",
        "fast mode has the lowest latency",
        |b| {
            let normal = b.single(16, 0)?;
            let (raw, tagged) = (us(b.raw.span), us(b.tagged.span));
            Ok((
                raw < tagged && tagged < normal,
                format!(
                    "16 bytes: {raw:.1} µs raw, {tagged:.1} by the library, {normal:.1} as a normal message"
                ),
            ))
        },
    ),
    number(
        "H-294",
        "4.1",
        "raw: 12.7 µs one way, 25.4 there and back",
        &[
            fitted("one way", "µs", 12.7, |b| Ok(us(b.raw.span))),
            fitted("round trip", "µs", 25.4, |b| Ok(us(b.raw.round_trip))),
        ],
        "",
    ),
    number(
        "H-295",
        "4.1",
        "the library adds 1.4 µs",
        &[fitted("added", "µs", 1.4, |b| {
            Ok(us(b.tagged.span) - us(b.raw.span))
        })],
        "",
    ),
    number(
        "H-296",
        "4.1",
        "tagged remote write: 14.1 µs one way, 28.2 there and back",
        &[
            fitted("one way", "µs", 14.1, |b| Ok(us(b.tagged.span))),
            fitted("round trip", "µs", 28.2, |b| Ok(us(b.tagged.round_trip))),
        ],
        "",
    ),
    number(
        "H-297",
        "Table 4",
        "DMA: 3.3 µs",
        &[
            fitted("raw", "µs", 3.3, |b| Ok(b.row(Dma).0)),
            fitted("tagged", "µs", 3.3, |b| Ok(b.row(Dma).1)),
        ],
        "the wire is in this row, as its ends are DMA units and no other row has room for it; how the rest falls to four starts of DMA units is a parameter",
    ),
    number(
        "H-298",
        "Table 4",
        "LANai: 6.7 µs",
        &[
            fitted("raw", "µs", 6.7, |b| Ok(b.row(Lanai).0)),
            fitted("tagged", "µs", 6.7, |b| Ok(b.row(Lanai).1)),
        ],
        "the sum of its steps; how it falls to them is a parameter, held to 12.9 µs a packet and to 133.4 µs for 4 KB",
    ),
    number(
        "H-299",
        "Table 4",
        "switch: 0.5 µs",
        &[
            given("raw", "µs", 0.5, |b| Ok(b.row(Switch).0)),
            given("tagged", "µs", 0.5, |b| Ok(b.row(Switch).1)),
        ],
        "",
    ),
    number(
        "H-300",
        "Table 4",
        "host I/O writes: 1.4 µs",
        &[
            fitted("raw", "µs", 1.4, |b| Ok(b.row(HostWrites).0)),
            fitted("tagged", "µs", 1.4, |b| Ok(b.row(HostWrites).1)),
        ],
        "",
    ),
    number(
        "H-301",
        "Table 4",
        "host protocol software: 0.8 and 2.2 µs",
        &[
            fitted("raw", "µs", 0.8, |b| Ok(b.row(HostSoftware).0)),
            fitted("tagged", "µs", 2.2, |b| Ok(b.row(HostSoftware).1)),
        ],
        "",
    ),
    number(
        "H-302",
        "Table 4",
        "total: 12.7 and 14.1 µs",
        &[
            fitted("raw", "µs", 12.7, |b| Ok(us(b.raw.ledger.total()))),
            fitted("tagged", "µs", 14.1, |b| Ok(us(b.tagged.ledger.total()))),
        ],
        "the sum of what was charged on the way, and also what the ping-pong measures",
    ),
    number(
        "H-303",
        "4.1",
        "1.4 µs are 8 store instructions",
        &[
            fitted("stores", "", 8.0, |b| {
                Ok(b.row(HostWrites).0 * 1e3 / store_ns(b)?)
            }),
            given("a store", "ns", 175.0, store_ns),
        ],
        "header and 16 bytes in stores of 64 bits, the kind of request, and the doorbell: the reading of the paper that allows 8",
    ),
    judged(
        "H-304",
        Claim,
        "4.1",
        "stores are slow as they cross the I/O bus; the software is tens or hundreds of instructions",
        |b| {
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
        },
    ),
    carried_out(
        "H-305",
        "S20",
        "plot of the components (missing)",
        "Table 4 stands in its place",
    ),
    judged(
        "H-306",
        Claim,
        "Table 4",
        "the control program is the largest part of a short message's latency",
        |b| {
            let lanai = b.row(Lanai).0;
            let others = [Dma, Switch, HostWrites, HostSoftware].map(|other| b.row(other).0);
            let whole = us(b.raw.span);
            Ok((
                others.iter().all(|&other| other < lanai),
                format!("{lanai:.1} of {whole:.1} µs"),
            ))
        },
    ),
];
