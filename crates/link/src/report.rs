//! What the receiving end of a pair link says of a packet that its interface refused (decision
//! 0020).
//!
//! | word | bits |
//! |---|---|
//! | 0 | slot or port 32, metadata index 16, reason 8, kind 8 |
//! | 1 | offset |
//! | 2 | data length 32, unused 32 |
//! | 3 | the word |
//!
//! The key is left out: the packet's sender knows it. [`decode`] is total: whatever the words say,
//! they are a report.

use hamlyn_engine::key::Key;
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::Return;
use hamlyn_ring::reports::Report;

/// The report of a packet.
pub(crate) fn encode(header: &Header, reason: Refusal) -> Report {
    [
        u64::from(header.slot.to_bits())
            | u64::from(header.metadata_index) << 32
            | u64::from(reason as u8) << 48
            | u64::from(header.kind.0) << 56,
        header.offset,
        u64::from(header.length_bytes),
        header.word,
    ]
}

/// What a report says. Of the header, key, flags and metadata are not told.
pub(crate) fn decode(report: &Report) -> (Header, Return) {
    let header = Header {
        slot: SlotName::from_bits(report[0] as u32),
        metadata_index: (report[0] >> 32) as u16,
        key: Key::from_bits(0),
        offset: report[1],
        length_bytes: report[2] as u32,
        word: report[3],
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind((report[0] >> 56) as u8),
    };
    (header, Return::of_code((report[0] >> 48) as u8))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_words_are_a_report(report in any::<Report>()) {
            let (header, reason) = decode(&report);
            if let Return::Refused(reason) = reason {
                let plain = [report[0], report[1], u64::from(report[2] as u32), report[3]];
                prop_assert_eq!(encode(&header, reason), plain);
            } else {
                prop_assert!(usize::from((report[0] >> 48) as u8) >= Refusal::ALL.len());
            }
        }
    }
}
