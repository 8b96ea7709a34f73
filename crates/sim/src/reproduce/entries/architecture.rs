//! What is said of the architecture and the library (`Hamlyn 2.2` to `3.3`): claims that the engine's and the library's tests
//! show, and drawings that are missing.

use super::{figures, given, judged};
use crate::reproduce::bench::us;
use crate::reproduce::measure::{Shape, flow};
use crate::reproduce::report::Treatment;
use hamlyn_engine::limits::METADATA_ENTRIES_MAX;

pub(super) const MEASURES: &[(&str, Treatment)] = &[
    figures(
        "H-087",
        &[given("header on the wire", "bytes", 32.0, |b| {
            let empty = flow(&b.machine, &Shape::datagram(256, 0), 100, true)?;
            Ok(us(empty.link - b.machine.wire_start) / us(b.machine.wire_byte))
        })],
    ),
    judged("H-131", |_| {
        Ok((
            METADATA_ENTRIES_MAX >= 10_000,
            format!("a slot here may have {METADATA_ENTRIES_MAX}, in main memory"),
        ))
    }),
];
