//! Set-up and short messages (`Hamlyn 4`, `4.1`; Figure 6, Table 4; slides 8 to 10, 19, 20).

use super::bench::{Bench, us};
use super::{Experiment, bus_limit, figures, judged};
use crate::machine::Component::{Dma, HostSoftware, HostWrites, Lanai, Switch};
use crate::machine::Protocol;
use crate::machine::step::Direction;
use crate::reproduce::measure::{Failure, Shape, ping_pong};

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

pub(super) const EXPERIMENTS: &[(&str, Experiment)] = &[
    figures("H-282", &[|b| Ok(bus_limit(b, Direction::In))]),
    figures("H-283", &[|b| Ok(bus_limit(b, Direction::Out))]),
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
        &[|b| Ok(us(b.raw.span)), |b| Ok(us(b.raw.round_trip))],
    ),
    figures("H-295", &[|b| Ok(us(b.tagged.span) - us(b.raw.span))]),
    figures(
        "H-296",
        &[|b| Ok(us(b.tagged.span)), |b| Ok(us(b.tagged.round_trip))],
    ),
    figures("H-297", &[|b| Ok(b.row(Dma).0), |b| Ok(b.row(Dma).1)]),
    figures("H-298", &[|b| Ok(b.row(Lanai).0), |b| Ok(b.row(Lanai).1)]),
    figures("H-299", &[|b| Ok(b.row(Switch).0), |b| Ok(b.row(Switch).1)]),
    figures(
        "H-300",
        &[|b| Ok(b.row(HostWrites).0), |b| Ok(b.row(HostWrites).1)],
    ),
    figures(
        "H-301",
        &[|b| Ok(b.row(HostSoftware).0), |b| Ok(b.row(HostSoftware).1)],
    ),
    figures(
        "H-302",
        &[
            |b| Ok(us(b.raw.times.total())),
            |b| Ok(us(b.tagged.times.total())),
        ],
    ),
    figures(
        "H-303",
        &[|b| Ok(b.row(HostWrites).0 * 1e3 / store_ns(b)?), store_ns],
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
