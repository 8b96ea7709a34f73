//! Abstract, introduction, aims and assumptions (`Hamlyn 1` and `2`; slides 2 to 6).

use super::bench::us;
use super::{Experiment, figures, judged, mb_per_s};
use crate::network::Routing;
use crate::network::saturation::Traffic;
use crate::reproduce::beyond::saturation::{arriving_per_mille, of_64_hosts};
use crate::reproduce::measure::{Failure, Shape, flow};

pub(super) const EXPERIMENTS: &[(&str, Experiment)] = &[
    figures("H-001", &[|b| Ok(us(b.tagged.round_trip))]),
    figures("H-002", &[|b| b.single(0, 0), |b| Ok(b.slopes.mean)]),
    figures("H-003", &[|b| Ok(mb_per_s(b.slopes.mean))]),
    judged("H-004", |b| {
        let cycles = us(b.tagged.processors) * 100.0;
        Ok((
            cycles < 397.0,
            format!(
                "{cycles:.0} cycles to send and receive, against 397 instructions to send alone (cited); cycles are set against instructions, as in the paper"
            ),
        ))
    }),
    judged("H-006", |b| {
        let (awake, asleep) = (b.single(0, 0)?, b.asleep()?);
        Ok((
            awake < asleep,
            format!(
                "{awake:.1} µs without the operating system, {asleep:.1} when it has to wake the receiver"
            ),
        ))
    }),
    judged("H-007", |_| {
        let (random, all, reversal) = (
            of_64_hosts(Traffic::Uniform)?,
            of_64_hosts(Traffic::AllToAll)?,
            of_64_hosts(Traffic::BitReversal)?,
        );
        Ok((
            [random, all, reversal]
                .iter()
                .all(|gain| gain.over_pair > 1.05),
            format!(
                "64 hosts on 8 x 8 crossbars take {:.2} times as much random traffic as in order on ways drawn for each pair, {:.2} times all-to-all, {:.2} times bit reversal. In order on ways chosen by receiver, which only the regular shape of the network allows, is another matter: {:.2}, {:.2} and {:.2} times",
                random.over_pair,
                all.over_pair,
                reversal.over_pair,
                random.over_receiver,
                all.over_receiver,
                reversal.over_receiver
            ),
        ))
    }),
    judged("H-008", |b| {
        Ok((
            b.refused.refused == 1_000,
            format!(
                "{} of 1000 packets with a wrong key were refused; protection as a whole is tested in the engine and the library",
                b.refused.refused
            ),
        ))
    }),
    judged("H-010", |b| {
        let crossing = us(b.machine.wake_up());
        let moving = us(b.machine.wire(16));
        Ok((
            crossing > 10.0 * moving,
            format!(
                "{crossing:.1} µs for an interrupt and a context switch, {moving:.1} µs on the wire for 16 bytes and their header"
            ),
        ))
    }),
    judged("H-018", |b| {
        let announced = Shape::datagram(256, 64);
        let silent = Shape {
            is_silent: true,
            ..announced
        };
        let work = |shape| {
            let flow = flow(&b.machine, &shape, 100, true)?;
            let board = flow.receiving_lanai + flow.receiving_bus;
            Ok::<_, Failure>((us(board), us(flow.receiving_processor)))
        };
        let (told, untold) = (work(announced)?, work(silent)?);
        Ok((
            untold.0 < told.0 && untold.1 < told.1,
            format!(
                "64 bytes without a notice take {:.2} µs of the receiver's board and {:.1} of its processor, with one {:.2} and {:.1}",
                untold.0, untold.1, told.0, told.1
            ),
        ))
    }),
    judged("H-019", |_| {
        let random = of_64_hosts(Traffic::Uniform)?;
        let [fixed, adaptive] = [
            arriving_per_mille(Routing::Pair)?,
            arriving_per_mille(Routing::Adaptive)?,
        ];
        Ok((
            random.over_pair > 1.05 && adaptive > fixed,
            format!(
                "throughput: see H-007, {:.2} times for random traffic. With 8 of the 128 cables between the switches of 64 hosts cut, {:.1} % of frames between all hosts arrive, of those on fixed ways {:.1} %: it goes around what is cut on the way up, and cannot on the way down",
                random.over_pair,
                f64::from(adaptive) / 10.0,
                f64::from(fixed) / 10.0
            ),
        ))
    }),
    judged("H-020", |b| {
        let (latency, bandwidth) = (us(b.raw.span), mb_per_s(b.slopes.mean));
        Ok((
            latency <= 20.0 && bandwidth >= 30.0 && b.refused.refused == 1_000,
            format!(
                "{latency:.1} µs, {bandwidth:.1} MB/s, and every wrong key refused; the slides' goals are 20 µs and 30 MB/s"
            ),
        ))
    }),
    judged("H-024", |b| {
        let (prototype, (hardware, _)) = (us(b.raw.round_trip), b.hardware()?);
        Ok((
            prototype < 10.0,
            format!(
                "{prototype:.1} µs on the prototype, {:.1} with state machines: the requirement is not met by the paper's own figures",
                2.0 * hardware
            ),
        ))
    }),
    judged("H-050", |b| {
        let network = us(b.machine.link().switch.0 + b.machine.wire(16));
        let whole = us(b.raw.span);
        let share = 100.0 * (1.0 - network / whole);
        Ok((
            share > 50.0,
            format!(
                "{share:.0} % of {whole:.1} µs is neither wire nor switch; the bandwidth is that of the I/O bus"
            ),
        ))
    }),
];
