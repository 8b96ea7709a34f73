//! The experiments of section 4, carried out (`Hamlyn 4.1` to `4.4`).

use crate::machine::{Component, Machine, PointName, Protocol};
use crate::reproduce::measure::{
    Failure, Flow, MESSAGES, MESSAGES_OF_A_POINT, OneWay, Shape, flow, loopback, ping_pong,
    ping_pong_asleep,
};
use crate::reproduce::report::Curve;
use crate::time::Span;

/// Packet sizes that Figures 9 and 10 compare, in bytes (H-339).
pub const PACKET_BYTES: [usize; 5] = [256, 512, 1024, 2048, 4096];
/// The largest message that was measured, in bytes (H-345).
pub const LARGEST_BYTES: usize = 40 * 1024;
/// Lengths of metadata in Figure 7, in bytes (H-307).
pub const METADATA_BYTES: [usize; 3] = [0, 4, 60];
/// The packet of Figure 7, in bytes.
pub const SMALL: usize = 256;
/// The packet of Figure 8, in bytes.
pub const LARGE: usize = 4096;
/// The packet that the paper recommends, in bytes (H-351).
pub const RECOMMENDED: usize = 1024;

/// Figure 8 in numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Slopes {
    /// Nanoseconds a byte, where a byte waits only for the packet before.
    pub flat: f64,
    /// Nanoseconds a byte, where it waits for all three stages.
    pub steep: f64,
    /// Bytes of the last packet where one turns into the other.
    pub knee_bytes: f64,
    /// Nanoseconds a byte over whole packets.
    pub mean: f64,
}

/// What one packet more occupies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PerPacket {
    /// Microseconds of the sender's board.
    pub send: f64,
    /// Microseconds of the receiver's board.
    pub receive: f64,
    /// Microseconds of the sender's I/O bus.
    pub sending_bus: f64,
    /// Microseconds of the receiver's I/O bus.
    pub receiving_bus: f64,
    /// Microseconds of the link.
    pub link: f64,
}

/// A machine, and what was measured on it more than once.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The machine.
    pub machine: Machine,
    /// Table 4, raw.
    pub raw: OneWay,
    /// Table 4, tagged remote write.
    pub tagged: OneWay,
    /// Figure 8 in numbers.
    pub slopes: Slopes,
    /// Packets of 256 bytes.
    pub small: PerPacket,
    /// Packets of 4 KB.
    pub large: PerPacket,
    /// Figure 9: one-way bandwidth.
    pub figure9: Vec<Curve>,
    /// Figure 10: the same in loopback.
    pub figure10: Vec<Curve>,
    /// Messages with a wrong key.
    pub refused: Flow,
}

/// In microseconds.
pub fn us(span: Span) -> f64 {
    span.as_us_f64()
}

/// Of a message of so many bytes in so many microseconds: MB/s (10^6 bytes).
pub fn rate(bytes: usize, us: f64) -> f64 {
    bytes as f64 / us
}

impl Bench {
    /// Measures a machine.
    pub fn new(machine: &Machine) -> Result<Self, Failure> {
        let mut bench = Self {
            machine: machine.clone(),
            raw: ping_pong(machine, &Shape::short(Protocol::Raw), MESSAGES)?,
            tagged: ping_pong(machine, &Shape::short(Protocol::Tagged), MESSAGES)?,
            slopes: Slopes {
                flat: 0.0,
                steep: 0.0,
                knee_bytes: 0.0,
                mean: 0.0,
            },
            small: per_packet(machine, SMALL)?,
            large: per_packet(machine, LARGE)?,
            figure9: bandwidths(machine, ping_pong)?,
            figure10: bandwidths(machine, loopback)?,
            refused: flow(machine, &Shape::datagram(SMALL, 64), 1_000, false)?,
        };
        bench.slopes = bench.measure_slopes()?;
        Ok(bench)
    }

    /// Microseconds one way, for a normal message.
    pub fn latency(
        &self,
        packet_bytes: usize,
        data_bytes: usize,
        metadata_bytes: usize,
    ) -> Result<f64, Failure> {
        latency(&self.machine, packet_bytes, data_bytes, metadata_bytes)
    }

