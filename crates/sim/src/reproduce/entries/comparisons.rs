//! Other systems, conclusions, and the slides' own figures (`Hamlyn 5` and `6`; slides 26 to 29).

use super::{cited, elsewhere, fitted, judged, mb_per_s, measured, number};
use crate::machine::Component::HostSoftware;
use crate::machine::Way;
use crate::network::saturation::Traffic;
use crate::reproduce::bench::{Bench, LARGE, us};
use crate::reproduce::beyond::saturation::of_64_hosts;
use crate::reproduce::measure::{Failure, Shape, flow};
use crate::reproduce::report::Kind::{Claim, Number};
use crate::reproduce::report::Row;

/// Cycles of 10 ns of tagged remote write: sending, receiving.
fn cycles(b: &Bench) -> Result<(f64, f64), Failure> {
    let flow = flow(&b.machine, &Shape::short(Way::Tagged), 1_000, true)?;
    Ok((
        us(flow.sending_processor) * 100.0,
        us(flow.receiving_processor) * 100.0,
    ))
}

/// The part of the time, in percent, that the processors of both hosts work for messages of so many bytes.
fn processors(b: &Bench, data_bytes: usize) -> Result<f64, Failure> {
    let flow = b.stream(data_bytes)?;
    Ok(us(flow.sending_processor + flow.receiving_processor) / us(flow.span) * 100.0)
}

const OTHERS: &str = "about another system: cited, not measured";

