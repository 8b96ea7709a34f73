//! What the ends of a stream say to each other survives the way, and whatever else
//! arrives is refused rather than misread.

use hamlyn_engine::counting::Counting;
use hamlyn_engine::key::Key;
use hamlyn_engine::packet::SlotName;
use hamlyn_host::Destination;
use proptest::prelude::*;

use super::*;

fn seed(pieces: u32, piece_shift: u32, key: u64) -> StreamSeed {
    let piece_bytes = 1 << piece_shift;
    StreamSeed {
        ticket: Ticket {
            destination: Destination {
                node: 0,
                user: 7,
                interface: key.rotate_left(9),
            },
            slot: SlotName::from_bits(key as u32),
            metadata_index: 0,
            key: Key::from_bits(key),
            base: 0,
            length_bytes: u64::from(pieces) * u64::from(piece_bytes),
            counting: Counting::Bits32,
            kind: crate::ticket::TicketKind::Slot,
        },
        pieces,
        piece_bytes,
        limit_bytes: (u64::from(pieces) * u64::from(piece_bytes) * 3 / 2).min(LIMIT_BYTES_MAX),
        control_slot: SlotName::from_bits(!key as u32),
        control_key: Key::from_bits(key.rotate_left(31)),
    }
}

proptest! {
    #[test]
    fn seeds_survive_the_way(pieces in 1..=PIECES_MAX, shift in 6..=30_u32, key in any::<u64>()) {
        let seed = seed(pieces, shift, key);
        let read = StreamSeed::from_bytes(&seed.to_bytes());
        prop_assert_eq!(read.ok(), Some(seed));
    }

    #[test]
    fn damaged_seeds_are_refused(key in any::<u64>(), at in 0..SEED_BYTES, bit in 0..8_u32) {
        let mut bytes = seed(16, 12, key).to_bytes();
        bytes[at] ^= 1 << bit;
        prop_assert!(StreamSeed::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_seed_whose_control_slot_is_that_of_the_pieces_is_refused(key in any::<u64>()) {
        let mut seed = seed(16, 12, key);
        prop_assert!(StreamSeed::from_bytes(&seed.to_bytes()).is_ok());
        seed.control_slot = seed.ticket.slot;
        prop_assert!(StreamSeed::from_bytes(&seed.to_bytes()).is_err());
    }

    #[test]
    fn any_bytes_are_a_valid_seed_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(seed) = StreamSeed::from_bytes(&bytes) {
            prop_assert_eq!(seed.validate(), Ok(()));
        }
        if let Some(note) = ExtentNote::from_bytes(&bytes) {
            prop_assert_eq!(&note.to_bytes()[..], &bytes[..]);
        }
        if let Some(place) = StreamPosition::from_bytes(&bytes) {
            prop_assert_eq!(&place.to_bytes()[..], &bytes[..]);
        }
        if let Some(grow_request) = GrowRequest::from_bytes(&bytes) {
            prop_assert_eq!(&grow_request.to_bytes()[..], &bytes[..]);
        }
    }

    #[test]
    fn notes_survive_the_way(serial in any::<u64>(), key in any::<u64>(), pieces in 1..=PIECES_MAX, answers in any::<u16>()) {
        let note = ExtentNote {
            serial,
            slot: SlotName::from_bits(key as u32),
            key: Key::from_bits(key),
            pieces,
            piece_bytes: 1 << (6 + key % 25),
            answers,
        };
        prop_assert_eq!(ExtentNote::from_bytes(&note.to_bytes()), Some(note));
        let place = StreamPosition { extent: serial, position: key };
        prop_assert_eq!(StreamPosition::from_bytes(&place.to_bytes()), Some(place));
        let grow_request = GrowRequest { place, record_bytes: serial ^ key };
        prop_assert_eq!(GrowRequest::from_bytes(&grow_request.to_bytes()), Some(grow_request));
    }

    /// What is read while the next is being written is part of either.
    #[test]
    fn a_note_that_is_half_another_is_none(serial in any::<u64>(), key in any::<u64>(), at in 1..EXTENT_NOTE_BYTES) {
        let note = |serial, key| ExtentNote {
            serial,
            slot: SlotName::from_bits(key as u32),
            key: Key::from_bits(key),
            pieces: 8,
            piece_bytes: 1 << 14,
            answers: 7,
        };
        let (one, other) = (note(serial, key), note(serial.wrapping_add(1), !key));
        let mut bytes = one.to_bytes();
        bytes[at..].copy_from_slice(&other.to_bytes()[at..]);
        let read = ExtentNote::from_bytes(&bytes);
        prop_assert!(read.is_none() || read == Some(one) || read == Some(other));
    }

    #[test]
    fn notes_of_another_length_are_none(bytes in prop::collection::vec(any::<u8>(), 0..61)) {
        prop_assert_eq!(StreamPosition::from_bytes(&bytes).is_some(), bytes.len() == PLACE_BYTES);
        prop_assert_eq!(GrowRequest::from_bytes(&bytes).is_some(), bytes.len() == GROW_REQUEST_BYTES);
    }

    #[test]
    fn credit_survives_the_way(
        released in any::<u32>(),
        extent in 0..=EXTENT_MASK,
        answers in any::<u16>(),
        denied in any::<bool>(),
        closed in any::<bool>(),
        word in any::<u64>(),
    ) {
        let credit = Credit { released, extent, answers, denied, closed };
        prop_assert_eq!(Credit::from_word(word).to_word(), word);
        prop_assert_eq!(Credit::from_word(credit.to_word()), credit);
    }

    #[test]
    fn piece_words_survive_the_way_and_others_are_refused(length in any::<u32>(), word in any::<u64>()) {
        for kind in [Kind::Whole, Kind::First, Kind::Next, Kind::Packed, Kind::Skip] {
            prop_assert_eq!(read_piece_word(piece_word(kind, length)), Some((kind, length)));
        }
        if let Some((kind, length)) = read_piece_word(word) {
            prop_assert_eq!(piece_word(kind, length), word);
        }
    }

    /// Records packed one after the other are found again; and whatever a sender
    /// writes instead leads nowhere outside the piece, and ends.
    #[test]
    fn packed_records_are_found_again(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
        foreign in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut packed = Vec::new();
        for record in &records {
            packed.extend_from_slice(&(record.len() as u64).to_le_bytes());
            packed.extend_from_slice(record);
            packed.resize(packed.len().next_multiple_of(8), 0);
        }
        prop_assert_eq!(packed.len(), records.iter().map(|r| packed_bytes(r.len())).sum::<usize>());
        let mut at = 0;
        for record in &records {
            let (start, end, next) = packed_record(&packed, at).expect("a record");
            prop_assert_eq!(&packed[start..end], &record[..]);
            at = next;
        }
        prop_assert_eq!(at, packed.len());

        let mut at = 0;
        while let Some((start, end, next)) = packed_record(&foreign, at) {
            prop_assert!(start <= end && end <= next && next <= foreign.len() && next > at);
            at = next;
        }
    }
}

#[test]
fn the_piece_after_the_last_is_the_first() {
    for pieces in 1..5 {
        let mut index = 0;
        for count in 0..20 {
            assert_eq!(index, count % pieces);
            index = after(index, pieces);
        }
    }
}