    /// Microseconds of a single figure: 10,000 normal messages in 256-byte packets.
    pub fn single(&self, data_bytes: usize, metadata_bytes: usize) -> Result<f64, Failure> {
        let shape = Shape {
            metadata_bytes,
            ..Shape::datagram(SMALL, data_bytes)
        };
        Ok(us(ping_pong(&self.machine, &shape, MESSAGES)?.span))
    }

    /// Microseconds of a row of Table 4: raw, tagged.
    pub fn row(&self, component: Component) -> (f64, f64) {
        (
            us(self.raw.times.of(component)),
            us(self.tagged.times.of(component)),
        )
    }

    /// Microseconds by which one byte more than so many full packets costs more.
    pub fn jump(&self, packets: usize) -> Result<f64, Failure> {
        let full = packets * SMALL;
        Ok(self.latency(SMALL, full + 1, 0)? - self.latency(SMALL, full, 0)?)
    }

    /// Nanoseconds a byte inside a packet of 256 bytes: `packets` full ones come before it.
    pub fn slope_within(&self, packets: usize) -> Result<f64, Failure> {
        let (from, to) = (packets * SMALL + 32, (packets + 1) * SMALL);
        let rise = self.latency(SMALL, to, 0)? - self.latency(SMALL, from, 0)?;
        Ok(rise * 1e3 / (to - from) as f64)
    }

    /// Microseconds that 10,000 messages to a sleeping receiver take, each.
    pub fn asleep(&self) -> Result<f64, Failure> {
        let shape = Shape::datagram(SMALL, 0);
        Ok(us(ping_pong_asleep(&self.machine, &shape, MESSAGES)?.span))
    }

    /// Microseconds of so many bytes from a process to itself.
    pub fn to_itself(&self, data_bytes: usize) -> Result<f64, Failure> {
        let shape = Shape::datagram(SMALL, data_bytes);
        Ok(us(loopback(&self.machine, &shape, MESSAGES)?.span))
    }

    /// MB/s of the largest message: of Figure 9, or of Figure 10.
    pub fn largest(&self, curves: &[Curve], packet_bytes: usize) -> f64 {
        let curve = PACKET_BYTES
            .iter()
            .position(|&bytes| bytes == packet_bytes)
            .and_then(|at| curves.get(at));
        curve
            .and_then(|curve| curve.points.last())
            .map_or(0.0, |&(_, rate)| rate)
    }

    /// The same experiments with state machines instead of a control program (H-356).
    pub fn hardware(&self) -> Result<(f64, f64), Failure> {
        let machine = self.machine.free_of("interface");
        let short = ping_pong(&machine, &Shape::short(Protocol::Raw), MESSAGES)?;
        let more =
            latency(&machine, LARGE, 10 * LARGE, 0)? - latency(&machine, LARGE, 2 * LARGE, 0)?;
        Ok((us(short.span), rate(8 * LARGE, more)))
    }

    /// Microseconds of the receiver's board for a packet of 256 bytes among others: all of it, and
    /// counting, which is what packets that come in any order need.
    pub fn counting(&self) -> Result<(f64, f64), Failure> {
        let uncounted = self
            .machine
            .without("interface", PointName::AccumulatorRead)
            .without("interface", PointName::AccumulatorWritten);
        let rest = per_packet(&uncounted, SMALL)?.receive;
        Ok((self.small.receive, self.small.receive - rest))
    }

    /// Messages of so many bytes in 4 KB packets, one way.
    pub fn stream(&self, data_bytes: usize) -> Result<Flow, Failure> {
        flow(
            &self.machine,
            &Shape::datagram(LARGE, data_bytes),
            1_000,
            true,
        )
    }

    /// Figure 7.
    pub fn figure7(&self) -> Result<Vec<Curve>, Failure> {
        METADATA_BYTES
            .iter()
            .map(|&metadata_bytes| {
                let points = (0..=4 * SMALL + 16).step_by(4).map(|data_bytes| {
                    let latency = self.latency(SMALL, data_bytes, metadata_bytes)?;
                    Ok((data_bytes as f64, latency))
                });
                Ok(Curve {
                    label: format!("{metadata_bytes} bytes of metadata"),
                    points: points.collect::<Result<_, Failure>>()?,
                })
            })
            .collect()
    }

