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
        },
        pieces,
        piece_bytes,
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
    fn any_bytes_are_a_valid_seed_or_none(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(seed) = StreamSeed::from_bytes(&bytes) {
            prop_assert_eq!(seed.validate(), Ok(()));
        }
        let _ = read_extent_note(&bytes);
        let _ = read_enlarge_note(&bytes);
    }

    #[test]
    fn credit_survives_the_way(
        released in 0..1_u64 << 48,
        extent in 0..=EXTENT_MASK,
        answer in any::<bool>(),
        denied in any::<bool>(),
        closed in any::<bool>(),
    ) {
        let credit = Credit { released, extent, answer, denied, closed };
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
