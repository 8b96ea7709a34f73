use hamlyn_engine::key::Key;
use hamlyn_engine::limits::PACKET_PAYLOAD_MAX;
use hamlyn_engine::packet::PortName;
use proptest::prelude::*;

use super::*;

fn port(bits: u32, key: u64, group: u64) -> PortAddress {
    PortAddress {
        port: PortName::from_bits(bits),
        key: Key::from_bits(key),
        group,
    }
}

proptest! {
    /// A message looks the same at the other end, and an abbreviation stands for the last port that
    /// was said in full, whichever others have the same number.
    #[test]
    fn a_message_is_what_was_sent(
        ports in prop::collection::vec((prop_oneof![any::<u32>(), Just(u32::MAX)], any::<u64>(), any::<u64>()), 1..20),
        handler in 0..HANDLERS_MAX,
        length in 0..=bytes_in(MESSAGE_CELLS_MAX) as u16,
        seed in any::<u8>(),
    ) {
        let mut abbreviations = Abbreviations::default();
        for (bits, key, group) in ports {
            let to = port(bits, key, group);
            prop_assert!(!abbreviations.has(&to));
            abbreviations.note(&to.header(1, 2));
            // One that no interface has is always said in full.
            prop_assert_eq!(abbreviations.has(&to), bits != u32::MAX);
            if bits == u32::MAX {
                continue;
            }
            let head = MessageHead {
                abbreviation: Abbreviations::number(&to),
                handler,
                length_bytes: length,
            };
            let data: Vec<u8> = (0..length).map(|at| seed ^ at as u8).collect();
            let cell = head.encode(&data);
            prop_assert_eq!(MessageHead::of_cell(&cell), Some(head));
            let decoded = head.decode(&abbreviations, MESSAGE_CELLS_MAX, PACKET_PAYLOAD_MAX);
            let Ok((header, placement)) = decoded else {
                return Err(TestCaseError::fail(format!("{decoded:?}")));
            };
            prop_assert_eq!(header, to.header(handler.into(), length.into()));
            prop_assert_eq!(placement.cells(header.length_bytes), cells_of(length.into()));
            let bytes: Vec<u8> = cell[1..].iter().flat_map(|word| word.to_le_bytes()).collect();
            let first = data.len().min(FIRST_BYTES);
            prop_assert_eq!(&bytes[..first], &data[..first]);
            prop_assert!(bytes[first..].iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn an_abbreviation_of_nothing_and_a_length_beyond_the_limits_are_faults() {
    let mut abbreviations = Abbreviations::default();
    let to = port(7, 8, 9);
    let head = |length_bytes| MessageHead {
        abbreviation: 7,
        handler: 0,
        length_bytes,
    };
    let decode = |abbreviations: &Abbreviations, length_bytes, cells, payload_max| {
        let decoded = head(length_bytes).decode(abbreviations, cells, payload_max);
        decoded.map(|(header, _)| header.length_bytes)
    };
    let decoded = decode(&abbreviations, 0, 1, 64);
    assert_eq!(decoded, Err(LinkFault::Abbreviation));
    // Other packets say no port.
    let mut other = to.header(0, 0);
    other.kind = Kind::WRITE;
    abbreviations.note(&other);
    assert_eq!(
        decode(&abbreviations, 0, 1, 64),
        Err(LinkFault::Abbreviation)
    );
    abbreviations.note(&to.header(0, 0));
    assert_eq!(decode(&abbreviations, 56, 1, 64), Ok(56));
    assert_eq!(decode(&abbreviations, 57, 1, 64), Err(LinkFault::Placement));
    assert_eq!(decode(&abbreviations, 57, 2, 64), Ok(57));
    assert_eq!(decode(&abbreviations, 65, 2, 64), Err(LinkFault::Placement));
    let longest = bytes_in(MESSAGE_CELLS_MAX) as u16;
    let whole = PACKET_PAYLOAD_MAX;
    assert_eq!(
        decode(&abbreviations, longest, MESSAGE_CELLS_MAX, whole),
        Ok(longest.into())
    );
    let beyond = decode(&abbreviations, longest + 1, MESSAGE_CELLS_MAX, whole);
    assert_eq!(beyond, Err(LinkFault::Placement));
}