pub(super) const ROWS: &[Row] = &[
    cited(
        "H-360",
        Number,
        "5.1",
        "hybrid deposit: 49 µs round trip without a switch, 60 with one",
        OTHERS,
    ),
    cited("H-361", Number, "5.2", "Nectar: 500 µs round trip", OTHERS),
    cited(
        "H-362",
        Number,
        "5.2",
        "Osiris: 154 µs round trip, 41 MB/s",
        OTHERS,
    ),
    cited(
        "H-363",
        Number,
        "5.3",
        "Cranium: message areas of 2 KB",
        OTHERS,
    ),
    cited(
        "H-364",
        Number,
        "5.4",
        "CMAM: 397 instructions to send 64 bytes",
        OTHERS,
    ),
    number(
        "H-365",
        "5.4",
        "tagged remote write: 260 cycles to send",
        &[fitted("sender's processor", "cycles", 260.0, |b| {
            Ok(cycles(b)?.0)
        })],
        "software of 120 cycles and 8 stores of 17.5",
    ),
    number(
        "H-366",
        "5.4",
        "and 120 cycles to receive",
        &[fitted("receiver's processor", "cycles", 120.0, |b| {
            Ok(cycles(b)?.1)
        })],
        "of which 20 delay nobody: 260 + 120 cycles are 3.8 µs, Table 4 has room for 3.6 (D-04)",
    ),
    cited(
        "H-367",
        Claim,
        "5.4",
        "instruction counts are roughly comparable",
        OTHERS,
    ),
    cited(
        "H-368",
        Number,
        "5.4",
        "U-Net Active Messages: 79 µs round trip, 41 of them in the switch",
        OTHERS,
    ),
    cited(
        "H-369",
        Number,
        "5.4",
        "U-Net bulk transfer: 135 µs + 0.2 µs/byte",
        OTHERS,
    ),
    number(
        "H-370",
        "5.4",
        "against it: 28 µs round trip; 17.4 µs + 32.6 ns/byte",
        &[
            fitted("round trip", "µs", 28.0, |b| Ok(us(b.tagged.round_trip))),
            fitted("without data", "µs", 17.4, |b| b.single(0, 0)),
            fitted("slope", "ns/byte", 32.6, |b| Ok(b.slopes.mean)),
        ],
        "",
    ),
    judged("H-371", Claim, "5.4", "U-Net is slightly worse", |b| {
        let ours = us(b.tagged.round_trip) - 2.0 * us(b.machine.switch);
        Ok((
            79.0 - 41.0 > ours,
            format!(
                "without switches 38 µs (cited) against {ours:.1} there and back; 200 ns/byte (cited) against {:.1}",
                b.slopes.mean
            ),
        ))
    }),
    elsewhere(
        "H-373",
        Claim,
        "5.3",
        "offsets allow packets of unequal size and metadata of any length",
        "engine tests of segmentation and reception; a first packet with 60 bytes of metadata is shorter here (H-320)",
    ),
    cited(
        "H-374",
        Claim,
        "5.4",
        "what is different from Active Messages",
        "a comparison of designs",
    ),
    judged(
        "H-375",
        Claim,
        "5.4",
        "a host processor for every packet would cost too many context switches",
        |b| {
            let switch = us(b.machine.context_switch);
            Ok((
                switch > b.small.receive,
                format!(
                    "a context switch takes {switch:.0} µs, the card {:.1} µs for a packet of 256 bytes",
                    b.small.receive
                ),
            ))
        },
    ),
    cited(
        "H-378",
        Claim,
        "5",
        "the main contribution is the coupling of placement and protection",
        "a judgement, which no measurement can decide",
    ),
    cited(
        "H-379",
        Number,
        "5",
        "earliest record: July 1992",
        "history, and nothing to measure",
    ),
    judged(
        "H-380",
        Claim,
        "6",
        "protected and fast, nearly without the operating system",
        |b| {
            let latency = us(b.raw.span);
            Ok((
                latency < 20.0 && b.refused.refused == 1_000,
                format!(
                    "{latency:.1} µs, {:.1} MB/s, wrong keys refused, no operating system on the way",
                    mb_per_s(b.slopes.mean)
                ),
            ))
        },
    ),
    elsewhere(
        "H-381",
        Claim,
        "6.1",
        "order can be made cheaply above an unordered network",
        "conformance tests of streams; engine test packets_in_any_order_announce_each_message_at_its_last",
    ),
    number(
        "H-382",
        "6.1",
        "adaptive routing has twice the throughput",
        &[
            measured("random traffic, over ways by pair", "times", 2.0, |_| {
                Ok(of_64_hosts(Traffic::Uniform)?.over_pair)
            }),
            measured("bit reversal, over ways by pair", "times", 2.0, |_| {
                Ok(of_64_hosts(Traffic::BitReversal)?.over_pair)
            }),
            measured("bit reversal, over ways by receiver", "times", 2.0, |_| {
                Ok(of_64_hosts(Traffic::BitReversal)?.over_receiver)
            }),
        ],
        "a figure that the paper cites and does not measure, of networks unlike these. With 64 hosts on 8 x 8 crossbars it is met only by traffic that is as bad as can be for the fixed ways; `hamlyn reproduce beyond` has 8 and 1,024 hosts, hot spots and all-to-all",
    ),
    number(
        "H-394",
        "6.5",
        "a wrong key is known and its packet discarded within 3 µs",
        &[fitted("interface processor", "µs", 3.0, |b| {
            Ok(us(b.refused.receiving_lanai))
        })],
        "the engine's verdict decides; the time of the check is a parameter",
    ),
    number(
        "H-395",
        "6.5",
        "guessing a key takes 877,000 years",
        &[fitted("half of 2^64 trials", "years", 877_000.0, |b| {
            Ok(years(b))
        })],
        "one trial after the other",
    ),
    cited(
        "H-400",
        Claim,
        "6.5",
        "passwords are the weaker target",
        "a judgement, which no measurement can decide",
    ),
    judged(
        "H-403",
        Claim,
        "6.7",
        "latency is a few microseconds",
        |b| {
            let (raw, normal) = (us(b.raw.span), b.single(0, 0)?);
            Ok((normal < 20.0, format!("{raw:.1} to {normal:.1} µs one way")))
        },
    ),
    cited(
        "H-404",
        Claim,
        "6.7",
        "message passing isolates; close coupling outperforms loose clusters",
        "a judgement, which no measurement can decide",
    ),
    judged(
        "H-405",
        Claim,
        "S26",
        "out-of-order delivery is manageable",
        |b| {
            let late = f64::from(of_64_hosts(Traffic::Permutation)?.reordered_per_million) / 1e4;
            let (receive, counting) = b.counting()?;
            let share = 100.0 * counting / receive;
            Ok((
                late > 1.0 && share < 25.0,
                format!(
                    "64 hosts in fixed pairs, adaptively and at full load: {late:.0} % of frames come late. What takes them in any order is counting, {counting:.2} of {receive:.1} µs of the receiver's card for a packet of 256 bytes, {share:.0} %; that messages are announced at the last packet in any order: engine test packets_in_any_order_announce_each_message_at_its_last"
                ),
            ))
        },
    ),
    judged(
        "H-406",
        Claim,
        "S27",
        "how functions are split between host and card is critical",
        |b| {
            let metadata = b.latency(256, 32, 4)? - b.latency(256, 32, 0)?;
            let written = us(b.machine.store);
            Ok((
                metadata > 10.0 * written,
                format!(
                    "4 bytes of metadata cost {metadata:.1} µs as they are fetched by DMA, where one store takes {written:.3}"
                ),
            ))
        },
    ),
    cited(
        "H-407",
        Claim,
        "S28",
        "fast networking needs attention to detail",
        "a judgement, which no measurement can decide",
    ),
    number(
        "H-408",
        "S29",
        "26 µs round trip at 26 % of the processor",
        &[
            fitted("round trip, raw", "µs", 26.0, |b| Ok(us(b.raw.round_trip))),
            measured("processors, library", "%", 26.0, |b| {
                Ok(us(b.tagged.processors) / us(b.tagged.span) * 100.0)
            }),
        ],
        "the slide mixes two cases: its 26 µs are the raw one, its 26 % the library's: what both processors work, over the time of a message",
    ),
    number(
        "H-409",
        "S29",
        "29 MB/s at 2 to 9 % of the processor",
        &[
            measured("2 KB packets, 40 KB messages", "MB/s", 29.0, |b| {
                Ok(b.largest(&b.figure9, 2048))
            }),
            measured("messages of 4 KB, sender", "%", 2.0, |b| {
                let flow = b.stream(LARGE)?;
                Ok(us(flow.sending_processor) / us(flow.span) * 100.0)
            }),
            measured("messages of 1 KB, both hosts", "%", 9.0, |b| {
                processors(b, 1_024)
            }),
        ],
        "what the range covers is not said: its upper end is met by messages a little longer than 1 KB, so the reading here may not be the slide's",
    ),
    number(
        "H-410",
        "S29",
        "29 MB/s is called 96 % of the bus",
        &[fitted("4 KB packets, by the slope", "%", 96.0, |b| {
            Ok(mb_per_s(b.slopes.mean) / 32.0 * 100.0)
        })],
        "96 % belongs to 30.7 MB/s; 29 of 32 are 91 %",
    ),
    judged(
        "H-411",
        Claim,
        "S29",
        "direct access, placement by the sender, reassembly and DMA do it",
        |b| {
            let software = b.row(HostSoftware).1 / us(b.tagged.span) * 100.0;
            let sender = b.stream(LARGE)?;
            let busy = us(sender.sending_processor) / us(sender.span) * 100.0;
            Ok((
                software < 50.0 && busy < 10.0,
                format!(
                    "software is {software:.0} % of a short message; the sender's processor works {busy:.1} % of the time that 4 KB messages take"
                ),
            ))
        },
    ),
    elsewhere(
        "H-412",
        Claim,
        "S29",
        "keys support applications that do not trust each other",
        "engine tests of refusals; here all wrong keys are refused (H-008)",
    ),
];

/// Years for half of all keys, one after the other.
pub(super) fn years(b: &Bench) -> f64 {
    let seconds = us(b.refused.receiving_lanai) / 1e6 * 2_f64.powi(63);
    seconds / (365.25 * 86_400.0)
}
