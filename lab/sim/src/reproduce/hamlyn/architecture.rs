//! What is said of the architecture and the library (`Hamlyn 2.2` to `3.3`): claims that the
//! engine's and the library's tests show, and drawings that are missing.

use super::bench::us;
use super::{Experiment, figures, judged};
use crate::reproduce::measure::{Shape, flow};
use hamlyn_engine::limits::METADATA_ENTRIES_MAX;

pub(super) const EXPERIMENTS: &[(&str, Experiment)] = &[
    figures(
        "H-087",
        &[|b| {
            let empty = flow(&b.machine, &Shape::datagram(256, 0), 100, true)?;
            Ok(us(empty.link - b.machine.link().start.0) / us(b.machine.link().byte.0))
        }],
    ),
    judged("H-131", |_| {
        Ok((
            METADATA_ENTRIES_MAX >= 10_000,
            format!("a slot here may have {METADATA_ENTRIES_MAX}, in main memory"),
        ))
    }),
];