    /// Figure 8.
    pub fn figure8(&self) -> Result<Vec<Curve>, Failure> {
        let points = (0..=5 * LARGE)
            .step_by(32)
            .map(|data_bytes| Ok((data_bytes as f64, self.latency(LARGE, data_bytes, 0)?)));
        Ok(vec![Curve {
            label: "4 KB packets".to_owned(),
            points: points.collect::<Result<_, Failure>>()?,
        }])
    }

    /// Looks at the third packet in steps of whole transactions: below the middle of the slopes
    /// they are flat.
    fn measure_slopes(&self) -> Result<Slopes, Failure> {
        let step = self.machine.bus().map_or(32, |bus| bus.transaction_max.0) as usize;
        let begin = 2 * LARGE;
        let mut rises = Vec::new();
        let mut before = self.latency(LARGE, begin + step, 0)?;
        for rest in (2 * step..=LARGE).step_by(step) {
            let here = self.latency(LARGE, begin + rest, 0)?;
            rises.push((rest, (here - before) * 1e3 / step as f64));
            before = here;
        }
        let least = rises
            .iter()
            .fold(f64::MAX, |least, &(_, rise)| least.min(rise));
        let most = rises
            .iter()
            .fold(0.0_f64, |most, &(_, rise)| most.max(rise));
        let middle = (least + most) / 2.0;
        let mean = |steep: bool| {
            let of: Vec<f64> = rises
                .iter()
                .filter(|&&(_, rise)| (rise > middle) == steep)
                .map(|&(_, rise)| rise)
                .collect();
            of.iter().sum::<f64>() / of.len().max(1) as f64
        };
        let knee = rises.iter().find(|&&(_, rise)| rise > middle);
        // Not from the first: the accumulator is used from the second packet on.
        let whole = self.latency(LARGE, 10 * LARGE, 0)? - self.latency(LARGE, 2 * LARGE, 0)?;
        Ok(Slopes {
            flat: mean(false),
            steep: mean(true),
            knee_bytes: knee.map_or(0, |&(rest, _)| rest) as f64,
            mean: whole * 1e3 / (8 * LARGE) as f64,
        })
    }
}

fn latency(
    machine: &Machine,
    packet_bytes: usize,
    data_bytes: usize,
    metadata_bytes: usize,
) -> Result<f64, Failure> {
    let shape = Shape {
        metadata_bytes,
        ..Shape::datagram(packet_bytes, data_bytes)
    };
    Ok(us(ping_pong(machine, &shape, MESSAGES_OF_A_POINT)?.span))
}

/// By the difference between messages of 9 full packets and of 2, so that what a message costs once
/// is not in it.
fn per_packet(machine: &Machine, packet_bytes: usize) -> Result<PerPacket, Failure> {
    let of = |packets: usize| {
        let shape = Shape::datagram(packet_bytes, packets * packet_bytes);
        flow(machine, &shape, 100, true)
    };
    let (many, few) = (of(9)?, of(2)?);
    let each = |span: fn(&Flow) -> Span| (us(span(&many)) - us(span(&few))) / 7.0;
    Ok(PerPacket {
        send: each(|flow| flow.sending_lanai + flow.sending_bus),
        receive: each(|flow| flow.receiving_lanai + flow.receiving_bus),
        sending_bus: each(|flow| flow.sending_bus),
        receiving_bus: each(|flow| flow.receiving_bus),
        link: each(|flow| flow.link),
    })
}

/// How a message is timed.
type Exchange = fn(&Machine, &Shape, u64) -> Result<OneWay, Failure>;

/// Message size by what it takes, for each packet size.
fn bandwidths(machine: &Machine, exchange: Exchange) -> Result<Vec<Curve>, Failure> {
    PACKET_BYTES
        .iter()
        .map(|&packet_bytes| {
            let points = (512..=LARGEST_BYTES).step_by(512).map(|data_bytes| {
                let shape = Shape::datagram(packet_bytes, data_bytes);
                let span = exchange(machine, &shape, MESSAGES_OF_A_POINT)?.span;
                Ok((data_bytes as f64, rate(data_bytes, us(span))))
            });
            Ok(Curve {
                label: format!("{packet_bytes}-byte packets"),
                points: points.collect::<Result<_, Failure>>()?,
            })
        })
        .collect()
}
