//! What is said of the architecture and the library (`Hamlyn 2.2` to `3.3`): claims that the engine's and the library's tests
//! show, and drawings that are missing.

use super::{cited, elsewhere, given, judged, not_measurable, number};
use crate::reproduce::bench::us;
use crate::reproduce::measure::{Shape, flow};
use crate::reproduce::report::Kind::{Claim, Experiment, Number};
use crate::reproduce::report::Row;
use hamlyn_engine::limits::METADATA_ENTRIES_MAX;

const NO_DRAWING: &str = "the drawing is missing from the text that survives";

pub(super) const ROWS: &[Row] = &[
    number(
        "H-087",
        "Table 1",
        "a header has 32 bytes",
        &[given("header on the wire", "bytes", 32.0, |b| {
            let empty = flow(&b.machine, &Shape::datagram(256, 0), 100, true)?;
            Ok(us(empty.link - b.machine.wire_start) / us(b.machine.wire_byte))
        })],
        "by the time a packet without data holds its link",
    ),
    not_measurable(
        "H-096",
        Experiment,
        "Fig 1, Fig 2",
        "message areas, slots, an incoming packet",
        NO_DRAWING,
    ),
    not_measurable(
        "H-097",
        Experiment,
        "S11 to S13, S16",
        "reception, packet format, termini",
        NO_DRAWING,
    ),
    elsewhere(
        "H-122",
        Claim,
        "2.3",
        "interleaving gives bulk senders equal bandwidth",
        "engine test floods_on_one_link_get_equal_bandwidth_whatever_room_it_has_at_a_time",
    ),
    elsewhere(
        "H-123",
        Claim,
        "2.3",
        "and bounds each message's wait in its queue",
        "engine test short_message_waits_for_one_turn_of_every_other_terminus_at_most",
    ),
    judged(
        "H-131",
        Number,
        "2.4",
        "tens of thousands of metadata entries may be needed",
        |_| {
            Ok((
                METADATA_ENTRIES_MAX >= 10_000,
                format!("a slot here may have {METADATA_ENTRIES_MAX}, in main memory"),
            ))
        },
    ),
    cited(
        "H-132",
        Number,
        "2.4 fn 2",
        "the controller planned first had 128K bytes of memory",
        "why entries lie in main memory",
    ),
    elsewhere(
        "H-149",
        Claim,
        "2.5",
        "group receive makes a barrier",
        "conformance test a_barrier_has_no_bytes",
    ),
    elsewhere(
        "H-150",
        Claim,
        "2.5",
        "scatter-gather is a group with one sender",
        "conformance tests of groups",
    ),
    elsewhere(
        "H-152",
        Claim,
        "2.5",
        "the receiver need not know the senders, nor the number of packets",
        "engine and conformance tests of groups",
    ),
    elsewhere(
        "H-156",
        Claim,
        "2.5",
        "the scheme costs no additional memory",
        "the accumulator lies in the entry: engine tests of metadata entries",
    ),
    elsewhere(
        "H-171",
        Claim,
        "2.6",
        "few interrupts",
        "link test rings_only_for_those_that_sleep; here each wake-up is of a receiver that sleeps",
    ),
    not_measurable(
        "H-173",
        Claim,
        "2.6",
        "polling causes no traffic on the I/O bus",
        "the machine has no caches: it charges polling to the processor alone, which assumes what is claimed",
    ),
    not_measurable(
        "H-177",
        Experiment,
        "Fig 3, Fig 4, S14, S15",
        "notification queues, slot and control block",
        NO_DRAWING,
    ),
    elsewhere(
        "H-183",
        Claim,
        "2.7",
        "a bad client's damage stays small",
        "engine tests of the paranoid modes",
    ),
    elsewhere(
        "H-184",
        Claim,
        "2.7",
        "one-shot entries prevent overrun of the notification queue",
        "engine tests of notifications and metadata entries",
    ),
    elsewhere(
        "H-185",
        Claim,
        "2.7",
        "and keep data from being overwritten",
        "engine tests of metadata entries",
    ),
    elsewhere(
        "H-186",
        Claim,
        "2.7",
        "each sender may have a key of its own",
        "engine tests of the paranoid modes",
    ),
    elsewhere(
        "H-187",
        Claim,
        "2.7",
        "the keys of a failed node can be revoked at once",
        "engine tests of slots and metadata entries",
    ),
    not_measurable(
        "H-190",
        Claim,
        "2.7",
        "the paranoid modes need no more accesses to host memory",
        "the paper measured normal slots only and gives no cost of the checks, so the machine has none",
    ),
    cited(
        "H-206",
        Claim,
        "2.8",
        "no loss suits small areas, not wide ones",
        "a judgement, which no measurement can decide",
    ),
    elsewhere(
        "H-211",
        Claim,
        "2.9",
        "what its costs buy",
        "each item has rows and tests of its own in docs/papers.md",
    ),
    cited(
        "H-212",
        Claim,
        "2.9",
        "the costs are small and like those of other designs",
        "a judgement, which no measurement can decide",
    ),
    cited("H-214", Claim, "3", "a base for middleware", "a purpose"),
    not_measurable(
        "H-228",
        Experiment,
        "Fig 5, S7",
        "structure of hardware and software",
        NO_DRAWING,
    ),
    not_measurable(
        "H-244",
        Claim,
        "3.3",
        "inlining yields efficient code",
        "virtual time does not see the compiler; `hamlyn bench --instructions` counts instructions",
    ),
];
